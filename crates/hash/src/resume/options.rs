//! Options for recording a run, and the way one begins.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use bc_digest::Algorithm;
use bc_fs::place::Place;

use super::job::JobInputs;
use super::log::Tell;

/// Treatment of the journal of an earlier run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Earlier {
    /// Renamed, once this run has recorded more or is done.
    #[default]
    SetAside,
    /// Resumed from by this run, which is refused if it cannot.
    GoOn,
}

/// Intervals and sizes of recording a run.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Pace {
    /// A run that takes less time leaves no journal. One that is to resume from an earlier one, be
    /// there one or not, is recorded from its beginning.
    pub after: Duration,
    /// Time for which a worker that finishes files keeps their records to itself: as much is lost
    /// if the process is killed.
    pub every: Duration,
    /// Bytes of records that a worker keeps to itself at most, but for one.
    pub piece: usize,
    /// Bytes of records of the time before `after`; the files beyond are read again. By
    /// default 290,000 files have room with digests of 64 bytes, 400,000 with 32.
    pub early: usize,
}

bc_fs::setters! {
    Pace:
    after: Duration,
    every: Duration,
    piece: usize,
    early: usize,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            after: Duration::from_secs(10),
            every: Duration::from_secs(1),
            piece: 64 << 10,
            early: 32 << 20,
        }
    }
}

/// Options for recording a run.
#[non_exhaustive]
pub struct ResumeOptions {
    /// Place of the journal.
    pub place: Place,
    /// The directory of the user's [key](bc_edit::journal::Key); `None` if the user has none, and then there are no
    /// journals.
    pub state: Option<PathBuf>,
    /// Description of the run's work.
    pub job: JobInputs,
    /// Digests of each file.
    pub algorithms: Vec<Algorithm>,
    /// Treatment of an earlier journal.
    pub earlier: Earlier,
    /// Intervals and sizes of recording.
    pub pace: Pace,
    /// The time now, in nanoseconds since 1970.
    pub now: i64,
    /// Called if no more can be recorded; the run continues.
    pub report: Tell,
}

impl ResumeOptions {
    /// Makes options for a run with this job, at this time in nanoseconds since 1970, and a
    /// function to call if no more can be recorded: without a key, and an earlier journal is set
    /// aside.
    pub fn new(
        place: Place,
        job: JobInputs,
        algorithms: Vec<Algorithm>,
        now: i64,
        report: Tell,
    ) -> ResumeOptions {
        ResumeOptions {
            place,
            state: None,
            job,
            algorithms,
            earlier: Earlier::default(),
            pace: Pace::default(),
            now,
            report,
        }
    }
}

bc_fs::setters! {
    ResumeOptions:
    state: Option<PathBuf>,
    earlier: Earlier,
    pace: Pace,
}

/// Beginning of a recorded run.
#[derive(Debug)]
#[non_exhaustive]
pub enum Beginning {
    /// New: there is no earlier journal.
    New,
    /// Beside an earlier journal, which keeps its name until this run has recorded more, or is
    /// done.
    Kept {
        /// True if it is of a run with the same job, so that another run would resume from it.
        is_same: bool,
    },
    /// New: there is no journal to resume from; one that was set aside has this name.
    Anew(OsString),
    /// Not recorded: the existing file cannot be set aside, with the reason.
    Without(String),
    /// Resumed with the files that an earlier run has read.
    GoesOn {
        /// Files, in the states in which they were then.
        files: u64,
        /// Bytes at the end that are no whole records, of a run that was killed or of a damaged
        /// file.
        lost: u64,
    },
}

/// Reason why a run cannot resume from the existing journal.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refused(String);

impl Refused {
    pub(super) fn new(why: impl Into<String>) -> Refused {
        Refused(why.into())
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

/// Files that were not read, because an earlier run has read them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Taken {
    /// Number of files; of several names of one file the first.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Taken {
    /// Adds another's.
    pub fn merge(&mut self, other: Taken) {
        self.files += other.files;
        self.bytes += other.bytes;
    }
}
