//! What shows that a file is done when the same copy is asked for again: the state of both ends,
//! bound together.
//!
//! A stamp is a digest over the source's file system, inode and last change, over what `stat` says
//! of the copy and over its content's digest, over what was preserved, and over the system's start
//! and the mount in which it was written, unless it was forced to the disk. Any of these differs as
//! soon as one of the ends is another file, or in another state, or may have lost what was written.
//! Where inode numbers move or change times prove nothing there are no stamps, nor for a source
//! that was written to so recently that a later write may give it the same times.

use std::os::fd::AsFd;
use std::sync::Mutex;

use bc_digest::{Algorithm, Digest, hash};
use bc_fs::mount::{Traits, mount_number};
use bc_manifest::integrity::{COPY_STAMP_LEN, Meta};
use bc_walk::FileStat;

use crate::journal::boot_id;
use crate::meta::is_root;
use crate::options::Preserve;
use crate::results::meta_of;

/// See [`Entry::copy_stamp`](bc_manifest::integrity::Entry::copy_stamp).
pub(crate) type Stamp = [u8; COPY_STAMP_LEN];

/// What says which kind of stamp it is: another one has another meaning.
pub(crate) const KIND: &[u8] = b"bc copy stamp 1\n";

/// What a file system is known by, if what `stat` says on it proves the content.
#[derive(Clone, Debug)]
pub(crate) struct Proving {
    pub(crate) traits: Traits,
    pub(crate) name: String,
    /// See [`volume_at`](bc_fs::volume_at); empty where it is not known.
    pub(crate) volume: String,
}

/// File systems by the device numbers of what is on them, each asked once.
#[derive(Default)]
pub(crate) struct Systems(pub(crate) Mutex<Vec<(u64, Proving)>>);

/// Those that a worker has met.
pub(crate) type Met = Vec<(u64, Proving)>;

/// Until when a copy is certain to be what was written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Lasting {
    /// While the system runs, and the destination stays mounted.
    Mounted,
    /// It is on the disk.
    Durable,
}

/// This start of the system, and the mount of the destination.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Session {
    pub(crate) boot: [u8; 16],
    pub(crate) mount: u64,
}

impl Session {
    /// Of the destination that is open as `top`; nothing where the system does not tell.
    pub(crate) fn of(top: impl AsFd) -> Option<Session> {
        let (boot, mount) = (boot_id(), mount_number(top)?);
        (boot != [0; 16] && mount != 0).then_some(Session { boot, mount })
    }
}

/// What a file was copied from, and what the copy is.
pub(crate) struct Ends<'a> {
    pub(crate) source: &'a FileStat,
    pub(crate) copy: &'a Meta,
    pub(crate) digest: Digest,
}

/// In [`given`]: that several names are one file.
pub(crate) const LINKS: u64 = 1 << 1;

/// What is given to copies, as a number: what an ordinary user could not give root can.
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

/// The stamp of what a text says, of a kind of its own, from a session or for ever.
pub(crate) fn of_text(kind: &[u8], session: Option<&Session>, text: &[u8]) -> Stamp {
    let (boot, mount) = session.map_or(([0; 16], 0), |session| (session.boot, session.mount));
    let all = [kind, &boot, &mount.to_le_bytes(), text].concat();
    let mut stamp = Stamp::default();
    stamp.copy_from_slice(&hash(Algorithm::Blake3, &all).as_bytes()[..COPY_STAMP_LEN]);
    stamp
}

/// What `stat` says of one end, but for the number of its names.
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
    /// What there is to say of a copy from the file system that is called `from`. `given`: see
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

    /// Whatever differs of the ends, of what is preserved or of when it was written is another stamp.
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
            let session = Session {
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
