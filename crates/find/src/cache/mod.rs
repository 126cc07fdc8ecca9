//! Digests kept from one search to the next, in a crash-safe store on disk.
//!
//! A record is only used for a file whose device, inode number, size, mtime and ctime are all
//! unchanged, and only to find duplicates: prune compares bytes and never looks here. Files changed
//! less than two seconds before the search began are not recorded: a later write within the same
//! tick of the kernel's clock would not show ([`settled_before`]). Nor are files that another process has open for
//! writing, and that were changed shortly before: a write through a mapping need not show.
//!
//! Nothing is recorded or looked up where inode numbers or ctimes are unreliable.
//!
//! Nothing about a cache is fatal. One that is damaged, or that others may write, is set aside and
//! a new one started; one that cannot be opened is not used. Only a file that never was a cache of
//! this user's is refused, and left as it is.

// Without the feature no cache is ever opened, and what searches do with one is never called.
#![cfg_attr(not(feature = "cache"), allow(dead_code, unreachable_pub))]

mod place;
mod record;
#[cfg(feature = "cache")]
mod store;
#[cfg(not(feature = "cache"))]
#[path = "no_store.rs"]
mod store;

use std::path::Path;

use bc_digest::{Algorithm, Digest};
use bc_fs::known::now_ns;
use bc_fs::known::settled_before;
use bc_fs::mount::Mounts;
use bc_walk::job::{Error, ErrorKind};
use bc_walk::{EntryId, Listing, Stamp};
use place::{CacheContent, CacheFailure, CachePlace};
use rustix::fs::OFlags;

pub(crate) use record::{CacheLookup, CacheRecord, CacheUpdates, Scope};
#[cfg(feature = "cache")]
pub use store::panic_is_expected;

/// Size above which the store is started again: records of deleted files pile up.
const MOST_BYTES: u64 = 1 << 30;

/// The cache of one search.
#[derive(Debug)]
pub struct Cache {
    place: CachePlace,
    began_ns: i64,
    messages: Vec<String>,
    /// True if the cache can be read, and written at the end.
    usable: bool,
    trust: Trust,
    /// Reason why it is refused, if it never was a cache.
    refused: Option<String>,
}

/// Origin of a cache's path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Location {
    /// Given by the user, who may have meant another file.
    Named,
    /// The default, where only caches lie: any file there was one.
    Usual,
}

impl Cache {
    /// Opens the cache at `path`, which need not exist. Open it before the files are listed: files
    /// changed from two seconds before on are not recorded.
    ///
    /// # Errors
    /// If a file lies there that never was a cache of this user's. It is left as it is. In the
    /// [usual](Location::Usual) place the search works without a cache.
    pub fn open(path: impl AsRef<Path>, location: Location) -> Result<Cache, Error> {
        Cache::open_at(path.as_ref(), location)
    }

    fn open_at(path: &Path, location: Location) -> Result<Cache, Error> {
        let mut cache = Cache {
            place: CachePlace::new(path, location),
            began_ns: now_ns(),
            messages: Vec::new(),
            usable: true,
            trust: Trust::default(),
            refused: None,
        };
        if let Some(parent) = path.parent() {
            // A failure here occurs again below, with its reason.
            let _ = bc_edit::entry::make_dirs(parent, 0o777);
        }
        match store::check_place(&cache.place) {
            // Perhaps no longer when it is needed.
            Ok(()) | Err(CacheFailure::Busy) => {}
            Err(failure) => cache.note(failure),
        }
        match cache.refused.take() {
            Some(reason) if location == Location::Named => {
                Err(Error::at(ErrorKind::Refused, path, reason))
            }
            _ => Ok(cache),
        }
    }

    /// Moves the start of the search that much later.
    #[cfg(test)]
    pub(crate) fn pretend_later(&mut self, ns: i64) {
        self.began_ns += ns;
    }

    /// Treats file systems in memory as if they were on a disk, where writes through a mapping
    /// show.
    #[cfg(test)]
    pub(crate) fn pretend_disk(&mut self) {
        self.trust.memory = true;
    }

    /// Treats all inode numbers as unreliable.
    #[cfg(test)]
    pub(crate) fn pretend_unstable(&mut self) {
        self.trust.nothing = true;
    }

    /// Returns messages for the user: the cache was set aside or is not usable, and why.
    pub fn messages(&self) -> &[String] {
        &self.messages
    }

    /// Returns true if the cache can be read, and written at the end.
    pub(crate) fn is_usable(&self) -> bool {
        self.usable
    }

    /// Returns true if the file system of this file lets a record of it be relied on later.
    pub(crate) fn trusts(&mut self, listing: &Listing, entry: EntryId) -> bool {
        self.trust.holds(listing, entry)
    }

    /// Returns true if a file of this state was last changed long enough before the search to be
    /// recorded.
    pub(crate) fn is_settled(&self, stamp: &Stamp) -> bool {
        stamp.mtime_ns.max(stamp.ctime_ns) < settled_before(self.began_ns)
    }

    /// Calls `f` with every existing record of `wanted` (sorted), in whatever state.
    pub(crate) fn load(
        &mut self,
        algorithm: Algorithm,
        wanted: &[CacheLookup],
        f: impl FnMut(u32, &CacheRecord),
    ) {
        if let Some(message) = self.trust.message() {
            self.messages
                .push(format!("{}: {message}", self.place.path()));
        }
        if self.usable
            && let Err(failure) = store::load(&self.place, algorithm, wanted, f)
        {
            self.note(failure);
        }
    }

    /// Loads digests of prefixes as well, with the state of the file that each set belongs to.
    pub(crate) fn load_prefixes(
        &mut self,
        algorithm: Algorithm,
        wanted: &[CacheLookup],
        f: impl FnMut(u32, Stamp, Vec<Digest>),
    ) {
        if self.usable
            && let Err(failure) = store::load_prefixes(&self.place, algorithm, wanted, f)
        {
            self.note(failure);
        }
    }

    /// Adds the results of a search.
    pub(crate) fn save(&mut self, updates: &CacheUpdates<'_>) {
        self.begin_anew_if_large();
        if let Err(failure) = store::save(&self.place, updates) {
            self.note(failure);
        }
    }

    fn begin_anew_if_large(&mut self) {
        if let Ok(CacheContent::Cache(place, file)) = self.place.look(OFlags::RDONLY)
            && file.metadata().is_ok_and(|meta| meta.len() > MOST_BYTES)
            && place::remove(&place).is_ok()
        {
            let path = self.place.path();
            self.messages
                .push(format!("{path}: grown past 1 GiB, begun anew"));
        }
    }

    fn note(&mut self, failure: CacheFailure) {
        let path = self.place.path();
        let text = match failure {
            CacheFailure::Damaged(reason) if self.place.was_ours() => {
                match self.place.set_aside() {
                    Ok(aside) => {
                        let aside = bc_fs::Escaped(aside.as_os_str().as_encoded_bytes());
                        self.messages
                            .push(format!("{path}: {reason}, set aside as {aside}"));
                        return;
                    }
                    Err(error) => format!("{path}: {reason}, done without ({error})"),
                }
            }
            CacheFailure::Damaged(_) => {
                self.refused = Some("not a cache of bc dup".to_owned());
                format!("{path}: not a cache of bc dup, done without")
            }
            CacheFailure::Foreign(reason) => {
                let text = format!("{path}: {reason}, done without");
                self.refused = Some(reason);
                text
            }
            CacheFailure::Busy => format!("{path}: in use by another run, done without"),
            CacheFailure::Unusable(reason) => format!("{path}: {reason}, done without"),
        };
        self.usable = false;
        self.messages.push(text);
    }
}

/// Devices of one search, with the reliability of records of their files.
#[derive(Debug, Default)]
pub(super) struct Trust {
    mounts: Mounts,
    /// Names of the file systems that records cannot stand for.
    refused: Vec<&'static str>,
    #[cfg(test)]
    pub(super) nothing: bool,
    /// True if file systems in memory count as disks.
    #[cfg(test)]
    pub(super) memory: bool,
}

impl Trust {
    /// Returns true if a record of this file can prove its content later: the identity does, and
    /// writes through a mapping reach a disk and change a time.
    pub(super) fn holds(&mut self, listing: &Listing, entry: EntryId) -> bool {
        let Some(id) = listing.identity(entry) else {
            return false;
        };
        let open = || listing.open_dir(listing.dir(entry)).ok();
        let traits = self.mounts.of(id.dev, open);
        // Where nothing is ever written to a disk, a mapping can be written to for ever without any
        // time being moved.
        let in_memory = traits.in_memory;
        #[cfg(test)]
        let in_memory = in_memory && !self.memory;
        let holds = traits.identity_proves_content(id.ino) && !in_memory;
        #[cfg(test)]
        let holds = holds && !self.nothing;
        if !holds && !self.refused.contains(&traits.name) {
            self.refused.push(traits.name);
        }
        holds
    }

    /// Returns a message that names the refused file systems, once.
    pub(super) fn message(&mut self) -> Option<String> {
        let refused = std::mem::take(&mut self.refused);
        (!refused.is_empty()).then(|| {
            format!(
                "not used on {}: inode numbers and times there do not say for sure what a file holds",
                refused.join(", ")
            )
        })
    }
}
