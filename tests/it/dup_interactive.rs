//! `bc dup prune --interactive`, typed at a terminal.

use bc_testkit::{Pty, TestTree};

use crate::common::Bc;
use crate::hostile_terminal::{OURS, assert_harmless, hostile, words};

/// Two groups of files: three copies of one with a second name, two of another.
fn tree() -> TestTree {
    let t = TestTree::new();
    for name in ["a/1", "b/1", "c/1"] {
        t.write(name, [b'x'; 8192]);
    }
    t.hard_link("c/1", "c/other-name")
        .write("a/2", [b'y'; 4096])
        .write("b/2", [b'y'; 4096]);
    t
}

/// Types an answer at each question; gives the exit code and all that was shown.
fn typed(t: &TestTree, line: &str, answers: &[&str]) -> (Option<i32>, String) {
    typed_while(t, line, answers, &|_| ())
}

/// The same; before each answer something happens.
fn typed_while(
    t: &TestTree,
    line: &str,
    answers: &[&str],
    meanwhile: &dyn Fn(usize),
) -> (Option<i32>, String) {
    let command = t.bc_line(line).env("TERM", "xterm").command();
    let session = Pty::new(200, 50).start_in(command);
    for (nth, answer) in answers.iter().enumerate() {
        session.wait_for("a question", |bytes| {
            let text = String::from_utf8_lossy(bytes);
            text.matches("quit, ?] ").count() + text.matches("[y/N] ").count() > nth
        });
        meanwhile(nth);
        session.type_keys(answer.as_bytes());
    }
    let (status, bytes) = session.end();
    (status.code(), String::from_utf8_lossy(&bytes).into_owned())
}

#[track_caller]
fn check(line: &str, answers: &[&str], gone: &[&str]) -> String {
    let t = tree();
    let (code, text) = typed(&t, line, answers);
    assert_eq!(code, Some(0), "{answers:?}: {text}");
    for name in ["a/1", "b/1", "c/1", "c/other-name", "a/2", "b/2"] {
        assert_eq!(
            !t.exists(name),
            gone.contains(&name),
            "{answers:?}: {name}: {text}"
        );
    }
    text
}

const DELETE: &str = "dup prune --interactive --action=delete --keep=first a b c";

#[test]
fn answers_are_what_is_done() {
    let all = ["b/1", "c/1", "c/other-name", "b/2"];
    check(DELETE, &["1\n", "1\n", "y\n"], &all);
    check(
        DELETE,
        &["2\n", "2\n", "y\n"],
        &["a/1", "c/1", "c/other-name", "a/2"],
    );
    check(DELETE, &["1 2\n", "s\n", "y\n"], &["c/1", "c/other-name"]);
    check(DELETE, &["last\n", "newest\n", "n\n"], &[]);
    check(DELETE, &["a\n", "1\n", "yes\n"], &["b/2"]);
    check(
        DELETE,
        &["path:b/*\n", "a\n", "y\n"],
        &["a/1", "c/1", "c/other-name"],
    );
    check(DELETE, &["3\n", "q\n", "y\n"], &["a/1", "b/1"]);
}

#[test]
fn an_answer_can_be_taken_back() {
    check(
        DELETE,
        &["1\n", "u\n", "2\n", "s\n", "y\n"],
        &["a/1", "c/1", "c/other-name"],
    );
    let text = check(DELETE, &["u\n", "1\n", "u\n", "s\n", "q\n"], &[]);
    assert!(text.contains("nothing was answered yet"), "{text}");
    assert!(text.contains("nothing was changed"), "{text}");
}

#[test]
fn nothing_is_done_without_a_yes() {
    for answers in [
        &["1\n", "1\n", "n\n"][..],
        &["1\n", "1\n", "\n"],
        &["s\n", "a\n"],
        &["q\n"],
        // The end of the input.
        &["1\n", "\x04"],
        &["1\n", "1\n", "\x04"],
    ] {
        let text = check(DELETE, answers, &[]);
        assert!(text.contains("nothing was changed"), "{answers:?}: {text}");
    }
}

#[test]
fn what_is_no_answer_is_asked_again() {
    let answers = ["x\n", "\n", "0\n", "4\n", "1-2\n", "?\n", "n\n", "q\n"];
    let text = check(DELETE, &answers, &[]);
    for said in [
        "'x' is no answer",
        "an answer is needed",
        "'0' is no number from 1 to 3",
        "'4' is no number from 1 to 3",
        "'1-2' is no number",
        "these stay, the others go",
        "one has to stay",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

/// Where a rule matches nothing of a group, another one that nobody typed would decide.
#[test]
fn a_rule_that_matches_nothing_is_no_answer() {
    let answers = ["path:nowhere\n", "name:z*\n", "path:b\n", "q\n", "y\n"];
    let text = check(DELETE, &answers, &["a/1", "c/1", "c/other-name"]);
    assert!(
        text.contains("path:nowhere matches none of these"),
        "{text}"
    );
    assert!(text.contains("name:z* matches none of these"), "{text}");
    check(DELETE, &["path:nowhere\n", "q\n"], &[]);
    let line = DELETE.replace("--keep=first", "--keep=path:nowhere");
    let text = check(&line, &["s\n", "s\n"], &[]);
    let word = "--keep=path:nowhere: none of the duplicates matches";
    assert!(text.find(word) < text.find("[1/2]"), "{text}");
    assert!(text.contains(word), "{text}");
}

#[test]
fn the_plan_is_shown_and_asked_for_once() {
    let text = check(
        DELETE,
        &["2\n", "1\n", "y\n"],
        &["a/1", "c/1", "c/other-name", "b/2"],
    );
    assert_eq!(text.matches("[y/N]").count(), 1, "{text}");
    let plain = text.replace('\r', "");
    assert!(plain.contains("[1/2] 8.0 KiB × 4\n   1  "), "{text}");
    let plan = "The plan:\nkeep b/1\n  delete a/1\n  delete c/1\n  delete c/other-name\nkeep a/2\n  delete b/2\n";
    assert!(plain.contains(plan), "{text}");
    assert!(
        plain.contains("Delete 4 files (20.0 KiB) of 2 groups, as chosen? [y/N]"),
        "{text}"
    );
    assert!(plain.contains("delete a/1 (kept: b/1)\n"), "{text}");
}

#[test]
fn references_stay_whatever_is_chosen() {
    let line = "dup prune --interactive --action=delete --reference=c a b c";
    let text = check(line, &["n\n", "s\n", "y\n"], &["a/1", "b/1"]);
    assert!(text.contains("(reference: stays)"), "{text}");
    check(line, &["2\n", "s\n", "y\n"], &["b/1"]);
    let line = "dup prune --interactive --action=delete --across-roots a b c";
    check(
        line,
        &["3\n", "s\n", "y\n"],
        &["a/1", "c/1", "c/other-name"],
    );
}

#[test]
fn a_dry_run_asks_and_changes_nothing() {
    let text = check(&format!("{DELETE} --dry-run"), &["1\n", "s\n"], &[]);
    assert!(text.contains("delete b/1 (kept: a/1)"), "{text}");
    assert!(!text.contains("[y/N]"), "{text}");
}

#[test]
fn directories_are_chosen_like_files() {
    let t = TestTree::new();
    for copy in ["x", "y", "z"] {
        t.write(format!("{copy}/in/file"), [b'x'; 4096])
            .symlink("in", format!("{copy}/link"));
    }
    let line = "dup prune --dirs --interactive --action=delete .";
    let (code, text) = typed(&t, line, &["3\n", "y\n"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("[1/1] 4.0 KiB × 3, 1 file in each"), "{text}");
    assert!(text.contains("keep ./z/"), "{text}");
    assert!(text.contains("Delete 2 directories with 2 files"), "{text}");
    assert!(
        !t.exists("x") && !t.exists("y") && t.exists("z/in/file"),
        "{text}"
    );
}

#[test]
fn without_a_terminal_it_is_refused() {
    let t = tree();
    t.bc_line(DELETE)
        .go()
        .code(2)
        .stderr_has("--interactive asks on a terminal, and there is none");
    t.bc_line(&format!("{DELETE} --yes"))
        .go()
        .code(2)
        .stderr_has("cannot be used with");
}

#[test]
fn no_choice_shows_a_name_raw() {
    let t = hostile();
    for line in [
        "--action=delete --interactive",
        "--action=move:q --interactive --dirs",
    ] {
        let command = t
            .bc_line(&format!("dup prune {line} r"))
            .env("TERM", "xterm")
            .command();
        let session = Pty::new(200, 50).start_in(command);
        session.type_keys(b"1\n1\nq\nn\n");
        let (_, bytes) = session.end();
        assert_harmless(&bytes, OURS, &words(line));
    }
}

/// What was chosen to stay changes after that: no other one takes its place.
#[test]
fn nothing_goes_for_what_was_not_chosen() {
    for more in ["", " --across-roots"] {
        let t = tree();
        t.hard_link("b/1", "b/again").write("b/3", [b'x'; 8192]);
        let change = |nth: usize| {
            if nth == 2 {
                t.write("a/1", [b'z'; 8192]);
            }
        };
        let answers = ["1\n", "s\n", "y\n"];
        let line = format!("{DELETE}{more}");
        let (code, text) = typed_while(&t, &line, &answers, &change);
        assert_eq!(code, Some(1), "{text}");
        for name in ["a/1", "b/1", "b/again", "b/3", "c/1", "c/other-name"] {
            assert!(t.exists(name), "{name}: {text}");
        }
    }
}

/// Of directories one lies in another: what an answer keeps does not go with what is around it.
#[test]
fn a_directory_that_an_answer_keeps_stays() {
    for (inner, gone) in [
        // The copy in the directory that goes is chosen, instead of the one in what stays.
        ("path:two/B/**\n", &["archive/sub/y", "one/A/sub/y"][..]),
        ("all\n", &[]),
        ("path:archive/**\n", &["two/B/x", "two/B/sub/y"]),
        ("s\n", &["two/B/x", "two/B/sub/y"]),
    ] {
        let t = TestTree::new();
        for copy in ["one/A", "two/B"] {
            t.write(format!("{copy}/x"), [b'x'; 90_000]);
        }
        for copy in ["one/A", "two/B", "archive"] {
            t.write(format!("{copy}/sub/y"), [b'y'; 9000])
                .write(format!("{copy}/sub/z"), [b'z'; 8000]);
        }
        let line = "dup prune --interactive --dirs --action=delete one two archive";
        let (code, text) = typed(&t, line, &["1\n", inner, "y\n"]);
        assert_eq!(code, Some(0), "{inner}: {text}");
        for copy in ["one/A", "two/B"] {
            let name = format!("{copy}/x");
            assert_eq!(!t.exists(&name), gone.contains(&&*name), "{name}: {text}");
        }
        for copy in ["one/A", "two/B", "archive"] {
            let name = format!("{copy}/sub/y");
            assert_eq!(!t.exists(&name), gone.contains(&&*name), "{name}: {text}");
        }
    }
}
