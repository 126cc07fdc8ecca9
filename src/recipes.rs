//! Complete programs, which are also examples of this package. This module contains only their text.
//!
//! # A service
//!
//! Hashes directories, one after the other, and reports progress, until it is stopped.
#![doc = concat!("```no_run\n", include_str!("library/examples/hash_service.rs"), "\n```")]
//!
//! # Photos from a card
//!
//! Copies those photos of a card that the archive does not have under any name to a new folder of it, and
//! reads the copies back.
#![doc = concat!("```no_run\n", include_str!("library/examples/import_photos.rs"), "\n```")]
//!
//! # A backup that is verified
//!
//! Records a tree the first time, and lists changed and damaged files on later runs, with a progress bar.
#![doc = concat!("```no_run\n", include_str!("library/examples/check_backup.rs"), "\n```")]
//!
//! # A cache keyed by content
//!
//! A result computed from one file is reused for every other file with the same content.
#![doc = concat!("```no_run\n", include_str!("library/examples/content_cache.rs"), "\n```")]
//!
//! # Groups of identical files
#![doc = concat!("```no_run\n", include_str!("library/examples/equal_files.rs"), "\n```")]
