//! The guide's table of promises names a test for each; this finds those that are not there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Page that contains the table.
pub(super) const PAGE: &str = "src/guide/promises.md";

/// Complains of rows that name no test, and of tests that no file has.
pub(super) fn check(page: &str, rust: &BTreeMap<&PathBuf, String>, complaints: &mut Vec<String>) {
    let rows = rows(page);
    if rows.is_empty() {
        complaints.push(format!("{PAGE}: no table"));
    }
    for (promise, shown_by) in rows {
        let tests: Vec<&str> = shown_by.split('`').skip(1).step_by(2).collect();
        if tests.is_empty() {
            complaints.push(format!("{PAGE}: no test shows: {promise}"));
        }
        for test in tests {
            if !rust.iter().any(|(path, text)| defines(path, text, test)) {
                complaints.push(format!("{PAGE}: there is no test {test}"));
            }
        }
    }
}

/// Returns the promise and last cell of each row, without the table's own head.
fn rows(page: &str) -> Vec<(&str, &str)> {
    let cells = page.lines().filter_map(|line| {
        let line = line.strip_prefix('|')?.strip_suffix('|')?;
        let (promise, shown_by) = line.rsplit_once('|')?;
        Some((promise.trim(), shown_by.trim()))
    });
    cells.skip(2).collect()
}

/// Returns true if `module::name` is a test in this file. The module is the file's name, or its
/// folder's.
fn defines(path: &Path, text: &str, test: &str) -> bool {
    let Some((module, name)) = test.rsplit_once("::") else {
        return false;
    };
    let module = module.rsplit("::").next().unwrap_or(module);
    let here = path.with_extension("");
    let named = here
        .iter()
        .any(|part| part.to_string_lossy().replace('-', "_") == module);
    let function = format!("fn {name}(");
    named
        && text.match_indices(&function).any(|(at, _)| {
            // Attributes and comments stand right above.
            let above = text[..at].lines().rev().map(str::trim);
            let mut own = above
                .skip_while(|line| ["", "pub", "pub(crate)"].contains(line))
                .take_while(|line| line.starts_with("#[") || line.starts_with("//"));
            text[..at].ends_with(['\n', ' ']) && own.any(|line| line == "#[test]")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_tests_are_named() {
        let page = "# P\n\n| p | t |\n|---|---|\n| kept | `a::holds`, `a::gone` |\n| bare | - |\n";
        let path = PathBuf::from("tests/it/a.rs");
        let text = "//! T.\n\n#[test]\nfn holds() {}\n\nfn gone() {}\n".to_owned();
        let mut complaints = Vec::new();
        check(page, &BTreeMap::from([(&path, text)]), &mut complaints);
        assert_eq!(
            complaints,
            [
                "src/guide/promises.md: there is no test a::gone",
                "src/guide/promises.md: no test shows: bare"
            ]
        );
    }
}
