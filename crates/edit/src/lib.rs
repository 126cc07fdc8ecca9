//! Changes to files. All code that creates, writes, renames, removes or marks a file is here, and works
//! through the descriptor of the file or of its directory, never through a path; all other crates look,
//! decide, and call this one.
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
//! - [`entry`] creates, changes and removes names; [`swap`] puts a file in the place of another one without
//!   losing a file that another process puts there at the same moment.
//! - [`content`] creates, writes, truncates, clones, deduplicates and syncs files.
//! - [`made`] creates links, FIFOs, sockets and devices, and holds them open.
//! - [`metadata`] sets owner, mode, times and attributes; [`InodeFlags`] are the flags of `chattr`, and a
//!   file's encryption policy.
//!
//! Our own:
//! - [`atomic`] writes files that appear complete or not at all, and locks them ([`Locked`]).
//! - [`output`] opens the files that results are written to, and replaces regular files only.
//! - [`journal`] records the progress of a long run, and determines who owns a journal.
//! - [`names`] defines the temporary names of every command; [`remove_unheld`] removes leftovers of killed
//!   runs.
//! - [`spill`] keeps waiting bytes in memory and, once there are many, in a file without a name.
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
