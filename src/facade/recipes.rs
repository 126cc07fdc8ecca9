//! Whole programs, which are among the examples of this package too. Here is nothing but their text.
//!
//! # Photos from a card
//!
//! Which photos of a card are nowhere in the archive, under whatever name? Those are copied, and
//! each copy is read again and compared.
#![doc = concat!("```no_run\n", include_str!("examples/import_photos.rs"), "\n```")]
//!
//! # A backup that is verified
//!
//! Records a tree the first time, and says the next times what changed and what is damaged, with a
//! progress bar.
#![doc = concat!("```no_run\n", include_str!("examples/check_backup.rs"), "\n```")]
//!
//! # A cache keyed by content
//!
//! What was computed of a file is known of every other one with the same content.
#![doc = concat!("```no_run\n", include_str!("examples/content_cache.rs"), "\n```")]
//!
//! # Groups of equal files
#![doc = concat!("```no_run\n", include_str!("examples/equal_files.rs"), "\n```")]
