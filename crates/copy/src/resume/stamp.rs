//! Stamps, which show that a file is done when the same copy is asked for again: the state of both
//! ends, bound together.
//!
//! A stamp is a digest over the source's file system, inode and last change, over the copy's `stat`
//! and content digest, over the preserved metadata, and over the boot and the mount in which it was
//! written, unless it was forced to the disk. Any of these differs as soon as one of the ends is
//! another file, or in another state, or may have lost written data.
//! There are no stamps where inode numbers move or change times prove nothing, nor for a source
//! that was written to so recently that a later write may give it the same times.

use std::sync::Mutex;

use bc_digest::{Algorithm, Digest, hash};
use bc_fs::known::MountSession;
use bc_fs::mount::Traits;
use bc_integrity::meta_of;
use bc_manifest::integrity::{COPY_STAMP_LEN, Meta};
use bc_walk::FileStat;

use crate::meta::is_root;
use crate::options::Preserve;

/// See [`Entry::copy_stamp`](bc_manifest::integrity::Entry::copy_stamp).
pub(crate) type Stamp = [u8; COPY_STAMP_LEN];

/// Prefix that identifies the kind of stamp: another one has another meaning.
pub(crate) const KIND: &[u8] = b"bc copy stamp 1\n";

/// Name and traits of a file system on which the results of `stat` may prove the content.
#[derive(Clone, Debug)]
pub(crate) struct Proving {
    pub(crate) traits: Traits,
    pub(crate) name: String,
    /// See [`volume_at`](bc_fs::volume::volume_at); empty where it is not known.
    pub(crate) volume: String,
}

/// File systems by the device numbers of their files, each determined once.
#[derive(Default)]
pub(crate) struct Systems(pub(crate) Mutex<Vec<(u64, Proving)>>);

/// File systems that a worker has met.
pub(crate) type Met = Vec<(u64, Proving)>;

/// Time for which a copy is certain to be what was written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Lasting {
    /// While the system runs, and the destination stays mounted.
    Mounted,
    /// It is on the disk.
    Durable,
}

/// Source and copy of a file.
pub(crate) struct Ends<'a> {
    pub(crate) source: &'a FileStat,
    pub(crate) copy: &'a Meta,
    pub(crate) digest: Digest,
}

/// In [`given`]: that several names are one file.
pub(crate) const LINKS: u64 = 1 << 1;

/// Returns the metadata that is given to copies, as a number: root can give more than others.
pub(crate) fn given(preserve: Preserve) -> u64 {
    let Preserve {
        mode,
        owner,
        times,
        xattrs,
        links,
    } = preserve;
    [mode, owner, times, xattrs, links, is_root()]
        .into_iter()
        .fold(0, |bits, bit| bits << 1 | u64::from(bit))
}

/// Returns the stamp of a text, of a kind of its own, valid for a session or for ever.
pub(crate) fn of_text(kind: &[u8], session: Option<&MountSession>, text: &[u8]) -> Stamp {
    let (boot, mount) = session.map_or(([0; 16], 0), |session| (session.boot, session.mount));
    let all = [kind, &boot, &mount.to_le_bytes(), text].concat();
    let mut stamp = Stamp::default();
    stamp.copy_from_slice(&hash(Algorithm::Blake3, &all).as_bytes()[..COPY_STAMP_LEN]);
    stamp
}

/// Appends the state of one end, without the number of its names.
pub(crate) fn push_state(text: &mut Vec<u8>, meta: &Meta) {
    let numbers = [
        meta.ino,
        meta.size,
        meta.mtime_ns as u64,
        meta.ctime_ns as u64,
        u64::from(meta.mode),
        u64::from(meta.uid) << 32 | u64::from(meta.gid),
    ];
    for number in numbers {
        text.extend_from_slice(&number.to_le_bytes());
    }
}

impl Ends<'_> {
    /// Returns the text that is stamped, for a copy from the file system named `from`. `given`: see
    /// [`given`].
    pub(crate) fn text(&self, from: &str, given: u64) -> Vec<u8> {
        let mut text = Vec::with_capacity(256);
        push_state(&mut text, &meta_of(self.source));
        push_state(&mut text, self.copy);
        text.extend_from_slice(&given.to_le_bytes());
        text.push(self.digest.as_bytes().len() as u8);
        text.extend_from_slice(self.digest.as_bytes());
        text.extend_from_slice(from.as_bytes());
        text
    }
}

#[cfg(test)]
mod tests {
    use bc_walk::{Identity, Stamp as Times};

    use super::*;

    /// Any difference of the ends, of the preserved metadata or of the session gives another stamp.
    #[test]
    fn everything_counts() {
        let number = |at: usize, n: usize| if at == n { 9 } else { 1 };
        let stamp = |n: usize| {
            let source = FileStat {
                id: Identity {
                    dev: 1,
                    ino: number(0, n),
                },
                stamp: Times {
                    size: number(1, n),
                    mtime_ns: number(2, n) as i64,
                    ctime_ns: number(3, n) as i64,
                },
                mode: number(4, n) as u32,
                uid: number(5, n) as u32,
                gid: number(6, n) as u32,
                nlink: 1,
                rdev: 0,
                blocks: 0,
            };
            let copy = Meta {
                size: number(7, n),
                mode: number(8, n) as u32,
                uid: number(9, n) as u32,
                gid: number(10, n) as u32,
                mtime_ns: number(11, n) as i64,
                ctime_ns: number(12, n) as i64,
                ino: number(13, n),
                nlink: 1,
            };
            let digest = Digest::from_slice(&[number(14, n) as u8; 16]).unwrap();
            let preserve = match n {
                15 => Preserve::NONE,
                _ => Preserve::ALL,
            };
            let session = MountSession {
                boot: [number(16, n) as u8; 16],
                mount: number(17, n),
            };
            let from = if n == 18 { "other" } else { "one" };
            let ends = Ends {
                source: &source,
                copy: &copy,
                digest,
            };
            let session = (n != 19).then_some(&session);
            of_text(KIND, session, &ends.text(from, given(preserve)))
        };
        let mut all: Vec<Stamp> = (0..=20).map(stamp).collect();
        assert_eq!(stamp(20), all[20]);
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 21);
    }
}
