//! With a cold page cache: depth in flight decides, not the CPU.

use anyhow::Result;

use super::dup::PEERS;
use super::measure::{Cache, Pair};
use super::{Bench, Target, Targets};
use Target::AtLeast;

/// The best of the peers is the one to beat; each row shows one.
const COLD: Targets = &[(AtLeast(1.8), "the best of the peers")];

pub(crate) fn hash(bench: &mut Bench) -> Result<()> {
    bench.area = "cold";
    let rows: &[(&str, &str, &str, &str, Targets)] = &[
        (
            "XXH128",
            "bc hash --type=xxh128 $TREE",
            "find \"$TREE\" -type f -print0 | xargs -0 -P16 -n256 xxhsum -H2",
            "xxhsum",
            COLD,
        ),
        (
            "XXH128",
            "bc hash --type=xxh128 $TREE",
            "bc hash --type=xxh128 --io=sync --threads=2 $TREE",
            "bc",
            &[],
        ),
        (
            "SHA-256",
            "bc hash --type=sha256 $TREE",
            "hashdeep -r -l -j16 -c sha256 $TREE",
            "hashdeep",
            COLD,
        ),
    ];
    for (algorithm, ours, theirs, tool, targets) in rows {
        bench.compare(&Pair {
            job: format!("{algorithm} of the tree, cold cache"),
            ours,
            theirs,
            tool: &[tool],
            targets,
            cache: Cache::Cold,
            pairs: 0,
        })?;
    }
    Ok(())
}

pub(crate) fn dup(bench: &mut Bench) -> Result<()> {
    bench.area = "cold";
    for peer in PEERS {
        let asked = ["jdupes", "fclones", "yadf", "czkawka_cli"].contains(&peer.tool);
        if !asked {
            continue;
        }
        bench.compare(&Pair {
            job: "duplicates in the tree, cold cache".to_owned(),
            ours: "bc dup $TREE",
            theirs: &format!("{} $TREE", peer.command),
            tool: &[peer.tool],
            targets: COLD,
            cache: Cache::Cold,
            pairs: 0,
        })?;
    }
    Ok(())
}
