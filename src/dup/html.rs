//! `bc dup scan --format=html`: the space wasted, its places, and the files that waste it.

use bc_find::groups::FileGroup;
use bc_find::report::ScanReport;
use bc_find::scan;
use bc_fs::quote::shell_word;
use bc_prune::{Inode, KeepRules};

use crate::html::dirs::{Amount, Dirs, What, parent};
use crate::html::escape::{Path, Text, shown};
use crate::html::provenance::absolute;
use crate::html::table::{
    NAMES, NameList, NameTag, PageCell, PageColumn, PageRow, PageTable, TaggedName,
};
use crate::html::{Page, Tile, map, notes, nothing, tiles};
use crate::session::progress::{counted, nonzero, size, thousands};

/// Groups that are listed; a page of more is slow to open and to sort.
pub const LISTED: usize = 1000;
/// Roots that are named, and those that are repeated in a command.
const ROOTS: usize = 12;
const FEW: usize = 3;

/// Command that lists all groups, also those that a page leaves out.
const ALL: &str = "<code>bc dup scan --format=json PATH...</code>";

/// Returns the page.
pub fn page(report: &ScanReport<'_>) -> Page {
    let mut dirs = Dirs::default();
    let mut rows = Vec::new();
    let mut listed_waste = 0;
    let groups = report.scan.groups();
    let count = groups.len();
    for (number, (found, group)) in groups.zip(report.groups()).enumerate() {
        let files = KeepRules::default().order(&group);
        waste_by_directory(&mut dirs, found, &group, &files);
        if number < LISTED {
            listed_waste += found.wasted;
            rows.push(row(found, &group, &files, ALL));
        }
    }
    let errors = errors(report.errors());
    let mut page = Page {
        command: "dup scan",
        title: match count {
            0 => "No duplicate files".to_owned(),
            _ => "Duplicate files".to_owned(),
        },
        subject: subject(report),
        body: figures(report, Vec::new(), count, errors.len()),
        footer: match count {
            0 => "Nothing was changed.".to_owned(),
            _ => format!(
                "Nothing was changed. <code class=long>{}</code> lists the steps that give the \
                 space back. Every file is compared again before one is taken.",
                next(report)
            ),
        },
        ..Page::default()
    };
    waste_map(&mut page, &dirs);
    page.body += &notes("Not judged", "alarm", &errors);
    page.body += &match count {
        0 => nothing(
            "No two files are equal",
            &format!(
                "{} {}",
                compared(report),
                match errors.len() {
                    0 => "Nothing can be freed here.",
                    _ => "What was not judged may have equals.",
                }
            ),
        ),
        _ => list(report, count, listed_waste, rows).html(),
    };
    page.body += &left_out(report);
    page
}

/// Returns the sentence about the files that a search without results compared.
fn compared(report: &ScanReport<'_>) -> String {
    let (files, bytes) = (report.scan.stats.files, report.scan.stats.bytes);
    match files {
        0 => "There was no file to compare.".to_owned(),
        1 => "There was a single file.".to_owned(),
        _ => format!(
            "{} files, {} in all, were compared.",
            thousands(files),
            size(bytes)
        ),
    }
}

/// Returns the command to use next, with the roots if they are few and can be typed.
fn next(report: &ScanReport<'_>) -> String {
    let can_be_typed = |root: &Vec<u8>| std::str::from_utf8(root).is_ok();
    let roots = match report.roots {
        [] => "--files-from=LIST".to_owned(),
        roots if roots.len() > FEW || !roots.iter().all(can_be_typed) => "PATH...".to_owned(),
        roots => {
            let words = roots.iter().enumerate().map(|(number, root)| {
                let root = absolute(root);
                let root = shell_word(&root);
                match report.reference_roots.contains(&number) {
                    true => format!("--reference={root}"),
                    false => root.into_owned(),
                }
            });
            words.collect::<Vec<_>>().join(" ")
        }
    };
    let command = format!("bc dup prune --action=hardlink --dry-run {roots}");
    Text(&shown(command.as_bytes())).to_string()
}

/// Returns the row of a group; `all` is the command that lists the names that it leaves out.
pub fn row(
    found: scan::Group<'_>,
    group: &FileGroup,
    files: &[Inode],
    all: &'static str,
) -> PageRow {
    let names = files.iter().enumerate().flat_map(|(nth, file)| {
        let aliases = file.names.iter().enumerate();
        aliases.map(move |(alias, index)| (nth, alias, &group.files[*index]))
    });
    let listed = names.take(NAMES).map(|(nth, alias, file)| TaggedName {
        tag: match (nth, alias) {
            (0, 0) if file.protected => Some(NameTag::Kept("kept: reference".into())),
            (0, 0) => Some(NameTag::Kept("kept".into())),
            (_, 0) => file.protected.then_some(NameTag::Other("reference")),
            _ => Some(NameTag::Other("same file")),
        },
        path: file.path.clone(),
    });
    let names = NameList {
        listed: listed.collect(),
        count: group.files.len(),
        all,
    };
    group_row(found.wasted, found.size, files.len(), names)
}

/// Returns the row of a group of `copies` files or directories of `each` bytes.
pub fn group_row(wasted: u64, each: u64, copies: usize, names: NameList) -> PageRow {
    let bytes = |label, bytes, leads| PageCell::Bytes {
        label,
        bytes,
        leads,
    };
    let copies = PageCell::Count {
        label: "copies",
        count: copies as u64,
    };
    PageRow {
        class: None,
        cells: [
            bytes("wasted", wasted, true),
            bytes("each", each, false),
            copies,
            PageCell::Names(names),
        ],
    }
}

fn list(report: &ScanReport<'_>, count: usize, listed_waste: u64, rows: Vec<PageRow>) -> PageTable {
    let missing = count.saturating_sub(LISTED);
    let kept = "Of each group the file marked <span class=tag>kept</span> is the one that \
                <code>bc dup prune</code> keeps if it is given no <code>--keep</code> rule.";
    let (status, elsewhere) = if missing == 0 {
        let status = match count {
            1 => format!("The only group. {kept}"),
            _ => format!(
                "All {} groups, largest waste first. {kept}",
                thousands(count as u64)
            ),
        };
        (status, String::new())
    } else {
        let rest = report.scan.wasted() - listed_waste;
        let elsewhere = format!(
            "{} smaller groups, which waste {} together, are not on this page; {ALL} lists all.",
            thousands(missing as u64),
            size(rest)
        );
        let status = format!(
            "The {} groups that waste most. {elsewhere} Figures and map count them. {kept}",
            thousands(LISTED as u64)
        );
        (status, elsewhere)
    };
    PageTable {
        title: "Groups of equal files",
        status,
        placeholder: "part of a path",
        columns: [
            PageColumn::number("Wasted").falling(),
            PageColumn::number("Size"),
            PageColumn::number("Copies"),
            PageColumn::text("Files"),
        ],
        rows,
        elsewhere,
    }
}

/// Returns the list of roots searched.
pub fn subject(report: &ScanReport<'_>) -> String {
    let mut html = String::from("<ul class=subject>\n");
    if report.roots.is_empty() {
        html += "<li>the files of a list (<code>--files-from</code>)\n";
    }
    for (number, root) in report.roots.iter().take(ROOTS).enumerate() {
        let reference = report.reference_roots.contains(&number);
        let tag = if reference {
            "<span class=tag>reference</span>"
        } else {
            ""
        };
        html += &format!("<li>{tag}{}\n", Path(&absolute(root)));
    }
    if report.roots.len() > ROOTS {
        html += &format!(
            "<li>and {} more\n",
            thousands((report.roots.len() - ROOTS) as u64)
        );
    }
    html + "</ul>\n"
}

/// Returns the tiles; `more` come after the first.
pub fn figures(report: &ScanReport<'_>, more: Vec<Tile>, groups: usize, errors: usize) -> String {
    let (scan, stats) = (&report.scan, &report.scan.stats);
    let mut all = vec![Tile {
        label: "Wasted on disk",
        value: size(scan.wasted()),
        more: format!(
            "{} bytes in whole blocks, hard links counted once",
            thousands(scan.wasted())
        ),
        class: if groups == 0 { "hero good" } else { "hero" },
        ..Tile::default()
    }];
    all.extend(more);
    let compared = format!("compared by {}", report.algorithm.name());
    all.extend([
        Tile::count("Redundant files", scan.duplicates(), ""),
        Tile::count("Groups", groups as u64, compared),
        Tile::count("Files scanned", stats.files, size(stats.bytes)),
    ]);
    if errors > 0 {
        all.push(Tile {
            class: "bad",
            ..Tile::count("Not judged", errors as u64, "could not be read, or changed")
        });
    }
    tiles(&all)
}

/// Returns the files that could not be judged, a line each.
pub fn errors(all: Vec<&bc_walk::Error>) -> Vec<String> {
    let all = all.into_iter();
    all.map(|error| {
        format!(
            "{}: {}: {}",
            Path(error.path()),
            Text(error.op()),
            Text(&error.message())
        )
    })
    .collect()
}

/// Returns the counts of files that options and kinds left out, in one paragraph.
pub fn left_out(report: &ScanReport<'_>) -> String {
    let reported = nonzero(crate::report::details::passed_over(
        report.listing.skipped(),
    ));
    if reported.is_empty() {
        String::new()
    } else {
        format!(
            "<p class=note>Left out of the search: {}.</p>\n",
            reported.join(", ")
        )
    }
}

/// Directories that have a colour of their own in the map; the others share one.
const OTHERS: usize = 7;

/// Adds the map of the space wasted in each directory to a page.
pub fn waste_map(page: &mut Page, dirs: &Dirs) {
    let words = map::Words {
        heading: "Where the waste is",
        caption: "An area is the disk space of redundant files in a directory; of each group \
                  the file that would be kept is not counted.",
        value: Some("Wasted"),
        count: "Redundant files",
        full: &|amount| {
            let files = counted(amount.count, "file", "files");
            format!("{} in {files}", size(amount.value))
        },
        short: &|amount| size(amount.value),
        class: &|cell| match cell.what {
            What::Smaller(_) => "rest".to_owned(),
            _ => format!("h{}", cell.group.min(OTHERS)),
        },
        meaning: &|cells| match cells {
            [first, ..] if matches!(first.what, What::Smaller(_)) => {
                "several smaller directories".to_owned()
            }
            [first, rest @ ..]
                if first.group >= OTHERS && rest.iter().any(|cell| cell.group != first.group) =>
            {
                "other directories".to_owned()
            }
            _ => map::common(cells),
        },
    };
    page.map(dirs, &words);
}

/// Adds the bytes that each file that would go frees to its directory. The sum is the group's
/// waste, whichever file stays.
pub fn waste_by_directory(
    dirs: &mut Dirs,
    found: scan::Group<'_>,
    group: &FileGroup,
    files: &[Inode],
) {
    // Bytes that removing a file would free, by index into the group.
    let own: Vec<u64> = found
        .files()
        .flat_map(|file| file.names.iter().map(move |_| file.own))
        .collect();
    let mut left = found.wasted;
    let Some((kept, others)) = files.split_first() else {
        return;
    };
    for file in others {
        let value = own[file.names[0]].min(left);
        left -= value;
        let amount = Amount {
            value,
            count: 1,
            mark: 0,
        };
        dirs.add(parent(&group.files[file.names[0]].path), amount);
    }
    // Kept is a file that frees something, though another frees nothing.
    if left > 0 {
        let amount = Amount {
            value: left,
            ..Amount::default()
        };
        dirs.add(parent(&group.files[kept.names[0]].path), amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use bc_find::scan::{ScanOptions, ScanProgress, scan};
    use bc_find::{Files, Subtrees};
    use bc_pool::Cancel;
    use bc_testkit::TestTree;
    use bc_walk::{Metadata, Symlinks, walk};

    /// The map's total and the search's.
    fn wasted(tree: &TestTree, roots: &[&str], reference_roots: &[usize]) -> (u64, u64) {
        let roots: Vec<_> = roots
            .iter()
            .map(|root| tree.join(root).into_os_string())
            .collect();
        let walking = bc_walk::WalkOptions::default().metadata(Metadata::Basic);
        let cancel = Cancel::new();
        let listing = walk(&roots, &walking, 1, &cancel).unwrap();
        let named = reference_roots.iter();
        let named = named.map(|index| roots[*index].clone().into_encoded_bytes());
        let mut references = Subtrees::open(named).unwrap();
        references
            .survey(Symlinks::Skip, Files::Named, 1.into(), &cancel)
            .unwrap();
        let options = ScanOptions::default().references(Arc::new(references));
        let found = scan(&listing, &options, None, &cancel, &ScanProgress::default()).unwrap();
        let roots: Vec<Vec<u8>> = roots
            .into_iter()
            .map(|root| root.into_encoded_bytes())
            .collect();
        let report = ScanReport {
            listing: &listing,
            scan: &found,
            algorithm: options.algorithm,
            roots: &roots,
            reference_roots,
            started_at: "",
        };
        let mut dirs = Dirs::default();
        for (found, group) in report.scan.groups().zip(report.groups()) {
            let files = KeepRules::default().order(&group);
            waste_by_directory(&mut dirs, found, &group, &files);
        }
        let total = dirs.cells(9).map_or(0, |cell| cell.amount.value);
        (total, report.scan.wasted())
    }

    #[test]
    fn the_map_is_all_of_the_waste_whichever_file_stays() {
        let tree = TestTree::new();
        tree.write("a/one", vec![7; 70_000])
            .write("b/two", vec![7; 70_000])
            .write("c/three", vec![7; 70_000]);
        // A hole instead of zeros: less to free, but the first to keep.
        tree.write("c/zeros", vec![0; 70_000]).write("a/hole", "");
        let hole = std::fs::File::options()
            .write(true)
            .open(tree.join("a/hole"))
            .unwrap();
        hole.set_len(70_000).unwrap();
        drop(hole);
        let (map, all) = wasted(&tree, &["a", "b", "c"], &[]);
        assert!(all > 0);
        assert_eq!(map, all);
        // A name elsewhere frees nothing, so another file would be wasted whole.
        tree.dir("d").hard_link("b/two", "d/name of two");
        let (map, all) = wasted(&tree, &["a", "b", "c"], &[]);
        assert_eq!(map, all);
        let (map, all) = wasted(&tree, &["a", "b", "c"], &[2]);
        assert_eq!(map, all);
    }
}
