//! Rows with a cold page cache: the number of requests in flight decides, not the CPU.

use anyhow::Result;

use super::Bench;
use super::dup::PEERS;
use super::measure::{Cache, Pair};

pub(crate) fn hash(bench: &mut Bench) -> Result<()> {
    bench.area = "cold";
    let rows: &[(&str, &str, &str, &str)] = &[
        (
            "XXH128",
            "bc hash --type=xxh128 $TREE",
            "find \"$TREE\" -type f -print0 | xargs -0 -P16 -n256 xxhsum -H2",
            "xxhsum",
        ),
        (
            "XXH128",
            "bc hash --type=xxh128 $TREE",
            "bc hash --type=xxh128 --io=sync --threads=2 $TREE",
            "bc",
        ),
        (
            "SHA-256",
            "bc hash --type=sha256 $TREE",
            "hashdeep -r -l -j16 -c sha256 $TREE",
            "hashdeep",
        ),
    ];
    for (algorithm, ours, theirs, tool) in rows {
        bench.compare(&Pair {
            job: format!("{algorithm} of the tree, cold cache"),
            ours,
            theirs,
            tool: &[tool],
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
            cache: Cache::Cold,
            pairs: 0,
        })?;
    }
    Ok(())
}
