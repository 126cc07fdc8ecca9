//! bc dup: a source tree, four copies of it, the cache, memory, a cold page cache.

use anyhow::Result;

use super::measure::{Cache, Pair};
use super::{Bench, Row, Target, Targets};
use Target::{AtLeast, AtMost};

/// How each peer searches the same files: hidden ones too, none of the ignore files, no cache, no
/// smallest size but 1.
struct Peer {
    tool: &'static str,
    command: &'static str,
    tree: Targets,
    copies: Targets,
}

const PEERS: &[Peer] = &[
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

pub(crate) fn rows(bench: &mut Bench) -> Result<()> {
    for peer in PEERS {
        bench.compare(&Pair {
            job: "duplicates in the tree".to_owned(),
            ours: "bc dup $TREE",
            theirs: &format!("{} $TREE", peer.command),
            tool: &[peer.tool],
            targets: peer.tree,
            cache: Cache::Warm,
            pairs: 0,
        });
    }
    bench.compare(&Pair {
        job: "duplicates in the tree, second run with --cache".to_owned(),
        ours: "bc dup --cache=$SCRATCH/dup.cache $TREE",
        theirs: "xtask walk stat $TREE $N",
        tool: &["xtask"],
        targets: &[(AtMost(1.3), "bc-walk with statx")],
        cache: Cache::Warm,
        pairs: 9,
    });
    copies(bench)?;
    for (tool, command) in [
        ("jdupes", "jdupes -r -q $TREE"),
        (
            "fclones",
            "fclones --quiet group --hidden --no-ignore $TREE",
        ),
    ] {
        bench.compare(&Pair {
            job: "duplicates in the tree, cold cache".to_owned(),
            ours: "bc dup $TREE",
            theirs: command,
            tool: &[tool],
            targets: &[(AtLeast(1.8), "")],
            cache: Cache::Cold,
            pairs: 0,
        });
    }
    Ok(())
}

fn copies(bench: &mut Bench) -> Result<()> {
    let Some(copies) = bench.copies.clone() else {
        let reason = "no copies dataset: `cargo xtask datasets copies` lays it";
        bench.left_out("duplicates in four copies of the tree", reason);
        return Ok(());
    };
    for peer in PEERS {
        bench.compare(&Pair {
            job: "duplicates in four copies".to_owned(),
            ours: "bc dup $COPIES",
            theirs: &format!("{} $COPIES", peer.command),
            tool: &[peer.tool],
            targets: peer.copies,
            cache: Cache::Warm,
            pairs: 0,
        });
    }
    for peer in PEERS {
        let targets: Targets = if peer.tool == "jdupes" {
            &[(AtMost(1.0), "peak memory")]
        } else {
            &[]
        };
        bench.compare_memory(&Pair {
            job: "peak memory, four copies".to_owned(),
            ours: "bc dup $COPIES",
            theirs: &format!("{} $COPIES", peer.command),
            tool: &[peer.tool],
            targets,
            cache: Cache::Warm,
            pairs: 0,
        });
    }
    per_file(bench, &copies)
}

/// What one more file costs: the difference between the four copies and the one tree, in which
/// buffers and code cancel out.
fn per_file(bench: &mut Bench, copies: &std::path::Path) -> Result<()> {
    let job = "memory a file beyond its name";
    if !bench.wanted(job) {
        return Ok(());
    }
    let list = crate::sh::stdout(
        std::process::Command::new("find")
            .arg(copies)
            .args(["-type", "f", "-printf", "%f\\0"]),
    )?;
    let files = list.iter().filter(|&&b| b == 0).count();
    let more = files.saturating_sub(bench.tree_files);
    if more == 0 {
        bench.left_out(job, "the copies hold no more files than the tree");
        return Ok(());
    }
    let (one, four) = (bench.peak("bc dup $TREE")?, bench.peak("bc dup $COPIES")?);
    let name = list.len() as f64 / files as f64;
    let ours = ((four - one) * f64::from(1 << 20) / more as f64 - name).max(1.0);
    println!("{job}: {ours:.1} B (names {name:.1} B)");
    bench.rows.push(Row {
        job: job.to_owned(),
        ours: "bc dup $COPIES, less bc dup $TREE".to_owned(),
        theirs: "64 bytes".to_owned(),
        unit: "B",
        our_median: ours,
        their_median: 64.0,
        median_of_ratios: 64.0 / ours,
        pairs: 1,
        targets: vec![(AtMost(1.0), "64 B")],
    });
    Ok(())
}
