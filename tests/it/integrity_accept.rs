//! `bc integrity accept`: single records follow the tree, all others stay as they are.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bc_testkit::{Outcome, TestTree};
use serde_json::Value;

use crate::common::Bc;
use crate::integrity_update::{contents, damage, killed, record, rename};

/// Runs `bc integrity accept` with these words behind the manifest.
fn accept(t: &TestTree, m: &str, words: &str) -> Outcome {
    t.bc_line(&format!("integrity accept . {m} {words}")).go()
}

/// Lines of a manifest, the trailer aside.
fn records(m: &str) -> Vec<Vec<u8>> {
    let text = std::fs::read(m).unwrap();
    let mut lines: Vec<Vec<u8>> = text
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    lines.truncate(lines.len() - 2);
    lines
}

/// Paths of the lines that differ.
fn changed(before: &[Vec<u8>], after: &[Vec<u8>]) -> Vec<String> {
    assert_eq!(before.len(), after.len());
    let pairs = before.iter().zip(after).filter(|(old, new)| old != new);
    pairs
        .map(|(_, new)| {
            let entry: Value = serde_json::from_slice(new).unwrap();
            entry["path"].as_str().unwrap().to_owned()
        })
        .collect()
}

#[test]
fn exactly_these_records_follow_the_tree() {
    let t = TestTree::new();
    for name in ["a", "b", "d/c", "d/e", "f"] {
        t.write(name, format!("content of {name}"));
    }
    let m = record(&t);
    let before = records(&m);
    for name in ["a", "d/c", "f"] {
        damage(&t, name, &format!("CONTENT OF {name}"));
    }
    t.write("b", "edited");
    let out = accept(&t, &m, "d/c ./a");
    out.code(0).stderr_is("");
    let digest = |content: &str| {
        let sums = t.bc_line("hash -").stdin(content).go().text();
        sums.split(' ').next().unwrap().to_owned()
    };
    let (old, new) = (digest("content of a"), digest("CONTENT OF a"));
    out.stdout_has(format!("accepted a: digest: {old} -> {new}"));
    let text = out.text();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[1].starts_with("accepted d/c: digest: "), "{text}");
    assert_eq!(lines.len(), 2);
    assert_eq!(changed(&before, &records(&m)), ["a", "d/c"]);
    // The rest is found as ever.
    t.bc_line(&format!("integrity verify . {m}"))
        .go()
        .code(3)
        .stdout_is("~c b\n!! f: ctime changed, probably a rewrite with its mtime reset\n");
    // A second time changes nothing that verify would see.
    accept(&t, &m, "a")
        .code(0)
        .stdout_is("accepted a: as recorded\n");
    accept(&t, &m, "b f").code(0);
    t.bc_line(&format!("integrity verify . {m}"))
        .go()
        .code(0)
        .stdout_is("");
    // No update has anything to read or to write after it.
    let after = std::fs::read(&m).unwrap();
    t.bc_line(&format!("integrity update . {m}")).go().code(0);
    assert_eq!(std::fs::read(&m).unwrap(), after);
}

/// Damage that updates noted is accepted, and its content is no damage any longer.
#[test]
fn noted_damage_is_accepted_one_by_one() {
    let t = TestTree::new();
    t.write("a", "good content").write("b", "also content");
    let m = record(&t);
    damage(&t, "a", "gooX content");
    damage(&t, "b", "alsX content");
    t.bc_line(&format!("integrity update . {m}")).go().code(3);
    accept(&t, &m, "a")
        .code(0)
        .stdout_has("accepted a: digest: ");
    t.bc_line(&format!("integrity update . {m}"))
        .go()
        .code(3)
        .stdout_has("!! b: ");
    let text = String::from_utf8(std::fs::read(&m).unwrap()).unwrap();
    assert_eq!(text.matches("damaged_digest").count(), 1, "{text}");
    accept(&t, &m, "b").code(0);
    t.bc_line(&format!("integrity update . {m}")).go().code(0);
    t.bc_line(&format!("integrity verify . {m}")).go().code(0);
}

/// Lines of another writer, with other keys in another order, are not written anew.
#[test]
fn lines_of_others_stay_byte_for_byte() {
    let t = TestTree::new();
    t.write("a", "1").write("b", "2").write("c", "3");
    let m = record(&t);
    let text = String::from_utf8(std::fs::read(&m).unwrap()).unwrap();
    let other = |line: &str| {
        let rest = line.strip_prefix(r#"{"type":"entry","#).unwrap();
        format!(r#"{{ "note" : "by hand" , "type":"entry",{rest}"#)
    };
    let mut body = String::new();
    let mut lines: Vec<&str> = text.lines().collect();
    let trailer = lines.pop().unwrap();
    for line in lines {
        body += &match line.contains(r#""path":"c""#) || line.contains(r#""path":"a""#) {
            true => other(line),
            false => line.to_owned(),
        };
        body.push('\n');
    }
    body += &format!("{trailer}\n");
    std::fs::write(&m, crate::integrity_parts::sealed(&body)).unwrap();
    let before = records(&m);
    t.write("b", "edited").write("c", "edited");
    accept(&t, &m, "b").code(0);
    assert_eq!(changed(&before, &records(&m)), ["b"]);
    // An unknown key of an accepted record stays, too.
    accept(&t, &m, "c").code(0);
    let last = records(&m).pop().unwrap();
    let last: Value = serde_json::from_slice(&last).unwrap();
    assert_eq!(last["note"], "by hand");
}

#[test]
fn what_cannot_be_accepted_is_named_and_stops_nothing_else() {
    let t = TestTree::new();
    t.write("a", "1").write("d/b", "2").write("gone", "3");
    t.write("new", "").remove("new").write("file", "5");
    let m = record(&t);
    let before = records(&m);
    t.write("a", "edited").remove("gone").write("new", "4");
    t.remove("file").dir("file");
    let out = accept(&t, &m, "new gone d . a file ../a /a");
    out.code(1).stdout_has("accepted a: ");
    assert_eq!(out.lines().len(), 1);
    let said = [
        ("new", "is not in the manifest"),
        ("gone", "is not in the tree"),
        (
            "d",
            "is a directory; only single files and links are accepted",
        ),
        (
            ".",
            "is a directory; only single files and links are accepted",
        ),
        (
            "file",
            "is a directory; only single files and links are accepted",
        ),
        ("../a", "is not a path relative to the root"),
        ("/a", "is not a path relative to the root"),
    ];
    for (path, why) in said {
        out.stderr_has(format!("bc integrity: {path}: accept: {why}\n"));
    }
    assert_eq!(changed(&before, &records(&m)), ["a"]);
    // Nothing to write, nothing written.
    let whole = std::fs::read(&m).unwrap();
    accept(&t, &m, "gone").code(1).stdout_is("");
    accept(&t, &m, "new d").code(1).stdout_is("");
    assert_eq!(std::fs::read(&m).unwrap(), whole);
    // No path at all, no manifest, no root.
    accept(&t, &m, "").code(2);
    t.bc_line("integrity accept . none a").go().code(2);
    t.bc_line(&format!("integrity accept none {m} a"))
        .go()
        .code(2);
    // A path as the shell completes it.
    let line = format!("integrity accept {} {m} {0}/a", t.path().display());
    t.bc_line(&line)
        .go()
        .code(1)
        .stderr_has("paths are relative to ROOT: a\n");
}

#[test]
fn an_unreadable_file_keeps_its_record() {
    let t = TestTree::new();
    t.write("a", "1").write("d/b", "2").write("c", "3");
    let m = record(&t);
    std::fs::copy(&m, t.join("m")).unwrap();
    t.write("a", "edited").write("c", "edited");
    t.mode("a", 0).mode("d", 0);
    std::fs::set_permissions(&m, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let out = t
        .bc_line(&format!("integrity accept --dry-run . {m} a d/b c"))
        .as_nobody()
        .go();
    out.code(1)
        .stdout_has("would accept c: ")
        .stderr_has("bc integrity: a: open: Permission denied (os error 13)\n")
        .stderr_has("d/b: accept: in d: ");
    assert_eq!(out.lines().len(), 1);
    t.mode("a", 0o644).mode("d", 0o755);
}

#[test]
fn a_dry_run_writes_nothing() {
    let t = TestTree::new();
    t.write("a", "1");
    let m = record(&t);
    let dir = Path::new(&m).parent().unwrap();
    t.write("a", "2");
    let before = contents(dir);
    let dry = accept(&t, &m, "--dry-run a");
    dry.code(0);
    assert_eq!(contents(dir), before);
    let done = accept(&t, &m, "a").text();
    assert_eq!(dry.text(), done.replace("accepted", "would accept"));
    // A lock of another run does not matter to it.
    let held = bc_edit::atomic::lock(&m).unwrap();
    accept(&t, &m, "--dry-run a").code(0);
    accept(&t, &m, "a")
        .code(2)
        .stderr_has("another update of this manifest is running");
    drop(held);
}

#[test]
fn links_and_further_names() {
    let t = TestTree::new();
    t.write("a", "content").hard_link("a", "z");
    t.symlink("a", "link").symlink("a", "turned").fifo("pipe");
    let m = record(&t);
    damage(&t, "a", "CONTENT");
    t.remove("link").symlink("elsewhere", "link");
    t.remove("turned").write("turned", "a file");
    t.mode("pipe", 0o600);
    let out = accept(&t, &m, "a link turned pipe");
    out.code(0)
        .stdout_has("accepted link: target: a -> elsewhere")
        .stdout_has("accepted turned: kind: symlink -> file")
        .stdout_has("accepted pipe: ")
        .stderr_is("bc integrity: z: accept: another name of an accepted file keeps its record\n");
    t.bc_line(&format!("integrity verify . {m}"))
        .go()
        .code(3)
        .stdout_has("!! z: ");
    accept(&t, &m, "a z").code(0).stderr_is("");
    // The directory has another time.
    t.bc_line(&format!(
        "integrity verify --ignore=mtime,ctime,ino,dir-size,dir-nlink . {m}"
    ))
    .go()
    .code(0)
    .stdout_is("");
}

/// A link in the place of a directory leads to no other file.
#[test]
fn no_link_is_followed_on_the_way() {
    let t = TestTree::new();
    t.write("d/a", "content").write("other/a", "another");
    let m = record(&t);
    rename(&t, "d", "away");
    t.symlink("other", "d");
    let before = std::fs::read(&m).unwrap();
    accept(&t, &m, "d/a")
        .code(1)
        .stderr_has("d/a: accept: is not in the tree\n");
    assert_eq!(std::fs::read(&m).unwrap(), before);
}

#[test]
fn names_of_any_bytes() {
    let t = TestTree::new();
    t.write_bytes(b"d/\xff\n", "1")
        .write("d/*", "2")
        .write("d/x", "3");
    let m = record(&t);
    let before = records(&m);
    t.write_bytes(b"d/\xff\n", "new")
        .write("d/*", "new")
        .write("d/x", "new");
    let name = std::ffi::OsStr::from_bytes(b"d/\xff\n");
    let accept = |format: &str| {
        let line = format!("integrity accept {format} . {m} d/*");
        t.bc_line(&line).arg(name).go()
    };
    accept("")
        .code(0)
        .stdout_has("accepted d/\\xff\\n: ")
        .stdout_has("accepted d/*: ");
    assert_eq!(changed(&before, &records(&m)).len(), 2);
    let json = accept("--format=json").text();
    let lines: Vec<Value> = json
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[2]["path_b64"], "ZC//Cg==");
}

#[test]
fn what_was_accepted_as_json() {
    let t = TestTree::new();
    t.write("a", "1").write("b", "2");
    let m = record(&t);
    damage(&t, "a", "3");
    let text = accept(&t, &m, "--format=json a none").text();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let [header, change, refused, summary] = &lines[..] else {
        panic!("{text}");
    };
    assert_eq!(
        (&header["command"], &header["algorithm"]),
        (&"accept".into(), &"sha256".into())
    );
    assert_eq!(
        (&change["class"], &change["path"]),
        (&"damaged".into(), &"a".into())
    );
    let digest = |side: &str| change[side]["digest"].as_str().unwrap().len();
    assert_eq!((digest("old"), digest("new")), (64, 64));
    assert_eq!(refused["path"], "none");
    assert_eq!(refused["error"]["reason"], "is not in the manifest");
    assert_eq!(summary["accepted"], 1);
    assert_eq!(summary["refused"], 1);
    assert_eq!(summary["bytes_read"], 1);
    assert_eq!(summary["written"], true);
}

/// Another tree under the manifest of the first one.
#[test]
fn another_root_has_to_be_meant() {
    let t = TestTree::new();
    t.write("d/a", "1").write("e/a", "other");
    t.bc_line("integrity manifest -q -o m d").go().code(0);
    let before = t.read("m");
    t.bc_line("integrity accept e m a")
        .go()
        .code(2)
        .stdout_is("")
        .stderr_has("is another directory or disk than the manifest was made of");
    assert_eq!(t.read("m"), before);
    t.bc_line("integrity accept --force e m a").go().code(0);
    // A root that is a file.
    t.bc_line("integrity manifest -q -o one d/a").go().code(0);
    t.write("d/a", "edited");
    t.bc_line("integrity accept d/a one a").go().code(0);
    t.bc_line("integrity verify d/a one").go().code(0);
}

/// Compressed manifests, and those of parts: what their trailers say stays.
#[test]
fn manifests_of_all_kinds() {
    let t = TestTree::new();
    t.write("d/a", "1").write("d/b/c", "2").write("d/e", "3");
    t.bc_line("integrity manifest -q -o m.zst d").go().code(0);
    for part in [1, 2] {
        t.bc_line(&format!(
            "integrity manifest -q --shard={part}/2 -o part{part} d"
        ))
        .go()
        .code(0);
    }
    t.dir("to");
    t.bc_line("copy -q --manifest=copied d/a d/e to")
        .go()
        .code(0);
    t.write("d/b/c", "edited").write("to/a", "edited");
    t.bc_line("integrity accept d m.zst b/c").go().code(0);
    t.bc_line("integrity verify d m.zst").go().code(0);
    assert_eq!(&t.read("m.zst")[..4], b"\x28\xb5\x2f\xfd");
    let accepted = [1, 2].map(|part| {
        let out = t
            .bc_line(&format!("integrity accept d part{part} b/c"))
            .go();
        usize::from(out.text().contains("accepted b/c: "))
    });
    assert_eq!(accepted.iter().sum::<usize>(), 1);
    t.bc_line("integrity merge -q -o merged part1 part2")
        .go()
        .code(0);
    t.bc_line("integrity verify d merged").go().code(0);
    t.bc_line("integrity accept to copied a").go().code(0);
    t.bc_line("integrity verify to copied").go().code(0);
    // A cut one is refused.
    let whole = t.read("merged");
    t.write("cut", &whole[..whole.len() - 9]);
    t.bc_line("integrity accept d cut a").go().code(2);
}

#[test]
fn killed_at_any_moment_the_manifest_is_the_old_or_the_new_one() {
    let t = TestTree::new();
    for file in 0..2000 {
        t.write(format!("d{}/{file}", file % 20), "content");
    }
    let m = record(&t);
    let dir = Path::new(&m).parent().unwrap().to_owned();
    let mut round = 0;
    t.write("d0/0", "round 0");
    let before = records(&m);
    let moments = killed(&t, &format!("integrity accept . {m} d0/0"), 20, || {
        let after = records(&m);
        let changed = changed(&before, &after);
        assert!(changed.is_empty() || changed == ["d0/0"], "{changed:?}");
        t.bc_line(&format!("integrity diff {m} {m}")).go().code(0);
        round += 1;
        t.write("d0/0", format!("round {round}"));
    });
    assert!(moments > 0, "none of the runs was still running");
    accept(&t, &m, "d0/0").code(0);
    t.bc_line(&format!("integrity verify . {m}")).go().code(0);
    let left = contents(&dir).into_iter().map(|(name, _)| name);
    let left: Vec<String> = left.filter(|name| name.contains(".tmp")).collect();
    assert!(left.is_empty(), "{left:?}");
}
