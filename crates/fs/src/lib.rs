//! What every command needs of files, once.
//!
//! - [`atomic`] writes files that appear whole or not at all, and locks them.
//! - [`lease`] notices writers of a file while it is read.
//! - [`mount`] knows what each file system can be trusted with.
//! - [`escape`](fn@escape) and [`Escaped`] make paths safe to show.
//! - [`Size`] reads sizes as people write them.
//!
//! Invariants:
//! - Nothing here prints, reads arguments or the environment, or ends the process.
//! - Unsafe code stands in [`lease`] and where [`mount`] asks XFS alone.
//!
//! ```
//! use bc_fs::{Size, escape};
//! assert_eq!("1.5K".parse(), Ok(Size(1536)));
//! assert_eq!(escape(b"a\x1b[2J"), r"a\x1b[2J");
//! ```
#![deny(unsafe_code)]

pub mod atomic;
mod escape;
pub mod lease;
pub mod mount;
mod size;

pub use escape::{Escaped, escape};
pub use size::{Size, SizeError};
