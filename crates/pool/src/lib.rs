//! Workers, a work queue that detects when all work is done, cancellation, and the decision how many
//! workers a job gets.
//! Internal to bit-crafts, without a promise of stability.
//!
//! Sum the nodes of a tree that is discovered while it is walked:
//!
//! ```
//! use bc_pool::{Cancel, WorkQueue, run};
//!
//! let queue = WorkQueue::new(64);
//! queue.push(1_u64);
//! let cancel = Cancel::new();
//! let sums = run(2, |_worker| {
//!     let mut sum = 0;
//!     queue.work(&cancel, |node, local| {
//!         sum += node;
//!         if node < 512 {
//!             local.push(node * 2);
//!             local.push(node * 2 + 1);
//!         }
//!     });
//!     sum
//! })?;
//! assert_eq!(sums.iter().sum::<u64>(), 1023 * 1024 / 2);
//! # Ok::<(), bc_pool::WorkerPanic>(())
//! ```
//!
//! # Invariants
//!
//! - [`run`] uses the caller's thread as worker 0: a single worker spawns no thread.
//! - No thread outlives the call that started it, and no thread is ever pinned to a CPU.
//! - A panic in a worker becomes a [`WorkerPanic`]; the other workers end, and none hangs.
//! - [`WorkQueue::work`] returns only when all items have been processed, the work was cancelled, or a
//!   worker panicked. It never recurses, no matter how deep the work is.
//! - Threads share the process's descriptors unless the caller chooses otherwise, which is unsafe:
//!   see [`Tables`].
//! - Nothing here knows about files or digests; results never depend on the number of workers.

#![deny(unsafe_code)]
// The examples of the registry's page run, too.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod cancel;
mod cpus;
mod growth;
mod ordered;
mod queue;
mod run;
mod tables;
mod threads;

pub use cancel::Cancel;
pub use cpus::available_cpus;
pub use growth::{
    Effort, Growth, LastRun, Metering, Pretend, Waiting, WorkerHandle, affordable_workers,
};
pub use ordered::{Cursor, WorkerBatches, ordered};
pub use queue::{Local, WorkQueue};
pub use run::{MAX_WORKERS, WorkerPanic, run};
pub use tables::Tables;
pub use threads::{Start, Threads, ThreadsError, Workers};
