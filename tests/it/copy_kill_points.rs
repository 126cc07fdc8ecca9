//! `bc copy`, killed at each system call that changes something: no name ever leads to half a file,
//! and the same command completes the copy and leaves nothing behind.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

use bc_testkit::{Rng, TestTree, is_root, seen};

use crate::common::Bc;
use crate::strace;

/// Calls that change files or make changes last, and those that make files.
const CALLS: [&str; 18] = [
    "openat",
    "renameat2",
    "renameat",
    "linkat",
    "symlinkat",
    "unlinkat",
    "mkdirat",
    "mknodat",
    "pwrite64",
    "write",
    "ftruncate",
    "fsync",
    "fchmod",
    "fchmodat",
    "fchown",
    "fchownat",
    "fsetxattr",
    "utimensat",
];

pub const MANIFEST: &str = ".bc-copy-manifest.jsonl";

/// Something of everything, small; times of long ago, so that they prove what they say.
pub fn tree() -> TestTree {
    let t = TestTree::new();
    t.write("r/a/file", "content")
        .write("r/a/large", vec![7; 200_000])
        .hard_link("r/a/file", "r/second")
        .symlink("a/file", "r/link")
        .fifo("r/pipe")
        .mode("r/a/file", 0o664)
        .mode("r/a", 0o750);
    if is_root() {
        let path = t.join("r/a/large");
        std::os::unix::fs::chown(path, Some(12), Some(34)).unwrap();
    }
    for (path, seconds) in [("r/a/file", 5), ("r/a/large", 7), ("r/a", 9), ("r", 11)] {
        t.mtime(path, seconds, 123_456_789);
    }
    t
}

/// Names that a copy must not leave behind, wherever they are.
pub fn litter(t: &TestTree) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![t.path().to_owned(), t.scratch("home")];
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten() {
            let entry = entry.unwrap();
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type().unwrap().is_dir() {
                pending.push(entry.path());
            } else if name.contains(".part") || name.ends_with(".journal") || name.contains("tmp") {
                found.push(entry.path());
            }
        }
    }
    found
}

/// Every file with a final name is whole.
#[track_caller]
pub fn nothing_is_half_done(t: &TestTree, to: &str, context: &str) {
    for name in ["a/file", "a/large", "second"] {
        if let Ok(found) = std::fs::read(t.join(to).join(name)) {
            assert!(
                found == t.read(Path::new("r").join(name)),
                "{context}: {name}"
            );
        }
    }
}

/// The copy equals its source, its manifest is accepted, and nothing else is left.
#[track_caller]
pub fn complete(t: &TestTree, to: &str, context: &str) {
    let from = seen(&t.join("r"), MANIFEST).unwrap();
    let copy = seen(&t.join(to), MANIFEST).unwrap();
    let differing: Vec<_> = from
        .iter()
        .filter(|(path, one)| copy.get(*path) != Some(one))
        .collect();
    assert!(
        differing.is_empty() && from.len() == copy.len(),
        "{context}: {differing:?}"
    );
    let verify = format!("integrity verify {to} {to}/{MANIFEST}");
    let out = t.bc_line(&verify).go();
    assert_eq!(out.status.code(), Some(0), "{context}: {out}");
    assert_eq!(litter(t), Vec::<PathBuf>::new(), "{context}");
}

/// Whether a run came to its end but for what it had to say: its journal is gone.
pub fn is_over(t: &TestTree, to: &str) -> bool {
    let is_journal = |path: &PathBuf| path.extension().is_some_and(|end| end == "journal");
    !litter(t).iter().any(is_journal) && t.exists(Path::new(to).join(MANIFEST))
}

/// At moments that nobody has chosen, again and again into the same destination.
#[test]
fn killed_at_random_moments_it_comes_to_its_end() {
    let mut rng = Rng::new(17);
    for round in 0..3 {
        let t = tree();
        for number in 0..400_u32 {
            let content = vec![number as u8; (number as usize * 37) % 9000];
            t.write(format!("r/many/{}/{number}", number % 13), content);
        }
        let line = format!("copy --sync={} r to", ["none", "batch", "file"][round]);
        let mut kills = 0;
        let done = loop {
            let mut run = t.bc_line(&line).command().spawn().unwrap();
            let wait = 1 + rng.next_u64() % (10 + kills * 10);
            std::thread::sleep(std::time::Duration::from_millis(wait));
            let _ = run.kill();
            let status = run.wait().unwrap();
            nothing_is_half_done(&t, "to", &format!("{line}: {kills}"));
            for number in 0..400 {
                let name = format!("many/{}/{number}", number % 13);
                if let Ok(found) = std::fs::read(t.join("to").join(&name)) {
                    assert!(
                        found == t.read(Path::new("r").join(&name)),
                        "{line}: {name}"
                    );
                }
            }
            // Killed behind its end, when nothing but a message was left, it is over too.
            if status.signal() != Some(9) || is_over(&t, "to") {
                break status;
            }
            kills += 1;
        };
        let code = done.code().unwrap_or(0);
        assert_eq!(code, 0, "{line}: {kills}");
        complete(&t, "to", &format!("{line}: {kills}"));
    }
}

#[test]
fn killed_at_every_call_the_same_command_completes_the_copy() {
    if !strace::is_able() {
        return;
    }
    let line = "copy r to";
    let mut points = 0;
    for call in CALLS {
        // Most files that are opened are the program's own.
        let step = if call == "openat" { 3 } else { 1 };
        for n in (1..).step_by(step) {
            let t = tree();
            let status = strace::injected(&t, call, "signal=KILL", n, line).status;
            let context = format!("killed at {call} {n}");
            if status.signal() != Some(9) {
                assert_eq!(status.code(), Some(0), "{context}");
                break;
            }
            points += 1;
            nothing_is_half_done(&t, "to", &context);
            if litter(&t).is_empty() && is_over(&t, "to") {
                continue;
            }
            let out = t.bc_line(line).go();
            assert_eq!(out.status.code(), Some(0), "{context}: {out}");
            complete(&t, "to", &context);
        }
    }
    assert!(points >= 40, "{points}");
}
