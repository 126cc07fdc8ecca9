//! Answers of manifests about files: the contents that they contain.

use bc_digest::{Algorithm, Digest};
use bc_hash::{HashOptions, HashProgress};
use bc_pool::Cancel;
use bc_walk::{EntryId, Error, Listing, job};

use super::digests::{self, Sizes, Table};
use super::entries::Found;
use super::named::NamedFiles;
use super::origin::ManifestOrigin;
use super::systems::{self, Device, Systems};
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
    let mut sizes = Sizes::of(question.listing, question.entries);
    let mut algorithms = Vec::new();
    let devices = systems::devices(question.own);
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
    let hashed = digests::read(
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
        sizes: &mut Sizes,
        cancel: &Cancel,
    ) -> Result<(Tally, Systems), job::Error> {
        let own = question.own;
        if self.header.is_none() && (own.has_dir(self.id) || own.has_file(self.id)) {
            return Err(
                self.refused("lies in what is asked about, and does not say which tree it is of")
            );
        }
        let mut tally = Tally::default();
        let header = self.header.as_deref();
        let mut systems = header.map_or_else(Systems::default, |header| {
            Systems::of(header, &self.home, devices)
        });
        let mut is_root_own = false;
        self.each(cancel, &mut |found| match (found, header) {
            (Found::Root(ino), Some(header)) => {
                is_root_own = systems.rooted(ino, header, devices, own);
            }
            (Found::Mounted(path, mounted), Some(header)) => {
                systems.mounted(path, mounted, header, &self.home, devices);
            }
            (Found::MadeIn(dir), _) => systems.made_in(dir),
            (Found::Root(_) | Found::Mounted(..), None) => {}
            (Found::Without, _) => tally.without += 1,
            (Found::ReferenceCopy(reference_copy), _) => {
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
        tables: &[Table],
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
            let Found::ReferenceCopy(reference_copy) = found else {
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
