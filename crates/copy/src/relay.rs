//! Events of workers that have tables of descriptors of their own. An observer of a copy may own
//! descriptors, of an output say, whose numbers are other files in such a table, or none: so an
//! observer is called by threads of the shared table alone.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ThreadId};

use crate::event::{Event, Observer, Why};

/// An observer, and events that wait until a thread comes round that may call it.
pub(crate) struct Relay<'a> {
    observer: &'a Observer<'a>,
    /// The thread that began the copy: it is worker 0 of all runs, and keeps the shared table.
    home: ThreadId,
    /// True while there are workers with tables of their own.
    is_apart: AtomicBool,
    waiting: Mutex<Vec<Waiting>>,
}

/// An event that owns its values.
enum Waiting {
    Made(Vec<u8>),
    Copied(Vec<u8>),
    Replaced(Vec<u8>),
    Skipped(Vec<u8>, Why),
    Failed(bc_walk::Error),
    Incomplete(bc_walk::Error),
    Note(String),
    Warning(String),
}

impl Waiting {
    fn of(event: Event<'_>) -> Waiting {
        match event {
            Event::Made(path) => Waiting::Made(path.to_vec()),
            Event::Copied(path) => Waiting::Copied(path.to_vec()),
            Event::Replaced(path) => Waiting::Replaced(path.to_vec()),
            Event::Skipped(path, why) => Waiting::Skipped(path.to_vec(), why),
            Event::Failed(error) => Waiting::Failed(error.clone()),
            Event::Incomplete(error) => Waiting::Incomplete(error.clone()),
            Event::Note(text) => Waiting::Note(text.to_owned()),
            Event::Warning(text) => Waiting::Warning(text.to_owned()),
        }
    }

    fn event(&self) -> Event<'_> {
        match self {
            Waiting::Made(path) => Event::Made(path),
            Waiting::Copied(path) => Event::Copied(path),
            Waiting::Replaced(path) => Event::Replaced(path),
            Waiting::Skipped(path, why) => Event::Skipped(path, *why),
            Waiting::Failed(error) => Event::Failed(error),
            Waiting::Incomplete(error) => Event::Incomplete(error),
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

    /// Reports an event, from any thread.
    pub(crate) fn report(&self, event: Event<'_>) {
        if self.is_apart.load(Relaxed) {
            if thread::current().id() != self.home {
                self.lock().push(Waiting::of(event));
                return;
            }
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
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
