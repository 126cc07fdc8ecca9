//! Workers that read a plan together, and are joined by others where they wait.

use std::fmt;
use std::os::fd::BorrowedFd;

use bc_pool::dispatch::{AdaptiveWorkers, Pace, Watch, Workers};
use bc_pool::{Spawner, WorkerPanic, run_growing_in};

use crate::plan::Plan;
use crate::types::{ReadOptions, Waiting};

/// Small files that are worth another worker where those there are wait for each.
const WORTH_A_WORKER: usize = 8;

/// Starts further workers when one waits. For [`Consumer::waiting`](crate::Consumer::waiting).
pub struct Growth<'a> {
    plan: &'a Plan,
    adaptive: &'a AdaptiveWorkers<'a>,
    watch: Option<Watch<'a>>,
}

impl fmt::Debug for Growth<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Growth").finish_non_exhaustive()
    }
}

impl Growth<'_> {
    /// Starts other workers if the worker has waited.
    pub fn waiting(&mut self, run: Waiting) {
        let Some(watch) = &mut self.watch else {
            return;
        };
        match run {
            Waiting::Begins => watch.begin(),
            Waiting::GoesOn if watch.look() => self.plan.more_workers(self.adaptive.workers()),
            Waiting::GoesOn => {}
        }
    }
}

/// Runs `f` on workers that read `plan`, as [`run_growing_in`] does, with the options' tables of
/// descriptors: on `first` of them at once, on up to `most` as `f` calls for them, and on up to
/// [`ReadOptions::waiting`] where those wait.
///
/// # Errors
/// [`WorkerPanic`] if any worker panicked, once all the others have returned.
pub fn run_readers<T: Send>(
    plan: &Plan,
    options: &ReadOptions,
    named: &[BorrowedFd<'_>],
    first: usize,
    most: usize,
    f: impl Fn(usize, &Spawner<'_>, Growth<'_>) -> T + Sync,
) -> Result<Vec<T>, WorkerPanic> {
    with_pace(plan, options, named, first, most, &Pace::default(), f)
}

fn with_pace<T: Send>(
    plan: &Plan,
    options: &ReadOptions,
    named: &[BorrowedFd<'_>],
    first: usize,
    most: usize,
    pace: &Pace,
    f: impl Fn(usize, &Spawner<'_>, Growth<'_>) -> T + Sync,
) -> Result<Vec<T>, WorkerPanic> {
    let workers = Workers::up_to(most, options.waiting.min(plan.len()));
    let left = || plan.left() / WORTH_A_WORKER;
    let adaptive = AdaptiveWorkers::new(workers, pace, &left);
    run_growing_in(
        options.tables,
        named,
        first,
        workers.most(),
        |worker, spawner| {
            let spawn = || spawner.spawn();
            let growth = Growth {
                plan,
                adaptive: &adaptive,
                watch: adaptive.watch(&spawn),
            };
            f(worker, spawner, growth)
        },
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bc_walk::EntryId;

    use super::*;

    /// Returns the final number of workers, where they have waited for this part of the time.
    fn workers(waiting: usize, files: u32, waited: fn(Duration) -> Duration) -> usize {
        let plan = Plan::new((0..files).map(EntryId).collect(), 2);
        let options = ReadOptions::default().waiting(waiting);
        let pace = Pace {
            window: Duration::ZERO,
            pretend: Some(Box::new(move |busy| busy - waited(busy))),
        };
        let ran = with_pace(&plan, &options, &[], 2, 2, &pace, |_, _, mut growth| {
            growth.waiting(Waiting::Begins);
            for _ in 0..10 {
                std::thread::sleep(Duration::from_micros(1));
                growth.waiting(Waiting::GoesOn);
            }
        });
        ran.unwrap().len()
    }

    #[test]
    fn who_waits_is_joined_by_others() {
        if !bc_testkit::has_descriptors(1024) {
            return;
        }
        assert_eq!(workers(8, 1000, |busy| busy), 8);
        assert_eq!(workers(5, 1000, |busy| busy), 5);
        assert_eq!(workers(8, 1000, |_| Duration::ZERO), 2, "nobody has waited");
        assert_eq!(workers(0, 1000, |busy| busy), 2, "as many as were named");
        assert_eq!(workers(8, 7, |busy| busy), 2, "nothing is left for another");
    }
}
