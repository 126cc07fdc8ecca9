//! Events reported during a copy, its progress and its result; and the relay by which events reach
//! their observer.
//!
//! Workers may have tables of descriptors of their own. An observer may own descriptors, of an
//! output say, whose numbers are other files in such a table, or none: so an observer is called by
//! threads of the shared table alone.

use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;
use std::thread::ThreadId;

use bc_walk::Skipped;

use crate::lock;

/// Event about one path. Paths are those of the destination, as they are shown. Events of entries
/// come in the bytewise order of their paths, each once all entries before it are done; failures of
/// the walk come before them, and what directories lack in the end comes last.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A directory was made, or would be.
    Made(&'a [u8]),
    /// The file was copied, or would be, to a name that was free.
    Copied(&'a [u8]),
    /// The file was copied, or would be, in the place of something else.
    Replaced(&'a [u8]),
    /// An existing file was left, with the reason.
    Skipped(&'a [u8], Why),
    /// The entry failed: source or destination, operation and reason.
    Failed(&'a bc_walk::Error),
    /// The file was copied, but could not be given some metadata of its source: path, operation and
    /// reason.
    Incomplete(&'a bc_walk::Error),
    /// The copy gets this path in a directory that is itself the copy of a source of such a kind, as
    /// where a complete copy to a new name is repeated.
    Nested(&'a [u8]),
    /// Note on the method of copying.
    Note(&'a str),
    /// Warning for the user that is no failure of a file.
    Warning(&'a str),
}

/// Reason for which something was left as it was.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Why {
    /// An earlier run of the same copy has done it.
    Done,
    /// The name is taken.
    Exists,
    /// The existing file is not older.
    NotNewer,
    /// The existing file has the same content.
    Same,
    /// The manifest of this copy takes its place.
    Manifest,
}

impl Why {
    /// Returns the reason in words.
    pub const fn text(self) -> &'static str {
        match self {
            Why::Done => "done by an earlier run",
            Why::Exists => "exists",
            Why::NotNewer => "not newer",
            Why::Same => "has the same content",
            Why::Manifest => "the manifest of this copy takes its place",
        }
    }
}

/// Receiver of events, called by any thread that has the caller's table of descriptors, one at a time
/// with events of entries: events of workers with [tables of their own](bc_pool::Tables::private) are
/// passed on by the thread that began the copy.
pub type Observer<'a> = dyn Fn(Event<'_>) + Sync + 'a;

/// Progress of a copy, updated while it runs.
#[derive(Debug, Default)]
pub struct CopyProgress {
    /// Entries that are done.
    pub files: AtomicU64,
    /// Bytes that are copied.
    pub bytes: AtomicU64,
    /// All entries, once they are known.
    pub files_total: AtomicU64,
    /// All bytes.
    pub bytes_total: AtomicU64,
}

/// Result of a copy.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Copied {
    /// Entries that were walked: the sum of the next four.
    pub walked: u64,
    /// Copied, by this run or an earlier one of the same copy.
    pub copied: u64,
    /// Left out because of an existing file.
    pub skipped: u64,
    /// Failed.
    pub failed: u64,
    /// Not started: the destination is full, or the run was interrupted.
    pub left: u64,
    /// Number of regular files among those copied.
    pub files: u64,
    /// Number of copied entries that an earlier run had done.
    pub before: u64,
    /// Bytes written by this run.
    pub bytes: u64,
    /// Bytes of the files that are left or failed.
    pub bytes_left: u64,
    /// Properties that could not be given.
    pub incomplete: u64,
    /// Reason for which the rest was not begun, where the destination refuses more.
    pub stopped: Option<String>,
    /// Entries that filters left out.
    pub filtered: Skipped,
    /// Directories read.
    pub directories: u64,
    /// Path of the manifest, if one was written.
    pub manifest: Option<Vec<u8>>,
    /// True if a journal is left, so that the same command can resume.
    pub resumable: bool,
    /// True if the run ended before its manifest was due, and before anything was forced to the disk.
    pub(crate) is_cut: bool,
}

/// An observer, and messages that wait until a thread comes round that may call it.
pub(crate) struct Relay<'a> {
    observer: &'a Observer<'a>,
    /// The thread that began the copy: it is worker 0 of all runs, and keeps the shared table.
    home: ThreadId,
    /// True while there are workers with tables of their own.
    is_apart: AtomicBool,
    waiting: Mutex<Vec<Waiting>>,
}

/// A message that owns its text. No other event waits: reports about entries are
/// [given](crate::report) by a thread that may call the observer.
enum Waiting {
    Note(String),
    Warning(String),
}

impl Waiting {
    fn of(event: Event<'_>) -> Option<Waiting> {
        match event {
            Event::Note(text) => Some(Waiting::Note(text.to_owned())),
            Event::Warning(text) => Some(Waiting::Warning(text.to_owned())),
            _ => None,
        }
    }

    fn event(&self) -> Event<'_> {
        match self {
            Waiting::Note(text) => Event::Note(text),
            Waiting::Warning(text) => Event::Warning(text),
        }
    }
}

impl<'a> Relay<'a> {
    /// To be made by the thread that begins the copy.
    pub(crate) fn new(observer: &'a Observer<'a>) -> Relay<'a> {
        Relay {
            observer,
            home: thread::current().id(),
            is_apart: AtomicBool::new(false),
            waiting: Mutex::default(),
        }
    }

    /// True if this thread may call the observer.
    pub(crate) fn is_open(&self) -> bool {
        !self.is_apart.load(Relaxed) || thread::current().id() == self.home
    }

    /// Reports an event; from threads that may not call the observer only messages come.
    pub(crate) fn report(&self, event: Event<'_>) {
        if !self.is_open() {
            self.lock().extend(Waiting::of(event));
            return;
        }
        if self.is_apart.load(Relaxed) {
            self.deliver();
        }
        (self.observer)(event);
    }

    /// Runs `f`, whose workers but this thread have tables of their own.
    pub(crate) fn apart<T>(&self, f: impl FnOnce() -> T) -> T {
        self.is_apart.store(true, Relaxed);
        let done = f();
        self.is_apart.store(false, Relaxed);
        self.deliver();
        done
    }

    /// Reports the waiting events. Nothing is held while the observer is called.
    fn deliver(&self) {
        let waiting = std::mem::take(&mut *self.lock());
        for one in &waiting {
            (self.observer)(one.event());
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Waiting>> {
        lock(&self.waiting)
    }
}

/// Outcome of an entry as it is reported.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum EntryReport {
    /// No line: a directory that was there, or a failure.
    Quiet,
    Made,
    Copied,
    Replaced,
    Skipped(Why),
}

impl EntryReport {
    pub(crate) const ALL: [EntryReport; 9] = [
        EntryReport::Quiet,
        EntryReport::Made,
        EntryReport::Copied,
        EntryReport::Replaced,
        EntryReport::Skipped(Why::Done),
        EntryReport::Skipped(Why::Exists),
        EntryReport::Skipped(Why::NotNewer),
        EntryReport::Skipped(Why::Same),
        EntryReport::Skipped(Why::Manifest),
    ];

    pub(crate) fn event(self, shown: &[u8]) -> Option<Event<'_>> {
        match self {
            EntryReport::Quiet => None,
            EntryReport::Made => Some(Event::Made(shown)),
            EntryReport::Copied => Some(Event::Copied(shown)),
            EntryReport::Replaced => Some(Event::Replaced(shown)),
            EntryReport::Skipped(why) => Some(Event::Skipped(shown, why)),
        }
    }

    /// Returns the byte that stands for it: its number in the table, from 1.
    pub(crate) fn mark(self) -> u8 {
        let at = EntryReport::ALL.iter().position(|one| *one == self);
        at.map_or(1, |at| at as u8 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_lead_back_to_reports() {
        for report in EntryReport::ALL {
            assert_eq!(EntryReport::ALL[usize::from(report.mark()) - 1], report);
        }
    }
}
