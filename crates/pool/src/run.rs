//! Runs one closure on several workers, the caller's thread being the first.

use std::any::Any;
use std::fmt;
use std::os::fd::BorrowedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope, ScopedJoinHandle};

use rustix::thread::{get_keep_capabilities, set_keep_capabilities};

use crate::tables::{Entrance, Tables};

/// The most workers [`run`] will start: more than this only costs memory, even on
/// cold storage that likes deep queues.
pub const MAX_WORKERS: usize = 1024;

/// A worker panicked; the panic's message is kept.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct WorkerPanic {
    /// Message of the panic.
    pub message: String,
}

impl WorkerPanic {
    fn new(payload: &(dyn Any + Send)) -> WorkerPanic {
        let message = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "panic without a message".to_owned());
        WorkerPanic { message }
    }
}

impl fmt::Display for WorkerPanic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "worker panicked: {}", self.message)
    }
}

impl std::error::Error for WorkerPanic {}

/// Runs `f(0)`, `f(1)` … `f(workers - 1)` at the same time and returns their results in
/// worker order.
///
/// Worker 0 is the caller's own thread, so one worker spawns nothing. `workers` is clamped to
/// 1..=[`MAX_WORKERS`]. Where the system refuses a thread (limits, memory) the work continues with
/// those it has: the result then has fewer elements, but never none. `f` must therefore share the
/// work dynamically and not by worker number.
///
/// # Errors
///
/// [`WorkerPanic`] if any worker panicked, once all the others have returned.
///
/// ```
/// let squares = bc_pool::run(2, |worker| worker * worker)?;
/// assert!(squares == [0, 1] || squares == [0]);
/// # Ok::<(), bc_pool::WorkerPanic>(())
/// ```
pub fn run<T: Send>(workers: usize, f: impl Fn(usize) -> T + Sync) -> Result<Vec<T>, WorkerPanic> {
    run_in(Tables::SHARED, &[], workers, workers, |worker, _spawn| {
        f(worker)
    })
}

/// Runs `f` on `workers` workers, each with its number and a function that starts one more: up to
/// `most` at a time, which is clamped to `workers`..=[`MAX_WORKERS`]. That function returns false if
/// there are as many as there may be, or the system refuses a thread, after which none is asked for
/// again. A worker gets the lowest number that none at work has: the greatest number is that of
/// workers at a time, less one. Threads that are started have these `tables`, in which the
/// descriptors are `named` that they contain. Results are in the order of the numbers, and panics as
/// of [`run`].
pub(crate) fn run_in<T: Send>(
    tables: Tables,
    named: &[BorrowedFd<'_>],
    workers: usize,
    most: usize,
    f: impl Fn(usize, &dyn Fn() -> bool) -> T + Sync,
) -> Result<Vec<T>, WorkerPanic> {
    let results = Mutex::new(Vec::new());
    let lock = || results.lock().unwrap_or_else(PoisonError::into_inner);
    run_workers(tables, named, workers, most, &|worker, spawn| {
        let result = f(worker, spawn);
        lock().push((worker, result));
    })?;
    Ok(in_worker_order(
        results.into_inner().unwrap_or_else(PoisonError::into_inner),
    ))
}

/// Returns results in the order of their workers' numbers, and those with the same number in the
/// order in which they came.
fn in_worker_order<T>(results: Vec<(usize, T)>) -> Vec<T> {
    // The numbers alone are sorted, for which one sort is compiled for all types.
    let numbers = results.iter().map(|(worker, _)| *worker);
    let mut order: Vec<(usize, usize)> = numbers.zip(0..).collect();
    order.sort_unstable();
    let mut results: Vec<Option<T>> = results
        .into_iter()
        .map(|(_, result)| Some(result))
        .collect();
    let taken = order.into_iter().filter_map(|(_, nth)| results[nth].take());
    taken.collect()
}

/// Work of one worker: its number, and the function that starts one more.
type Work<'env> = dyn Fn(usize, &dyn Fn() -> bool) + Sync + 'env;

/// Starts the workers of [`run_in`] and joins them. The types of closures and results are unknown
/// here, so that this is compiled once and not for each caller.
fn run_workers(
    tables: Tables,
    named: &[BorrowedFd<'_>],
    workers: usize,
    most: usize,
    work: &Work<'_>,
) -> Result<(), WorkerPanic> {
    let workers = workers.clamp(1, MAX_WORKERS);
    let most = most.clamp(workers, MAX_WORKERS);
    if most == 1 {
        return guarded(|| work(0, &|| false));
    }
    let entrance = &Entrance::new(tables, named);
    let results: Vec<Result<(), WorkerPanic>> = thread::scope(|scope| {
        let starter = Arc::new(Starter {
            scope,
            work,
            entrance,
            threads: Mutex::new(StartedThreads {
                most: most - 1,
                // Each of the first has a number of its own, even where another has ended by then.
                slots: (1..workers).map(|_| ThreadSlot::Taken).collect(),
                results: Vec::new(),
            }),
        });
        for slot in 0..workers - 1 {
            if !starter.start_in(slot, &mut starter.lock()) {
                break;
            }
        }
        let mut results = vec![(0, starter.work(0))];
        // Once all others are joined no thread is left that could start one.
        while let Some((slot, thread)) = starter.next_running() {
            let result = joined(thread);
            starter.lock().free(slot, result);
        }
        results.append(&mut starter.lock().results);
        in_worker_order(results)
    });
    results.into_iter().collect()
}

/// Shared state for starting another worker. Owned by all of them together: a thread may outlive
/// the variables that the closure of the scope owns.
struct Starter<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    work: &'env Work<'env>,
    entrance: &'env Entrance,
    threads: Mutex<StartedThreads<'scope>>,
}

/// Threads that were started, the one of worker n in slot n - 1.
struct StartedThreads<'scope> {
    /// Greatest number of them at a time; 0 once the system has refused one.
    most: usize,
    slots: Vec<ThreadSlot<'scope>>,
    /// Results of those that were joined, with the numbers of their workers.
    results: Vec<(usize, Result<(), WorkerPanic>)>,
}

type Thread<'scope> = ScopedJoinHandle<'scope, Result<(), WorkerPanic>>;

enum ThreadSlot<'scope> {
    Free,
    Running(Thread<'scope>),
    /// One is about to be started, or to be joined.
    Taken,
}

impl StartedThreads<'_> {
    /// Joins the threads that have ended, so that others may be started in their place: a run of
    /// hours tries other numbers of workers thousands of times.
    fn join_ended(&mut self) {
        for slot in 0..self.slots.len() {
            match std::mem::replace(&mut self.slots[slot], ThreadSlot::Taken) {
                ThreadSlot::Running(thread) if thread.is_finished() => {
                    let result = joined(thread);
                    self.free(slot, result);
                }
                other => self.slots[slot] = other,
            }
        }
    }

    fn free(&mut self, slot: usize, result: Result<(), WorkerPanic>) {
        self.slots[slot] = ThreadSlot::Free;
        self.results.push((slot + 1, result));
    }

    /// Returns the first slot without a thread, if there may be one more.
    fn free_slot(&mut self) -> Option<usize> {
        let is_free = |slot: &ThreadSlot<'_>| matches!(slot, ThreadSlot::Free);
        let free = self.slots.iter().position(is_free);
        let slot = free.unwrap_or(self.slots.len());
        if slot >= self.most {
            return None;
        }
        if free.is_none() {
            self.slots.push(ThreadSlot::Free);
        }
        Some(slot)
    }
}

fn joined(thread: Thread<'_>) -> Result<(), WorkerPanic> {
    let joined = thread.join();
    joined.unwrap_or_else(|payload| Err(WorkerPanic::new(&*payload)))
}

impl<'scope> Starter<'scope, '_> {
    fn start(self: &Arc<Self>) -> bool {
        let mut threads = self.lock();
        threads.join_ended();
        let slot = threads.free_slot();
        slot.is_some_and(|slot| self.start_in(slot, &mut threads))
    }

    fn start_in(self: &Arc<Self>, slot: usize, threads: &mut StartedThreads<'scope>) -> bool {
        let worker = slot + 1;
        let starter = Arc::clone(self);
        let started = thread::Builder::new()
            .name(format!("bc-{worker}"))
            .spawn_scoped(self.scope, move || {
                starter.entrance.enter();
                own_credentials();
                starter.work(worker)
            });
        match started {
            Ok(thread) => {
                threads.slots[slot] = ThreadSlot::Running(thread);
                true
            }
            Err(_refused) => {
                threads.most = 0;
                false
            }
        }
    }

    fn work(self: &Arc<Self>, worker: usize) -> Result<(), WorkerPanic> {
        guarded(|| (self.work)(worker, &|| self.start()))
    }

    /// Returns the first thread that is not joined, with its slot, which stays taken.
    fn next_running(&self) -> Option<(usize, Thread<'scope>)> {
        let slots = &mut self.lock().slots;
        slots.iter_mut().enumerate().find_map(|(at, slot)| {
            let ThreadSlot::Running(_) = slot else {
                return None;
            };
            match std::mem::replace(slot, ThreadSlot::Taken) {
                ThreadSlot::Running(thread) => Some((at, thread)),
                _ => None,
            }
        })
    }

    /// Locks the threads. Nothing is done under the lock that could panic halfway.
    fn lock(&self) -> MutexGuard<'_, StartedThreads<'scope>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives the calling thread a copy of its credentials. Threads share one until one of them
/// changes something, and each open and close of a file counts its references up and down: two
/// CPUs that fight over the count lose 0.5 to 3 % of the time of opening, reading and closing
/// small files, depending on how far apart they are (Linux 6.18, Zen 5). Setting this flag to what
/// it is makes a copy and changes nothing else.
fn own_credentials() {
    // Miri knows no such call.
    if !cfg!(miri)
        && let Ok(keep) = get_keep_capabilities()
    {
        // Where it is refused they stay shared.
        let _ = set_keep_capabilities(keep);
    }
}

/// Calls `f` and catches its panic. The closure's state is dropped together with the result when it
/// panics, and data shared with others are protected by their own invariants.
fn guarded(f: impl FnOnce()) -> Result<(), WorkerPanic> {
    catch_unwind(AssertUnwindSafe(f)).map_err(|payload| WorkerPanic::new(&*payload))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::capabilities;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn one_worker_is_the_caller() {
        let here = thread::current().id();
        assert_eq!(run(1, |_| thread::current().id()).unwrap(), [here]);
        assert_eq!(run(0, |_| thread::current().id()).unwrap(), [here]);
    }

    #[test]
    fn first_of_many_is_the_caller() {
        let here = thread::current().id();
        let ids = run(3, |worker| (worker, thread::current().id())).unwrap();
        assert_eq!(ids[0], (0, here));
        for (index, (worker, id)) in ids.iter().enumerate().skip(1) {
            assert_eq!(*worker, index);
            assert_ne!(*id, here);
        }
    }

    #[test]
    fn workers_have_the_capabilities_of_the_caller() {
        let mine = capabilities(None).unwrap();
        let of_all = run(3, |_| (get_keep_capabilities(), capabilities(None))).unwrap();
        for (keep, sets) in of_all {
            assert_eq!(keep, get_keep_capabilities());
            assert_eq!(sets.unwrap(), mine);
        }
    }

    #[test]
    fn panics_are_reported_and_the_others_finish() {
        for panicking in 0..3 {
            let finished = AtomicUsize::new(0);
            let result = run(3, |worker| {
                if worker == panicking {
                    panic!("worker {worker} gave up");
                }
                finished.fetch_add(1, Ordering::SeqCst);
            });
            let expected = format!("worker {panicking} gave up");
            assert_eq!(result.unwrap_err().message, expected);
            assert_eq!(finished.load(Ordering::SeqCst), 2);
        }
    }

    #[test]
    fn results_of_one_number_stay_in_their_order() {
        let results = [(2, 'd'), (0, 'a'), (1, 'b'), (2, 'e'), (1, 'c')];
        let ordered = in_worker_order(results.to_vec());
        assert_eq!(ordered, ['a', 'b', 'c', 'd', 'e']);
    }

    #[test]
    fn panic_of_the_only_worker() {
        let error = run(1, |_| -> () { panic!("alone") }).unwrap_err();
        assert_eq!(error.to_string(), "worker panicked: alone");
    }

    /// Waits until so many are at work: one that ends makes room for another.
    fn all_at_work(at_work: &AtomicUsize, all: usize) {
        at_work.fetch_add(1, Ordering::SeqCst);
        while at_work.load(Ordering::SeqCst) < all {
            thread::yield_now();
        }
    }

    #[test]
    fn whoever_works_may_call_for_more() {
        let at_work = AtomicUsize::new(0);
        let started = run_in(Tables::SHARED, &[], 2, 5, |worker, spawn| {
            // Every worker calls for one, also one that was called for.
            let joined = spawn();
            all_at_work(&at_work, 5);
            (worker, joined)
        })
        .unwrap();
        let workers: Vec<_> = started.iter().map(|(worker, _)| *worker).collect();
        assert_eq!(workers, [0, 1, 2, 3, 4]);
        assert_eq!(started.iter().filter(|(_, joined)| *joined).count(), 3);
    }

    #[test]
    fn more_than_most_are_never_started() {
        let count = |workers, most, expected: usize| {
            let at_work = AtomicUsize::new(0);
            let ran = run_in(Tables::SHARED, &[], workers, most, |_, spawn| {
                while expected > 2 && spawn() {}
                all_at_work(&at_work, expected);
            });
            assert_eq!(ran.unwrap().len(), expected);
        };
        count(0, 0, 1);
        count(3, 1, 3);
        count(1, 6, 6);
        count(2, 6, 2);
    }

    /// Starts far more threads than there may be at a time, one after the other.
    #[test]
    fn who_has_ended_makes_room_for_another() {
        const STARTED: usize = 2 * MAX_WORKERS;
        let ended = AtomicUsize::new(0);
        let ran = run_in(Tables::SHARED, &[], 1, MAX_WORKERS, |worker, spawn| {
            if worker > 0 {
                ended.fetch_add(1, Ordering::SeqCst);
                return worker;
            }
            for started in 1..=STARTED {
                assert!(spawn(), "{started}");
                while ended.load(Ordering::SeqCst) < started {
                    thread::yield_now();
                }
            }
            worker
        })
        .unwrap();
        assert_eq!(ran.len(), 1 + STARTED);
        assert!(ran.is_sorted());
        let greatest = ran.last().unwrap();
        assert!(*greatest < MAX_WORKERS, "{greatest}");
    }

    #[test]
    fn panics_of_those_who_joined_are_reported() {
        let [finished, at_work] = [0; 2].map(AtomicUsize::new);
        let result = run_in(Tables::SHARED, &[], 1, 4, |worker, spawn| {
            spawn();
            all_at_work(&at_work, 4);
            if worker == 2 {
                panic!("worker {worker} gave up");
            }
            finished.fetch_add(1, Ordering::SeqCst);
        });
        assert_eq!(result.unwrap_err().message, "worker 2 gave up");
        assert_eq!(finished.load(Ordering::SeqCst), 3);
    }
}
