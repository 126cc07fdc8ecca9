//! Check of the pages for contributors: every path that they name exists.

use std::path::Path;

use crate::sh;

const PAGES: &[&str] = &[
    "crates/README.md",
    ".github/CONTRIBUTING.md",
    ".github/SECURITY.md",
];

pub(super) fn check(complaints: &mut Vec<String>) {
    for page in PAGES {
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
        tops.iter().any(|top| path.starts_with(top)) && !path.contains(' ')
    };
    let links = line
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next());
    let ours = links.filter(|link| !link.contains("://"));
    quoted.filter(rooted).chain(ours)
}

fn exists(page: &str, path: &str) -> bool {
    let folder = Path::new(page).parent().unwrap_or(Path::new(""));
    // Links are relative to their page, paths in the text to the root.
    sh::root().join(path).exists() || sh::root().join(folder).join(path).exists()
}

#[cfg(test)]
mod tests {
    use super::{exists, paths};

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
    }
}
