//! Reads many files and feeds them to a consumer: plain calls and `io_uring`
//! behind one loop.
//! Internal to bit-crafts, without a promise of stability.
//!
//! ```
//! use bc_pool::Cancel;
//! use bc_read::{Consumer, Feed, Opened, ReadOptions, Plan, pump};
//! use bc_walk::{EntryId, Error, walk};
//!
//! /// Counts the lines of each file.
//! #[derive(Default)]
//! struct Lines {
//!     now: usize,
//!     counts: Vec<(EntryId, usize)>,
//! }
//!
//! impl Consumer for Lines {
//!     fn width(&self) -> usize {
//!         1
//!     }
//!     fn begin(&mut self, _slot: usize, _opened: &Opened) {
//!         self.now = 0;
//!     }
//!     fn advance(&mut self, feeds: &[Feed<'_>], consumed: &mut Vec<usize>) {
//!         self.now += feeds[0].data.iter().filter(|&&byte| byte == b'\n').count();
//!         consumed.push(feeds[0].slot);
//!     }
//!     fn finish(&mut self, _slot: usize, result: Result<Opened, Error>, entry: EntryId) {
//!         if result.is_ok() {
//!             self.counts.push((entry, self.now));
//!         }
//!     }
//! }
//!
//! # let dir = tempfile::tempdir().unwrap();
//! # std::fs::write(dir.path().join("a"), "1\n2\n").unwrap();
//! # std::fs::write(dir.path().join("b"), "").unwrap();
//! # let root = dir.path().as_os_str().to_owned();
//! let cancel = Cancel::new();
//! let listing = walk(&[root], &Default::default(), 1, &cancel)?;
//! let plan = Plan::all(&listing, 1);
//! let mut lines = Lines::default();
//! let stats = pump(&listing, &plan, &ReadOptions::default(), &cancel, &mut lines);
//! assert_eq!(lines.counts, [(EntryId(0), 2), (EntryId(1), 0)]);
//! assert_eq!((stats.files, stats.bytes), (2, 4));
//! # Ok::<(), bc_pool::WorkerPanic>(())
//! ```
//!
//! # How it works
//!
//! [`pump`] is one worker's loop over slots (a buffer, a descriptor and a position each): fill free slots,
//! let the consumer advance over the filled ones, refill or finish those it used up. Small files pass
//! through while a large one keeps its slot, so that a consumer that hashes many files in lockstep never
//! waits for the longest one.
//!
//! # Where the bytes come from
//! With [`Choice::Auto`] each open and each read is first tried in a way that does not wait for the disk
//! (`openat2` with `RESOLVE_CACHED`, `preadv2` with `RWF_NOWAIT`; a sample of the files is enough once all
//! have been resident for a while, and a smaller one while none are). Resident data costs only a plain
//! call; all other requests go to an `io_uring`, which is created when it is first needed, and is
//! [`ReadOptions::slots`] files deep. Nothing has to be decided beforehand, and a tree that is half
//! resident is read both ways at once. Where each open asks a server, opens are timed: while plain ones
//! wait, most are queued, and every sixteenth shows whether that is still so. File systems that cannot
//! report what is resident are read by plain calls, regardless of the choice: a short read of the ring
//! could repeat bytes there. If the kernel decompresses the data, or refuses a ring, plain calls are used
//! for everything.
//!
//! # Invariants
//! - Bytes come only from a descriptor that `fstat` has shown to be a regular file and, if the listing has
//!   metadata, the one that was walked, unless the consumer has postponed this check
//!   ([`VerifyWhen::Later`]), or wants it at the end, together with a check of the listed state
//!   ([`VerifyWhen::AtEnd`]).
//! - Every open is relative to its directory's descriptor, follows no link
//!   (unless the entry is a root or the walk followed links) and waits for no
//!   FIFO.
//! - A file is finished without error only after it was read to its end unchanged: in one read call
//!   that returned less than was asked for, or with a second `fstat` that equals the first, or the
//!   listed one.
//! - If a file was written to within the last two seconds, or in the future, the bytes come from one state:
//!   it was read under a read lease (`F_SETLEASE`) that no writer broke, or twice with the same result,
//!   unless changes are allowed or verification is postponed.
//! - Each entry taken from the plan is finished exactly once; after a
//!   cancellation, none.
//! - No ring reads where a file system refuses `RWF_NOWAIT`.
//! - A ring owns descriptors and buffers until their completions are seen;
//!   dropping it waits for them.
//! - Nothing is allocated per file except the text of its errors.
#![deny(unsafe_code)]
// The examples of the registry's page run, too.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod buffer;
mod counter;
pub mod extents;
mod open;
pub mod order;
mod plan;
mod pump;
mod queue;
mod rate;
pub mod space;
mod steady;
mod stream;
#[cfg(test)]
mod tests;
mod types;
mod uring;
mod waits;

pub use counter::Counter;
pub use open::{Opener, open_checked};
pub use plan::{HUGE, Plan};
pub use pump::{pump, run_readers};
pub use rate::Rate;
pub use steady::{at_rest_before, is_fresh, read_fresh};
pub use stream::{STREAM_MEMORY, map_chunks, stream, unchanged};
pub use types::{
    Backend, Changed, Choice, Consumer, Feed, Opened, ReadOptions, ReadStats, SizeTrust,
    VerifyWhen, Want,
};
pub use uring::uring_available;
pub use waits::Residency;
