//! Digests of the files that are asked about, to be looked up while a manifest passes by.

use bc_digest::{Algorithm, Digest};
use bc_hash::{DigestSink, HashOptions, HashProgress, hash_with};
use bc_pool::Cancel;
use bc_read::Plan;
use bc_walk::{EntryId, Error, FileKind, FileStat, Listing};

/// The sizes of files that are asked about, and which of them a manifest has.
pub(super) struct Sizes {
    all: Vec<u64>,
    wanted: Vec<bool>,
    /// True if a manifest records no sizes.
    any: bool,
}

impl Sizes {
    pub(super) fn of(listing: &Listing, entries: &[EntryId]) -> Sizes {
        let sizes = entries.iter();
        let mut all: Vec<u64> = sizes.filter_map(|entry| listing.size(*entry)).collect();
        all.sort_unstable();
        all.dedup();
        Sizes {
            wanted: vec![false; all.len()],
            all,
            any: false,
        }
    }

    /// Records the size of a file in a manifest; `None` if the manifest has no size for it.
    pub(super) fn note(&mut self, size: Option<u64>) {
        match size {
            None => self.any = true,
            Some(size) => {
                if let Ok(at) = self.all.binary_search(&size) {
                    self.wanted[at] = true;
                }
            }
        }
    }

    fn wants(&self, size: Option<u64>) -> bool {
        let found = size.and_then(|size| self.all.binary_search(&size).ok());
        self.any || found.is_some_and(|at| self.wanted[at])
    }
}

/// Digests of one algorithm, to be looked up: 20 bytes each beside the digest.
pub(super) struct Table {
    pub(super) algorithm: Algorithm,
    /// The beginning of each digest and its number, in order.
    order: Vec<([u8; 16], u32)>,
    digests: Vec<u8>,
    /// For each digest, the index of the entry in question that has it.
    entries: Vec<u32>,
}

impl Table {
    fn new(algorithm: Algorithm) -> Table {
        Table {
            algorithm,
            order: Vec::new(),
            digests: Vec::new(),
            entries: Vec::new(),
        }
    }

    fn push(&mut self, at: u32, digest: &Digest) {
        self.order
            .push((head(digest.as_bytes()), self.entries.len() as u32));
        self.digests.extend_from_slice(digest.as_bytes());
        self.entries.push(at);
    }

    /// Returns the indices of entries in question with this digest.
    pub(super) fn find<'t>(&'t self, digest: &'t [u8]) -> impl Iterator<Item = usize> + 't {
        let len = self.algorithm.digest_len();
        let first = head(digest);
        let from = self.order.partition_point(|(other, _)| *other < first);
        let alike = self.order[from..]
            .iter()
            .take_while(move |(other, _)| *other == first);
        let whole = move |number: u32| &self.digests[number as usize * len..][..len];
        alike
            .filter(move |(_, number)| digest.len() == len && whole(*number) == digest)
            .map(|(_, number)| self.entries[*number as usize] as usize)
    }
}

/// The first bytes of a digest, which has at least as many.
fn head(digest: &[u8]) -> [u8; 16] {
    let mut head = [0; 16];
    let len = digest.len().min(16);
    head[..len].copy_from_slice(&digest[..len]);
    head
}

/// Result of reading the files.
pub(super) struct HashedFiles {
    /// Tables in the order of the algorithms.
    pub(super) tables: Vec<Table>,
    pub(super) errors: Vec<(EntryId, Error)>,
    pub(super) bytes_read: u64,
}

/// Hashes those of the entries, which are in path order, that have wanted sizes.
pub(super) fn read(
    listing: &Listing,
    entries: &[EntryId],
    sizes: &Sizes,
    options: &HashOptions,
    cancel: &Cancel,
    progress: &HashProgress,
) -> Result<HashedFiles, bc_walk::job::Error> {
    let wanted = entries.iter().copied();
    let mut wanted: Vec<EntryId> = wanted
        .filter(|entry| listing.kind(*entry) == FileKind::File)
        .filter(|entry| sizes.wants(listing.size(*entry)))
        .collect();
    bc_read::order::for_disk(listing, &mut wanted);
    let plan = Plan::new(wanted, options.workers);
    let sink = |_| Collect::default();
    let (sinks, totals) = hash_with(listing, &plan, options, cancel, progress, sink)?;
    let algorithms = options.algorithms.iter();
    let mut hashed = HashedFiles {
        tables: algorithms.map(|one| Table::new(*one)).collect(),
        errors: Vec::new(),
        bytes_read: totals.read.bytes,
    };
    for sink in sinks {
        hashed.errors.extend(sink.errors);
        for (entry, digests) in sink.files {
            let Ok(at) = entries.binary_search(&entry) else {
                continue;
            };
            for (table, digest) in hashed.tables.iter_mut().zip(&digests) {
                table.push(at as u32, digest);
            }
        }
    }
    for table in &mut hashed.tables {
        table.order.sort_unstable();
    }
    hashed.errors.sort_by_key(|(entry, _)| *entry);
    Ok(hashed)
}

/// Digests and errors of one worker.
#[derive(Default)]
struct Collect {
    files: Vec<(EntryId, Box<[Digest]>)>,
    errors: Vec<(EntryId, Error)>,
}

impl DigestSink for Collect {
    fn file(&mut self, entry: EntryId, result: Result<(&FileStat, &[Digest]), Error>) {
        match result {
            Ok((_, digests)) => self.files.push((entry, digests.into())),
            Err(error) => self.errors.push((entry, error)),
        }
    }
}
