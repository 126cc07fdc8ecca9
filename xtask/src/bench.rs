//! `cargo xtask bench`: bc against its peers and against the floor program, in alternating pairs,
//! with the targets beside. Writes `benches/record/<date>-<cpu>.md`.

mod dup;
mod hash;
mod integrity;
mod machine;
mod measure;
mod record;
mod walk;

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Result, bail};

use crate::args::Args;
use crate::{datasets, sh};

pub(crate) use walk::run as walk;

/// Pairs of runs a row, unless they take long.
const RUNS: u64 = 7;

pub(crate) fn run(mut args: Args) -> Result<ExitCode> {
    let runs = usize::try_from(args.number("--runs", RUNS)?)?.max(1);
    let tree = args
        .option("--dir")?
        .map_or_else(|| sh::dataset("linux"), PathBuf::from);
    let copies = args
        .option("--copies")?
        .map_or_else(|| sh::dataset("copies"), PathBuf::from);
    let only = args.option("--only")?;
    let recorded = !args.flag("--no-record") && only.is_none();
    let area = args.word().unwrap_or_else(|| "all".to_owned());
    args.done()?;
    if !["hash", "dup", "integrity", "all"].contains(&area.as_str()) {
        bail!("bench needs one of hash, dup, integrity, all, not {area:?}");
    }
    if !tree.is_dir() {
        bail!("no linux dataset: `cargo xtask datasets linux` lays it, or name a tree with --dir");
    }
    let tree = tree.canonicalize()?;
    let mut bench = Bench::new(runs, tree, copies.canonicalize().ok(), only)?;
    if area == "hash" || area == "all" {
        walk::rows(&mut bench)?;
        hash::rows(&mut bench)?;
    }
    if area == "dup" || area == "all" {
        dup::rows(&mut bench)?;
    }
    if area == "integrity" || area == "all" {
        integrity::rows(&mut bench)?;
    }
    let text = record::text(&bench, &area);
    if recorded {
        let path = record::write_file(&text, &area)?;
        println!("\nrecorded in {path}");
    }
    record::summary(&bench);
    Ok(ExitCode::SUCCESS)
}

/// What a figure must reach.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    /// The peer takes at least this many times as long as we do.
    AtLeast(f64),
    /// We take at most this many times what the other takes.
    AtMost(f64),
}

/// Targets of one row, each with a word about what it is against or when it holds.
type Targets = &'static [(Target, &'static str)];

/// One figure against another.
pub(crate) struct Row {
    job: String,
    ours: String,
    theirs: String,
    unit: &'static str,
    our_median: f64,
    their_median: f64,
    /// Theirs to ours, pair by pair; one pair where there is only one figure each.
    median_of_ratios: f64,
    pairs: usize,
    targets: Vec<(Target, &'static str)>,
}

/// What is measured, with what, and what has been found.
pub(crate) struct Bench {
    runs: usize,
    threads: usize,
    tree: PathBuf,
    tree_files: usize,
    copies: Option<PathBuf>,
    only: Option<String>,
    scratch: PathBuf,
    release: PathBuf,
    load_before: String,
    rows: Vec<Row>,
    not_run: Vec<String>,
    tools: Vec<(String, String)>,
}

impl Bench {
    fn new(
        runs: usize,
        tree: PathBuf,
        copies: Option<PathBuf>,
        only: Option<String>,
    ) -> Result<Bench> {
        let load_before = machine::load();
        let bc = sh::release_binary("bit-crafts", "bc")?;
        sh::release_binary("xtask", "xtask")?;
        let scratch = sh::scratch("bench")?;
        std::fs::create_dir_all(scratch.join("cache"))?;
        let mut find = Command::new("find");
        find.current_dir(&tree).args([".", "-type", "f", "-print0"]);
        // In path order, as bc reads them.
        let list = sh::stdout(&mut find)?;
        let mut paths: Vec<&[u8]> = list.split_inclusive(|&b| b == 0).collect();
        paths.sort_unstable();
        std::fs::write(scratch.join("list"), paths.concat())?;
        Ok(Bench {
            runs,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            tree_files: paths.len(),
            tree,
            copies,
            only,
            scratch,
            release: bc.parent().expect("lies in a folder").to_owned(),
            load_before,
            rows: Vec::new(),
            not_run: Vec::new(),
            tools: Vec::new(),
        })
    }

    /// The name of the tree, never its path.
    fn tree_name(&self) -> String {
        datasets::name(&self.tree)
    }

    fn left_out(&mut self, job: &str, reason: &str) {
        println!("not run  {job}: {reason}");
        self.not_run.push(format!("{job}: {reason}"));
    }
}
