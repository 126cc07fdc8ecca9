//! Copies: the tree, one large file, many small ones, holes; beside other programs that copy. All
//! go from warm files into the scratch folder, which had better be in memory: a disk's own rules of
//! when to write back say little about a program. Each run begins without the copy.

use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use anyhow::{Context, Result};
use bc_testkit::Rng;
use rustix::process::{Pid, Signal, kill_process};

use super::measure::{Cache, Pair};
use super::{Bench, Target};

const MIB: u64 = 1 << 20;

/// The pieces of the sparse file, a hole before each.
const PIECES: u64 = 64;

/// Source of a copy.
struct CopySource {
    job: &'static str,
    /// Path as the commands name it.
    source: &'static str,
    is_tree: bool,
}

const TREE: CopySource = CopySource {
    job: "copy of the tree",
    source: "$TREE",
    is_tree: true,
};
const LARGE: CopySource = CopySource {
    job: "copy of one file of 2 GiB",
    source: "$SHAPE/two",
    is_tree: false,
};
const SMALL: CopySource = CopySource {
    job: "copy of 10,000 × 64 KiB",
    source: "$SHAPE/small",
    is_tree: true,
};
const SPARSE: CopySource = CopySource {
    job: "copy of 8 GiB of holes and 64 MiB",
    source: "$SHAPE/holes",
    is_tree: false,
};

/// Programs and their options for a tree; `-r` is left out for a file.
const PEERS: &[(&str, &str)] = &[
    ("cp", "cp -a"),
    ("rsync", "rsync -a"),
    ("cpz", "cpz"),
    ("xcp", "xcp -r"),
    ("bcmr", "bcmr copy -r -p"),
    ("bcmr", "bcmr copy -r -V"),
];

pub(crate) fn rows(bench: &mut Bench) -> Result<()> {
    bench.area = "copy";
    let root = bench.shape.clone();
    std::fs::create_dir_all(&root).with_context(|| root.display().to_string())?;
    let done = (|| {
        copies(bench, &TREE)?;
        nothing_to_do(bench)?;
        if bench.wanted_job(LARGE.job) || bench.wanted_job(RESUMED) {
            random(&root.join("two"), 2048 * MIB)?;
            copies(bench, &LARGE)?;
            resumed(bench)?;
            std::fs::remove_file(root.join("two"))?;
        }
        if bench.wanted_job(SMALL.job) {
            for nth in 0..10_000 {
                let folder = root.join(format!("small/{:02}", nth / 100));
                std::fs::create_dir_all(&folder)?;
                random(&folder.join(nth.to_string()), 64 << 10)?;
            }
            copies(bench, &SMALL)?;
        }
        if bench.wanted_job(SPARSE.job) {
            holes(&root.join("holes"))?;
            copies(bench, &SPARSE)?;
        }
        Ok(())
    })();
    bench.prepare = None;
    bc_testkit::remove_tree(&root).with_context(|| root.display().to_string())?;
    done
}

/// Runs a copy of one source by every program, with a digest and without.
fn copies(bench: &mut Bench, what: &CopySource) -> Result<()> {
    let &CopySource { job, source, .. } = what;
    bench.prepare = Some("rm -rf $SHAPE/out".to_owned());
    for (job, algorithm) in [
        (job.to_owned(), ""),
        (format!("{job}, no digest"), " --algorithm=none"),
    ] {
        if !bench.wanted_job(&job) {
            continue;
        }
        let ours = format!("bc copy --quiet{algorithm} {source} $SHAPE/out");
        if what.is_tree && source == TREE.source {
            let statx = "xtask floor statx $TREE $N";
            bench.compare(&Pair {
                job: job.clone(),
                ours: &ours,
                theirs: &format!("{statx} && xtask floor copy $TREE $LIST $SHAPE/out $N"),
                tool: &["xtask"],
                cache: Cache::Warm,
                pairs: 0,
            })?;
        }
        for (tool, command) in PEERS {
            // It is slow, and has no place among those that prove nothing.
            if *tool == "bcmr" && !algorithm.is_empty() {
                continue;
            }
            let command = match what.is_tree {
                true => (*command).to_owned(),
                false => command.replace(" -r", ""),
            };
            // rsync copies the contents of a folder where its name ends in a slash.
            let from = match (*tool, what.is_tree) {
                ("rsync", true) => format!("{source}/"),
                _ => source.to_owned(),
            };
            bench.compare(&Pair {
                job: job.clone(),
                ours: &ours,
                theirs: &format!("{command} {from} $SHAPE/out"),
                tool: &[tool],
                cache: Cache::Warm,
                pairs: 0,
            })?;
        }
    }
    bench.prepare = None;
    Ok(())
}

/// Runs the same command again, when all is copied: both sides are looked at.
fn nothing_to_do(bench: &mut Bench) -> Result<()> {
    let job = "copy of the tree again";
    if !bench.wanted_job(job) {
        return Ok(());
    }
    let out = bench.shape.join("out");
    if out.exists() {
        bc_testkit::remove_tree(&out)?;
    }
    let ours = "bc copy --quiet -T $TREE $SHAPE/out";
    bench.time(ours)?;
    for (tool, theirs) in [
        (
            "xtask",
            "xtask floor statx $TREE $N && xtask floor statx $SHAPE/out $N",
        ),
        ("rsync", "rsync -a $TREE/ $SHAPE/out"),
    ] {
        bench.compare(&Pair {
            job: job.to_owned(),
            ours,
            theirs,
            tool: &[tool],
            cache: Cache::Warm,
            pairs: 0,
        })?;
    }
    bc_testkit::remove_tree(&out)?;
    Ok(())
}

const RESUMED: &str = "copy of one file of 2 GiB that was half done";

/// Measures the rest of a copy that was killed in its middle, against a whole copy.
fn resumed(bench: &mut Bench) -> Result<()> {
    if !bench.wanted_job(RESUMED) {
        return Ok(());
    }
    let whole = "bc copy --quiet $SHAPE/two $SHAPE/out";
    let out = bench.shape.join("out");
    let clear = || match out.exists() {
        true => std::fs::remove_file(&out),
        false => Ok(()),
    };
    clear()?;
    bench.time(whole)?;
    let mut pairs = Vec::new();
    while pairs.len() < bench.record.runs.max(5) {
        clear()?;
        let took = bench.time(whole)?;
        clear()?;
        let mut half = bench.command(whole)?.spawn()?;
        while half.try_wait()?.is_none() && staged(&bench.shape) < 1024 * MIB {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let _ = kill_process(Pid::from_child(&half), Signal::KILL);
        half.wait()?;
        // One that was quicker than the look at it proves nothing.
        if !out.exists() {
            pairs.push((bench.time(whole)?, took));
        }
    }
    clear()?;
    bench.push_pairs(
        RESUMED,
        (whole, whole),
        pairs,
        &[(Target::AtMost(0.65), "")],
    )
}

/// Returns the bytes of the stages in a folder that take room.
fn staged(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let stages = entries.filter(|entry| entry.file_name().as_bytes().starts_with(b".bc-copy."));
    let blocks = stages.filter_map(|entry| Some(entry.metadata().ok()?.blocks() * 512));
    blocks.sum()
}

fn random(path: &Path, size: u64) -> Result<()> {
    let mut rng = Rng::new(size);
    let mut file = File::create(path).with_context(|| path.display().to_string())?;
    let mut block = vec![0; size.min(MIB) as usize];
    for _ in 0..size / block.len() as u64 {
        rng.fill(&mut block);
        file.write_all(&block)?;
    }
    Ok(())
}

/// Writes a mebibyte of data in each of the pieces.
fn holes(path: &Path) -> Result<()> {
    let file = File::create(path).with_context(|| path.display().to_string())?;
    let size = 8192 * MIB;
    file.set_len(size)?;
    let mut block = vec![0; MIB as usize];
    let mut rng = Rng::new(8);
    for piece in 1..=PIECES {
        rng.fill(&mut block);
        file.write_all_at(&block, size / PIECES * piece - MIB)?;
    }
    Ok(())
}
