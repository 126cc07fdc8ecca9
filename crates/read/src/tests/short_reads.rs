//! Servers whose direct reads return less than they were asked for: the ring would ask for the rest
//! at the same position, so that bytes come twice.

use std::path::{Path, PathBuf};

use bc_testkit::{Behaviour, TestTree, fuse_disk, left_out};
use bc_walk::Metadata;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use super::{Recorder, bytes, each_backend, list, options, read_all};
use crate::{VerifyWhen, Want};

/// Bytes that one read of these servers returns at most.
const SHORT: usize = 3000;
/// Length of files that are read in many reads, the first of which fills a buffer.
const LONG: usize = 700_000;
const LENGTHS: [usize; 9] = [
    1,
    100,
    SHORT - 1,
    SHORT,
    SHORT + 1,
    5000,
    2 * SHORT,
    20_000,
    LONG,
];

/// Checks that every file of `LENGTHS` in `dir` is read as it is, whole and in parts, verified now
/// or later, by every backend.
fn every_byte_comes_once(dir: &Path) {
    let paths: Vec<PathBuf> = (0..LENGTHS.len())
        .map(|at| dir.join(at.to_string()))
        .collect();
    each_backend(|backend| {
        for (want, part) in [
            (Want::Whole, 0..LONG),
            // As many bytes as are asked for: their number shows nothing.
            (
                Want::Range {
                    offset: 10,
                    len: 8000,
                },
                10..8010,
            ),
            (Want::Range { offset: 0, len: 1 }, 0..1),
        ] {
            for verify in [VerifyWhen::Now, VerifyWhen::Later] {
                let listing = list(&paths, Metadata::Full);
                let mut recorder = Recorder::new(4);
                (recorder.want, recorder.verify) = (want, verify);
                read_all(&listing, &options(backend), &mut recorder);
                let contents = recorder.contents(&listing);
                for (at, (&len, content)) in LENGTHS.iter().zip(contents).enumerate() {
                    let whole = bytes(len, at);
                    let due = &whole[part.start.min(len)..part.end.min(len)];
                    assert!(
                        content == due,
                        "{backend:?} {want:?} {verify:?}: {} bytes of {} are not the file's",
                        content.len(),
                        due.len()
                    );
                }
            }
        }
    });
}

#[test]
fn short_reads_of_a_server_repeat_nothing() {
    let disk = match fuse_disk(Behaviour {
        short_reads: Some(SHORT),
        ..Behaviour::default()
    }) {
        Ok(disk) => disk,
        Err(reason) => return left_out(&reason),
    };
    for (at, &len) in LENGTHS.iter().enumerate() {
        std::fs::write(disk.shown().join(at.to_string()), bytes(len, at)).unwrap();
    }
    every_byte_comes_once(disk.path());
    // Whoever stands above such a server reads as it does.
    let place = TestTree::new();
    place.dir("overlay");
    place.dir("empty");
    let at = place.join("overlay");
    let layers = format!(
        "lowerdir={}:{}",
        disk.path().display(),
        place.join("empty").display()
    );
    let layers = std::ffi::CString::new(layers).unwrap();
    if let Err(errno) = mount("overlay", &at, "overlay", MountFlags::RDONLY, &*layers) {
        return left_out(&format!("no overlay above FUSE: {errno}"));
    }
    let read = std::panic::catch_unwind(|| every_byte_comes_once(&at));
    unmount(&at, UnmountFlags::DETACH).unwrap();
    if let Err(panic) = read {
        std::panic::resume_unwind(panic);
    }
}
