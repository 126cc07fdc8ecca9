//! Bytes that change on their way, and the checks that notice.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::proof::verify;
use super::{Ground, run};
use crate::{Copied, CopyOptions, CopyProgress, MANIFEST_NAME, OnConflict, ReadBack, Target, copy};

/// The stage in a directory, if there is one.
fn stage(dir: &Path) -> Option<PathBuf> {
    let mut all = std::fs::read_dir(dir)
        .ok()?
        .flatten()
        .map(|entry| entry.path());
    all.find(|path| path.extension().is_some_and(|end| end == "part"))
}

/// Copies, and changes a byte of the stage as soon as it has been written. Returns `None` if the
/// copy was quicker.
fn flipped(ground: &Ground, options: &CopyOptions) -> Option<Copied> {
    let (over, flipped) = (AtomicBool::new(false), AtomicBool::new(false));
    let copied = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) && !flipped.load(Ordering::Relaxed) {
                let Some(path) = stage(&ground.at("to")) else {
                    continue;
                };
                let file = std::fs::File::options().read(true).write(true).open(path);
                let Ok(file) = file else {
                    continue;
                };
                let mut byte = [0];
                // The second part is there, so the first is.
                let written = file.metadata().is_ok_and(|meta| meta.len() > 1 << 20);
                if written && file.read_exact_at(&mut byte, 5).is_ok() && byte[0] == 7 {
                    file.write_all_at(&[8], 5).unwrap();
                    flipped.store(true, Ordering::Relaxed);
                }
            }
        });
        let copied = run(options).0.unwrap();
        over.store(true, Ordering::Relaxed);
        copied
    });
    flipped.load(Ordering::Relaxed).then_some(copied)
}

/// Files that are copied by one worker, and in blocks by all of them.
const WAYS: [(&str, usize); 2] = [("sha256", 40 << 20), ("blake3", 70 << 20)];

fn attempt(
    (algorithm, size): (&str, usize),
    read_back: ReadBack,
    check: impl Fn(&Ground, &Copied),
) {
    for _ in 0..20 {
        let ground = Ground::new();
        ground.write("from/file", &vec![7; size]);
        let mut options = ground.options(&["from"], "to");
        options.algorithm = bc_digest::Algorithm::from_name(algorithm);
        options.read_back = read_back;
        if let Some(copied) = flipped(&ground, &options) {
            // It may have come after the reading back, just before the name.
            if read_back == ReadBack::None || copied.failed == 1 {
                return check(&ground, &copied);
            }
        }
    }
    panic!("no byte could be changed in time");
}

#[test]
fn in_the_stage_before_it_is_read_back() {
    for (way, read_back) in [
        (WAYS[0], ReadBack::Read),
        (WAYS[0], ReadBack::Media),
        (WAYS[1], ReadBack::Read),
    ] {
        attempt(way, read_back, |ground, copied| {
            assert_eq!(copied.failed, 1);
            assert!(!ground.at("to/file").exists());
            assert_eq!(stage(&ground.at("to")), None);
        });
    }
}

#[test]
fn in_what_nobody_reads_back_the_manifest_finds_it() {
    for way in WAYS {
        attempt(way, ReadBack::None, |ground, copied| {
            assert_eq!(copied.failed, 0);
            let to = ground.at("to");
            let found = verify(&to, &to.join(MANIFEST_NAME));
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].ends_with(" file"), "{found:?}");
        });
    }
}

/// A mixture of two states of a source that is written to while it is read is never called a copy:
/// bytes that were read already change, and bytes that are read later.
#[test]
fn in_the_source_while_it_is_read() {
    for (algorithm, size) in WAYS {
        for settled in [false, true] {
            let ground = Ground::new();
            let old = vec![7; size];
            ground.write("from/file", &old);
            if settled {
                super::resume::settle();
            }
            let mut options = ground.options(&["from"], "to");
            options.algorithm = bc_digest::Algorithm::from_name(algorithm);
            let source = ground.at("from/file");
            let (cancel, progress) = (bc_pool::Cancel::new(), CopyProgress::default());
            let over = AtomicBool::new(false);
            let copied = std::thread::scope(|scope| {
                scope.spawn(|| {
                    while progress.bytes.load(Ordering::Relaxed) < 3 << 20
                        && !over.load(Ordering::Relaxed)
                    {
                        std::thread::yield_now();
                    }
                    let file = std::fs::File::options().write(true).open(&source).unwrap();
                    file.write_all_at(&[8], 5).unwrap();
                    file.write_all_at(&[8], size as u64 - 5).unwrap();
                });
                let copied = copy(&options, &cancel, &progress, &|_| {}).unwrap();
                over.store(true, Ordering::Relaxed);
                copied
            });
            let mut new = old.clone();
            (new[5], new[size - 5]) = (8, 8);
            let to = ground.at("to");
            match std::fs::read(to.join("file")) {
                Ok(found) => {
                    assert!(found == old || found == new, "{algorithm} {settled}");
                    assert_eq!(verify(&to, &to.join(MANIFEST_NAME)), [""; 0]);
                }
                Err(_) => assert_eq!(copied.failed, 1, "{algorithm} {settled}"),
            }
            assert_eq!(stage(&to), None, "{algorithm} {settled}");
        }
    }
}

/// Times and sizes do not show it: `verify` compares, and copies again.
#[test]
fn at_the_destination_afterwards() {
    let ground = Ground::new();
    for (name, length) in [("small", 1000), ("medium", 300_000), ("huge", 65 << 20)] {
        ground.write(&format!("from/{name}"), &vec![7; length]);
    }
    let mut options = ground.options(&["from"], "to");
    super::done(&options);
    let whole = super::seen(&ground.at("from"));
    for name in ["small", "medium", "huge"] {
        let path = ground.at("to").join(name);
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        let time = file.metadata().unwrap().modified().unwrap();
        file.write_all_at(&[6], 999).unwrap();
        file.set_modified(time).unwrap();
    }
    let to = ground.at("to");
    let found = verify(&to, &to.join(MANIFEST_NAME));
    assert_eq!(found, ["Damaged huge", "Damaged medium", "Damaged small"]);
    options.target = Target::Exactly;
    options.on_conflict = OnConflict::Verify;
    let copied = super::done(&options);
    assert_eq!((copied.skipped, copied.copied), (0, 4), "{copied:?}");
    assert!(super::seen(&to) == whole);
    assert_eq!(verify(&to, &to.join(MANIFEST_NAME)), [""; 0]);
}
