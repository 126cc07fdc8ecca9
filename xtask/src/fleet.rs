//! `cargo xtask fleet`: the questions about many manifests in the engines themselves, over a fleet
//! that is made up so that every answer is known; and one tree read by a Spark cluster. The engines
//! come from the Python package index, into a folder of their own below the target directory.

mod cluster;
mod engines;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use bc_digest::{Algorithm, Hasher};
use bc_testkit::{Fleet, KnownAnswer};
use serde_json::Value;

use crate::args::Args;
use crate::sh;
use engines::{Engine, Installed};

/// Machines, sharing and files that every question is measured with, if nothing else is asked for:
/// 10 million entries in 20 manifests.
const MACHINES: u64 = 8;
const SHARING: u64 = 4;
const FILES: u64 = 12 * 41_000;

pub(crate) fn run(mut args: Args) -> Result<ExitCode> {
    let engine = args.word();
    let bc = args.option("--bc")?.map(PathBuf::from);
    let like = args.option("--like")?.map(PathBuf::from);
    let dir = args.option("--dir")?.map(PathBuf::from);
    let files = args.number("--files", FILES)? / 12 * 12;
    let is_small = args.flag("--small");
    args.done()?;
    let engines: &[Engine] = match engine.as_deref() {
        None | Some("all") => &[Engine::DuckDb, Engine::Spark],
        Some("duckdb") => &[Engine::DuckDb],
        Some("spark") => &[Engine::Spark],
        Some("cluster") => &[],
        Some(other) => bail!("no engine {other:?}: duckdb, spark, cluster or all"),
    };
    let has_cluster = matches!(engine.as_deref(), None | Some("all" | "cluster"));
    let bc = match bc {
        Some(bc) => bc.canonicalize().context("--bc")?,
        None => sh::release_binary("bit-crafts", "bc")?,
    };
    let fleet = match (is_small, like) {
        (true, _) => Fleet::small(),
        (false, Some(manifest)) => large(&manifest, files)?,
        (false, None) => bail!("--like=MANIFEST of a real tree, or --small"),
    };
    let dir = match dir {
        Some(dir) => dir,
        None => sh::scratch("fleet")?,
    };
    let mut is_right = true;
    let manifests = dir.join("manifests");
    make(&fleet, &manifests)?;
    check(&bc, &manifests)?;
    for engine in engines {
        let Some(installed) = Installed::find(*engine)? else {
            continue;
        };
        let answers = fleet.answers(&manifests.display().to_string());
        // Spark takes longer to begin than to answer: one session has all that have the same views.
        let of_views =
            |answer: &KnownAnswer| answer.params.iter().any(|p| p.starts_with("backups="));
        let (apart, alike): (Vec<_>, Vec<_>) = answers.into_iter().partition(of_views);
        let sessions: Vec<&[KnownAnswer]> = match engine {
            Engine::Spark if is_small => vec![&alike[..], &apart[..]],
            _ => alike.chunks(1).chain(apart.chunks(1)).collect(),
        };
        for answers in sessions {
            is_right &= ask(&bc, &installed, &manifests, answers)?;
        }
    }
    if has_cluster && let Some(spark) = Installed::find(Engine::Spark)? {
        is_right &= cluster::check(&bc, &spark, &dir)?;
    }
    Ok(match is_right {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Returns a fleet with names and sizes of a real tree, over and over.
fn large(manifest: &Path, files: u64) -> Result<Fleet> {
    let text = std::fs::read_to_string(manifest).with_context(|| manifest.display().to_string())?;
    let lines = text.lines().map(serde_json::from_str::<Value>);
    let mut shapes = Vec::new();
    for line in lines {
        let line = line.with_context(|| manifest.display().to_string())?;
        if let (Some("file"), Some(path)) = (line["kind"].as_str(), line["path"].as_str()) {
            shapes.push((path.to_owned(), line["size"].as_u64().unwrap_or(0)));
        }
    }
    if shapes.is_empty() {
        bail!("{}: no files", manifest.display());
    }
    Ok(Fleet {
        machines: MACHINES,
        sharing: SHARING,
        files,
        shapes,
    })
}

fn make(fleet: &Fleet, dir: &Path) -> Result<()> {
    if dir.exists() {
        std::fs::remove_dir_all(dir).with_context(|| dir.display().to_string())?;
    }
    std::fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
    let sha256 = |bytes: &[u8]| {
        let mut hasher = Hasher::new(Algorithm::Sha256);
        hasher.update(bytes);
        hasher.finalize().to_string()
    };
    fleet
        .write(dir, &sha256)
        .with_context(|| dir.display().to_string())
}

/// Checks that bc accepts the files as manifests.
fn check(bc: &Path, dir: &Path) -> Result<()> {
    let begun = Instant::now();
    let files = std::fs::read_dir(dir)?.map(|file| Ok(file?.path()));
    let files: Vec<PathBuf> = files.collect::<Result<_>>()?;
    let mut command = Command::new(bc);
    sh::run(command.args(["integrity", "merge", "--check"]).args(&files))?;
    let seconds = begun.elapsed().as_secs_f64();
    println!("{} manifests checked in {seconds:.1} s", files.len());
    Ok(())
}

/// Asks the questions, which have the same views, in one session; prints the time and memory that
/// it took. Returns true if all answers are as known.
fn ask(bc: &Path, engine: &Installed, dir: &Path, answers: &[KnownAnswer]) -> Result<bool> {
    let mut session = String::new();
    for answer in answers {
        let sql = answer.summing(&sql(bc, engine, dir, answer)?);
        match session.is_empty() {
            true => session = sql,
            false => session.push_str(&sql[views_of(&sql)..]),
        }
    }
    let asked = engine.ask(&session)?;
    println!(
        "{}\t{:.2} s\t{:.0} MiB",
        engine.name(),
        asked.seconds,
        asked.peak as f64 / f64::from(1 << 20),
    );
    let mut is_right = asked.lines.len() == answers.len();
    for (nth, answer) in answers.iter().enumerate() {
        let line = asked.lines.get(nth).cloned();
        let is_known = answer.is(line.as_slice());
        let verdict = if is_known { "as known" } else { "WRONG" };
        println!("\t{}\t{}\t{verdict}", answer.query, answer.params.join(" "));
        if !is_known {
            println!("  expected {answer:?}\n  found {:?}", asked.lines);
        }
        is_right &= is_known;
    }
    Ok(is_right)
}

/// Returns the offset where the question begins, after all the views.
fn views_of(sql: &str) -> usize {
    sql.trim_end()
        .trim_end_matches(';')
        .rfind(";\n")
        .map_or(0, |at| at + 2)
}

/// Returns the SQL that bc prints for a question.
fn sql(bc: &Path, engine: &Installed, dir: &Path, answer: &KnownAnswer) -> Result<String> {
    let mut command = Command::new(bc);
    command.args(["integrity", "sql", "--engine", engine.name(), "--query"]);
    command.arg(answer.query);
    for param in &answer.params {
        command.arg("--param").arg(param);
    }
    let sql = sh::stdout(command.arg(dir.join("*.jsonl")))?;
    Ok(String::from_utf8(sql)?)
}
