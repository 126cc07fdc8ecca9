//! Check of the pages for contributors and users: every path in them and every link leads somewhere.

use std::path::{Component, Path, PathBuf};

use crate::sh;

/// Pages besides those of the folders.
const PAGES: &[&str] = &[
    "README.md",
    "crates/README.md",
    ".github/CONTRIBUTING.md",
    ".github/SECURITY.md",
];
/// Folders whose pages are checked, too.
const FOLDERS: [&str; 2] = ["benches/record", "src/guide"];

/// README is shown by registries, too: its links are to pages that the package contains.
const PACKAGED: [&str; 2] = ["README.md", "src/"];

pub(super) fn check(complaints: &mut Vec<String>) {
    let mut pages: Vec<String> = PAGES.iter().copied().map(str::to_owned).collect();
    for folder in FOLDERS {
        let files = std::fs::read_dir(sh::root().join(folder));
        let names = files.into_iter().flatten().flatten();
        let names = names.map(|file| format!("{folder}/{}", file.file_name().to_string_lossy()));
        pages.extend(names.filter(|name| name.ends_with(".md")));
    }
    pages.sort();
    for page in &pages {
        let Ok(text) = std::fs::read_to_string(sh::root().join(page)) else {
            complaints.push(format!("{page}: is missing"));
            continue;
        };
        for (number, line) in text.lines().enumerate() {
            for path in paths(line) {
                if !exists(page, path) {
                    complaints.push(format!("{page}:{}: there is no {path}", number + 1));
                }
            }
            let packaged = |link: &&str| PACKAGED.iter().any(|start| link.starts_with(start));
            for link in links(line).filter(|link| page == "README.md" && !packaged(link)) {
                let line = number + 1;
                complaints.push(format!("{page}:{line}: the package has no {link}"));
            }
        }
    }
}

/// Returns the words between backquotes that look like a path from the root, and the targets of
/// links.
fn paths(line: &str) -> impl Iterator<Item = &str> {
    let quoted = line.split('`').skip(1).step_by(2);
    let rooted = |path: &&str| {
        let tops = [
            "crates/",
            "src/",
            "tests/",
            "fixtures/",
            "benches/",
            "xtask/",
            ".ci/",
        ];
        tops.iter().any(|top| path.starts_with(top)) && !path.contains([' ', '*'])
    };
    quoted.filter(rooted).chain(links(line))
}

/// Returns the targets of links to files and headings of ours.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let links = line.split("](").skip(1);
    let links = links.filter_map(|rest| rest.split(')').next());
    links.filter(|link| !link.contains("://"))
}

fn exists(page: &str, path: &str) -> bool {
    let folder = Path::new(page).parent().unwrap_or(Path::new(""));
    let (path, heading) = path
        .split_once('#')
        .map_or((path, None), |(path, heading)| (path, Some(heading)));
    // Links are relative to their page, paths in the text to the root.
    let file = match path.is_empty() {
        true => PathBuf::from(page),
        false => Some(folder.join(path))
            .filter(|file| is_there(file))
            .unwrap_or(PathBuf::from(path)),
    };
    is_there(&file) && heading.is_none_or(|heading| has_heading(&file, heading))
}

/// True if the path from the root leads to something, and not out of the repository.
fn is_there(path: &Path) -> bool {
    let mut depth = 0;
    path.components().all(|component| {
        depth += match component {
            Component::Normal(_) => 1,
            Component::ParentDir => -1,
            _ => 0,
        };
        depth >= 0
    }) && sh::root().join(path).exists()
}

/// True if the page has a heading with this anchor, as forges make them: lower case, without
/// punctuation, hyphens for blanks.
fn has_heading(page: &Path, anchor: &str) -> bool {
    let text = std::fs::read_to_string(sh::root().join(page)).unwrap_or_default();
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let mut anchors = headings.map(|line| anchor_of(line.trim_start_matches('#').trim()));
    anchors.any(|found| found == anchor)
}

fn anchor_of(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let kept = heading.chars().filter(kept);
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[cfg(test)]
mod tests {
    use super::{anchor_of, exists, links, paths};

    #[test]
    fn paths_and_links_are_found_and_looked_for() {
        let line = "see `src/main.rs`, `cargo test`, [this](../README.md) and [that](https://a.b)";
        assert_eq!(
            paths(line).collect::<Vec<_>>(),
            ["src/main.rs", "../README.md"]
        );
        assert!(exists("crates/README.md", "../README.md"));
        assert!(exists("crates/README.md", "src/main.rs"));
        assert!(!exists("crates/README.md", "src/nothing.rs"));
        assert_eq!(links(line).collect::<Vec<_>>(), ["../README.md"]);
    }

    #[test]
    fn a_link_to_a_heading_needs_the_heading() {
        let rules = "src/guide/rules.md";
        assert!(exists("README.md", "src/guide/rules.md#exit-codes"));
        assert!(exists(rules, "#exit-codes") && exists("src/guide/dup.md", "rules.md#exit-codes"));
        assert!(!exists("README.md", "src/guide/rules.md#no-such-heading"));
        assert_eq!(anchor_of("May I wipe this card?"), "may-i-wipe-this-card");
    }
}
