//! The journal of a copy: found by the subject of the copy, before its destination is looked at.
//!
//! It lies in the user's state directory, never in the destination: users who may write there
//! cannot touch it, and nothing is left behind there. A file's record is written before the file
//! gets its name, so that the name is never there without a record. The state in which it has its
//! name is recorded after that.

use std::fs::DirBuilder;
use std::io;
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use bc_edit::Locked;
use bc_edit::journal::{Claim, FoundJournal, Journal, Key};
use bc_fs::place::Place;
use bc_walk::OwnFile;

use crate::lock;
use crate::resume::known::KnownWork;
use crate::resume::record::{self, JobRecord};

/// State found of earlier runs.
pub(crate) struct EarlierRuns {
    pub(crate) job: JobRecord,
    pub(crate) known: KnownWork,
    pub(crate) journal: Journal,
}

/// A place for a journal, held against other runs of the same copy.
pub(crate) struct Free {
    pub(crate) claim: Claim,
    pub(crate) key: Key,
}

/// Result of looking for the journal of a copy.
pub(crate) enum Site {
    /// There is no journal yet. Its place is held, if that was asked for.
    Free(Option<Free>),
    /// An unfinished run.
    Earlier(Box<EarlierRuns>),
    /// A run in progress.
    Busy,
    /// A file that is not ours; with the reason.
    Foreign(String),
}

/// Returns the path of the journal of the job with this name (a digest in hexadecimal digits).
pub(crate) fn path(state: &Path, name: &str) -> PathBuf {
    state.join("copy").join(format!("{name}.journal"))
}

/// Makes the directory of journals, for this user alone.
pub(crate) fn make_directory(state: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder
        .recursive(true)
        .mode(0o700)
        .create(state.join("copy"))
}

/// True if this user may make a journal below the directory of all state, as far as a look can tell.
pub(crate) fn may_be_made(state: &Path) -> bool {
    let dir = state.join("copy");
    let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    let may_change = |dir: &Path| {
        let flags = rustix::fs::AtFlags::EACCESS;
        dir.is_dir() && rustix::fs::accessat(rustix::fs::CWD, dir, access, flags).is_ok()
    };
    let mut above = dir.ancestors().map(|dir| match dir.as_os_str().is_empty() {
        true => Path::new("."),
        false => dir,
    });
    above.find(|dir| dir.exists()).is_some_and(may_change)
}

/// Holds the place of a journal against other runs; `None` if another one has it.
pub(crate) fn hold(place: Place) -> io::Result<Option<Claim>> {
    match Claim::new(place) {
        Ok(claim) => Ok(Some(claim)),
        Err(error) => match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::AlreadyExists => Ok(None),
            _ => Err(error),
        },
    }
}

/// Looks for the journal of the job with this name, and, to `claim` it, holds its place where there
/// is none.
pub(crate) fn look(state: &Path, name: &str, boot: &[u8; 16], claim: bool) -> io::Result<Site> {
    let key = Key::kept_in(state)?;
    make_directory(state).map_err(|error| {
        let directory = state.join("copy");
        let shown = bc_fs::escape(directory.as_os_str().as_encoded_bytes());
        io::Error::new(error.kind(), format!("{shown}: mkdir: {error}"))
    })?;
    let place = Place::find(path(state, name))?;
    let free = |place: Place, key: Key| -> io::Result<Site> {
        if !claim {
            return Ok(Site::Free(None));
        }
        // Another run may have started since the look.
        Ok(match hold(place)? {
            Some(claim) => Site::Free(Some(Free { claim, key })),
            None => Site::Busy,
        })
    };
    Ok(match Journal::open(&place, &key)? {
        FoundJournal::Nothing => free(place, key)?,
        FoundJournal::Busy => Site::Busy,
        FoundJournal::Foreign(why) => Site::Foreign(why),
        FoundJournal::Journal(mut journal) => match load(&journal, boot)? {
            Some(loaded) => {
                journal.cut(loaded.end)?;
                let earlier = EarlierRuns {
                    job: loaded.job,
                    known: loaded.known,
                    journal,
                };
                Site::Earlier(Box::new(earlier))
            }
            // Killed while its first record was written: nothing was done yet.
            None => {
                journal.remove();
                free(place, key)?
            }
        },
    })
}

/// Content of a journal.
pub(crate) struct JournalContent {
    pub(crate) job: JobRecord,
    /// Work done of the job.
    pub(crate) known: KnownWork,
    /// End of the last whole record, in bytes.
    pub(crate) end: u64,
}

/// Reads a journal; `None` if it has not even a job.
pub(crate) fn load(journal: &Journal, boot: &[u8; 16]) -> io::Result<Option<JournalContent>> {
    let mut records = journal.records();
    let first = records.next_record()?;
    let job = first.filter(|first| first.kind == record::JOB);
    let Some(job) = job.and_then(|first| record::job(first.body)) else {
        return Ok(None);
    };
    let written = journal.file().metadata()?;
    let written_ns = written.mtime().saturating_mul(1_000_000_000);
    let mut known = KnownWork::written_at(written_ns.saturating_add(written.mtime_nsec()));
    while let Some(found) = records.next_record()? {
        let body = found.body;
        match found.kind {
            record::SESSION => known.begin_run(record::session(body), boot),
            record::VOLUME => {
                if let Some((dev, name)) = record::volume(body) {
                    known.volume(dev, name);
                }
            }
            record::GIVEN => known.gives(record::given(body)),
            record::LACKING => known.lacks(body),
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
                    known.insert(done);
                }
            }
            record::PLACED => {
                if let Some((path, state)) = record::placed(body) {
                    known.placed(&path, state);
                }
            }
            record::BLOCK => {
                if let Some(block) = record::block(body) {
                    let blocks = known.blocks.entry(block.stage).or_default();
                    blocks.insert(block.number, block.parts);
                }
            }
            record::DURABLE => known.made_durable(),
            record::STAGE => known.stages.extend(record::stage(body)),
            record::RESTORES => known.is_restore = true,
            record::ASIDE => record::aside(body)
                .into_iter()
                .for_each(|aside| known.aside(aside)),
            record::KEPT => known.kept(record::kept(body)),
            record::REMOVES => known.removes = true,
            record::SITE => known.sites.extend(record::site(body)),
            record::RENAMED => known.renamed.extend(record::renamed(body)),
            record::MADE => {
                if let Some((path, made)) = record::made(body) {
                    known.made.entry(path).or_default().push(made);
                }
            }
            _ => {}
        }
    }
    Ok(Some(JournalContent {
        job,
        known,
        end: records.end(),
    }))
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

    /// Returns the descriptor by which it is written.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.file.as_deref().map(|file| file.as_fd())
    }

    /// True if there is a journal: without one nothing need be recorded.
    pub(crate) fn is_kept(&self) -> bool {
        self.lock().is_some()
    }

    /// Returns the file itself, which is not copied.
    pub(crate) fn own_file(&self) -> Option<OwnFile> {
        let held = self.lock();
        OwnFile::of(held.as_ref()?.file()).ok()
    }

    /// Appends records. A journal that can no longer be written to reports that once; its content
    /// stays valid.
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

    /// Makes the file system report what of it could not be stored.
    pub(crate) fn flush(&self) -> io::Result<()> {
        self.lock().as_ref().map_or(Ok(()), Journal::flush)
    }

    /// Removes the journal of a complete copy.
    pub(crate) fn remove(&self) {
        if let Some(journal) = self.take() {
            journal.remove();
        }
    }

    /// Takes the journal itself: nothing more is appended.
    pub(crate) fn take(&self) -> Option<Journal> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Journal>> {
        lock(&self.journal)
    }
}

#[cfg(test)]
mod tests;
