//! The library as one crate: each file one verb, over the engines.

mod check;
mod convert;
mod copy;
mod diff;
mod directories;
mod duplicates;
mod error;
mod filter;
mod hash;
mod manifest;
mod outcome;
mod prune;
mod read_manifest;
#[cfg(any(doc, doctest))]
pub mod recipes;
mod references;
mod restore;
mod rivals;
mod run;
mod undo;
mod unique;
mod update;
mod verify;
mod walk;

#[doc(inline)]
pub use bc_copy::{Durability, Loss, MANIFEST_NAME, ManifestPlace, OnConflict, ReadBack};
#[doc(inline)]
pub use bc_digest::{
    Algorithm, CpuFeatures, Digest, Hasher, InvalidDigest, Plain, UnknownAlgorithm, hash_file,
    hash_reader,
};
#[doc(inline)]
pub use bc_fs::PathError;
#[doc(inline)]
pub use bc_fs::meta::FileKind;
#[doc(inline)]
pub use bc_integrity::change::Class;
#[doc(inline)]
pub use bc_integrity::fields::{CompareMode, Field};
#[doc(inline)]
pub use bc_integrity::{ComparisonSummary, Conclusion, Reread, Setting, UnknownReread};
#[doc(inline)]
pub use bc_pool::Cancel;
#[doc(inline)]
pub use bc_prune::{Keep, KeepError, Pattern};
#[doc(inline)]
pub use bc_walk::Skipped;

pub use check::{CheckJob, Checked, CheckedFile, FileVerdict, check};
pub use copy::{CopyJob, CopyOutcome, CopyReport, CopyStep, copy};
pub use diff::{DiffJob, diff};
pub use directories::{DirectoriesJob, EqualDirectories, FoundDirectories, Within, directories};
pub use duplicates::{DuplicatesJob, EqualFile, EqualFiles, FoundDuplicates, duplicates};
pub use error::{Error, ErrorKind};
pub use filter::Filter;
pub use hash::{HashJob, Hashed, HashedFile, hash};
pub use manifest::{ManifestJob, WrittenManifest, manifest};
pub use prune::{PruneAction, PruneJob, PruneOutcome, PruneStep, Pruned, prune};
pub use read_manifest::{RecordedEntry, RecordedTree, read_manifest};
pub use restore::{HealedPath, MissingPath, RestoreJob, RestoreReport, restore};
pub use run::Progress;
pub use undo::{RestoredFile, UndoJob, Undone, undo};
pub use unique::{FoundUnique, NotFile, Place, UniqueContent, UniqueJob, unique};
pub use update::{UpdateJob, UpdatedManifest, update};
pub use verify::{PathChange, Verification, VerifyJob, verify};
pub use walk::{WalkJob, Walked, WalkedFile, walk};
