//! A neighbour who may write to the destination, and gives each temporary name to a file of others as
//! soon as he sees it. `BC_TEST_CASES=1000` has him try that often.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use bc_testkit::{NOBODY, TestTree, is_root, left_out};
use rustix::fs::{CWD, FileType, Mode, RenameFlags};

use crate::common::Bc;

const PIPES: usize = 40;

/// Exchanges every temporary name in the directory with a victim, until the end.
fn disturb(dir: &Path, victims: &[std::path::PathBuf], is_over: &AtomicBool) {
    let mut turn = 0;
    while !is_over.load(Relaxed) {
        let Ok(entries) = std::fs::read_dir(dir) else {
            continue;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if name.as_encoded_bytes().starts_with(b".bc-") {
                let victim = &victims[turn % victims.len()];
                let flags = RenameFlags::EXCHANGE;
                let _ = rustix::fs::renameat_with(CWD, entry.path(), CWD, victim, flags);
                turn += 1;
            }
        }
    }
}

/// Root's private files, whatever they are, stay his and private.
#[test]
fn no_other_file_gets_what_a_pipe_or_link_is_to_have() {
    if !is_root() {
        return left_out("other users' files need root");
    }
    for _ in 0..bc_testkit::cases(3) {
        let t = TestTree::new();
        for number in 0..PIPES {
            let (pipe, link) = (format!("r/pipe{number}"), format!("r/link{number}"));
            t.fifo(&pipe).symlink("target", &link).mode(&pipe, 0o666);
            for path in [&pipe, &link] {
                std::os::unix::fs::lchown(t.join(path), Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        t.dir("to").mode("to", 0o777);
        t.write("to/secret", "secret").mode("to/secret", 0o600);
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(CWD, t.join("to/private"), FileType::Fifo, mode, 0).unwrap();
        let inode = |path: &str| t.join(path).symlink_metadata().unwrap().ino();
        let victims = [inode("to/secret"), inode("to/private")];
        let paths = [t.join("to/secret"), t.join("to/private")];
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| disturb(&t.join("to"), &paths, &is_over));
            let out = t.bc_line("copy --algorithm=none -T r to").go();
            is_over.store(true, Relaxed);
            assert!(matches!(out.status.code(), Some(0 | 1)), "{out}");
        });
        for entry in std::fs::read_dir(t.join("to")).unwrap() {
            let entry = entry.unwrap();
            let meta = entry.metadata().unwrap();
            if victims.contains(&meta.ino()) {
                let found = (meta.uid(), meta.mode() & 0o7777);
                assert_eq!(found, (0, 0o600), "{:?}", entry.file_name());
            }
        }
    }
}
