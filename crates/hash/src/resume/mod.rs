//! Resuming of interrupted runs.
//!
//! A run that lasts keeps a [journal](bc_edit::journal) of the files it has read: identity, stamp and
//! digests. The run that resumes opens every file all the same, and skips those that their `fstat`
//! shows to be the recorded file in the recorded state.
//!
//! Invariants:
//! - A record is believed only if its checksum is right, its journal is this user's and of the
//!   same [`JobInputs`](crate::resume::JobInputs), and the file system is one where inode, size, mtime and ctime prove a content.
//! - No file is recorded that was written to shortly before the run began, or since: a second
//!   write could leave the same times.
//! - Files read before a power cut, or before their file system was mounted again, count only if
//!   the bytes came from the disk.
//! - A defect of the journal costs time, never a result.
//! - The journal of an interrupted run keeps its name until there is one with more records.

mod known;
mod log;
mod options;
mod record;
mod worker_records;

use std::ffi::OsString;
use std::time::Duration;

use bc_edit::journal::{FoundJournal, Journal, LONGEST};
use bc_pool::Cancel;
use bc_walk::OwnFile;

use known::{JournalFiles, Loaded};
use log::{Before, JournalSite, Log};
use record::Boot;

pub use options::{Beginning, Earlier, JobInputs, Pace, Refused, ReportLost, ResumeOptions};
pub(crate) use worker_records::WorkerRecords;

/// A run that is recorded, and the records of an earlier one.
#[derive(Debug)]
pub struct Resume {
    log: Log,
    known: Option<JournalFiles>,
    pace: Pace,
    created_at: i64,
    /// Files with later times are not at rest.
    rest_ns: i64,
}

impl Resume {
    /// Begins to record a run, before it looks at any file.
    ///
    /// # Errors
    /// With [`Earlier::GoOn`], the reason why it cannot resume from the existing file.
    pub fn begin(options: ResumeOptions, cancel: &Cancel) -> Result<(Resume, Beginning), Refused> {
        let ResumeOptions { now, pace, .. } = options;
        let resume = |log, known, created_at| Resume {
            log,
            known,
            pace,
            created_at,
            rest_ns: bc_read::at_rest_before(now),
        };
        let going_on = options.earlier == Earlier::GoOn;
        let journal = match look(&options) {
            Ok(Some(journal)) => journal,
            Ok(None) => {
                let beginning = match options.set_aside_earlier().filter(|_| going_on) {
                    Some(aside) => Beginning::Anew(aside),
                    None => Beginning::New,
                };
                let log = options.new_log(Before::default());
                return Ok((resume(log, None, now), beginning));
            }
            Err(why) if going_on => return Err(Refused::new(why)),
            Err(why) => {
                let log = Log::off(None, options.report);
                return Ok((resume(log, None, now), Beginning::Without(why)));
            }
        };
        if !going_on {
            let job = known::job_of(&journal);
            let is_same = job.is_some_and(|job| options.job.difference(&job).is_none());
            let log = options.new_log(Before::new(journal, is_same));
            return Ok((resume(log, None, now), Beginning::Kept { is_same }));
        }
        let boot = Boot::this();
        let lengths = options.algorithms.iter().map(|a| a.digest_len()).collect();
        let loaded = known::load(&journal, lengths, boot, cancel);
        let loaded = loaded.map_err(|error| Refused::new(format!("read: {error}")))?;
        let Some(loaded) = loaded else {
            // A cancelled run ends before it could do anything with it.
            let nothing = Beginning::GoesOn { files: 0, lost: 0 };
            return match cancel.is_cancelled() {
                true => Ok((resume(Log::off(None, options.report), None, now), nothing)),
                false => Err(Refused::new("damaged: its first record is not whole")),
            };
        };
        let Loaded {
            known,
            created_at,
            job,
            end,
        } = loaded;
        if let Some(difference) = options.job.difference(&job) {
            return Err(Refused::new(format!(
                "of another run than this one: {difference}"
            )));
        }
        let beginning = Beginning::GoesOn {
            files: known.files(),
            lost: journal.length() - end,
        };
        let log = go_on(journal, end, boot, options.report);
        Ok((resume(log, Some(known), created_at), beginning))
    }

    /// Returns the time when the first of the runs began, in nanoseconds since 1970.
    pub fn created_at(&self) -> i64 {
        self.created_at
    }

    /// Returns the bytes of memory for the records of an earlier run. The records of this one that
    /// are kept back take at most those of its [`Pace`], and a [`piece`](Pace::piece) for each
    /// worker.
    pub fn memory(&self) -> u64 {
        self.known.as_ref().map_or(0, JournalFiles::memory)
    }

    /// Returns the journal, for the walk to leave it out, if it exists before the walk.
    pub fn own_file(&self) -> Option<OwnFile> {
        let own = self.log.with(|journal| OwnFile::of(journal.file()).ok());
        own.flatten()
    }

    /// True if an interruption now leaves a journal to resume from.
    pub(crate) fn is_kept(&self) -> bool {
        self.log.is_kept()
    }

    /// Ends a run whose result has been written: the journal is removed, and one of an earlier run
    /// [set aside](Self::aside).
    pub fn done(&self) {
        self.log.remove();
    }

    /// Ends a run without a result: the journal stays from which the next run resumes. True if
    /// there is one.
    pub fn leave(&self) -> bool {
        self.log.leave();
        self.is_kept()
    }

    /// Returns the new name of an earlier run's journal, which this one did not resume from.
    pub fn aside(&self) -> Option<OsString> {
        self.log.aside()
    }
}

impl ResumeOptions {
    /// Returns the name of a journal that an earlier run has set aside, if there is one.
    fn set_aside_earlier(&self) -> Option<OsString> {
        let place = self.place.beside("-1").ok()?;
        place.existing().ok()??;
        let key = log::key(self.state.as_deref()).ok()?;
        let found = Journal::open(&place, &key);
        matches!(found, Ok(FoundJournal::Journal(_))).then(|| place.name().to_owned())
    }

    /// Returns the log of a run that is the first.
    fn new_log(self, before: Before) -> Log {
        // A record has a longest length: a run with so many roots is not recorded.
        if self.job.encoded_len() + 64 > LONGEST {
            (self.report)("too many roots and options for its first record");
            return Log::off(None, self.report);
        }
        let after = match self.earlier {
            Earlier::SetAside => self.pace.after,
            Earlier::GoOn => Duration::ZERO,
        };
        let site = JournalSite {
            place: self.place,
            state: self.state,
            created_at: self.now,
            job: self.job,
        };
        Log::waiting(site, before, after, self.pace.early, self.report)
    }
}

/// Returns the existing journal; `None` if there is no file. Fails with the reason why it is none
/// of ours.
fn look(options: &ResumeOptions) -> Result<Option<Journal>, String> {
    match options.place.existing() {
        Ok(None) => return Ok(None),
        Ok(Some(_)) => {}
        // No file can have such a name.
        Err(error) if error.kind() == std::io::ErrorKind::InvalidFilename => return Ok(None),
        Err(error) => return Err(error.to_string()),
    }
    let key = log::key(options.state.as_deref()).map_err(|error| error.to_string())?;
    match Journal::open(&options.place, &key) {
        Ok(FoundJournal::Nothing) => Ok(None),
        Ok(FoundJournal::Journal(journal)) => Ok(Some(journal)),
        Ok(FoundJournal::Busy) => Err("another run is writing it".to_owned()),
        Ok(FoundJournal::Foreign(why)) => Err(why),
        Err(error) => Err(format!("read: {error}")),
    }
}

/// Cuts a journal after its last whole record and begins this run's part of it.
fn go_on(mut journal: Journal, end: u64, boot: Boot, report: ReportLost) -> Log {
    if let Err(error) = journal.cut(end) {
        report(&format!("truncate: {error}"));
        return Log::off(Some(journal), report);
    }
    let mut head = Vec::new();
    record::push_session(&mut head, &boot);
    Log::going_on(journal, head, report)
}

#[cfg(test)]
mod tests;
