//! Directories in place of manifests, and renamed directories as one line.

use bc_testkit::{Pty, TestTree, left_out};
use serde_json::Value;

use crate::common::{BC, Bc};
use crate::integrity_update::damage;

/// Two equal trees, `a` and `b`, in which nothing shares an inode.
fn twins() -> TestTree {
    let t = TestTree::new();
    for tree in ["a", "b"] {
        t.write(format!("{tree}/x/1"), "one")
            .write(format!("{tree}/x/2"), "two")
            .write(format!("{tree}/x/empty"), "")
            .write(format!("{tree}/y"), "why")
            .symlink("1", format!("{tree}/x/link"));
    }
    settle(&t);
    t
}

/// Gives all entries of both trees one time.
fn settle(t: &TestTree) {
    for tree in ["a", "b"] {
        for name in ["x/1", "x/2", "x/empty", "x/link", "y", "x", "z", "."] {
            let path = format!("{tree}/{name}");
            if t.join(&path).symlink_metadata().is_ok() {
                t.mtime(&path, 1_000_000_000, 0);
            }
        }
    }
}

#[test]
fn two_directories_are_the_same_or_not() {
    let t = twins();
    let diff = |options: &str| t.bc_line(&format!("integrity diff {options}")).go();
    diff("a b").code(0).stdout_is("").stderr_is("");
    t.write("b/y", "who").write("b/new", "new");
    settle(&t);
    // Which of the two is right nothing tells, but that one is not.
    let text = diff("a b").code(3).text();
    let expected =
        "+ new\n!! y: ctime proves nothing here, bitrot or a rewrite with its mtime reset\n";
    assert!(text.ends_with(expected), "{text}");
    t.write("b/y", "longer than before");
    let text = diff("a b").code(1).text();
    assert!(text.ends_with("+ new\n~c y\n"), "{text}");
    let text = diff("b a").code(1).text();
    assert!(text.ends_with("- new\n~c y\n"), "{text}");
    let json = diff("--format=json a b").code(1).text();
    let header: Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!((&header["old"], &header["new"]), (&"a".into(), &"b".into()));
    let summary: Value = serde_json::from_str(json.lines().last().unwrap()).unwrap();
    assert!(summary["files_read"].as_u64() > Some(0), "{summary}");
    diff("a missing").code(2).stderr_has("missing: open");
    diff("--ignore=colour a b").code(2).stderr_has("colour");
}

#[test]
fn a_directory_is_read_as_the_manifest_was_made() {
    let t = twins();
    t.write("a/skip.tmp", "1").write("b/skip.tmp", "2");
    t.write("a/.hidden", "1");
    settle(&t);
    t.bc_line("integrity manifest --algorithm=md5 --exclude=*.tmp --no-hidden -o m a")
        .go()
        .code(0);
    for sides in ["m a", "a m", "m b", "b m"] {
        let out = t.bc_line(&format!("integrity diff -v {sides}")).go();
        out.code(0).stderr_has("7 ok");
        assert!(!out.error_text().contains("options"), "{out}");
    }
    let json = t.bc_line("integrity diff --format=json m b").go();
    json.code(0).stdout_has("\"algorithm\":\"md5\"");
    // From another host, as it were.
    let script = "\"$BC\" integrity manifest a | \"$BC\" integrity diff - a";
    let run = t.run("sh").args(["-c", script]).env("BC", BC);
    run.go().code(0).stdout_is("");
    // A manifest that was cut is refused before the directory is read.
    let whole = t.read("m");
    t.write("cut", &whole[..whole.len() - 20]);
    t.bc_line("integrity diff cut b")
        .go()
        .code(2)
        .stderr_has("truncated");
    // One that lies in the tree, and what is written there, are no part of it.
    t.bc_line("integrity manifest -o a/m a").go().code(0);
    t.bc_line("integrity diff --ignore=mtime,ctime,ino,dev,dir-size,dir-nlink -o a/out a/m a")
        .go()
        .code(0);
    t.bc_line("integrity manifest --shard=1/2 -o part a").go();
    t.bc_line("integrity diff part a")
        .go()
        .code(2)
        .stderr_has("part of a tree only");
}

#[test]
fn what_cannot_be_read_is_not_the_same() {
    if rustix::process::geteuid().is_root() {
        return left_out("the superuser reads everything");
    }
    let t = twins();
    t.mode("b/y", 0);
    let out = t.bc_line("integrity diff a b").go();
    out.code(1).stdout_has("?? y: ");
    t.mode("b/y", 0o600);
}

#[test]
fn the_same_is_said_on_a_terminal() {
    let t = twins();
    let said = |line: &str| {
        let session = Pty::new(100, 24).start_in(t.bc_line(line).command());
        String::from_utf8(session.end().1).unwrap()
    };
    let text = said("integrity diff a b");
    assert!(text.contains("the same: 7 entries"), "{text}");
    assert!(!said("integrity diff --quiet a b").contains("the same"));
    t.write("b/y", "something else");
    assert!(!said("integrity diff a b").contains("the same"));
}

#[test]
fn a_renamed_directory_is_one_line_in_every_format() {
    let t = twins();
    std::fs::rename(t.join("b/x"), t.join("b/z")).unwrap();
    t.write("b/z/new", "new")
        .mode("a/x/1", 0o644)
        .mode("b/z/1", 0o600);
    settle(&t);
    t.mtime("b/z", 1_000_000_000, 0);
    let lines = [
        "+ z/new",
        "> x/ -> z/ (3 entries)",
        "> x/1 -> z/1 mode: 0644 -> 0600",
    ];
    t.bc_line("integrity manifest -o m a").go().code(0);
    for line in ["integrity diff a b", "integrity verify b m"] {
        let mut text: Vec<String> = t
            .bc_line(line)
            .go()
            .code(1)
            .text()
            .lines()
            .map(str::to_owned)
            .collect();
        text.sort_unstable();
        assert_eq!(text, lines, "{line}");
    }
    let json = t
        .bc_line("integrity diff --format=json a b")
        .go()
        .code(1)
        .text();
    let objects: Vec<Value> = json
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let is_dir = |object: &&Value| object["kind"] == "dir" && object["class"] == "moved";
    let dir = objects.iter().find(is_dir).unwrap();
    assert_eq!((&dir["path"], &dir["to"]), (&"x".into(), &"z".into()));
    assert_eq!(dir["entries"], 3);
    let summary = objects.last().unwrap();
    assert_eq!(
        (&summary["moved"], &summary["removed"]),
        (&5.into(), &0.into())
    );
    assert_eq!(objects.len(), 5, "{json}");
    let page = t
        .bc_line("integrity diff --format=html a b")
        .go()
        .code(1)
        .text();
    let data = crate::html::data(&page);
    let is_moved = |class: &&Value| class["class"] == "moved";
    let classes = data["classes"].as_array().unwrap();
    let moved = classes.iter().find(is_moved).unwrap();
    let entries = crate::html::column(moved, "entries", ' ');
    assert!(entries.contains(&"3".to_owned()), "{moved}");
    assert!(!page.contains("more are not"), "{page}");
    // What is written down is one move for each file.
    t.bc_line("integrity update --max-changed=0 b m")
        .go()
        .code(0);
    t.bc_line("integrity diff m b").go().code(0);
    damage(&t, "b/z/2", "TWO");
    t.bc_line("integrity diff m b")
        .go()
        .code(3)
        .stdout_has("!! z/2: ");
}
