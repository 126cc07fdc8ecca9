//! A bounded queue of work that workers both take from and add to, and that knows when
//! everything is done.

mod sync;

use std::time::Duration;

use self::sync::{ArrayQueue, AtomicBool, AtomicUsize, Condvar, Mutex, Ordering, fence};
use crate::Cancel;

/// Turns of the idle loop before a worker parks: about 5 µs, the time in which a busy
/// worker usually finds new directories; a futex wake costs more than that.
const SPINS: u32 = if cfg!(loom) { 0 } else { 100 };

/// A parked worker looks at the cancel flag this often: signal handlers cannot notify.
const CANCEL_POLL: Duration = Duration::from_millis(50);

/// Work that begets work: a bounded queue shared by all workers and, per worker, a stack for the
/// items that the queue has no room for.
///
/// Items processed first-in first-out from the queue and last-in first-out from a worker's
/// own stack; own work goes first. Nothing may depend on the order.
///
/// See the [crate's example](crate#example).
pub struct WorkQueue<T> {
    queue: ArrayQueue<T>,
    /// Items that [`WorkQueue::push`] found no room for, and their number.
    seeds: Mutex<Vec<T>>,
    seeded: AtomicUsize,
    /// Shared items, and workers that have any of their own. Raised before an item becomes visible;
    /// whoever takes it keeps its count until it and its own stack are processed, so zero means that
    /// nothing can come. Own items are not counted: that would be two writes to a line that all
    /// workers share for each of them.
    outstanding: AtomicUsize,
    /// Workers without work, spinning or parked.
    idle: AtomicUsize,
    /// Parked workers that have not been woken yet. Changes under `wakes` only.
    sleepers: AtomicUsize,
    /// Parked workers that have been woken but do not run yet: a thread that adds work sees them as
    /// awake already and saves the system call.
    wakes: Mutex<usize>,
    /// A worker panicked: the others stop.
    poisoned: AtomicBool,
    wake: Condvar,
}

impl<T> std::fmt::Debug for WorkQueue<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkQueue")
            .field("outstanding", &self.outstanding.load(Ordering::Relaxed))
            .finish_non_exhaustive()
    }
}

/// One worker's side of a [`WorkQueue`] while it processes an item.
#[derive(Debug)]
pub struct Local<'q, T> {
    shared: &'q WorkQueue<T>,
    stack: Vec<T>,
    is_ending: bool,
}

impl<T: Send> WorkQueue<T> {
    /// Makes a queue with room for `capacity` items (at least 1). A few dozen are enough to keep
    /// workers busy; more only spreads related work over them.
    pub fn new(capacity: usize) -> WorkQueue<T> {
        WorkQueue {
            queue: ArrayQueue::new(capacity.max(1)),
            seeds: Mutex::new(Vec::new()),
            seeded: AtomicUsize::new(0),
            outstanding: AtomicUsize::new(0),
            idle: AtomicUsize::new(0),
            sleepers: AtomicUsize::new(0),
            wakes: Mutex::new(0),
            poisoned: AtomicBool::new(false),
            wake: Condvar::new(),
        }
    }

    /// Adds an item from outside, usually before the workers start. Never fails and never
    /// blocks for room.
    pub fn push(&self, item: T) {
        self.outstanding.fetch_add(1, Ordering::Relaxed);
        if let Err(item) = self.queue.push(item) {
            let mut seeds = lock(&self.seeds);
            seeds.push(item);
            self.seeded.store(seeds.len(), Ordering::Relaxed);
        }
        self.wake_one();
    }

    /// Returns the number of shared items for which there is no idle worker at this moment. Items
    /// on the workers' own stacks do not count.
    pub fn waiting(&self) -> usize {
        let shared = self.queue.len() + self.seeded.load(Ordering::Relaxed);
        shared.saturating_sub(self.idle.load(Ordering::Relaxed))
    }

    /// Works until nothing is left: calls `f` for each item with a [`Local`] through which
    /// `f` adds more. Every worker of a [`run`](crate::run) calls this once.
    ///
    /// Returns when all work everywhere is done, when `cancel` is set (within 100 ms, plus
    /// the time of the running `f`), when another worker panicked, or after an item for which
    /// [`Local::end`] was called.
    ///
    /// # Panics
    ///
    /// Only if `f` does; the others then stop after their current item.
    pub fn work(&self, cancel: &Cancel, mut f: impl FnMut(T, &mut Local<'_, T>)) {
        let mut local = Local {
            shared: self,
            stack: Vec::new(),
            is_ending: false,
        };
        loop {
            if cancel.is_cancelled() || self.poisoned.load(Ordering::Relaxed) {
                return;
            }
            if let Some(item) = local.take() {
                let poison = PoisonOnPanic(self);
                f(item, &mut local);
                drop(poison);
                if local.is_ending {
                    return local.give_away();
                }
                if local.stack.is_empty() {
                    self.release();
                }
            } else if !self.wait_for_work(cancel) {
                return;
            }
        }
    }

    /// Waits until there may be work. False: there never will be, or work is to stop.
    fn wait_for_work(&self, cancel: &Cancel) -> bool {
        let _idle = Idle::enter(self);
        let mut spins = 0;
        loop {
            if self.is_over() || cancel.is_cancelled() {
                return false;
            }
            if self.has_shared_work() {
                return true;
            }
            if spins < SPINS {
                spins += 1;
                std::hint::spin_loop();
                continue;
            }
            self.park();
        }
    }

    /// Sleeps until woken, or until it is time to look at the cancel flag again.
    fn park(&self) {
        let mut wakes = lock(&self.wakes);
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        // A thread that adds work after this look sees the sleeper and needs the lock to wake it,
        // which it only gets once the wait has begun.
        fence(Ordering::SeqCst);
        if !self.is_over() && !self.has_shared_work() {
            let waited = self.wake.wait_timeout(wakes, CANCEL_POLL);
            wakes = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        }
        // Which sleeper a wake was meant for does not matter, only the sum does.
        if *wakes > 0 {
            *wakes -= 1;
        } else {
            self.sleepers.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Gives up the count of a worker that has nothing of its own left.
    fn release(&self) {
        // Release, and acquire for the chain of all earlier ones: see `is_over`.
        if self.outstanding.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.wake(usize::MAX);
        }
    }

    fn is_over(&self) -> bool {
        // Acquire: pairs with `release`, so whatever the last item's processing
        // wrote is visible to a worker that returns because of it.
        self.outstanding.load(Ordering::Acquire) == 0 || self.poisoned.load(Ordering::Relaxed)
    }

    fn has_shared_work(&self) -> bool {
        !self.queue.is_empty() || self.seeded.load(Ordering::Relaxed) > 0
    }
}

impl<T> WorkQueue<T> {
    fn take_seed(&self) -> Option<T> {
        if self.seeded.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut seeds = lock(&self.seeds);
        let seed = seeds.pop();
        self.seeded.store(seeds.len(), Ordering::Relaxed);
        seed
    }

    /// Wakes a worker after an item became visible in the queue.
    fn wake_one(&self) {
        // Pairs with the fence in `park`: either this sees the sleeper, or the sleeper sees
        // the item.
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            self.wake(1);
        }
    }

    fn wake(&self, most: usize) {
        let mut wakes = lock(&self.wakes);
        let woken = self.sleepers.load(Ordering::SeqCst).min(most);
        self.sleepers.fetch_sub(woken, Ordering::SeqCst);
        *wakes += woken;
        match woken {
            0 => {}
            1 => self.wake.notify_one(),
            _ => self.wake.notify_all(),
        }
    }
}

impl<T: Send> Local<'_, T> {
    /// Adds an item: to the shared queue if it has room, else to this worker's own stack.
    pub fn push(&mut self, item: T) {
        if self.shared.queue.is_full() {
            self.stack.push(item);
            return;
        }
        // Relaxed: this worker's own count stands, so this cannot raise from zero.
        self.shared.outstanding.fetch_add(1, Ordering::Relaxed);
        match self.shared.queue.push(item) {
            Ok(()) => self.shared.wake_one(),
            Err(item) => {
                self.shared.outstanding.fetch_sub(1, Ordering::Relaxed);
                self.stack.push(item);
            }
        }
    }

    /// Ends this worker's part once the present item is processed: what it has left is for others, of
    /// whom there has to be one.
    pub fn end(&mut self) {
        self.is_ending = true;
    }

    /// Makes all own items the others', and gives up this worker's count.
    fn give_away(&mut self) {
        let given = self.stack.len();
        // Relaxed: as in `push`.
        self.shared.outstanding.fetch_add(given, Ordering::Relaxed);
        for item in self.stack.drain(..) {
            if let Err(item) = self.shared.queue.push(item) {
                let mut seeds = lock(&self.shared.seeds);
                seeds.push(item);
                self.shared.seeded.store(seeds.len(), Ordering::Relaxed);
            }
        }
        fence(Ordering::SeqCst);
        if given > 0 {
            self.shared.wake(given);
        }
        self.shared.release();
    }

    /// Returns the next item: own work first, unless others starve.
    fn take(&mut self) -> Option<T> {
        if self.stack.len() > 1 && self.shared.idle.load(Ordering::Relaxed) > 0 {
            self.share();
        }
        self.stack
            .pop()
            .or_else(|| self.shared.queue.pop())
            .or_else(|| self.shared.take_seed())
    }

    /// Gives idle workers the older half of the stack: nearest the root, so likely the
    /// larger pieces.
    fn share(&mut self) {
        let half = self.stack.len() / 2;
        // Relaxed: as in `push`. At least one item stays here, and keeps this worker's count.
        self.shared.outstanding.fetch_add(half, Ordering::Relaxed);
        let mut given = 0;
        let mut rest = Vec::new();
        for item in self.stack.drain(..half) {
            match self.shared.queue.push(item) {
                Ok(()) => given += 1,
                Err(item) => rest.push(item),
            }
        }
        if !rest.is_empty() {
            let kept = rest.len();
            self.shared.outstanding.fetch_sub(kept, Ordering::Relaxed);
            self.stack.splice(0..0, rest);
        }
        if given > 0 {
            fence(Ordering::SeqCst);
            if self.shared.sleepers.load(Ordering::Relaxed) > 0 {
                self.shared.wake(given);
            }
        }
    }
}

/// Stops the others if processing an item panics.
struct PoisonOnPanic<'q, T>(&'q WorkQueue<T>);

impl<T> Drop for PoisonOnPanic<'_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.poisoned.store(true, Ordering::SeqCst);
            self.0.wake(usize::MAX);
        }
    }
}

/// Counts a worker as idle while it waits.
struct Idle<'q, T>(&'q WorkQueue<T>);

impl<'q, T> Idle<'q, T> {
    fn enter(queue: &'q WorkQueue<T>) -> Idle<'q, T> {
        queue.idle.fetch_add(1, Ordering::SeqCst);
        Idle(queue)
    }
}

impl<T> Drop for Idle<'_, T> {
    fn drop(&mut self) {
        self.0.idle.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Locks a mutex. The guarded data are valid after any panic: nothing is done under these locks
/// that could leave them half changed.
#[cfg(not(loom))]
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(loom)]
fn lock<T>(mutex: &Mutex<T>) -> loom::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(all(test, not(loom)))]
mod tests;
#[cfg(all(test, loom))]
mod tests_loom;
