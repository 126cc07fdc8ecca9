//! `bc move` to another file system: a source goes only once its copy is proven.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bc_fs::lease;
use bc_testkit::{NOBODY, Seen, Sweep, TestTree, full_disk, is_root, left_out, loop_disk, seen};

use crate::common::{BC, Bc};
use crate::copy_faults::FAULTS;
use crate::copy_trees::{MANIFEST, figures, litter, litter_below, rich, tree};
use crate::move_within::agree;
use crate::strace::{self, KILL};

/// A tree on another file system; prints why there is none.
pub fn other_disk(t: &TestTree) -> Option<TestTree> {
    let dev = |path: &Path| path.metadata().map(|meta| meta.dev()).ok();
    for parent in ["/dev/shm", "/var/tmp", env!("CARGO_MANIFEST_DIR")] {
        let parent = Path::new(parent);
        if dev(parent).is_some_and(|there| Some(there) != dev(t.path())) {
            return Some(TestTree::new_in(parent));
        }
    }
    left_out("there is one file system only");
    None
}

pub type Tree = BTreeMap<PathBuf, Seen>;

/// The whole tree is at the destination and nowhere else.
#[track_caller]
fn all_is_there(t: &TestTree, to: &Path, before: &Tree, context: &str) {
    assert!(!t.exists("r"), "{context}: the source is there");
    all_is_copied(t, to, before, context);
}

/// The whole tree is at the destination, its manifest is accepted, and nothing else is anywhere.
#[track_caller]
pub fn all_is_copied(t: &TestTree, to: &Path, before: &Tree, context: &str) {
    let after = seen(to, MANIFEST).unwrap();
    for (path, one) in before {
        let Some(there) = after.get(path) else {
            panic!("{context}: {}: not there", path.display());
        };
        assert!(
            there.content == one.content,
            "{context}: {}",
            path.display()
        );
        let [mut one, mut there] = [one.clone(), there.clone()];
        (one.content, there.content) = (Vec::new(), Vec::new());
        assert_eq!(there, one, "{context}: {}", path.display());
    }
    assert_eq!(after.len(), before.len(), "{context}: {:?}", after.keys());
    let manifest = to.join(MANIFEST);
    let out = t
        .bc()
        .args(["integrity", "verify"])
        .arg(to)
        .arg(&manifest)
        .go();
    assert_eq!(out.status.code(), Some(0), "{context}: {out}");
    let left: Vec<_> = litter(t).into_iter().chain(litter_below(to)).collect();
    assert_eq!(left, Vec::<PathBuf>::new(), "{context}");
}

/// Every content is complete under one of its names, and no name at the destination has other bytes.
#[track_caller]
pub fn nothing_is_lost(from: &Path, to: &Path, before: &Tree, context: &str) {
    all_is_somewhere(from, to, before, context, false);
}

/// `may_be_torn`: a copy whose source is there yet may have other bytes, as after a power cut before
/// anything was forced to the disk.
fn all_is_somewhere(from: &Path, to: &Path, before: &Tree, context: &str, may_be_torn: bool) {
    let is_private = |name: &Path| name.to_string_lossy().contains(".bc-move.");
    let sources = match from.exists() {
        true => seen(from, MANIFEST).unwrap(),
        false => Tree::new(),
    };
    for (path, one) in before {
        let is_dir = one.mode & 0o170_000 == 0o040_000;
        let there = to.join(path);
        let is_link = there.is_symlink();
        let read = |path: &Path| match is_link {
            true => std::fs::read_link(path).map(|text| text.into_os_string().into_encoded_bytes()),
            false => std::fs::read(path),
        };
        let is_plain = one.mode & 0o170_000 == 0o100_000 || is_link;
        let is_copied = match is_plain {
            true => there
                .symlink_metadata()
                .is_ok()
                .then(|| read(&there).unwrap()),
            false => there.symlink_metadata().is_ok().then(Vec::new),
        };
        let is_set_aside = || {
            sources.iter().any(|(at, file)| {
                is_private(at) && at.parent() == path.parent() && file.content == one.content
            })
        };
        let is_source = sources
            .get(path)
            .is_some_and(|file| file.content == one.content);
        if let Some(bytes) = &is_copied
            && is_plain
        {
            assert!(
                *bytes == one.content || may_be_torn && is_source,
                "{context}: {}: other bytes",
                there.display()
            );
        }
        assert!(
            is_dir || is_copied.is_some() || is_source || is_set_aside(),
            "{context}: {} is nowhere",
            path.display()
        );
    }
}

#[test]
fn everything_goes_and_is_proven() {
    let t = rich();
    let Some(disk) = other_disk(&t) else {
        return;
    };
    let before = seen(&t.join("r"), MANIFEST).unwrap();
    let line = format!("move --itemize r {}", disk.join("to").display());
    let out = t.bc_line(&line).go();
    out.code(0)
        .stderr_has(format!("{0} moved of {0}; ", before.len()));
    out.stdout_has(format!("+ {}\n", disk.join("to/a/file").display()));
    all_is_there(&t, &disk.join("to"), &before, "at once");
}

#[test]
fn single_files_links_and_pipes_go_too() {
    let t = tree();
    let Some(disk) = other_disk(&t) else {
        return;
    };
    t.write("x", "x");
    for name in ["x", "r/link", "r/pipe"] {
        let line = format!("move {name} {}", disk.path().display());
        t.bc_line(&line).go().code(0).stderr_has("1 moved of 1");
        assert!(t.join(name).symlink_metadata().is_err(), "{name}");
        let base = name.rsplit('/').next().unwrap();
        assert!(disk.join(base).symlink_metadata().is_ok(), "{name}");
    }
    assert_eq!(disk.read("x"), b"x");
    assert!(litter(&t).is_empty());
}

#[test]
fn names_outside_keep_a_file_and_all_others_go() {
    let t = tree();
    let Some(disk) = other_disk(&t) else {
        return;
    };
    t.hard_link("r/a/large", "outside");
    let to = disk.join("to");
    let line = format!("move r {}", to.display());
    let out = t.bc_line(&line).go();
    out.code(1)
        .stderr_has("r/a/large: remove: stays: it has other names than those that are moved")
        .stderr_has("3 left at the source");
    assert_eq!(t.read("r/a/large").len(), 200_000);
    assert_eq!(t.read("outside").len(), 200_000);
    assert!(!t.exists("r/a/file") && !t.exists("r/second") && to.join("a/large").exists());
    // Without that name it goes.
    t.remove("outside");
    t.bc_line(&line).go().code(0);
    assert!(!t.exists("r") && to.join("a/file").exists() && litter(&t).is_empty());
}

#[test]
fn a_file_that_is_open_for_writing_stays() {
    let t = tree();
    let Some(disk) = other_disk(&t) else {
        return;
    };
    let writer = OpenOptions::new()
        .append(true)
        .open(t.join("r/a/large"))
        .unwrap();
    let probe = File::open(t.join("r/a/large")).unwrap();
    if !matches!(lease::take(&probe), Err(lease::Refused::Writer)) {
        return left_out("there are no leases here");
    }
    drop(probe);
    let line = format!("move r {}", disk.join("to").display());
    let out = t.bc_line(&line).go();
    out.code(1)
        .stderr_has("r/a/large: remove: stays: it is open for writing");
    assert_eq!(t.read("r/a/large").len(), 200_000);
    drop(writer);
    wait_for_writers(&t.join("r"));
    t.bc_line(&line).go().code(0);
    assert!(!t.exists("r"));
}

/// What is found at the destination authorises no removal: it may be the source itself, seen
/// another way.
#[test]
fn only_copies_of_this_job_count() {
    let t = tree();
    let Some(disk) = other_disk(&t) else {
        return;
    };
    let to = disk.join("to");
    t.bc_line(&format!("copy r {}", to.display())).go().code(0);
    let out = t.bc_line(&format!("move -T r {}", to.display())).go();
    out.code(1).stderr_has("create: File exists");
    let line = format!("move -T --on-conflict=verify r {}", to.display());
    let out = t.bc_line(&line).go();
    out.code(1)
        .stderr_has("r/a/file: remove: stays: the existing entry at the destination");
    assert!(t.exists("r/a/file") && t.exists("r/a/large") && t.exists("r/second"));
    // A file that is replaced has a copy of this job.
    std::fs::write(to.join("a/file"), "other").unwrap();
    let out = t.bc_line(&line.replace("verify", "replace")).go();
    out.code(0);
    assert!(!t.exists("r"));
    assert_eq!(std::fs::read(to.join("a/file")).unwrap(), b"content");
}

/// The manifest that a copy wrote is a part of the tree that it made, and goes with it.
#[test]
fn the_manifest_of_an_earlier_copy_moves_with_its_directory() {
    for stays in [false, true] {
        let t = tree();
        let Some(disk) = other_disk(&t) else {
            return;
        };
        t.bc_line("copy r made").go().code(0);
        let manifest = t.read(format!("made/{MANIFEST}"));
        if stays {
            t.hard_link("made/a/large", "outside");
        }
        let to = disk.join("to");
        let line = format!("move made {}", to.display());
        let foreseen = t.bc_line(&format!("{line} --dry-run")).go();
        foreseen
            .code(i32::from(stays))
            .stdout_has(format!("+ {}\n", to.join(MANIFEST).display()));
        let out = t.bc_line(&line).go();
        out.code(i32::from(stays))
            .stderr_has(format!("{MANIFEST}: is moved as any other file"));
        assert!(!t.exists(format!("made/{MANIFEST}")), "{out}");
        if stays {
            // The same command ends it, and takes nothing for a manifest of its own.
            t.remove("outside");
            t.bc_line(&line).go().code(0);
        }
        assert!(!t.exists("made"));
        assert_eq!(std::fs::read(to.join(MANIFEST)).unwrap(), manifest);
        let out = t
            .bc()
            .args(["integrity", "verify"])
            .args([&to, &to.join(MANIFEST)])
            .go();
        out.code(0);
    }
    let t = tree();
    let Some(disk) = other_disk(&t) else {
        return;
    };
    t.bc_line("copy r made").go().code(0);
    let line = format!("move made/{MANIFEST} {}", disk.path().display());
    t.bc_line(&line).go().code(0);
    assert!(disk.exists(MANIFEST) && !t.exists(format!("made/{MANIFEST}")));
}

#[test]
fn a_dry_run_says_what_would_stay() {
    let t = tree();
    let Some(disk) = other_disk(&t) else {
        return;
    };
    t.hard_link("r/a/large", "outside");
    let before = seen(t.path(), MANIFEST).unwrap();
    let line = format!("move --dry-run r {}", disk.join("to").display());
    let out = t.bc_line(&line).go();
    out.code(1)
        .stdout_has(format!("+ {}\n", disk.join("to/a/file").display()))
        .stderr_has("r/a/large: remove: stays: it has other names");
    assert_eq!(seen(t.path(), MANIFEST).unwrap(), before);
    assert!(!disk.exists("to") && litter(&t).is_empty());
}

/// A dry run asks the source's side, too: names that it would not let go, and reasons.
#[test]
fn a_dry_run_foresees_what_the_source_keeps() {
    let t = tree();
    let Some(disk) = other_disk(&t) else {
        return;
    };
    let to = disk.join("to");
    // No place for a journal.
    let line = format!("move --dry-run r {}", to.display());
    let out = t
        .bc_line(&line)
        .env("XDG_STATE_HOME", t.join("r/a/file/none"))
        .go();
    out.code(2).stderr_has("there is no journal");
    let out = t.bc_line(&line).go();
    out.code(0);
    disk.write("taken/second", "taken");
    let line = format!(
        "move -T --on-conflict=skip r {}",
        disk.join("taken").display()
    );
    agree(&t, &line);
    if !is_root() {
        return left_out("only root has files of others");
    }
    t.write("shared/r/file", "content").mode("shared/r", 0o1777);
    t.mode("shared", 0o777).mode("", 0o777);
    disk.mode("", 0o777);
    let state = t.scratch("state");
    std::fs::create_dir(&state).unwrap();
    std::os::unix::fs::chown(&state, Some(NOBODY), Some(NOBODY)).unwrap();
    let to = disk.join("shared");
    let line = format!("move --allow-lossy --dry-run shared/r {}", to.display());
    let out = t
        .bc_line(&line)
        .env("XDG_STATE_HOME", state)
        .as_nobody()
        .go();
    out.code(1)
        .stderr_has("shared/r/file: rename: Operation not permitted")
        .stderr_has("2 left at the source of 2");
}

/// As long as something stays the same command means the same: it does not go into what the first
/// run made.
#[test]
fn what_is_skipped_leaves_the_destination_where_it_was() {
    let t = TestTree::new();
    t.write("r/file", "content").write("r/stays", "mine");
    t.hard_link("r/stays", "outside");
    let Some(disk) = other_disk(&t) else {
        return;
    };
    let line = format!("move --on-conflict=skip r {}", disk.join("to").display());
    t.bc_line(&line).go().code(1);
    disk.write("to/stays", "another's");
    for _ in 0..2 {
        let out = t.bc_line(&line).go();
        out.code(1)
            .stderr_has("r/stays: remove: stays: the existing entry at the destination")
            .stderr_has("run the same command again");
        assert!(!disk.exists("to/r"), "{out}");
    }
    let line = line.replace("skip", "replace");
    t.remove("outside").bc_line(&line).go().code(0);
    assert_eq!(disk.read("to/stays"), b"mine");
    assert!(!t.exists("r") && litter(&t).is_empty());
}

/// Nothing is left to do where others' files have the names: no journal waits for another run.
#[test]
fn what_is_skipped_leaves_no_journal() {
    let t = TestTree::new();
    t.write("r/file", "content").write("r/taken", "mine");
    let Some(disk) = other_disk(&t) else {
        return;
    };
    disk.write("to/r/taken", "another's");
    let line = format!("move --on-conflict=skip r {}", disk.join("to").display());
    let out = t.bc_line(&line).go();
    out.code(1)
        .stderr_has("r/taken: remove: stays: the existing entry at the destination");
    assert!(!out.error_text().contains("to resume"), "{out}");
    assert_eq!(disk.read("to/r/file"), b"content");
    assert!(litter(&t).is_empty(), "{:?}", litter(&t));
    disk.remove("to/r/taken");
    t.bc_line(&line).go().code(0);
    assert_eq!(disk.read("to/r/taken"), b"mine");
    assert!(!t.exists("r") && litter(&t).is_empty());
    // One that has a copy by another name is known by its journal.
    t.write("r/one", "mine").hard_link("r/one", "r/two");
    disk.write("to/r/two", "another's");
    let out = t.bc_line(&line).go();
    out.code(1).stderr_has("run the same command again");
    disk.remove("to/r/two");
    t.bc_line(&line).go().code(0);
    assert!(!t.exists("r") && litter(&t).is_empty());
}

/// What comes into a directory meanwhile keeps it.
#[test]
fn directories_go_only_when_they_are_empty() {
    let t = tree();
    let Some(disk) = other_disk(&t) else {
        return;
    };
    let to = disk.join("to");
    let line = format!("move --exclude=large r {}", to.display());
    t.bc_line(&line).go().code(0);
    assert!(t.exists("r/a/large") && !t.exists("r/a/file") && !t.exists("r/pipe"));
    assert!(to.join("a/file").exists() && !to.join("a/large").exists());
}

/// Waits until no file of a tree is open for writing: a child that another test has forked meanwhile
/// has it until it starts its program.
fn wait_for_writers(dir: &Path) {
    let is_open = |path: &Path| {
        let file = File::open(path);
        file.is_ok_and(|file| matches!(lease::take(&file), Err(lease::Refused::Writer)))
    };
    let entries = std::fs::read_dir(dir).into_iter().flatten();
    for entry in entries.filter_map(Result::ok) {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => wait_for_writers(&entry.path()),
            Ok(kind) if kind.is_file() => {
                while is_open(&entry.path()) {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
            }
            _ => {}
        }
    }
}

fn killed_at_calls(make: fn() -> TestTree, mut sweep: Sweep, more: &str) {
    if !strace::is_able() {
        return;
    }
    while let Some(point) = sweep.next() {
        let t = make();
        let Some(disk) = other_disk(&t) else {
            return;
        };
        let (before, to) = (seen(&t.join("r"), MANIFEST).unwrap(), disk.join("to"));
        let line = format!("move {more} r {}", to.display());
        let (first, killed) = strace::disturbed(&mut sweep, &t, &point, KILL, &line);
        let context = format!("{line}: killed at {point}");
        assert!(killed || first.status.success(), "{context}: {first}");
        nothing_is_lost(&t.join("r"), &to, &before, &context);
        let is_over = !t.exists("r") && litter(&t).is_empty();
        if !is_over {
            assert!(killed, "{context}: {first}");
            wait_for_writers(&t.join("r"));
            let out = t.bc_line(&line).go();
            assert_eq!(out.status.code(), Some(0), "{context}: {out}");
        }
        all_is_there(&t, &to, &before, &context);
    }
    assert!(sweep.reached() > 0, "{more}");
    figures(&format!("move {more}: killed at {} calls", sweep.reached()));
}

#[test]
fn killed_at_every_call_the_same_command_completes_the_move() {
    killed_at_calls(tree, strace::kills(3), "--sync=end");
    killed_at_calls(tree, strace::kills(2).few_names(6), "--sync=batch");
    killed_at_calls(tree, strace::kills(2).few_names(6), "--sync=file");
}

#[test]
fn killed_at_every_call_of_a_move_of_everything() {
    killed_at_calls(rich, strace::kills(1), "--sync=batch");
}

/// A source that was set aside has its own name wherever it is moved next.
#[test]
fn after_a_kill_another_move_takes_all_names_along() {
    if !strace::is_able() {
        return;
    }
    let private = |dir: &Path| {
        let text = std::process::Command::new("find")
            .arg(dir)
            .output()
            .unwrap();
        String::from_utf8_lossy(&text.stdout).contains("/.bc-move.")
    };
    let mut were_aside = 0;
    for nth in 1..=8 {
        let t = tree();
        let Some(disk) = other_disk(&t) else {
            return;
        };
        let before = seen(&t.join("r"), MANIFEST).unwrap();
        let line = format!("move r {}", disk.join("to").display());
        strace::killed(&t, "unlinkat", nth, &line);
        if !private(&t.join("r")) {
            continue;
        }
        were_aside += 1;
        let to = disk.join("elsewhere");
        let out = t.bc_line(&format!("move r {}", to.display())).go();
        out.code(0);
        assert!(!t.exists("r") && !private(&to), "{nth}: {out}");
        // Those that were removed are where the first run has put them.
        for (path, entry) in seen(&to, MANIFEST).unwrap() {
            let content = before.get(&path).map(|before| &before.content);
            assert_eq!(content, Some(&entry.content), "{nth}: {path:?}");
        }
    }
    assert!(were_aside > 0);
}

/// Every failed call is told, nothing is lost, and the next run completes the move.
#[test]
fn every_fault_is_told_and_nothing_is_lost() {
    if !strace::is_able() {
        return;
    }
    let mut sweep = strace::faults(&FAULTS, 2);
    while let Some(point) = sweep.next() {
        let t = tree();
        let Some(disk) = other_disk(&t) else {
            return;
        };
        let (before, to) = (seen(&t.join("r"), MANIFEST).unwrap(), disk.join("to"));
        let line = format!("move r {}", to.display());
        let error = strace::error(&FAULTS, &point, &sweep);
        let (out, _) = strace::disturbed(&mut sweep, &t, &point, &error, &line);
        let context = format!("{line}: {error} at {point}: {out}");
        nothing_is_lost(&t.join("r"), &to, &before, &context);
        let text = out.error_text();
        match out.status.code() {
            Some(127) if text.contains("shared librar") => continue,
            Some(0) => assert!(!t.exists("r"), "{context}"),
            Some(1 | 2) => {
                assert!(
                    point.call == "write" || text.contains("bc move: "),
                    "{context}"
                );
                // Where there could be no journal, names are taken by what is no copy of a job.
                let again = t.bc_line(&line).go();
                let again = match again.status.code() {
                    Some(0) => again,
                    _ => {
                        let line = line.replace("move r", "move -T --on-conflict=replace r");
                        t.bc_line(&line).go()
                    }
                };
                assert_eq!(again.status.code(), Some(0), "{context}: {again}");
                nothing_is_lost(&t.join("r"), &to, &before, &context);
                assert!(!t.exists("r"), "{context}: {again}");
            }
            _ => panic!("{context}"),
        }
    }
    assert!(sweep.reached() > 0);
    figures(&format!("move: {} faults", sweep.reached()));
}

/// A disk that is full takes no source away, and the same command goes on when there is room.
#[test]
fn a_full_disk_keeps_every_source() {
    let disk = match full_disk(1 << 20) {
        Ok(disk) => disk,
        Err(reason) => return left_out(&reason),
    };
    let t = TestTree::new();
    for number in 0..400 {
        t.write(format!("r/{number:03}"), vec![number as u8; 5000]);
    }
    let before = seen(&t.join("r"), MANIFEST).unwrap();
    let to = disk.path().join("to");
    let line = format!("move r {}", to.display());
    t.bc_line(&line).go().code(2).stderr_has("takes no more");
    assert_eq!(seen(&t.join("r"), MANIFEST).unwrap(), before);
    let more = ["-o", "remount,size=16M"];
    let grown = t.run("mount").args(more).arg(disk.path()).go();
    if !grown.status.success() {
        return left_out("mount cannot change the size of a tmpfs here");
    }
    t.bc_line(&line).go().code(0);
    all_is_there(&t, &to, &before, "after more room");
}

/// The destination loses its power when the move is killed, or right behind its end: what the source
/// has no more is there.
#[test]
fn after_a_power_cut_nothing_is_lost() {
    if !strace::is_able() {
        return;
    }
    for (kind, sync) in [("ext4", "batch"), ("ext4", "end"), ("xfs", "file")] {
        let disk = match loop_disk(kind, 512 << 20) {
            Ok(disk) => disk,
            Err(reason) => {
                left_out(&reason);
                continue;
            }
        };
        let mut sweep = Sweep::new(3).of(&["unlinkat", "renameat2", "syncfs", "fsync"]);
        let mut nth = 0;
        while let Some(point) = sweep.next() {
            let t = tree();
            nth += 1;
            let to = disk.path().join(format!("to-{nth}"));
            let before = seen(&t.join("r"), MANIFEST).unwrap();
            let line = format!("move --sync={sync} r {}", to.display());
            let context = format!("{kind}: {line}: cut at {point}");
            strace::disturbed(&mut sweep, &t, &point, KILL, &line);
            if let Err(reason) = disk.cut().and_then(|()| disk.mount_again()) {
                return left_out(&reason);
            }
            all_is_somewhere(&t.join("r"), &to, &before, &context, sync == "end");
            if t.exists("r") || !litter(&t).is_empty() {
                let out = t.bc_line(&line).go();
                assert_eq!(out.status.code(), Some(0), "{context}: {out}");
            }
            all_is_there(&t, &to, &before, &context);
        }
        assert!(sweep.reached() > 0, "{kind}");
    }
}

/// An owner that this user cannot give is lost with the source.
#[test]
fn an_owner_that_cannot_be_given_keeps_the_source() {
    if !is_root() {
        return left_out("only root has files of others");
    }
    let t = TestTree::new();
    let Some(disk) = other_disk(&t) else {
        return;
    };
    t.write("r/file", "content").mode("r", 0o777);
    t.mode("r/file", 0o644).mode("", 0o777);
    disk.mode("", 0o777);
    let home = t.scratch("home");
    std::fs::create_dir_all(&home).unwrap();
    std::os::unix::fs::chown(&home, Some(NOBODY), Some(NOBODY)).unwrap();
    std::os::unix::fs::chown(t.join("r"), Some(NOBODY), Some(NOBODY)).unwrap();
    let line = format!("move r {}", disk.join("to").display());
    let dry = t.bc_line(&format!("{line} --dry-run")).as_nobody().go();
    let out = t.bc_line(&line).as_nobody().go();
    for out in [&dry, &out] {
        out.code(1)
            .stderr_has("to/file: chown: Operation not permitted")
            .stderr_has("r/file: remove: stays: its copy lacks some of its metadata");
        assert_eq!(out.error_text().matches("chown").count(), 1, "{out}");
    }
    assert!(t.exists("r/file"));
    let out = t.bc_line(&line).as_nobody().go();
    out.code(1).stderr_has("lacks some of its metadata");
    assert!(t.exists("r/file"));
    let line = line.replace("move", "move --allow-lossy");
    t.bc_line(&line).as_nobody().go();
    assert!(!t.exists("r/file"));
    assert_eq!(std::fs::read(disk.join("to/file")).unwrap(), b"content");
}

#[test]
fn metadata_that_is_left_out_would_be_lost() {
    let t = tree();
    let Some(disk) = other_disk(&t) else {
        return;
    };
    let line = format!("move --preserve=mode r {}", disk.join("to").display());
    t.bc_line(&line).go().code(2).stderr_has("--allow-lossy");
    assert!(t.exists("r/a/file") && !disk.join("to").exists());
    let line = line.replace("move", "move --allow-lossy");
    t.bc_line(&line).go().code(0);
    assert!(!t.exists("r"));
}

/// A removal opens the directories of one file at a time.
#[test]
fn files_in_many_directories_go_with_few_descriptors() {
    let t = TestTree::new();
    let Some(disk) = other_disk(&t) else {
        return;
    };
    for number in 0..200 {
        t.write(format!("r/{number}/file"), "content");
    }
    let line = format!("move r {} --threads=mono", disk.join("to").display());
    let limited = format!("ulimit -n 64 && exec \"$0\" {line}");
    t.run("sh").args(["-c", &limited, BC]).go().code(0);
    assert!(!t.exists("r"));
}
