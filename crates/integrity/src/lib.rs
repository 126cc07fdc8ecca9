//! The engine behind `bc integrity`.
#![forbid(unsafe_code)]

pub mod atomic;
pub mod change;
pub mod compare;
mod create;
mod diff;
mod error;
mod export;
pub mod fields;
mod hashing;
mod import;
mod input;
mod moves;
mod options;
mod present;
pub mod report;
mod reread;
mod spool;
mod summary;
mod tree;
mod update;
mod verify;
pub mod view;

pub use create::{Create, Created, OnFailure, create};
pub use diff::{Diff, Diffed, diff};
pub use error::{Error, ErrorKind};
pub use export::{Exported, Foreign, export};
pub use import::{Import, import};
pub use input::{ManifestFile, Trust};
pub use options::{Job, Reading, TreeOptions, Work, Xattrs};
pub use reread::{Reread, UnknownReread};
pub use summary::{Outcome, Summary};
pub use update::{Damaged, Update, Updated, update};
pub use verify::{RootCheck, Verified, Verify, verify};
