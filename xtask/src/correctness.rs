//! `cargo xtask correctness`: the release binary against the reference tools that are installed.
//! A tool that is missing is named and counted as not run, never as passed.

pub(crate) mod dup;
mod exports;
mod hash;
mod integrity;
mod listing;
mod moves;
mod peers;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::args::Args;
use crate::{datasets, sh};

/// Files of the synth dataset when it has to be laid first.
const SYNTH_FILES: u64 = 2_000;

pub(crate) fn run(mut args: Args) -> Result<ExitCode> {
    let bc = args.option("--bc")?.map(PathBuf::from);
    let area = match args.word() {
        None => "all".to_owned(),
        Some(word) => word,
    };
    if !["hash", "dup", "integrity", "move", "all"].contains(&area.as_str()) {
        bail!("correctness needs one of hash, dup, integrity, move, all, not {area:?}");
    }
    let checks = all(&area, bc, &args.rest()?)?;
    Ok(checks.close())
}

/// Results of a run over some trees, for the record of a bench run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Totals {
    pub(crate) trees: String,
    pub(crate) passed: usize,
    pub(crate) failed: Vec<String>,
    pub(crate) not_run: Vec<String>,
}

/// Returns the totals of a run over these trees, for the benchmark's record.
pub(crate) fn totals(words: &[&str]) -> Result<Totals> {
    let trees: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
    let checks = all("all", None, &trees)?;
    Ok(Totals {
        trees: words.join(" "),
        passed: checks.passed as usize,
        failed: checks.failed,
        not_run: checks.not_run,
    })
}

/// Runs all checks of an area on these trees.
fn all(area: &str, bc: Option<PathBuf>, words: &[String]) -> Result<Checks> {
    let trees = trees(words)?;
    let bc = match bc {
        Some(path) => path
            .canonicalize()
            .with_context(|| path.display().to_string())?,
        None => sh::release_binary("bit-crafts", "bc")?,
    };
    let mut checks = Checks::new(bc)?;
    for tree in &trees {
        if area == "hash" || area == "all" {
            hash::check(&mut checks, tree)?;
        }
        if area == "dup" || area == "all" {
            dup::check(&mut checks, tree)?;
        }
        if area == "integrity" || area == "all" {
            integrity::check(&mut checks, tree)?;
        }
    }
    if area == "move" || area == "all" {
        moves::check(&mut checks);
    }
    Ok(checks)
}

/// A tree to compare on.
pub(crate) struct Tree {
    name: String,
    path: PathBuf,
}

/// Returns the trees named (paths, or names of datasets), else the datasets that are there; synth
/// and hostile are laid if need be.
fn trees(words: &[String]) -> Result<Vec<Tree>> {
    let mut trees = Vec::new();
    let defaults = ["synth", "hostile", "linux"].map(str::to_owned);
    for word in if words.is_empty() {
        &defaults[..]
    } else {
        words
    } {
        let dataset = sh::dataset(word);
        let path = match word.as_str() {
            "synth" if !dataset.exists() => datasets::synth(&dataset, SYNTH_FILES, 1)?,
            "hostile" if !dataset.exists() => datasets::hostile(&dataset)?,
            _ if Path::new(word).is_dir() => PathBuf::from(word),
            _ if dataset.is_dir() => dataset,
            "linux" if words.is_empty() => continue,
            _ => bail!("{word}: neither a directory nor a dataset under target/datasets"),
        };
        let path = path.canonicalize()?;
        trees.push(Tree {
            name: datasets::name(&path),
            path,
        });
    }
    Ok(trees)
}

/// State of the checks: settings, and the results so far.
struct Checks {
    bc: PathBuf,
    scratch: PathBuf,
    passed: u32,
    failed: Vec<String>,
    not_run: Vec<String>,
}

impl Checks {
    fn new(bc: PathBuf) -> Result<Checks> {
        let scratch = sh::scratch("correctness")?;
        Ok(Checks {
            bc,
            scratch,
            passed: 0,
            failed: Vec::new(),
            not_run: Vec::new(),
        })
    }

    /// Returns a command of the binary, away from the user's own configuration and cache.
    fn bc(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.bc);
        command.args(arguments);
        command.env("XDG_CACHE_HOME", self.scratch.join("cache"));
        command.env("XDG_STATE_HOME", self.scratch.join("state"));
        command.env("XDG_CONFIG_HOME", self.scratch.join("config"));
        command
    }

    /// Records one comparison and prints its line; the closure returns a remark.
    fn check(&mut self, name: impl Into<String>, body: impl FnOnce(&Checks) -> Result<String>) {
        let name = name.into();
        match body(self) {
            Ok(remark) => {
                self.passed += 1;
                println!(
                    "ok       {name}{}{remark}",
                    if remark.is_empty() { "" } else { ": " }
                );
            }
            Err(error) => {
                println!("FAILED   {name}: {error:#}");
                self.failed.push(name);
            }
        }
    }

    /// Records a comparison that could not be made.
    fn not_run(&mut self, name: impl Into<String>, reason: &str) {
        let name = name.into();
        println!("not run  {name}: {reason}");
        self.not_run.push(name);
    }

    fn close(self) -> ExitCode {
        let total = self.passed as usize + self.failed.len();
        println!();
        for name in &self.failed {
            println!("failed: {name}");
        }
        if !self.not_run.is_empty() {
            println!("{} checks not run", self.not_run.len());
        }
        println!("{}/{total} checks pass", self.passed);
        if self.failed.is_empty() && total > 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}

/// Fails unless both sides hold the same records; says which is the first that differs.
fn same(ours: &[Vec<u8>], theirs: &[Vec<u8>]) -> Result<String> {
    if ours == theirs {
        return Ok(format!("{} records", ours.len()));
    }
    let at = ours.iter().zip(theirs).position(|(a, b)| a != b);
    let at = at.unwrap_or(ours.len().min(theirs.len()));
    let show = |side: &[Vec<u8>]| match side.get(at) {
        Some(record) => format!("{:?}", String::from_utf8_lossy(record)),
        None => "nothing".to_owned(),
    };
    bail!(
        "{} of ours, {} of theirs; first difference: {} against {}",
        ours.len(),
        theirs.len(),
        show(ours),
        show(theirs)
    )
}

/// Returns the records of a text, sorted.
fn sorted(text: &[u8], end: u8) -> Vec<Vec<u8>> {
    let mut records: Vec<Vec<u8>> = text
        .split(|&b| b == end)
        .filter(|r| !r.is_empty())
        .map(<[u8]>::to_vec)
        .collect();
    records.sort_unstable();
    records
}

/// Checks the exit code; the error quotes the first line of stderr.
fn expect_code(output: &std::process::Output, code: i32, who: &str) -> Result<()> {
    if output.status.code() == Some(code) {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    bail!(
        "{who}: {}, not {code}: {}",
        output.status,
        said.lines().next().unwrap_or("")
    )
}
