//! Hash trees, find duplicates, verify integrity and copy with checksums: the functions of the
//! program `bc`.
//!
//! ```
//! # let dir = tempfile::tempdir()?;
//! # for name in ["a.jpg", "b.jpg"] { std::fs::write(dir.path().join(name), "same")?; }
//! # let pictures = dir.path();
//! let found = bit_crafts::duplicates([pictures]).run()?;
//! for group in &found.groups {
//!     println!("{} bytes each:", group.size);
//!     for path in group.paths() {
//!         println!("  {}", path.display());
//!     }
//! }
//! assert!(found.is_complete() && found.groups.len() == 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How it works
//!
//! Each function takes the operands and returns a job; the job's methods set its options, and `run`
//! does it on the caller's thread and as many others as pay.
//!
//! | function | result |
//! |---|---|
//! | [`hash`] | digests of files and of all files below directories |
//! | [`hash_file`], [`hash_reader`], [`Hasher`] | the digest of a file, a `Read`, written bytes |
//! | [`walk`] | the files below some directories, in order of their paths |
//! | [`duplicates`] | groups of files with equal content |
//! | [`directories`] | directories that are copies of others, or contained in them |
//! | [`unique`] | contents of some trees that no archive has |
//! | [`prune`] | duplicates given up: linked, deleted, moved; [`undo`] takes it back |
//! | [`manifest`] | a record of a tree: digests and metadata; [`update`] keeps it up to date |
//! | [`read_manifest`] | the contents of such a record |
//! | [`verify`] | the differences between a tree and its record; [`diff`]: between two records |
//! | [`restore`] | a tree as it was recorded, restored from its copies |
//! | [`check`] | verdicts on files listed in a checksum file (`sha256sum` and its relatives) |
//! | [`copy`] | a copy of a tree, checked while it is made |
//!
//! Jobs have `threads`, `cancel` and `progress`, those that list files have `filter`, and those that
//! change files have `dry_run`.
//!
//! ```
//! # let dir = tempfile::tempdir()?;
//! # for name in ["a.jpg", "b.raw", "c.txt"] { std::fs::write(dir.path().join(name), name)?; }
//! # let card = dir.path();
//! use bit_crafts::{Algorithm, Cancel, Filter};
//!
//! let cancel = Cancel::new(); // its clone may be given to a signal handler or a button
//! let hashed = bit_crafts::hash([card])
//!     .algorithm(Algorithm::Blake3)
//!     .filter(Filter::new().include("*.jpg").include("*.raw"))
//!     .cancel(&cancel)
//!     .progress(|now| eprintln!("{} files, {} bytes", now.files, now.bytes))
//!     .run()?
//!     .complete()?; // an error if anything is missing
//! assert_eq!(hashed.files.len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Whole programs are in [`recipes`]: a photo importer that skips what the archive has, a verifier of
//! backups with a progress bar, a cache keyed by content.
//!
//! For more control there are the crates below this one: `bc-digest` (many messages at once),
//! `bc-walk`, `bc-read`, `bc-manifest`, and the engines `bc-hash`, `bc-find`, `bc-prune`, `bc-integrity` and
//! `bc-copy`.
//!
//! # Invariants
//!
//! - Nothing here prints, asks, reads arguments or the environment, or ends the process. No signal
//!   handler is installed.
//! - One file that cannot be read never stops the others: it is in the result's `errors`. A result
//!   that lacks something says so: `is_complete` is false, and `complete` makes it an error.
//! - A request that makes no sense, such as hashing with no algorithm, is an [`Error`] of the
//!   kind [`Usage`](ErrorKind::Usage), and neither a panic nor an empty result. A named path that
//!   does not exist is one of the kind [`NotFound`](ErrorKind::NotFound).
//! - After a cancellation a job ends within the time of a piece of a file, with an error of the
//!   kind [`Cancelled`](ErrorKind::Cancelled): no caller takes half an answer for a whole one. The
//!   partial result is in the error, where it is of use: see [`Error::partial`].
//! - No file is replaced unasked, the manifest of another tree or copy least of all.
//! - An error has the path that it is about, the operation that failed and the system's number.
//! - Paths are [`PathBuf`](std::path::PathBuf)s; `path.as_os_str().as_bytes()` gives the raw bytes.
//! - Results do not depend on the number of threads.
//! - Errors are `Send + Sync + 'static`.
//!
//! # Features
//!
//! - `cli` (default): the program `bc`. A library does without: `default-features = false` leaves its
//!   dependencies out.
//! - `bitcrafts`: the program under its other name as well.

#![forbid(unsafe_code)]

mod facade;

pub use facade::*;
