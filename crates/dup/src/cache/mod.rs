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
//! Nothing about the cache is fatal. One that is damaged or foreign is set
//! aside and a new one begun; one that cannot be opened is done without.

mod record;
mod store;
mod trust;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use bc_digest::Digest;
use bc_walk::{Identity, Meta, Stamp};

use crate::scan::{Context, Prefixes};
use record::{Record, Scope};
use store::Failure;
use trust::Trust;

/// Files changed this shortly before the search are not recorded.
const RACY_NS: i64 = 2_000_000_000;

/// A larger store is begun anew: records of files that are gone pile up.
const MOST_BYTES: u64 = 1 << 30;

/// The cache of one search.
#[derive(Debug)]
pub struct Cache {
    path: PathBuf,
    began_ns: i64,
    messages: Vec<String>,
    /// What the store knew of each candidate.
    recalled: Vec<Option<Scope>>,
    /// And how many rounds of each large file.
    prefixes: HashMap<u32, usize>,
    /// Whether to write at the end.
    usable: bool,
    trust: Trust,
}

impl Cache {
    /// The cache at `path`, which need not exist. To be made before the files
    /// are listed: changes from two seconds before on are not trusted.
    pub fn new(path: &Path) -> Cache {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos() as i64);
        Cache {
            path: path.to_owned(),
            began_ns: now,
            messages: Vec::new(),
            recalled: Vec::new(),
            prefixes: HashMap::new(),
            usable: true,
            trust: Trust::default(),
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

    /// Puts into the context's table what is known. Gives the candidates whose
    /// whole digest is.
    pub(crate) fn recall(&mut self, context: &Context<'_>) -> Vec<u32> {
        self.recalled = vec![None; context.candidates.len()];
        let stamp = |candidate| meta(context, candidate).map(|meta| meta.stamp);
        let mut wanted: Vec<(Identity, u32)> = (0..context.candidates.len() as u32)
            .filter(|candidate| self.trust.holds(context, *candidate))
            .filter_map(|candidate| Some((meta(context, candidate)?.id, candidate)))
            .collect();
        if let Some(message) = self.trust.message() {
            self.messages
                .push(format!("{}: {message}", self.path.display()));
        }
        wanted.sort_unstable();
        let algorithm = context.options.algorithm;
        let mut found = Vec::new();
        let recalled = &mut self.recalled;
        let result = store::load(&self.path, algorithm, &wanted, |candidate, record| {
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
                found.push(candidate);
            }
        });
        let result = result.and_then(|()| {
            wanted.retain(|(_, candidate)| {
                stamp(*candidate).is_some_and(|stamp| stamp.size > crate::scan::LARGE)
            });
            let mut prefixes = lock(&context.prefixes);
            store::load_prefixes(&self.path, algorithm, &wanted, |candidate, of, known| {
                if stamp(candidate) == Some(of) {
                    self.prefixes.insert(candidate, known.len());
                    prefixes.insert(candidate, known);
                }
            })
        });
        if let Err(failure) = result {
            self.note(failure);
        }
        found.sort_unstable();
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
        if std::fs::metadata(&self.path).is_ok_and(|meta| meta.len() > MOST_BYTES) {
            self.messages.push(format!(
                "{}: grown past 1 GiB, begun anew",
                self.path.display()
            ));
            let _ = std::fs::remove_file(&self.path);
        }
        let algorithm = context.options.algorithm;
        if let Err(failure) = store::save(&self.path, algorithm, &new_records, &new_prefixes) {
            self.note(failure);
        }
    }

    fn note(&mut self, failure: Failure) {
        let path = self.path.display();
        match failure {
            Failure::Busy => {
                self.usable = false;
                self.messages
                    .push(format!("{path}: in use by another run, done without"));
            }
            Failure::Unusable(reason) => {
                self.usable = false;
                self.messages
                    .push(format!("{path}: {reason}, done without"));
            }
            Failure::Damaged(reason) => {
                let aside = store::aside(&self.path);
                match std::fs::rename(&self.path, &aside) {
                    Ok(()) => self.messages.push(format!(
                        "{path}: {reason}, set aside as {}",
                        aside.display()
                    )),
                    Err(error) => {
                        self.usable = false;
                        self.messages
                            .push(format!("{path}: {reason}, done without ({error})"));
                    }
                }
            }
        }
    }
}

fn meta(context: &Context<'_>, candidate: u32) -> Option<Meta> {
    context.listing.meta(context.candidates.entry(candidate))
}

fn lock(prefixes: &Mutex<Prefixes>) -> MutexGuard<'_, Prefixes> {
    prefixes.lock().unwrap_or_else(PoisonError::into_inner)
}
