//! `cargo xtask entries`: time and memory of `bc integrity` over trees of very many entries, to see
//! that both grow with the entries and no faster.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use wait4::Wait4;

use crate::args::Args;
use crate::sh;

const COUNTS: &str = "500000,1000000,5000000";

/// Files in a directory, and directories in one of the upper level.
const FAN_OUT: u64 = 1000;

/// Every so many files there is one with content: on tmpfs each of those costs a page.
const FILLED: u64 = 100;

/// A command and what it should end with.
struct Job {
    name: &'static str,
    arguments: &'static str,
    code: i32,
    before: fn(&Path, u64) -> Result<()>,
}

const JOBS: &[Job] = &[
    Job {
        name: "manifest",
        arguments: "manifest --algorithm=xxh128 --output=OLD TREE",
        code: 0,
        before: |_, _| Ok(()),
    },
    Job {
        name: "verify --mode=meta",
        arguments: "verify --mode=meta TREE OLD",
        code: 0,
        before: |_, _| Ok(()),
    },
    Job {
        name: "verify",
        arguments: "verify TREE OLD",
        code: 0,
        before: |_, _| Ok(()),
    },
    Job {
        name: "diff, nothing differs",
        arguments: "diff OLD OLD",
        code: 0,
        before: |_, _| Ok(()),
    },
    Job {
        name: "update, nothing differs",
        arguments: "update TREE OLD",
        code: 0,
        before: |_, _| Ok(()),
    },
    Job {
        name: "update, a file in 1,000 edited",
        arguments: "update --quiet TREE OLD",
        code: 0,
        before: edit,
    },
    Job {
        name: "update --reread=5%",
        arguments: "update --quiet --reread=5% TREE OLD",
        code: 0,
        before: |_, _| Ok(()),
    },
    Job {
        name: "manifest of the tree under another name",
        arguments: "manifest --algorithm=xxh128 --output=NEW TREE",
        code: 0,
        before: rename,
    },
    Job {
        name: "diff, every path differs",
        arguments: "diff --quiet --output=/dev/null OLD NEW",
        code: 1,
        before: |_, _| Ok(()),
    },
];

pub(crate) fn run(mut args: Args) -> Result<ExitCode> {
    let dir = args.option("--dir")?.unwrap_or_else(|| "/dev/shm".into());
    let counts = args.option("--counts")?.unwrap_or_else(|| COUNTS.into());
    let bc = match args.option("--bc")? {
        Some(file) => PathBuf::from(file),
        None => sh::release_binary("bit-crafts", "bc")?,
    };
    args.done()?;
    let dir = Path::new(&dir).join(format!("bc-entries-{}", std::process::id()));
    let mut table =
        String::from("| entries | command | s | CPU s | CPU, µs an entry | peak, MB |\n");
    table.push_str("|---|---|---|---|---|---|\n");
    for count in counts.split(',') {
        let count = count
            .parse()
            .with_context(|| format!("--counts: {count}"))?;
        let measured = measure(&dir, count, &bc, &mut table);
        let removed = bc_testkit::remove_tree(&dir).with_context(|| dir.display().to_string());
        measured.and(removed)?;
    }
    print!("{table}");
    Ok(ExitCode::SUCCESS)
}

fn measure(dir: &Path, count: u64, bc: &Path, table: &mut String) -> Result<()> {
    let tree = dir.join("tree");
    build(&tree, count).with_context(|| tree.display().to_string())?;
    for job in JOBS {
        (job.before)(&tree, count)?;
        let mut command = Command::new(bc);
        command.arg("integrity").stdout(Stdio::null());
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
        let cpu = used.rusage.utime + used.rusage.stime;
        writeln!(
            table,
            "| {count} | {} | {:.2} | {:.2} | {:.2} | {:.0} |",
            job.name,
            wall.as_secs_f64(),
            cpu.as_secs_f64(),
            cpu.as_secs_f64() * 1e6 / count as f64,
            used.rusage.maxrss as f64 / 1e6,
        )?;
        eprintln!("xtask: {count} entries, {}: {wall:.1?}", job.name);
    }
    Ok(())
}

/// The path of a file below the tree.
fn path(nth: u64) -> String {
    let dir = nth / FAN_OUT;
    format!("{:03}/{:03}/{nth:07}", dir / FAN_OUT, dir % FAN_OUT)
}

/// About `count` entries, directories among them.
fn build(tree: &Path, count: u64) -> Result<()> {
    fs::create_dir_all(tree)?;
    let system = rustix::fs::statvfs(tree)?;
    let free = system.f_favail;
    // Without a limit there is no count either.
    if system.f_files > 0 && free < count + count / FAN_OUT * 2 {
        bail!("{free} inodes are free; mount a tmpfs with nr_inodes=0 and name it with --dir");
    }
    eprintln!("xtask: making {count} entries");
    for nth in 0..count {
        let path = tree.join(path(nth));
        if nth % FAN_OUT == 0 {
            path.parent().map(fs::create_dir_all).transpose()?;
        }
        let filled = if nth % FILLED == 0 {
            nth.to_string()
        } else {
            String::new()
        };
        fs::write(path, filled)?;
    }
    Ok(())
}

/// Writes to one file in 1,000.
fn edit(tree: &Path, count: u64) -> Result<()> {
    for nth in (0..count).step_by(1000) {
        fs::write(tree.join(path(nth)), "edited")?;
    }
    Ok(())
}

/// Puts everything one level deeper.
fn rename(tree: &Path, _count: u64) -> Result<()> {
    let aside = tree.with_extension("aside");
    fs::rename(tree, &aside)?;
    fs::create_dir(tree)?;
    fs::rename(aside, tree.join("below"))?;
    Ok(())
}
