//! Looks at files and file systems: this crate changes nothing.
//!
//! ```
//! use bc_fs::{Size, escape};
//! assert_eq!("1.5K".parse(), Ok(Size(1536)));
//! assert_eq!(escape(b"a\x1b[2J"), r"a\x1b[2J");
//! ```
//!
//! - [`dirfd`] opens files and directories by the descriptor of a directory above them, [`meta`]
//!   reads what is known of them, and [`call`](mod@call) says which call failed.
//! - [`compare`] reads two files side by side.
//! - [`known`] judges if a file is the one that was recorded.
//! - [`open_dirs`] holds directories open for those that come next.
//! - [`xattr`] reads extended attributes.
//! - [`place`] finds the directory that a file is to be written to, and which users' links to
//!   believe there.
//! - [`mount`] knows which promises of each file system are reliable.
//! - [`file_system_uuid`] and [`uuid_at`] name the file system that a file is on, [`volume_at`] the
//!   volume; [`may_be_one_file_system`] recognises two devices that show one.
//! - [`volume`] recognises subvolumes.
//! - [`lease`] notices writers of a file while it is read.
//! - [`descriptors`] counts how many files can still be opened, [`shortage`] waits for those that are
//!   about to be closed; [`input`] opens files named by a user, and reads them until it is asked to
//!   end.
//! - [`streams`] opens the standard streams and knows which were closed; [`signal`] which signals
//!   are ignored; [`close`](fn@close) and [`flush`] report data of a written file that could not be
//!   stored.
//! - [`escape`](fn@escape) and [`Escaped`] make paths safe to show; [`safe`] makes whole
//!   streams so.
//! - [`path`] takes paths apart and puts them together, [`clock`] reads the time of day.
//! - [`PathError`] is a failure that concerns one path.
//! - [`quote`] quotes a word so that a shell reads it back.
//! - [`Size`] reads sizes as people write them.
//!
//! # Invariants
//! - Nothing here prints, reads arguments or the environment, or ends the process.
//! - Nothing here creates, changes, renames or removes a file.
//! - Unsafe code is in `close`, [`descriptors`], [`lease`], [`streams`], [`signal`], `uuid` and in
//!   the modules of [`mount`] that ask one file system alone.
#![deny(unsafe_code)]
// The examples of the registry's page run, too.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

pub mod ancestors;
pub mod call;
pub mod clock;
mod close;
pub mod compare;
pub mod descriptors;
pub mod dirfd;
mod escape;
#[cfg(feature = "faults")]
pub mod faults;
pub mod input;
pub mod known;
pub mod lease;
pub mod meta;
pub mod mount;
pub mod open_dirs;
pub mod path;
mod path_error;
pub mod place;
pub mod quote;
pub mod safe;
mod setters;
pub mod shortage;
pub mod signal;
mod size;
pub mod streams;
mod uuid;
pub mod volume;
pub mod xattr;

pub use close::{close, flush};
pub use escape::{EscapePiece, Escaped, escape, escape_pieces};
pub use path_error::PathError;
pub use size::{Size, SizeError};
pub use uuid::{file_system_uuid, may_be_one_file_system, uuid_at, volume_at};
