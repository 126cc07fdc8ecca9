//! What somebody meets who has just installed it: the overview, a slip, nothing to do, a small
//! terminal.

use bc_testkit::{Pty, TestTree};

use crate::common::Bc;

/// What a terminal of so many columns gets, without the carriage returns and colours.
fn shown(t: &TestTree, columns: u16, line: &str) -> String {
    let command = t.bc_line(line).env("NO_COLOR", "1").command();
    let (_, bytes) = Pty::new(columns, 50).start_in(command).end();
    String::from_utf8_lossy(&bytes)
        .replace('\r', "")
        .replace("\x1b[J", "")
}

#[test]
fn the_overview_fits_and_says_once_what_it_is_not() {
    let t = TestTree::new();
    let bare = shown(&t, 80, "");
    let help = t.bc_line("--help").go().code(0).text();
    for text in [&bare, &help] {
        assert!(text.lines().all(|line| line.chars().count() < 80), "{text}");
        assert_eq!(text.matches("calculator").count(), 1, "{text}");
        // Names in one column, what they do in another.
        let begins = |name: &str| {
            let line = text
                .lines()
                .find(|line| line.starts_with(&format!("  {name} ")));
            let rest = &line.unwrap_or_else(|| panic!("{name}: {text}"))[2 + name.len()..];
            2 + name.len() + rest.len() - rest.trim_start().len()
        };
        let columns = ["hash", "integrity", "install", "--version", "--describe"].map(begins);
        assert!(columns.iter().all(|column| *column == columns[0]), "{text}");
    }
}

#[test]
fn a_narrow_terminal_tears_no_word_apart() {
    let t = TestTree::new();
    let text = shown(&t, 50, "--help");
    let mut lines = text.lines();
    assert!(lines.all(|line| line.chars().count() <= 50), "{text}");
    for word in ["manifests", "calculator", "completions", "integrity"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    // The explanation of a name continues in its column.
    let about = text.split("\n  dup         ").nth(1).unwrap();
    let second = about.lines().nth(1).unwrap();
    assert!(second.starts_with("              "), "{text}");
}

#[test]
fn what_there_is_to_choose_from_is_no_error() {
    let t = TestTree::new();
    let out = t
        .bc_line("integrity")
        .go()
        .code(2)
        .stdout_is("")
        .error_text();
    assert!(out.starts_with("Record trees"), "{out}");
    assert!(out.contains("\nUsage: bc integrity <COMMAND>\n"), "{out}");
}

#[test]
fn a_slip_is_answered_by_the_command_as_it_was_typed() {
    let t = TestTree::new();
    t.write("f", "abc");
    for (line, usage) in [
        ("hash --tipe=md5 f", "Usage: bc hash [OPTIONS] PATH..."),
        ("dup --reference-dir f", "Usage: bc dup [OPTIONS] PATH..."),
        ("hash check --tipe=md5 f", "Usage: bc hash check"),
    ] {
        t.bc_line(line).go().code(2).stderr_has(usage);
    }
}

#[test]
fn long_messages_are_broken_between_words() {
    let t = TestTree::new();
    t.write("f", "abc");
    for columns in [50, 80, 200] {
        let text = shown(&t, columns, "hash --type=sha255 f");
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest.unwrap() < usize::from(columns), "{columns}: {text}");
        // No name is torn apart.
        for name in ["sha512-256", "blake2b-256", "sha3-384"] {
            assert!(text.contains(name), "{columns}: {text}");
        }
    }
}

#[test]
fn a_search_ends_with_lines_that_fit() {
    let t = TestTree::new();
    t.write("d/a", "abc").write("d/b", "abc");
    let text = shown(&t, 60, "dup d");
    let said: Vec<&str> = text.lines().skip_while(|line| !line.is_empty()).collect();
    assert_eq!(said.len(), 3, "{text}");
    assert!(said[1].ends_with(" could be freed"), "{text}");
    assert_eq!(
        said[2],
        "bc dup: 'bc dup prune --action=hardlink --dry-run d' shows how"
    );
    // Where nothing could be read, nothing is said of duplicates.
    let text = shown(&t, 80, "dup nothere");
    assert!(
        text.contains("nothere: stat: ") && !text.contains("no duplicates"),
        "{text}"
    );
}

/// `hashdeep -o f FILE` means regular files; here it would replace FILE by its own digest.
#[test]
fn the_only_file_that_is_read_is_not_written() {
    let t = TestTree::new();
    t.write("f", "abc").write("g", "abc").symlink("f", "link");
    for line in [
        "hash -o f f",
        "hash --output=f ./f",
        "hash -o link f",
        "hash -o f link",
        "dup -o f f",
        "dup --format=json --output f f",
    ] {
        let out = t.bc_line(line).go();
        out.code(2)
            .stdout_is("")
            .stderr_has("is read by this command");
        assert_eq!(t.read("f"), b"abc", "{line}");
    }
    // A list of a shell's `*` has last time's result among the rest.
    t.write("f", format!("{}  g\n", "0".repeat(64)));
    t.bc_line("hash -o f f g").go().code(0);
    assert!(t.read("f").ends_with(b"  g\n") && !t.read("f").starts_with(b"0000"));
}
