//! README, the guide and `--help` as texts: what README says in figures is what the program and the
//! other documents say, and none of them has words and turns that an editor would strike out.

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
        README.contains(&format!("need Rust {needed} or later")),
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
    let (number, after) = after.split_once(" symbolic links: ").unwrap();
    assert_eq!(number, made.len().to_string());
    let (named, _) = after.split_once(" and variants").unwrap();
    let named: Vec<&str> = named.split('`').skip(1).step_by(2).collect();
    assert!(named.len() > 4, "{named:?}");
    for name in named {
        assert!(made.contains(&name), "{name}");
    }
}

#[test]
fn the_memory_of_a_file_is_one_figure_everywhere() {
    let figures = "about 90 bytes per file for `integrity` and 150 for `dup`";
    for text in [README, SECURITY] {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(figures), "{figures}");
    }
}

/// Words and turns that readers stumble over: programs that tell and are told, clauses in place of
/// nouns, words that no one searches for.
const TICS: &[&str] = &[
    "tells",
    "told",
    "is said",
    "are said",
    "goes on",
    "go on",
    "going on",
    "gone on",
    "anew",
    "begun",
    "is none",
    "are none",
    "heal",
    "heals",
    "healed",
    "healing",
    "mended",
    "witness",
    "applet",
    "applets",
    "whoever",
    "somebody",
    "nobody",
    "anybody",
    "whatever",
    "what is",
    "what are",
    "what was",
    "what were",
    "is named",
    "are named",
    "and named",
    "names each",
    "names it",
    "names them",
    "names files",
    "names what",
    "takes back",
    "taken back",
    "takes it back",
    "believes",
    "believed",
    "trusts",
];

/// The text without blocks and words of code, and without the targets of links.
fn prose(text: &str) -> String {
    let mut out = String::new();
    for block in text.split("```").step_by(2) {
        for words in block.split('`').step_by(2) {
            let mut parts = words.split("](");
            out.push_str(parts.next().unwrap_or(""));
            for part in parts {
                out.push_str(part.split_once(')').map_or("", |(_, rest)| rest));
            }
            out.push('_');
        }
    }
    out
}

fn tics(text: &str) -> Vec<String> {
    let text = prose(text);
    let mut found = Vec::new();
    // Marks of a sentence's end are words of their own: no turn of words goes beyond one.
    let mut words: Vec<String> = Vec::new();
    for c in text.chars() {
        match words.last_mut() {
            Some(last) if c.is_alphanumeric() => last.extend(c.to_lowercase()),
            _ if c.is_alphanumeric() => words.push(c.to_lowercase().collect()),
            _ if matches!(c, '.' | '?' | ':' | ';' | '_' | '|') => {
                words.extend([".".to_owned(), String::new()]);
            }
            _ => words.push(String::new()),
        }
    }
    words.retain(|word| !word.is_empty());
    for tic in TICS {
        let tic: Vec<&str> = tic.split(' ').collect();
        let places = words.windows(tic.len()).enumerate();
        for (at, _) in places.filter(|(_, words)| *words == tic) {
            found.push(words[at.saturating_sub(6)..(at + 8).min(words.len())].join(" "));
        }
    }
    // A sentence that begins so has a clause for its subject, unless it asks.
    let ends = ['.', '?', '|'];
    for sentence in text.split_inclusive(ends) {
        let start = sentence.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '#');
        if start.starts_with("What ") && !start.ends_with('?') {
            found.push(start.chars().take(60).collect());
        }
    }
    found
}

#[test]
fn tics_are_found_in_prose_alone() {
    let found = |text: &str| tics(text).len();
    assert_eq!(
        found("It tells all. It goes\non, and what is new\nis told."),
        4
    );
    assert_eq!(found("What is gone stays."), 2);
    assert_eq!(
        found("What now? It goes. On Monday `it tells` [all](told.md)."),
        0
    );
    assert_eq!(found("```sh\nit tells\n```\nIt reports."), 0);
}

#[test]
fn readme_and_guide_are_free_of_tics() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = vec![root.join("README.md")];
    let guide = std::fs::read_dir(root.join("src/guide")).unwrap();
    pages.extend(guide.map(|page| page.unwrap().path()));
    assert!(pages.len() > 12);
    let mut found = Vec::new();
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        let name = page.file_name().unwrap().to_string_lossy().into_owned();
        found.extend(tics(&text).into_iter().map(|tic| format!("{name}: {tic}")));
    }
    assert!(found.is_empty(), "{}\n{}", found.len(), found.join("\n"));
}

#[test]
fn help_is_free_of_tics() {
    let t = TestTree::new();
    let mut found = Vec::new();
    for (words, _) in crate::help::commands(&t) {
        let help = t.bc().args(&words).arg("--help").go().code(0).text();
        let name = words.join(" ");
        found.extend(tics(&help).into_iter().map(|tic| format!("{name}: {tic}")));
    }
    assert!(found.is_empty(), "{}\n{}", found.len(), found.join("\n"));
}
