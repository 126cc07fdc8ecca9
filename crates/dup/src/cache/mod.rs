//! Digests kept from one search to the next, in a crash-safe store on disk.
//!
//! A record is only used for a file whose device, inode number, size, mtime
//! and ctime are all what they were, and only to find duplicates: prune
//! compares bytes and never looks here. Files changed less than two seconds
//! before the search began are not recorded: a later write within the same
//! tick of the kernel's clock would not show.
//!
//! Where inode numbers or ctimes cannot be relied on, nothing is recorded or looked up.
//!
//! Nothing about a cache is fatal. One that is damaged, or that others may
//! write, is set aside and a new one begun; one that cannot be opened is done
//! without. Only a file that never was a cache of this user's is refused, and
//! left as it is.

mod place;
mod record;
mod store;
mod trust;

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use bc_digest::Digest;
use bc_walk::{BasicStat, Identity, Stamp};
use rustix::fs::OFlags;

use crate::scan::{Context, Prefixes};
use place::{CachePlace, Found};
use record::{Record, Scope};
use store::{Failure, News};
use trust::Trust;

pub use store::panic_is_expected;

/// Files changed this shortly before the search are not recorded.
const RACY_NS: i64 = 2_000_000_000;

/// A larger store is begun anew: records of files that are gone pile up.
const MOST_BYTES: u64 = 1 << 30;

/// The cache of one search.
#[derive(Debug)]
pub struct Cache {
    place: CachePlace,
    began_ns: i64,
    messages: Vec<String>,
    /// What the store knew of each candidate.
    recalled: Vec<Option<Scope>>,
    /// And how many rounds of each large file.
    prefixes: HashMap<u32, usize>,
    /// Whether it may be read, and written at the end.
    usable: bool,
    trust: Trust,
    /// Why not, if it never was a cache.
    refused: Option<String>,
}

/// How the path of a cache came about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Location {
    /// Somebody named it, and may have meant another file.
    Named,
    /// It is where caches are: whatever lies there was one.
    Usual,
}

/// A file that is no cache of this user's, and why.
#[derive(Debug)]
pub struct CacheRefused(String);

impl fmt::Display for CacheRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CacheRefused {}

impl Cache {
    /// The cache at `path`, which need not exist. To be opened before the files
    /// are listed: changes from two seconds before on are not trusted.
    ///
    /// # Errors
    /// If a file lies there that never was a cache of this user's. It is left
    /// as it is. In the [usual](Location::Usual) place it is done without.
    pub fn open(path: &Path, location: Location) -> Result<Cache, CacheRefused> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos() as i64);
        let mut cache = Cache {
            place: CachePlace::new(path, location),
            began_ns: now,
            messages: Vec::new(),
            recalled: Vec::new(),
            prefixes: HashMap::new(),
            usable: true,
            trust: Trust::default(),
            refused: None,
        };
        if let Some(parent) = path.parent() {
            // Whatever fails here fails again with its reason.
            let _ = std::fs::create_dir_all(parent);
        }
        match store::check_place(&cache.place) {
            // Perhaps no longer when it is needed.
            Ok(()) | Err(Failure::Busy) => {}
            Err(failure) => cache.note(failure),
        }
        match cache.refused.take() {
            Some(reason) if location == Location::Named => {
                Err(CacheRefused(format!("{}: {reason}", cache.place.path())))
            }
            _ => Ok(cache),
        }
    }

    /// As if the search had begun that much later.
    #[cfg(test)]
    pub(crate) fn pretend_later(&mut self, ns: i64) {
        self.began_ns += ns;
    }

    /// As if inode numbers were nowhere to be relied on.
    #[cfg(test)]
    pub(crate) fn pretend_unstable(&mut self) {
        self.trust.nothing = true;
    }

    /// What there is to tell about the cache: set aside, not usable, and why.
    pub fn messages(&self) -> &[String] {
        &self.messages
    }

    /// Puts into the context's table what is known. Gives the number of candidates
    /// whose whole digest is.
    ///
    /// Blocks come back as they were: where files can share some, which leaves all times as they
    /// are, the search asks again.
    pub(crate) fn recall(&mut self, context: &Context<'_>) -> u64 {
        self.recalled = vec![None; context.candidates.len()];
        if !self.usable {
            return 0;
        }
        let stamp = |candidate| meta(context, candidate).map(|meta| meta.stamp);
        let mut wanted: Vec<(Identity, u32)> = (0..context.candidates.len() as u32)
            .filter(|candidate| self.trust.holds(context, *candidate))
            .filter_map(|candidate| Some((meta(context, candidate)?.id, candidate)))
            .collect();
        if let Some(message) = self.trust.message() {
            self.messages
                .push(format!("{}: {message}", self.place.path()));
        }
        wanted.sort_unstable();
        let algorithm = context.options.algorithm;
        let mut found = 0;
        let recalled = &mut self.recalled;
        let result = store::load(&self.place, algorithm, &wanted, |candidate, record| {
            if stamp(candidate) != Some(record.stamp) {
                return;
            }
            recalled[candidate as usize] = Some(record.scope);
            let row = context.table.row(candidate);
            context.table.set_blocks(row, u64::from(record.blocks));
            if record.scope.has_fast() {
                context.table.set_fast(row, record.fast);
            }
            if record.scope.has_whole() {
                let digest = Digest::new(&record.digest[..algorithm.digest_len()]);
                context.table.set_whole(row, &digest);
                found += 1;
            }
        });
        let result = result.and_then(|()| {
            wanted.retain(|(_, candidate)| {
                stamp(*candidate).is_some_and(|stamp| stamp.size > crate::scan::LARGE)
            });
            let mut prefixes = lock(&context.prefixes);
            store::load_prefixes(&self.place, algorithm, &wanted, |candidate, of, known| {
                if stamp(candidate) == Some(of) {
                    self.prefixes.insert(candidate, known.len());
                    prefixes.insert(candidate, known);
                }
            })
        });
        if let Err(failure) = result {
            self.note(failure);
        }
        found
    }

    /// Keeps what this search found out.
    pub(crate) fn remember(&mut self, context: &Context<'_>) {
        if !self.usable {
            return;
        }
        let table = &context.table;
        let newest = self.began_ns.saturating_sub(RACY_NS);
        let trust = &mut self.trust;
        let mut settled = |candidate: u32| {
            let meta = meta(context, candidate)?;
            let changed = meta.stamp.mtime_ns.max(meta.stamp.ctime_ns);
            (!table.failed(candidate) && changed < newest && trust.holds(context, candidate))
                .then_some((meta.id, meta.stamp))
        };
        let prefixes = lock(&context.prefixes);
        let new_prefixes: Vec<(Identity, Stamp, &[Digest])> = prefixes
            .iter()
            .filter(|(one, known)| self.prefixes.get(one).copied().unwrap_or(0) < known.len())
            .filter_map(|(one, known)| {
                let (id, stamp) = settled(*one)?;
                Some((id, stamp, known.as_slice()))
            })
            .collect();
        let mut new_records = Vec::new();
        for candidate in 0..context.candidates.len() as u32 {
            let scope = Scope::new(table.has_fast(candidate), table.has_whole(candidate));
            let known = self.recalled.get(candidate as usize).copied().flatten();
            if scope.is_nothing() || known == Some(scope) {
                continue;
            }
            let Some((id, stamp)) = settled(candidate) else {
                continue;
            };
            let mut record = Record::new(id, stamp);
            record.scope = scope;
            record.fast = table.fast(candidate);
            record.blocks = table.blocks(candidate);
            if scope.has_whole() {
                let digest = table.digest(candidate);
                record.digest[..digest.as_bytes().len()].copy_from_slice(digest.as_bytes());
            }
            new_records.push(record);
        }
        if new_records.is_empty() && new_prefixes.is_empty() {
            return;
        }
        new_records.sort_unstable_by_key(|record| record.id);
        self.begin_anew_if_large();
        let news = News {
            algorithm: context.options.algorithm,
            records: &new_records,
            prefixes: &new_prefixes,
        };
        if let Err(failure) = store::save(&self.place, &news) {
            self.note(failure);
        }
    }

    fn begin_anew_if_large(&mut self) {
        if let Ok(Found::Cache(place, file)) = self.place.look(OFlags::RDONLY)
            && file.metadata().is_ok_and(|meta| meta.len() > MOST_BYTES)
            && place::remove(&place).is_ok()
        {
            let path = self.place.path();
            self.messages
                .push(format!("{path}: grown past 1 GiB, begun anew"));
        }
    }

    fn note(&mut self, failure: Failure) {
        let path = self.place.path();
        let text = match failure {
            Failure::Damaged(reason) if self.place.was_ours() => match self.place.set_aside() {
                Ok(aside) => {
                    let aside = bc_fs::Escaped(aside.as_os_str().as_encoded_bytes());
                    self.messages
                        .push(format!("{path}: {reason}, set aside as {aside}"));
                    return;
                }
                Err(error) => format!("{path}: {reason}, done without ({error})"),
            },
            Failure::Damaged(_) => {
                self.refused = Some("not a cache of bc dup".to_owned());
                format!("{path}: not a cache of bc dup, done without")
            }
            Failure::Foreign(reason) => {
                let text = format!("{path}: {reason}, done without");
                self.refused = Some(reason);
                text
            }
            Failure::Busy => format!("{path}: in use by another run, done without"),
            Failure::Unusable(reason) => format!("{path}: {reason}, done without"),
        };
        self.usable = false;
        self.messages.push(text);
    }
}

fn meta(context: &Context<'_>, candidate: u32) -> Option<BasicStat> {
    context.listing.meta(context.candidates.entry(candidate))
}

fn lock(prefixes: &Mutex<Prefixes>) -> MutexGuard<'_, Prefixes> {
    prefixes.lock().unwrap_or_else(PoisonError::into_inner)
}
