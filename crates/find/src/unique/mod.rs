//! Contents that are in some trees and nowhere else: the contents that none of the references has,
//! or, without references, those that no other file of the trees has. It answers "may I wipe this
//! card?", so it errs on one side only: a content that is not proven to be elsewhere counts as
//! being nowhere else.
//!
//! - A reference copy is a file of a reference that does not lie at or below one of the
//!   trees, whichever link, mount or view leads to it, has no name there, and is no temporary of
//!   ours.
//! - Directories answer by a digest of 256 bits or byte for byte, never by a fast hash or a cache;
//!   manifests by the digest that they have ([`crate::manifests`]).
//! - Who has a file open for writing may change it unseen: it is no reference copy, and none
//!   of the trees' is elsewhere.
//! - What was not looked at is counted ([`Unique::unseen`](crate::unique::Unique::unseen)): a walk's filters, other file systems,
//!   what a mount covers.

mod again;
mod contents;
mod covered;
mod job;
mod offline;
mod presence;
mod reference_copy;

use bc_digest::Algorithm;
use bc_hash::{HashOptions, HashProgress};
use bc_pool::Cancel;
use bc_walk::{EntryId, Error, Listing, Skipped};
use contents::Contents;
use reference_copy::ReferenceCopies;

use crate::manifests::{Manifest, Question, ask};
use crate::scan::{ScanOptions, ScanProgress, ScanStats, require_metadata, scan_beside};
use crate::subtrees::{Files, Marks, Subtrees};

pub use contents::{Content, Presence};
pub use covered::covered;
pub use job::{ContentPlace, FoundUnique, NotFile, UniqueContent};
pub use offline::{KnownContent, Offline, offline};
pub use presence::NotFiles;

/// Two sides of a comparison: the trees in question, and the references.
pub struct Sides<'a> {
    /// The trees that are asked about, walked with [`Entries::All`](bc_walk::Entries::All) and
    /// metadata, empty files included.
    pub paths: Listing,
    /// Number of roots of that walk.
    pub path_roots: usize,
    /// Entries that those roots lead to, and all below them, as far as the walk's filters kept them
    /// from [`paths`](Sides::paths).
    pub own: Subtrees,
    /// The references that are directories, walked with metadata.
    pub references: Listing,
    /// For each root of that walk, the index of its reference.
    pub reference_roots: &'a [usize],
    /// The references that are manifests, and which they are.
    pub manifests: &'a mut [Manifest],
    /// For each manifest, the index of its reference.
    pub manifest_numbers: &'a [usize],
}

/// Result of the search.
#[derive(Debug)]
#[non_exhaustive]
pub struct Unique {
    /// Both walks: entries before [`own_entries`](Unique::own_entries) are the trees'.
    pub listing: Listing,
    /// Number of entries of the trees.
    pub own_entries: usize,
    /// Every content of the trees but the empty one, in order of its first name.
    contents: Contents,
    /// The first name of each content that a file of a reference has, and that file.
    relied: Vec<(EntryId, EntryId)>,
    /// What the paths of the trees led to, open.
    own: Subtrees,
    /// Files of the trees, each inode once, and their bytes; without empty ones.
    pub files: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Empty files, which hold nothing that could be lost.
    pub empty: u64,
    /// Entries other than files.
    pub not_files: NotFiles,
    /// Entries that the walk of the trees left out.
    pub unseen: Skipped,
    /// Files of references, and entries of manifests, that are no reference copies, as they are
    /// files of the trees or may be.
    pub not_counted: u64,
    /// Files that could not be read, of both sides.
    pub errors: Vec<Error>,
    /// Figures of the search.
    pub stats: ScanStats,
    /// True if the search, or a walk before it, was cancelled: a file that was not read is nowhere
    /// then.
    pub cancelled: bool,
}

impl Unique {
    /// Every content, in order of its first name.
    pub fn contents(&self) -> impl ExactSizeIterator<Item = Content<'_>> {
        self.contents.iter()
    }

    /// Returns the contents that were found nowhere else, in order of their first names.
    pub fn nowhere(&self) -> impl Iterator<Item = Content<'_>> {
        self.contents()
            .filter(|content| content.presence == Presence::Nowhere)
    }
}

/// Options of the search.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UniqueOptions {
    /// Options of the search. The algorithm has to have 256 bits; the fields for references, hard
    /// links and roots are ignored.
    pub scan: ScanOptions,
    /// True to accept lists of unknown origin, in a [job](crate::Search::unique). Those of
    /// `sha256sum`, say, do not record their tree: without this, a list that has the names of the
    /// trees' own files counts for nothing there, as it was probably made from them.
    pub trust_lists: bool,
    /// True to accept trees without any file, in a job: by default they are refused, because a disk
    /// that is not mounted looks like that.
    pub force: bool,
}

bc_fs::setters! {
    UniqueOptions:
    scan: ScanOptions,
    trust_lists: bool,
    force: bool,
}

impl UniqueOptions {
    /// Returns options with BLAKE3, on one thread.
    pub fn new() -> UniqueOptions {
        UniqueOptions {
            scan: ScanOptions {
                algorithm: Algorithm::Blake3,
                ..ScanOptions::default()
            },
            trust_lists: false,
            force: false,
        }
    }
}

impl Default for UniqueOptions {
    fn default() -> UniqueOptions {
        UniqueOptions::new()
    }
}

/// Finds the contents of the trees that are nowhere else.
///
/// After a cancellation the result is incomplete, and [says so](Unique::cancelled): files that were
/// not read are nowhere.
///
/// # Errors
/// Listings without metadata, an algorithm of less than 256 bits, a manifest that cannot be believed,
/// or a worker that panicked. Files that cannot be read are in [`Unique::errors`].
pub fn unique(
    sides: Sides<'_>,
    options: &UniqueOptions,
    cancel: &Cancel,
    progress: &ScanProgress,
    hashed: &HashProgress,
) -> Result<Unique, bc_walk::job::Error> {
    require_metadata(&sides.paths)?;
    require_metadata(&sides.references)?;
    let algorithm = options.scan.algorithm;
    if algorithm.digest_len() < 32 {
        let text = format!("{algorithm} has less than 256 bits, and may take files for equal");
        return Err(bc_walk::job::Error::usage(text));
    }
    let Sides {
        paths: mut listing,
        path_roots,
        mut own,
        references,
        reference_roots,
        manifests,
        manifest_numbers,
    } = sides;
    let unseen = listing.skipped().clone();
    let (own_entries, own_dirs) = (listing.len(), listing.dirs());
    let not_files = NotFiles::of(&listing);
    let asks_others = !(reference_roots.is_empty() && manifests.is_empty());
    if asks_others {
        own.keep_traces();
    }
    own.learn(
        &listing,
        match asks_others {
            true => Files::All,
            false => Files::Named,
        },
    );
    listing.append(references, path_roots);

    let marks = (0..listing.dirs()).map(|dir| dir >= own_dirs).collect();
    let marks = Marks::of_dirs(marks);
    let scan_options = ScanOptions {
        min_size: 1,
        ..options.scan.clone()
    };
    let all = listing.ids();
    let written = crate::writers::unseen_writers(&listing, all, options.scan.workers, cancel)?;
    let scan = scan_beside(&listing, marks, &scan_options, None, cancel, progress)?;
    let mut found = Contents::of(&listing, own_entries, &scan);
    let mut errors = presence::tell_apart(&listing, &mut found, cancel);
    let empty = presence::settle_empty(&listing, own_entries, &mut found, cancel);
    errors.extend(empty);
    let mut reference_copies = ReferenceCopies::new(&listing, own_entries, &own, &written, cancel);
    let mut relied = Vec::new();
    if !asks_others {
        presence::mark_shared(&mut found, &mut reference_copies);
    } else {
        relied = presence::by_directories(&scan, &mut found, &mut reference_copies, |root| {
            reference_roots[root - path_roots]
        });
    }
    let mut not_counted = reference_copies.refused();
    let missed = reference_copies.missed_written();
    presence::note_unread(&listing, &scan, &mut found);
    if !manifests.is_empty() {
        let entries = found.open_questions();
        let names = found.names_of(&entries);
        let question = Question {
            listing: &listing,
            entries: &entries,
            names: &names,
            own: &own,
            hash: HashOptions::new(Vec::new())
                .cpu(options.scan.cpu)
                .read(options.scan.read.clone())
                .workers(options.scan.workers)
                .start(options.scan.start),
            details: false,
        };
        let answers = ask(&question, manifests, cancel, hashed)?;
        found.answer(&entries, &answers, manifest_numbers);
        not_counted += answers.own_entries;
        errors.extend(answers.errors.into_iter().map(|(_, error)| error));
    }
    errors.extend(presence::note_written(
        &listing, &written, &missed, &mut found,
    ));
    errors.extend(scan.errors.iter().cloned());
    found.sort();
    Ok(Unique {
        files: found.files,
        bytes: found.bytes,
        empty: found.empty,
        contents: found,
        relied,
        own: own.into_tops(),
        own_entries,
        not_files,
        unseen,
        not_counted,
        errors,
        stats: scan.stats,
        cancelled: cancel.is_cancelled() || listing.is_cancelled(),
        listing,
    })
}
