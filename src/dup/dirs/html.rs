//! `bc dup dirs --format=html`: directories first, then the files that they do not cover.

use std::fmt::Write;

use bc_find::dirs::{DirGroup, DirsReport};
use bc_prune::KeepRules;
use bc_walk::{DirId, EntryId};

use crate::dup::html::{
    LISTED, NAMES, UNFOLDED, bytes_cell, errors, figures, left_out, row, subject,
    waste_by_directory, waste_map,
};
use crate::dup::terminal::count;
use crate::html::dirs::{Amount, Dirs};
use crate::html::escape::{Path, Text};
use crate::html::{By, Column, Page, Tile, notes, nothing, table_end, table_start};
use crate::progress::{size, thousands};

/// Command that lists all entries, also those that a page leaves out.
const ALL: &str = "<code>bc dup dirs --format=json PATH...</code>";

/// Returns the page.
pub fn page(report: &DirsReport<'_>) -> Page {
    let found = report.found;
    let mut waste = Dirs::default();
    let mut rows = String::new();
    let mut listed = 0;
    for group in &found.groups {
        waste_of(&mut waste, report, group);
        if listed < LISTED {
            listed += 1;
            dir_row(&mut rows, report, group);
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
        if listed < LISTED {
            listed += 1;
            row(&mut rows, one, &group, &files, ALL);
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
    if let Some((html, style)) = waste_map(&waste) {
        page.body += &html;
        page.style = style;
    }
    page.body += &notes("Not judged", "alarm", &errors);
    page.body += &notes("Directories that were not compared", "", &obstacles(report));
    if all > 0 {
        table(&mut page.body, report, &rows, all - listed);
    } else {
        page.body += &nothing("No two files are equal", "So no two directories are.");
    }
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

fn dir_row(rows: &mut String, report: &DirsReport<'_>, group: &DirGroup) {
    rows.push_str("<tr>");
    bytes_cell(rows, " lead", "wasted", group.wasted);
    bytes_cell(rows, "", "each", group.bytes);
    let copies = group.dirs.len();
    // Writing to a String cannot fail.
    let _ = write!(
        rows,
        "<td class=num data-v={copies} data-label=copies>{}<td class=wide><ul class=files>",
        thousands(copies as u64)
    );
    // One more line is no longer than the line that would hide it.
    let unfolded = if copies == UNFOLDED + 1 {
        copies
    } else {
        UNFOLDED
    };
    for (nth, dir) in group.dirs.iter().take(NAMES).enumerate() {
        if nth == unfolded {
            let more = thousands((copies - unfolded) as u64);
            let _ = write!(
                rows,
                "<li><details><summary>{more} more</summary><ul class=files>"
            );
        }
        let tag = match (nth, report.scan.scan.is_reference_dir(*dir)) {
            (0, false) => format!(
                "<span class=tag>{}</span>",
                count(group.files, "file", "files")
            ),
            (0, true) => format!(
                "<span class=tag>{}: reference</span>",
                count(group.files, "file", "files")
            ),
            (_, true) => "<span class=\"tag same\">reference</span>".to_owned(),
            (_, false) => String::new(),
        };
        let _ = write!(rows, "<li>{tag}{}", Path(&path(report, *dir)));
    }
    if copies > NAMES {
        let more = thousands((copies - NAMES) as u64);
        let _ = write!(
            rows,
            "<li>{more} more are not on this page; {ALL} lists all"
        );
    }
    rows.push_str(match copies > unfolded {
        true => "</ul></details></ul>\n",
        false => "</ul>\n",
    });
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
    let tile = |label, value: u64, more: &str| Tile {
        label,
        value: thousands(value),
        more: more.to_owned(),
        class: String::new(),
        link: None,
        color: None,
    };
    let mut more = vec![tile(
        "Groups of directories",
        found.groups.len() as u64,
        "with the same contents",
    )];
    if !found.contained.is_empty() {
        let contained = found.contained.len() as u64;
        more.push(tile(
            "Contained directories",
            contained,
            "in others, wholly",
        ));
    }
    figures(&report.scan, more, report.scan.scan.groups().len(), errors)
}

fn table(body: &mut String, report: &DirsReport<'_>, rows: &str, missing: usize) {
    let mut status =
        "Directories first, then the groups of files that they do not cover; each from \
                      the largest waste down."
            .to_owned();
    let mut elsewhere = String::new();
    if missing > 0 {
        elsewhere = format!(
            "{} more groups are not on this page; {ALL} lists all.",
            thousands(missing as u64)
        );
        status = format!("{status} {elsewhere} Figures and map count them.");
    }
    let number = |name| Column {
        name,
        by: By::Number,
        sorted: None,
    };
    let columns = [
        number("Wasted"),
        number("Size"),
        number("Copies"),
        Column {
            name: "Paths",
            by: By::Text,
            sorted: None,
        },
    ];
    let title = match report.found.groups.is_empty() {
        true => "Groups of equal files",
        false => "Equal directories and files",
    };
    *body += &table_start(title, &status, "part of a path", &columns);
    *body += rows;
    *body += &table_end(&elsewhere);
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
        let files = count(one.files, "file is", "files are");
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
