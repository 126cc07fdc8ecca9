//! Tables of descriptors: threads share one, whose lock every open and close takes, and whose
//! sharing makes every other call through a descriptor count references. Workers may have their own.
#![allow(
    unsafe_code,
    reason = "close_range closes numbers, in a table that nobody else uses"
)]

use std::hash::RandomState;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Table of descriptors for the workers that a run starts: by default the one that all threads
/// share.
///
/// Tables of their own save two threads some 5 % of their time, and more threads more, if opening,
/// reading and closing small files is the work. They are of no use elsewhere.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Tables {
    private: bool,
}

impl Tables {
    /// All threads use one table.
    pub const SHARED: Tables = Tables { private: false };

    /// Gives each worker but the caller's own thread a table of its own, which contains the
    /// standard streams and the descriptors that the run [names](crate::Growth::tables). Nothing
    /// else is kept open by it: neither pipes nor locks nor files that were deleted. Where the
    /// kernel refuses (before Linux 5.9, or a filter), tables stay shared without a message.
    ///
    /// # Safety
    ///
    /// A number is another file, or none, in another table. So for all code that workers execute,
    /// which is the run's closure, the functions that it calls and the values that it drops, but
    /// also the global allocator and the panic hook:
    ///
    /// - Of the descriptors that others have opened, a worker may use the standard streams and
    ///   those that the run lists. It may close none of them.
    /// - No other thread may use or close a descriptor that a worker has opened, but for threads
    ///   that it has started itself and that are no workers.
    /// - Nothing may be looked up by number in `/proc/self/fd`, which is the table of the process's
    ///   first thread.
    ///
    /// The runs of `bc_hash` and of `bc_find` that take these tables keep to that if their callers'
    /// sinks do. A program that chooses this vouches for its allocator and its hooks.
    pub const unsafe fn private() -> Tables {
        Tables { private: true }
    }
}

/// First actions of the workers of a run.
#[derive(Debug)]
pub(crate) struct Entrance {
    tables: Tables,
    /// Numbers to be kept, ascending; not empty.
    kept: Vec<u32>,
}

impl Entrance {
    pub(crate) fn new(tables: Tables, named: &[BorrowedFd<'_>]) -> Entrance {
        let mut kept = vec![0, 1, 2];
        if tables.private {
            kept.extend(named.iter().map(|fd| fd.as_raw_fd().cast_unsigned()));
            kept.sort_unstable();
            kept.dedup();
        }
        Entrance { tables, kept }
    }

    /// Enters the table. Called by a thread that has just been started, before anything else.
    pub(crate) fn enter(&self) {
        if !self.tables.private {
            return;
        }
        // The thread's random numbers: where a filter refuses the call for them, the standard
        // library reads them from a file that is open in the process's table.
        std::hint::black_box(RandomState::new());
        // All others first: descriptors beyond the last one kept are not even copied. Only if that
        // is done the table is this thread's own.
        let last = self.kept.last().map_or(0, |last| last + 1);
        if !close_apart(last, u32::MAX) {
            return;
        }
        for pair in self.kept.windows(2) {
            if pair[0] + 1 < pair[1] {
                close_apart(pair[0] + 1, pair[1] - 1);
            }
        }
    }
}

/// Closes the descriptors from `first` to `last` in a table that this thread does not share, which
/// is made if need be; returns whether that was done.
fn close_apart(first: u32, last: u32) -> bool {
    // From linux/close_range.h, since 5.9 as the call is. It is given each time: should the table
    // still be shared, others lose nothing.
    const UNSHARE: libc::c_uint = 1 << 1;
    if cfg!(miri) {
        return false;
    }
    // SAFETY: the thread has just been started: it has opened nothing, and the caller that chose
    // private tables has promised that it uses none of the descriptors that are closed here. In
    // other threads' tables they stay open.
    unsafe { libc::syscall(libc::SYS_close_range, first, last, UNSHARE) == 0 }
}

#[cfg(test)]
mod tests;
