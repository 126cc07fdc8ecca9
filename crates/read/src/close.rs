//! Closing what was read.
#![allow(unsafe_code)] // closing a number

use std::os::fd::{IntoRawFd, OwnedFd};

/// Closes `file` by the bare system call. The C library's `close`, which dropping it would call,
/// lets the thread be cancelled meanwhile, and to arrange for that takes a tenth of its time.
pub(crate) fn close(file: OwnedFd) {
    // SAFETY: the number was `file`'s own, which nobody has any more.
    unsafe { rustix::io::close(file.into_raw_fd()) }
}
