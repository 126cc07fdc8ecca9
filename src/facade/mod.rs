//! The library as one crate: each file one verb, over the engines.

mod check;
mod copy;
mod directories;
mod duplicates;
mod error;
mod filter;
mod hash;
mod manifest;
mod outcome;
mod read_manifest;
mod references;
mod rivals;
mod run;
mod unique;
mod verify;
mod walk;

#[doc(inline)]
pub use bc_copy::{Durability, ManifestPlace, OnConflict, ReadBack};
#[doc(inline)]
pub use bc_digest::{Algorithm, Digest, Hasher, InvalidDigest, hash_file, hash_reader};
#[doc(inline)]
pub use bc_integrity::change::Class;
#[doc(inline)]
pub use bc_integrity::fields::{CompareMode, Field};
#[doc(inline)]
pub use bc_integrity::{ComparisonSummary, Conclusion};
#[doc(inline)]
pub use bc_pool::Cancel;
#[doc(inline)]
pub use bc_walk::{FileKind, Skipped};

pub use check::{CheckJob, Checked, CheckedFile, FileVerdict, check};
pub use copy::{CopyJob, CopyReport, copy};
pub use directories::{DirectoriesJob, EqualDirectories, FoundDirectories, Within, directories};
pub use duplicates::{DuplicatesJob, EqualFile, EqualFiles, FoundDuplicates, duplicates};
pub use error::{Error, ErrorKind, PathError};
pub use filter::Filter;
pub use hash::{HashJob, Hashed, HashedFile, hash};
pub use manifest::{ManifestJob, WrittenManifest, manifest};
pub use read_manifest::{RecordedEntry, RecordedTree, read_manifest};
pub use run::Progress;
pub use unique::{FoundUnique, Place, UniqueContent, UniqueJob, unique};
pub use verify::{PathChange, Verification, VerifyJob, verify};
pub use walk::{WalkJob, Walked, WalkedFile, walk};
