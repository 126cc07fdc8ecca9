//! `cargo xtask bench scale`: time and memory of every job over trees of very many files, to see that
//! both grow with the files and no faster.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use wait4::Wait4;

use super::forest::{Forest, Layout};
use super::{machine, scale_jobs};
use crate::args::Args;
use crate::sh;

const COUNTS: &str = "100000,1000000";

/// Files of the tree whose peak memory counts as the program's own.
const BASE: u64 = 100;

pub(crate) fn run(mut args: Args) -> Result<ExitCode> {
    let dir = args.option("--dir")?.unwrap_or_else(|| "/dev/shm".into());
    let counts = args.option("--files")?.unwrap_or_else(|| COUNTS.into());
    let layout: Layout = args.option("--layout")?.unwrap_or_default().parse()?;
    let only = args.option("--only")?.unwrap_or_default();
    let record = args.option("--record")?;
    let bc = match args.option("--bc")? {
        Some(file) => PathBuf::from(file),
        None => sh::release_binary("bit-crafts", "bc")?,
    };
    args.done()?;
    let dir = Path::new(&dir).join(format!("bc-scale-{}", std::process::id()));
    let mut scale = Scale {
        bc,
        layout,
        only,
        base: Vec::new(),
        table: String::new(),
    };
    let mut numbers = vec![BASE];
    for count in counts.split(',') {
        numbers.push(count.parse().with_context(|| format!("--files: {count}"))?);
    }
    for count in numbers {
        let measured = scale.measure(&dir, count);
        let removed = bc_testkit::remove_tree(&dir).with_context(|| dir.display().to_string());
        measured.and(removed)?;
    }
    print!("{HEAD}{}", scale.table);
    if let Some(file) = record {
        let text = format!("{}{HEAD}{}", facts(layout), scale.table);
        std::fs::write(&file, text).with_context(|| file.clone())?;
    }
    Ok(ExitCode::SUCCESS)
}

const HEAD: &str = "| files | job | s | CPU s | CPU, µs a file | peak, MB | B a file beyond the base |\n\
                    |--:|---|--:|--:|--:|--:|--:|\n";

fn facts(layout: Layout) -> String {
    format!(
        "# {} on {}: very many files, {layout}\n\nCommit {}, load {}.\n\n",
        machine::date(),
        machine::cpu(),
        machine::commit(),
        machine::load()
    )
}

/// State of a run: settings, and the results so far.
struct Scale {
    bc: PathBuf,
    layout: Layout,
    /// Jobs without this in their names are left out.
    only: String,
    /// Peak memory in bytes of each job over a tree of [`BASE`] files.
    base: Vec<(&'static str, u64)>,
    table: String,
}

impl Scale {
    fn measure(&mut self, dir: &Path, count: u64) -> Result<()> {
        let forest = Forest::new(dir.join("tree"), self.layout, count);
        if count > BASE {
            eprintln!("xtask: making {count} files");
        }
        forest
            .build()
            .with_context(|| forest.root().display().to_string())?;
        for job in scale_jobs::JOBS {
            if !job.name.contains(&self.only) && !job.is_needed {
                continue;
            }
            if self.layout == Layout::Deep && job.needs_paths {
                continue;
            }
            (job.before)(&forest)?;
            let mut command = Command::new(&self.bc);
            command.stdout(Stdio::null());
            for word in job.arguments.split(' ') {
                let path = |name: &str| dir.join(name).display().to_string();
                let word = word
                    .replace("TREE", &path("tree"))
                    .replace("OLD", &path("old.jsonl"))
                    .replace("NEW", &path("new.jsonl"));
                command.arg(word);
            }
            let begun = Instant::now();
            let used = command.spawn().context("bc")?.wait4().context("bc")?;
            let wall = begun.elapsed();
            if used.status.code() != Some(job.code) {
                bail!("{}: ended with {}", job.name, used.status);
            }
            let peak = used.rusage.maxrss;
            if count == BASE {
                self.base.push((job.name, peak));
                continue;
            }
            let base = self.base.iter().find(|b| b.0 == job.name);
            let more = peak.saturating_sub(base.map_or(0, |b| b.1));
            let cpu = used.rusage.utime + used.rusage.stime;
            writeln!(
                self.table,
                "| {count} | {} | {:.2} | {:.2} | {:.2} | {:.0} | {:.0} |",
                job.name,
                wall.as_secs_f64(),
                cpu.as_secs_f64(),
                cpu.as_secs_f64() * 1e6 / count as f64,
                peak as f64 / 1e6,
                more as f64 / count as f64,
            )?;
            eprintln!(
                "xtask: {count} files, {}: {wall:.1?}, {:.0} MB",
                job.name,
                peak as f64 / 1e6
            );
        }
        Ok(())
    }
}
