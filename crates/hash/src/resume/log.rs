//! The journal that all workers of a run write to: kept back while the run is young, begun once it
//! lasts, given up where it cannot be written.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bc_fs::journal::{Journal, Key, View};
use bc_fs::place::Place;

use super::boot::Boot;
use super::job::Job;
use super::record;

/// How often the journal is forced to the disk: that is how much of the work a power cut costs.
const SYNC_EVERY: Duration = Duration::from_secs(30);

/// Where a journal is to be begun.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) place: Place,
    /// The directory of the key.
    pub(super) state: Option<PathBuf>,
    /// When the run began, in nanoseconds since 1970, and what it is about.
    pub(super) created_at: i64,
    pub(super) job: Job,
}

impl Site {
    fn begin(self, early: &[u8]) -> io::Result<Journal> {
        let key = key(self.state.as_deref())?;
        let mut piece = Vec::new();
        record::push_job(&mut piece, self.created_at, &self.job);
        record::push_session(&mut piece, &Boot::this());
        piece.extend_from_slice(early);
        Journal::create(self.place, &key, &mut piece)
    }
}

/// The user's key.
pub(super) fn key(state: Option<&Path>) -> io::Result<Key> {
    let nowhere = || io::Error::other("there is no directory for the key of journals");
    Key::kept_in(state.ok_or_else(nowhere)?)
}

/// Told once, in words, that no more can be kept, and why.
pub type Tell = Box<dyn Fn(&str) + Send + Sync>;

/// Where the workers' records go.
pub(super) struct Log {
    state: Mutex<State>,
    /// Nothing is taken any more.
    off: AtomicBool,
    begun: Instant,
    after: Duration,
    /// Bytes of records that are kept back.
    early: usize,
    tell: Tell,
}

enum State {
    /// There is no file yet.
    Waiting(Site, Vec<u8>),
    Open(Open),
    /// Nothing more is written; what was stays until the run is done.
    Over(Option<Journal>),
}

struct Open {
    journal: Journal,
    synced: Instant,
}

impl Open {
    fn new(journal: Journal) -> Open {
        let synced = Instant::now();
        Open { journal, synced }
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
    fn new(state: State, after: Duration, early: usize, tell: Tell) -> Log {
        Log {
            off: AtomicBool::new(matches!(state, State::Over(_))),
            state: Mutex::new(state),
            begun: Instant::now(),
            after,
            early,
            tell,
        }
    }

    /// One that is begun `after` so long, with up to `early` bytes of what came before.
    pub(super) fn waiting(site: Site, after: Duration, early: usize, tell: Tell) -> Log {
        Log::new(State::Waiting(site, Vec::new()), after, early, tell)
    }

    /// One that is there already; `head` are the first records of this run.
    pub(super) fn going_on(mut journal: Journal, mut head: Vec<u8>, tell: Tell) -> Log {
        let state = match journal.append(&mut head) {
            Ok(()) => State::Open(Open::new(journal)),
            Err(error) => {
                tell(&format!("write: {error}"));
                State::Over(Some(journal))
            }
        };
        Log::new(state, Duration::ZERO, 0, tell)
    }

    /// One that takes nothing.
    pub(super) fn off(journal: Option<Journal>, tell: Tell) -> Log {
        Log::new(State::Over(journal), Duration::ZERO, 0, tell)
    }

    pub(super) fn is_off(&self) -> bool {
        self.off.load(Ordering::Relaxed)
    }

    /// Takes a worker's records and leaves `piece` empty; false if they were dropped.
    pub(super) fn take(&self, piece: &mut Vec<u8>) -> bool {
        let mut state = self.lock();
        if let State::Waiting(_, early) = &mut *state
            && self.begun.elapsed() < self.after
        {
            let fits = early.len() + piece.len() <= self.early;
            if fits {
                early.append(piece);
            }
            piece.clear();
            return fits;
        }
        let due = self.write(&mut state, piece);
        piece.clear();
        let taken = !matches!(*state, State::Over(_));
        drop(state);
        // Others write meanwhile.
        if let Some(Err(error)) = due.map(|view| view.sync()) {
            self.give_up(&format!("sync: {error}"));
        }
        taken
    }

    /// Writes a piece; gives the file if it is time for it to be synced.
    fn write(&self, state: &mut State, piece: &mut [u8]) -> Option<View> {
        let over = State::Over(None);
        let written = match std::mem::replace(state, over) {
            State::Waiting(site, mut early) => {
                early.extend_from_slice(piece);
                let begun = site.begin(&early).map(Open::new);
                let begun = begun.map(|open| *state = State::Open(open));
                begun.map_err(|error| match error.kind() {
                    io::ErrorKind::WouldBlock => "another run is writing it".to_owned(),
                    _ => format!("create: {error}"),
                })
            }
            State::Open(mut open) => {
                let written = open.journal.append(piece);
                *state = match written {
                    Ok(()) => State::Open(open),
                    Err(_) => State::Over(Some(open.journal)),
                };
                written.map_err(|error| format!("write: {error}"))
            }
            State::Over(journal) => {
                *state = State::Over(journal);
                Ok(())
            }
        };
        if let Err(why) = written {
            self.off.store(true, Ordering::Relaxed);
            (self.tell)(&why);
        }
        let State::Open(open) = state else {
            return None;
        };
        if open.synced.elapsed() < SYNC_EVERY {
            return None;
        }
        open.synced = Instant::now();
        open.journal.view().ok()
    }

    fn give_up(&self, why: &str) {
        let mut state = self.lock();
        if let State::Open(open) = std::mem::replace(&mut *state, State::Over(None)) {
            *state = State::Over(Some(open.journal));
            self.off.store(true, Ordering::Relaxed);
            (self.tell)(why);
        }
    }

    /// Whether an interruption now leaves a journal, as far as the file system says.
    pub(super) fn is_kept(&self) -> bool {
        let flushed = self.with(Journal::flush);
        if let Some(Err(error)) = flushed {
            self.give_up(&format!("close: {error}"));
            return false;
        }
        match &*self.lock() {
            State::Waiting(..) => false,
            State::Open(_) => true,
            State::Over(journal) => journal.is_some(),
        }
    }

    /// The run is done: nothing is kept of it.
    pub(super) fn remove(&self) {
        self.off.store(true, Ordering::Relaxed);
        match std::mem::replace(&mut *self.lock(), State::Over(None)) {
            State::Open(open) => open.journal.remove(),
            State::Over(Some(journal)) => journal.remove(),
            State::Waiting(..) | State::Over(None) => {}
        }
    }

    /// Calls `f` with the journal, if there is one.
    pub(super) fn with<T>(&self, f: impl FnOnce(&Journal) -> T) -> Option<T> {
        match &*self.lock() {
            State::Open(open) => Some(f(&open.journal)),
            State::Over(Some(journal)) => Some(f(journal)),
            State::Waiting(..) | State::Over(None) => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
