//! The engine behind `bc integrity protect`: parity for the files of a manifest, so that damage can
//! be repaired without a copy. It never prints.
//!
//! # How it works
//!
//! - [`protect()`] writes *volumes*: up to 256 MiB of recorded contents, cut into blocks of 64 KiB,
//!   with some 5 % of parity blocks computed from them. `contents` reads the manifest, `plan` decides
//!   what is new and which volumes are worn, `encode` reads and proves files and writes volumes in the
//!   `format` that the guide describes, by the `code` of `reed-solomon-simd`.
//! - [`check()`] reports what parity is still worth.
//! - [`ParityRestore`] computes lost contents again, for bc-copy's restore, which proves and puts them
//!   in place.
//!
//! # Invariants
//! - Nothing of the tree is changed here.
//! - Content goes into a volume only if it was read with the manifest's digest.
//! - A volume is removed only when volumes that are durable have all of its content that the manifest
//!   lists, and it holds none that was removed not long ago.
//! - Files of a parity directory may come from anybody: a wrong one gives an error or a lost block,
//!   never other bytes than those recorded.

#![forbid(unsafe_code)]
// The examples of the registry's page run, too.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod check;
mod code;
mod contents;
mod encode;
mod file;
mod format;
mod index;
mod plan;
mod protect;
mod rebuild;
#[cfg(test)]
mod tests;

pub use check::{ParityCheck, VolumeCheck, check};
pub use code::Redundancy;
pub use file::default_dir;
pub use index::is_stale;
pub use protect::{ProtectEvent, ProtectObserver, ProtectOptions, Protected, protect};
pub use rebuild::{
    ContentPlaces, LostContent, OnRebuilt, ParityRestore, RebuildMeans, Rebuilt, RebuiltContent,
};
