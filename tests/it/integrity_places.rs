//! What a manifest says of where it was made, manifests of the version before, and files that are
//! written while the tree that they lie in is read.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::process::Stdio;

use bc_testkit::TestTree;
use serde_json::Value;

use crate::common::Bc;

fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn the_header_names_machine_and_place() {
    let t = TestTree::new();
    t.write("a", "1").write("d/b", "2").symlink(".", "link");
    let real = t.path().canonicalize().unwrap();
    for root in [".", "./d/..", "link/d/..", real.to_str().unwrap()] {
        let text = t.bc_line(&format!("integrity manifest {root}")).go().text();
        let all = lines(&text);
        let header = all[0].as_object().unwrap();
        let keys: Vec<&str> = text[..text.find("\"options\"").unwrap()]
            .split("\"")
            .filter(|word| header.contains_key(*word))
            .collect();
        let order = [
            "type",
            "schema",
            "tool",
            "version",
            "algorithm",
            "created_at",
            "host",
            "machine",
            "root",
            "root_dev",
            "fs_uuid",
            "mount_source",
            "mount_root",
            "scope",
            "shard",
        ];
        assert_eq!(keys, order);
        assert_eq!(header["root"], real.to_str().unwrap(), "{root}");
        assert_eq!(header["root_dev"], real.metadata().unwrap().dev());
        let machine = std::fs::read_to_string("/etc/machine-id").ok();
        assert_eq!(
            header["machine"].as_str(),
            machine.as_deref().map(str::trim)
        );
        assert!(header["scope"].is_null() && header["shard"].is_null());
        if let Some(uuid) = header["fs_uuid"].as_str() {
            assert!(uuid.len() >= 9 && !uuid.contains('/'), "{uuid}");
        }
        // findmnt asks the same list in its own way.
        let found = std::process::Command::new("findmnt")
            .args([
                "--noheadings",
                "--first-only",
                "--output",
                "SOURCE",
                "--nofsroot",
                "--target",
            ])
            .arg(&real)
            .output();
        match found {
            Ok(found) if found.status.success() => {
                let source = String::from_utf8_lossy(&found.stdout);
                assert_eq!(header["mount_source"], source.trim());
            }
            _ => bc_testkit::left_out("findmnt"),
        }
        for entry in &all[1..all.len() - 1] {
            assert!(entry.get("dev").is_none(), "{entry}");
        }
    }
}

/// A manifest that the version before wrote verifies and is brought up to date.
#[test]
fn manifests_of_the_version_before_go_on() {
    const BEFORE: &str = include_str!("../../fixtures/manifests/integrity-before-places.jsonl");
    let t = TestTree::new();
    t.write("a", "1")
        .write("b/c", "22")
        .write("b/d", "333")
        .symlink("a", "l");
    for (path, mode) in [
        ("a", 0o644),
        ("b/c", 0o644),
        ("b/d", 0o600),
        ("b", 0o755),
        (".", 0o755),
    ] {
        t.mode(path, mode);
    }
    for path in ["a", "b/c", "b/d", "b", "."] {
        t.mtime(path, 1_700_000_000, 5);
    }
    let m = t.scratch("m.jsonl");
    std::fs::write(&m, BEFORE).unwrap();
    let m = m.to_str().unwrap();
    let ignore = "--ignore=uid,gid,ino,ctime,dev,dir-size,dir-nlink,mtime";
    t.bc_line(&format!("integrity verify {ignore} . {m}"))
        .go()
        .code(0)
        .stdout_is("");
    t.write("b/c", "an edit");
    // It was made on another device, and no inode is the same.
    t.bc_line(&format!("integrity update --force . {m}"))
        .go()
        .code(0)
        .stdout_has("~c b/c\n");
    t.bc_line(&format!("integrity verify . {m}")).go().code(0);
    let text = std::fs::read_to_string(m).unwrap();
    let all = lines(&text);
    // What it did not know is there now; what we do not know is kept.
    assert!(all[0]["mount_source"].is_string() || all[0]["mount_source"].is_null());
    assert_eq!(all[0]["created_at"], "2026-11-21T23:00:00Z");
    assert_eq!(all[0]["later"], "kept");
    assert!(all[0]["mount_root"].is_string() || all[0]["mount_source"].is_null());
    assert_eq!(all[2]["later"], 7);
    t.bc_line(&format!("integrity diff {m} {m}")).go().code(0);
}

/// A part of a tree says nothing of what is not in it.
#[test]
fn parts_of_trees_are_refused() {
    let t = TestTree::new();
    t.write("a", "1");
    let text = t.bc_line("integrity manifest .").go().text();
    let m = t.scratch("m.jsonl");
    // A copy's manifest has a scope, which verify asks about.
    for (part, commands) in [
        ("\"scope\":[\"a\"]", &["update"][..]),
        ("\"shard\":\"1/4\"", &["verify", "update"]),
    ] {
        let key = part.split(':').next().unwrap();
        let text = text.replacen(&format!("{key}:null"), part, 1);
        std::fs::write(&m, text).unwrap();
        for command in commands {
            t.bc()
                .args(["integrity", command, "--force", "."])
                .arg(&m)
                .go()
                .code(2)
                .stderr_has("a part of a tree");
        }
    }
}

/// Runs `bc` with standard output going to a file, as a shell's `>` and `>>` do.
fn redirected(t: &TestTree, line: &str, to: File) -> i32 {
    let mut command = t.bc_line(line).command();
    let status = command
        .stdin(Stdio::null())
        .stdout(to)
        .stderr(Stdio::null())
        .status();
    status.unwrap().code().unwrap()
}

#[test]
fn the_file_behind_stdout_is_left_out() {
    let t = TestTree::new();
    t.write("a", "1").write("d/b", "2");
    let create = |name: &str| File::create(t.join(name)).unwrap();
    assert_eq!(redirected(&t, "integrity manifest .", create("d/m")), 0);
    let text = String::from_utf8(t.read("d/m")).unwrap();
    assert!(
        !text.contains("\"path\":\"d/m\"") && text.contains("\"path\":\"d/b\""),
        "{text}"
    );
    t.bc_line("integrity verify . d/m").go().code(0);
    // Appended to, under any name.
    t.hard_link("d/m", "other name");
    let append = File::options()
        .append(true)
        .open(t.join("other name"))
        .unwrap();
    assert_eq!(redirected(&t, "integrity manifest .", append), 0);
    let text = String::from_utf8(t.read("d/m")).unwrap();
    let again = text.rfind("{\"type\":\"header\"").unwrap();
    assert!(
        !text[again..].contains("d/m") && !text[again..].contains("other name"),
        "{text}"
    );
}

/// Reports of verify and update that lie in the tree are no news of it, whether the manifest has
/// them or not.
#[test]
fn reports_in_the_tree_are_no_news() {
    let t = TestTree::new();
    t.write("a", "1").write("d/log", "before");
    let m = t.scratch("m.jsonl").to_str().unwrap().to_owned();
    t.bc_line(&format!("integrity manifest --output={m} ."))
        .go()
        .code(0);
    let recorded = std::fs::read(&m).unwrap();
    let ignore = "--ignore=mtime,ctime,dir-size,dir-nlink,nlink,ino";
    for (line, code) in [
        (format!("integrity verify {ignore} . {m}"), 0),
        (format!("integrity update . {m}"), 0),
        (format!("integrity verify {ignore} . {m}"), 0),
    ] {
        // Recorded and appended to; new.
        for name in ["d/log", "d/new"] {
            let to = File::options()
                .append(true)
                .create(true)
                .open(t.join(name))
                .unwrap();
            assert_eq!(redirected(&t, &line, to), code, "{line} >>{name}");
            let text = String::from_utf8(t.read(name)).unwrap();
            assert!(!text.contains(name), "{line}: {text}");
            let _ = std::fs::remove_file(t.join("d/new"));
        }
    }
    // The record of what was written to is as it was.
    let line = |text: &[u8]| {
        let text = String::from_utf8(text.to_vec()).unwrap();
        text.lines()
            .find(|line| line.contains("d/log"))
            .unwrap()
            .to_owned()
    };
    std::fs::write(&m, &recorded).unwrap();
    let to = File::options().append(true).open(t.join("d/log")).unwrap();
    t.write("news", "1");
    assert_eq!(redirected(&t, &format!("integrity update . {m}"), to), 0);
    let (was, now) = (line(&recorded), line(&std::fs::read(&m).unwrap()));
    let kept = now.strip_prefix(was.trim_end_matches('}')).unwrap();
    assert!(kept.starts_with(",\"unseen_at\":"), "{kept}");
}

/// A temporary that a killed update left beside a manifest in the tree is never recorded.
#[test]
fn leftovers_of_killed_updates_are_not_recorded() {
    let t = TestTree::new();
    t.write("a", "1");
    t.bc_line("integrity manifest --output=m.jsonl .")
        .go()
        .code(0);
    let name = leftover();
    t.write(&name, "half");
    t.write("b", "2");
    t.bc_line("integrity update . m.jsonl")
        .go()
        .code(0)
        .stdout_has("+ b\n");
    assert!(!t.exists(&name));
    let text = String::from_utf8(t.read("m.jsonl")).unwrap();
    assert!(!text.contains(".tmp"), "{text}");
    t.bc_line("integrity verify . m.jsonl").go().code(0);
}

/// The name that the temporary of `m.jsonl` of process 1 would have: FNV-1a of the target's name.
fn leftover() -> String {
    let hash = b"m.jsonl"
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    format!(".bc-{hash:016x}-1-0.tmp")
}
