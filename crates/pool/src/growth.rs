//! Workers of a run: how many begin, and when others join them.
//!
//! A number that the user named is kept. Otherwise a run begins with as many workers as its work is
//! known to pay for, and grows for two reasons: the work ahead pays for one more, up to the usual
//! number; and those there are wait, up to a greater one, as long as more of them finish more. Both
//! are decided in `decision`, as pure arithmetic. A worker ends when it finds no more work, or when
//! there are more than help: one that is wanted again is started again.

mod decision;
mod meter;

use std::fmt;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit};

use self::decision::{BegunFiles, BusyTime, Climb, TimedFiles, WAITED, by_work};
use self::meter::Meter;
use crate::run::run_in;
use crate::{MAX_WORKERS, Tables, WorkerPanic, Workers};

pub use decision::Effort;

/// A worker looks at its clocks this often. That takes some 200 ns; a cold disk has answered a
/// dozen requests in the meantime.
const WINDOW: Duration = Duration::from_millis(2);

/// Windows per worker from one decision to the next.
const WINDOWS: u32 = 2;

/// Times as long windows in a long pause, in which the number of workers is to stay. Through bindfs,
/// cached, eight workers on two CPUs finished 2 % more with them: who looks at its clocks asks the
/// kernel two things, and holds a lock that the others want.
const RARELY: u32 = 4;

/// Descriptors that a worker may hold: those of the directories above, of the one that it reads
/// and of the steps to it, an ignore file and the meter's.
const DESCRIPTORS: u64 = 16;

/// Bytes of a large file that count as a further file: a server gives about so many at a request.
const PIECE: u64 = 128 << 10;

/// Measurement of the time that workers wait. Only the duration of a run depends on it: programs
/// use the default, and tests another.
pub struct Metering {
    /// Time at work after which a worker looks at its clocks.
    pub window: Duration,
    /// Replacement of the clocks: from the time that a worker has been at work, the part in which
    /// it had the CPU or wanted it.
    pub pretend: Option<Box<Pretend>>,
}

/// See [`Metering::pretend`].
pub type Pretend = dyn Fn(Duration) -> Duration + Sync;

static BY_CLOCKS: Metering = Metering {
    window: WINDOW,
    pretend: None,
};

impl fmt::Debug for Metering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metering")
            .field("window", &self.window)
            .finish_non_exhaustive()
    }
}

impl Default for Metering {
    fn default() -> Metering {
        Metering {
            window: WINDOW,
            pretend: None,
        }
    }
}

/// Experience of a run, from which the next one over the same files begins: see [`Growth::after`].
/// Nothing at first.
#[derive(Debug, Default)]
pub struct LastRun {
    /// Number of workers that was found best; 0 if the run did not wait.
    workers: AtomicUsize,
    /// True if each item took so long that one is worth a worker.
    is_slow: AtomicBool,
}

impl LastRun {
    /// Takes over the experience of `other` if there is none here.
    pub fn take_over(&self, other: &LastRun) {
        if self.workers.load(Ordering::Relaxed) == 0 {
            let is_slow = other.is_slow.load(Ordering::Relaxed);
            self.is_slow.store(is_slow, Ordering::Relaxed);
            let workers = other.workers.load(Ordering::Relaxed);
            self.workers.store(workers, Ordering::Relaxed);
        }
    }
}

/// Workers of one run, and its growth. Shared by all of them, and written only when one joins or
/// ends, and by each every few milliseconds where waiting may bring others.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
///
/// use bc_pool::{Growth, Waiting, Workers};
///
/// let files = AtomicUsize::new(100);
/// let left = || files.load(Relaxed);
/// let growth = Growth::new(Workers::adaptive(2)).first(1).left(&left, 8);
/// let read = growth.run(|mut worker| {
///     let mut read = 0;
///     worker.waiting(Waiting::Begins);
///     while files.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok() {
///         let bytes = 5000;
///         worker.begin(bytes);
///         // What may wait is done here, and then:
///         worker.waiting(Waiting::GoesOn);
///         read += 1;
///     }
///     read
/// })?;
/// assert_eq!(read.iter().sum::<usize>(), 100);
/// # Ok::<(), bc_pool::WorkerPanic>(())
/// ```
pub struct Growth<'g> {
    bounds: Workers,
    first: usize,
    /// Returns how many items no worker has taken.
    left: &'g (dyn Fn() -> usize + Sync),
    /// Items that are worth a worker where those there are wait.
    worth_a_worker: usize,
    changed: &'g (dyn Fn(usize) + Sync),
    metering: &'g Metering,
    last: Option<&'g LastRun>,
    tables: Tables,
    named: &'g [BorrowedFd<'g>],
    /// Number of workers that there are, or are about to be.
    workers: AtomicUsize,
    /// Number of those, and of others not counted there, that are to end.
    surplus: AtomicUsize,
    /// Number of times that `workers` was decided upon.
    changes: AtomicU32,
    /// True if waiting brings no more workers: none need look.
    over: AtomicBool,
    /// Number of times as long as a window that a worker is at work before it looks at its clocks.
    windows: AtomicU32,
    /// True if the work took so long when the number was last decided upon: see
    /// [`WorkerHandle::is_slow`].
    slow: AtomicBool,
    measured: Mutex<Measured>,
}

/// State of the search for the number of workers that wait.
struct Measured {
    /// Time and work of all workers together since the last decision.
    sum: BusyTime,
    climb: Climb,
    /// Number of workers that are where others are no help, counted since so many changes.
    unhelped: usize,
    unhelped_since: u32,
}

impl fmt::Debug for Growth<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Growth")
            .field("bounds", &self.bounds)
            .field("workers", &self.workers)
            .finish_non_exhaustive()
    }
}

impl<'g> Growth<'g> {
    /// Makes a run that begins with the usual number of workers.
    pub fn new(bounds: impl Into<Workers>) -> Growth<'g> {
        let bounds = bounds.into();
        Growth {
            bounds,
            first: bounds.usual(),
            left: &|| 0,
            worth_a_worker: 1,
            changed: &|_| (),
            metering: &BY_CLOCKS,
            last: None,
            tables: Tables::SHARED,
            named: &[],
            workers: AtomicUsize::new(bounds.usual()),
            surplus: AtomicUsize::new(0),
            changes: AtomicU32::new(0),
            over: AtomicBool::new(bounds.most() == bounds.usual()),
            windows: AtomicU32::new(1),
            slow: AtomicBool::new(false),
            measured: Mutex::new(Measured {
                sum: BusyTime::default(),
                climb: Climb::new(),
                unhelped: 0,
                unhelped_since: 0,
            }),
        }
    }

    /// Begins with so many workers, at least 1 and at most the usual number. Others join while the
    /// work turns out to pay for them: see [`WorkerHandle::begin`].
    #[must_use]
    pub fn first(mut self, workers: usize) -> Self {
        self.first = workers.clamp(1, self.bounds.usual());
        self.workers = AtomicUsize::new(self.first);
        self
    }

    /// Sets the number of items that no worker has taken, and how many of these are worth another
    /// worker where those there are wait. Without it no worker ever joins.
    #[must_use]
    pub fn left(mut self, left: &'g (dyn Fn() -> usize + Sync), worth_a_worker: usize) -> Self {
        self.left = left;
        self.worth_a_worker = worth_a_worker.max(1);
        self
    }

    /// Calls `changed` with the number of workers when that has changed.
    #[must_use]
    pub fn changed(mut self, changed: &'g (dyn Fn(usize) + Sync)) -> Self {
        self.changed = changed;
        self
    }

    /// Begins with the number of workers that was found best in the run before this one, over the same
    /// files, and leaves its own for the next. Where fewer do as much, the others end.
    #[must_use]
    pub fn after(mut self, last: &'g LastRun) -> Self {
        self.last = Some(last);
        self
    }

    /// Measures waiting in this way.
    #[must_use]
    pub fn metering(mut self, metering: &'g Metering) -> Self {
        self.metering = metering;
        self
    }

    /// Uses these tables of descriptors for the threads that are started. Tables of their own
    /// contain the standard streams and the descriptors that are `named`, under the same numbers,
    /// and no others. The caller's own thread, worker 0, keeps its table.
    ///
    /// ```
    /// use std::os::fd::AsFd;
    ///
    /// use bc_pool::{Growth, Tables};
    ///
    /// let dir = std::fs::File::open(".")?;
    /// // SAFETY: workers use `dir`, which is named, and what they open themselves.
    /// let tables = unsafe { Tables::private() };
    /// let named = [dir.as_fd()];
    /// let growth = Growth::new(2).tables(tables, &named);
    /// let found = growth.run(|_| dir.metadata().is_ok())?;
    /// assert!(found.iter().all(|found| *found));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn tables(mut self, tables: Tables, named: &'g [BorrowedFd<'g>]) -> Self {
        self.tables = tables;
        self.named = named;
        self
    }

    /// Runs `f` on each worker and returns the results in worker order, as many as workers took
    /// part. Worker 0 is the caller's own thread; one that joins gets the lowest number that none
    /// at work has. So the greatest number is that of workers at a time, less one; it may exceed the
    /// [most](Workers::most), since those that are to end finish their work. Where the system
    /// refuses a thread the work continues with those there are.
    ///
    /// # Errors
    /// [`WorkerPanic`] if any worker panicked, once all the others have returned, those that joined
    /// later too.
    pub fn run<T: Send>(
        self,
        f: impl Fn(WorkerHandle<'_>) -> T + Sync,
    ) -> Result<Vec<T>, WorkerPanic> {
        // Others join while some that are to end are still at work.
        let most = match self.bounds.most() == self.bounds.usual() {
            true => self.bounds.most(),
            false => MAX_WORKERS,
        };
        run_in(
            self.tables,
            self.named,
            self.first,
            most,
            |number, spawn| {
                if number == 0 {
                    self.join_as_before(spawn);
                }
                f(WorkerHandle::new(&self, number, spawn))
            },
        )
    }

    /// Has others join the first workers where as many waited in the run before.
    fn join_as_before(&self, spawn: &dyn Fn() -> bool) {
        let Some(last) = self.last.filter(|_| !self.is_over()) else {
            return;
        };
        let usual = self.bounds.usual();
        let more = (self.left)() / self.worth_a_worker(last.is_slow.load(Ordering::Relaxed));
        let most = self.most().min(usual + more);
        let wanted = last.workers.load(Ordering::Relaxed).min(most);
        if wanted > usual {
            // What the first report meanwhile is no measure of all.
            let mut measured = self.lock();
            measured.climb = Climb::given();
            self.grow_for_waiting(wanted, spawn);
        }
    }

    /// Returns the greatest number of workers, as far as there are descriptors for them.
    fn most(&self) -> usize {
        let affordable = affordable_workers(DESCRIPTORS);
        self.bounds.most().min(affordable).max(self.bounds.usual())
    }

    /// Returns the handle of a thread that works by itself: `spawn` is called where a run would
    /// start a worker, and returns whether there is one more.
    pub fn alone<'h>(&'h self, spawn: &'h dyn Fn() -> bool) -> WorkerHandle<'h> {
        WorkerHandle::new(self, 0, spawn)
    }

    fn workers(&self) -> usize {
        self.workers.load(Ordering::Relaxed)
    }

    /// True if the work ahead is no reason for more workers.
    fn is_paid(&self) -> bool {
        self.workers() >= self.bounds.usual()
    }

    /// True if waiting is no reason for more workers.
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Starts workers until there are `wanted`; false if the system refuses one.
    fn grow(&self, wanted: usize, spawn: &dyn Fn() -> bool) -> bool {
        let mut workers = self.workers();
        if workers >= wanted {
            return true;
        }
        // Before they come: else the first of them take the shares of the others, which find nothing
        // and end. A search at 10 ms a request had 57 workers of 128 that were counted.
        (self.changed)(wanted);
        let mut is_refused = false;
        while workers < wanted && !is_refused {
            // Relaxed: a number, with nothing behind it.
            let counted = self.workers.compare_exchange(
                workers,
                workers + 1,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            match counted {
                // One that was to end stays, or another joins.
                Ok(_) if self.take_surplus() || spawn() => workers += 1,
                Ok(_) => {
                    self.workers.fetch_sub(1, Ordering::Relaxed);
                    is_refused = true;
                }
                Err(now) => workers = now,
            }
        }
        self.report_change();
        !is_refused
    }

    /// Reports the number of workers, the present one last where several threads change it.
    fn report_change(&self) {
        let mut workers = self.workers();
        loop {
            (self.changed)(workers);
            match self.workers() {
                now if now == workers => return,
                now => workers = now,
            }
        }
    }

    /// Has workers end until there are `wanted`, at least 1.
    fn shrink(&self, wanted: usize) {
        let before = self.workers.fetch_min(wanted, Ordering::Relaxed);
        let ending = before.saturating_sub(wanted);
        self.surplus.fetch_add(ending, Ordering::Relaxed);
        self.report_change();
    }

    /// Takes one from those that are to end, if there are any.
    fn take_surplus(&self) -> bool {
        let less = |surplus: usize| surplus.checked_sub(1);
        let taken = self
            .surplus
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        taken.is_ok()
    }

    /// Takes a worker's report of its time, begun after so many `changes`, and when enough has been
    /// reported, decides.
    fn note(&self, time: BusyTime, changes: u32, spawn: &dyn Fn() -> bool) {
        let mut measured = self.lock();
        if changes != self.changes.load(Ordering::Relaxed) {
            // It is no measure of the present number.
            return;
        }
        let sum = &mut measured.sum;
        if self.surplus.load(Ordering::Relaxed) > 0 {
            // Those that are to end are still at work beside them.
            *sum = BusyTime::default();
            return;
        }
        sum.busy += time.busy;
        sum.running += time.running.min(time.busy);
        sum.work += time.work;
        let workers = self.workers();
        let enough = self.window() * WINDOWS * workers as u32;
        // A few have waited long enough even if none of them has finished anything: that takes no proof.
        // To walk 60 directories at 2 ms a request took 0.1 s more when their first had to be done.
        let usual = self.bounds.usual();
        let least = workers as u64;
        if sum.busy < enough || workers > usual && sum.work < least {
            return;
        }
        let mut sum = std::mem::take(sum);
        if self.is_over() {
            return;
        }
        if workers <= usual {
            sum.work = sum.work.max(least);
        }
        let is_slow = sum.is_slow();
        self.note_slow(is_slow);
        let more = (self.left)() / self.worth_a_worker(is_slow);
        let wanted = measured.climb.next(workers, sum, usual, self.most(), more);
        let is_rare = measured.climb.is_paused(wanted, usual);
        self.set_windows(if is_rare { RARELY } else { 1 });
        self.leave(measured.climb.proven(wanted));
        if wanted == workers {
            return;
        }
        match wanted < workers {
            true => {
                self.changes.fetch_add(1, Ordering::Relaxed);
                self.shrink(wanted);
            }
            false => self.grow_for_waiting(wanted, spawn),
        }
    }

    /// Returns the time at work after which a worker looks at its clocks.
    fn window(&self) -> Duration {
        self.metering.window * self.windows.load(Ordering::Relaxed)
    }

    /// Sets that time, which all workers read for each file, and which is written when it changes.
    fn set_windows(&self, windows: u32) {
        if self.windows.load(Ordering::Relaxed) != windows {
            self.windows.store(windows, Ordering::Relaxed);
        }
    }

    /// Starts workers until there are `wanted`, since those there are wait. Where the system refuses
    /// one that is the last attempt, and the next run begins with no more than there are.
    fn grow_for_waiting(&self, wanted: usize, spawn: &dyn Fn() -> bool) {
        self.changes.fetch_add(1, Ordering::Relaxed);
        if !self.grow(wanted, spawn) {
            self.over.store(true, Ordering::Relaxed);
            self.leave(self.workers());
        }
    }

    /// Leaves a number of workers for the next run to begin with.
    fn leave(&self, workers: usize) {
        if let Some(last) = self.last {
            last.workers.store(workers, Ordering::Relaxed);
        }
    }

    /// Notes, for this run and the next, whether each item takes so long that it is worth a worker.
    fn note_slow(&self, is_slow: bool) {
        self.slow.store(is_slow, Ordering::Relaxed);
        if let Some(last) = self.last {
            last.is_slow.store(is_slow, Ordering::Relaxed);
        }
    }

    /// Returns how many items that no worker has taken are worth another.
    fn worth_a_worker(&self, is_slow: bool) -> usize {
        match is_slow {
            true => 1,
            false => self.worth_a_worker,
        }
    }

    /// Notes that a worker has come where others are no help, or with `false` that it has left; its
    /// number is one of those since so many `changes`. Once most of the workers are there, the number
    /// falls to the usual, and what was measured elsewhere is forgotten.
    fn note_unhelped(&self, is_unhelped: bool, changes: u32) {
        let mut measured = self.lock();
        if changes != self.changes.load(Ordering::Relaxed) {
            return;
        }
        if std::mem::replace(&mut measured.unhelped_since, changes) != changes {
            measured.unhelped = 0;
        }
        if !is_unhelped {
            measured.unhelped = measured.unhelped.saturating_sub(1);
            return;
        }
        measured.unhelped += 1;
        let (workers, usual) = (self.workers(), self.bounds.usual());
        if 2 * measured.unhelped <= workers || workers <= usual {
            return;
        }
        (measured.sum, measured.climb) = (BusyTime::default(), Climb::new());
        self.leave(usual);
        self.note_slow(false);
        self.set_windows(1);
        self.changes.fetch_add(1, Ordering::Relaxed);
        self.shrink(usual);
    }

    fn lock(&self) -> MutexGuard<'_, Measured> {
        self.measured.lock().unwrap_or_else(PoisonError::into_inner)
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

/// Progress of a worker through work that may wait.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Waiting {
    /// Before some work that may wait: the worker had nothing to do before, or nothing that waits.
    Begins,
    /// After a part of that work.
    GoesOn,
    /// Before work for which others are no help, as it does not wait, or only for one device: those
    /// that have joined end again.
    NoHelp,
}

/// One worker of a [`Growth`], which reports its work here. Others join when that is a reason.
///
/// Nothing shared is written for a file, and clocks are read rarely: see [`begin`](Self::begin) and
/// [`waiting`](Self::waiting).
pub struct WorkerHandle<'g> {
    growth: &'g Growth<'g>,
    spawn: &'g dyn Fn() -> bool,
    number: usize,
    /// True once the work ahead will bring no more workers: then files are not counted.
    is_paid: bool,
    begun: BegunFiles,
    /// Files, and pieces of large ones, since the clocks were looked at.
    work: u64,
    is_slow: bool,
    /// Time when the clock was started, and the number of files before it.
    timed_from: Option<(Instant, u64)>,
    /// None if there were as many workers as there will be when this one joined.
    clock: Option<WorkerClock>,
    /// [`Growth::changes`] when the worker came where others are no help, if it is there.
    unhelped: Option<u32>,
}

/// Clocks of one worker.
struct WorkerClock {
    meter: Meter,
    /// Time when its present work began, or was looked at last.
    since: Instant,
    busy: Duration,
    /// Work done in that time.
    work: u64,
    /// [`Growth::changes`] when both were zero.
    changes: u32,
}

impl fmt::Debug for WorkerHandle<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerHandle")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

impl<'g> WorkerHandle<'g> {
    fn new(growth: &'g Growth<'g>, number: usize, spawn: &'g dyn Fn() -> bool) -> WorkerHandle<'g> {
        WorkerHandle {
            growth,
            spawn,
            number,
            is_paid: growth.is_paid(),
            begun: BegunFiles::default(),
            work: 0,
            is_slow: growth.slow.load(Ordering::Relaxed),
            timed_from: None,
            clock: (!growth.is_over()).then(|| WorkerClock {
                // Asked for, as others wait.
                meter: match growth.changes.load(Ordering::Relaxed) {
                    0 => Meter::new(),
                    _ => Meter::of_waiting(),
                },
                since: Instant::now(),
                busy: Duration::ZERO,
                work: 0,
                changes: growth.changes.load(Ordering::Relaxed),
            }),
            unhelped: None,
        }
    }

    /// Returns the worker's number: 0 for the caller's own thread.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Returns the number of workers that there are by now.
    pub fn workers(&self) -> usize {
        self.growth.workers()
    }

    /// Counts a file of so many bytes that the worker begins. Others join if as many files as are
    /// [left](Growth::left) pay for them, should these be like those that it has begun.
    ///
    /// The clock is read at every doubling of the number of files, and when their sizes have gone
    /// up by the price of a worker.
    #[inline]
    pub fn begin(&mut self, bytes: u64) {
        self.work += 1 + bytes / PIECE;
        if !self.is_paid && self.begun.begin(bytes) {
            self.look_ahead();
        }
    }

    #[cold]
    fn look_ahead(&mut self) {
        let now = Instant::now();
        let (since, before) = *self.timed_from.get_or_insert((now, self.begun.files));
        let timed = TimedFiles {
            files: self.begun.files - before,
            took: Effort::from(now - since),
        };
        let (growth, left) = (self.growth, (self.growth.left)());
        let usual = growth.bounds.usual();
        let wanted = by_work(&self.begun, timed, left, growth.workers(), usual);
        growth.grow(wanted, self.spawn);
        self.is_paid = growth.is_paid();
    }

    /// Counts work that is no file of [`begin`](Self::begin).
    #[inline]
    pub fn count(&mut self, work: u64) {
        self.work += work;
    }

    /// True if others have joined the usual number because these wait.
    pub(crate) fn has_more_than_usual(&self) -> bool {
        self.growth.workers() > self.growth.bounds.usual()
    }

    /// True if waiting may bring other workers.
    pub(crate) fn may_grow(&self) -> bool {
        self.clock.is_some()
    }

    /// True if the last work took so long that a look at the clock after each part of it costs
    /// nothing.
    #[inline]
    pub fn is_slow(&self) -> bool {
        self.is_slow
    }

    /// True if the worker is to end once it holds nothing any longer: there are more than help.
    /// Asked between one piece of work and the next; never true for worker 0, nor twice. What it
    /// still does is no measure of the others.
    #[inline]
    pub fn ends(&mut self) -> bool {
        let ends = self.number > 0
            && self.growth.surplus.load(Ordering::Relaxed) > 0
            && self.growth.take_surplus();
        if ends {
            self.clock = None;
            // Only from now on what the others do is a measure of their number.
            self.growth.changes.fetch_add(1, Ordering::Relaxed);
        }
        ends
    }

    /// Notes progress in work that may wait: every millisecond or so, or after each part that may
    /// have waited. Others join if all have waited for more than an eighth of the last
    /// milliseconds, and stay if more files are [begun](Self::begin) then.
    pub fn waiting(&mut self, progress: Waiting) {
        let Some(clock) = &mut self.clock else {
            return;
        };
        if progress == Waiting::NoHelp {
            self.note_unhelped();
            return;
        }
        if let Some(changes) = self.unhelped.take() {
            self.growth.note_unhelped(false, changes);
        }
        if self.growth.is_over() {
            return;
        }
        let now = Instant::now();
        // Work whose time is not known is no measure.
        let work = std::mem::take(&mut self.work);
        if progress == Waiting::GoesOn {
            clock.busy += now - clock.since;
            clock.work += work;
        }
        clock.since = now;
        if progress == Waiting::Begins || clock.busy < self.growth.window() {
            return;
        }
        let busy = std::mem::take(&mut clock.busy);
        // None, if a directory is read on.
        let work = std::mem::take(&mut clock.work);
        let mut time = BusyTime {
            busy,
            running: busy,
            work: work.max(1),
        };
        self.is_slow = time.is_slow();
        time.work = work;
        let now_changes = self.growth.changes.load(Ordering::Relaxed);
        let changes = std::mem::replace(&mut clock.changes, now_changes);
        let running = match &self.growth.metering.pretend {
            Some(pretend) => Some(pretend(busy)),
            None => clock.meter.lap(busy, busy / WAITED),
        };
        if let Some(running) = running {
            time.running = running;
            self.growth.note(time, changes, self.spawn);
            clock.changes = self.growth.changes.load(Ordering::Relaxed);
            clock.since = Instant::now();
        }
    }

    /// Notes, once for each number of workers, that others are no help for what the worker does.
    fn note_unhelped(&mut self) {
        let changes = self.growth.changes.load(Ordering::Relaxed);
        if self.unhelped != Some(changes) && self.has_more_than_usual() {
            self.unhelped = Some(changes);
            self.growth.note_unhelped(true, changes);
        }
    }
}

#[cfg(test)]
mod tests;
