//! File operations that every command needs: reading facts, writing own files safely, showing
//! names.
//!
//! ```
//! use bc_fs::{Size, escape};
//! assert_eq!("1.5K".parse(), Ok(Size(1536)));
//! assert_eq!(escape(b"a\x1b[2J"), r"a\x1b[2J");
//! ```
//!
//! - [`atomic`] writes files that appear whole or not at all, and locks them.
//! - [`output`] opens the files that results are written to, and replaces regular files only;
//!   [`close`](fn@close) reports errors that a file system had kept until then.
//! - [`descriptors`] counts how many files can still be opened; [`input`] opens files named by a
//!   user, and reads them until it is asked to end.
//! - [`journal`] records what a long run has done so far, and determines whose a journal is.
//! - [`place`] finds the directory that a file is to be written to, and which users' links to
//!   believe there.
//! - [`lease`] notices writers of a file while it is read.
//! - [`mount`] knows which promises of each file system are reliable.
//! - [`escape`](fn@escape) and [`Escaped`] make paths safe to show; [`safe`] makes whole
//!   streams so.
//! - [`quote`] quotes a word so that a shell reads it back.
//! - [`spill`] moves memory that exceeds a budget into files.
//! - [`streams`] opens the standard streams and knows which were closed; [`signal`] which signals
//!   are ignored.
//! - [`made`] makes links, FIFOs, sockets and devices, and holds them open.
//! - [`close`](fn@close) and [`flush`] report data of a written file that could not be stored.
//! - [`metadata`] gives files owner, mode, times and attributes, through their descriptors.
//! - [`InodeFlags`] are the flags of `chattr`, and a file's encryption policy.
//! - [`file_system_uuid`] and [`uuid_at`] name the file system that a file is on, [`volume_at`] the
//!   volume; [`may_be_one_file_system`] recognises two devices that show one.
//! - [`Size`] reads sizes as people write them.
//!
//! # Invariants
//! - Nothing here prints, reads arguments or the environment, or ends the process.
//! - Unsafe code is in `close`, [`descriptors`], [`lease`], [`streams`], [`signal`], [`spill`],
//!   `uuid`, `inode_flags` and in the modules of [`mount`] that ask one file system alone.
#![deny(unsafe_code)]

pub mod atomic;
mod close;
pub mod descriptors;
mod escape;
mod inode_flags;
pub mod input;
pub mod journal;
pub mod lease;
mod locked;
pub mod made;
pub mod metadata;
pub mod mount;
pub mod output;
pub mod place;
pub mod quote;
pub mod safe;
pub mod signal;
mod size;
pub mod spill;
pub mod streams;
mod uuid;

pub use close::{close, flush};
pub use escape::{Escaped, escape};
pub use inode_flags::InodeFlags;
pub use locked::Locked;
pub use size::{Size, SizeError};
pub use uuid::{file_system_uuid, may_be_one_file_system, uuid_at, volume_at};

/// The examples of the registry's page run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
