//! Answers of manifests about files: the contents that they contain, looked up by the digests of the
//! files while a manifest passes by.

use bc_digest::{Algorithm, Digest};
use bc_hash::{DigestSink, HashOptions, HashProgress, hash_with};
use bc_pool::Cancel;
use bc_walk::{EntryId, Error, FileKind, FileStat, Listing, job};

use super::entries::ManifestItem;
use super::home::{Device, Systems, devices};
use super::origin::{ManifestOrigin, NamedFiles};
use super::{Form, Manifest, Tally, strength};
use crate::aliases::Aliases;
use crate::subtrees::Subtrees;

/// Files that manifests are asked about.
pub struct Question<'a> {
    /// The files, walked with metadata.
    pub listing: &'a Listing,
    /// Entries in question, in path order.
    pub entries: &'a [EntryId],
    /// For each entry all files of the trees with its content, itself among them: lines of such
    /// names in a list of unknown origin are taken to be about these files. Empty where that does
    /// not matter.
    pub names: &'a [&'a [EntryId]],
    /// The files in question and everything beside them in their trees, with traces of all files: a
    /// manifest's entries for those are no reference copies.
    pub own: &'a Subtrees,
    /// Options for reading files; the algorithms come from the manifests.
    pub hash: HashOptions,
    /// True to return the entry by which a manifest knows a file.
    pub details: bool,
}

/// Manifest that contains a file's content, and the algorithm by which it does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Answer {
    /// Index of the manifest.
    pub manifest: usize,
    /// Algorithm of the digest.
    pub algorithm: Algorithm,
}

/// The entry by which a manifest knows a file.
#[derive(Clone, Debug)]
pub struct Detail {
    /// Its path, as the manifest has it.
    pub path: Vec<u8>,
    /// Its digest.
    pub digest: Digest,
}

/// Answers to a [`Question`].
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Answers {
    /// For each entry in question, its answer. A strong digest comes before a weak one, then the
    /// manifest that was named first.
    pub known: Vec<Option<Answer>>,
    /// For each entry in question, the manifest's entry, if that was asked for.
    pub details: Vec<Option<Box<Detail>>>,
    /// Files that could not be read.
    pub errors: Vec<(EntryId, Error)>,
    /// Bytes read.
    pub bytes_read: u64,
    /// Entries that were passed over because they may be of the very files that are asked about.
    pub own_entries: u64,
}

/// Asks manifests which of the contents they contain. Files are read only if a manifest has one of
/// their size, or has no sizes. Memory grows with the files in question, not with the manifests.
///
/// After a cancellation the answers are incomplete: files that were not read have none.
///
/// # Errors
/// A manifest that is cut off, altered or invalid; a worker that panicked.
pub fn ask(
    question: &Question<'_>,
    manifests: &mut [Manifest],
    cancel: &Cancel,
    progress: &HashProgress,
) -> Result<Answers, job::Error> {
    let mut sizes = WantedSizes::of(question.listing, question.entries);
    let mut algorithms = Vec::new();
    let devices = devices(question.own);
    let mut origins = Vec::new();
    for manifest in &mut *manifests {
        let (tally, systems) = manifest.survey(question, &devices, &mut sizes, cancel)?;
        origins.push(systems);
        for algorithm in &tally.algorithms {
            if !algorithms.contains(algorithm) {
                algorithms.push(*algorithm);
            }
        }
        manifest.tally = tally;
    }
    let mut answers = Answers {
        known: vec![None; question.entries.len()],
        details: vec![
            None;
            if question.details {
                question.entries.len()
            } else {
                0
            }
        ],
        ..Answers::default()
    };
    if algorithms.is_empty() {
        return Ok(answers);
    }
    algorithms.sort_unstable();
    let options = question.hash.clone().algorithms(algorithms);
    let hashed = hash_wanted(
        question.listing,
        question.entries,
        &sizes,
        &options,
        cancel,
        progress,
    )?;
    answers.bytes_read = hashed.bytes_read;
    answers.errors = hashed.errors;
    let mut aliases = Aliases::new(question.own, cancel);
    let mut unknown = Vec::with_capacity(manifests.len());
    for ((nth, manifest), systems) in manifests.iter().enumerate().zip(origins) {
        let mut origin = ManifestOrigin::new(manifest, systems, question.own, &mut aliases);
        let tables = &hashed.tables[..];
        unknown.push(manifest.look_up(nth, question, tables, &mut origin, &mut answers, cancel)?);
    }
    for (manifest, unknown) in manifests.iter_mut().zip(unknown) {
        manifest.tally.unknown_origin = unknown;
    }
    Ok(answers)
}

impl Manifest {
    /// Reads it through for the first time: is it whole, and of which sizes are its files?
    fn survey(
        &self,
        question: &Question<'_>,
        devices: &[Device],
        sizes: &mut WantedSizes,
        cancel: &Cancel,
    ) -> Result<(Tally, Systems), job::Error> {
        let own = question.own;
        if self.header.is_none() && (own.has_dir(self.id) || own.has_file(self.id)) {
            return Err(
                self.refused("is inside a PATH, and does not record which tree it describes")
            );
        }
        let mut tally = Tally::default();
        let header = self.header.as_deref();
        let mut systems = header.map_or_else(Systems::default, |header| {
            Systems::of(header, &self.home, devices)
        });
        let mut is_root_own = false;
        self.each(cancel, &mut |found| match (found, header) {
            (ManifestItem::Root(ino), Some(header)) => {
                is_root_own = systems.rooted(ino, header, devices, own);
            }
            (ManifestItem::Mounted(path, mounted), Some(header)) => {
                systems.mounted(path, mounted, header, &self.home, devices);
            }
            (ManifestItem::MadeIn(dir), _) => systems.made_in(dir),
            (ManifestItem::Root(_) | ManifestItem::Mounted(..), None) => {}
            (ManifestItem::Without, _) => tally.without += 1,
            (ManifestItem::ReferenceCopy(reference_copy), _) => {
                tally.reference_copies += 1;
                sizes.note(reference_copy.size);
                for algorithm in reference_copy.algorithms {
                    if !tally.algorithms.contains(algorithm) {
                        tally.algorithms.push(*algorithm);
                    }
                }
            }
        })?;
        // Renamed, or mounted in another way, it is still the same directory.
        if is_root_own {
            return Err(self.refused(
                "is a manifest of what is asked about, or of a part of it: it says nothing of any \
                 other copy",
            ));
        }
        Ok((tally, systems))
    }

    /// Reads the manifest again and looks up each of its digests. Returns the number of entries
    /// that do not count, as they have the names of those files.
    fn look_up(
        &self,
        nth: usize,
        question: &Question<'_>,
        tables: &[DigestTable],
        origin: &mut ManifestOrigin<'_, '_>,
        answers: &mut Answers,
        cancel: &Cancel,
    ) -> Result<u64, job::Error> {
        // The best digest of each, which counts only once the manifest is known to be whole.
        let mut best: Vec<Option<Algorithm>> = vec![None; question.entries.len()];
        let mut details = vec![None; answers.details.len()];
        let (mut own_entries, mut alike) = (0, Vec::new());
        let (mut unknown_origin, mut named) = (0, NamedFiles::new(question.listing, question.own));
        let is_believed = self.form == Form::Checksums && self.is_trusted;
        let is_unknown = self.header.is_none() && !self.is_trusted && !question.names.is_empty();
        self.each(cancel, &mut |found| {
            let ManifestItem::ReferenceCopy(reference_copy) = found else {
                return;
            };
            alike.clear();
            for table in tables {
                if reference_copy.algorithms.contains(&table.algorithm) {
                    let known = table.find(reference_copy.digest.as_bytes());
                    alike.extend(known.map(|at| (at, table.algorithm)));
                }
            }
            let size = |at: usize| question.listing.size(question.entries[at]);
            alike.retain(|(at, _)| {
                reference_copy.size.is_none() || reference_copy.size == size(*at)
            });
            // Where a relative name leads from here says nothing of a list that was made elsewhere.
            let is_elsewhere = is_believed && !reference_copy.path.starts_with(b"/");
            if !alike.is_empty() && !is_elsewhere && origin.may_be_own(&reference_copy) {
                own_entries += 1;
                return;
            }
            if is_unknown && !alike.is_empty() {
                let mut is_like =
                    |at: usize| named.is_one_of(reference_copy.path, question.names[at]);
                let before = alike.len();
                alike.retain(|(at, _)| !is_like(*at));
                unknown_origin += u64::from(alike.len() < before);
            }
            for (at, algorithm) in &alike {
                let known = &mut best[*at];
                if known.is_none_or(|other| rank(*algorithm) < rank(other)) {
                    *known = Some(*algorithm);
                    if let Some(detail) = details.get_mut(*at) {
                        *detail = Some(Box::new(Detail {
                            path: reference_copy.path.to_vec(),
                            digest: reference_copy.digest,
                        }));
                    }
                }
            }
        })?;
        answers.own_entries += own_entries;
        for (at, algorithm) in best.into_iter().enumerate() {
            let known = &mut answers.known[at];
            let Some(algorithm) = algorithm else {
                continue;
            };
            let weaker = |other: &Answer| {
                strength::is_weak(other.algorithm) && !strength::is_weak(algorithm)
            };
            if known.as_ref().is_none_or(weaker) {
                let manifest = nth;
                *known = Some(Answer {
                    manifest,
                    algorithm,
                });
                if let Some(detail) = details.get_mut(at) {
                    answers.details[at] = detail.take();
                }
            }
        }
        answers.own_entries += unknown_origin;
        Ok(unknown_origin)
    }
}

/// Less is better.
fn rank(algorithm: Algorithm) -> (bool, Algorithm) {
    (strength::is_weak(algorithm), algorithm)
}

/// The sizes of files that are asked about, and which of them a manifest has.
struct WantedSizes {
    all: Vec<u64>,
    wanted: Vec<bool>,
    /// True if a manifest records no sizes.
    any: bool,
}

impl WantedSizes {
    fn of(listing: &Listing, entries: &[EntryId]) -> WantedSizes {
        let sizes = entries.iter();
        let mut all: Vec<u64> = sizes.filter_map(|entry| listing.size(*entry)).collect();
        all.sort_unstable();
        all.dedup();
        WantedSizes {
            wanted: vec![false; all.len()],
            all,
            any: false,
        }
    }

    /// Records the size of a file in a manifest; `None` if the manifest has no size for it.
    fn note(&mut self, size: Option<u64>) {
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
struct DigestTable {
    algorithm: Algorithm,
    /// The beginning of each digest and its number, in order.
    order: Vec<([u8; 16], u32)>,
    digests: Vec<u8>,
    /// For each digest, the index of the entry in question that has it.
    entries: Vec<u32>,
}

impl DigestTable {
    fn new(algorithm: Algorithm) -> DigestTable {
        DigestTable {
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
struct HashedFiles {
    /// Tables in the order of the algorithms.
    tables: Vec<DigestTable>,
    errors: Vec<(EntryId, Error)>,
    bytes_read: u64,
}

/// Hashes those of the entries, which are in path order, that have wanted sizes.
fn hash_wanted(
    listing: &Listing,
    entries: &[EntryId],
    sizes: &WantedSizes,
    options: &HashOptions,
    cancel: &Cancel,
    progress: &HashProgress,
) -> Result<HashedFiles, bc_walk::job::Error> {
    let wanted = entries.iter().copied();
    let wanted: Vec<EntryId> = wanted
        .filter(|entry| listing.kind(*entry) == FileKind::File)
        .filter(|entry| sizes.wants(listing.size(*entry)))
        .collect();
    let plan = bc_read::order::plan(listing, wanted, options.workers, cancel);
    let sink = |_| Collect::default();
    let (sinks, totals) = hash_with(listing, &plan, options, cancel, progress, sink)?;
    let algorithms = options.algorithms.iter();
    let mut hashed = HashedFiles {
        tables: algorithms.map(|one| DigestTable::new(*one)).collect(),
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
