//! Files with several names are read once: a name whose inode was read before,
//! in the very state in which it is now, gets the digests of that reading.
//!
//! Only where inode and ctime prove that ([`Known::doubt`]), and not within the step of its
//! file system's clock in which it was changed, which a second change could share. Every name is
//! opened and looked at all the same, so each has its own errors.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bc_digest::Digest;
use bc_fs::known::{Judgement, Known, file_clock};
use bc_fs::mount::Mounts;
use bc_read::Opened;
use bc_walk::{EntryId, Identity, Listing};

/// Files with several names, as known to the workers of one plan.
pub(crate) struct Links<'a> {
    listing: &'a Listing,
    /// Inodes, in shards: in a tree of which every file has several names, as some backups are,
    /// each file is asked for, and many workers would wait for one lock for all.
    shards: [Shard; SHARDS],
}

/// A power of two, and several for each of as many workers as machines have.
const SHARDS: usize = 64;

/// Inodes that one lock guards, in cache lines of their own: two, for they are fetched in pairs.
#[derive(Default)]
#[repr(align(128))]
struct Shard(Mutex<HashMap<Identity, LinkedInode>>);

struct LinkedInode {
    /// The name that is read.
    first: EntryId,
    /// Its state when the reading began.
    known: Known<'static>,
    /// True if a change since the reading began is sure to show in the state.
    settled: bool,
    /// Names that were not met yet.
    left: u64,
    reading: LinkReading,
}

enum LinkReading {
    /// Under way, with the names that wait for it.
    Now(Vec<EntryId>),
    Done(Vec<Digest>),
}

/// Treatment of a name.
pub(crate) enum NameTreatment {
    /// Read it; no other name is concerned.
    Read,
    /// Read it, and report the result. Given again if its reading begins again.
    ReadFirst(Identity),
    /// Its digests come with those of another name.
    Wait,
    /// Digests from another name.
    Known(Vec<Digest>),
}

impl<'a> Links<'a> {
    pub(crate) fn new(listing: &'a Listing) -> Links<'a> {
        Links {
            listing,
            shards: std::array::from_fn(|_| Shard::default()),
        }
    }

    /// Returns the treatment of a file that was just opened; `mounts` caches the properties of
    /// devices.
    pub(crate) fn claim(&self, opened: &Opened, mounts: &mut Mounts) -> NameTreatment {
        let stat = &opened.stat;
        if stat.nlink < 2 {
            return NameTreatment::Read;
        }
        let dir = || {
            let dir = self.listing.dir(opened.entry);
            self.listing.open_dir(dir).ok()
        };
        let traits = mounts.of(stat.id.dev, dir);
        if !traits.identity_proves_content(stat.id.ino) {
            return NameTreatment::Read;
        }
        let now = Known::of(stat.id, stat.stamp);
        let mut inodes = self.lock(&stat.id);
        let Some(inode) = inodes.get_mut(&stat.id) else {
            if now.doubt(file_clock(), &traits).is_some() {
                return NameTreatment::Read;
            }
            let inode = LinkedInode {
                first: opened.entry,
                known: now,
                settled: true,
                left: stat.nlink - 1,
                reading: LinkReading::Now(Vec::new()),
            };
            inodes.insert(stat.id, inode);
            return NameTreatment::ReadFirst(stat.id);
        };
        if inode.first == opened.entry {
            inode.known = now;
            inode.settled = now.doubt(file_clock(), &traits).is_none();
            return NameTreatment::ReadFirst(stat.id);
        }
        if !inode.settled || inode.known.judge(&now) != Judgement::Same {
            return NameTreatment::Read;
        }
        inode.left = inode.left.saturating_sub(1);
        let digests = match &mut inode.reading {
            LinkReading::Now(waiting) => {
                waiting.push(opened.entry);
                return NameTreatment::Wait;
            }
            LinkReading::Done(digests) => digests.clone(),
        };
        if inode.left == 0 {
            inodes.remove(&stat.id);
        }
        NameTreatment::Known(digests)
    }

    /// Ends the reading of the first name; returns the names that waited for it: names of the same
    /// inode, so that the metadata of one are right for all. Without digests the reading failed,
    /// and names met from now on are read themselves.
    pub(crate) fn finished(&self, id: Identity, digests: Option<&[Digest]>) -> Vec<EntryId> {
        let mut inodes = self.lock(&id);
        let Some(mut inode) = inodes.remove(&id) else {
            return Vec::new();
        };
        let waited = match std::mem::replace(&mut inode.reading, LinkReading::Done(Vec::new())) {
            LinkReading::Now(waiting) => waiting,
            LinkReading::Done(_) => Vec::new(),
        };
        if let (Some(digests), true) = (digests, inode.left > 0 && inode.settled) {
            inode.reading = LinkReading::Done(digests.to_vec());
            inodes.insert(id, inode);
        }
        waited
    }

    fn lock(&self, id: &Identity) -> MutexGuard<'_, HashMap<Identity, LinkedInode>> {
        let Shard(inodes) = &self.shards[shard(id)];
        inodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the shard of an inode: numbers follow each other, or are multiples of a power of two.
fn shard(id: &Identity) -> usize {
    // The golden ratio, in units of 2^-64: its product's upper bits differ for both.
    let mixed = id.ino.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> (u64::BITS - SHARDS.ilog2())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use bc_pool::Cancel;
    use bc_walk::FileStat;

    fn opened(entry: u32, listing: &Listing, ctime_ns: i64) -> Opened {
        let meta = listing.meta(EntryId(entry)).unwrap();
        let stamp = bc_walk::Stamp {
            ctime_ns,
            ..meta.stamp
        };
        let stat = FileStat {
            id: meta.id,
            stamp,
            mode: 0,
            uid: 0,
            gid: 0,
            nlink: 3,
            rdev: 0,
            blocks: 0,
        };
        Opened {
            entry: EntryId(entry),
            stat,
        }
    }

    fn digests() -> Vec<Digest> {
        vec![bc_digest::hash(bc_digest::Algorithm::Md5, b"x")]
    }

    /// Calls `check` with three names of one file.
    fn with_names(check: impl FnOnce(&Links<'_>, &Listing, &mut Mounts)) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), "x").unwrap();
        for name in ["b", "c"] {
            std::fs::hard_link(dir.path().join("a"), dir.path().join(name)).unwrap();
        }
        let options = bc_walk::WalkOptions::default().metadata(bc_walk::Metadata::Basic);
        let listing = bc_walk::walk(&[dir.path()], &options, 1, &Cancel::new()).unwrap();
        let probe = std::fs::File::open(dir.path()).unwrap();
        let id = listing.meta(EntryId(0)).unwrap().id;
        let traits = bc_fs::mount::traits_or_unknown(probe, id.dev);
        if traits.identity_proves_content(id.ino) {
            check(&Links::new(&listing), &listing, &mut Mounts::default());
        }
    }

    /// Checks numbers that follow each other, and those of one disk's blocks: no lock gets many of
    /// them.
    #[test]
    fn inodes_are_spread_over_the_locks() {
        for step in [1, 2, 8, 32, 128, 4096, 1 << 32] {
            let mut counts = [0; SHARDS];
            for ino in 1..=64 * SHARDS as u64 {
                let id = Identity {
                    dev: 1,
                    ino: ino * step,
                };
                counts[shard(&id)] += 1;
            }
            let most = counts.iter().max();
            assert!(most < Some(&128), "{step}: {counts:?}");
        }
    }

    #[test]
    fn within_a_tick_of_a_change_each_name_is_read() {
        with_names(|links, listing, mounts| {
            // An interrupt that comes 50 ms late has been seen by no clock of files.
            let just_now = file_clock() - 50_000_000;
            for name in 0..3 {
                let treatment = links.claim(&opened(name, listing, just_now), mounts);
                assert!(matches!(treatment, NameTreatment::Read));
            }
        });
    }

    #[test]
    fn names_met_while_the_first_is_read_wait_and_later_ones_know() {
        with_names(|links, listing, mounts| {
            let NameTreatment::ReadFirst(id) = links.claim(&opened(0, listing, 1), mounts) else {
                panic!("not the first");
            };
            assert!(matches!(
                links.claim(&opened(1, listing, 1), mounts),
                NameTreatment::Wait
            ));
            assert_eq!(links.finished(id, Some(&digests())), [EntryId(1)]);
            let known = links.claim(&opened(2, listing, 1), mounts);
            assert!(matches!(known, NameTreatment::Known(known) if known == digests()));
            // All names have been met: nothing is kept.
            assert!(
                links
                    .shards
                    .iter()
                    .all(|shard| shard.0.lock().unwrap().is_empty())
            );
        });
    }

    #[test]
    fn another_state_is_read_and_a_failure_is_nobody_elses() {
        with_names(|links, listing, mounts| {
            let NameTreatment::ReadFirst(id) = links.claim(&opened(0, listing, 1), mounts) else {
                panic!("not the first");
            };
            assert!(matches!(
                links.claim(&opened(1, listing, 2), mounts),
                NameTreatment::Read
            ));
            assert!(links.finished(id, None).is_empty());
            let again = links.claim(&opened(2, listing, 2), mounts);
            assert!(matches!(again, NameTreatment::ReadFirst(_)));
        });
    }

    #[test]
    fn a_reading_that_begins_again_keeps_those_that_wait() {
        with_names(|links, listing, mounts| {
            assert!(matches!(
                links.claim(&opened(0, listing, 1), mounts),
                NameTreatment::ReadFirst(_)
            ));
            assert!(matches!(
                links.claim(&opened(1, listing, 1), mounts),
                NameTreatment::Wait
            ));
            // Written to meanwhile, just now: later names are not answered for.
            let NameTreatment::ReadFirst(id) = links.claim(&opened(0, listing, i64::MAX), mounts)
            else {
                panic!("waits for itself");
            };
            assert!(matches!(
                links.claim(&opened(2, listing, i64::MAX), mounts),
                NameTreatment::Read
            ));
            assert_eq!(links.finished(id, Some(&digests())), [EntryId(1)]);
            assert!(matches!(
                links.claim(&opened(2, listing, i64::MAX), mounts),
                NameTreatment::Read
            ));
        });
    }
}
