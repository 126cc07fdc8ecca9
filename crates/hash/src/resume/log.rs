//! Journal that all workers of a run write to: kept back while the run is young, created once it
//! lasts, given up where it cannot be written.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, io};

use bc_edit::journal::{Journal, Key, View};
use bc_fs::place::Place;

use super::options::{JobInputs, ReportLost};
use super::record::{self, Boot};

/// Interval at which the journal is forced to the disk: that is how much of the work a power cut
/// costs.
const SYNC_EVERY: Duration = Duration::from_secs(30);

/// Place where a journal is to be created.
#[derive(Debug)]
pub(super) struct JournalSite {
    pub(super) place: Place,
    /// The directory of the key.
    pub(super) state: Option<PathBuf>,
    /// Time when the run began, in nanoseconds since 1970, and its job.
    pub(super) created_at: i64,
    pub(super) job: JobInputs,
}

impl JournalSite {
    /// Begins the journal in its place, or beside one that is worth more.
    fn begin(self, early: &[u8], before: &mut Before) -> io::Result<Journal> {
        let key = key(self.state.as_deref())?;
        let mut piece = Vec::new();
        record::push_job(&mut piece, self.created_at, &self.job);
        record::push_session(&mut piece, &Boot::this());
        piece.extend_from_slice(early);
        match before.is_worth_more_than(piece.len() as u64) {
            true => Journal::create_beside(&self.place, &key, &mut piece),
            false => {
                before.set_aside()?;
                Journal::create(self.place, &key, &mut piece)
            }
        }
    }
}

/// Journal of an earlier run from which this one does not resume. It keeps its name as long as a
/// run that resumed from it would gain more than from this run's.
#[derive(Debug, Default)]
pub(super) struct Before {
    journal: Option<Journal>,
    /// True if that run had the same job.
    is_same: bool,
    /// Name that it has got meanwhile.
    aside: Option<OsString>,
}

impl Before {
    pub(super) fn new(journal: Journal, is_same: bool) -> Before {
        Before {
            journal: Some(journal),
            is_same,
            aside: None,
        }
    }

    fn is_worth_more_than(&self, length: u64) -> bool {
        let journal = self.journal.as_ref();
        self.is_same && journal.is_some_and(|journal| journal.length() > length)
    }

    /// True if a run that resumes finds it.
    fn is_kept(&self) -> bool {
        self.is_same && self.journal.is_some()
    }

    fn set_aside(&mut self) -> io::Result<()> {
        if let Some(journal) = self.journal.take() {
            self.aside = Some(journal.set_aside()?);
        }
        Ok(())
    }

    /// Lets another journal take its place once that is worth more.
    fn yield_to(&mut self, journal: &mut Journal) {
        if self.journal.is_some() && !self.is_worth_more_than(journal.length()) {
            let own = self.journal.take();
            // If that fails, it stays the journal that a run resumes from.
            self.aside = own.and_then(|own| journal.supersede(own).ok());
        }
    }
}

/// Returns the user's key.
pub(super) fn key(state: Option<&Path>) -> io::Result<Key> {
    let nowhere = || io::Error::other("there is no directory for the key of journals");
    Key::kept_in(state.ok_or_else(nowhere)?)
}

/// Destination of the workers' records.
pub(super) struct Log {
    state: Mutex<Inner>,
    /// True once no more records are taken.
    off: AtomicBool,
    begun: Instant,
    after: Duration,
    /// Bytes of records that are kept back.
    early: usize,
    report: ReportLost,
}

struct Inner {
    state: LogState,
    before: Before,
}

enum LogState {
    /// No file yet.
    Waiting(JournalSite, Vec<u8>),
    Open(OpenLog),
    /// Nothing more is written; the journal stays until the run is done.
    Over(Option<Journal>),
}

struct OpenLog {
    journal: Journal,
    synced: Instant,
}

impl OpenLog {
    fn new(journal: Journal) -> OpenLog {
        let synced = Instant::now();
        OpenLog { journal, synced }
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let off = self.is_off();
        f.debug_struct("Log")
            .field("off", &off)
            .finish_non_exhaustive()
    }
}

impl Log {
    fn new(
        state: LogState,
        before: Before,
        after: Duration,
        early: usize,
        report: ReportLost,
    ) -> Log {
        Log {
            off: AtomicBool::new(matches!(state, LogState::Over(_))),
            state: Mutex::new(Inner { state, before }),
            begun: Instant::now(),
            after,
            early,
            report,
        }
    }

    /// Makes a log whose journal is created `after` so long, with up to `early` bytes of earlier
    /// records. The journal that existed `before` stays as long as it is worth more.
    pub(super) fn waiting(
        site: JournalSite,
        before: Before,
        after: Duration,
        early: usize,
        report: ReportLost,
    ) -> Log {
        let state = LogState::Waiting(site, Vec::new());
        Log::new(state, before, after, early, report)
    }

    /// Makes a log of an existing journal; `head` are the first records of this run.
    pub(super) fn going_on(mut journal: Journal, mut head: Vec<u8>, report: ReportLost) -> Log {
        let state = match journal.append(&mut head) {
            Ok(()) => LogState::Open(OpenLog::new(journal)),
            Err(error) => {
                report(&format!("write: {error}"));
                LogState::Over(Some(journal))
            }
        };
        Log::new(state, Before::default(), Duration::ZERO, 0, report)
    }

    /// Makes a log that takes nothing.
    pub(super) fn off(journal: Option<Journal>, report: ReportLost) -> Log {
        let (state, before) = (LogState::Over(journal), Before::default());
        Log::new(state, before, Duration::ZERO, 0, report)
    }

    pub(super) fn is_off(&self) -> bool {
        self.off.load(Ordering::Relaxed)
    }

    /// Takes a worker's records and leaves `piece` empty; false if they were dropped.
    pub(super) fn take(&self, piece: &mut Vec<u8>) -> bool {
        let mut inner = self.lock();
        if let LogState::Waiting(_, early) = &mut inner.state
            && self.begun.elapsed() < self.after
        {
            let fits = early.len() + piece.len() <= self.early;
            if fits {
                early.append(piece);
            }
            piece.clear();
            return fits;
        }
        let due = self.write(&mut inner, piece);
        piece.clear();
        let taken = !matches!(inner.state, LogState::Over(_));
        drop(inner);
        // Others write meanwhile.
        if let Some(Err(error)) = due.map(|view| view.sync()) {
            self.give_up(&format!("sync: {error}"));
        }
        taken
    }

    /// Writes a piece; gives the file if it is time for it to be synced.
    fn write(&self, inner: &mut Inner, piece: &mut [u8]) -> Option<View> {
        let Inner { state, before } = inner;
        let over = LogState::Over(None);
        let written = match std::mem::replace(state, over) {
            LogState::Waiting(site, mut early) => {
                early.extend_from_slice(piece);
                let begun = site.begin(&early, before).map(OpenLog::new);
                let begun = begun.map(|open| *state = LogState::Open(open));
                begun.map_err(|error| match error.kind() {
                    io::ErrorKind::WouldBlock => "another run is writing it".to_owned(),
                    _ => format!("create: {error}"),
                })
            }
            LogState::Open(mut open) => {
                let written = open.journal.append(piece);
                before.yield_to(&mut open.journal);
                *state = match written {
                    Ok(()) => LogState::Open(open),
                    Err(_) => LogState::Over(Some(open.journal)),
                };
                written.map_err(|error| format!("write: {error}"))
            }
            LogState::Over(journal) => {
                *state = LogState::Over(journal);
                Ok(())
            }
        };
        if let Err(why) = written {
            self.off.store(true, Ordering::Relaxed);
            (self.report)(&why);
        }
        let LogState::Open(open) = state else {
            return None;
        };
        if open.synced.elapsed() < SYNC_EVERY {
            return None;
        }
        open.synced = Instant::now();
        open.journal.view().ok()
    }

    fn give_up(&self, why: &str) {
        let mut inner = self.lock();
        if let LogState::Open(open) = std::mem::replace(&mut inner.state, LogState::Over(None)) {
            inner.state = LogState::Over(Some(open.journal));
            self.off.store(true, Ordering::Relaxed);
            (self.report)(why);
        }
    }

    /// True if an interruption now leaves a journal, as far as the file system reports.
    pub(super) fn is_kept(&self) -> bool {
        let flushed = self.with(Journal::flush);
        if let Some(Err(error)) = flushed {
            self.give_up(&format!("close: {error}"));
            return false;
        }
        let inner = self.lock();
        let is_own = match &inner.state {
            LogState::Waiting(..) => false,
            LogState::Open(_) => true,
            LogState::Over(journal) => journal.is_some(),
        };
        is_own || inner.before.is_kept()
    }

    /// Ends the run before it is done: of two journals the one stays from which another run
    /// resumes.
    pub(super) fn leave(&self) {
        self.off.store(true, Ordering::Relaxed);
        let mut inner = self.lock();
        if !inner.before.is_kept() {
            return;
        }
        match std::mem::replace(&mut inner.state, LogState::Over(None)) {
            LogState::Open(open) => open.journal.remove(),
            LogState::Over(Some(journal)) => journal.remove(),
            LogState::Waiting(..) | LogState::Over(None) => {}
        }
    }

    /// Ends a run that is done: its journal is removed, and an earlier one keeps its other name.
    pub(super) fn remove(&self) {
        self.off.store(true, Ordering::Relaxed);
        let mut inner = self.lock();
        match std::mem::replace(&mut inner.state, LogState::Over(None)) {
            LogState::Open(open) => open.journal.remove(),
            LogState::Over(Some(journal)) => journal.remove(),
            LogState::Waiting(..) | LogState::Over(None) => {}
        }
        // If it keeps its name, the next run finds it, and reports it.
        let _ = inner.before.set_aside();
    }

    /// Returns the name that an earlier journal was given, if it was renamed.
    pub(super) fn aside(&self) -> Option<OsString> {
        self.lock().before.aside.clone()
    }

    /// Calls `f` with the journal, if there is one: of this run or of the one before.
    pub(super) fn with<T>(&self, f: impl FnOnce(&Journal) -> T) -> Option<T> {
        let inner = self.lock();
        match &inner.state {
            LogState::Open(open) => Some(f(&open.journal)),
            LogState::Over(Some(journal)) => Some(f(journal)),
            LogState::Waiting(..) | LogState::Over(None) => inner.before.journal.as_ref().map(f),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
