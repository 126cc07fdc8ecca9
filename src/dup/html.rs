//! `bc dup scan --format=html`: the space wasted, its places, and the groups to decide on.

use bc_find::dirs::Directories;
use bc_find::groups::FileGroup;
use bc_find::report::ScanReport;
use bc_find::scan;
use bc_fs::path::split;
use bc_fs::quote::shell_word;
use bc_prune::{Inode, KeepRules};
use bc_walk::DirId;
use serde_json::{Value, json};

use crate::html::data::{Column, DirColumns, packed};
use crate::html::dirs::{Amount, Dirs, What, parent};
use crate::html::escape::{Path, Text, shown};
use crate::html::provenance::absolute;
use crate::html::{DECIDE, DECISIONS, Page, Tile, map, notes, nothing, tiles};
use crate::session::progress::{counted, nonzero, size, thousands};

/// Names of files that a page lists; more would not fit a browser's memory.
const LISTED: usize = 1_000_000;
/// Roots that are named, and those that are repeated in a command.
const ROOTS: usize = 12;
const FEW: usize = 3;

/// Returns the page; `found` are the directories that are copies of each other, if they were
/// searched for.
pub fn page(report: &ScanReport<'_>, found: Option<&Directories>) -> Page {
    let mut dirs = Dirs::default();
    for (one, group) in report.scan.groups().zip(report.groups()) {
        let files = KeepRules::default().order(&group);
        waste_by_directory(&mut dirs, one, &group, &files);
    }
    let count = report.scan.groups().len();
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
    page.body += &notes("Not compared", "alarm", &errors);
    match count {
        0 => {
            page.body += &nothing(
                "No identical files",
                &format!(
                    "{} {}",
                    compared(report),
                    match errors.len() {
                        0 => "Nothing can be freed here.",
                        _ => "Files that were not compared may have duplicates.",
                    }
                ),
            );
        }
        _ => decisions(&mut page, report, found),
    }
    page.body += &left_out(report);
    page
}

/// Adds the groups to decide on, folders first.
pub fn decisions(page: &mut Page, report: &ScanReport<'_>, found: Option<&Directories>) {
    let listed = ListedGroups::of(report, found, LISTED);
    let status = match listed.left_out {
        0 => String::new(),
        _ => format!(
            "{} smaller groups are not on this page; <code>bc dup scan --format=json \
             PATH...</code> lists all. Figures and map count them.",
            thousands(listed.left_out)
        ),
    };
    let roots = report.roots.iter();
    let roots = roots.map(|root| shown(&absolute(root)).into_owned());
    let data = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "roots": roots.collect::<Vec<_>>(),
        "reference_roots": report.reference_roots,
        "folders": found.map(|found| folders(report, found)).unwrap_or_default(),
        "dirs": Value::from(listed.dirs.dirs),
        "places": Value::from(listed.places),
        "groups": columns([
            ("size", listed.size),
            ("wasted", listed.wasted),
            ("files", listed.files),
        ]),
        "files": columns([
            ("names", listed.aliases),
            ("own", listed.own),
            ("mtime_ns", listed.mtime_ns),
            ("ctime_ns", listed.ctime_ns),
            ("dev", listed.dev),
            ("ino", listed.ino),
            ("nlink", listed.nlink),
            ("reference", listed.reference),
        ]),
        "names": columns([
            ("dir", listed.dir),
            ("root", listed.root),
            ("name", listed.name),
        ]),
    });
    page.body += &DECISIONS.replace("{status}", &status);
    page.script = Some(DECIDE);
    page.data = packed(&data);
}

fn columns<const N: usize>(columns: [(&str, Column); N]) -> Value {
    let columns = columns.into_iter();
    columns
        .map(|(name, column)| (name.to_owned(), Value::from(column)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// Groups as the page's script reads them (`decide.js`): what prune checks again of each file, in
/// columns. Values that follow from others are left out.
#[derive(Default)]
struct ListedGroups {
    names: usize,
    /// Groups after so many names that no more are listed.
    left_out: u64,
    dirs: DirColumns,
    /// The whole paths of these directories.
    places: Column,
    // For each group. Wasted is nothing where all files are whole blocks of their own.
    size: Column,
    wasted: Column,
    files: Column,
    // For each file: the number of its names, bytes of its own, nothing for whole blocks; the time of
    // its last change, nothing where that of its content is the same; the step from the inode before.
    aliases: Column,
    own: Column,
    mtime_ns: Column,
    ctime_ns: Column,
    dev: Column,
    ino: Column,
    nlink: Column,
    reference: Column,
    // For each name: the step from the directory before, and nothing for the same name again.
    dir: Column,
    root: Column,
    name: Column,
    last_ino: u64,
    last_dir: i64,
    last_name: Vec<u8>,
}

/// Bytes of a block, in which nearly all file systems count.
const BLOCK: u64 = 4096;

impl ListedGroups {
    /// Lists groups until there are `most` names.
    fn of(report: &ScanReport<'_>, found: Option<&Directories>, most: usize) -> ListedGroups {
        let mut listed = ListedGroups::default();
        for (one, group) in report.scan.groups().zip(report.groups()) {
            match listed.names < most {
                true => listed.add(one, &group, found),
                false => listed.left_out += 1,
            }
        }
        listed
    }

    /// Adds a group, the file to keep first.
    fn add(&mut self, one: scan::Group<'_>, group: &FileGroup, found: Option<&Directories>) {
        let own = own_bytes(one);
        let entries: Vec<_> = one.files().flat_map(|file| file.names).copied().collect();
        let is_repeated =
            |name: &usize| found.is_some_and(|found| found.repeated.contains(&entries[*name]));
        let mut files = KeepRules::default().order(group);
        for file in &mut files {
            file.names.retain(|name| !is_repeated(name));
        }
        files.retain(|file| !file.names.is_empty());
        // All of them are about to go by themselves.
        if files.is_empty() {
            return;
        }
        let blocks = one.size.div_ceil(BLOCK) * BLOCK;
        self.size.word(one.size);
        let usual = blocks.saturating_mul((files.len() as u64).saturating_sub(1));
        self.wasted.word(unless(one.wasted, usual));
        self.files.word(files.len());
        for file in files {
            let first = &group.files[file.names[0]];
            self.aliases.word(file.names.len());
            self.own.word(unless(own[file.names[0]], blocks));
            let stamp = first.stamp;
            self.mtime_ns.word(stamp.mtime_ns);
            self.ctime_ns.word(unless(stamp.ctime_ns, stamp.mtime_ns));
            self.dev.word(first.id.dev);
            self.ino
                .word(first.id.ino.wrapping_sub(self.last_ino) as i64);
            self.last_ino = first.id.ino;
            self.nlink.word(first.nlink);
            self.reference.word(u8::from(file.protected));
            for name in file.names {
                self.add_name(&group.files[name].path, group.files[name].root);
            }
        }
    }

    fn add_name(&mut self, path: &[u8], root: u32) {
        let (known, name) = (self.dirs.len(), split(path).1);
        let dir = self.dirs.id(path);
        if dir == known {
            self.places.line(shown(parent(&absolute(path))));
        }
        self.dir.word(dir - self.last_dir);
        self.last_dir = dir;
        self.root.word(root);
        match name == self.last_name {
            true => self.name.line(""),
            false => self.name.line(shown(name)),
        }
        self.last_name = name.to_vec();
        self.names += 1;
    }
}

/// Returns a value as text; nothing if it is the usual one.
fn unless<T: PartialEq + ToString>(value: T, usual: T) -> String {
    match value == usual {
        true => String::new(),
        false => value.to_string(),
    }
}

/// Returns directories that are copies of each other, and those that are contained in another one,
/// which comes first. None of which filters have left something out: that may be nowhere else.
fn folders(report: &ScanReport<'_>, found: &Directories) -> Vec<Value> {
    let paths = |dirs: &[DirId]| {
        let paths = dirs.iter().map(|dir| report.listing.dir_path(*dir));
        let paths = paths.map(|path| shown(&path).into_owned());
        paths.collect::<Vec<_>>()
    };
    let equal = found.groups.iter().filter(|group| group.filtered == 0);
    let equal = equal.map(|group| {
        json!({
            "kind": "equal", "paths": paths(&group.dirs), "files": group.files,
            "bytes": group.bytes, "wasted": group.wasted,
        })
    });
    let contained = found.contained.iter().filter(|one| one.filtered == 0);
    let contained = contained.map(|one| {
        let kind = match one.is_mutual {
            true => "same",
            false => "contained",
        };
        json!({
            "kind": kind, "paths": paths(&[one.within, one.dir]), "files": one.files,
            "bytes": one.bytes, "wasted": 0,
        })
    });
    equal.chain(contained).collect()
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
            ..Tile::count(
                "Not compared",
                errors as u64,
                "could not be read, or changed",
            )
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
        heading: "Wasted space by directory",
        caption: "Area: disk space of redundant files in a directory; the file that would be kept \
                  in each group is not counted.",
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
    let own = own_bytes(found);
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

/// Returns the bytes that removing a file would free, by index into the group.
fn own_bytes(found: scan::Group<'_>) -> Vec<u64> {
    let files = found.files();
    let own = files.flat_map(|file| file.names.iter().map(move |_| file.own));
    own.collect()
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

    /// Calls a function with the report of a search.
    fn with_report<T>(
        tree: &TestTree,
        roots: &[&str],
        reference_roots: &[usize],
        each: impl FnOnce(&ScanReport<'_>) -> T,
    ) -> T {
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
        each(&report)
    }

    /// The map's total and the search's.
    fn wasted(tree: &TestTree, roots: &[&str], reference_roots: &[usize]) -> (u64, u64) {
        with_report(tree, roots, reference_roots, |report| {
            let mut dirs = Dirs::default();
            for (found, group) in report.scan.groups().zip(report.groups()) {
                let files = KeepRules::default().order(&group);
                waste_by_directory(&mut dirs, found, &group, &files);
            }
            let total = dirs.cells(9).map_or(0, |cell| cell.amount.value);
            (total, report.scan.wasted())
        })
    }

    #[test]
    fn groups_that_are_too_many_are_counted() {
        let tree = TestTree::new();
        for size in 1..=9 {
            let content = vec![7; size * 5000];
            tree.write(format!("a/{size}"), &content)
                .write(format!("b/{size}"), &content);
        }
        with_report(&tree, &["a", "b"], &[], |report| {
            let listed = ListedGroups::of(report, None, 7);
            assert_eq!((listed.names, listed.left_out), (8, 5));
            let listed = ListedGroups::of(report, None, LISTED);
            assert_eq!((listed.names, listed.left_out), (18, 0));
            // The same name again is left out.
            let names = Value::from(listed.name).to_string();
            assert!(names.starts_with(r#""9\n\n8\n\n"#), "{names}");
        });
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
