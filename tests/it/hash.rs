//! `bc hash hash`.

use bc_testkit::{TestTree, left_out, tool};

use crate::common::{ABC, Bc, EMPTY};

#[test]
fn gnu_lines_sorted_bytewise() {
    let t = TestTree::new();
    t.write("b", "abc")
        .write("a/x", "")
        .write("a-b", "abc")
        .write(".hidden", "abc");
    t.bc_line("hash .")
        .go()
        .code(0)
        .stderr_is("")
        .stdout_is(format!(
            "{ABC}  ./.hidden\n{ABC}  ./a-b\n{EMPTY}  ./a/x\n{ABC}  ./b\n"
        ));
    let expected = format!("{ABC}  b\n");
    t.bc_line("hash hash b").go().code(0).stdout_is(&expected);
    t.bc_line("hash -- b").go().code(0).stdout_is(&expected);
}

#[test]
fn paths_print_as_given() {
    let t = TestTree::new();
    t.write("d/e/f", "abc");
    for (given, shown) in [
        ("d", "d/e/f"),
        ("d/", "d/e/f"),
        ("./d//e", "./d//e/f"),
        ("d/e/f", "d/e/f"),
    ] {
        t.bc_line("hash")
            .arg(given)
            .go()
            .code(0)
            .stdout_is(format!("{ABC}  {shown}\n"));
    }
    t.bc_line("hash --relative d")
        .go()
        .code(0)
        .stdout_is(format!("{ABC}  e/f\n"));
}

#[test]
fn names_are_escaped_as_gnu_does() {
    let t = TestTree::new();
    t.write_bytes(b"new\nline", "abc")
        .write_bytes(b"back\\slash", "abc")
        .write_bytes(b"c\rr", "abc");
    t.bc_line("hash --relative .")
        .go()
        .code(0)
        .stdout_is(format!(
            "\\{ABC}  back\\\\slash\n\\{ABC}  c\\rr\n\\{ABC}  new\\nline\n"
        ));
    t.bc_line("hash --relative -z .")
        .go()
        .code(0)
        .stdout_is(format!(
            "{ABC}  back\\slash\0{ABC}  c\rr\0{ABC}  new\nline\0"
        ));
}

#[test]
fn bsd_and_several_algorithms() {
    let t = TestTree::new();
    t.write("abc", "abc");
    t.bc_line("hash --type=sha1,md5 abc")
        .go()
        .code(0)
        .stdout_is(
            "SHA1 (abc) = a9993e364706816aba3e25717850c26c9cd0d89d\n\
         MD5 (abc) = 900150983cd24fb0d6963f7d28e17f72\n",
        );
    t.bc_line("hash --format=bsd abc")
        .go()
        .code(0)
        .stdout_is(format!("SHA256 (abc) = {ABC}\n"));
}

#[test]
fn csv_and_json() {
    let t = TestTree::new();
    t.write("a,b", "abc").write("empty", "");
    let out = t.bc_line("hash --format=csv --relative .").go();
    out.code(0)
        .stdout_has("path")
        .stdout_has(format!("\"a,b\",3,{ABC}"));
    let out = t.bc_line("hash --format=json .").go();
    let document: serde_json::Value = serde_json::from_slice(&out.code(0).stdout).unwrap();
    assert_eq!(document["schema"], 1);
    assert_eq!(document["files"][0]["path"], "./a,b");
    assert_eq!(document["files"][0]["size"], 3);
    assert_eq!(document["files"][0]["digests"]["sha256"], ABC);
    assert_eq!(document["summary"]["files"], 2);
    let out = t.bc_line("hash --format=jsonl .").go();
    let lines: Vec<serde_json::Value> = out
        .code(0)
        .lines()
        .iter()
        .map(|l| serde_json::from_slice(l).unwrap())
        .collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[0]["type"], "header");
    assert_eq!(lines[1]["digests"]["sha256"], ABC);
    assert_eq!(lines[3]["type"], "summary");
    assert_eq!(lines[3]["files"], 2);
}

#[test]
fn stdin() {
    let t = TestTree::new();
    t.write("z", "abc");
    t.bc_line("hash -")
        .stdin("abc")
        .go()
        .code(0)
        .stdout_is(format!("{ABC}  -\n"));
    t.bc_line("hash")
        .go()
        .code(0)
        .stdout_is(format!("{EMPTY}  -\n"));
    t.bc_line("hash z -")
        .stdin("")
        .go()
        .code(0)
        .stdout_is(format!("{EMPTY}  -\n{ABC}  z\n"));
}

#[test]
fn a_missing_root_does_not_stop_the_others() {
    let t = TestTree::new();
    t.write("a", "abc");
    t.bc_line("hash missing a")
        .go()
        .code(1)
        .stdout_is(format!("{ABC}  a\n"))
        .stderr_has("bc hash: missing: ")
        .stderr_has("No such file or directory (os error 2)");
}

#[test]
fn files_and_failures_add_up() {
    let t = TestTree::new();
    t.write("a", "abc")
        .write("secret", "abc")
        .mode("secret", 0o000)
        .write("dir/x", "abc")
        .mode("dir", 0o000);
    let out = t.bc_line("hash .").as_nobody().go();
    out.code(1).stdout_is(format!("{ABC}  ./a\n"));
    out.stderr_has("bc hash: ./secret: open: Permission denied (os error 13)");
    out.stderr_has("bc hash: ./dir: ");
    assert_eq!(out.error_lines().len(), 2, "{}", out.error_text());
    t.mode("dir", 0o755);
}

#[test]
fn special_files_are_never_opened() {
    let t = TestTree::new();
    t.fifo("fifo")
        .write("a", "abc")
        .symlink("a", "link")
        .symlink("missing", "dangling");
    t.bc_line("hash .")
        .go()
        .code(0)
        .stdout_is(format!("{ABC}  ./a\n"));
    // Named by the user, so said.
    t.bc_line("hash fifo")
        .go()
        .code(1)
        .stdout_is("")
        .stderr_has("bc hash: fifo: ");
    // A root that is a link is followed, as by find -H.
    t.bc_line("hash link")
        .go()
        .code(0)
        .stdout_is(format!("{ABC}  link\n"));
    t.bc_line("hash --follow-symlinks --relative .")
        .go()
        .code(0)
        .stdout_is(format!("{ABC}  a\n{ABC}  link\n"));
}

#[test]
fn output_is_atomic_and_left_out_of_the_walk() {
    let t = TestTree::new();
    // That of last time, when there was another file.
    t.write("a", "abc").write("out", format!("{ABC}  ./gone\n"));
    t.bc_line("hash --output=out .").go().code(0).stdout_is("");
    assert_eq!(t.read("out"), format!("{ABC}  ./a\n").as_bytes());
    t.bc_line("hash --output=out .").go().code(0);
    assert_eq!(t.read("out"), format!("{ABC}  ./a\n").as_bytes());
    // Whatever fails, the old file stays and nothing else appears.
    t.bc_line("hash --output=out --files-from=nowhere")
        .go()
        .code(2);
    assert_eq!(t.read("out"), format!("{ABC}  ./a\n").as_bytes());
    t.bc_line("hash --output=missing/out a")
        .go()
        .code(2)
        .stderr_has("missing/out: ");
    let names = std::fs::read_dir(t.path()).unwrap().count();
    assert_eq!(names, 2, "no temporary is left");
}

#[test]
fn full_disk_is_reported() {
    let t = TestTree::new();
    t.write("a", "abc");
    t.bc_line("hash --output=/dev/full a")
        .go()
        .code(2)
        .stderr_has("/dev/full: write: No space left on device");
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let status = t
        .bc_line("hash a")
        .command()
        .stdout(full)
        .stderr(std::process::Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(2));
    match bc_testkit::full_disk(64 << 10) {
        Ok(disk) => {
            let out = disk.path().join("out");
            std::fs::write(&out, "old").unwrap();
            for i in 0..200 {
                t.write(format!("{i:0200}"), "x");
            }
            // Twice the tmpfs: cannot fit whatever is freed.
            let zeros = vec![0_u8; 1 << 20];
            let _ = std::fs::write(disk.path().join("filler"), zeros);
            t.bc_line("hash .")
                .arg("--output")
                .arg(&out)
                .go()
                .code(2)
                .stderr_has("No space left on device");
            assert_eq!(std::fs::read(&out).unwrap(), b"old");
        }
        Err(reason) => left_out(&reason),
    }
}

#[test]
fn read_only_directory() {
    let t = TestTree::new();
    t.write("a", "abc").dir("ro").mode("ro", 0o555);
    t.bc_line("hash --output=ro/out a")
        .as_nobody()
        .go()
        .code(2)
        .stderr_has("ro/out: create: Permission denied");
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let t = TestTree::new();
    for i in 0..3000 {
        t.write(format!("{i:0100}"), "");
    }
    let mut child = t
        .bc_line("hash .")
        .command()
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(0));
    assert!(
        out.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
}

#[test]
fn every_algorithm_equals_its_standard_tool() {
    let t = TestTree::new();
    for size in [
        0, 1, 55, 56, 63, 64, 65, 111, 112, 127, 128, 129, 4095, 4096, 131_072, 300_001,
    ] {
        let content: Vec<u8> = (0..size).map(|i| (i * 7 % 251) as u8).collect();
        t.write(format!("f{size:06}"), content);
    }
    for (algorithm, program, args) in [
        ("md5", "md5sum", ""),
        ("sha1", "sha1sum", ""),
        ("sha224", "sha224sum", ""),
        ("sha256", "sha256sum", ""),
        ("sha384", "sha384sum", ""),
        ("sha512", "sha512sum", ""),
        ("blake2b", "b2sum", ""),
        ("blake2b-256", "b2sum", "-l 256"),
        ("blake3", "b3sum", ""),
        ("xxh32", "xxhsum", "-H0"),
        ("xxh64", "xxhsum", "-H1"),
        ("xxh128", "xxhsum", "-H2"),
    ] {
        if tool(program).is_none() {
            left_out(&format!("{algorithm}: {program} is not installed"));
            continue;
        }
        let mut names: Vec<_> = std::fs::read_dir(t.path())
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect();
        names.sort();
        let expected = t
            .run(program)
            .args(args.split_whitespace())
            .args(names)
            .go();
        t.bc_line("hash --relative .")
            .arg(format!("--type={algorithm}"))
            .go()
            .code(0)
            .stdout_is(&expected.stdout);
        let tagged = t
            .bc_line("hash --format=bsd --relative .")
            .arg(format!("--type={algorithm}"))
            .go();
        // The b3sum of Debian 12 reads no tags, and xxhsum tells its kinds by them alone.
        let manifest = if program == "b3sum" {
            &expected.stdout
        } else {
            &tagged.stdout
        };
        t.write("../manifest", manifest);
        t.run(program).args(["-c", "../manifest"]).go().code(0);
    }
}

/// Versions of xxhsum by what they read: XXH3 in tagged lines from 0.8.1 on, in plain ones from 0.8.3
/// on.
#[test]
fn xxhsum_reads_lists_of_xxh3() {
    if tool("xxhsum").is_none() {
        return left_out("xxhsum is not installed");
    }
    let t = TestTree::new();
    t.write("d/a", "abc").write("d/b", "abcd");
    let said = t.run("xxhsum").arg("--version").go();
    let said = said.text() + &said.error_text();
    let version = said.split_whitespace().find_map(|word| {
        let numbers: Option<Vec<u32>> = word.split('.').map(|n| n.parse().ok()).collect();
        numbers.filter(|numbers| numbers.len() == 3)
    });
    let version = version.unwrap_or_else(|| panic!("no version in {said}"));
    for (format, since) in [("bsd", [0, 8, 1]), ("gnu", [0, 8, 3])] {
        t.bc_line(&format!("hash --type=xxh3 --format={format} -o list d"))
            .go()
            .code(0);
        let reads = t.run("xxhsum").args(["-c", "list"]).go().status.success();
        assert_eq!(reads, version >= since.to_vec(), "{format}, {version:?}");
    }
}

#[test]
fn threads_and_readers_agree() {
    let t = TestTree::new();
    bc_testkit::Synth {
        files: 400,
        bytes: 8 << 20,
        ..bc_testkit::Synth::default()
    }
    .build(t.path())
    .unwrap();
    let expected = t
        .bc_line("hash --threads=mono --io=sync --type=sha256,md5,xxh128 .")
        .go();
    expected.code(0);
    let uring = t
        .bc_line("hash --io=uring --threads=mono .")
        .go()
        .status
        .code()
        != Some(2);
    if !uring {
        left_out("io_uring is refused here");
    }
    for threads in ["auto", "0", "compute", "io", "8"] {
        for io in ["auto", "sync", "uring"] {
            if io == "uring" && !uring {
                continue;
            }
            t.bc_line("hash --type=sha256,md5,xxh128 .")
                .arg(format!("--threads={threads}"))
                .arg(format!("--io={io}"))
                .go()
                .code(0)
                .stdout_is(&expected.stdout);
        }
    }
}

#[test]
fn usage_errors() {
    let t = TestTree::new();
    t.write("a", "abc");
    for (line, message) in [
        ("hash --type=sha9 a", "sha9"),
        ("hash --type=md5,md5 a", "named twice"),
        ("hash --format=gnu --type=md5,sha1 a", "bsd"),
        ("hash --format=json -z a", "-z"),
        ("hash --threads=1025 a", "1024"),
        ("hash --io=mmap a", "mmap"),
        ("hash --min-size=many a", "many"),
        ("hash --exclude=[ a", "--exclude"),
        ("hash --nonsense a", "--nonsense"),
    ] {
        t.bc_line(line)
            .go()
            .code(2)
            .stdout_is("")
            .stderr_has(message);
    }
}
