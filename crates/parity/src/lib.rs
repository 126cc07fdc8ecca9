//! Parity for the files of a manifest, behind `bc integrity protect`: damage is repaired without a copy.
//! Internal to bit-crafts, without a promise of stability.
//!
//! # How it works
//!
//! - [`protect()`] writes *volumes*: up to 256 MiB of recorded contents, cut into blocks of 64 KiB,
//!   with some 5 % of parity blocks computed from them. `contents` reads the manifest, `plan` decides
//!   which volumes still serve, `encode` reads and proves files and writes volumes in the `format` that
//!   the guide describes, by the `code` of `reed-solomon-simd`. `index` says what a directory is of.
//! - [`check()`] reports what parity is still worth.
//! - [`ParityRestore`] computes lost contents again, for bc-copy's restore, which proves them once more
//!   and puts them in place.
//!
//! # Invariants
//! - Nothing of the tree is changed here. It never prints.
//! - Content goes into a volume only if it was read with the manifest's digest.
//! - Content counts as protected only if a volume has it whose parity is at most half used up, or if it is
//!   damaged and this volume alone has it.
//! - A volume is removed only when durable volumes of this kind have all of its content that the manifest
//!   lists, and it has none that is damaged, that may be of a file which could not be read, or that was
//!   removed not long ago.
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
mod manifest_copy;
mod plan;
mod protect;
mod rebuild;
#[cfg(test)]
mod tests;

pub use check::{ParityCheck, VolumeCheck, check};
pub use code::Redundancy;
pub use file::{default_dir, is_parity_dir, may_be_parity_dir, why_no_parity};
pub use index::is_stale;
pub use manifest_copy::manifest_copy;
pub use protect::{ProtectEvent, ProtectObserver, ProtectOptions, Protected, protect};
pub use rebuild::{
    ContentPlaces, LostContent, OnRebuilt, ParityRestore, RebuildMeans, Rebuilt, RebuiltContent,
    RemovedContent,
};
