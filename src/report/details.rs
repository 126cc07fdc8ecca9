//! Notes of `-v` about a walk, and of `-vv` besides: decisions and their reasons, the type of each
//! file system, and each path that was left out. Nothing of it is computed unless it is shown.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bc_digest::CpuFeatures;
use bc_fs::mount::{Answer, CtimeTrust, Inodes, Traits, traits_or_unknown};
use bc_read::{Choice, ReadStats};
use bc_walk::{DirId, Listing, SkipReason, Skipped};
use rustix::fs::{CWD, Mode, OFlags, fstat, openat};

use crate::parse::args::Common;
use crate::parse::environment::{named, settings};
use crate::report::Report;
use crate::session::budget;

/// Verbosity from which on this is noted.
const DETAILS: u8 = 2;

/// Notes the settings, the processor and the reader before the work starts.
pub fn begun(report: &Report, common: &Common) {
    if !report.shows(DETAILS) {
        return;
    }
    let settings = sources(common.config.as_deref());
    let settings = match settings.is_empty() {
        true => "the command line alone".to_owned(),
        false => settings.join(", "),
    };
    report.info(format_args!("settings: {settings}"));
    report.info(format_args!(
        "processor: {} CPUs may be used; kernels for {}; --threads={}",
        bc_pool::available_cpus(),
        CpuFeatures::detect().describe(),
        common.threads
    ));
    let reader = match (common.io, bc_read::uring_available()) {
        (Choice::Auto, Ok(())) => {
            "plain calls for cached files, io_uring for all others".to_owned()
        }
        (Choice::Auto, Err(error)) => format!("plain calls: io_uring: {}", error.message()),
        (Choice::Sync, _) => "plain calls, as --io says".to_owned(),
        (Choice::Uring, _) => "io_uring wherever files can be read by it, as --io says".to_owned(),
    };
    report.info(format_args!("reader: {reader}"));
}

/// Returns the sources of settings besides the command line: the file, if one is read, and
/// variables.
fn sources(explicit: Option<&Path>) -> Vec<String> {
    let (usual, variables) = settings();
    let explicit = explicit.map(Path::to_path_buf);
    let file = explicit.or_else(|| named("BC_CONFIG")).or(usual);
    let names = variables.into_iter().map(|(name, _)| name);
    let names = names.filter(|name| name != "BC_CONFIG");
    let all = file.map(PathBuf::into_os_string).into_iter().chain(names);
    all.map(|name| bc_fs::escape(name.as_encoded_bytes()).into_owned())
        .collect()
}

/// Notes the time and memory that a run took.
pub fn ended(report: &Report, elapsed: Duration) {
    if !report.shows(DETAILS) {
        return;
    }
    let peak =
        budget::peak_memory().map_or_else(|| "unknown".to_owned(), crate::session::progress::size);
    let seconds = elapsed.as_secs_f64();
    report.info(format_args!(
        "in all: {seconds:.3} s, {peak} of memory at most"
    ));
}

/// Notes how many workers may read, and why not more.
pub fn workers(report: &Report, files: usize, workers: usize, why: &str) {
    let s = if workers == 1 { "" } else { "s" };
    report.detail(|| format!("threads: {files} files to read, at most {workers} thread{s}: {why}"));
}

/// Notes the calls and bytes that reading took.
pub fn read(report: &Report, stats: &ReadStats) {
    report.detail(|| {
        let mut text = format!(
            "reader: {} calls read {} bytes of {} files",
            stats.reads, stats.bytes, stats.files
        );
        if stats.queued > 0 {
            text += &format!("; {} opens and reads went through io_uring", stats.queued);
        }
        if let Some(refused) = &stats.refused {
            text += &format!("; io_uring was refused: {}", refused.message());
        }
        text
    });
}

/// Notes how many entries a walk found, those that it left out, and its file systems.
pub fn walked(report: &Report, listing: &Listing, nouns: &str, elapsed: Duration) {
    if !report.shows(1) {
        return;
    }
    let mut text = format!(
        "walk: {} {nouns} in {} directories, {:.3} s",
        listing.len(),
        listing.directories(),
        elapsed.as_secs_f64()
    );
    let skipped = left_out(listing.skipped());
    if !skipped.is_empty() {
        text += &format!("; left out: {skipped}");
    }
    report.note(text);
    if !report.shows(DETAILS) {
        return;
    }
    for skipped in listing.skipped_paths() {
        let path = bc_fs::escape(&skipped.path);
        let why = why(skipped.reason);
        report.info(format_args!("{path}: left out: {why}"));
    }
    // By device, each with the first directory that is on it.
    let mut devices: BTreeMap<u64, DirId> = BTreeMap::new();
    for dir in (0..listing.dirs() as u32).map(DirId) {
        if let Some(id) = listing.dir_identity(dir) {
            devices.entry(id.dev).or_insert(dir);
        }
    }
    for dir in devices.into_values() {
        if let Ok(fd) = listing.open_dir(dir) {
            file_system(report, &listing.dir_path(dir), fd);
        }
    }
}

/// Notes the file systems of files that are named, not walked to.
pub fn file_systems<'p>(report: &Report, paths: impl Iterator<Item = &'p [u8]>) {
    if !report.shows(DETAILS) {
        return;
    }
    let mut seen: BTreeMap<u64, OsString> = BTreeMap::new();
    let mut last = None;
    for path in paths {
        let folder = match Path::new(OsStr::from_bytes(path)).parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            Some(_) => Path::new("."),
            None => Path::new("/"),
        };
        // Lists are sorted, mostly.
        if last == Some(folder) {
            continue;
        }
        last = Some(folder);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(fd) = openat(CWD, folder, flags, Mode::empty()) else {
            continue;
        };
        let device = fstat(&fd).map(|stat| stat.st_dev);
        if let Ok(device) = device
            && seen.insert(device, folder.into()).is_none()
        {
            file_system(report, folder.as_os_str().as_bytes(), fd);
        }
    }
}

/// Notes the traits of a directory's file system.
fn file_system(report: &Report, path: &[u8], fd: impl AsFd) {
    let Ok(stat) = fstat(&fd) else {
        return;
    };
    let traits = traits_or_unknown(fd, stat.st_dev);
    let path = bc_fs::escape(path);
    let text = described(&traits);
    report.info(format_args!("file system of {path}: {text}"));
}

fn described(traits: &Traits) -> String {
    let inodes = match traits.inodes {
        Inodes::Stable => "stay",
        Inodes::Moving => "may change with a mount",
        Inodes::Unknown => "are not trusted",
    };
    let ctime = match traits.ctime {
        CtimeTrust::Real => "real",
        CtimeTrust::MadeUp => "made up",
        CtimeTrust::Unknown => "not trusted",
    };
    let answer = |answer: Answer| match answer {
        Answer::Yes => "yes",
        Answer::No => "no",
        Answer::Unknown => "unknown",
    };
    let mut text = format!(
        "{}, inode numbers {inodes}, change times are {ctime}, sizes are trusted: {}, shared \
         extents: {}, on another machine: {}",
        traits.name,
        answer(traits.sizes),
        answer(traits.reflinks),
        answer(traits.network),
    );
    if traits.pseudo {
        text += ", made up by the kernel";
    }
    if traits.read_only {
        text += ", read-only";
    }
    text
}

/// Words for the reasons to leave entries out, in the order in which counts are listed: for many
/// entries, and for one.
const LEFT_OUT: [(SkipReason, &str, &str); SkipReason::ALL.len()] = [
    (SkipReason::Symlink, "symbolic links", "a symbolic link"),
    (
        SkipReason::Special,
        "devices, FIFOs and sockets",
        "a device, FIFO or socket",
    ),
    (SkipReason::Hidden, "hidden", "hidden (--no-hidden)"),
    (SkipReason::Excluded, "excluded", "excluded (--exclude)"),
    (
        SkipReason::NotIncluded,
        "not included",
        "not included (--include)",
    ),
    (SkipReason::TooSmall, "too small", "too small (--min-size)"),
    (SkipReason::TooLarge, "too large", "too large (--max-size)"),
    (SkipReason::TooOld, "too old", "too old (--newer)"),
    (SkipReason::TooNew, "too new", "too new (--older)"),
    (SkipReason::TooDeep, "too deep", "too deep (--max-depth)"),
    (SkipReason::Ignored, "ignored", "ignored (--ignore-files)"),
    (
        SkipReason::OtherFileSystem,
        "on other file systems",
        "on another file system (--one-file-system)",
    ),
    (
        SkipReason::PseudoFileSystem,
        "pseudo file systems",
        "a pseudo file system",
    ),
    (SkipReason::Repeated, "visited already", "visited already"),
    (
        SkipReason::LeftOut,
        "output files",
        "an output file of this run",
    ),
];

/// Returns the counts of the entries that the walk passed over, with their names; those that are 0
/// are left out.
pub fn passed_over(skipped: &Skipped) -> impl Iterator<Item = (u64, &'static str)> {
    let all = LEFT_OUT
        .iter()
        .map(|(reason, many, _)| (skipped.of(*reason), *many));
    all.filter(|(count, _)| *count > 0)
}

/// Lists the same counts in words; empty if there are none.
fn left_out(skipped: &Skipped) -> String {
    let word = |(count, what): (u64, &'static str)| format!("{count} {what}");
    passed_over(skipped)
        .map(word)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Returns the reason why one path was left out.
fn why(reason: SkipReason) -> &'static str {
    let found = LEFT_OUT.iter().find(|(known, ..)| *known == reason);
    found.map_or("filtered", |(_, _, one)| *one)
}
