//! `bc dup dirs --format=html`: directories first, then the files that they do not cover.

use bc_find::dirs::{DirGroup, DirsReport};
use bc_prune::KeepRules;
use bc_walk::{DirId, EntryId};

use crate::dup::html::{
    LISTED, errors, figures, group_row, left_out, row, subject, waste_by_directory, waste_map,
};
use crate::html::dirs::{Amount, Dirs};
use crate::html::escape::{Path, Text};
use crate::html::table::{NAMES, NameList, NameTag, PageColumn, PageRow, PageTable, TaggedName};
use crate::html::{Page, Tile, notes, nothing};
use crate::session::progress::{counted, size, thousands};

/// Command that lists all entries, also those that a page leaves out.
const ALL: &str = "<code>bc dup dirs --format=json PATH...</code>";

/// Returns the page.
pub fn page(report: &DirsReport<'_>) -> Page {
    let found = report.found;
    let mut waste = Dirs::default();
    let mut rows = Vec::new();
    for group in &found.groups {
        waste_of(&mut waste, report, group);
        if rows.len() < LISTED {
            rows.push(dir_row(report, group));
        }
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
        if rows.len() < LISTED {
            rows.push(row(one, &group, &files, ALL));
        }
    }
    let all = found.groups.len() + found.files.len();
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
    page.body += &notes("Not judged", "alarm", &errors);
    page.body += &notes("Directories that were not compared", "", &obstacles(report));
    page.body += &match all {
        0 => nothing("No two files are equal", "So no two directories are."),
        _ => {
            let missing = all - rows.len();
            table(report, rows, missing).html()
        }
    };
    page.body += &notes("Contained in others", "", &contained(report));
    page.body += &notes("Similar", "", &similar(report));
    page.body += &notes("On disks that are not here", "", &offline(report));
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

fn dir_row(report: &DirsReport<'_>, group: &DirGroup) -> PageRow {
    let files = || counted(group.files, "file", "files");
    let dirs = group.dirs.iter().take(NAMES).enumerate();
    let listed = dirs.map(|(nth, dir)| TaggedName {
        tag: match (nth, report.scan.scan.is_reference_dir(*dir)) {
            (0, false) => Some(NameTag::Kept(files().into())),
            (0, true) => Some(NameTag::Kept(format!("{}: reference", files()).into())),
            (_, true) => Some(NameTag::Other("reference")),
            (_, false) => None,
        },
        path: path(report, *dir),
    });
    let names = NameList {
        listed: listed.collect(),
        count: group.dirs.len(),
        all: ALL,
    };
    group_row(group.wasted, group.bytes, group.dirs.len(), names)
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
            "in others, wholly",
        ));
    }
    figures(&report.scan, more, report.scan.scan.groups().len(), errors)
}

fn table(report: &DirsReport<'_>, rows: Vec<PageRow>, missing: usize) -> PageTable {
    let mut status = "Directories first, then the groups of files that they do not cover; each \
                      from the largest waste down."
        .to_owned();
    let mut elsewhere = String::new();
    if missing > 0 {
        elsewhere = format!(
            "{} more groups are not on this page; {ALL} lists all.",
            thousands(missing as u64)
        );
        status = format!("{status} {elsewhere} Figures and map count them.");
    }
    PageTable {
        title: match report.found.groups.is_empty() {
            true => "Groups of equal files",
            false => "Equal directories and files",
        },
        status,
        placeholder: "part of a path",
        columns: [
            PageColumn::number("Wasted"),
            PageColumn::number("Size"),
            PageColumn::number("Copies"),
            PageColumn::text("Paths"),
        ],
        rows,
        elsewhere,
    }
}

fn obstacles(report: &DirsReport<'_>) -> Vec<String> {
    let line = |(dir, why): &(DirId, bc_find::dirs::Obstacle)| {
        format!("{}: {}", Path(&path(report, *dir)), Text(why.text()))
    };
    report.found.obstacles.iter().map(line).collect()
}

fn contained(report: &DirsReport<'_>) -> Vec<String> {
    let found = report.found.contained.iter();
    let line = found.map(|one| {
        let (dir, within) = (path(report, one.dir), path(report, one.within));
        let what = match one.is_mutual {
            true => "the same contents as",
            false => "contained in",
        };
        format!(
            "{} ({}): {what} {}",
            Path(&dir),
            size(one.bytes),
            Path(&within)
        )
    });
    line.collect()
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
