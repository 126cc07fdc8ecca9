//! Whole programs, which are among the examples of this package too. This module contains only
//! their text.
//!
//! # A service
//!
//! Hashes directories, one after the other, with their progress, until it is stopped.
#![doc = concat!("```no_run\n", include_str!("library/examples/hash_service.rs"), "\n```")]
//!
//! # Photos from a card
//!
//! Copies the photos of a card that are nowhere in the archive, under any name, to a new folder of
//! it, and reads the copies again.
#![doc = concat!("```no_run\n", include_str!("library/examples/import_photos.rs"), "\n```")]
//!
//! # A backup that is verified
//!
//! Records a tree the first time, and lists the changed and the damaged files the next times, with
//! a progress bar.
#![doc = concat!("```no_run\n", include_str!("library/examples/check_backup.rs"), "\n```")]
//!
//! # A cache keyed by content
//!
//! A result computed from one file is reused for every other file with the same content.
#![doc = concat!("```no_run\n", include_str!("library/examples/content_cache.rs"), "\n```")]
//!
//! # Groups of equal files
#![doc = concat!("```no_run\n", include_str!("library/examples/equal_files.rs"), "\n```")]
