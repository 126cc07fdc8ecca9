//! README and the guide show what happens: the commands of their tours print the lines below them.
//!
//! In a block marked `console` a line `$ COMMAND` is run by `sh` in one directory, in order, with
//! this `bc` first on the path; the lines up to the next `$` are all that it prints, errors too.
//! `…` in such a line stands for text that depends on the machine.

use std::process::Command;

use bc_testkit::TestTree;

use crate::common::BC;

/// The fenced blocks of README that are marked `language`.
fn blocks(language: &str) -> Vec<String> {
    blocks_of(include_str!("../../README.md"), language)
}

fn blocks_of(text: &str, language: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(marked) = line.strip_prefix("```") else {
            continue;
        };
        let block: String = lines
            .by_ref()
            .take_while(|line| *line != "```")
            .map(|line| format!("{line}\n"))
            .collect();
        if marked == language {
            blocks.push(block);
        }
    }
    blocks
}

/// A command and what README says it prints.
struct Step {
    command: String,
    printed: Vec<String>,
}

fn steps(block: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in block.lines() {
        match line.strip_prefix("$ ") {
            Some(command) => steps.push(Step {
                command: command.to_owned(),
                printed: Vec::new(),
            }),
            None => {
                let step = steps.last_mut().expect("a block begins with a command");
                step.printed.push(line.to_owned());
            }
        }
    }
    steps
}

/// Is `line` what `pattern` says, where `…` stands for anything?
fn fits(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.split('…');
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or("")) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in middle {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Runs the commands in one new directory and compares what they print.
fn walk_through(page: &str, steps: Vec<Step>) {
    let t = TestTree::new();
    std::fs::create_dir(t.scratch("path")).unwrap();
    std::os::unix::fs::symlink(BC, t.scratch("path/bc")).unwrap();
    let path = format!(
        "{}:{}",
        t.scratch("path").display(),
        std::env::var("PATH").unwrap()
    );
    for step in steps {
        let shell = format!("exec 2>&1; {}", step.command);
        let run = t.run("sh").args(["-c", &shell]);
        let printed = run
            .env("PATH", &path)
            .env("TZ", "UTC")
            .env("XDG_CACHE_HOME", t.scratch("cache"))
            .go()
            .text();
        let printed: Vec<&str> = printed.lines().collect();
        let same = printed.len() == step.printed.len()
            && step.printed.iter().zip(&printed).all(|(p, l)| fits(p, l));
        assert!(
            same,
            "$ {}\n{page} shows:\n{}\n\nit prints:\n{}",
            step.command,
            step.printed.join("\n"),
            printed.join("\n")
        );
    }
}

#[test]
fn the_tour_prints_what_it_shows() {
    let blocks = blocks("console");
    let steps: Vec<Step> = blocks.iter().flat_map(|block| steps(block)).collect();
    assert!(steps.len() >= 15, "{} commands", steps.len());
    let varying = steps.iter().flat_map(|step| &step.printed);
    let varying = varying.filter(|line| line.contains('…')).count();
    assert!(varying <= 8, "{varying} lines that vary are too many");
    walk_through("README", steps);
}

/// "Tidy five backup disks", from end to end.
#[test]
fn five_disks_are_tidied_as_the_guide_shows() {
    let blocks = blocks_of(include_str!("../../src/guide/disks.md"), "console");
    let steps: Vec<Step> = blocks.iter().flat_map(|block| steps(block)).collect();
    assert!(steps.len() >= 15, "{} commands", steps.len());
    walk_through("The guide", steps);
}

/// "Within a file system".
#[test]
fn a_tree_is_moved_as_the_guide_shows() {
    let blocks = blocks_of(include_str!("../../src/guide/move.md"), "console");
    let steps: Vec<Step> = blocks.iter().flat_map(|block| steps(block)).collect();
    assert!(steps.len() >= 6, "{} commands", steps.len());
    walk_through("The guide", steps);
}

/// "Destination".
#[test]
fn a_tree_is_copied_again_as_the_guide_shows() {
    let blocks = blocks_of(include_str!("../../src/guide/copy.md"), "console");
    let steps: Vec<Step> = blocks.iter().flat_map(|block| steps(block)).collect();
    assert!(steps.len() >= 4, "{} commands", steps.len());
    walk_through("The guide", steps);
}

/// "Repairing from a copy".
#[test]
fn a_tree_is_repaired_as_the_guide_shows() {
    let blocks = blocks_of(include_str!("../../src/guide/integrity.md"), "console");
    let steps: Vec<Step> = blocks.iter().flat_map(|block| steps(block)).collect();
    assert!(steps.len() >= 6, "{} commands", steps.len());
    walk_through("The guide", steps);
}

/// "Damage a file and repair it".
#[test]
fn a_tree_is_repaired_from_parity_as_the_guide_shows() {
    let blocks = blocks_of(include_str!("../../src/guide/parity.md"), "console");
    let steps: Vec<Step> = blocks.iter().flat_map(|block| steps(block)).collect();
    assert!(steps.len() >= 6, "{} commands", steps.len());
    walk_through("The guide", steps);
}

#[test]
fn patterns() {
    assert!(fits("abc", "abc") && !fits("abc", "abcd") && !fits("abc", "ab"));
    assert!(fits("a…c", "abbc") && fits("…", "") && fits("a…", "abc"));
    assert!(!fits("a…c", "abb") && fits("a…b…c", "a1b2c") && !fits("a…b…c", "a1c"));
}

/// Commands that README and the guide show have options that exist.
#[test]
fn commands_in_readme_and_guide_parse() {
    let t = TestTree::new();
    let mut seen = 0;
    let guide = include_str!("../../src/guide/recipes.md");
    let fleet = blocks_of(include_str!("../../src/guide/fleet.md"), "sh");
    let guide = blocks_of(guide, "sh");
    for block in blocks("sh").iter().chain(&guide).chain(&fleet) {
        for line in block.lines() {
            let call = line.split(['#', '|', '&', '>']).next().unwrap().trim();
            if !call.starts_with("bc ") {
                continue;
            }
            seen += 1;
            // With --describe nothing is done, but wrong options are told apart by --help: both
            // are found before anything else only where the words before them parse.
            let words: Vec<&str> = call.split_whitespace().skip(1).collect();
            for option in words.iter().filter(|word| word.starts_with("--")) {
                let name = option.split('=').next().unwrap();
                let at = words.iter().position(|word| word.starts_with('-')).unwrap();
                let two = &words[..at.min(2)];
                let help = [two, &["--help"]].concat();
                let mut text = t.run(BC).args(&help).go().text();
                if words[0] == "hash" || words[0] == "dup" {
                    let default = if words[0] == "hash" { "hash" } else { "scan" };
                    let whole = [words[0], default, "--help"];
                    text += &t.run(BC).args(whole).go().text();
                }
                assert!(text.contains(name), "{call}: {name}");
            }
        }
    }
    assert!(seen > 10, "{seen}");
    // The first two commands set everything up.
    let first = blocks("sh").remove(0);
    assert!(first.starts_with("cargo run --release -- hash "), "{first}");
    assert_eq!(
        Command::new(BC).arg("--list").output().unwrap().stdout,
        b"hash\ndup\nintegrity\ncopy\nmove\n"
    );
}
