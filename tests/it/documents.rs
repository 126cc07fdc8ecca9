//! README as a text: its length, and the figures in it, which are those of the program and of the other
//! documents.

use bc_testkit::TestTree;

use crate::common::Bc;

const README: &str = include_str!("../../README.md");
const SECURITY: &str = include_str!("../../.github/SECURITY.md");

#[test]
fn readme_is_read_in_a_few_minutes() {
    let lines = README.lines().count();
    assert!(lines <= 250, "{lines} lines");
}

#[test]
fn readme_says_which_rust_is_needed() {
    let manifest = include_str!("../../Cargo.toml");
    let (_, needed) = manifest.split_once("\nrust-version = \"").unwrap();
    let (needed, _) = needed.split_once('"').unwrap();
    assert!(
        README.contains(&format!("It needs Rust {needed} or later")),
        "{needed}"
    );
}

/// The number before the links, and those that are named.
#[test]
fn readme_says_which_links_install_makes() {
    let t = TestTree::new();
    let made = t.bc_line("install --mkdir bin").go().code(0).text();
    let made: Vec<&str> = made
        .lines()
        .filter_map(|line| line.strip_prefix("made bin/"))
        .collect();
    let line = README
        .lines()
        .find(|line| line.contains("bc install --mkdir"));
    let (_, after) = line.unwrap().split_once("makes ").unwrap();
    let (number, after) = after.split_once(" links: ").unwrap();
    assert_eq!(number, made.len().to_string());
    let (named, _) = after.split_once(" and other spellings").unwrap();
    let named: Vec<&str> = named.split('`').skip(1).step_by(2).collect();
    assert!(named.len() > 4, "{named:?}");
    for name in named {
        assert!(made.contains(&name), "{name}");
    }
}

#[test]
fn the_memory_of_a_file_is_one_figure_everywhere() {
    let figures = "about 90 bytes a file for `integrity` and 150 for `dup`";
    for text in [README, SECURITY] {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(figures), "{figures}");
    }
}
