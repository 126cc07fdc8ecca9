//! Changes to files. All code that creates, writes, renames, removes or marks a file is here, by the
//! descriptor of the file or of its directory, never by a path; all other crates look, decide, and
//! ask this one.
//! Internal to bit-crafts, without a promise of stability.
//!
//! ```
//! use bc_edit::atomic::AtomicFile;
//! use std::io::Write;
//!
//! # let dir = tempfile::tempdir()?;
//! # let target = dir.path().join("settings.json");
//! let file = AtomicFile::create(&target)?;
//! file.file().write_all(b"{}")?;
//! assert!(!target.exists()); // until it is complete
//! file.commit()?;
//! assert!(target.exists());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The user's files:
//! - [`entry`] gives, changes and removes names; [`swap`] puts a file in the place of another one
//!   without losing a file that another process puts there at that moment.
//! - [`content`] creates files, writes, cuts, clones, deduplicates and stores them.
//! - [`made`] makes links, FIFOs, sockets and devices, and holds them open.
//! - [`metadata`] gives owner, mode, times and attributes; [`InodeFlags`] are the flags of `chattr`,
//!   and a file's encryption policy.
//!
//! Our own:
//! - [`atomic`] writes files that appear whole or not at all, and locks them ([`Locked`]).
//! - [`output`] opens the files that results are written to, and replaces regular files only.
//! - [`journal`] records what a long run has done so far, and determines whose a journal is.
//! - [`names`] are the temporary ones of every command; [`remove_unheld`] removes what killed runs
//!   left.
//! - [`spill`] keeps bytes that wait in a file without a name, once they are many.
//!
//! # Invariants
//! - Nothing here prints, reads arguments or the environment, or ends the process.
//! - Unsafe code is in [`content`] and `inode_flags`.
#![deny(unsafe_code)]
// The examples of the registry's page run, too.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

pub mod atomic;
pub mod content;
pub mod entry;
mod inode_flags;
pub mod journal;
mod locked;
pub mod made;
pub mod metadata;
pub mod names;
pub mod output;
pub mod spill;
pub mod swap;

pub use inode_flags::InodeFlags;
pub use locked::{Locked, Sweep, flock, remove_unheld};
