//! Peak memory: of hashing, of the duplicate search, of millions of entries.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::dup::{NO_COPIES, PEERS};
use super::measure::{Cache, Pair};
use super::record::Row;
use super::{Bench, targets};
use crate::sh;

const MIB: f64 = (1 << 20) as f64;

pub(crate) fn hash(bench: &mut Bench) -> Result<()> {
    bench.area = "memory";
    bench.compare_memory(&Pair {
        job: "peak memory, SHA-256 of the tree".to_owned(),
        ours: "bc hash --type=sha256 $TREE",
        theirs: "hashdeep -r -l -j$N -c sha256 $TREE",
        tool: &["hashdeep"],
        cache: Cache::Warm,
        pairs: 0,
    })
}

pub(crate) fn dup(bench: &mut Bench) -> Result<()> {
    bench.area = "memory";
    let job = "peak memory, duplicates in four copies";
    let Some(copies) = bench.copies.clone() else {
        return match bench.wanted(job) {
            true => bench.left_out(job, NO_COPIES),
            false => Ok(()),
        };
    };
    // rmlint takes several minutes.
    for peer in PEERS.iter().filter(|peer| peer.tool != "rmlint") {
        bench.compare_memory(&Pair {
            job: job.to_owned(),
            ours: "bc dup $COPIES",
            theirs: &format!("{} $COPIES", peer.command),
            tool: &[peer.tool],
            cache: Cache::Warm,
            pairs: 0,
        })?;
    }
    per_file(bench, &copies)
}

/// Measures the memory that one more file costs: the difference between the four copies and the one
/// tree, in which buffers and code cancel out.
fn per_file(bench: &mut Bench, copies: &Path) -> Result<()> {
    let job = "memory a file beyond its name";
    if !bench.wanted(job) {
        return Ok(());
    }
    let (files, name) = names(copies)?;
    let more = files.saturating_sub(bench.record.tree_files);
    if more == 0 {
        return bench.left_out(job, "the copies hold no more files than the tree");
    }
    let (one, four) = (bench.peak("bc dup $TREE")?, bench.peak("bc dup $COPIES")?);
    let ours = ((four - one) * MIB / more as f64 - name).max(1.0);
    let command = "bc dup $COPIES, less bc dup $TREE";
    figure(bench, job, command, ours, (100.0, "100 B"))
}

/// Measures a tree of millions of entries: too large to be laid or read in every run.
pub(crate) fn large(bench: &mut Bench, asked: bool) -> Result<()> {
    bench.area = "memory";
    let job = "peak memory a file, millions of files";
    let tree = sh::dataset("large");
    if !bench.wanted(job) {
        return Ok(());
    }
    if !asked {
        return bench.left_out(job, "only with --large");
    }
    if !tree.is_dir() {
        let lay = "`cargo xtask datasets synth --files 5000000 --dir …/large` lays it";
        return bench.left_out(job, &format!("no large dataset: {lay}"));
    }
    let (files, _) = names(&tree)?;
    for command in [
        "bc hash --type=xxh128 $LARGE",
        "bc dup $LARGE",
        "bc integrity manifest --algorithm=xxh128 --output=$SCRATCH/large $LARGE",
    ] {
        let ours = bench.peak(command)? * MIB / files as f64;
        let job = format!(
            "peak memory a file, {files} files: {}",
            command.split(" -").next().unwrap_or(command)
        );
        let job = job.replace(" $LARGE", "");
        figure(
            bench,
            &job,
            command,
            ours,
            (100.0, "1 GB for ten million files"),
        )?;
    }
    Ok(())
}

/// Returns the number of files below a tree, and the mean length of their names.
fn names(tree: &Path) -> Result<(usize, f64)> {
    let mut find = Command::new("find");
    find.arg(tree).args(["-type", "f", "-printf", "%f\\0"]);
    let list = sh::stdout(&mut find)?;
    let files = list.iter().filter(|&&b| b == 0).count();
    Ok((files, list.len() as f64 / files.max(1) as f64))
}

/// Records a figure in bytes against its limit.
fn figure(
    bench: &mut Bench,
    job: &str,
    command: &str,
    ours: f64,
    (most, note): (f64, &str),
) -> Result<()> {
    println!("{job}: {ours:.1} B, {most} B at most");
    let area = bench.area.to_owned();
    bench.push(Row {
        area,
        job: job.to_owned(),
        peer: "the budget".to_owned(),
        ours: command.to_owned(),
        theirs: note.to_owned(),
        unit: "B".to_owned(),
        pairs: vec![((ours * 100.0).round() / 100.0, most)],
        targets: targets::of(job, "the budget", bench.threads),
    })
}
