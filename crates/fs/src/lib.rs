//! What every command needs of files, once.
//!
//! ```
//! use bc_fs::{Size, escape};
//! assert_eq!("1.5K".parse(), Ok(Size(1536)));
//! assert_eq!(escape(b"a\x1b[2J"), r"a\x1b[2J");
//! ```
//!
//! - [`atomic`] writes files that appear whole or not at all, and locks them.
//! - [`descriptors`] counts how many files can still be opened; [`input`] opens what somebody names, and
//!   reads it until it is asked to end.
//! - [`journal`] keeps what a long run has done so far, and tells whose a journal is.
//! - [`place`] finds where a file is to be written, and whom to believe there.
//! - [`lease`] notices writers of a file while it is read.
//! - [`mount`] knows what each file system can be trusted with.
//! - [`escape`](fn@escape) and [`Escaped`] make paths safe to show; [`safe`] makes whole
//!   streams so.
//! - [`spill`] keeps what a memory budget has no room for in files.
//! - [`streams`] opens the standard streams and knows which were closed; [`signal`] which signals
//!   are ignored.
//! - [`InodeFlags`] are what `chattr` sets, and how a file is encrypted.
//! - [`file_system_uuid`] and [`uuid_at`] name the file system that a file is on; [`may_be_one_file_system`] tells
//!   when two devices show one.
//! - [`Size`] reads sizes as people write them.
//!
//! # Invariants
//! - Nothing here prints, reads arguments or the environment, or ends the process.
//! - Unsafe code stands in [`descriptors`], [`lease`], [`streams`], [`signal`], [`spill`], `uuid`,
//!   `inode_flags` and where [`mount`] asks one file system alone.
#![deny(unsafe_code)]

pub mod atomic;
pub mod descriptors;
mod escape;
mod inode_flags;
pub mod input;
pub mod journal;
pub mod lease;
pub mod mount;
pub mod place;
pub mod safe;
pub mod signal;
mod size;
pub mod spill;
pub mod streams;
mod uuid;

pub use escape::{Escaped, escape};
pub use inode_flags::InodeFlags;
pub use size::{Size, SizeError};
pub use uuid::{file_system_uuid, may_be_one_file_system, uuid_at};

/// The examples of the registry's page run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
