//! What this machine's speed is, measured once and kept: `bc calibrate`, and
//! the file that the dispatch decision reads.

use std::ffi::OsString;
use std::hint::black_box;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bc_digest::Algorithm;
use bc_fs::atomic::AtomicFile;
use bc_pool::dispatch::{Calibration, Machine};
use clap::Parser;

use crate::exit::Exit;
use crate::report;

/// Below this many files the built-in figures decide: looking anything up
/// would cost more than the decision is worth.
const WORTH_LOADING: usize = 64;
/// From this many files on, a run is long enough to spend the tens of
/// milliseconds of a measurement that was never made on this machine.
const WORTH_MEASURING: usize = 20_000;

/// Measure this machine again and print the figures
#[derive(Parser)]
#[command(
    name = "calibrate",
    bin_name = "bc calibrate",
    max_term_width = 100,
    after_help = "The figures are kept in $XDG_CACHE_HOME/bc/throughput.txt and only decide how many threads\n\
                  start; results never depend on them.\n\nExample:\n  bc calibrate"
)]
struct Args {}

/// The command tree of `calibrate`.
pub fn command() -> clap::Command {
    <Args as clap::CommandFactory>::command()
}

/// Runs it; `argv[0]` is `calibrate`.
pub fn run(argv: &[OsString]) -> Exit {
    if let Err(error) = Args::try_parse_from(argv) {
        return crate::config::usage(error);
    }
    let machine = Machine::detect();
    let calibration = measure();
    let printed = report::print(&calibration.format(&machine));
    let Some(path) = path() else {
        return printed;
    };
    match save(&calibration, &path, &machine) {
        Ok(()) => printed,
        Err(error) => report::fatal("bc calibrate", &error),
    }
}

/// The figures for a job of `files` files: built-in, kept or fresh ones.
pub fn for_job(files: usize) -> Calibration {
    if files < WORTH_LOADING {
        return Calibration::default();
    }
    let Some(path) = path() else {
        return Calibration::default();
    };
    let machine = Machine::detect();
    if let Some(calibration) = Calibration::load(&path, &machine) {
        return calibration;
    }
    if files < WORTH_MEASURING {
        return Calibration::default();
    }
    let calibration = measure();
    // A cache that cannot be written is no failure: the next run measures again.
    let _ = save(&calibration, &path, &machine);
    calibration
}

/// A reader sees the old file or the new one, never a part.
fn save(calibration: &Calibration, path: &Path, machine: &Machine) -> Result<(), String> {
    if let Some(directory) = path.parent() {
        let shown = bc_fs::escape(directory.as_os_str().as_encoded_bytes());
        std::fs::create_dir_all(directory).map_err(|error| format!("{shown}: mkdir: {error}"))?;
    }
    let shown = bc_fs::escape(path.as_os_str().as_encoded_bytes());
    let file = AtomicFile::create(path).map_err(|error| format!("{shown}: create: {error}"))?;
    file.file()
        .write_all(calibration.format(machine).as_bytes())
        .map_err(|error| format!("{shown}: write: {error}"))?;
    file.commit()
        .map_err(|not| format!("{shown}: {}: {}", not.operation, not.error))
}

fn path() -> Option<PathBuf> {
    Some(crate::config::cache_dir()?.join("throughput.txt"))
}

/// Measures everything in well under 50 ms.
fn measure() -> Calibration {
    let mut calibration = Calibration {
        thread_start: thread_start(),
        memory_bandwidth: memory_bandwidth(),
        ..Calibration::default()
    };
    if let Some(seconds) = per_file() {
        calibration.per_file = seconds;
    }
    for algorithm in Algorithm::ALL {
        calibration
            .throughput
            .insert(algorithm.name().to_owned(), throughput(*algorithm));
    }
    calibration
}

/// Seconds to start and join one thread, the first time as a short run has it:
/// the slowest of a few, since only the first is cold.
fn thread_start() -> f64 {
    let one = |_| {
        let begun = Instant::now();
        let _ = std::thread::Builder::new()
            .spawn(|| ())
            .map(std::thread::JoinHandle::join);
        begun.elapsed().as_secs_f64()
    };
    (0..4).map(one).fold(0.0, f64::max)
}

/// Bytes per second that one thread copies.
fn memory_bandwidth() -> f64 {
    let from = vec![1_u8; 4 << 20];
    let mut to = vec![0_u8; 4 << 20];
    let seconds = best_of(4, || to.copy_from_slice(black_box(&from)));
    black_box(&to);
    from.len() as f64 / seconds
}

/// Seconds to open, stat, read and close a small file that is cached.
fn per_file() -> Option<f64> {
    let path = std::env::current_exe().ok()?;
    let mut buffer = [0; 4096];
    let mut once = || {
        use std::io::Read;
        let mut file = std::fs::File::open(&path).ok()?;
        file.metadata().ok()?;
        file.read(&mut buffer).ok()
    };
    once()?;
    let rounds = 200;
    let begun = Instant::now();
    for _ in 0..rounds {
        once()?;
    }
    Some(begun.elapsed().as_secs_f64() / f64::from(rounds))
}

/// Bytes per second of one thread over many messages, as trees are hashed.
fn throughput(algorithm: Algorithm) -> f64 {
    let data = vec![0x5a_u8; 4096];
    let messages = [data.as_slice(); 64];
    let seconds = best_of(2, || {
        black_box(bc_digest::hash_many(algorithm, &messages));
    });
    (64 * data.len()) as f64 / seconds
}

fn best_of(times: usize, mut work: impl FnMut()) -> f64 {
    let one = |_| {
        let begun = Instant::now();
        work();
        begun.elapsed()
    };
    (0..times)
        .map(one)
        .min()
        .unwrap_or(Duration::ZERO)
        .as_secs_f64()
        .max(1e-9)
}
