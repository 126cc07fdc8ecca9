//! More workers for a walk that waits for its storage.

mod meter;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit};

use self::meter::Meter;
use crate::Workers;

/// Walks this long on the caller's thread before it starts others: about what starting a
/// thread costs, so a small tree never does and a large one loses nothing that counts.
const ALONE: Duration = Duration::from_micros(250);

/// A worker looks at its clocks this often. That takes some 200 ns; a cold disk has answered a
/// dozen requests in the meantime.
const WINDOW: Duration = Duration::from_millis(2);

/// Windows per worker from one decision to the next.
const WINDOWS: u32 = 2;

/// There are more workers if those there are have waited for more than one part in so many. With
/// everything cached it was less than one in 30, also while other processes took the CPUs; with
/// nothing cached two workers on two CPUs waited for two in five, and four for one in six.
const WAITED: u32 = 8;

/// Descriptors that a worker may hold: those of the directories above, of the one that it reads
/// and of the steps to it, an ignore file and the meter's.
const DESCRIPTORS: u64 = 16;

/// When a walk gets more workers. Nothing but the time that it takes depends on it.
pub(crate) struct Tuning {
    /// How long the caller's thread is alone.
    pub(crate) alone: Duration,
    /// How soon those that wait for storage are joined by others.
    pub(crate) pace: Pace,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            alone: ALONE,
            pace: Pace::default(),
        }
    }
}

/// How often to look at what.
pub(crate) struct Pace {
    pub(crate) window: Duration,
    #[cfg(test)]
    pub(crate) pretend: Option<Box<Pretend>>,
}

/// Asked instead of the clocks: for how much of the time that a worker has been at work had it
/// the CPU or wanted it?
#[cfg(test)]
pub(crate) type Pretend = dyn Fn(Duration) -> Duration + Sync;

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            window: WINDOW,
            #[cfg(test)]
            pretend: None,
        }
    }
}

/// Decides whether there are to be more workers, from what all of them report.
pub(crate) struct AdaptiveWorkers<'g> {
    /// How many more would find something to do.
    waiting: &'g (dyn Fn() -> usize + Sync),
    pace: &'g Pace,
    /// There will be no more: nobody need look any longer.
    over: AtomicBool,
    state: Mutex<State>,
}

struct State {
    workers: usize,
    most: usize,
    /// Since the last decision, of all workers together.
    spent: Spent,
}

#[derive(Clone, Copy, Default)]
struct Spent {
    /// The time between taking directories and being done with them.
    busy: Duration,
    /// What of that the worker had the CPU or wanted it; the rest it waited.
    running: Duration,
}

impl<'g> AdaptiveWorkers<'g> {
    pub(crate) fn new(
        workers: Workers,
        pace: &'g Pace,
        waiting: &'g (dyn Fn() -> usize + Sync),
    ) -> AdaptiveWorkers<'g> {
        AdaptiveWorkers {
            waiting,
            pace,
            over: AtomicBool::new(workers.most() == workers.usual()),
            state: Mutex::new(State {
                workers: workers.usual(),
                most: workers.most(),
                spent: Spent::default(),
            }),
        }
    }

    /// For a worker, with a way to start another that says whether it did; `None` if there are
    /// as many as there will be.
    pub(crate) fn watch(&'g self, spawn: &'g dyn Fn() -> bool) -> Option<Watch<'g>> {
        let is_over = self.over.load(Ordering::Relaxed);
        (!is_over).then(|| Watch {
            adaptive: self,
            spawn,
            meter: Meter::new(),
            since: Instant::now(),
            busy: Duration::ZERO,
        })
    }

    /// Takes a worker's report, and when enough has been reported, decides.
    fn note(&self, spent: Spent, spawn: &dyn Fn() -> bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.spent.busy += spent.busy;
        state.spent.running += spent.running.min(spent.busy);
        if state.spent.busy < self.pace.window * WINDOWS * state.workers as u32 {
            return;
        }
        let Spent { busy, running } = std::mem::take(&mut state.spent);
        if (busy - running) * WAITED <= busy || self.over.load(Ordering::Relaxed) {
            return;
        }
        // Twice as many: what they wait for may be all that holds them up.
        let most = state.most.min(affordable()).max(state.workers);
        let more = state
            .workers
            .min((self.waiting)())
            .min(most - state.workers);
        let started = (0..more).take_while(|_| spawn()).count();
        state.workers += started;
        if state.workers == most || started < more {
            self.over.store(true, Ordering::Relaxed);
        }
    }
}

/// The number of workers for which the descriptors suffice, with half of them for others.
fn affordable() -> usize {
    affordable_below(getrlimit(Resource::Nofile).current)
}

fn affordable_below(limit: Option<u64>) -> usize {
    limit.map_or(usize::MAX, |limit| (limit / 2 / DESCRIPTORS) as usize)
}

/// One worker's view of its time, for [`AdaptiveWorkers`].
pub(crate) struct Watch<'g> {
    adaptive: &'g AdaptiveWorkers<'g>,
    spawn: &'g dyn Fn() -> bool,
    meter: Meter,
    /// When what it is doing began, or was looked at last.
    since: Instant,
    busy: Duration,
}

impl<'g> Watch<'g> {
    /// Called when the worker has got something to do: it had nothing before.
    pub(crate) fn begin(&mut self) {
        if !self.adaptive.over.load(Ordering::Relaxed) {
            self.since = Instant::now();
        }
    }

    /// Called when it is done, and every now and then until then.
    pub(crate) fn look(&mut self) {
        if self.adaptive.over.load(Ordering::Relaxed) {
            return;
        }
        let now = Instant::now();
        self.busy += now - self.since;
        self.since = now;
        if self.busy < self.adaptive.pace.window {
            return;
        }
        let busy = std::mem::take(&mut self.busy);
        if let Some(running) = self.running(busy) {
            self.adaptive.note(Spent { busy, running }, self.spawn);
            self.since = Instant::now();
        }
    }

    fn running(&mut self, busy: Duration) -> Option<Duration> {
        #[cfg(test)]
        if let Some(pretend) = &self.adaptive.pace.pretend {
            return Some(pretend(busy));
        }
        self.meter.lap(busy, busy / WAITED)
    }
}

#[cfg(test)]
mod tests;
