//! File systems that take every write and say at a close that it could not be stored: NFS, SMB, FUSE,
//! quotas. What fails so is no success, whichever command wrote it.

use std::path::Path;

use bc_testkit::{Behaviour, FuseDisk, TestTree, UNSTORABLE, fuse_disk, left_out};
use rustix::io::Errno;

use crate::common::Bc;

fn disk(errno: Errno) -> Option<FuseDisk> {
    let behaviour = Behaviour {
        close_error: Some(errno),
        ..Behaviour::default()
    };
    fuse_disk(behaviour)
        .inspect_err(|reason| left_out(reason))
        .ok()
}

/// Names in a directory, those of the manifest aside.
fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| !name.ends_with(".jsonl")).collect();
    names.sort();
    names
}

fn unstorable(size: usize) -> Vec<u8> {
    let mut content = UNSTORABLE.as_bytes().to_vec();
    content.resize(size.max(content.len()), b'.');
    content
}

/// Files of each size, of which those are copied that can be stored.
#[test]
fn a_file_that_is_lost_at_its_close_is_not_copied() {
    for options in [
        "",
        "--algorithm=none",
        "--sync=file",
        "--sync=batch",
        "--verify=read",
    ] {
        for (errno, code) in [(Errno::IO, 1), (Errno::DQUOT, 2)] {
            let Some(disk) = disk(errno) else { return };
            let t = TestTree::new();
            t.write("r/a", "a").write("r/z", "z");
            t.write("r/small", unstorable(0))
                .write("r/medium", unstorable(300 << 10));
            t.write("r/large", unstorable((64 << 20) + 5));
            let to = disk.path().join("to");
            let line = format!("copy {options} r {}", to.display());
            let out = t.bc_line(&line).go();
            out.code(code);
            let text = out.error_text();
            let reason = std::io::Error::from(errno).to_string();
            let named = |name: &str| {
                text.lines().any(|line| {
                    line.contains(name) && line.contains("close") && line.contains(&reason)
                })
            };
            let kept = names(&to);
            if errno == Errno::IO {
                for name in ["small", "medium", "large"] {
                    assert!(named(name), "{line}: {name}: {out}");
                }
                assert_eq!(kept, ["a", "z"], "{line}: {out}");
            } else {
                assert!(
                    ["small", "medium", "large"].into_iter().any(named),
                    "{line}: {out}"
                );
                assert!(
                    kept.iter().all(|name| name == "a" || name == "z"),
                    "{line}: {kept:?}"
                );
            }
            for name in kept {
                assert_eq!(
                    std::fs::read(to.join(&name)).unwrap(),
                    name.as_bytes(),
                    "{line}"
                );
            }
        }
    }
}

/// Whatever lies there already stays.
#[test]
fn what_would_have_been_replaced_stays() {
    let Some(disk) = disk(Errno::IO) else { return };
    let t = TestTree::new();
    t.write("r/a", unstorable(0));
    std::fs::write(disk.path().join("a"), "old").unwrap();
    let to = disk.path().display();
    t.bc_line(&format!("copy -T --on-conflict=replace r {to}"))
        .go()
        .code(1)
        .stderr_has(format!("a: close: {}", Errno::IO));
    assert_eq!(std::fs::read(disk.path().join("a")).unwrap(), b"old");
}

/// Lists, manifests and reports, whose names of files cannot be stored.
#[test]
fn an_output_that_is_lost_at_its_close_is_an_error() {
    let Some(disk) = disk(Errno::DQUOT) else {
        return;
    };
    let t = TestTree::new();
    for name in ["a", "b"] {
        t.write(format!("r/{UNSTORABLE}-{name}"), "same");
    }
    let to = disk.path();
    let file = to.join("out");
    let shown = file.display();
    for line in [
        format!("hash --output={shown} r"),
        format!("dup scan --output={shown} r"),
        format!("integrity manifest --output={shown} r"),
        format!("copy --manifest={shown} -T r copied"),
    ] {
        std::fs::write(&file, "").unwrap();
        std::fs::remove_file(&file).unwrap();
        let out = t.bc_line(&line).go();
        out.code(2).stderr_has(format!("close: {}", Errno::DQUOT));
        assert!(names(to).is_empty(), "{line}: {:?}", names(to));
    }
    // Where the shell opened the file.
    let bc = crate::common::BC;
    let script = format!("{bc} hash r > {shown}");
    let out = t.run("sh").args(["-c", &script]).go();
    out.code(2)
        .stderr_has(format!("stdout: close: {}", Errno::DQUOT));
}

/// A manifest that is brought up to date stays what it was.
#[test]
fn an_update_that_is_lost_leaves_the_manifest() {
    let Some(disk) = disk(Errno::DQUOT) else {
        return;
    };
    let t = TestTree::new();
    t.write("r/a", "a");
    let manifest = disk.path().join("m");
    let shown = manifest.display();
    t.bc_line(&format!("integrity manifest --output={shown} r"))
        .go()
        .code(0);
    let before = std::fs::read(&manifest).unwrap();
    t.write(format!("r/{UNSTORABLE}"), "new");
    t.bc_line(&format!("integrity update r {shown}"))
        .go()
        .code(2)
        .stderr_has(format!("close: {}", Errno::DQUOT));
    assert_eq!(std::fs::read(&manifest).unwrap(), before);
    assert_eq!(names(disk.path()), ["m"]);
}

/// A duplicate stays where its copy could not be stored, and so does what undo was to replace.
#[test]
fn neither_move_nor_undo_gives_up_a_content_for_one_that_is_lost() {
    let Some(disk) = disk(Errno::DQUOT) else {
        return;
    };
    let t = TestTree::new();
    let content = unstorable(0);
    t.write("keep", &content).write("away/x", &content);
    let to = disk.path().display();
    let line = format!("dup prune --action=move:{to} --yes --journal=../j --reference=keep away");
    let out = t.bc_line(&line).go();
    out.code(1).stderr_has(format!("close: {}", Errno::DQUOT));
    assert_eq!(t.read("away/x"), content);
    assert!(
        names(disk.path()).iter().all(|name| name == "away"),
        "{out}"
    );
    assert!(names(&disk.path().join("away")).is_empty());
    // A journal of such names cannot be begun, and nothing is done.
    let named = format!("{UNSTORABLE}-x");
    t.write(format!("other/{named}"), &content);
    let line = format!(
        "dup prune --action=delete --yes --journal={to}/{UNSTORABLE}.j --reference=keep other/{named}"
    );
    let out = t.bc_line(&line).go();
    assert_ne!(out.status.code(), Some(0), "{out}");
    out.stderr_has(Errno::DQUOT.to_string());
}

/// And what is to be undone there stays as it is.
#[test]
fn undo_of_what_is_lost_fails() {
    let Some(disk) = disk(Errno::DQUOT) else {
        return;
    };
    let t = TestTree::new();
    let content = unstorable(0);
    t.write("keep", &content);
    // It is there since before: what is only read stays.
    let there = disk.path().join("x");
    let made = std::fs::File::create(&there).unwrap();
    std::io::Write::write_all(&mut &made, &content).unwrap();
    let kept = std::fs::File::open(&there).unwrap();
    let line = format!(
        "dup prune --action=symlink --force=inode-numbers --yes --journal=../j --reference=keep {}",
        there.display()
    );
    let out = t.bc_line(&line).go();
    drop((made, kept));
    if out.status.code() != Some(0) || !there.is_symlink() {
        return left_out(&format!("nothing was linked: {out}"));
    }
    t.bc_line("dup undo ../j")
        .go()
        .code(1)
        .stderr_has(format!("close: {}", Errno::DQUOT));
    assert!(there.is_symlink());
}

#[test]
fn what_cannot_be_restored_is_named_and_what_was_there_stays() {
    let Some(disk) = disk(Errno::IO) else { return };
    let t = TestTree::new();
    let content = unstorable(0);
    t.write("good/lost", &content)
        .write("good/fine", "fine")
        .write("good/stays", "stays");
    t.bc_line("integrity manifest --output=m good").go().code(0);
    std::fs::write(disk.path().join("stays"), "stays").unwrap();
    let root = disk.path().display();
    let out = t
        .bc_line(&format!(
            "integrity restore --force --trust-metadata --from=good {root} m"
        ))
        .go();
    out.code(1)
        .stderr_has(format!("lost: close: {}", Errno::IO));
    assert_eq!(names(disk.path()), ["fine", "stays"]);
}
