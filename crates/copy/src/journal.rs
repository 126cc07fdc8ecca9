//! The journal of a copy: found by what the copy is about, before its destination is looked at.
//!
//! It lies in the user's state directory, never in the destination: who may write there cannot
//! touch it, and nothing is left behind there. A file's record is written before the file gets its
//! name, and counts once the name leads to the inode that it tells: so no moment is left at which
//! a file has its name and nobody knows of it.

use std::collections::{HashMap, HashSet};
use std::fs::DirBuilder;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bc_digest::Digest;
use bc_fs::journal::{Found, Journal, Key, Locked};
use bc_fs::place::Place;
use bc_walk::{FileStat, Identity, OwnFile, Stamp};

use crate::record::{self, Done, JobRecord, Made, RootRecord, SessionRecord};

/// Blocks of a stage by their numbers, and what their parts hash to.
pub(crate) type Blocks = HashMap<u64, Vec<[u8; 32]>>;

/// What an earlier run of the same copy has done.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// Files by their path below the top.
    files: HashMap<Vec<u8>, KnownFile>,
    /// Blocks of stages, by the stage's name, as the last run has recorded them and those before it
    /// that took the same digest.
    pub(crate) blocks: HashMap<String, Blocks>,
    /// Stages of large files, and where they are.
    pub(crate) stages: Vec<(String, Vec<u8>)>,
    /// What was begun and is not recorded as complete: its stage may be there.
    pub(crate) begun: HashSet<Vec<u8>>,
    /// Whether it is no copy, but the healing of a tree.
    pub(crate) heals: bool,
    /// What the stages of a healing may lead to, by the paths that they are for.
    pub(crate) made: HashMap<Vec<u8>, Vec<Made>>,
    /// Directories that its roots were.
    pub(crate) roots: Vec<RootRecord>,
    /// The runs.
    runs: Vec<Run>,
    /// How what is written to is mounted now.
    mount: u64,
    /// Whether what was done is to be done again.
    anew: bool,
    /// When the journal was last written to, in nanoseconds since 1970.
    written_ns: i64,
}

/// A run.
#[derive(Debug)]
struct Run {
    /// Whether it was in this boot.
    same_boot: bool,
    /// How what it wrote to was mounted.
    mount: u64,
    /// The digest that it took.
    algorithm: String,
    /// Its records before this one are on the disk.
    durable: usize,
}

#[derive(Debug)]
struct KnownFile {
    source: Identity,
    stamp: Stamp,
    ino: u64,
    mtime_ns: i64,
    settled: bool,
    digest: Option<Digest>,
    run: usize,
    nth: usize,
    /// Whether this run has looked at what has its name.
    seen: AtomicBool,
}

impl KnownFile {
    /// Whether what is there now is what was made then.
    fn is(&self, now: &FileStat) -> bool {
        self.ino == now.id.ino
            && self.stamp.size == now.stamp.size
            && self.mtime_ns == now.stamp.mtime_ns
    }
}

/// A file that an earlier run has copied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before {
    /// Of its content, if there was one taken.
    pub(crate) digest: Option<Digest>,
    /// Whether its bytes can have been lost since: they are to be read.
    pub(crate) doubtful: bool,
    /// Whether the source is another one now, or in another state: its copy is to be made anew.
    pub(crate) outdated: bool,
    /// Whether the source was written to so shortly before that equal times prove nothing: the two
    /// are to be compared.
    pub(crate) unsettled: bool,
}

impl Known {
    /// What is known of the file at `path`, if it is still what was made then.
    pub(crate) fn file(
        &self,
        path: &[u8],
        source: (Identity, Stamp),
        now: &FileStat,
    ) -> Option<Before> {
        let known = self.files.get(path)?;
        known.seen.store(true, Relaxed);
        known.is(now).then_some(Before {
            digest: known.digest,
            // Devices have other numbers after a restart.
            outdated: self.anew || (known.source.ino, known.stamp) != (source.0.ino, source.1),
            unsettled: !known.settled,
            doubtful: self.is_lost(known),
        })
    }

    /// Files that an earlier run has copied and this one has not met: their sources are gone, or are
    /// not asked for. Each with what tells what it hashes to, if that is known for sure and what has
    /// its name is still that copy.
    pub(crate) fn others(
        &self,
    ) -> impl Iterator<Item = (&[u8], impl Fn(&FileStat) -> Option<Digest>)> {
        let files = self.files.iter();
        let others = files
            .filter(move |(_, file)| !self.anew && !file.seen.load(Relaxed) && !self.is_lost(file));
        others.map(|(path, file)| {
            let digest = move |now: &FileStat| file.digest.filter(|_| file.is(now));
            (path.as_slice(), digest)
        })
    }

    /// What an earlier run has begun and recorded no end of: what has no content has none.
    pub(crate) fn begun_before(&self) -> impl Iterator<Item = &[u8]> {
        let begun = self.begun.iter().filter(|_| !self.anew);
        begun.map(Vec::as_slice)
    }

    /// Whether the bytes of a copy can have been lost since it was made.
    fn is_lost(&self, file: &KnownFile) -> bool {
        !self.is_durable(file) && !self.is_of_now(file.run)
    }

    /// Whether there is a record of the file at `path`, whatever is there now.
    pub(crate) fn names(&self, path: &[u8]) -> bool {
        self.files.contains_key(path)
    }

    /// Tells how what is written to is mounted.
    pub(crate) fn mounted(&mut self, mount: u64) {
        self.mount = mount;
    }

    /// Whether a file can have been made by one of the runs, by when it was made: each tells what it
    /// begins before it makes it. Of a journal the end may be lost with the power, no more than
    /// what a system keeps in memory for so long.
    pub(crate) fn can_have_made(&self, born_ns: i64) -> bool {
        const LOST_NS: i64 = 60_000_000_000;
        let lost = match self.runs.last() {
            Some(last) if last.same_boot => 0,
            _ => LOST_NS,
        };
        born_ns <= self.written_ns.saturating_add(lost)
    }

    /// Whether the system was started, or the file system mounted, since any of the runs: what is
    /// not known to be on the disk is to be looked at.
    pub(crate) fn is_doubtful(&self) -> bool {
        (1..=self.runs.len()).any(|run| !self.is_of_now(run))
    }

    fn is_of_now(&self, run: usize) -> bool {
        let found = self.run(run);
        found.is_some_and(|run| run.same_boot && run.mount == self.mount)
    }

    /// A run by its number: the first is 1.
    fn run(&self, run: usize) -> Option<&Run> {
        run.checked_sub(1).and_then(|run| self.runs.get(run))
    }

    /// Another run: what a digest of another kind says of stages proves nothing any more, because
    /// that run has used them for its own.
    fn begin_run(&mut self, session: Option<SessionRecord>, boot: &[u8; 16]) {
        let session = session.unwrap_or_default();
        if self.runs.last().map(|run| &run.algorithm) != Some(&session.algorithm) {
            self.blocks.clear();
        }
        let same_boot = session.boot == *boot && session.boot != [0; 16];
        self.runs.push(Run {
            same_boot,
            mount: if same_boot { session.mount } else { 0 },
            algorithm: session.algorithm,
            durable: 0,
        });
    }

    fn is_durable(&self, file: &KnownFile) -> bool {
        let run = self.run(file.run);
        run.is_some_and(|run| file.nth < run.durable)
    }

    /// Paths below the top whose stages may still be there, though this run has met none of them:
    /// their sources are gone.
    pub(crate) fn unseen(&self) -> impl Iterator<Item = &[u8]> {
        let files = self.files.iter();
        let unseen = files.filter(|(_, file)| !file.seen.load(Relaxed));
        let begun = self.begun.iter().map(Vec::as_slice);
        begun.chain(unseen.map(|(path, _)| path.as_slice()))
    }

    /// What was done is to be done again: it is known, so that it is in nobody's way.
    pub(crate) fn begin_anew(&mut self) {
        self.anew = true;
        self.blocks.clear();
    }

    /// Whether what was done is to be done again.
    pub(crate) fn is_anew(&self) -> bool {
        self.anew
    }

    /// Digests of another algorithm say nothing.
    pub(crate) fn keep_digests_of(&mut self, algorithm: &str) {
        let is_it = |run: &Run| run.algorithm == algorithm;
        let runs: Vec<bool> = self.runs.iter().map(is_it).collect();
        for file in self.files.values_mut() {
            let of = file.run.checked_sub(1).and_then(|run| runs.get(run));
            file.digest = file.digest.filter(|_| of == Some(&true));
        }
        if runs.last() != Some(&true) {
            self.blocks.clear();
        }
    }

    /// Files that are recorded.
    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }
}

/// What was found of earlier runs.
pub(crate) struct Earlier {
    pub(crate) job: JobRecord,
    pub(crate) known: Known,
    pub(crate) journal: Journal,
}

/// Where the journal of a copy lies, or why there is none.
pub(crate) enum Site {
    /// Nothing is there yet.
    Free(Place, Key),
    /// An unfinished run.
    Earlier(Box<Earlier>, Place, Key),
    /// A living one.
    Busy,
    /// Something that is not ours.
    Foreign(String),
}

/// Looks for the journal of the job with this name (a digest in hexadecimal digits).
pub(crate) fn look(state: &Path, name: &str, boot: &[u8; 16]) -> io::Result<Site> {
    let key = Key::kept_in(state)?;
    let directory = state.join("copy");
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&directory)
        .map_err(|error| {
            let shown = bc_fs::escape(directory.as_os_str().as_encoded_bytes());
            io::Error::new(error.kind(), format!("{shown}: mkdir: {error}"))
        })?;
    let place = Place::find(directory.join(format!("{name}.journal")))?;
    Ok(match Journal::open(&place, &key)? {
        Found::Nothing => Site::Free(place, key),
        Found::Busy => Site::Busy,
        Found::Foreign(why) => Site::Foreign(why),
        Found::Journal(mut journal) => match load(&journal, boot)? {
            Some((job, known, end)) => {
                journal.cut(end)?;
                let earlier = Earlier {
                    job,
                    known,
                    journal,
                };
                Site::Earlier(Box::new(earlier), place, key)
            }
            // Killed while its first record was written: nothing was done yet.
            None => {
                journal.remove();
                Site::Free(place, key)
            }
        },
    })
}

/// What a journal tells: the job, what was done of it, and where its last whole record ends.
pub(crate) fn load(
    journal: &Journal,
    boot: &[u8; 16],
) -> io::Result<Option<(JobRecord, Known, u64)>> {
    let mut records = journal.records();
    let first = records.next_record()?;
    let job = first.filter(|first| first.kind == record::JOB);
    let Some(job) = job.and_then(|first| record::job(first.body)) else {
        return Ok(None);
    };
    let written = journal.file().metadata()?;
    let mut known = Known {
        written_ns: (written.mtime().saturating_mul(1_000_000_000))
            .saturating_add(written.mtime_nsec()),
        ..Known::default()
    };
    let mut nth = 0;
    while let Some(found) = records.next_record()? {
        let body = found.body;
        match found.kind {
            record::SESSION => known.begin_run(record::session(body), boot),
            record::ROOT => {
                if let Some(root) = record::root(body) {
                    // After a power cut it may have had to be made again.
                    known.roots.retain(|before| before.root != root.root);
                    known.roots.push(root);
                }
            }
            record::BEGUN => drop(known.begun.insert(body.to_vec())),
            record::DONE => {
                if let Some(done) = record::done(body) {
                    known.begun.remove(&done.path);
                    known.insert(done, nth);
                    nth += 1;
                }
            }
            record::BLOCK => {
                if let Some((stage, block, parts)) = record::block(body) {
                    known.blocks.entry(stage).or_default().insert(block, parts);
                }
            }
            // What earlier runs wrote may have been lost before this one began.
            record::DURABLE => {
                if let Some(run) = known.runs.last_mut() {
                    run.durable = nth;
                }
            }
            record::STAGE => known.stages.extend(record::stage(body)),
            record::HEALS => known.heals = true,
            record::MADE => {
                if let Some((path, made)) = record::made(body) {
                    known.made.entry(path).or_default().push(made);
                }
            }
            _ => {}
        }
    }
    Ok(Some((job, known, records.end())))
}

impl Known {
    fn insert(&mut self, done: Done, nth: usize) {
        let file = KnownFile {
            source: done.source,
            stamp: done.stamp,
            ino: done.ino,
            mtime_ns: done.mtime_ns,
            settled: done.settled,
            digest: done.digest,
            run: self.runs.len(),
            nth,
            seen: AtomicBool::new(false),
        };
        self.files.insert(done.path, file);
    }
}

/// The journal that is written to, or none.
#[derive(Default)]
pub(crate) struct Log {
    journal: Mutex<Option<Journal>>,
    file: Option<Arc<Locked>>,
}

impl Log {
    pub(crate) fn new(journal: Option<Journal>) -> Log {
        Log {
            file: journal.as_ref().map(Journal::handle),
            journal: Mutex::new(journal),
        }
    }

    /// The descriptor by which it is written.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.file.as_deref().map(|file| file.as_fd())
    }

    /// Whether there is one: without it nothing need be recorded.
    pub(crate) fn is_kept(&self) -> bool {
        self.lock().is_some()
    }

    /// The file itself, which is no part of what is copied.
    pub(crate) fn own_file(&self) -> Option<OwnFile> {
        let held = self.lock();
        OwnFile::of(held.as_ref()?.file()).ok()
    }

    /// Appends records. A journal that cannot be written to any more says so once; what it holds
    /// stays true.
    pub(crate) fn append(&self, piece: &mut Vec<u8>) -> io::Result<()> {
        let mut held = self.lock();
        let Some(journal) = held.as_mut().filter(|_| !piece.is_empty()) else {
            piece.clear();
            return Ok(());
        };
        let appended = journal.append(piece);
        piece.clear();
        appended
    }

    /// Forces it to the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        let view = self.lock().as_ref().map(Journal::view).transpose()?;
        view.map_or(Ok(()), |view| view.sync())
    }

    /// Has the file system say what of it could not be stored.
    pub(crate) fn flush(&self) -> io::Result<()> {
        self.lock().as_ref().map_or(Ok(()), Journal::flush)
    }

    /// The copy is complete: nothing is kept.
    pub(crate) fn remove(&self) {
        if let Some(journal) = self.take() {
            journal.remove();
        }
    }

    /// The journal itself: nothing more is appended.
    pub(crate) fn take(&self) -> Option<Journal> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Journal>> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// This start of the system, as the kernel names it; zeros where it does not.
pub(crate) fn boot_id() -> [u8; 16] {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    let bytes: Vec<u8> = digits
        .chunks_exact(2)
        .map(|pair| (pair[0] << 4 | pair[1]) as u8)
        .collect();
    bytes.try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests;
