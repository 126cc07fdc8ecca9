//! Which files some manifests know.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use bc_digest::{Algorithm, Digest};
use bc_hash::{HashOptions, HashProgress};
use bc_pool::{Cancel, WorkerPanic};
use bc_walk::{EntryId, Error, FileStat, Identity, Listing};

use super::digests::{self, Sizes, Table};
use super::entries::{Found, Witness};
use super::{Manifest, ManifestError, Tally, strength};

/// What is asked.
pub struct Question<'a> {
    /// The files, walked with metadata.
    pub listing: &'a Listing,
    /// Those that are asked about, in path order.
    pub entries: &'a [EntryId],
    /// Whether a directory or file of these numbers is one that is asked about, or lies below such
    /// a directory: a manifest's entries for those are no witnesses.
    pub is_own: &'a dyn Fn(Identity) -> bool,
    /// How files are read; which algorithms, the manifests say.
    pub hash: HashOptions,
    /// Whether it is to be told by which entry a manifest knows a file.
    pub details: bool,
}

/// Who knows a file's content.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Answer {
    /// Index of the manifest.
    pub manifest: usize,
    /// By a digest of this algorithm.
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

/// What was found.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Answers {
    /// For each entry that was asked about: who knows it. A strong digest comes before a weak one,
    /// then the manifest that was named first.
    pub known: Vec<Option<Answer>>,
    /// By which entry, if that was asked for.
    pub details: Vec<Option<Box<Detail>>>,
    /// Files that could not be read.
    pub errors: Vec<(EntryId, Error)>,
    /// Bytes read.
    pub bytes_read: u64,
    /// Entries that were passed over because they may be of the very files that are asked about.
    pub own_entries: u64,
}

/// Why there are no answers.
#[derive(Debug)]
#[non_exhaustive]
pub enum Unanswered {
    /// A manifest that cannot be believed.
    Manifest(ManifestError),
    /// A worker that panicked.
    Panic(WorkerPanic),
}

impl From<ManifestError> for Unanswered {
    fn from(error: ManifestError) -> Unanswered {
        Unanswered::Manifest(error)
    }
}

impl From<WorkerPanic> for Unanswered {
    fn from(panic: WorkerPanic) -> Unanswered {
        Unanswered::Panic(panic)
    }
}

/// Asks manifests which contents they know. Files are read only if a manifest has one of their size,
/// or has no sizes. Memory grows with the files that are asked about, not with the manifests.
///
/// After a cancellation the answers are incomplete: what was not read is not known.
///
/// # Errors
/// A manifest that is cut off, altered, or not what it has to be; a worker that panicked.
pub fn ask(
    question: &Question<'_>,
    manifests: &mut [Manifest],
    cancel: &Cancel,
    progress: &HashProgress,
) -> Result<Answers, Unanswered> {
    let mut sizes = Sizes::of(question.listing, question.entries);
    let mut algorithms = Vec::new();
    for manifest in &mut *manifests {
        let tally = manifest.survey(question, &mut sizes, cancel)?;
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
    let options = HashOptions {
        algorithms,
        ..question.hash.clone()
    };
    let files = (question.listing, question.entries);
    let hashed = digests::read(files, &sizes, &options, cancel, progress)?;
    answers.bytes_read = hashed.bytes_read;
    answers.errors = hashed.errors;
    for (nth, manifest) in manifests.iter().enumerate() {
        manifest.look_up(nth, question, &hashed.tables, &mut answers, cancel)?;
    }
    Ok(answers)
}

impl Manifest {
    /// Reads it through for the first time: is it whole, and of which sizes are its files?
    fn survey(
        &self,
        question: &Question<'_>,
        sizes: &mut Sizes,
        cancel: &Cancel,
    ) -> Result<Tally, ManifestError> {
        if self.header.is_none() && (question.is_own)(self.id) {
            return Err(
                self.refused("lies in what is asked about, and does not say which tree it is of")
            );
        }
        let mut tally = Tally::default();
        let mut root = None;
        self.each(cancel, &mut |found| match found {
            Found::Root(ino) => root = Some(ino),
            Found::Without => tally.without += 1,
            Found::Witness(witness) => {
                tally.witnesses += 1;
                sizes.note(witness.size);
                for algorithm in witness.algorithms {
                    if !tally.algorithms.contains(algorithm) {
                        tally.algorithms.push(*algorithm);
                    }
                }
            }
        })?;
        // Renamed, or mounted in another way, it is still the same directory.
        let own = |dev, ino| (question.is_own)(Identity { dev, ino });
        if self.home.is_own(b"", root, own) {
            return Err(self.refused(
                "is a manifest of what is asked about, or of a part of it: it says nothing of any \
                 other copy",
            ));
        }
        Ok(tally)
    }

    /// Reads it through again: which of the digests does it have?
    fn look_up(
        &self,
        nth: usize,
        question: &Question<'_>,
        tables: &[Table],
        answers: &mut Answers,
        cancel: &Cancel,
    ) -> Result<(), ManifestError> {
        // The best digest of each, which counts only once the manifest is known to be whole.
        let mut best: Vec<Option<Algorithm>> = vec![None; question.entries.len()];
        let mut details = vec![None; answers.details.len()];
        let (mut own_entries, mut alike) = (0, Vec::new());
        self.each(cancel, &mut |found| {
            let Found::Witness(witness) = found else {
                return;
            };
            alike.clear();
            for table in tables {
                if witness.algorithms.contains(&table.algorithm) {
                    let known = table.find(witness.digest.as_bytes());
                    alike.extend(known.map(|at| (at, table.algorithm)));
                }
            }
            let size = |at: usize| question.listing.size(question.entries[at]);
            alike.retain(|(at, _)| witness.size.is_none() || witness.size == size(*at));
            if !alike.is_empty() && self.is_own(question, &witness) {
                own_entries += 1;
                return;
            }
            for (at, algorithm) in &alike {
                let known = &mut best[*at];
                if known.is_none_or(|other| rank(*algorithm) < rank(other)) {
                    *known = Some(*algorithm);
                    if let Some(detail) = details.get_mut(*at) {
                        *detail = Some(Box::new(Detail {
                            path: witness.path.to_vec(),
                            digest: witness.digest,
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
        Ok(())
    }

    /// Whether an entry may be of one of the files that are asked about.
    fn is_own(&self, question: &Question<'_>, witness: &Witness<'_>) -> bool {
        let own = |dev, ino| (question.is_own)(Identity { dev, ino });
        let leads_to_own = |path: PathBuf| {
            let stat = rustix::fs::stat(&path).map(|stat| FileStat::from(&stat).id);
            stat.is_ok_and(question.is_own)
        };
        let path = Path::new(OsStr::from_bytes(witness.path));
        if let Some(header) = &self.header {
            let root = header.root.as_deref();
            let root = root.map(|root| Path::new(OsStr::from_bytes(root)).join(path));
            return self.home.is_own(witness.path, witness.ino, own)
                || root.is_some_and(leads_to_own);
        }
        // A list does not say where it was made: what its path leads to, from here or from beside
        // the list, is what it was made of as far as anybody can tell.
        let beside = Path::new(OsStr::from_bytes(&self.path)).parent();
        let beside = beside.map(|dir| dir.join(path));
        leads_to_own(path.to_owned()) || beside.is_some_and(leads_to_own)
    }
}

/// Less is better.
fn rank(algorithm: Algorithm) -> (bool, Algorithm) {
    (strength::is_weak(algorithm), algorithm)
}
