//! Functions of the program `bc`: hash trees, find duplicates, verify integrity, and copy with checksums.
//!
//! ```
//! # let dir = tempfile::tempdir()?;
//! # for name in ["a.jpg", "b.jpg"] { std::fs::write(dir.path().join(name), "same")?; }
//! # let pictures = dir.path();
//! use bit_crafts::{Means, Search};
//!
//! let found = Search::new([pictures]).duplicates(&Means::new())?;
//! for group in &found.groups {
//!     println!("{} bytes each:", group.size);
//!     for path in group.paths() {
//!         println!("  {}", path.display());
//!     }
//! }
//! assert!(found.is_complete() && found.groups.len() == 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How it works
//!
//! This crate is a front page: it re-exports the options, results and errors of the engines, and adds
//! nothing. A job is a struct of options; a method runs it with a [`Means`], which has threads,
//! cancellation and a progress callback. Examples of items come from their crates: the items of `bc_walk`,
//! `bc_hash` and so on that they use are here under the same names.
//!
//! | job | result |
//! |---|---|
//! | [`HashOptions::run`] | digests of files and of all files below directories |
//! | [`hash_file`], [`hash_reader`], [`Hasher`] | the digest of a file, a `Read`, written bytes |
//! | [`WalkOptions::run`] | the files below some directories, in order of their paths |
//! | [`Search::duplicates`] | groups of identical files |
//! | [`Search::directories`] | directories that are copies of others, or contained in them |
//! | [`Search::unique`] | contents of some trees that no archive contains |
//! | [`PruneOptions::run`] | duplicates linked, deleted or moved; [`UndoJob`] restores them |
//! | [`CreateOptions::run_to`] | a record of a tree: digests and metadata |
//! | [`UpdateOptions::run`] | that record, brought up to date |
//! | [`ManifestFile`] | the contents of such a record |
//! | [`VerifyOptions::run`] | the differences between a tree and its record |
//! | [`DiffOptions::run`] | those between two records |
//! | [`RestoreOptions::run`] | a tree repaired from copies, as it was recorded |
//! | [`ChecksumFile::run`] | verdicts on files listed in a checksum file (of `sha256sum` and similar programs) |
//! | [`CopyOptions::run`] | a copy of a tree, checked while it is made |
//! | [`MoveOptions::run`] | a tree in another place: renamed, or copied, proven and then removed |
//!
//! Jobs that list files take [`WalkOptions`], which choose among them, and those that change files
//! have a dry run.
//!
//! ```
//! # let dir = tempfile::tempdir()?;
//! # for name in ["a.jpg", "b.raw", "c.txt"] { std::fs::write(dir.path().join(name), name)?; }
//! # let card = dir.path();
//! use bit_crafts::{Algorithm, Cancel, Globs, HashOptions, Means, WalkOptions};
//!
//! let cancel = Cancel::new(); // its clone may be given to a signal handler or a button
//! let means = Means::new()
//!     .cancel(&cancel)
//!     .progress(|now| eprintln!("{} files, {} bytes", now.files, now.bytes));
//! let pictures = WalkOptions::default().include(Globs::new(&["*.jpg", "*.raw"])?);
//! let hashed = HashOptions::new(vec![Algorithm::Blake3])
//!     .run([card], &pictures, &means)?
//!     .complete()?; // an error if anything is missing
//! assert_eq!(hashed.files.len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Complete programs are in [`recipes`]: a service that can be stopped, a photo importer that skips files
//! already in the archive, a verifier of backups with a progress bar, a cache keyed by content.
//!
//! If a result has a list, `run_each` passes one item after the other to a callback instead. Programs that
//! need only one of the functions can use its engine, `bc-hash`, `bc-find`, `bc-prune`, `bc-integrity` or
//! `bc-copy`; these are based on `bc-digest` (many messages at once), `bc-walk` (listings) and
//! `bc-manifest` (the formats). Items that their pages do not show are internal to bit-crafts, and so are
//! the crates `bc-fs`, `bc-edit`, `bc-pool` and `bc-read`: all of these may change in any release.
//!
//! # Invariants
//!
//! - Nothing here prints, asks, reads arguments or the environment, or ends the process. No signal
//!   handler is installed.
//! - A file that cannot be read never stops the job: it is in the result's `errors`. If a result lacks
//!   something, `is_complete` is false, and `complete` turns it into an error.
//! - A request that makes no sense, such as hashing without an algorithm, is an [`Error`] of the kind
//!   [`Usage`](ErrorKind::Usage), neither a panic nor an empty result. A given path that does not exist is
//!   an error of the kind [`NotFound`](ErrorKind::NotFound).
//! - After a cancellation, a job ends within the time that a piece of a file takes, with an error of the
//!   kind [`Cancelled`](ErrorKind::Cancelled), so that no caller mistakes a partial answer for a complete
//!   one. If the partial result is useful, it is in the error: see [`Error::partial`].
//! - No file is replaced unless requested, least of all the manifest of another tree or copy.
//! - An error has the path that it is about, the operation that failed, and the system's error number.
//! - Paths are [`PathBuf`](std::path::PathBuf)s in results of searches, and raw bytes in manifests and
//!   events; [`path_of`] converts the latter to the former.
//! - A panic of a callback leaves nothing half done: it continues in the caller once the job has ended.
//! - Results do not depend on the number of threads.
//! - Errors are `Send + Sync + 'static`.
//!
//! # Features
//!
//! Each feature adds one group of functions, with the crates that it needs. Walking and digests of single
//! messages are always available.
//!
//! - `hash`: [`HashOptions`], by BLAKE3, xxHash and the checksums;
//! - `algorithms`: MD5, SHA-1, SHA-2, SHA-3, SM3 and BLAKE2b; included in all of the following;
//! - `dup`: [`Search`], [`PruneOptions`], [`UndoJob`]; `cache`: [`Search::cache`];
//! - `integrity`: manifests, [`VerifyOptions`] and so on, and [`ChecksumFile`];
//! - `copy`: [`CopyOptions`], [`MoveOptions`], [`RestoreOptions`];
//! - `cli` (default): the program `bc`, with all of the above. A library does not need it:
//!   `default-features = false` leaves out its dependencies.
//! - `bitcrafts`: also the program under its other name.

#![forbid(unsafe_code)]

#[cfg(any(doc, doctest))]
pub mod recipes;

#[cfg(feature = "copy")]
#[doc(inline)]
pub use bc_copy::{
    Copied, CopyOptions, CopyReport, Durability, Event, Loss, MANIFEST_NAME, ManifestPlace,
    MissingPath, MoveOptions, MoveReport, Moved, OnConflict, ParityPlace, Preserve, ReadBack,
    RepairedPath, RestoreOptions, RestoreOutcome, RestoreReport, Target, When, Why,
};
#[doc(inline)]
pub use bc_digest::{
    Algorithm, CpuFeatures, Digest, Hasher, InvalidDigest, Plain, UnknownAlgorithm, hash_file,
    hash_reader,
};
#[cfg(feature = "dup")]
#[doc(inline)]
pub use bc_find::{
    ContentPlace, DirNames, DirsOptions, Duplicates, EqualDirectories, EqualFile, EqualFiles,
    Equality, FoundDirectories, FoundUnique, HardLinks, NotFile, ScanOptions, Search,
    UniqueContent, UniqueOptions, Within,
};
#[doc(inline)]
pub use bc_fs::{PathError, known::now_ns, meta::FileKind};
#[cfg(feature = "integrity")]
#[doc(inline)]
pub use bc_hash::{Checked, CheckedFile, ChecksumFile, FileVerdict};
#[cfg(feature = "hash")]
#[doc(inline)]
pub use bc_hash::{HashOptions, Hashed, HashedFile};
#[cfg(feature = "integrity")]
#[doc(inline)]
pub use bc_integrity::{
    AcceptOptions, Acceptance, Change, ChangeLimit, Class, CompareMode, CompareRules,
    ComparisonSummary, Conclusion, CreateOptions, Ctime, Damaged, DiffOptions, Difference, Field,
    Fields, FileTotals, ManifestFile, MassChange, Origin, Overwrite, Reread, RootCheck, Sample,
    TreeOptions, UnknownChangeLimit, UnknownReread, UnknownSample, UpdateOptions, Value,
    Verification, VerifyOptions, WrittenManifest, XattrPolicy,
};
#[cfg(feature = "integrity")]
#[doc(inline)]
pub use bc_manifest::integrity::{Entry, Header, Kind};
#[doc(inline)]
pub use bc_pool::Cancel;
#[cfg(feature = "dup")]
#[doc(inline)]
pub use bc_prune::{
    Action, Keep, KeepError, KeepRules, OnMetadataDiff, Pattern, PruneOptions, PruneStep, Pruned,
    RestoredFile, Roots, RunMode, Skip, Step, StepKind, StepOutcome, UndoJob, Undone,
};
#[cfg(any(feature = "copy", feature = "dup"))]
#[doc(inline)]
pub use bc_read::Rate;
#[doc(inline)]
pub use bc_walk::job::{Error, ErrorKind, Means, Progress, Setting, path_of};
#[doc(inline)]
pub use bc_walk::{
    FileSystems, GlobError, Globs, Hidden, IgnoreFiles, Listing, Metadata, Skipped, Symlinks,
    WalkOptions,
};

#[cfg(all(test, feature = "copy", feature = "dup"))]
mod tests {
    use std::fmt::Debug;

    use super::*;

    /// Callers keep options and results, compare them, print them, and send them to other threads.
    #[test]
    fn jobs_and_results_can_be_kept() {
        fn job<T: Clone + Debug + Send>() {}
        fn result<T: Clone + Debug + PartialEq + Send + 'static>() {}
        job::<Means<'_>>();
        job::<WalkOptions>();
        job::<HashOptions>();
        job::<ChecksumFile>();
        job::<Search>();
        job::<ScanOptions>();
        job::<DirsOptions>();
        job::<UniqueOptions>();
        job::<PruneOptions>();
        job::<UndoJob>();
        job::<CreateOptions<'_>>();
        job::<UpdateOptions<'_>>();
        job::<VerifyOptions<'_>>();
        job::<DiffOptions<'_>>();
        job::<RestoreOptions<'_>>();
        job::<CopyOptions>();
        job::<MoveOptions>();
        job::<ManifestFile>();
        result::<Digest>();
        result::<Hashed>();
        result::<Checked>();
        result::<Duplicates>();
        result::<FoundDirectories>();
        result::<FoundUnique>();
        result::<Pruned>();
        result::<Undone>();
        result::<WrittenManifest>();
        result::<Verification>();
        result::<RestoreReport>();
        result::<CopyReport>();
        result::<MoveReport>();
        result::<Progress>();
        result::<PathError>();
        result::<Entry>();
        result::<Header>();
        // It is kept by descriptors, and is what it is of.
        fn sent<T: Debug + Send + 'static>() {}
        sent::<Listing>();
        sent::<Error>();
    }
}
