//! Bytes that change on their way, and whoever promises to notice.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::proof::verify;
use super::{Ground, run};
use crate::{Copied, CopyOptions, MANIFEST_NAME, ReadBack};

/// The stage in a directory, if there is one.
fn stage(dir: &Path) -> Option<PathBuf> {
    let mut all = std::fs::read_dir(dir)
        .ok()?
        .flatten()
        .map(|entry| entry.path());
    all.find(|path| path.extension().is_some_and(|end| end == "part"))
}

/// Copies, and changes a byte of the stage as soon as it has been written. `None` if the copy was
/// quicker.
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

fn attempt(read_back: ReadBack, check: impl Fn(&Ground, &Copied)) {
    for _ in 0..20 {
        let ground = Ground::new();
        ground.write("from/file", &vec![7; 40 << 20]);
        let mut options = ground.options(&["from"], "to");
        options.algorithm = bc_digest::Algorithm::from_name("sha256");
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
    for read_back in [ReadBack::Read, ReadBack::Media] {
        attempt(read_back, |ground, copied| {
            assert_eq!(copied.failed, 1);
            assert!(!ground.at("to/file").exists());
            assert_eq!(stage(&ground.at("to")), None);
        });
    }
}

#[test]
fn in_what_nobody_reads_back_the_manifest_finds_it() {
    attempt(ReadBack::None, |ground, copied| {
        assert_eq!(copied.failed, 0);
        let to = ground.at("to");
        let found = verify(&to, &to.join(MANIFEST_NAME));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].ends_with(" file"), "{found:?}");
    });
}
