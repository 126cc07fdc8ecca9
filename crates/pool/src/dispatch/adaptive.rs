//! More workers for a run that waits for its storage.

mod meter;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit};

use self::meter::Meter;
use super::Workers;

/// A worker looks at its clocks this often. That takes some 200 ns; a cold disk has answered a
/// dozen requests in the meantime.
const WINDOW: Duration = Duration::from_millis(2);

/// Windows per worker from one decision to the next.
const WINDOWS: u32 = 2;

/// Part of the time, one in so many, above which waiting calls for more workers. With everything
/// cached the workers waited for less than one in 30, also while other processes took the CPUs;
/// with nothing cached two workers on two CPUs waited for two in five, and four for one in six.
const WAITED: u32 = 8;

/// Descriptors that a worker may hold: those of the directories above, of the one that it reads
/// and of the steps to it, an ignore file and the meter's.
const DESCRIPTORS: u64 = 16;

/// Interval after which workers that wait for storage are joined by others. Only the duration of a
/// run depends on it.
pub struct Pace {
    /// Time at work after which a worker looks at its clocks.
    pub window: Duration,
    /// Replacement of the clocks in tests: from the time that a worker has been at work, the part
    /// in which it had the CPU or wanted it.
    pub pretend: Option<Box<Pretend>>,
}

/// See [`Pace::pretend`].
pub type Pretend = dyn Fn(Duration) -> Duration + Sync;

impl fmt::Debug for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pace")
            .field("window", &self.window)
            .finish_non_exhaustive()
    }
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            window: WINDOW,
            pretend: None,
        }
    }
}

/// Growth of a run by further workers, decided from the times that all of them report of waiting.
/// Losing the CPU to others is no waiting.
///
/// ```
/// use bc_pool::dispatch::{AdaptiveWorkers, Pace, Workers};
///
/// let (workers, pace, left) = (Workers::adaptive(2), Pace::default(), || 100);
/// let adaptive = AdaptiveWorkers::new(workers, &pace, &left);
/// bc_pool::run_growing(workers.usual(), workers.most(), |_, spawner| {
///     let spawn = || spawner.spawn();
///     let mut watch = adaptive.watch(&spawn);
///     for _file in 0..10 {
///         // What may wait is done here, and then:
///         if let Some(watch) = &mut watch {
///             watch.look();
///         }
///     }
/// })?;
/// # Ok::<(), bc_pool::WorkerPanic>(())
/// ```
pub struct AdaptiveWorkers<'g> {
    /// Returns how many more workers would find something to do.
    waiting: &'g (dyn Fn() -> usize + Sync),
    pace: &'g Pace,
    /// True once there will be no more workers: none need look any longer.
    over: AtomicBool,
    state: Mutex<State>,
}

struct State {
    workers: usize,
    most: usize,
    /// Time of all workers together since the last decision.
    spent: Spent,
}

#[derive(Clone, Copy, Default)]
struct Spent {
    /// The time between taking directories and being done with them.
    busy: Duration,
    /// Part of that in which the worker had the CPU or wanted it; the rest it waited.
    running: Duration,
}

impl fmt::Debug for AdaptiveWorkers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdaptiveWorkers").finish_non_exhaustive()
    }
}

impl<'g> AdaptiveWorkers<'g> {
    /// Starts the growth of a run that has the usual number of workers, or is about to; `waiting`
    /// returns how many more would find something to do.
    pub fn new(
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

    /// Returns the number of workers that there are, or are about to be.
    pub fn workers(&self) -> usize {
        self.lock().workers
    }

    /// Returns the clock of one worker, with a function that starts another and returns whether it
    /// did; `None` if there are as many as there will be.
    pub fn watch(&'g self, spawn: &'g dyn Fn() -> bool) -> Option<Watch<'g>> {
        let is_over = self.over.load(Ordering::Relaxed);
        (!is_over).then(|| Watch {
            adaptive: self,
            spawn,
            meter: Meter::new(),
            since: Instant::now(),
            busy: Duration::ZERO,
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a worker's report, and when enough has been reported, decides; returns whether others
    /// have joined.
    fn note(&self, spent: Spent, spawn: &dyn Fn() -> bool) -> bool {
        let mut state = self.lock();
        state.spent.busy += spent.busy;
        state.spent.running += spent.running.min(spent.busy);
        if state.spent.busy < self.pace.window * WINDOWS * state.workers as u32 {
            return false;
        }
        let Spent { busy, running } = std::mem::take(&mut state.spent);
        if (busy - running) * WAITED <= busy || self.over.load(Ordering::Relaxed) {
            return false;
        }
        // Twice as many: what they wait for may be all that holds them up.
        let most = state
            .most
            .min(affordable_workers(DESCRIPTORS))
            .max(state.workers);
        let more = state
            .workers
            .min((self.waiting)())
            .min(most - state.workers);
        let started = (0..more).take_while(|_| spawn()).count();
        state.workers += started;
        if state.workers == most || started < more {
            self.over.store(true, Ordering::Relaxed);
        }
        started > 0
    }
}

/// Returns the number of workers for which the descriptors suffice that this process may have, if
/// each has so many, with half of them for others; 0 where not even one has enough.
///
/// # Panics
/// If `descriptors` is 0.
pub fn affordable_workers(descriptors: u64) -> usize {
    affordable_below(getrlimit(Resource::Nofile).current, descriptors)
}

fn affordable_below(limit: Option<u64>, descriptors: u64) -> usize {
    limit.map_or(usize::MAX, |limit| (limit / 2 / descriptors) as usize)
}

/// One worker's view of its time, for [`AdaptiveWorkers`].
pub struct Watch<'g> {
    adaptive: &'g AdaptiveWorkers<'g>,
    spawn: &'g dyn Fn() -> bool,
    meter: Meter,
    /// Time when its present work began, or was looked at last.
    since: Instant,
    busy: Duration,
}

impl fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

impl Watch<'_> {
    /// Notes that the worker has got something to do: it had nothing before.
    pub fn begin(&mut self) {
        if !self.adaptive.over.load(Ordering::Relaxed) {
            self.since = Instant::now();
        }
    }

    /// Reads the worker's clock. Called when it is done, and every now and then until then: others
    /// join if the time since the last look was waited. Returns whether any did.
    pub fn look(&mut self) -> bool {
        if self.adaptive.over.load(Ordering::Relaxed) {
            return false;
        }
        let now = Instant::now();
        self.busy += now - self.since;
        self.since = now;
        if self.busy < self.adaptive.pace.window {
            return false;
        }
        let busy = std::mem::take(&mut self.busy);
        let Some(running) = self.running(busy) else {
            return false;
        };
        let joined = self.adaptive.note(Spent { busy, running }, self.spawn);
        self.since = Instant::now();
        joined
    }

    fn running(&mut self, busy: Duration) -> Option<Duration> {
        if let Some(pretend) = &self.adaptive.pace.pretend {
            return Some(pretend(busy));
        }
        self.meter.lap(busy, busy / WAITED)
    }
}

#[cfg(test)]
mod tests;
