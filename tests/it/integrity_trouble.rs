//! What must never pass unnoticed: unreadable news, and damage under another name.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use bc_testkit::TestTree;

use crate::common::Bc;
use crate::integrity_update::{damage, record, rename};

#[test]
fn unreadable_news_are_named_and_counted() {
    let t = TestTree::new();
    t.write("a", "1");
    t.mode(".", 0o755);
    let m = record(&t);
    std::fs::set_permissions(&m, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
    let manifest = Path::new(&m).parent().unwrap();
    std::fs::set_permissions(
        manifest,
        std::os::unix::fs::PermissionsExt::from_mode(0o777),
    )
    .unwrap();
    t.write("file", "2").mode("file", 0);
    t.write("dir/below", "3").mode("dir", 0);
    for quiet in ["", "--quiet"] {
        // A second run has them as entries with errors.
        for _ in 0..2 {
            t.bc_line(&format!("integrity update {quiet} . {m}"))
                .as_nobody()
                .go()
                .code(1)
                .stdout_has(" dir: open: Permission denied")
                .stdout_has(" file: open: Permission denied");
        }
    }
    t.mode("file", 0o644).mode("dir", 0o755);
    let unread = std::fs::read(&m).unwrap();
    t.bc_line(&format!("integrity update . {m}"))
        .as_nobody()
        .go()
        .code(0)
        .stdout_has("+ file: readable now; before: open: ")
        .stdout_has("+ dir/below: readable now; before: in dir: open: Permission denied");
    t.bc_line(&format!("integrity verify . {m}")).go().code(0);
    // What can be read again is recorded: for cron there is nothing wrong with it.
    std::fs::write(&m, unread).unwrap();
    t.bc_line(&format!("integrity update --quiet . {m}"))
        .as_nobody()
        .go()
        .code(0)
        .stdout_is("")
        .stderr_is("");
    t.bc_line(&format!("integrity verify . {m}")).go().code(0);
}

/// Neither is that what could not be read is gone.
#[test]
fn what_was_unreadable_and_is_gone_is_no_trouble() {
    let t = TestTree::new();
    t.write("a", "1").write("file", "2").mode("file", 0);
    let m = t.scratch("m.jsonl");
    let listed = t.bc_line("integrity manifest .").as_nobody().go();
    std::fs::write(&m, &listed.code(1).stdout).unwrap();
    t.remove("file");
    let m = m.display();
    t.bc_line(&format!("integrity verify --format=json . {m}"))
        .go()
        .code(1)
        .stdout_has("\"class\":\"removed\",\"path\":\"file\",\"kind\":\"file\",\"old\"");
    t.bc_line(&format!("integrity update --quiet . {m}"))
        .go()
        .code(0)
        .stdout_is("");
}

/// A directory's name within a reason is shown as it is by itself.
#[test]
fn names_within_reasons_are_escaped_once() {
    let t = TestTree::new();
    let dir = "d\\ir\n";
    t.write(format!("{dir}/a"), "1").mode(".", 0o755);
    let m = record(&t);
    t.mode(dir, 0);
    t.bc_line(&format!("integrity verify . {m}"))
        .as_nobody()
        .go()
        .code(1)
        .stdout_has("?? d\\\\ir\\n/a: in d\\\\ir\\n: open: Permission denied");
    t.mode(dir, 0o755);
}

/// What was moved, and where the damage is now; each through every command.
fn found_by_all(t: &TestTree, m: &str, from: &str, to: &str) {
    let moved = format!("> {from} -> {to}\n!! {to}: ");
    let after = t.scratch("after.jsonl").to_str().unwrap().to_owned();
    let _ = std::fs::remove_file(&after);
    t.bc_line(&format!("integrity manifest --output={after} ."))
        .go()
        .code(0);
    for line in [
        format!("integrity verify . {m}"),
        format!("integrity verify --quiet --mode=content . {m}"),
    ] {
        t.bc_line(&line).go().code(3).stdout_has(&moved);
    }
    // Two manifests have no time of birth.
    let possibly = format!("~c {from} -> {to}: possibly moved and damaged; ");
    for line in [
        format!("integrity diff {m} {after}"),
        format!("integrity diff --quiet {m} {after}"),
    ] {
        t.bc_line(&line).go().stdout_has(&possibly);
    }
    let json = t
        .bc_line(&format!("integrity verify --format=json . {m}"))
        .go();
    json.code(3).stdout_has(format!(
        "\"class\":\"damaged\",\"path\":\"{from}\",\"to\":\"{to}\""
    ));
    // The first update finds it, later ones and verify still know of it.
    t.bc_line(&format!("integrity update --quiet . {m}"))
        .go()
        .code(3)
        .stdout_has(&moved);
    for line in [
        format!("integrity update --quiet . {m}"),
        format!("integrity update --quiet --reread=100% . {m}"),
        format!("integrity verify . {m}"),
    ] {
        t.bc_line(&line)
            .go()
            .code(3)
            .stdout_has(format!("!! {to}: "));
    }
    t.bc_line(&format!("integrity update --accept-damaged . {m}"))
        .go()
        .code(3);
    t.bc_line(&format!("integrity verify . {m}")).go().code(0);
    t.bc_line(&format!("integrity update . {m}")).go().code(0);
}

#[test]
fn renamed_and_damaged_is_both() {
    let t = TestTree::new();
    t.write("b/old", "good content")
        .write("z", "good content 2");
    let m = record(&t);
    // Before and behind the old name in path order.
    rename(&t, "b/old", "a");
    damage(&t, "a", "bad content!");
    found_by_all(&t, &m, "b/old", "a");
    rename(&t, "a", "c");
    damage(&t, "c", "worse......!");
    found_by_all(&t, &m, "a", "c");
}

#[test]
fn below_a_renamed_directory_too() {
    let t = TestTree::new();
    t.write("dir/sub/one", "1111")
        .write("dir/sub/two", "2222")
        .write("dir/three", "3333");
    let m = record(&t);
    rename(&t, "dir", "other");
    damage(&t, "other/sub/two", "!!!!");
    let text = t.bc_line(&format!("integrity verify . {m}")).go().text();
    assert!(text.contains("> dir/ -> other/ (3 entries)\n"), "{text}");
    found_by_all(&t, &m, "dir/sub/two", "other/sub/two");
}

#[test]
fn hard_links_of_what_is_damaged() {
    let t = TestTree::new();
    t.write("stays", "linked").hard_link("stays", "goes");
    let m = record(&t);
    rename(&t, "goes", "went");
    damage(&t, "went", "LINKED");
    t.bc_line(&format!("integrity verify . {m}"))
        .go()
        .code(3)
        .stdout_has("!! stays: ");
    found_by_all(&t, &m, "goes", "went");
}

/// A new name for an unread file must not lose what its content should be.
#[test]
fn renamed_and_unreadable_keeps_its_digest() {
    let t = TestTree::new();
    t.write("a", "content").mode(".", 0o777);
    let m = record(&t);
    let digest = |path: &str| {
        let text = std::fs::read_to_string(&m).unwrap();
        let line = text
            .lines()
            .find(|l| l.contains(&format!("\"path\":\"{path}\"")))
            .unwrap();
        let entry: serde_json::Value = serde_json::from_str(line).unwrap();
        entry["digest"].clone()
    };
    let before = digest("a");
    std::fs::set_permissions(&m, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
    let beside = Path::new(&m).parent().unwrap();
    std::fs::set_permissions(beside, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    rename(&t, "a", "b");
    t.mode("b", 0);
    t.bc_line(&format!("integrity update --quiet . {m}"))
        .as_nobody()
        .go()
        .code(1)
        .stdout_has("b: open: ");
    assert_eq!(digest("b"), before);
    t.mode("b", 0o644);
    // His manifest by now, in a directory where others may write: root would not replace it.
    t.bc_line(&format!("integrity update . {m}"))
        .as_nobody()
        .go()
        .code(0);
    assert_eq!(digest("b"), before);
}

/// Numbers of inodes are used again: one in another size or of another time is another file.
#[test]
fn an_inode_used_again_is_no_damage() {
    let t = TestTree::new();
    t.write("a", "first").mtime("a", 1000, 0);
    let m = record(&t);
    let old = std::fs::metadata(t.join("a")).unwrap();
    rename(&t, "a", "b");
    for (content, seconds) in [("longer than it was", 1000), ("other", 1001)] {
        t.write("b", content).mtime("b", seconds, 0);
        assert_eq!(std::fs::metadata(t.join("b")).unwrap().ino(), old.ino());
        t.bc_line(&format!(
            "integrity verify --ignore=mtime,ctime,dir-size . {m}"
        ))
        .go()
        .code(1)
        .stdout_is("- a\n+ b\n");
    }
    // An empty file has nothing that could be damaged.
    t.write("c", "").write("b", "first").mtime("b", 1000, 0);
    t.bc_line(&format!(
        "integrity verify --ignore=mtime,ctime,dir-size . {m}"
    ))
    .go()
    .code(1)
    .stdout_is("> a -> b\n+ c\n");
}
