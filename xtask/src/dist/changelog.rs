//! Changelogs: that of the commands, whose section is published with a release; that of the library;
//! and those of the crates, in their README.md.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::sh;

/// Mark of a version in its heading until it is released.
const UNRELEASED: &str = "not released yet";

/// Returns the notes of a version: its section in the changelog of the commands.
pub(super) fn notes(version: &str) -> Result<String> {
    let path = sh::root().join(".github/CHANGELOG.md");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let found = section(&text, version);
    let (_, notes) = found.with_context(|| format!("{}: no section {version}", path.display()))?;
    Ok(notes)
}

/// Fails if a changelog says that a version is not released.
pub(super) fn check_released(version: &str) -> Result<()> {
    let mut unreleased = headings(version)?;
    unreleased.retain(|heading| heading.contains(UNRELEASED));
    if !unreleased.is_empty() {
        bail!("no date of the release:\n{}", unreleased.join("\n"));
    }
    Ok(())
}

/// Returns the heading of a version in each changelog, after its path; fails where one has none.
fn headings(version: &str) -> Result<Vec<String>> {
    let of = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let shown = path.strip_prefix(sh::root()).unwrap_or(&path).display();
        let found = section(&text, version);
        let (heading, _) = found.with_context(|| format!("{shown}: no section {version}"))?;
        Ok(format!("{shown}: {heading}"))
    };
    paths()?.into_iter().map(of).collect()
}

/// Returns all changelogs.
fn paths() -> Result<Vec<PathBuf>> {
    let root = sh::root();
    let mut paths = vec![
        root.join(".github/CHANGELOG.md"),
        root.join("src/library/CHANGELOG.md"),
    ];
    for entry in std::fs::read_dir(root.join("crates"))? {
        let readme = entry?.path().join("README.md");
        let has_one =
            std::fs::read_to_string(&readme).is_ok_and(|text| text.contains("\n## Changelog\n"));
        if has_one {
            paths.push(readme);
        }
    }
    paths.sort();
    Ok(paths)
}

/// Returns the heading of a version, and the text below it, up to the next heading of its level or
/// a higher one.
fn section(changelog: &str, version: &str) -> Option<(String, String)> {
    let level = |line: &str| line.bytes().take_while(|byte| *byte == b'#').count();
    let mut lines = changelog.lines();
    let heading = lines.find(|line| {
        let words = line.trim_start_matches('#').trim_start();
        let named = words.split([',', ' ']).next();
        level(line) > 0 && named == Some(version)
    })?;
    let text: Vec<&str> = lines
        .take_while(|line| level(line) == 0 || level(line) > level(heading))
        .collect();
    let text = text.join("\n").trim().to_owned() + "\n";
    Some((heading.to_owned(), text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_ends_where_the_next_version_starts() {
        let text = "# Changelog\n\n## 0.10.0, not released yet\n\n- new\n\n\
                    ## 0.1.0, 2026-12-01\n\nThe first.\n\n### bc hash\n\n- old\n";
        let (heading, latest) = section(text, "0.10.0").unwrap();
        assert_eq!(heading, "## 0.10.0, not released yet");
        assert_eq!(latest, "- new\n");
        let (heading, first) = section(text, "0.1.0").unwrap();
        assert_eq!(heading, "## 0.1.0, 2026-12-01");
        assert_eq!(first, "The first.\n\n### bc hash\n\n- old\n");
        assert_eq!(section(text, "0.1"), None);
        assert_eq!(section(text, "1.0.0"), None);
    }

    #[test]
    fn every_changelog_has_the_version_of_the_workspace() {
        let version = crate::dist::Release::read().unwrap().version;
        let headings = headings(&version).unwrap();
        assert!(headings.len() > 12, "{headings:?}");
        assert!(!notes(&version).unwrap().trim().is_empty());
    }
}
