//! bc dup: a source tree, four copies of it, the cache.

use anyhow::Result;

use super::measure::{Cache, Pair};
use super::{Bench, Target, Targets};
use Target::{AtLeast, AtMost};

/// How each peer searches the same files: hidden ones too, none of the ignore files, no cache, no
/// smallest size but 1.
pub(crate) struct Peer {
    pub(crate) tool: &'static str,
    pub(crate) command: &'static str,
    tree: Targets,
    copies: Targets,
}

pub(crate) const PEERS: &[Peer] = &[
    Peer {
        tool: "yadf",
        command: "yadf --no-empty",
        tree: &[(AtLeast(2.4), ""), (AtLeast(3.0), "stretch")],
        copies: &[(AtLeast(2.8), ""), (AtLeast(3.5), "stretch")],
    },
    Peer {
        tool: "jdupes",
        command: "jdupes -r -q",
        tree: &[(AtLeast(3.0), "")],
        copies: &[(AtLeast(4.2), "")],
    },
    Peer {
        tool: "czkawka_cli",
        command: "czkawka_cli dup --minimal-file-size 1 --disable-cache --directories",
        tree: &[(AtLeast(3.2), "")],
        copies: &[],
    },
    Peer {
        tool: "fclones",
        command: "fclones --quiet group --hidden --no-ignore",
        tree: &[(AtLeast(6.5), "")],
        copies: &[(AtLeast(5.5), "")],
    },
    Peer {
        tool: "rmlint",
        command: "rmlint -T df --hidden --no-followlinks -o fdupes:stdout",
        tree: &[(AtLeast(20.0), "")],
        copies: &[],
    },
    Peer {
        tool: "fdupes",
        command: "fdupes -r -q -n",
        tree: &[],
        copies: &[],
    },
    Peer {
        tool: "rdfind",
        command: "rdfind -dryrun true -makeresultsfile false",
        tree: &[],
        copies: &[],
    },
];

/// Why rows on the copies are not run.
pub(crate) const NO_COPIES: &str = "no copies dataset: `cargo xtask datasets copies` lays it";

pub(crate) fn rows(bench: &mut Bench) -> Result<()> {
    bench.area = "dup";
    for peer in PEERS {
        bench.compare(&Pair {
            job: "duplicates in the tree".to_owned(),
            ours: "bc dup $TREE",
            theirs: &format!("{} $TREE", peer.command),
            tool: &[peer.tool],
            targets: peer.tree,
            cache: Cache::Warm,
            pairs: 0,
        })?;
    }
    bench.compare(&Pair {
        job: "duplicates in the tree, second run with --cache".to_owned(),
        ours: "bc dup --cache=$SCRATCH/dup.cache $TREE",
        theirs: "xtask walk stat $TREE $N",
        tool: &["xtask"],
        targets: &[(AtMost(1.3), "bc-walk with statx")],
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
            targets: peer.copies,
            cache: Cache::Warm,
            pairs: 0,
        })?;
    }
    Ok(())
}
