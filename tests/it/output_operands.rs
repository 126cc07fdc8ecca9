//! Outputs that meet a file of the user's: what a command is given is no place for its result, unless
//! it is the result of last time.

use bc_testkit::{TestTree, is_root, left_out, tool};
use bit_crafts::{Algorithm, CreateOptions, Means, Overwrite};

use crate::common::{BC, Bc};

const REFUSED: &str = "no list that it writes";

/// A tree with something to be lost.
fn tree() -> TestTree {
    let t = TestTree::new();
    t.write("d/doc", "the only copy")
        .write("d/sub/doc", "another one")
        .write("d/twin", "twin")
        .write("e", "twin")
        .write("d/one/x", "the same")
        .write("d/two/x", "the same")
        .write("list", "d/doc\ne\n")
        .hard_link("d/doc", "hard")
        .symlink("d/doc", "link")
        .symlink("d", "way");
    t
}

#[test]
fn what_a_command_is_given_is_not_replaced() {
    let t = tree();
    t.bc_line("hash -o sums d e").go().code(0);
    t.bc_line("integrity manifest -o m d").go().code(0);
    for line in [
        "hash -o d/doc d/doc e",
        "hash -o ./d/../d/doc e d/doc",
        "hash -o link d/doc e",
        "hash -o hard d/doc e",
        "hash -o d/doc link e",
        "hash -o d/doc d",
        "hash -o d/sub/doc d",
        "hash -o way/sub/doc d",
        "hash -o d/sub/doc way",
        "hash -o hard d",
        "hash -o d/doc --files-from=list",
        "hash -o link --files-from=list",
        // Nor what filters leave out of it.
        "hash -o d/doc --include=twin d",
        "hash -o d/doc --exclude=doc d",
        "hash -o d/sub/doc --max-depth=1 d",
        "hash -o d/doc --resume d",
        "hash --format=jsonl -o d/doc d",
        "dup -o d/doc d e",
        "dup -o d/sub/doc d/sub/doc d/twin e",
        "dup --format=html -o d/doc d",
        "dup -o d/doc e --reference=d",
        "dup dirs -o d/doc d",
        "integrity manifest -o d/doc d",
        "integrity manifest -o hard d",
        "integrity verify -o d/doc d m",
        "integrity verify --format=json -o hard d m",
        // The other file that a run writes.
        "hash --metrics=d/doc d",
        "hash --metrics=hard d/doc e",
        "hash --metrics=d/doc --files-from=list",
        "hash check --metrics=d/doc sums",
        "dup unique --metrics=d/doc e --reference=d",
        "dup prune --metrics=d/doc --action=delete --yes --dry-run d e",
        "integrity update --metrics=d/doc d m",
        "integrity restore --metrics=hard --from=d e m",
        "copy --metrics=d/doc d to",
    ] {
        let out = t.bc_line(line).go();
        out.code(2).stdout_is("").stderr_has(REFUSED);
        assert_eq!(t.read("d/doc"), b"the only copy", "{line}");
        assert_eq!(t.read("d/sub/doc"), b"another one", "{line}");
        assert!(!t.exists("to") && !t.exists("d/doc.partial"), "{line}");
    }
}

/// Nor what a saved report names, whatever becomes of it.
#[test]
fn what_a_report_names_is_not_replaced() {
    let t = tree();
    t.bc_line("dup --format=json -o one.json d e").go().code(0);
    t.bc_line("dup --format=json -o two.json d --reference=e")
        .go()
        .code(0);
    t.write("e2/doc", "of a reference");
    for line in [
        "--from=one.json --metrics=d/twin",
        "--from=one.json --metrics=d/twin --dry-run",
        "--from=one.json --metrics=d/twin --exclude=twin",
        "--from=two.json --metrics=e",
        "--from=two.json --metrics=e2/doc --reference=e2",
    ] {
        let out = t.bc_line("dup prune --action=delete --yes");
        let out = out.args(line.split_whitespace()).go();
        out.code(2).stdout_is("").stderr_has(REFUSED);
        for (file, content) in [
            ("d/twin", "twin"),
            ("e", "twin"),
            ("e2/doc", "of a reference"),
        ] {
            assert_eq!(t.read(file), content.as_bytes(), "{line}: {file}");
        }
    }
}

/// Metrics of last time are replaced: nothing is given up for a file that has the same content.
#[test]
fn metrics_are_no_copy_of_anything() {
    for line in ["d", "--dirs d", "--from=report.json"] {
        let t = tree();
        let metrics = "# HELP bc_files Files.\nbc_files 7\n";
        t.write("d/m.prom", metrics).write("d/z.prom", metrics);
        t.write("d/one/m", metrics).write("d/two/m", metrics);
        t.bc_line("dup --format=json -o report.json d").go().code(0);
        let prune = t.bc_line("dup prune --action=delete --yes --metrics=d/m.prom");
        prune.args(line.split_whitespace()).go().code(0);
        assert_ne!(t.read("d/m.prom"), metrics.as_bytes(), "{line}");
        let left = ["d/z.prom", "d/one/m", "d/two/m"];
        let left = left.map(|file| t.exists(file));
        assert!(left.contains(&true), "{line}: {left:?}");
    }
}

/// No output replaces what its own run has put in that place.
#[test]
fn what_a_run_puts_somewhere_is_not_replaced() {
    let t = tree();
    const PUT: &str = "a file came there while this command ran";
    let refused = |line: &str, file: &str, content: &str| {
        t.bc_line(line).go().code(2).stderr_has(PUT);
        assert_eq!(t.read(file), content.as_bytes(), "{line}");
    };
    t.bc_line("dup prune --action=delete --yes --journal=steps --keep=first d")
        .go()
        .code(0);
    assert!(!t.exists("d/two/x"));
    refused("dup undo steps --metrics=d/two/x", "d/two/x", "the same");
    refused(
        "dup prune --action=move:to --yes --keep=first d --metrics=to/d/two/x",
        "to/d/two/x",
        "the same",
    );
    refused("copy -T d there --metrics=there/twin", "there/twin", "twin");
    // Nor what an earlier one has put there.
    for line in [
        "dup undo --last --metrics=to/d/two/x --dry-run",
        "dup prune --action=move:to --yes d --metrics=to/d/two/x",
    ] {
        t.bc_line(line).go().code(2).stderr_has("no list that");
        assert_eq!(t.read("to/d/two/x"), b"the same", "{line}");
    }
    // Where nothing comes there is a place for it.
    t.bc_line("copy -T d there --metrics=there/new")
        .go()
        .code(0);
    t.bc_line("copy -T d there --metrics=there/new")
        .go()
        .code(0);
}

/// A reference that is a file is read, like any other list.
#[test]
fn a_reference_is_not_replaced() {
    let t = tree();
    t.bc_line("integrity manifest -o m.jsonl d").go().code(0);
    let before = t.read("m.jsonl");
    t.bc_line("dup scan -o m.jsonl e --reference=m.jsonl")
        .go()
        .code(2)
        .stderr_has("is read by this command");
    assert_eq!(t.read("m.jsonl"), before);
}

/// The result of last time is a list, whatever its format; that of another command is none.
#[test]
fn the_result_of_last_time_is_replaced() {
    let t = tree();
    let metrics = ["d/out.prom", "d/out.json"].map(|file| format!("hash --metrics={file} d"));
    let mut lines: Vec<String> = metrics.to_vec();
    for format in ["gnu", "bsd", "json", "jsonl", "csv"] {
        lines.push(format!("hash --format={format} -o d/out d"));
    }
    lines.push("hash -z -o d/out d".to_owned());
    lines.push("hash --type=crc,md5 -o d/out d".to_owned());
    for format in ["text", "json", "jsonl", "csv", "fdupes", "script", "html"] {
        lines.push(format!("dup --format={format} -o d/out d e"));
    }
    for format in ["text", "json", "jsonl", "html"] {
        lines.push(format!("dup dirs --format={format} -o d/out d"));
    }
    lines.push("integrity manifest -o d/out d".to_owned());
    lines.push("integrity manifest -o d/out.zst d".to_owned());
    for line in &lines {
        t.bc_line(line).go();
        // Once more over its own result, of which there is something now.
        let out = t.bc_line(line).go();
        let file = line.split_whitespace().find_map(|word| {
            let name = word.strip_prefix("--metrics=").unwrap_or(word);
            name.starts_with("d/out").then_some(name)
        });
        let file = file.unwrap();
        out.code(0).stderr_is("");
        assert!(!t.read(file).is_empty(), "{line}");
        t.remove(file);
    }
    // A report of paths has no header: known by its names, in whichever words they were given.
    for line in [
        "dup -o d/out d e",
        "dup -o d/out ./e ./d",
        "dup --format=fdupes -o d/out way/ e",
    ] {
        t.bc_line(line).go().code(0);
    }
    // Empty ones too: the shell, or mktemp, has made them.
    t.write("d/out", "");
    t.bc_line("hash -o d/out d").go().code(0);
    // No command takes another's for its own.
    let sums = t.read("d/out");
    for line in ["dup -o d/out d", "integrity manifest -o d/out d"] {
        t.bc_line(line).go().code(2).stderr_has(REFUSED);
        assert_eq!(t.read("d/out"), sums, "{line}");
    }
    // What is none of its operands is replaced, as ever.
    t.write("old", "a letter");
    t.bc_line("hash -o old d").go().code(0);
    assert!(t.read("old").ends_with(b"\n"));
}

#[test]
fn a_bind_mount_hides_nothing() {
    for needed in ["unshare", "mount"] {
        if tool(needed).is_none() {
            return left_out(&format!("{needed} is not installed"));
        }
    }
    for (mount, line) in [
        ("mount --bind d view", "hash -o view/sub/doc d"),
        ("mount --bind d/sub view", "hash -o view/doc d"),
        (
            "mount --bind d/sub view",
            "integrity manifest -o view/doc d",
        ),
        ("touch v; mount --bind d/doc v", "dup -o v d e"),
    ] {
        let t = tree();
        t.dir("view");
        let script = format!("{{ {mount}; }} || exit 77\n{BC} {line}");
        let mut run = t.run("unshare");
        if !is_root() {
            run = run.arg("-r");
        }
        let out = run.args(["-m", "sh", "-c", &script]).go();
        if matches!(out.status.code(), Some(77 | 1)) {
            return left_out(&format!("cannot mount: {}", out.error_text()));
        }
        out.code(2).stderr_has(REFUSED);
        assert_eq!(t.read("d/doc"), b"the only copy", "{line}");
        assert_eq!(t.read("d/sub/doc"), b"another one", "{line}");
    }
}

#[test]
fn a_manifest_of_a_copy_replaces_no_file_of_it() {
    let t = tree();
    t.write("to/d/doc", "old").write("letter", "a letter");
    t.hard_link("e", "e2")
        .symlink("d/doc", "l")
        .symlink("letter", "ll");
    for line in [
        "copy --manifest=d/doc d to",
        "copy --manifest=./d/../d/doc d to",
        "copy --manifest=hard d to",
        "copy --manifest=link d to",
        "copy --manifest=e2 e to",
        "copy --manifest=e e to",
        "copy --manifest=d/new d to",
        "copy --manifest=way/sub/new d to",
        "copy --manifest=to/d/doc --on-conflict=replace d to",
        "copy --manifest=to/d/twin d to",
        "copy --manifest=fresh/twin -T d fresh",
        "copy --manifest=fresh/sub/doc -T way/. fresh",
        "copy --manifest=letter d to",
        "copy --manifest=ll d to",
        "copy --manifest=to d to",
        "copy --manifest=d/doc --dry-run d to",
    ] {
        let out = t.bc_line(line).go();
        out.code(2).stdout_is("");
        for (file, content) in [
            ("d/doc", "the only copy"),
            ("to/d/doc", "old"),
            ("letter", "a letter"),
            ("e", "twin"),
        ] {
            assert_eq!(t.read(file), content.as_bytes(), "{line}");
        }
        assert!(
            !t.exists("to/d/twin") && !t.exists("fresh") && !t.exists("d/new"),
            "{line}"
        );
    }
    // One of the same destination is carried on.
    for _ in 0..2 {
        t.bc_line("copy --manifest=m -T d fresh").go().code(0);
        t.bc_line("integrity verify fresh m").go().code(0);
    }
    let fresh = t.read("m");
    t.bc_line("copy --manifest=m d to2")
        .go()
        .code(2)
        .stderr_has("another destination");
    assert_eq!(t.read("m"), fresh);
    // With other digests nothing of it is carried on, and it is the same tree's all the same.
    t.bc_line("copy --algorithm=sha256 --on-conflict=verify --manifest=m -T d fresh")
        .go()
        .code(0);
    t.bc_line("integrity verify fresh m").go().code(0);
    t.write("empty", "");
    t.bc_line("copy --manifest=empty d to2").go().code(0);
    assert!(!t.read("empty").is_empty());
}

/// A device by another name: the machine's own is never put at risk.
fn null(t: &TestTree) -> bool {
    use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
    let mode = Mode::from_raw_mode(0o666);
    let made = mknodat(
        CWD,
        t.join("null"),
        FileType::CharacterDevice,
        mode,
        makedev(1, 3),
    );
    let opens = || std::fs::File::options().write(true).open(t.join("null"));
    match made.map_err(std::io::Error::from).and_then(|()| opens()) {
        Ok(_) => true,
        Err(error) => {
            left_out(&format!("no device can be made: {error}"));
            false
        }
    }
}

fn is_device(t: &TestTree, name: &str) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    t.join(name)
        .metadata()
        .unwrap()
        .file_type()
        .is_char_device()
}

#[test]
fn a_device_stays_a_device() {
    let t = tree();
    if !null(&t) {
        return;
    }
    t.symlink("null", "to_null");
    t.bc_line("hash -o sums d").go().code(0);
    t.bc_line("integrity manifest -o m d").go().code(0);
    for line in [
        "hash -o null d",
        "hash -o to_null d",
        "hash -o null --metrics=to_null d",
        "hash diff -o null sums sums",
        "dup -o null d",
        "dup dirs -o null d",
        "integrity manifest -o null d",
        "integrity verify -o null d m",
        "integrity diff -o null m m",
        "integrity export --format=gnu -o null m",
        "integrity import -o null sums",
        "integrity merge -o null m m",
        "copy --manifest=null d to1",
        "copy --manifest=to_null d to2",
        "copy --manifest=null --metrics=null -T d/doc to3",
        "hash --metrics=null d",
    ] {
        t.bc_line(line).go();
        assert!(is_device(&t, "null"), "{line}");
    }
    t.bc_line("copy --manifest=null d last").go().code(0);
    assert_eq!(t.read("last/doc"), b"the only copy");
    // What keeps a file of its own refuses it.
    for line in [
        "dup --cache=null d e",
        "dup prune --journal=null --action=hardlink d e",
        "integrity update d null",
    ] {
        t.bc_line(line).go().code(2);
        assert!(is_device(&t, "null"), "{line}");
    }
    record(&t, "null", Overwrite::Never).unwrap();
    record(&t, "to_null", Overwrite::Always).unwrap();
    assert!(is_device(&t, "null"));
}

#[test]
fn a_pipe_takes_the_manifest_of_a_copy() {
    let t = tree();
    t.fifo("pipe");
    for script in [
        "cat pipe > got & \"$BC\" copy -q --manifest=pipe -T d copy; wait",
        "\"$BC\" copy -q --manifest=/dev/stdout -T d copy2 | cat > got",
        // A log that is appended to is not replaced.
        "echo > got; \"$BC\" copy -q --manifest=/dev/stdout -T d copy3 >> got; sed -i 1d got",
    ] {
        t.run("sh").args(["-c", script]).env("BC", BC).go().code(0);
        let text = String::from_utf8(t.read("got")).unwrap();
        let is_whole = text.starts_with("{\"type\":\"header\"") && text.contains("\"twin\"");
        assert!(is_whole, "{script}: {text}");
    }
    use std::os::unix::fs::FileTypeExt as _;
    assert!(t.join("pipe").metadata().unwrap().file_type().is_fifo());
}

#[test]
fn the_library_writes_over_nothing_that_it_records() {
    let t = tree();
    for file in ["d/doc", "hard", "link", "way/doc"] {
        let error = record(&t, file, Overwrite::Always).unwrap_err();
        assert_eq!(error.kind(), bit_crafts::ErrorKind::Refused, "{file}");
        assert_eq!(t.read("d/doc"), b"the only copy", "{file}");
    }
    record(&t, "d/m", Overwrite::Always).unwrap();
    record(&t, "d/m", Overwrite::Always).unwrap();
}

/// Records the tree `d`, by the library.
fn record(t: &TestTree, file: &str, overwrite: Overwrite) -> Result<(), bit_crafts::Error> {
    let root = t.join("d");
    let record = CreateOptions::new(&root, Algorithm::Blake3).overwrite(overwrite);
    record.run_to(t.join(file), &Means::new()).map(drop)
}

/// A socket takes nothing by its path, and is no place for a file either.
#[test]
fn a_socket_is_refused_at_once() {
    let t = tree();
    let _socket = std::os::unix::net::UnixListener::bind(t.join("socket")).unwrap();
    for line in [
        "hash -o socket d",
        "hash --metrics=socket d",
        "copy --manifest=socket d to",
    ] {
        t.bc_line(line).go().code(2).stderr_has("socket");
        use std::os::unix::fs::FileTypeExt as _;
        assert!(t.join("socket").metadata().unwrap().file_type().is_socket());
    }
}
