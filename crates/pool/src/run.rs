//! Runs one closure on several workers, the caller's thread being the first.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

/// The most workers [`run`] will start: more than this only costs memory, even on
/// cold storage that likes deep queues.
pub const MAX_WORKERS: usize = 1024;

/// A worker panicked; the panic's message is kept.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct WorkerPanic {
    /// What the panic said.
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
/// Worker 0 is the caller's own thread, so one worker spawns nothing. `workers` is clamped
/// to 1..=[`MAX_WORKERS`]. Where the system refuses a thread (limits, memory) the work goes
/// on with those it has: the result then has fewer elements, but never none. `f` must
/// therefore share the work dynamically and not by worker number.
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
    let workers = workers.clamp(1, MAX_WORKERS);
    if workers == 1 {
        return guarded(|| f(0)).map(|result| vec![result]);
    }
    let f = &f;
    let results: Vec<Result<T, WorkerPanic>> = thread::scope(|scope| {
        let mut threads = Vec::with_capacity(workers - 1);
        for worker in 1..workers {
            let started = thread::Builder::new()
                .name(format!("bc-{worker}"))
                .spawn_scoped(scope, move || guarded(|| f(worker)));
            match started {
                Ok(thread) => threads.push(thread),
                Err(_refused) => break,
            }
        }
        let mut results = Vec::with_capacity(threads.len() + 1);
        results.push(guarded(|| f(0)));
        for thread in threads {
            results.push(
                thread
                    .join()
                    .unwrap_or_else(|payload| Err(WorkerPanic::new(&*payload))),
            );
        }
        results
    });
    results.into_iter().collect()
}

/// The closure's state is thrown away together with the result when it panics, and what it
/// shares with others is protected by their own invariants.
fn guarded<T>(f: impl FnOnce() -> T) -> Result<T, WorkerPanic> {
    catch_unwind(AssertUnwindSafe(f)).map_err(|payload| WorkerPanic::new(&*payload))
}

#[cfg(test)]
mod tests {
    use super::*;
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
    fn panic_of_the_only_worker() {
        let error = run(1, |_| -> () { panic!("alone") }).unwrap_err();
        assert_eq!(error.to_string(), "worker panicked: alone");
    }
}
