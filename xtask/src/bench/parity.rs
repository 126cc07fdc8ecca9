//! `cargo xtask bench parity`: protecting trees, protecting them again, and repairing them, beside
//! `par2` and the floor, in turns; and the memory that it takes under a small budget.
//!
//! The floor of protecting is the sum of a manifest, the digests of all blocks, and the code's work
//! on as many blocks, each by itself on all processors. Each peer is run once where it takes
//! [`HOPELESS`] times as long.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use reed_solomon_simd::engine::DefaultEngine;
use reed_solomon_simd::rate::{HighRateEncoder, RateEncoder};
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

/// Blocks of a volume, and parity blocks for them.
const VOLUME: usize = 4096;
const PARITY: usize = VOLUME / 20 + 1;

/// Bytes of a block that the code works on at a time: more leave the cache.
const COLUMNS: usize = 4096;

/// Programs to compare with, by the names of their commands, and the bytes above which they are not
/// run, as that takes an hour.
const PEERS: &[(&str, usize)] = &[("par2", 2 << 30), ("par2-turbo", 8 << 30)];

/// Greatest number of blocks that they take. Where there are more, theirs are larger.
const PEERS_BLOCKS: usize = 32_768;

/// A peer that took so many times as long as ours in the first pair is not run again.
const HOPELESS: f64 = 4.0;

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
        peers: PEERS
            .iter()
            .filter_map(|(name, most)| Some((*name, *most, sh::find_tool(&[name])?)))
            .collect(),
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
    println!("| tree | job | bc, s | peak, MB | beside | s | |\n|---|---|--:|--:|---|--:|--:|");
    let measured = bench.all(&only, source.as_deref());
    let removed = bc_testkit::remove_tree(&dir).with_context(|| dir.display().to_string());
    measured.and(removed)?;
    Ok(ExitCode::SUCCESS)
}

/// A bench of parity.
struct ParityBench {
    bc: PathBuf,
    peers: Vec<(&'static str, usize, PathBuf)>,
    dir: PathBuf,
    runs: u64,
}

/// Seconds and peak memory in bytes of a run.
type Spent = (f64, u64);

/// Another way to do a job, by its name.
type Peer<'a> = (&'a str, Box<dyn Fn() -> Result<Spent> + 'a>);

impl ParityBench {
    fn all(&self, only: &str, source: Option<&Path>) -> Result<()> {
        for (name, count, size) in TREES {
            if name.contains(only) {
                self.make(*count, *size)?;
                self.tree(name, Some(count * size))?;
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
            self.tree("source tree", None)?;
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
            let mut file = File::create(self.at("tree").join(format!("{number:04}")))?;
            // In pieces: what this program has used at most counts for those that it starts.
            let mut left = size;
            while left > 0 {
                let mut next = || {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    state.to_le_bytes()
                };
                let piece: Vec<u8> = (0..left.min(MIB) / 8).flat_map(|_| next()).collect();
                file.write_all(&piece)?;
                left -= piece.len();
            }
        }
        Ok(())
    }

    /// Measures all jobs of the tree that lies there, of so many bytes if others can do them, too.
    fn tree(&self, name: &str, peers_bytes: Option<usize>) -> Result<()> {
        let is_run = |most: usize| peers_bytes.is_some_and(|bytes| bytes <= most);
        let peers = self.peers.iter().filter(|(_, most, _)| is_run(*most));
        let peers: Vec<(&str, &Path)> = peers.map(|(name, _, par2)| (*name, &**par2)).collect();
        let mut block = BLOCK as usize;
        while peers_bytes.unwrap_or(0).div_ceil(block) > PEERS_BLOCKS {
            block *= 2;
        }
        let files = self.files()?;
        let all = all_files(&self.at("tree"))?;
        self.ours("integrity manifest --algorithm=blake3 --output=LIST TREE")?;
        let create = |par2: &Path| {
            let _ = bc_testkit::remove_tree(&self.at("par2"));
            std::fs::create_dir_all(self.at("par2"))?;
            let mut command = Command::new(par2);
            command.args(["create", "-q", "-q", "-r5", &format!("-s{block}"), "-B"]);
            command.arg(self.at("tree")).arg(self.at("par2/set"));
            self.timed(command.args(&files))
        };
        let floor = || -> Result<Spent> {
            let manifest =
                self.ours("integrity manifest --algorithm=blake3 --output=OTHER TREE")?;
            let blocks = block_digests(&all)?;
            Ok((manifest.0 + blocks.seconds + code(blocks.count)?, 0))
        };
        let create = &create;
        let mut others: Vec<Peer<'_>> = peers
            .iter()
            .map(|(name, par2)| -> Peer<'_> { (*name, Box::new(move || create(par2))) })
            .collect();
        others.push(("floor", Box::new(floor)));
        self.job(name, "protect", &others, |_| {
            let _ = bc_testkit::remove_tree(&self.at("list.parity"));
            self.ours("integrity protect TREE LIST")
        })?;
        self.job(name, "protect, --memory-budget=64M", &[], |_| {
            let _ = bc_testkit::remove_tree(&self.at("list.parity"));
            self.ours("integrity protect --memory-budget=64M TREE LIST")
        })?;
        self.job(name, "protect again, nothing edited", &[], |_| {
            self.ours("integrity protect TREE LIST")
        })?;
        let before = written(&self.at("list.parity"))?;
        let edited = (files.len() / 1000).max(1);
        let mut bytes = 0;
        for file in files.iter().take(edited) {
            let open = File::options().read(true).write(true).open(file)?;
            let len = open.metadata()?.len();
            let mut byte = [0];
            if len > 0 && open.read_at(&mut byte, len - 1)? == 1 {
                open.write_all_at(&[!byte[0]], len - 1)?;
            }
            bytes += len;
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
        if peers_bytes.is_some() {
            let repair = |par2: &Path| {
                files.iter().try_for_each(damage)?;
                let mut command = Command::new(par2);
                command
                    .args(["repair", "-q", "-q", "-B"])
                    .arg(self.at("tree"));
                self.timed(command.arg(self.at("par2/set.par2")))
            };
            // The files that were edited are not those of the set.
            if let Some((_, par2)) = peers.last() {
                create(par2)?;
            }
            let repair = &repair;
            let repairs: Vec<Peer<'_>> = peers
                .iter()
                .map(|(name, par2)| -> Peer<'_> { (*name, Box::new(move || repair(par2))) })
                .collect();
            for budget in ["", "--memory-budget=64M "] {
                let job = format!("restore of 1 % of the blocks {budget}");
                let line = format!("integrity restore --discard-damaged {budget}TREE LIST");
                self.job(name, job.trim(), &repairs, |_| {
                    // What others have repaired is written now, and would be taken for an edit.
                    self.ours("integrity update TREE LIST")?;
                    files.iter().try_for_each(damage)?;
                    self.ours(&line)
                })?;
            }
        }
        Ok(())
    }

    /// Measures a job in turns with others.
    fn job(
        &self,
        tree: &str,
        job: &str,
        others: &[Peer<'_>],
        ours: impl Fn(u64) -> Result<Spent>,
    ) -> Result<()> {
        let (mut own, mut peak) = (Vec::new(), 0);
        let mut theirs = vec![Vec::new(); others.len()];
        for run in 0..self.runs {
            let (seconds, memory) = ours(run)?;
            own.push(seconds);
            peak = peak.max(memory);
            for ((_, other), times) in others.iter().zip(&mut theirs) {
                if times.iter().all(|time| *time < HOPELESS * seconds) {
                    times.push(other()?.0);
                }
            }
        }
        let spent = (median(own.iter().copied()), peak);
        if others.is_empty() {
            self.row(tree, job, spent, None);
        }
        for ((name, _), times) in others.iter().zip(&theirs) {
            self.row(
                tree,
                job,
                spent,
                Some((name, median(times.iter().copied()))),
            );
        }
        Ok(())
    }

    fn row(&self, tree: &str, job: &str, (seconds, peak): Spent, other: Option<(&str, f64)>) {
        let (name, theirs, times) = other.map_or_else(Default::default, |(name, other)| {
            let times = format!("{:.2}×", other / seconds);
            (name, format!("{other:.2}"), times)
        });
        let peak = peak as f64 / 1e6;
        println!("| {tree} | {job} | {seconds:.3} | {peak:.0} | {name} | {theirs} | {times} |");
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
            let word = word.replace("OTHER", &path("other.jsonl"));
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

/// Returns the regular files of a tree.
fn all_files(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            files.append(&mut all_files(&entry.path())?);
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
    Ok(files)
}

struct BlockDigests {
    seconds: f64,
    count: usize,
}

/// Reads the files, and takes a BLAKE3 of each of their blocks, on all processors.
fn block_digests(files: &[PathBuf]) -> Result<BlockDigests> {
    let (next, bytes) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let begun = Instant::now();
    let read = bc_pool::run(processors(), |_| -> Result<()> {
        let mut block = vec![0; BLOCK as usize];
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let open = File::open(file).with_context(|| file.display().to_string())?;
            let mut at = 0;
            loop {
                let read = open.read_at(&mut block, at as u64)?;
                if read == 0 {
                    break;
                }
                std::hint::black_box(blake3::hash(&block[..read]));
                at += read;
            }
            bytes.fetch_add(at, Ordering::Relaxed);
        }
        Ok(())
    })?;
    read.into_iter().collect::<Result<()>>()?;
    Ok(BlockDigests {
        seconds: begun.elapsed().as_secs_f64(),
        count: bytes.into_inner().div_ceil(BLOCK as usize),
    })
}

/// Encodes so many blocks in memory, on all processors; returns the seconds that it took.
fn code(blocks: usize) -> Result<f64> {
    let slices = BLOCK as usize / COLUMNS;
    let tasks = blocks.div_ceil(VOLUME) * slices;
    let shards: Vec<u8> = (0..VOLUME * COLUMNS)
        .map(|at| ((at * at) >> 7) as u8)
        .collect();
    let next = AtomicUsize::new(0);
    let begun = Instant::now();
    let coded = bc_pool::run(processors(), |_| -> Result<()> {
        loop {
            let task = next.fetch_add(1, Ordering::Relaxed);
            if task >= tasks {
                return Ok(());
            }
            let data = VOLUME.min(blocks - task / slices * VOLUME);
            let parity = PARITY.min(data.div_ceil(20).max(2)).min(data);
            let engine = DefaultEngine::new();
            let mut encoder = HighRateEncoder::new(data, parity, COLUMNS, engine, None)?;
            for shard in shards.chunks_exact(COLUMNS).take(data) {
                encoder.add_original_shard(shard)?;
            }
            std::hint::black_box(encoder.encode()?.recovery(0));
        }
    })?;
    coded.into_iter().collect::<Result<()>>()?;
    Ok(begun.elapsed().as_secs_f64())
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the bytes of the files in a directory.
fn written(dir: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)? {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes)
}
