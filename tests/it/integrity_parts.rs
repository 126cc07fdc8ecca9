//! Parts of a tree whose readers saw it in other ways than one reader would have, or that are of
//! trees which only look alike.

use bc_testkit::{TestTree, is_root};
use serde_json::Value;

use crate::common::Bc;
use crate::integrity_mounts::mounting;
use crate::integrity_shards::{file, merge};

fn record(t: &TestTree, index: u32, of: u32, more: &str) -> String {
    let path = file(t, &format!("part-{index}-of-{of}"));
    t.bc_line(&format!(
        "integrity manifest {more} --shard={index}/{of} -o {path} ."
    ))
    .go()
    .code(0);
    path
}

/// The entries of a manifest.
fn entries(manifest: &[u8]) -> Vec<Value> {
    let text = String::from_utf8(manifest.to_vec()).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines
        .filter(|line: &Value| line["type"] == "entry")
        .collect()
}

/// What is mounted is recorded where one run would record it: not where the options leave it out,
/// nor where it is listed elsewhere.
#[test]
fn mounts_that_are_passed_by_are_recorded_as_by_one_run() {
    for (up, options) in [
        (
            "for m in m1 m2 m3 m4; do mount -t tmpfs $m $m; echo x >$m/f; done",
            "--one-file-system",
        ),
        (
            "fill \"$S/one\"; for m in m1 m2 m3 m4; do up one $m; done",
            "",
        ),
    ] {
        let t = TestTree::new();
        for dir in ["m1", "m2", "m3", "m4"] {
            t.dir(dir);
        }
        t.write("d/f", "1");
        let script = format!(
            r#"
            {up}
            bc manifest {options} --output="$S/whole" .
            for i in 1 2 3; do
                bc manifest {options} --shard=$i/3 --output="$S/p$i" .
            done
            bc merge --output="$S/merged" "$S/p1" "$S/p2" "$S/p3"
            bc verify . "$S/merged"
            "#
        );
        let Some(out) = mounting(&t, &script) else {
            return;
        };
        assert_eq!(out.text(), "exit 0\n".repeat(6), "{}", out.error_text());
        let [merged, whole] =
            ["merged", "whole"].map(|name| entries(&std::fs::read(t.scratch(name)).unwrap()));
        assert_eq!(merged, whole, "{options}");
    }
}

/// A file under two paths that no move brought about is not said to be moved.
#[test]
fn one_file_under_several_paths_was_not_moved() {
    let t = TestTree::new();
    for n in 0..8 {
        t.write(format!("a{n}/f"), format!("{n}"));
        t.symlink(format!("../a{n}/f"), format!("b{n}/g"));
    }
    let parts = [1, 2].map(|index| record(&t, index, 2, "--follow-symlinks"));
    merge(&t, &parts).code(0).stderr_is("");

    let t = TestTree::new();
    for n in 0..8 {
        t.write(format!("a{n}/f"), format!("{n}"))
            .write(format!("b{n}/g"), "");
    }
    let script = r#"
        for n in 0 1 2 3 4 5 6 7; do mount --bind a$n/f b$n/g; done
        for i in 1 2; do bc manifest --shard=$i/2 --output="$S/p$i" .; done
        bc merge --output="$S/merged" "$S/p1" "$S/p2"
    "#;
    if let Some(out) = mounting(&t, script) {
        assert_eq!(out.text(), "exit 0\n".repeat(3), "{}", out.error_text());
    }
}

/// A directory that only its own reader may not read is missing from the whole, which says so.
#[test]
fn what_one_reader_could_not_read_is_told() {
    if !is_root() {
        return bc_testkit::left_out("readers with other rights need root");
    }
    let t = TestTree::new();
    for n in 0..12 {
        t.write(format!("d{n}/deep/f"), "x");
    }
    // Those that are in the second part as an entry and as a directory.
    let of_second = std::fs::read_to_string(record(&t, 2, 2, "")).unwrap();
    let has = |path: String| of_second.contains(&format!("\"path\":\"{path}\""));
    let mut closed = (0..12).filter(|n| has(format!("d{n}/deep")) && has(format!("d{n}/deep/f")));
    let closed = format!("d{}/deep", closed.next().expect("one of twelve"));
    t.mode(&closed, 0o700);
    let second = file(&t, "second");
    let out = t
        .bc_line("integrity manifest --shard=2/2 .")
        .as_nobody()
        .go();
    out.code(1);
    std::fs::write(&second, &out.stdout).unwrap();
    let parts = [record(&t, 1, 2, ""), second];
    merge(&t, &parts)
        .code(1)
        .stderr_has(format!("{closed}: open: Permission denied"));
}

/// Parts that say what they could not read make a whole that ends as one run does.
#[test]
fn parts_with_errors_end_like_one_run() {
    if !is_root() {
        return bc_testkit::left_out("readers with other rights need root");
    }
    let t = TestTree::new();
    t.write("f", "x").mode("f", 0o000).write("g", "y");
    let part = file(&t, "part");
    let out = t
        .bc_line("integrity manifest --shard=1/1 .")
        .as_nobody()
        .go();
    out.code(1);
    std::fs::write(&part, &out.stdout).unwrap();
    let merged = file(&t, "merged");
    t.bc_line(&format!("integrity merge -o {merged} {part}"))
        .go()
        .code(1)
        .stderr_has("f: open: Permission denied");
    assert!(std::path::Path::new(&merged).exists());
}

/// Two trees with the same directories are two trees.
#[test]
fn parts_of_other_directories_are_refused() {
    let t = TestTree::new();
    t.write("a/x", "1").write("b/y", "2");
    let part = |index: u32, name: &str, from: &str, to: &str| {
        let made = record(&t, index, 2, "");
        let text = std::fs::read_to_string(made).unwrap();
        assert!(text.contains(from), "{text}");
        let path = file(&t, name);
        std::fs::write(&path, sealed(&text.replace(from, to))).unwrap();
        path
    };
    let one = part(1, "one", "", "");
    let other = part(2, "inode", "\"root_ino\":", "\"root_ino\":7");
    let parts = [one, other];
    merge(&t, &parts)
        .code(2)
        .stderr_has("another directory")
        .stdout_is("");
    // The same number, on another machine's disk.
    let header = std::fs::read_to_string(&parts[0]).unwrap();
    let header: Value = serde_json::from_str(header.lines().next().unwrap()).unwrap();
    let local = |text: &str, machine: &str| {
        let (first, rest) = text.split_once('\n').unwrap();
        let mut header: Value = serde_json::from_str(first).unwrap();
        header["machine"] = machine.into();
        header["fs_uuid"] = Value::Null;
        header["mount_source"] = "/dev/vda".into();
        sealed(&format!("{header}\n{rest}"))
    };
    assert!(header["root"].is_string());
    let parts = [(1, "m1"), (2, "m2")].map(|(index, machine)| {
        let text = std::fs::read_to_string(record(&t, index, 2, "")).unwrap();
        let path = file(&t, machine);
        std::fs::write(&path, local(&text, machine)).unwrap();
        path
    });
    merge(&t, &parts)
        .code(2)
        .stderr_has("is of another machine")
        .stdout_is("");
}

/// What questions about many manifests order and compare by is looked at on arrival.
#[test]
fn headers_that_mislead_are_refused_by_check() {
    let t = TestTree::new();
    t.write("f", "x");
    let made = t.bc_line("integrity manifest .").go().code(0).text();
    let (path, header) = (file(&t, "claim"), made.lines().next().unwrap());
    let mut header: Value = serde_json::from_str(header).unwrap();
    let (_, rest) = made.split_once('\n').unwrap();
    for (key, value, why) in [
        ("created_at", "yesterday", "created_at is no time in UTC"),
        (
            "created_at",
            "2026-01-01T00:00:00+05:00",
            "created_at is no time in UTC",
        ),
        ("updated_at", "", "updated_at is no time in UTC"),
        ("algorithm", "rot13", "rot13"),
    ] {
        let right = header[key].take();
        header[key] = value.into();
        std::fs::write(&path, sealed(&format!("{header}\n{rest}"))).unwrap();
        t.bc_line(&format!("integrity merge --check {path}"))
            .go()
            .code(1)
            .stderr_has(why);
        header[key] = right;
        if header[key].is_null() {
            header.as_object_mut().unwrap().remove(key);
        }
    }
}

/// The text with the digest in its trailer made right.
pub fn sealed(text: &str) -> String {
    let body = text.rfind("{\"type\":\"trailer\"").unwrap();
    let mut hasher = bc_digest::Hasher::new(bc_digest::Algorithm::Sha256);
    hasher.update(&text.as_bytes()[..body]);
    let (body, trailer) = text.split_at(body);
    let at = trailer.find("\"sha256\":\"").unwrap() + 10;
    let digest = hasher.finalize();
    format!("{body}{}{digest}{}", &trailer[..at], &trailer[at + 64..])
}
