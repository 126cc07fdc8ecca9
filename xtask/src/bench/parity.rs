//! `cargo xtask bench parity`: protecting trees, protecting them again, and repairing them, beside
//! `par2`, in alternating pairs; and the memory that it takes under a small budget.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use wait4::Wait4;

use super::machine;
use crate::args::Args;
use crate::median::median;
use crate::sh;

/// Pairs of runs of each row.
const RUNS: u64 = 5;

const MIB: usize = 1 << 20;

/// Trees that are made: their names, numbers of files, and bytes of each.
const TREES: &[(&str, usize, usize)] = &[
    ("20 × 50 MB", 20, 50 * MIB),
    ("20 × 200 MB", 20, 200 * MIB),
    ("1,000 × 5 MB", 1000, 5 * MIB),
];

/// Bytes of a block, of ours and, as it is asked, of par2's.
const BLOCK: u64 = 65_536;

pub(crate) fn run(mut args: Args) -> Result<ExitCode> {
    let dir = args.option("--dir")?.unwrap_or_else(|| "/dev/shm".into());
    let only = args.option("--only")?.unwrap_or_default();
    let source = args.option("--tree")?.map(PathBuf::from);
    let runs = args.number("--runs", RUNS)?.max(1);
    let bc = match args.option("--bc")? {
        Some(file) => PathBuf::from(file),
        None => sh::release_binary("bit-crafts", "bc")?,
    };
    args.done()?;
    let dir = Path::new(&dir).join(format!("bc-parity-{}", std::process::id()));
    std::fs::create_dir_all(&dir).with_context(|| dir.display().to_string())?;
    let bench = ParityBench {
        bc,
        par2: sh::find_tool(&["par2"]),
        dir: dir.clone(),
        runs,
    };
    println!(
        "# {} on {}: parity of 5 %\n\nCommit {}, load {}. Medians of {runs} pairs.\n",
        machine::date(),
        machine::cpu(),
        machine::commit(),
        machine::load()
    );
    println!("| tree | job | bc, s | peak, MB | par2, s | |\n|---|---|--:|--:|--:|--:|");
    let measured = bench.all(&only, source.as_deref());
    let removed = bc_testkit::remove_tree(&dir).with_context(|| dir.display().to_string());
    measured.and(removed)?;
    Ok(ExitCode::SUCCESS)
}

/// A bench of parity.
struct ParityBench {
    bc: PathBuf,
    par2: Option<PathBuf>,
    dir: PathBuf,
    runs: u64,
}

/// Seconds and peak memory in bytes of a run.
type Spent = (f64, u64);

impl ParityBench {
    fn all(&self, only: &str, source: Option<&Path>) -> Result<()> {
        for (name, count, size) in TREES {
            if name.contains(only) {
                self.make(*count, *size)?;
                self.tree(name, true)?;
            }
        }
        let usual = sh::dataset("linux");
        let source = source.unwrap_or(&usual);
        if "source tree".contains(only) && source.is_dir() {
            self.clear()?;
            sh::stdout(
                Command::new("cp")
                    .arg("-a")
                    .arg(source)
                    .arg(self.at("tree")),
            )?;
            // It has more files than par2 takes.
            self.tree("source tree", false)?;
        }
        Ok(())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    fn clear(&self) -> Result<()> {
        bc_testkit::remove_tree(&self.dir).with_context(|| self.dir.display().to_string())?;
        std::fs::create_dir_all(&self.dir)?;
        Ok(())
    }

    fn make(&self, count: usize, size: usize) -> Result<()> {
        self.clear()?;
        std::fs::create_dir_all(self.at("tree"))?;
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for number in 0..count {
            let mut next = || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state.to_le_bytes()
            };
            let content: Vec<u8> = (0..size / 8).flat_map(|_| next()).collect();
            std::fs::write(self.at("tree").join(format!("{number:04}")), content)?;
        }
        Ok(())
    }

    /// Measures all jobs of the tree that lies there.
    fn tree(&self, name: &str, has_peer: bool) -> Result<()> {
        let par2 = self.par2.as_deref().filter(|_| has_peer);
        let files = self.files()?;
        self.ours("integrity manifest --algorithm=blake3 --output=LIST TREE")?;
        self.job(name, "manifest", no_peer(), |_| {
            self.ours("integrity manifest --algorithm=blake3 --output=LIST TREE")
        })?;
        let create = |par2: &Path| {
            let _ = bc_testkit::remove_tree(&self.at("par2"));
            std::fs::create_dir_all(self.at("par2"))?;
            let mut command = Command::new(par2);
            command.args(["create", "-q", "-q", "-r5", "-s65536", "-B"]);
            command.arg(self.at("tree")).arg(self.at("par2/set"));
            self.timed(command.args(&files))
        };
        self.job(
            name,
            "protect",
            par2.map(|par2| move || create(par2)),
            |_| {
                let _ = bc_testkit::remove_tree(&self.at("list.parity"));
                self.ours("integrity protect TREE LIST")
            },
        )?;
        self.job(name, "protect, --memory-budget=64M", no_peer(), |_| {
            let _ = bc_testkit::remove_tree(&self.at("list.parity"));
            self.ours("integrity protect --memory-budget=64M TREE LIST")
        })?;
        self.job(name, "protect again, nothing edited", no_peer(), |_| {
            self.ours("integrity protect TREE LIST")
        })?;
        let before = written(&self.at("list.parity"))?;
        let edited = (files.len() / 1000).max(1);
        let mut bytes = 0;
        for file in files.iter().take(edited) {
            let mut content = std::fs::read(file)?;
            if let Some(byte) = content.last_mut() {
                *byte ^= 1;
            }
            bytes += content.len();
            std::fs::write(file, content)?;
        }
        self.ours("integrity update TREE LIST")?;
        let spent = self.ours("integrity protect TREE LIST")?;
        let more = written(&self.at("list.parity"))?.saturating_sub(before);
        self.row(name, "protect again, 1 in 1,000 edited", spent, None);
        println!("| | | | | | {bytes} bytes edited, {more} more of parity |");
        // Damage in one block of a hundred, spread evenly.
        let damage = |file: &PathBuf| -> Result<()> {
            let open = File::options().read(true).write(true).open(file)?;
            let meta = open.metadata()?;
            let mut at = 0;
            while at < meta.len() {
                open.write_all_at(&[0x55; 16], at)?;
                at += 100 * BLOCK;
            }
            Ok(open.set_modified(meta.modified()?)?)
        };
        if has_peer {
            let repair = |par2: &Path| {
                let mut command = Command::new(par2);
                command
                    .args(["repair", "-q", "-q", "-B"])
                    .arg(self.at("tree"));
                self.timed(command.arg(self.at("par2/set.par2")))
            };
            // The files that were edited are not those of the set.
            if let Some(par2) = par2 {
                create(par2)?;
            }
            let repaired = par2.map(|par2| {
                let files = &files;
                move || {
                    files.iter().try_for_each(damage)?;
                    repair(par2)
                }
            });
            for budget in ["", "--memory-budget=64M "] {
                let job = format!("restore of 1 % of the blocks {budget}");
                let line = format!("integrity restore --discard-damaged {budget}TREE LIST");
                self.job(name, job.trim(), repaired.as_ref(), |_| {
                    files.iter().try_for_each(damage)?;
                    self.ours(&line)
                })?;
            }
        }
        Ok(())
    }

    /// Measures a job in pairs.
    fn job<P: Fn() -> Result<Spent>>(
        &self,
        tree: &str,
        job: &str,
        peer: Option<P>,
        ours: impl Fn(u64) -> Result<Spent>,
    ) -> Result<()> {
        let (mut own, mut theirs) = (Vec::new(), Vec::new());
        let mut peak = 0;
        for run in 0..self.runs {
            let (seconds, memory) = ours(run)?;
            own.push(seconds);
            peak = peak.max(memory);
            if let Some(peer) = &peer {
                theirs.push(peer()?.0);
            }
        }
        let theirs = (!theirs.is_empty()).then(|| median(theirs.iter().copied()));
        self.row(tree, job, (median(own.iter().copied()), peak), theirs);
        Ok(())
    }

    fn row(&self, tree: &str, job: &str, (seconds, peak): Spent, peer: Option<f64>) {
        let (theirs, times) = peer.map_or_else(Default::default, |peer| {
            (format!("{peer:.2}"), format!("{:.1}×", peer / seconds))
        });
        let peak = peak as f64 / 1e6;
        println!("| {tree} | {job} | {seconds:.3} | {peak:.0} | {theirs} | {times} |");
    }

    fn files(&self) -> Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(self.at("tree"))? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                files.push(entry.path());
            }
        }
        files.sort();
        Ok(files)
    }

    fn ours(&self, line: &str) -> Result<Spent> {
        let mut command = Command::new(&self.bc);
        for word in line.split(' ') {
            let path = |name: &str| self.at(name).display().to_string();
            let word = word.replace("TREE", &path("tree"));
            command.arg(word.replace("LIST", &path("list.jsonl")));
        }
        self.timed(&mut command)
    }

    fn timed(&self, command: &mut Command) -> Result<Spent> {
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let begun = Instant::now();
        let used = command.spawn().context("spawn")?.wait4().context("wait")?;
        let wall = begun.elapsed().as_secs_f64();
        if !used.status.success() {
            bail!("{command:?}: ended with {}", used.status);
        }
        Ok((wall, used.rusage.maxrss))
    }
}

fn no_peer() -> Option<fn() -> Result<Spent>> {
    None
}

/// Returns the bytes of the files in a directory.
fn written(dir: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)? {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes)
}
