//! Examination of files and file systems: this crate changes nothing.
//! Internal to bit-crafts, without a promise of stability.
//!
//! ```
//! use bc_fs::{Size, escape};
//! assert_eq!("1.5K".parse(), Ok(Size(1536)));
//! assert_eq!(escape(b"a\x1b[2J"), r"a\x1b[2J");
//! ```
//!
//! - [`dirfd`] opens files and directories through the descriptor of a directory above them, and holds
//!   directories open for the next ones; [`meta`] reads the metadata of a file, including its extended
//!   attributes; [`call`](mod@call) reports which call failed, closes files, and reports data of a written
//!   file that could not be stored.
//! - [`caller`] knows this process's user and groups, and what the kernel would refuse them.
//! - [`compare`] reads two files side by side.
//! - [`known`] judges if a file is the one that was recorded.
//! - [`place`] finds the directory to which a file is to be written, and determines which users' links may
//!   be followed there.
//! - [`mount`] knows which promises of each file system are reliable; [`volume`] identifies file systems
//!   and volumes, and recognises subvolumes.
//! - [`lease`] notices writers of a file while it is read.
//! - [`shortage`] counts how many files can still be opened, and waits for descriptors that are about to be
//!   closed; [`input`] opens files given by a user, and reads them until it is asked to stop.
//! - [`streams`] opens the standard streams, and knows which ones were closed and which signals are
//!   ignored.
//! - [`escape`](fn@escape) and [`Escaped`] make paths safe to display; [`safe`] does the same for entire
//!   streams.
//! - [`path`] splits and joins paths.
//! - [`PathError`] is a failure that concerns one path.
//! - [`quote`] quotes a word for a shell.
//! - [`Size`] reads sizes as people write them.
//!
//! # Invariants
//! - Nothing here prints, reads arguments or the environment, or ends the process.
//! - Nothing here creates, changes, renames or removes a file.
//! - Unsafe code is in [`call`](mod@call), [`lease`], [`shortage`], [`streams`], [`volume`] and in
//!   the questions of [`mount`] to one kind of file system.
#![deny(unsafe_code)]
// The examples of the registry's page run, too.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

#[cfg(target_pointer_width = "32")]
compile_error!(
    "bc-fs needs a target of 64 bits: sizes and offsets of files are kept in `usize`, and counters \
     that threads share in atomics of 64 bits"
);
#[cfg(target_endian = "big")]
compile_error!(
    "bc-fs needs a little-endian target: journals and caches have never been written or read on \
     another one, and there is no machine for their tests"
);

pub mod call;
pub mod caller;
pub mod compare;
pub mod dirfd;
mod escape;
#[cfg(feature = "faults")]
pub mod faults;
pub mod input;
pub mod known;
pub mod lease;
pub mod meta;
pub mod mount;
pub mod path;
mod path_error;
pub mod place;
pub mod quote;
pub mod safe;
pub mod shortage;
mod size;
pub mod streams;
pub mod volume;

pub use escape::{EscapePiece, Escaped, escape, escape_pieces};
pub use path_error::PathError;
pub use size::{Size, SizeError};

/// Gives options a method for each field, by its name, which sets it.
#[doc(hidden)]
#[macro_export]
macro_rules! setters {
    ($type:ident $(<$life:lifetime>)?:
        $($(#[$attribute:meta])* $field:ident: $of:ty),+ $(,)?) => {
        impl $(<$life>)? $type $(<$life>)? {
            $(
                /// Sets the field of this name.
                $(#[$attribute])*
                #[must_use]
                pub fn $field(mut self, $field: $of) -> Self {
                    self.$field = $field;
                    self
                }
            )+
        }
    };
}
