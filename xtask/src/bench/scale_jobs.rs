//! Jobs of `cargo xtask bench scale` over each tree, in this order: later jobs read manifests that
//! earlier ones have written. `TREE`, `OLD` and `NEW` stand for the tree and two manifests.

use anyhow::Result;

use super::forest::Forest;

/// A command and its expected exit code.
#[derive(Clone, Copy)]
pub(super) struct ScaleJob {
    pub(super) name: &'static str,
    pub(super) arguments: &'static str,
    pub(super) code: i32,
    /// Change made to the tree first.
    pub(super) before: fn(&Forest) -> Result<()>,
    /// True if later jobs read the output of this one.
    pub(super) is_needed: bool,
    /// True if files are changed by their paths, which are too long in a very deep tree.
    pub(super) needs_paths: bool,
}

const PLAIN: ScaleJob = ScaleJob {
    name: "",
    arguments: "",
    code: 0,
    before: |_| Ok(()),
    is_needed: false,
    needs_paths: false,
};

pub(super) const JOBS: &[ScaleJob] = &[
    ScaleJob {
        name: "hash, XXH128",
        arguments: "hash --type=xxh128 TREE",
        ..PLAIN
    },
    ScaleJob {
        name: "dup",
        arguments: "dup TREE",
        ..PLAIN
    },
    ScaleJob {
        name: "manifest, XXH128",
        arguments: "integrity manifest --algorithm=xxh128 --output=OLD TREE",
        is_needed: true,
        ..PLAIN
    },
    ScaleJob {
        name: "verify --mode=meta",
        arguments: "integrity verify --mode=meta TREE OLD",
        ..PLAIN
    },
    ScaleJob {
        name: "verify",
        arguments: "integrity verify TREE OLD",
        ..PLAIN
    },
    ScaleJob {
        name: "diff, nothing differs",
        arguments: "integrity diff OLD OLD",
        ..PLAIN
    },
    ScaleJob {
        name: "update, nothing differs",
        arguments: "integrity update TREE OLD",
        ..PLAIN
    },
    ScaleJob {
        name: "update, a file in 1,000 edited",
        arguments: "integrity update --quiet TREE OLD",
        before: Forest::edit,
        needs_paths: true,
        ..PLAIN
    },
    ScaleJob {
        name: "update --reread=5%",
        arguments: "integrity update --quiet --reread=5% TREE OLD",
        ..PLAIN
    },
    ScaleJob {
        name: "manifest of the tree under another name",
        arguments: "integrity manifest --algorithm=xxh128 --output=NEW TREE",
        before: Forest::bury,
        is_needed: true,
        ..PLAIN
    },
    ScaleJob {
        name: "diff, every path differs",
        arguments: "integrity diff --quiet --output=/dev/null OLD NEW",
        code: 1,
        ..PLAIN
    },
];
