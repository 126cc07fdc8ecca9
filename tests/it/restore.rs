//! `bc integrity restore` as a user meets it: what it says, and how it ends.

use std::os::unix::fs::PermissionsExt;

use bc_testkit::{TestTree, full_disk, is_root, left_out, seen};
use serde_json::Value;

use crate::common::{BC, Bc};
use crate::strace;

/// A tree `r` with its manifest `m` and a copy `copy`; then one file is damaged, one is gone, and
/// one that has two names is damaged, too.
pub fn wounded() -> TestTree {
    let t = TestTree::new();
    t.write("r/a/file", "content")
        .write("r/a/large", vec![7; 200_000])
        .write("r/gone/deep", "deep")
        .write("r/two", "names")
        .hard_link("r/two", "r/a/names")
        .symlink("a/file", "r/link")
        .mode("r/a/file", 0o640)
        .mode("r/gone", 0o750);
    for (path, seconds) in [("r/a/file", 5), ("r/a/large", 7), ("r/two", 8), ("r/a", 9)] {
        t.mtime(path, seconds, 123_456_789);
    }
    t.bc_line("integrity manifest --output=m r").go().code(0);
    t.mode("m", 0o600);
    t.run("cp").args(["-a", "r", "copy"]).go().code(0);
    t.write("r/a/file", "cOntent").write("r/two", "nAmes");
    t.mtime("r/a/file", 5, 123_456_789)
        .mtime("r/two", 8, 123_456_789);
    t.remove("r/gone").remove("r/link");
    t
}

pub const LINE: &str = "integrity restore --from=copy r m";

/// Files by path: content.
pub fn contents(t: &TestTree) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let all = seen(&t.join("r"), "none").unwrap().into_iter();
    all.filter(|(_, seen)| seen.mode & 0o170_000 == 0o100_000)
        .map(|(path, seen)| (path, seen.content))
        .collect()
}

#[test]
fn what_it_says() {
    let t = wounded();
    let out = t.bc_line(&format!("{LINE} --dry-run")).go();
    out.code(0)
        .stderr_has("dry run: nothing is written: 6 restored");
    assert_eq!(out.text().lines().count(), 6, "{out}");
    let out = t.bc_line(LINE).go();
    out.code(0)
        .stdout_has("+ a/file: from copy/a/file; previous file kept as a/file.damaged-")
        .stdout_has("+ gone\n")
        .stdout_has("+ gone/deep: from copy/gone/deep\n")
        .stdout_has("+ link\n")
        .stdout_has("+ two: linked to a/names")
        .stderr_has("6 restored");
    let out = t.bc_line("integrity verify r m").go();
    // But for the two second names, and the time of what `gone` lies in.
    let lines: Vec<String> = out.text().lines().map(str::to_owned).collect();
    let (added, other): (Vec<_>, Vec<_>) = lines.iter().partition(|line| line.starts_with("+ "));
    assert_eq!(added.len(), 2, "{out}");
    assert!(other.iter().all(|line| line.starts_with("~m . ")), "{out}");
    assert_eq!(
        t.join("r/a").metadata().unwrap().modified().unwrap(),
        t.join("copy/a").metadata().unwrap().modified().unwrap()
    );
    t.bc_line(LINE)
        .go()
        .code(0)
        .stderr_has("nothing to restore");
}

/// Whichever thread is done first, and whatever has to be looked for under other names.
#[test]
fn lines_are_in_the_order_of_paths() {
    let t = TestTree::new();
    for number in 0..40 {
        // Before and behind a slash.
        for name in [
            format!("d{number:02}/f"),
            format!("d{number:02}-f"),
            format!("f{number:02}"),
        ] {
            t.write(format!("r/{name}"), format!("content of {name}"));
        }
    }
    t.symlink("d00", "r/e").write("r/kept", "kept");
    t.bc_line("integrity manifest --output=m r").go().code(0);
    t.mode("m", 0o600);
    t.run("cp").args(["-a", "r", "copy"]).go().code(0);
    for number in (0..40).step_by(3) {
        t.remove(format!("copy/f{number:02}"));
        let path = format!("copy/d{number:02}-f");
        std::fs::rename(t.join(&path), t.join(format!("{path}-moved"))).unwrap();
    }
    t.remove("r");
    t.write("r/kept", "kept");
    let mut orders = Vec::new();
    for options in [
        "--dry-run --threads=1",
        "--dry-run --format=json",
        "--threads=3",
    ] {
        let out = t.bc_line(&format!("{LINE} {options}")).go();
        let text = out.code(1).text();
        let path = |line: &str| match serde_json::from_str::<Value>(line) {
            Ok(object) => object["path"].as_str().map(str::to_owned),
            Err(_) => {
                let (_, rest) = line.split_once(' ')?;
                Some(rest.split(':').next().unwrap_or(rest).to_owned())
            }
        };
        let paths: Vec<String> = text.lines().filter_map(path).collect();
        assert!(paths.is_sorted(), "{out}");
        orders.push(paths);
    }
    assert_eq!(orders[0].len(), 40 * 4 + 1, "{orders:#?}");
    assert!(
        orders.iter().all(|order| *order == orders[0]),
        "{orders:#?}"
    );
}

/// What is left for another reason than that no copy has it is counted apart, and so is metadata
/// that differs alone.
#[test]
fn what_is_left_for_another_reason_is_counted_apart() {
    let t = TestTree::new();
    t.write("tree/file", "content").write("tree/mode", "x");
    t.fifo("tree/pipe").mode("tree/mode", 0o600);
    t.bc_line("integrity manifest --output=m tree").go().code(0);
    t.bc_line("copy tree copy").go().code(0);
    t.remove("tree/pipe").mode("tree/mode", 0o640);
    t.bc_line("integrity restore --from=copy tree m")
        .go()
        .code(1)
        .stdout_has("!! pipe: removed: only files, directories and links")
        .stderr_has("bc integrity: 1 left for another reason; other metadata, left as it is: 1");
    let line = "integrity restore --format=json --from=copy tree m";
    let out = t.bc_line(line).go().code(1).text();
    let last: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    let counts = ["missing", "withheld", "metadata"].map(|name| &last[name]);
    assert_eq!(counts, [1, 1, 1]);
}

#[test]
fn what_no_copy_holds_is_named() {
    let t = wounded();
    t.remove("copy/a/file");
    t.bc_line(LINE)
        .go()
        .code(1)
        .stdout_has("!! a/file: damaged: no copy holds it\n")
        .stderr_has("5 restored, 1 that no copy holds");
    let out = t.bc_line(&format!("{LINE} --format=json")).go();
    let lines = out.code(1).text();
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[0]["command"], "restore");
    assert_eq!(lines[1]["type"], "missing");
    assert_eq!(
        (&lines[1]["path"], &lines[1]["loss"]),
        (&"a/file".into(), &"damaged".into())
    );
    assert_eq!(lines[2]["missing"], 1);
}

#[test]
fn what_is_asked_must_make_sense() {
    let t = wounded();
    let before = contents(&t);
    let text = String::from_utf8(t.read("m")).unwrap();
    let (cut, _) = text.trim_end().rsplit_once('\n').unwrap();
    t.dir("empty").write("cut", format!("{cut}\n"));
    for (line, says) in [
        ("integrity restore --from=none r m", "none: stat: "),
        ("integrity restore --from=copy none m", "none: "),
        ("integrity restore --from=copy r none", "none: open: "),
        ("integrity restore --from=copy r cut", "truncated"),
        ("integrity restore --from=copy empty m", "not mounted?"),
        ("integrity restore --from=copy r", "MANIFEST"),
        (
            "integrity restore --from=/dev/null r m",
            "neither a directory nor a file",
        ),
    ] {
        t.bc_line(line).go().code(2).stderr_has(says);
        assert_eq!(contents(&t), before, "{line}");
    }
}

/// A directory that has nothing of the manifest, be it not mounted or the wrong one, is not filled
/// without a word; a tree that lost all of its files is, where somebody says so.
#[test]
fn a_root_that_has_nothing_of_the_manifest() {
    let t = wounded();
    t.dir("other/a").write("other/mine", "mine");
    for root in ["other", "r"] {
        if root == "r" {
            for path in ["a", "two"] {
                t.remove(format!("r/{path}"));
            }
            t.write("r/mine", "mine");
        }
        for dry in ["", " --dry-run"] {
            let line = format!("integrity restore{dry} --from=copy {root} m");
            let refused = t.bc_line(&line).go();
            refused
                .code(2)
                .stderr_has(format!("{root}: nothing of what the manifest lists"))
                .stderr_has("--force to continue");
            assert!(!t.exists(format!("{root}/two")), "{refused}");
        }
        let (tree, manifest) = (t.join(root), bit_crafts::ManifestFile::open(t.join("m")));
        let manifest = manifest.unwrap();
        let refused = bit_crafts::RestoreOptions::new(&tree, &manifest).from([t.join("copy")]);
        let error = refused.run(&bit_crafts::Means::new()).unwrap_err();
        assert_eq!(error.kind(), bit_crafts::ErrorKind::Refused);
        assert_eq!(error.path(), Some(&*t.join(root)));
        assert_eq!(error.setting(), Some(bit_crafts::Setting::Force));
        assert!(!error.to_string().contains("--"), "{error}");
        assert!(!t.exists(format!("{root}/two")), "{error}");
        let forced = t.bc_line(&format!("integrity restore --force --from=copy {root} m"));
        forced.go().code(0);
        assert_eq!(t.read(format!("{root}/two")), b"names");
        assert_eq!(t.read(format!("{root}/mine")), b"mine");
    }
}

/// Where nothing can be written, that is foreseen, named and harmless.
#[test]
fn a_directory_that_cannot_be_written_to() {
    if is_root() {
        return left_out("root writes everywhere");
    }
    let t = wounded();
    t.mode("r/a", 0o555);
    let before = t.read("r/a/file");
    for line in [format!("{LINE} --dry-run"), LINE.to_owned()] {
        let out = t.bc_line(&line).go();
        out.code(1)
            .stderr_has("r/a/file: create: Permission denied");
        assert_eq!(t.read("r/a/file"), before);
    }
    t.mode("r/a", 0o755);
}

/// A file that the medium cannot give is damaged, too, and is kept for who can read it one day.
#[test]
fn what_the_medium_cannot_give() {
    if !strace::is_able() {
        return;
    }
    let t = wounded();
    t.bc_line(LINE).go().code(0);
    let line = format!("{LINE} --io=sync");
    strace::unreadable(&t, "r/a/large", &line)
        .code(0)
        .stdout_has("+ a/large: from copy/a/large; previous file kept as a/large.damaged-unread\n");
    assert_eq!(t.read("r/a/large"), vec![7; 200_000]);
    assert_eq!(t.read("r/a/large.damaged-unread"), vec![7; 200_000]);
    // One that was edited since is not known to be what is recorded.
    t.write("r/a/large", "an edit");
    let out = strace::unreadable(&t, "r/a/large", &line);
    assert_eq!(t.read("r/a/large"), b"an edit", "{out}");
    out.code(1).stderr_has("changed since it was verified");
}

/// What comes through a pipe is nobody's.
#[test]
fn a_manifest_from_a_pipe_gives_content_only() {
    let t = wounded();
    let manifest = t.read("m");
    t.bc_line("integrity restore --from=copy r -")
        .stdin(manifest)
        .go()
        .code(0)
        .stderr_has("--trust-metadata");
    assert_eq!(t.read("r/a/file"), b"content");
    assert_eq!(t.read("r/gone/deep"), b"deep");
}

/// A tree that is one file.
#[test]
fn a_root_that_is_a_file() {
    let t = TestTree::new();
    t.write("d/one", "content").write("copy/one", "content");
    t.mtime("d/one", 5, 0);
    t.bc_line("integrity manifest --output=m d/one")
        .go()
        .code(0);
    t.write("d/one", "cOntent").mtime("d/one", 5, 0);
    t.bc_line("integrity restore --from=copy d/one m")
        .go()
        .code(0)
        .stdout_has("+ one: from copy/one");
    assert_eq!(t.read("d/one"), b"content");
}

/// Where a user's group is his alone, whatever he makes is writable for it: his manifests are not, or
/// they would be taken for those of others.
#[test]
fn manifests_are_their_owners_whatever_the_umask_says() {
    for umask in ["000", "002", "022", "077"] {
        let t = wounded();
        let sh = |text: &str| {
            let text = format!("umask {umask}; {text}");
            t.run("sh").args(["-c", &text]).env("BC", BC).go()
        };
        for (text, manifest) in [
            ("$BC integrity manifest --output=new copy", "new"),
            ("$BC copy copy to", "to/.bc-copy-manifest.jsonl"),
            ("$BC integrity merge --output=merged shard", "merged"),
            ("$BC integrity import --output=imported sums", "imported"),
        ] {
            t.bc_line("integrity manifest --shard=1/1 --output=shard copy")
                .go();
            t.bc_line("hash --output=sums copy").go().code(0);
            sh(text).code(0);
            let mode = t.join(manifest).metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o022, 0, "{umask}: {text}: {mode:o}");
        }
        // A later copy carries on what it says.
        let again = sh("$BC copy -T --on-conflict=update copy to");
        assert!(!again.error_text().contains("not carried on"), "{again}");
        t.remove("to/a/file");
        let out = sh("$BC integrity restore --from=copy to to/.bc-copy-manifest.jsonl");
        let text = out.code(0).error_text();
        assert!(!text.contains("--trust-metadata"), "{umask}: {out}");
        let mode = t.join("to/a/file").metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640, "{umask}");
    }
}

/// What needs space stops, what is missing is told, and nothing is gone; the same command does the
/// rest once there is space.
#[test]
fn a_full_disk() {
    let disk = match full_disk(1 << 20) {
        Ok(disk) => disk,
        Err(reason) => return left_out(&reason),
    };
    let t = TestTree::new();
    let root = disk.path().join("r");
    for number in 0..8 {
        t.write(format!("copy/{number}"), vec![number as u8; 100_000]);
        t.mtime(format!("copy/{number}"), 1_000_000_000, 0);
    }
    t.run("cp").args(["-a", "copy"]).arg(&root).go().code(0);
    let line = format!("integrity manifest --output=m {}", root.display());
    t.bc_line(&line).go().code(0);
    t.mode("m", 0o600);
    for number in 0..8 {
        let path = root.join(number.to_string());
        let file = std::fs::File::options().write(true).open(path).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, b"damaged", 500).unwrap();
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        file.set_modified(time).unwrap();
    }
    let damaged = seen(&root, "none").unwrap();
    let line = format!("integrity restore --from=copy {} m", root.display());
    let dry = t.bc_line(&format!("{line} --dry-run")).go();
    dry.code(0).stderr_has("8 restored");
    let out = t.bc_line(&line).go();
    out.code(2)
        .stderr_has("the tree takes no more: No space left on device")
        .stderr_has("are still to be written")
        .stderr_has("not started");
    let json = t.bc_line(&format!("{line} --format=json")).go();
    let last: Value = serde_json::from_str(json.code(2).text().lines().last().unwrap()).unwrap();
    let count = |name: &str| last[name].as_u64().unwrap();
    assert_eq!(
        count("wanted"),
        count("repaired") + count("failed") + count("left")
    );
    assert_eq!(
        count("bytes_left"),
        100_000 * (count("failed") + count("left"))
    );
    assert!(
        last["stopped"].as_str().unwrap().contains("No space"),
        "{last}"
    );
    let now = seen(&root, "none").unwrap();
    for (path, was) in &damaged {
        let is_there = now.values().any(|is| is.content == was.content);
        assert!(is_there, "{}", path.display());
    }
    assert!(
        !now.keys()
            .any(|path| path.to_string_lossy().contains(".part"))
    );
    let more = ["-o", "remount,size=16M"];
    let grown = t.run("mount").args(more).arg(disk.path()).go();
    if !grown.status.success() {
        return left_out("mount cannot change the size of a tmpfs here");
    }
    t.bc_line(&line).go().code(0);
    for number in 0..8 {
        let is = std::fs::read(root.join(number.to_string())).unwrap();
        assert_eq!(is, vec![number as u8; 100_000]);
    }
}

/// What cannot be looked at may be lost as well: nothing is well, and each such directory is named
/// once.
#[test]
fn what_cannot_be_looked_at_is_told() {
    let t = TestTree::new();
    for name in ["r/closed/a", "r/closed/in/b", "r/open/c"] {
        t.write(name, name).mode(name, 0o644);
    }
    t.bc_line("integrity manifest --output=m r").go().code(0);
    t.mode("m", 0o644);
    t.run("cp").args(["-a", "r", "copy"]).go().code(0);
    t.mode("r/closed", 0);
    let line = "integrity restore r m --from=copy";
    let ran = t.bc_line(line).as_nobody().go();
    t.mode("r/closed", 0o755);
    ran.code(1).stdout_is("").stderr_has("nothing to restore");
    let named = "bc integrity: r/closed: open: Permission denied (os error 13)\n";
    let text = ran.error_text();
    assert_eq!(text.matches("Permission denied").count(), 1, "{ran}");
    ran.stderr_has(named);
}
