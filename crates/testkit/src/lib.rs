//! Helpers shared by the tests of this workspace: trees to work on, reference implementations to compare
//! with, and ways to make a system misbehave. Never linked into the binary.
//!
//! ```
//! use bc_testkit::{TestTree, reference};
//!
//! let tree = TestTree::new();
//! tree.write("a/one", "same").write("b/two", "same").write("three", "other");
//! let groups = reference::duplicates(tree.path(), reference::LinkCounting::Apart).unwrap();
//! assert_eq!(groups, [[b"a/one".to_vec(), b"b/two".to_vec()]]);
//! let outcome = tree.run("cat").arg("a/one").go();
//! outcome.code(0).stdout_is("same");
//! ```
//!
//! # How it works
//!
//! Trees live in temporary directories that clean up after themselves.
//!
//! # Invariants
//! - Everything built from a seed is the same on every machine: same names, same bytes.
//! - The reference implementations ([`mod@reference`]) are deliberately naive and share no code with the
//!   crates under test; they may be slow.
//! - If the machine lacks a facility (no root, no reference tool, a file system that refuses a name), the
//!   reason is returned, so that a test can report the cases that it left out.
#![forbid(unsafe_code)]
// The examples of the registry's page run, too.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod acl;
mod descriptors;
pub mod diff;
pub mod exposition;
mod fleet;
mod full_disk;
mod fuse_disk;
pub mod hostile;
mod loop_disk;
mod marked;
mod privilege;
mod program;
mod pty;
pub mod reference;
mod remove;
mod rng;
mod run;
mod schema;
mod screen;
mod seen;
mod sweep;
mod synth;
mod tools;
mod tree;

pub use acl::{give_acl, give_default_acl, has_acl};
pub use descriptors::{has_descriptors, raise_descriptors};
pub use fleet::{Fleet, KnownAnswer};
pub use full_disk::{FullDisk, full_disk};
pub use fuse_disk::{
    Behaviour, DiskArm, DiskLoss, DiskRequest, FAILING, FAILING_FROM, FuseDisk, RequestCounts,
    RequestKind, STALLING, UNSTORABLE, fuse_disk,
};
pub use loop_disk::{LoopDisk, loop_disk, loop_disk_with};
pub use marked::Marked;
pub use privilege::{NOBODY, as_nobody, is_root};
pub use program::{own_program, own_words, runner, words_of};
pub use pty::{Pty, PtySession};
pub use remove::remove_tree;
pub use rng::Rng;
pub use run::{Outcome, Run, copy_program};
pub use schema::conforms;
pub use screen::Screen;
pub use seen::{Seen, seen};
pub use sweep::{EVERY, Point, Sweep, asked_points, cases};
pub use synth::{Built, Synth};
pub use tools::{duckdb, is_heeded, tool};
pub use tree::TestTree;

/// Reports on standard error that a check was left out, and why: a silent skip looks like a pass.
#[expect(
    clippy::print_stderr,
    reason = "only tests call it, and their output is for people"
)]
pub fn left_out(reason: &str) {
    eprintln!("left out: {reason}");
}
