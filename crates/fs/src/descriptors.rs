//! Number of files that this process can still open.
#![allow(
    unsafe_code,
    reason = "poll of numbers that are not open, for which rustix has no call"
)]

use std::fmt;

use rustix::process::{Resource, getrlimit};

/// Descriptors that any command can do with, beside those that are open when it begins: a journal,
/// the directories on both sides, a file on each, and those for questions to the system.
pub const ENOUGH: usize = 12;

/// Fewer descriptors are left than are needed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TooFew {
    left: usize,
    allowed: u64,
}

impl fmt::Display for TooFew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooFew { left, allowed } = self;
        let more = ENOUGH - left;
        write!(
            f,
            "too few open files are allowed: {left} are left of {allowed}, and {ENOUGH} are needed; use: \
             ulimit -n {}",
            allowed + more as u64
        )
    }
}

impl std::error::Error for TooFew {}

/// Verifies that [`ENOUGH`] more files can be opened.
///
/// # Errors
/// If not, with numbers.
pub fn check() -> Result<(), TooFew> {
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let left = free(ENOUGH, allowed);
    match left < ENOUGH {
        true => Err(TooFew { left, allowed }),
        false => Ok(()),
    }
}

/// Numbers asked about at once.
const AT_ONCE: u64 = 64;

/// Counts free descriptors below the limit, up to `enough` of them.
fn free(enough: usize, allowed: u64) -> usize {
    let mut found = 0;
    let mut from = 0;
    while from < allowed && found < enough {
        let end = allowed.min(from + AT_ONCE);
        let numbers = from..end.min(i32::MAX as u64);
        let mut asked: Vec<libc::pollfd> = numbers
            .map(|fd| libc::pollfd {
                fd: fd as i32,
                events: 0,
                revents: 0,
            })
            .collect();
        // SAFETY: the kernel writes to as many elements as there are; a number that is not open is
        // answered with POLLNVAL, and nothing is done with one that is.
        let answered = unsafe { libc::poll(asked.as_mut_ptr(), asked.len() as libc::nfds_t, 0) };
        if answered < 0 || asked.is_empty() {
            // Unknown, and nothing is refused because of that.
            return enough;
        }
        let is_free = |fd: &&libc::pollfd| fd.revents & libc::POLLNVAL != 0;
        found += asked.iter().filter(is_free).count();
        from = end;
    }
    found.min(enough)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_ones_are_counted() {
        let files: Vec<_> = (0..100)
            .map(|_| std::fs::File::open("/dev/null").unwrap())
            .collect();
        assert_eq!(free(5, u64::MAX), 5);
        assert!(check().is_ok());
        // The first few numbers are in use.
        assert_eq!(free(5, 3), 0);
        drop(files);
    }

    #[test]
    fn the_message_has_the_figures() {
        let text = TooFew {
            left: 9,
            allowed: 12,
        };
        assert_eq!(
            text.to_string(),
            "too few open files are allowed: 9 are left of 12, and 12 are needed; use: ulimit -n 15"
        );
    }
}
