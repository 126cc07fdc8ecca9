//! Dispositions of signals in this process.
#![allow(unsafe_code, reason = "rustix has no call for the actions of signals")]

use std::mem::MaybeUninit;

/// True if the process ignores the signal with this number at present; `false` for an invalid
/// number.
pub fn is_ignored(number: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: nothing is changed without a new action, and there is room for the present one.
    let asked = unsafe { libc::sigaction(number, std::ptr::null(), action.as_mut_ptr()) };
    // SAFETY: its fields are numbers and a function that may be missing, for all of which zeros
    // will do, whatever was stored over them.
    let action = unsafe { action.assume_init() };
    asked == 0 && action.sa_sigaction == libc::SIG_IGN
}

#[cfg(test)]
mod tests {
    use super::is_ignored;

    #[test]
    fn what_is_ignored_is_told_from_what_is_not() {
        // Rust's runtime sees to the first.
        assert!(is_ignored(libc::SIGPIPE));
        assert!(!is_ignored(libc::SIGSEGV) && !is_ignored(libc::SIGKILL));
        assert!(!is_ignored(0) && !is_ignored(-1) && !is_ignored(1000));
    }
}
