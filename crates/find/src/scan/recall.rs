//! The cache's part in a search: its digests of candidates go into the table before any of them is
//! opened, and the search's results go into the cache.

use std::collections::HashMap;

use bc_digest::Digest;
use bc_walk::{BasicStat, EntryId, Identity, Stamp};

use super::prefix_stages::LARGE;
use super::table::Prefixes;
use super::{Context, lock};
use crate::cache::{Cache, CacheLookup, CacheRecord, CacheUpdates, Scope};

/// Results that the cache provided.
#[derive(Debug, Default)]
pub(super) struct Recalled {
    /// Number of candidates with the digest of all their bytes.
    pub(super) whole: u64,
    /// Digests of each candidate that the cache provided.
    scopes: Vec<Option<Scope>>,
    /// The ends of how many stages of each large file.
    prefixes: HashMap<u32, usize>,
    /// Files that may be written to without a trace, in order.
    written: Vec<EntryId>,
}

impl Recalled {
    /// Puts the cache's digests into the context's table.
    ///
    /// Blocks come back as they were: where files can share some, which leaves all times as they
    /// are, the search asks again.
    pub(super) fn of(cache: &mut Cache, context: &Context<'_>, written: Vec<EntryId>) -> Recalled {
        let mut recalled = Recalled {
            scopes: vec![None; context.candidates.len()],
            written,
            ..Recalled::default()
        };
        if !cache.is_usable() {
            return recalled;
        }
        let stamp = |candidate| meta(context, candidate).map(|meta| meta.stamp);
        let mut wanted: Vec<CacheLookup> = (0..context.candidates.len() as u32)
            .filter(|one| {
                let entry = context.candidates.entry(*one);
                recalled.written.binary_search(&entry).is_err()
                    && cache.trusts(context.listing, entry)
            })
            .filter_map(|candidate| Some((meta(context, candidate)?.id, candidate)))
            .collect();
        wanted.sort_unstable();
        let algorithm = context.options.algorithm;
        let table = &context.table;
        cache.load(algorithm, &wanted, |candidate, record| {
            if stamp(candidate) != Some(record.stamp) {
                return;
            }
            recalled.scopes[candidate as usize] = Some(record.scope);
            let row = table.row(candidate);
            table.set_blocks(row, u64::from(record.blocks));
            if record.scope.has_fast() {
                table.set_fast(row, record.fast);
            }
            if record.scope.has_whole() {
                let digest = Digest::new(&record.digest[..algorithm.digest_len()]);
                table.set_whole(row, &digest);
                recalled.whole += 1;
            }
        });
        wanted.retain(|(_, candidate)| stamp(*candidate).is_some_and(|stamp| stamp.size > LARGE));
        let mut prefixes = lock(&context.prefixes);
        cache.load_prefixes(algorithm, &wanted, |candidate, of, known| {
            if stamp(candidate) == Some(of) {
                recalled.prefixes.insert(candidate, known.len());
                prefixes.insert(candidate, known);
            }
        });
        drop(prefixes);
        recalled
    }

    /// Adds the results of this search to the cache.
    pub(super) fn remember(&self, cache: &mut Cache, context: &Context<'_>) {
        if !cache.is_usable() {
            return;
        }
        let prefixes = lock(&context.prefixes);
        let prefixes = self.new_prefixes(&prefixes, cache, context);
        let records = self.new_records(cache, context);
        if !records.is_empty() || !prefixes.is_empty() {
            cache.save(&CacheUpdates {
                algorithm: context.options.algorithm,
                records: &records,
                prefixes: &prefixes,
            });
        }
    }

    fn new_prefixes<'p>(
        &self,
        prefixes: &'p Prefixes,
        cache: &mut Cache,
        context: &Context<'_>,
    ) -> Vec<(Identity, Stamp, &'p [Digest])> {
        let known = |one: &u32| self.prefixes.get(one).copied().unwrap_or(0);
        prefixes
            .iter()
            .filter(|(one, digests)| known(one) < digests.len())
            .filter_map(|(one, digests)| {
                let (id, stamp) = self.settled(cache, context, *one)?;
                Some((id, stamp, digests.as_slice()))
            })
            .collect()
    }

    /// Sorted by identity.
    fn new_records(&self, cache: &mut Cache, context: &Context<'_>) -> Vec<CacheRecord> {
        let table = &context.table;
        let mut records = Vec::new();
        for candidate in 0..context.candidates.len() as u32 {
            let scope = Scope::new(table.has_fast(candidate), table.has_whole(candidate));
            let known = self.scopes.get(candidate as usize).copied().flatten();
            if scope.is_nothing() || known == Some(scope) {
                continue;
            }
            let Some((id, stamp)) = self.settled(cache, context, candidate) else {
                continue;
            };
            let mut record = CacheRecord::new(id, stamp);
            record.scope = scope;
            record.fast = table.fast(candidate);
            record.blocks = table.blocks(candidate);
            if scope.has_whole() {
                let digest = table.digest(candidate);
                record.digest[..digest.as_bytes().len()].copy_from_slice(digest.as_bytes());
            }
            records.push(record);
        }
        records.sort_unstable_by_key(|record| record.id);
        records
    }

    /// Returns the identity and state of a file, if they can be recorded.
    fn settled(
        &self,
        cache: &mut Cache,
        context: &Context<'_>,
        one: u32,
    ) -> Option<(Identity, Stamp)> {
        let meta = meta(context, one)?;
        let entry = context.candidates.entry(one);
        let settled = !context.table.failed(one)
            && cache.is_settled(&meta.stamp)
            && self.written.binary_search(&entry).is_err()
            && cache.trusts(context.listing, entry);
        settled.then_some((meta.id, meta.stamp))
    }
}

fn meta(context: &Context<'_>, candidate: u32) -> Option<BasicStat> {
    context.listing.meta(context.candidates.entry(candidate))
}
