//! What a person sees at a terminal: colours by meaning, headings, a closing line. Pipes and files
//! get none of it.

use bc_testkit::{Pty, TestTree};

use crate::common::Bc;

const RED: &str = "\x1b[31m";
const YELLOW: &str = "\x1b[33m";
const GREEN: &str = "\x1b[32m";
const DIM: &str = "\x1b[2m";
const OFF: &str = "\x1b[0m";

/// What the terminal gets, carriage returns taken away.
pub fn shown(t: &TestTree, line: &str, variables: &[(&str, &str)]) -> String {
    let mut run = t.bc_line(line).env("TERM", "xterm");
    for (name, value) in variables {
        run = run.env(name, value);
    }
    let (_, bytes) = Pty::new(200, 50).start_in(run.command()).end();
    String::from_utf8_lossy(&bytes)
        .replace('\r', "")
        .replace("\x1b[J", "")
}

fn tree() -> TestTree {
    let t = TestTree::new();
    t.write("d/x/a", "abc")
        .write("d/x/b", "abc")
        .write("d/c", "abcd");
    t.bc_line("hash --output=SUMS d").go().code(0);
    t.bc_line("integrity manifest --output=m d").go().code(0);
    t
}

/// Such a terminal shows the sequences as text.
#[test]
fn a_terminal_that_knows_no_colours_gets_none() {
    let t = tree();
    let mut command = t.bc_line("dup d").command();
    command.env_remove("TERM");
    let (_, bytes) = Pty::new(200, 50).start_in(command).end();
    let unset = String::from_utf8_lossy(&bytes).into_owned();
    for text in [shown(&t, "dup d", &[("TERM", "dumb")]), unset] {
        assert!(text.contains("3 B") && !text.contains("\x1b["), "{text:?}");
    }
    let forced = shown(&t, "dup --color=always d", &[("TERM", "dumb")]);
    assert!(forced.contains(DIM), "{forced:?}");
}

#[test]
fn groups_have_headings_and_a_closing_line() {
    let t = tree();
    let text = shown(&t, "dup d", &[]);
    let expected = format!(
        "{DIM}3 B × 2{OFF}\n{DIM}d/x/{OFF}a\n{DIM}d/x/{OFF}b\n\n\
         bc dup: 1 group, 1 duplicate, "
    );
    assert!(text.starts_with(&expected), "{text:?}");
    let command = "could be freed; 'bc dup prune --action=hardlink --dry-run d' shows how\n";
    assert!(text.ends_with(command), "{text:?}");
    let plain = shown(&t, "dup --color=never d", &[]);
    assert!(
        plain.starts_with("3 B × 2\nd/x/a\nd/x/b\n\nbc dup: "),
        "{plain:?}"
    );
    let quiet = shown(&t, "dup -q --color=never d", &[]);
    assert_eq!(quiet, "3 B × 2\nd/x/a\nd/x/b\n");
    let none = shown(&t, "dup d/x/a d/c", &[]);
    assert_eq!(none, "bc dup: no duplicates among 2 files\n");
    let many = shown(&t, "dup d d/x d/c d/x/a", &[]);
    assert!(many.contains("--dry-run …' shows how"), "{many:?}");
    // A pipe gets the names alone.
    t.bc_line("dup d")
        .go()
        .code(0)
        .stdout_is("d/x/a\nd/x/b\n")
        .stderr_is("");
}

#[test]
fn what_failed_is_red_and_what_changed_is_yellow() {
    let t = tree();
    t.write("d/c", "other")
        .write("d/new", "new")
        .remove("d/x/b");
    let check = shown(&t, "hash check SUMS", &[]);
    assert!(
        check.contains(&format!("{DIM}d/{OFF}c: {RED}FAILED{OFF}\n")),
        "{check:?}"
    );
    assert!(
        check.contains(&format!("{DIM}d/x/{OFF}a: OK\n")),
        "{check:?}"
    );
    let unread = format!("{DIM}d/x/{OFF}b: {YELLOW}FAILED open or read{OFF}\n");
    assert!(check.contains(&unread), "{check:?}");

    t.bc_line("hash --output=SUMS2 d").go().code(0);
    let diff = shown(&t, "hash diff SUMS SUMS2", &[]);
    assert!(
        diff.contains(&format!("{GREEN}ADDED{OFF} {DIM}d/{OFF}new\n")),
        "{diff:?}"
    );
    assert!(
        diff.contains(&format!("{YELLOW}MODIFIED{OFF} {DIM}d/{OFF}c\n")),
        "{diff:?}"
    );

    let verify = shown(&t, "integrity verify --mode=content d m", &[]);
    assert!(
        verify.contains(&format!("{GREEN}+ new{OFF}\n")),
        "{verify:?}"
    );
    assert!(
        verify.contains(&format!("{YELLOW}~c c{OFF}\n")),
        "{verify:?}"
    );
    assert!(verify.contains("- x/b\n"), "{verify:?}");
}

#[test]
fn damage_is_red() {
    let t = tree();
    let before = std::fs::metadata(t.join("d/c")).unwrap();
    t.write("d/c", "abcX");
    let file = std::fs::File::options()
        .write(true)
        .open(t.join("d/c"))
        .unwrap();
    file.set_modified(before.modified().unwrap()).unwrap();
    drop(file);
    let verify = shown(&t, "integrity verify d m", &[]);
    assert!(verify.contains(&format!("{RED}!! c: ")), "{verify:?}");
}

/// Colours are for terminals, unless somebody says otherwise.
#[test]
fn colours_come_and_go_as_is_asked() {
    let t = tree();
    t.write("d/c", "other");
    let lines = [
        "hash check SUMS",
        "integrity verify d m",
        "dup d",
        "hash -h",
        "dup --help",
    ];
    for line in lines {
        let has = |text: &str| text.contains(OFF);
        assert!(has(&shown(&t, line, &[])), "{line}");
        assert!(!has(&shown(&t, line, &[("NO_COLOR", "1")])), "{line}");
        assert!(
            !has(&shown(&t, &format!("{line} --color=never"), &[])),
            "{line}"
        );
        let always = format!("{line} --color=always");
        assert!(has(&shown(&t, &always, &[("NO_COLOR", "1")])), "{line}");
        let plain = t.bc_line(line).go();
        assert!(!has(&plain.text()) && !has(&plain.error_text()), "{line}");
        // In a pipe the words are the same.
        if !line.starts_with("dup d") {
            let forced = t.bc_line(line).env("CLICOLOR_FORCE", "1").go().text();
            assert!(has(&forced), "{line}");
            let mut words = forced;
            for code in [RED, YELLOW, GREEN, DIM, "\x1b[1m", OFF] {
                words = words.replace(code, "");
            }
            assert_eq!(words, plain.text(), "{line}");
        }
    }
    // A file that is written holds what a program reads.
    t.bc_line("hash diff --output=out SUMS SUMS")
        .env("CLICOLOR_FORCE", "1")
        .go()
        .code(0);
    t.bc_line("integrity verify --output=out d m")
        .env("CLICOLOR_FORCE", "1")
        .go()
        .code(1);
    assert!(!t.read("out").contains(&0x1b));
}

/// Names cannot bring colours of their own.
#[test]
fn names_stay_harmless_beside_colours() {
    let t = TestTree::new();
    t.write("d/\x1b[31mred/\u{9b}2Ja", "abc")
        .write("d/b", "abc");
    t.bc_line("hash --output=SUMS d").go().code(0);
    for line in ["dup d", "hash check SUMS"] {
        let text = shown(&t, line, &[("NO_COLOR", "1")]);
        assert!(
            !text.contains('\x1b') && !text.contains('\u{9b}'),
            "{text:?}"
        );
        let text = shown(&t, line, &[]);
        assert!(
            text.contains("\\x1b[31mred") && !text.contains("\x1b[31mred"),
            "{text:?}"
        );
        assert!(!text.contains('\u{9b}'), "{text:?}");
    }
}

#[test]
fn the_summary_leads_with_what_can_be_freed() {
    let t = tree();
    let out = t.bc_line("dup summary d").go();
    let text = out.code(0).text();
    assert!(text.starts_with("could be freed "), "{text}");
}
