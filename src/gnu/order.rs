//! Many files at once, with their results in the order in which the files were named.
//!
//! Regular files are read ahead of their turn, in lanes and by several threads. Any other file is
//! opened when its turn comes, and nothing behind it is touched before: it may be a pipe from a
//! program that writes a file named after it. A file that fails is tried once more at its turn,
//! alone, so that the reason is the one that was true then.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicUsize, Ordering};

use bc_digest::{Algorithm, Digest};
use bc_hash::{DigestSink, HashProgress};
use bc_read::{HUGE, Plan};
use bc_walk::{EntryId, Error, ErrorKind, FileStat, Listing};
use rustix::fs::{FileType, Mode, OFlags};

use super::board::{Board, FileJob, InOrder};
use super::family::{FamilyResult, Sum};
use super::setup::Setup;
use super::stdout::Lost;
use super::turn;

/// Reasons why not all results were given.
#[derive(Debug)]
pub enum Stop {
    /// They could not be written, which was reported.
    Lost,
    /// Something else, which is still to be reported.
    Fatal(String),
}

impl From<Lost> for Stop {
    fn from(_: Lost) -> Stop {
        Stop::Lost
    }
}

/// So few files with so few bytes are hashed before an engine is ready.
const FEW: usize = 8;
const LITTLE: u64 = 1 << 20;

/// Hashes the files and gives the results in their order.
pub fn run(jobs: &[FileJob], setup: &Setup, to: &mut dyn InOrder) -> Result<(), Stop> {
    if is_little(jobs) {
        for (index, job) in jobs.iter().enumerate() {
            to.result(index, turn::hash(&job.path, job.sum, setup.cpu))?;
            to.pause()?;
        }
        return Ok(());
    }
    bc_walk::raise_nofile_limit();
    let files = JobFiles::look_up(jobs, setup)?;
    let mut from = 0;
    while from < jobs.len() {
        let ahead = &files.of_jobs[from..];
        let end = ahead.iter().position(|file| *file == Kind::Special);
        let end = from + end.unwrap_or(ahead.len());
        if end > from {
            segment(jobs, from..end, &files, setup, to)?;
        }
        if let Some(job) = jobs.get(end) {
            to.pause()?;
            to.result(end, turn::hash(&job.path, job.sum, setup.cpu))?;
            to.pause()?;
        }
        from = end + 1;
    }
    // The end of the process frees tens of thousands of names at once.
    std::mem::forget(files);
    Ok(())
}

fn is_little(jobs: &[FileJob]) -> bool {
    let size = |job: &FileJob| {
        let meta = std::fs::metadata(OsStr::from_bytes(&job.path));
        meta.map_or(0, |meta| if meta.is_file() { meta.len() } else { 0 })
    };
    jobs.len() <= FEW && jobs.iter().map(size).fold(0, u64::saturating_add) < LITTLE
}

/// Kind of a job's file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    /// A regular file, to be read ahead.
    Regular(EntryId),
    /// Missing, a directory and the like: its turn brings the reason.
    Failing,
    /// A FIFO, a device, standard input.
    Special,
}

/// The files of all jobs as they were found.
struct JobFiles {
    listing: Listing,
    /// The jobs whose paths the listing was given.
    named: Vec<usize>,
    of_jobs: Vec<Kind>,
}

impl JobFiles {
    fn look_up(jobs: &[FileJob], setup: &Setup) -> Result<JobFiles, Stop> {
        let is_stdin = |index: &usize| jobs[*index].path == b"-";
        let (stdin, named): (Vec<usize>, Vec<usize>) = (0..jobs.len()).partition(is_stdin);
        let paths = named
            .iter()
            .map(|index| jobs[*index].path.clone())
            .collect();
        let options = bc_walk::WalkOptions::default()
            .metadata(bc_walk::Metadata::Basic)
            .spellings(bc_walk::Spellings::AsNamed);
        let listing = bc_walk::list_files(paths, &options, setup.walk_workers(), &setup.cancel)
            .map_err(|panic| Stop::Fatal(panic.to_string()))?;
        let mut of_jobs = vec![Kind::Failing; jobs.len()];
        for index in stdin {
            of_jobs[index] = Kind::Special;
        }
        for entry in listing.ids() {
            of_jobs[named[listing.root(entry)]] = Kind::Regular(entry);
        }
        let left = |index: &usize| of_jobs[*index] == Kind::Failing;
        let left: Vec<usize> = named.iter().copied().filter(left).collect();
        find_special(jobs, &listing, &left, &mut of_jobs);
        Ok(JobFiles {
            listing,
            named,
            of_jobs,
        })
    }

    /// Returns the job that named a listed file: each is listed for itself.
    fn job(&self, entry: EntryId) -> usize {
        self.named[self.listing.root(entry)]
    }

    /// Returns true if several threads may work on the job's file alone.
    fn is_huge(&self, index: usize) -> bool {
        match self.of_jobs[index] {
            Kind::Regular(entry) => self.listing.size(entry).is_some_and(|size| size >= HUGE),
            _ => false,
        }
    }
}

/// Finds those among the jobs `left` that are not listed because they are no regular files.
fn find_special(jobs: &[FileJob], listing: &Listing, left: &[usize], of_jobs: &mut [Kind]) {
    if left.is_empty() {
        return;
    }
    let path = |index: &usize| jobs[*index].path.as_slice();
    let mut kinds: HashMap<&[u8], Kind> = left.iter().map(|at| (path(at), Kind::Failing)).collect();
    for error in listing.errors() {
        if error.kind() == ErrorKind::NotRegular
            && let Some(kind) = kinds.get_mut(error.path())
        {
            *kind = Kind::Special;
        }
    }
    for index in left {
        of_jobs[*index] = kinds[path(index)];
    }
}

/// Number of files in work together where one of them is huge, or where they want several digests,
/// which are computed one after the other. Huge ones come last: all threads may work on one of
/// them, and the files that they had begun before would wait for its end. Everything else is one
/// run of the engine, as starting a run and waiting for its last worker takes some milliseconds.
const WINDOW: usize = 4096;

/// Returns the files from `from` on that are in work together.
fn window(range: &Range<usize>, from: usize, files: &JobFiles, sums: &[Sum]) -> Range<usize> {
    let next = (from + WINDOW).min(range.end);
    let huge = |index: &usize| files.is_huge(*index);
    if sums.len() > 1 || (from..next).any(|index| huge(&index)) {
        return from..next;
    }
    from..(next..range.end).find(huge).unwrap_or(range.end)
}

/// Hashes files of which none has to wait for its turn.
fn segment(
    jobs: &[FileJob],
    range: Range<usize>,
    files: &JobFiles,
    setup: &Setup,
    to: &mut dyn InOrder,
) -> Result<(), Stop> {
    let kinds = files.of_jobs[range.clone()].iter();
    let later = kinds.map(|kind| !matches!(kind, Kind::Regular(_)));
    let board = Board::new(jobs, setup, to, range.start, later);
    let mut sums: Vec<Sum> = Vec::new();
    for job in &jobs[range.clone()] {
        if !sums.contains(&job.sum) {
            sums.push(job.sum);
        }
    }
    board.advance();
    let done = board.flushed(|| -> Result<(), Stop> {
        let mut from = range.start;
        while from < range.end {
            let window = window(&range, from, files, &sums);
            from = window.end;
            for sum in &sums {
                let chosen = |index: &usize| jobs[*index].sum == *sum;
                let indices: Vec<usize> = window.clone().filter(chosen).collect();
                match sum.in_engine() {
                    Some(algorithm) => {
                        let huge = |index: &usize| files.is_huge(*index);
                        let (huge, others) = indices.into_iter().partition(huge);
                        in_lanes(others, files, algorithm, setup, &board)?;
                        in_lanes(huge, files, algorithm, setup, &board)?;
                    }
                    None => one_by_one(&indices, files, setup, &board)?,
                }
            }
        }
        Ok(())
    });
    done?;
    let to = board.into_taker()?;
    to.pause()?;
    Ok(())
}

/// Hashes regular files by the engine of `bc hash`.
fn in_lanes(
    indices: Vec<usize>,
    files: &JobFiles,
    algorithm: Algorithm,
    setup: &Setup,
    board: &Board<'_>,
) -> Result<(), Stop> {
    let entry_of = |index: usize| match files.of_jobs[index] {
        Kind::Regular(entry) => Some(entry),
        Kind::Failing | Kind::Special => None,
    };
    let order: Vec<EntryId> = indices.into_iter().filter_map(entry_of).collect();
    if order.is_empty() {
        return Ok(());
    }
    let state = bc_hash::hashing_memory(&files.listing, &[algorithm]);
    let options = setup.options(algorithm, state).map_err(Stop::Fatal)?;
    let plan = Plan::new(order, options.workers);
    let sink = |_| BoardWriter { board, files };
    let progress = HashProgress::default();
    bc_hash::hash_with(
        &files.listing,
        &plan,
        &options,
        &setup.cancel,
        &progress,
        sink,
    )
    .map_err(|panic| Stop::Fatal(panic.to_string()))?;
    Ok(())
}

/// A worker's way to the board.
struct BoardWriter<'c, 'b> {
    board: &'c Board<'b>,
    files: &'c JobFiles,
}

impl DigestSink for BoardWriter<'_, '_> {
    fn file(&mut self, entry: EntryId, result: Result<(&FileStat, &[Digest]), Error>) {
        let hashed = match result {
            Ok((stat, digests)) => digests.first().map(|digest| FamilyResult {
                digest: *digest,
                bytes: stat.stamp.size,
            }),
            Err(_) => None,
        };
        self.board.put(self.files.job(entry), hashed);
        self.board.advance();
    }
}

/// Hashes each file by one of several threads, from its beginning to its end.
fn one_by_one(
    indices: &[usize],
    files: &JobFiles,
    setup: &Setup,
    board: &Board<'_>,
) -> Result<(), Stop> {
    let regular = |index: &&usize| matches!(files.of_jobs[**index], Kind::Regular(_));
    let indices: Vec<usize> = indices.iter().filter(regular).copied().collect();
    let jobs = board.jobs();
    let next = AtomicUsize::new(0);
    let workers = setup.workers(indices.len(), files.listing.named_bytes());
    bc_pool::run(workers, |_| {
        while let Some(&index) = indices.get(next.fetch_add(1, Ordering::Relaxed)) {
            if setup.cancel.is_cancelled() {
                break;
            }
            let job = &jobs[index];
            let hashed = regular_file(&job.path).and_then(|file| {
                let file = file.ok_or(io::ErrorKind::Unsupported)?;
                turn::hash_file(file, job.sum, setup.cpu)
            });
            board.put(index, hashed.ok());
            board.advance();
        }
    })
    .map_err(|panic| Stop::Fatal(panic.to_string()))?;
    Ok(())
}

/// Opens the file if it still is a regular one: nothing is waited for, and no turn is taken.
fn regular_file(path: &[u8]) -> io::Result<Option<File>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
    Ok(kind.is_file().then(|| File::from(file)))
}
