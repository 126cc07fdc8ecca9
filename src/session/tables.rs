//! Tables of descriptors for workers: the program's choice, which no library makes for it.
#![allow(
    unsafe_code,
    reason = "the choice concerns the whole program, for which nobody else can vouch"
)]

use bc_pool::Tables;

/// Returns the tables for workers that read, hash and copy files.
pub fn of_workers() -> Tables {
    // SAFETY: the runs that take these tables, of bc-hash, bc-find and bc-copy, name the directories
    // that the listing holds open, and those of copies their destinations and journals; everything
    // else their workers open and close themselves, and runs that hash keep a journal's file out of
    // it. No worker of a copy calls its observer, which writes to a duplicate of stdout: the thread
    // that began the copy, whose table is the process's, does (`bc_copy`'s relay). The program's
    // sinks for the others, and its hook for panics, use memory and the standard streams. None
    // of it reads `/proc/self/fd`.
    unsafe { Tables::private() }
}
