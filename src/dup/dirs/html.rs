//! `bc dup dirs --format=html`: directories to decide on first, then all groups of files.

use bc_find::dirs::{DirGroup, DirsReport};
use bc_prune::KeepRules;
use bc_walk::{DirId, EntryId};

use crate::dup::html::{
    decisions, errors, figures, left_out, subject, waste_by_directory, waste_map,
};
use crate::html::dirs::{Amount, Dirs};
use crate::html::escape::{Path, Text};
use crate::html::{Page, Tile, notes, nothing};
use crate::session::progress::{counted, size};

/// Returns the page.
pub fn page(report: &DirsReport<'_>) -> Page {
    let found = report.found;
    let mut waste = Dirs::default();
    for group in &found.groups {
        waste_of(&mut waste, report, group);
    }
    for (one, _) in report.files() {
        let group = report.scan.file_group(one);
        let mut files = KeepRules::default().order(&group);
        let names: Vec<EntryId> = one.files().flat_map(|file| file.names).copied().collect();
        for file in &mut files {
            file.names
                .retain(|name| !found.repeated.contains(&names[*name]));
        }
        waste_by_directory(&mut waste, one, &group, &files);
    }
    let errors = errors(report.errors());
    let mut page = Page {
        command: "dup dirs",
        title: match found.groups.len() {
            0 => "No equal directories".to_owned(),
            _ => "Equal directories".to_owned(),
        },
        subject: subject(&report.scan),
        body: tiles(report, errors.len()),
        footer: "Nothing was changed.".to_owned(),
        ..Page::default()
    };
    waste_map(&mut page, &waste);
    page.body += &notes("Not compared", "alarm", &errors);
    page.body += &notes("Directories that were not compared", "", &obstacles(report));
    match report.scan.scan.groups().len() {
        0 => page.body += &nothing("No identical files", "So there are no equal directories."),
        _ => decisions(&mut page, &report.scan, Some(found)),
    }
    page.body += &notes("Similar", "", &similar(report));
    page.body += &notes("On offline disks", "", &offline(report));
    page.body += &left_out(&report.scan);
    page
}

/// Adds the waste of a group; each directory that would go is an area of its own.
fn waste_of(waste: &mut Dirs, report: &DirsReport<'_>, group: &DirGroup) {
    let mut left = group.wasted;
    let each = group.wasted.div_ceil(group.dirs.len() as u64 - 1);
    for dir in &group.dirs[1..] {
        let amount = Amount {
            value: each.min(left),
            count: group.files,
            mark: 0,
        };
        left -= amount.value;
        waste.add(&report.scan.listing.dir_path(*dir), amount);
    }
}

fn path(report: &DirsReport<'_>, dir: DirId) -> Vec<u8> {
    let mut path = report.scan.listing.dir_path(dir);
    if path.last() != Some(&b'/') {
        path.push(b'/');
    }
    path
}

fn tiles(report: &DirsReport<'_>, errors: usize) -> String {
    let found = report.found;
    let mut more = vec![Tile::count(
        "Groups of directories",
        found.groups.len() as u64,
        "with the same contents",
    )];
    if !found.contained.is_empty() {
        more.push(Tile::count(
            "Contained directories",
            found.contained.len() as u64,
            "entirely in others",
        ));
    }
    figures(&report.scan, more, report.scan.scan.groups().len(), errors)
}

fn obstacles(report: &DirsReport<'_>) -> Vec<String> {
    let line = |(dir, why): &(DirId, bc_find::dirs::Obstacle)| {
        format!("{}: {}", Path(&path(report, *dir)), Text(why.text()))
    };
    report.found.obstacles.iter().map(line).collect()
}

fn offline(report: &DirsReport<'_>) -> Vec<String> {
    let line = |one: &bc_find::dirs::OfflineDir| {
        let manifests = one.manifests.iter();
        let manifests = manifests.map(|number| Path(report.manifests[*number]).to_string());
        let manifests = manifests.collect::<Vec<_>>().join(" and ");
        let files = counted(one.files, "file is", "files are");
        let dir = path(report, one.dir);
        format!(
            "{} ({}): {files} in {manifests}",
            Path(&dir),
            size(one.bytes)
        )
    };
    report.offline.iter().map(line).collect()
}

fn similar(report: &DirsReport<'_>) -> Vec<String> {
    let line = |one: &bc_find::dirs::Similar| {
        let [a, b] = one.dirs.map(|dir| path(report, dir));
        let (percent, shared) = (one.percent().floor(), size(one.shared));
        format!("{} and {}: {percent} %, {shared}", Path(&a), Path(&b))
    };
    report.found.similar.iter().map(line).collect()
}
