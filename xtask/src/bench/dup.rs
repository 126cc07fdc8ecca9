//! bc dup: a source tree, four copies of it, the cache.

use anyhow::Result;

use super::Bench;
use super::measure::{Cache, Pair};

/// A peer's search of the same files: hidden ones too, none of the ignore files, no cache, no
/// smallest size but 1. dupd leaves the groups in a database, which another of its commands prints;
/// only the search is timed, in its favour.
pub(crate) struct Peer {
    pub(crate) tool: &'static str,
    pub(crate) command: &'static str,
}

pub(crate) const PEERS: &[Peer] = &[
    Peer {
        tool: "yadf",
        command: "yadf --no-empty",
    },
    Peer {
        tool: "jdupes",
        command: "jdupes -r -q",
    },
    Peer {
        tool: "czkawka_cli",
        command: "czkawka_cli dup --minimal-file-size 1 --disable-cache --directories",
    },
    Peer {
        tool: "fclones",
        command: "fclones --quiet group --hidden --no-ignore",
    },
    Peer {
        tool: "rmlint",
        command: "rmlint -T df --hidden --no-followlinks -o fdupes:stdout",
    },
    Peer {
        tool: "fdupes",
        command: "fdupes -r -q -n",
    },
    Peer {
        tool: "dupd",
        command: "dupd scan --quiet --hidden --hardlink-is-unique --db $SCRATCH/dupd.db --path",
    },
    Peer {
        tool: "rdfind",
        command: "rdfind -dryrun true -makeresultsfile false",
    },
];

/// Reason why rows on the copies are not run.
pub(crate) const NO_COPIES: &str = "no copies dataset: `cargo xtask datasets copies` lays it";

pub(crate) fn rows(bench: &mut Bench) -> Result<()> {
    bench.area = "dup";
    bench.compare(&Pair {
        job: "duplicates in the tree".to_owned(),
        ours: "bc dup $TREE",
        theirs: "xtask floor dup $TREE $LIST $N",
        tool: &["xtask"],
        cache: Cache::Warm,
        pairs: 9,
    })?;
    for peer in PEERS {
        bench.compare(&Pair {
            job: "duplicates in the tree".to_owned(),
            ours: "bc dup $TREE",
            theirs: &format!("{} $TREE", peer.command),
            tool: &[peer.tool],
            cache: Cache::Warm,
            pairs: 0,
        })?;
    }
    bench.compare(&Pair {
        job: "duplicates in the tree, second run with --cache".to_owned(),
        ours: "bc dup --cache=$SCRATCH/dup.cache $TREE",
        theirs: "xtask floor statx $TREE $N",
        tool: &["xtask"],
        cache: Cache::Warm,
        pairs: 9,
    })?;
    copies(bench)
}

fn copies(bench: &mut Bench) -> Result<()> {
    let job = "duplicates in four copies";
    if bench.copies.is_none() {
        return match bench.wanted(job) {
            true => bench.left_out(job, NO_COPIES),
            false => Ok(()),
        };
    }
    for peer in PEERS {
        if peer.tool == "rmlint" {
            let job = format!("{job} / rmlint");
            if bench.wanted(&job) {
                bench.left_out(&job, "takes several minutes a run")?;
            }
            continue;
        }
        bench.compare(&Pair {
            job: job.to_owned(),
            ours: "bc dup $COPIES",
            theirs: &format!("{} $COPIES", peer.command),
            tool: &[peer.tool],
            cache: Cache::Warm,
            pairs: 0,
        })?;
    }
    Ok(())
}
