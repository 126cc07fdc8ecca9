//! `bc integrity` as its users meet it: manifest, verify and diff, exit codes and streams.

use bc_testkit::TestTree;

use crate::common::{ABC, BC, Bc};

fn sample() -> TestTree {
    let t = TestTree::new();
    t.write("a", "abc")
        .write("dir/b", "content of b")
        .write("dir/c", "content of c")
        .symlink("a", "link");
    t
}

/// Writes the tree's manifest beside it and gives its path.
fn record(t: &TestTree) -> String {
    let path = t.scratch("m.jsonl").to_str().unwrap().to_owned();
    t.bc_line(&format!("integrity manifest --output={path} ."))
        .go()
        .code(0)
        .stdout_is("")
        .stderr_is("");
    path
}

/// Changes one byte and puts the time back.
fn rot(t: &TestTree, path: &str) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(t.join(path))
        .unwrap();
    let mtime = file.metadata().unwrap().modified().unwrap();
    file.write_all_at(b"#", 1).unwrap();
    file.set_modified(mtime).unwrap();
}

#[test]
fn manifest_to_stdout_and_to_a_file_are_the_same_bytes() {
    let t = sample();
    let out = t.bc_line("integrity manifest .").go();
    out.code(0).stderr_is("");
    let file = std::fs::read(record(&t)).unwrap();
    let entries = |bytes: &[u8]| {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let lines: Vec<String> = text.lines().map(str::to_string).collect();
        // The header has the time and the trailer its digest.
        lines[1..lines.len() - 1].to_vec()
    };
    assert_eq!(entries(&out.stdout), entries(&file));
    assert!(
        out.text()
            .contains("\"path\":\"a\",\"kind\":\"file\",\"size\":3,")
    );
    assert!(out.text().contains(ABC));
    for threads in ["mono", "3"] {
        let again = t
            .bc_line(&format!("integrity manifest --threads={threads} ."))
            .go();
        assert_eq!(entries(&again.stdout), entries(&file));
    }
}

#[test]
fn an_unchanged_tree_verifies_in_silence() {
    let t = sample();
    let m = record(&t);
    for mode in ["strict", "content", "meta"] {
        t.bc_line(&format!("integrity verify --mode={mode} . {m}"))
            .go()
            .code(0)
            .stdout_is("")
            .stderr_is("");
    }
    t.bc_line(&format!("integrity verify -v . {m}"))
        .go()
        .code(0)
        .stdout_has("ok dir/b\n");
}

#[test]
fn differences_exit_1_and_damage_exits_3() {
    let t = sample();
    let m = record(&t);
    t.write("new", "new").remove("dir/c").mode("a", 0o600);
    let verify = |line: &str| t.bc_line(&format!("integrity verify {line} . {m}")).go();
    let out = verify("--mode=content");
    out.code(1)
        .stdout_is("- dir/c\n+ new\n")
        .stderr_has("1 removed");
    verify("").code(1).stdout_has("~m a mode: 0644 -> 0600\n");
    verify("--ignore=mode,mtime,ctime,dir-size")
        .code(1)
        .stdout_is("- dir/c\n+ new\n");
    verify("--fail-fast --mode=content")
        .code(1)
        .stdout_is("- dir/c\n");
    rot(&t, "dir/b");
    verify("--mode=content").code(3).stdout_is(
        "!! dir/b: ctime changed, probably a rewrite with its mtime reset\n- dir/c\n+ new\n",
    );
    verify("--mode=meta").code(1);
}

#[test]
fn json_reports_are_lines_with_header_and_summary() {
    let t = sample();
    let m = record(&t);
    std::fs::rename(t.join("dir/c"), t.join("dir/d")).unwrap();
    let out = t
        .bc_line(&format!(
            "integrity verify --mode=content --format=json . {m}"
        ))
        .go();
    out.code(1);
    let lines: Vec<serde_json::Value> = out
        .lines()
        .iter()
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(
        (&lines[0]["type"], &lines[0]["schema"]),
        (&"header".into(), &1.into())
    );
    assert_eq!(lines[1]["class"], "moved");
    assert_eq!(
        (&lines[1]["path"], &lines[1]["to"]),
        (&"dir/c".into(), &"dir/d".into())
    );
    assert_eq!(lines[2]["type"], "summary");
    assert_eq!(
        (&lines[2]["moved"], &lines[2]["ok"]),
        (&1.into(), &5.into())
    );
    assert_eq!(lines[2]["result"], "different");
}

#[test]
fn what_cannot_be_trusted_exits_2() {
    let t = sample();
    let m = record(&t);
    let bytes = std::fs::read(&m).unwrap();
    let bad = t.scratch("bad.jsonl").to_str().unwrap().to_owned();
    std::fs::write(&bad, &bytes[..bytes.len() - 10]).unwrap();
    let verify = |line: &str| t.bc_line(&format!("integrity verify {line}")).go();
    verify(&format!(". {bad}"))
        .code(2)
        .stdout_is("")
        .stderr_has("truncated");
    verify(&format!("--force . {bad}"))
        .code(0)
        .stdout_is("")
        .stderr_has("truncated");
    verify(&format!("nowhere {m}"))
        .code(2)
        .stdout_is("")
        .stderr_has("nowhere");
    t.dir("mount");
    verify(&format!("mount {m}"))
        .code(2)
        .stdout_is("")
        .stderr_has("not mounted?");
    verify(". missing.jsonl")
        .code(2)
        .stdout_is("")
        .stderr_has("missing.jsonl");
    verify(&format!("--ignore=colour . {m}"))
        .code(2)
        .stdout_is("")
        .stderr_has("colour");
}

#[test]
fn compressed_and_from_a_pipe() {
    let t = sample();
    let m = t.scratch("m.jsonl.zst").to_str().unwrap().to_owned();
    t.bc_line(&format!("integrity manifest --output={m} ."))
        .go()
        .code(0);
    assert!(
        std::fs::read(&m)
            .unwrap()
            .starts_with(&[0x28, 0xb5, 0x2f, 0xfd])
    );
    t.bc_line(&format!("integrity verify . {m}"))
        .go()
        .code(0)
        .stdout_is("");
    t.bc()
        .args(["integrity", "verify", ".", "-"])
        .stdin(std::fs::read(&m).unwrap())
        .go()
        .code(0)
        .stdout_is("");
}

#[test]
fn a_manifest_inside_its_tree_does_not_list_itself() {
    let t = sample();
    t.bc_line("integrity manifest --output=dir/m.jsonl .")
        .go()
        .code(0);
    assert!(
        !String::from_utf8(t.read("dir/m.jsonl"))
            .unwrap()
            .contains("m.jsonl\",\"kind")
    );
    t.bc_line("integrity verify . dir/m.jsonl")
        .go()
        .code(0)
        .stdout_is("");
}

#[test]
fn diff_compares_manifests_offline() {
    let t = sample();
    let old = record(&t);
    let new = t.scratch("new.jsonl").to_str().unwrap().to_owned();
    t.write("dir/b", "something else").mtime("dir/b", 5, 0);
    t.bc_line(&format!("integrity manifest --output={new} ."))
        .go()
        .code(0);
    t.bc_line(&format!("integrity diff {old} {old}"))
        .go()
        .code(0)
        .stdout_is("");
    t.bc_line(&format!("integrity diff {old} {new}"))
        .go()
        .code(1)
        .stdout_is("~c dir/b\n");
    let other = t.scratch("other.jsonl").to_str().unwrap().to_owned();
    t.bc_line(&format!(
        "integrity manifest --algorithm=blake3 --output={other} ."
    ))
    .go()
    .code(0);
    t.bc_line(&format!("integrity diff {old} {other}"))
        .go()
        .code(2)
        .stdout_is("")
        .stderr_has("blake3");
}

#[test]
fn the_applet_by_its_own_name() {
    let t = sample();
    let m = record(&t);
    let link = t.scratch("bcintegrity");
    std::os::unix::fs::symlink(BC, &link).unwrap();
    t.run(&link)
        .args(["verify", ".", &m])
        .go()
        .code(0)
        .stdout_is("");
}

#[test]
fn hostile_names_stay_on_their_lines() {
    let t = TestTree::new();
    t.write("plain", "1");
    let m = record(&t);
    t.write_bytes(b"new\n!! plain: fake\x1b[2J", "2");
    t.bc_line(&format!("integrity verify --mode=content . {m}"))
        .go()
        .code(1)
        .stdout_is("+ new\\n!! plain: fake\\x1b[2J\n");
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    use std::io::Read;
    use std::process::Stdio;
    let t = TestTree::new();
    t.write("a", "1");
    let m = record(&t);
    for n in 0..4000 {
        t.write(format!("a-rather-long-name-to-fill-the-pipe-{n}"), "");
    }
    let mut child = t
        .bc_line(&format!("integrity verify --mode=content . {m}"))
        .command()
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 2];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    assert_eq!(&first, b"+ ");
    let mut said = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert!(!said.contains("pipe"), "{said}");
    let status = child.wait().unwrap();
    assert_ne!(status.code(), Some(2), "{said}");
}

#[test]
fn some_large_files_are_work_for_every_cpu() {
    if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() < 2) {
        bc_testkit::left_out("a second CPU");
        return;
    }
    let t = TestTree::new();
    for nth in 0..70 {
        let file = std::fs::File::create(t.join(format!("{nth}")));
        file.unwrap().set_len(4 << 20).unwrap();
    }
    let m = t.scratch("m.jsonl").display().to_string();
    for line in [
        "hash -v .",
        &format!("integrity manifest -v --output={m} ."),
    ] {
        let out = t.bc_line(line).go();
        out.code(0).stderr_has(" threads");
        assert!(
            !out.error_text().contains(" 1 threads"),
            "{}",
            out.error_text()
        );
    }
}

#[test]
fn a_full_disk_is_reported() {
    let t = sample();
    if !std::path::Path::new("/dev/full").exists() {
        bc_testkit::left_out("/dev/full");
        return;
    }
    let m = record(&t);
    t.remove("a");
    let verify = format!("integrity verify --output=/dev/full . {m}");
    for line in ["integrity manifest --output=/dev/full .", &verify] {
        t.bc_line(line)
            .go()
            .code(2)
            .stderr_has("No space left on device");
    }
}
