//! Options to hash the files of a tree, and which of its entries those are.

use bc_digest::Algorithm;
use bc_manifest::integrity::Kind;
use bc_walk::EntryId;
use bc_walk::job::Error;

use super::Tree;
use crate::options::{Job, Work};

/// Bytes of memory for each file beside the listing: entries that wait for their turn, and possible
/// moves.
const STATE: u64 = 24;

/// Returns options to hash those entries.
pub(crate) fn hash_options(
    tree: &Tree,
    wanted: impl Fn(EntryId) -> bool,
    algorithm: Algorithm,
    work: &Work<'_>,
) -> Result<bc_hash::HashOptions, Error> {
    hash_options_beside(0, tree, wanted, algorithm, work)
}

/// Returns the same options, beside `more` bytes of memory for other things.
pub(crate) fn hash_options_beside(
    more: u64,
    tree: &Tree,
    wanted: impl Fn(EntryId) -> bool,
    algorithm: Algorithm,
    work: &Work<'_>,
) -> Result<bc_hash::HashOptions, Error> {
    let mut files = 0;
    let mut bytes = Some(0);
    for id in tree.listing.ids().filter(|&id| wanted(id)) {
        files += 1;
        let meta = tree.listing.meta(id);
        bytes = bytes.zip(meta).map(|(sum, meta)| sum + meta.stamp.size);
    }
    if bytes.is_none() && work.shows_bytes {
        let read = tree.listing.ids().filter(|&id| wanted(id));
        bytes = bc_hash::bytes_if_few(&tree.listing, read);
    }
    let job = Job {
        files,
        bytes,
        memory: tree.listing.memory() + tree.listing.len() as u64 * STATE + more,
    };
    let reading = (work.reading)(job).map_err(Error::usage)?;
    Ok(bc_hash::HashOptions::new(vec![algorithm])
        .cpu(work.cpu)
        .read(reading.read)
        .workers(reading.workers.max(1))
        .start(reading.start))
}

/// True if an entry of this kind is read.
pub(crate) fn is_read(tree: &Tree, id: EntryId) -> bool {
    crate::entry_ref::kind_of(tree.listing.kind(id)) == Kind::File
}
