//! Standard streams of the process, which of them were closed at its start, and the signals that it
//! ignores.
//!
//! Before `main`, Rust's runtime opens `/dev/null` in place of a standard stream that is closed (so
//! that no file is ever opened under its number). From then on a missing input reads as an empty
//! one, and results are discarded without an error. That `/dev/null` cannot be distinguished from
//! one that the caller passed, which is common: so the streams are examined before.
#![allow(
    unsafe_code,
    reason = "the only place before the runtime's start is the list of initialisers, and rustix has \
              no call for the actions of signals"
)]

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::Errno;

/// One of the three standard streams.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stream {
    /// Descriptor 0.
    Input,
    /// Descriptor 1.
    Output,
    /// Descriptor 2.
    Error,
}

/// A bit for each stream that was closed when the process began.
static CLOSED: AtomicU8 = AtomicU8::new(0);

/// True if the process was started with SIGPIPE ignored.
static IGNORES_PIPE: AtomicBool = AtomicBool::new(false);

// SAFETY: the loader calls every entry of `.init_array` once, on the only thread there is,
// before `main`, by C's calling convention; arguments that a function does not take are
// harmless in it. `look` needs nothing of Rust's runtime: it makes four system calls and
// stores two numbers. Where entries are not called, nothing counts as closed.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    let mut closed = 0;
    for stream in [Stream::Input, Stream::Output, Stream::Error] {
        if rustix::io::fcntl_getfd(descriptor(stream)) == Err(Errno::BADF) {
            closed |= 1 << stream as u8;
        }
    }
    CLOSED.store(closed, Ordering::Relaxed);
    IGNORES_PIPE.store(ignores_signal(libc::SIGPIPE), Ordering::Relaxed);
}

fn descriptor(stream: Stream) -> BorrowedFd<'static> {
    match stream {
        Stream::Input => rustix::stdio::stdin(),
        Stream::Output => rustix::stdio::stdout(),
        Stream::Error => rustix::stdio::stderr(),
    }
}

/// True if the process was started without this stream. A file under its number now leads nowhere,
/// by its path in `/dev` too.
pub fn was_closed(stream: Stream) -> bool {
    CLOSED.load(Ordering::Relaxed) & 1 << stream as u8 != 0
}

/// True if the process was started with SIGPIPE ignored. Rust's runtime ignores it in any case, so
/// that later nothing shows whether a write to a pipe without a reader should end the process.
pub fn ignores_broken_pipes() -> bool {
    IGNORES_PIPE.load(Ordering::Relaxed)
}

/// True if the process ignores the signal with this number at present; `false` for an invalid
/// number.
pub fn ignores_signal(number: i32) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: nothing is changed without a new action, and there is room for the present one.
    let asked = unsafe { libc::sigaction(number, std::ptr::null(), action.as_mut_ptr()) };
    // SAFETY: its fields are numbers and a function that may be missing, for all of which zeros
    // will do, whatever was stored over them.
    let action = unsafe { action.assume_init() };
    asked == 0 && action.sa_sigaction == libc::SIG_IGN
}

/// Opens a stream of its own for the descriptor, which stays open behind it. Unlike std's handles,
/// which take EBADF for an end of the input and for a successful write, it hides nothing.
///
/// # Errors
/// EBADF if the process was started without that stream, or if it cannot be read from (the
/// input) or written to (the others).
pub fn open(stream: Stream) -> io::Result<File> {
    let descriptor = descriptor(stream);
    if was_closed(stream) {
        return Err(Errno::BADF.into());
    }
    let flags = fcntl_getfl(descriptor)?;
    let useless = match stream {
        Stream::Input => OFlags::WRONLY,
        Stream::Output | Stream::Error => OFlags::RDONLY,
    };
    if flags.contains(OFlags::PATH) || flags & OFlags::RWMODE == useless {
        return Err(Errno::BADF.into());
    }
    Ok(descriptor.try_clone_to_owned()?.into())
}

#[cfg(test)]
mod tests {
    use super::ignores_signal;

    #[test]
    fn what_is_ignored_is_told_from_what_is_not() {
        // Rust's runtime sees to the first.
        assert!(ignores_signal(libc::SIGPIPE));
        assert!(!ignores_signal(libc::SIGSEGV) && !ignores_signal(libc::SIGKILL));
        assert!(!ignores_signal(0) && !ignores_signal(-1) && !ignores_signal(1000));
    }
}
