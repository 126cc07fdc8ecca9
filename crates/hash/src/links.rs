//! Files with several names are read once: a name whose inode was read before,
//! in the very state in which it is now, gets the digests of that reading.
//!
//! Only where inode and ctime prove that (see [`Traits::identity_proves_content`](
//! bc_fs::mount::Traits::identity_proves_content)), and not within a clock's tick
//! of a change, which a second change could share. Every name is opened and
//! looked at all the same, so each has its own errors.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use bc_digest::Digest;
use bc_fs::mount::Mounts;
use bc_read::Opened;
use bc_walk::{EntryId, FileStat, Identity, Listing, Stamp};

/// Two changes within so many nanoseconds may leave the same ctime: the kernel's
/// clock for file times stands still between two ticks, 10 ms at most.
const TICK: i64 = 20_000_000;

/// What the workers of one plan know of files with several names.
pub(crate) struct Links<'a> {
    listing: &'a Listing,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    mounts: Mounts,
    inodes: HashMap<Identity, Inode>,
}

struct Inode {
    stamp: Stamp,
    /// Names that were not met yet.
    left: u64,
    reading: Reading,
}

enum Reading {
    /// Under way, and who waits for it.
    Now(Vec<(EntryId, FileStat)>),
    Done(Vec<Digest>),
}

/// What to do with a name.
pub(crate) enum Claim {
    /// Read it; nobody else is concerned.
    Read,
    /// Read it, and tell what came of it.
    ReadFirst(Identity),
    /// Its digests come with those of another name.
    Wait,
    /// These are its digests.
    Known(Vec<Digest>),
}

impl<'a> Links<'a> {
    pub(crate) fn new(listing: &'a Listing) -> Links<'a> {
        Links {
            listing,
            state: Mutex::default(),
        }
    }

    /// What to do with a file that was just opened.
    pub(crate) fn claim(&self, opened: &Opened) -> Claim {
        let stat = &opened.stat;
        if stat.nlink < 2 {
            return Claim::Read;
        }
        let mut state = self.lock();
        let dir = || {
            let dir = self.listing.dir(opened.entry);
            self.listing.open_dir(dir).ok()
        };
        let traits = state.mounts.of(stat.id.dev, dir);
        if !traits.identity_proves_content(stat.id.ino) {
            return Claim::Read;
        }
        let Some(inode) = state.inodes.get_mut(&stat.id) else {
            if !is_settled(&stat.stamp) {
                return Claim::Read;
            }
            let inode = Inode {
                stamp: stat.stamp,
                left: stat.nlink - 1,
                reading: Reading::Now(Vec::new()),
            };
            state.inodes.insert(stat.id, inode);
            return Claim::ReadFirst(stat.id);
        };
        if inode.stamp != stat.stamp {
            return Claim::Read;
        }
        inode.left = inode.left.saturating_sub(1);
        let digests = match &mut inode.reading {
            Reading::Now(waiting) => {
                waiting.push((opened.entry, stat.clone()));
                return Claim::Wait;
            }
            Reading::Done(digests) => digests.clone(),
        };
        if inode.left == 0 {
            state.inodes.remove(&stat.id);
        }
        Claim::Known(digests)
    }

    /// The first name was read; gives those that waited for it. Without digests
    /// the reading failed, and names met from now on are read themselves.
    pub(crate) fn finished(
        &self,
        id: Identity,
        digests: Option<&[Digest]>,
    ) -> Vec<(EntryId, FileStat)> {
        let mut state = self.lock();
        let Some(mut inode) = state.inodes.remove(&id) else {
            return Vec::new();
        };
        let waited = match std::mem::replace(&mut inode.reading, Reading::Done(Vec::new())) {
            Reading::Now(waiting) => waiting,
            Reading::Done(_) => Vec::new(),
        };
        if let (Some(digests), true) = (digests, inode.left > 0) {
            inode.reading = Reading::Done(digests.to_vec());
            state.inodes.insert(id, inode);
        }
        waited
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a change from now on is sure to leave another ctime.
fn is_settled(stamp: &Stamp) -> bool {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos() as i64);
    now.saturating_sub(stamp.ctime_ns) > TICK
}
