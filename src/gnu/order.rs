//! Many files at once, with their results in the order in which the files were named.
//!
//! Regular files are read ahead of their turn, in lanes and by several threads. Any other file is
//! opened when its turn comes, and nothing behind it is touched before: it may be a pipe from a
//! program that writes a file named after it. A file that fails is tried once more at its turn,
//! alone, so that the reason is the one that was true then.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use bc_digest::{Algorithm, CpuFeatures, Digest};
use bc_hash::{DigestSink, HashProgress};
use bc_pool::Cancel;
use bc_read::{HUGE, Plan};
use bc_walk::{EntryId, Error, ErrorKind, FileStat, Listing};
use rustix::fs::{FileType, Mode, OFlags};

use super::family::{FamilyResult, Sum};
use super::setup::Setup;
use super::stdio::{self, Lost};

/// A file to hash.
#[derive(Clone, Debug)]
pub struct FileJob {
    /// Path as it was named; `-` is standard input.
    pub path: Vec<u8>,
    /// Digest to compute.
    pub sum: Sum,
}

impl FileJob {
    /// Returns a job for each of these files, all with this digest.
    pub fn each(files: &[OsString], sum: Sum) -> Vec<FileJob> {
        let job = |path: &OsString| FileJob {
            path: path.as_bytes().to_vec(),
            sum,
        };
        files.iter().map(job).collect()
    }

    /// Hashes the file at its turn, alone: a FIFO is waited for, a directory is refused by the
    /// system, a link is followed.
    fn hash(&self, cpu: CpuFeatures) -> io::Result<FamilyResult> {
        let file = match self.path.as_slice() {
            b"-" => stdio::stdin()?,
            path => File::open(OsStr::from_bytes(path))?,
        };
        hash_file(file, self.sum, cpu)
    }
}

/// Gets the results, one after the other.
pub trait InOrder: Send {
    /// Takes the result of the job with this index.
    fn result(&mut self, index: usize, result: io::Result<FamilyResult>) -> Result<(), Lost>;
    /// Prepares for a result that may take its time: nothing may wait for it.
    fn pause(&mut self) -> Result<(), Lost>;
}

/// Bytes read at once.
const BUFFER: usize = 128 << 10;

/// Hashes the rest of an open file.
fn hash_file(mut file: File, sum: Sum, cpu: CpuFeatures) -> io::Result<FamilyResult> {
    let mut hasher = sum.hasher(cpu);
    let mut buffer = vec![0; BUFFER];
    let mut bytes = 0;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                hasher.update(&buffer[..count]);
                bytes += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(FamilyResult {
        digest: hasher.finalize(),
        bytes,
    })
}

/// Reasons why not all results were passed on.
#[derive(Debug)]
pub enum RunStop {
    /// They could not be written, which was reported.
    Lost,
    /// Something else, which is still to be reported.
    Fatal(String),
}

impl From<Lost> for RunStop {
    fn from(_: Lost) -> RunStop {
        RunStop::Lost
    }
}

/// So few files with so few bytes are hashed before an engine is ready.
const FEW: usize = 8;
const LITTLE: u64 = 1 << 20;

/// Hashes the files and gives the results in their order.
pub fn run(jobs: &[FileJob], setup: &Setup, to: &mut dyn InOrder) -> Result<(), RunStop> {
    if is_little(jobs) {
        for (index, job) in jobs.iter().enumerate() {
            to.result(index, job.hash(setup.cpu))?;
            to.pause()?;
        }
        return Ok(());
    }
    bc_walk::raise_nofile_limit();
    let files = JobFiles::look_up(jobs, setup)?;
    let mut from = 0;
    while from < jobs.len() {
        let ahead = &files.of_jobs[from..];
        let end = ahead.iter().position(|file| *file == JobKind::Special);
        let end = from + end.unwrap_or(ahead.len());
        if end > from {
            segment(jobs, from..end, &files, setup, to)?;
        }
        if let Some(job) = jobs.get(end) {
            to.pause()?;
            to.result(end, job.hash(setup.cpu))?;
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

/// JobKind of a job's file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum JobKind {
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
    of_jobs: Vec<JobKind>,
}

impl JobFiles {
    fn look_up(jobs: &[FileJob], setup: &Setup) -> Result<JobFiles, RunStop> {
        let is_stdin = |index: &usize| jobs[*index].path == b"-";
        let (stdin, named): (Vec<usize>, Vec<usize>) = (0..jobs.len()).partition(is_stdin);
        let paths: Vec<&[u8]> = named
            .iter()
            .map(|index| jobs[*index].path.as_slice())
            .collect();
        let options = bc_walk::WalkOptions::default()
            .metadata(bc_walk::Metadata::Basic)
            .spellings(bc_walk::Spellings::AsNamed);
        let listing = bc_walk::list_files(&paths, &options, setup.walk_workers(), &setup.cancel)
            .map_err(|panic| RunStop::Fatal(panic.to_string()))?;
        let mut of_jobs = vec![JobKind::Failing; jobs.len()];
        for index in stdin {
            of_jobs[index] = JobKind::Special;
        }
        for entry in listing.ids() {
            of_jobs[named[listing.root(entry)]] = JobKind::Regular(entry);
        }
        let left = |index: &usize| of_jobs[*index] == JobKind::Failing;
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
            JobKind::Regular(entry) => self.listing.size(entry).is_some_and(|size| size >= HUGE),
            _ => false,
        }
    }
}

/// Finds those among the jobs `left` that are not listed because they are no regular files.
fn find_special(jobs: &[FileJob], listing: &Listing, left: &[usize], of_jobs: &mut [JobKind]) {
    if left.is_empty() {
        return;
    }
    let path = |index: &usize| jobs[*index].path.as_slice();
    let mut kinds: HashMap<&[u8], JobKind> =
        left.iter().map(|at| (path(at), JobKind::Failing)).collect();
    for error in listing.errors() {
        if error.kind() == ErrorKind::NotRegular
            && let Some(kind) = kinds.get_mut(error.path())
        {
            *kind = JobKind::Special;
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

/// Results of jobs in a row, which any thread may put, in any order.
struct ResultSlots<'a> {
    jobs: &'a [FileJob],
    /// The job of the first slot.
    first: usize,
    /// Result of each job; `None` inside is a result that is computed when its turn comes.
    slots: Vec<OnceLock<Option<FamilyResult>>>,
}

impl<'a> ResultSlots<'a> {
    /// Returns empty slots for the jobs from `first` on, one for each of `later`: true if its
    /// result is computed only at its turn.
    fn new(jobs: &'a [FileJob], first: usize, later: impl Iterator<Item = bool>) -> Self {
        let slot = |later| match later {
            true => OnceLock::from(None),
            false => OnceLock::new(),
        };
        ResultSlots {
            jobs,
            first,
            slots: later.map(slot).collect(),
        }
    }

    /// Puts the result of a job, once; `None` if its turn has to bring it.
    fn put(&self, index: usize, hashed: Option<FamilyResult>) {
        let _ = self.slots[index - self.first].set(hashed);
    }
}

/// Longest time that a result waits for others that go out with it.
const TOGETHER: Duration = Duration::from_millis(5);

/// Passes results on in the order of the jobs. Only one thread does so, and none of those that
/// hash ever waits for it.
struct Passing<'a, 'o> {
    results: &'a ResultSlots<'a>,
    cpu: CpuFeatures,
    /// Set once results cannot be written.
    cancel: &'a Cancel,
    to: &'o mut dyn InOrder,
    /// The job whose result is passed on next.
    next: usize,
    lost: bool,
}

impl<'a, 'o> Passing<'a, 'o> {
    fn new(results: &'a ResultSlots<'a>, setup: &'a Setup, to: &'o mut dyn InOrder) -> Self {
        Passing {
            results,
            cpu: setup.cpu,
            cancel: &setup.cancel,
            to,
            next: results.first,
            lost: false,
        }
    }

    /// Passes on all results whose turn has come. If they cannot be written the run is stopped.
    fn advance(&mut self) {
        if !self.lost && self.pass_ready().is_err() {
            self.lost = true;
            self.cancel.cancel(1);
        }
    }

    fn pass_ready(&mut self) -> Result<(), Lost> {
        let results = self.results;
        while let Some(slot) = results.slots.get(self.next - results.first)
            && let Some(hashed) = slot.get()
        {
            let result = match hashed {
                Some(hashed) => Ok(*hashed),
                None => {
                    // It may take its time.
                    self.to.pause()?;
                    results.jobs[self.next].hash(self.cpu)
                }
            };
            self.to.result(self.next, result)?;
            self.next += 1;
        }
        self.to.pause()
    }

    /// Runs `work`, which puts results, while a thread passes them on.
    fn during<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let (working, is_over) = mpsc::channel::<()>();
        let done = std::thread::scope(|scope| {
            let passing = &mut *self;
            let pass = move || {
                while is_over.recv_timeout(TOGETHER) == Err(RecvTimeoutError::Timeout) {
                    passing.advance();
                }
            };
            // Without a thread to spare results wait for the end.
            let _ = std::thread::Builder::new().spawn_scoped(scope, pass);
            // The end of the work, also by a panic, ends the thread.
            let _working = working;
            work()
        });
        self.advance();
        done
    }
}

/// Hashes files of which none has to wait for its turn.
fn segment(
    jobs: &[FileJob],
    range: Range<usize>,
    files: &JobFiles,
    setup: &Setup,
    to: &mut dyn InOrder,
) -> Result<(), RunStop> {
    let kinds = files.of_jobs[range.clone()].iter();
    let later = kinds.map(|kind| !matches!(kind, JobKind::Regular(_)));
    let results = ResultSlots::new(jobs, range.start, later);
    let mut sums: Vec<Sum> = Vec::new();
    for job in &jobs[range.clone()] {
        if !sums.contains(&job.sum) {
            sums.push(job.sum);
        }
    }
    let mut passing = Passing::new(&results, setup, to);
    passing.during(|| -> Result<(), RunStop> {
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
                        in_lanes(others, files, algorithm, setup, &results)?;
                        in_lanes(huge, files, algorithm, setup, &results)?;
                    }
                    None => one_by_one(&indices, files, setup, &results)?,
                }
            }
        }
        Ok(())
    })?;
    match passing.lost {
        true => Err(RunStop::Lost),
        false => Ok(()),
    }
}

/// Hashes regular files by the engine of `bc hash`.
fn in_lanes(
    indices: Vec<usize>,
    files: &JobFiles,
    algorithm: Algorithm,
    setup: &Setup,
    results: &ResultSlots<'_>,
) -> Result<(), RunStop> {
    let entry_of = |index: usize| match files.of_jobs[index] {
        JobKind::Regular(entry) => Some(entry),
        JobKind::Failing | JobKind::Special => None,
    };
    let order: Vec<EntryId> = indices.into_iter().filter_map(entry_of).collect();
    if order.is_empty() {
        return Ok(());
    }
    let state = bc_hash::hashing_memory(&files.listing, &[algorithm]);
    let options = setup.options(algorithm, state).map_err(RunStop::Fatal)?;
    let plan = Plan::new(order, options.workers);
    let sink = |_| SlotWriter { results, files };
    let progress = HashProgress::default();
    bc_hash::hash_with(
        &files.listing,
        &plan,
        &options,
        &setup.cancel,
        &progress,
        sink,
    )
    .map_err(|panic| RunStop::Fatal(panic.to_string()))?;
    Ok(())
}

/// A worker's way to the slots.
struct SlotWriter<'a> {
    results: &'a ResultSlots<'a>,
    files: &'a JobFiles,
}

impl DigestSink for SlotWriter<'_> {
    fn file(&mut self, entry: EntryId, result: Result<(&FileStat, &[Digest]), Error>) {
        let hashed = match result {
            Ok((stat, digests)) => digests.first().map(|digest| FamilyResult {
                digest: *digest,
                bytes: stat.stamp.size,
            }),
            Err(_) => None,
        };
        self.results.put(self.files.job(entry), hashed);
    }
}

/// Hashes each file by one of several threads, from its beginning to its end.
fn one_by_one(
    indices: &[usize],
    files: &JobFiles,
    setup: &Setup,
    results: &ResultSlots<'_>,
) -> Result<(), RunStop> {
    let regular = |index: &&usize| matches!(files.of_jobs[**index], JobKind::Regular(_));
    let indices: Vec<usize> = indices.iter().filter(regular).copied().collect();
    let next = AtomicUsize::new(0);
    let workers = setup.workers(indices.len(), files.listing.named_bytes());
    bc_pool::run(workers, |_| {
        while let Some(&index) = indices.get(next.fetch_add(1, Ordering::Relaxed)) {
            if setup.cancel.is_cancelled() {
                break;
            }
            let job = &results.jobs[index];
            let hashed = regular_file(&job.path).and_then(|file| {
                let file = file.ok_or(io::ErrorKind::Unsupported)?;
                hash_file(file, job.sum, setup.cpu)
            });
            results.put(index, hashed.ok());
        }
    })
    .map_err(|panic| RunStop::Fatal(panic.to_string()))?;
    Ok(())
}

/// Opens the file if it still is a regular one: nothing is waited for, and no turn is taken.
fn regular_file(path: &[u8]) -> io::Result<Option<File>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
    Ok(kind.is_file().then(|| File::from(file)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Receiver that can take so many results.
    struct Taken {
        indices: Vec<usize>,
        most: usize,
    }

    impl InOrder for Taken {
        fn result(&mut self, index: usize, result: io::Result<FamilyResult>) -> Result<(), Lost> {
            if self.indices.len() == self.most {
                return Err(Lost);
            }
            assert_eq!(result.is_err(), index == 3);
            self.indices.push(index);
            Ok(())
        }

        fn pause(&mut self) -> Result<(), Lost> {
            Ok(())
        }
    }

    fn passed(most: usize) -> (Vec<usize>, bool) {
        let paths: Vec<OsString> = (0..8).map(|n| format!("/nowhere/{n}").into()).collect();
        let jobs = FileJob::each(&paths, Sum::Of(Algorithm::Md5));
        let results = ResultSlots::new(&jobs, 1, (1..8).map(|index| index == 3));
        let cancel = Cancel::new();
        let mut taken = Taken {
            indices: Vec::new(),
            most,
        };
        let mut passing = Passing {
            results: &results,
            cpu: CpuFeatures::portable(),
            cancel: &cancel,
            to: &mut taken,
            next: 1,
            lost: false,
        };
        passing.during(|| {
            for index in [7, 5, 2, 1, 6, 4] {
                let digest = bc_digest::hash(Algorithm::Md5, b"");
                results.put(index, Some(FamilyResult { digest, bytes: 0 }));
                std::thread::sleep(TOGETHER / 2);
            }
        });
        assert_eq!(passing.lost, cancel.is_cancelled());
        let lost = passing.lost;
        (taken.indices, lost)
    }

    #[test]
    fn results_are_passed_on_in_order() {
        assert_eq!(passed(usize::MAX), ((1..8).collect(), false));
    }

    #[test]
    fn a_failure_to_write_stops_the_run() {
        assert_eq!(passed(3), (vec![1, 2, 3], true));
    }
}
