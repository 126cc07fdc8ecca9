//! Libraries are embedded in programs that have no options: their messages name none.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub(super) fn check(rust: &BTreeMap<&PathBuf, String>, complaints: &mut Vec<String>) {
    for (path, text) in rust {
        if !is_library(path) {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            if line.trim() == "#[cfg(test)]" {
                break;
            }
            if let Some(option) = option(line) {
                let shown = path.display();
                complaints.push(format!(
                    "{shown}:{}: a message of a library names the option {option}",
                    number + 1
                ));
            }
        }
    }
}

/// Sources of a library that are no tests: `crates/NAME/src/…`.
fn is_library(path: &Path) -> bool {
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    let is_test = |part: &str| part == "tests" || part == "tests.rs" || part == "testkit";
    matches!(&parts[..], [top, _, src, ..] if top == "crates" && src == "src")
        && !parts.iter().any(|part| is_test(part))
}

/// Returns the first long option in a line that is no comment. Code has no two dashes in front of a
/// letter but in a string, or negates twice.
fn option(line: &str) -> Option<&str> {
    // The comment of a shell script that a report is, too.
    let begins = line.trim_start();
    if begins.starts_with("//") || begins.starts_with("# ") {
        return None;
    }
    line.match_indices("--").find_map(|(at, _)| {
        let before = line[..at].chars().next_back();
        let begins = before.is_none_or(|c| " \"'(:,`".contains(c));
        let rest = &line[at + 2..];
        let name = rest
            .split(|c: char| !c.is_ascii_lowercase() && c != '-')
            .next()?;
        (begins && name.len() > 1).then(|| &line[at..at + 2 + name.len()])
    })
}

#[cfg(test)]
mod tests {
    use super::{is_library, option};
    use std::path::Path;

    #[test]
    fn options_are_found_in_messages_only() {
        for line in [
            r#"    let text = "not mounted? --force to go on";"#,
            r#"        written (--force)""#,
            r#""--force goes on""#,
            r#"                   mounted? --force to go on";"#,
        ] {
            assert_eq!(option(line), Some("--force"), "{line}");
        }
        for line in [
            "    // as --force does",
            "    /// `--force`",
            "let x = a - -b;",
            r#""a -- b""#,
            "",
        ] {
            assert_eq!(option(line), None, "{line}");
        }
    }

    #[test]
    fn tests_may_name_options() {
        assert!(is_library(Path::new("crates/copy/src/finish.rs")));
        for path in [
            "src/copy/run.rs",
            "crates/copy/src/tests/cases.rs",
            "crates/copy/src/restore/tests.rs",
            "crates/testkit/src/lib.rs",
            "crates/copy/tests/all.rs",
        ] {
            assert!(!is_library(Path::new(path)), "{path}");
        }
    }
}
