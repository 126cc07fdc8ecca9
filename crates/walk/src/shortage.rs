//! Waiting for a descriptor where the process has none left and others are about to close theirs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bc_pool::Cancel;
use rustix::io::Errno;

/// Number of waits for a descriptor: a second in all.
pub const WAITS: u32 = 1000;
/// Duration of one wait.
pub const WAIT: Duration = Duration::from_millis(1);

/// True if a call failed for want of a descriptor.
pub fn is_shortage(errno: Option<i32>) -> bool {
    [Errno::MFILE, Errno::NFILE]
        .map(|errno| Some(errno.raw_os_error()))
        .contains(&errno)
}

/// Shortage of descriptors, shared by all workers on one tree.
#[derive(Debug, Default)]
pub struct Shortage {
    cancel: Cancel,
    /// True once there was a shortage.
    is_short: AtomicBool,
    /// True if waiting was of no use the last time: others hold the descriptors.
    is_hopeless: AtomicBool,
}

impl Shortage {
    /// Starts without a shortage; `cancel` ends all waiting.
    pub fn new(cancel: &Cancel) -> Shortage {
        Shortage {
            cancel: cancel.clone(),
            ..Shortage::default()
        }
    }

    /// True if descriptors have been short, so that none should be kept without need.
    pub fn is_short(&self) -> bool {
        self.is_short.load(Ordering::Relaxed)
    }

    /// Remembers that descriptors are short.
    pub fn note(&self) {
        self.is_short.store(true, Ordering::Relaxed);
    }

    /// Calls `open` until it finds a descriptor, for a second at most; `errno` returns the error
    /// number of a failure. `let_go` is called after each failure and closes descriptors that the
    /// caller can do without: as that may be enough, the second try is at once. After a second in
    /// vain, no caller waits again before a descriptor was found.
    pub fn wait<T, E>(
        &self,
        errno: impl Fn(&E) -> Option<i32>,
        mut open: impl FnMut() -> Result<T, E>,
        mut let_go: impl FnMut(),
    ) -> Result<T, E> {
        let mut opened = open();
        for wait in 0..WAITS {
            match &opened {
                Err(error) if is_shortage(errno(error)) => {}
                // Most find one at once.
                Ok(_) if wait > 0 => {
                    self.is_hopeless.store(false, Ordering::Relaxed);
                    return opened;
                }
                _ => return opened,
            }
            self.note();
            let_go();
            if wait > 0 {
                if self.is_hopeless.load(Ordering::Relaxed) || self.cancel.is_cancelled() {
                    return opened;
                }
                std::thread::sleep(WAIT);
            }
            opened = open();
        }
        if matches!(&opened, Err(error) if is_shortage(errno(error))) {
            self.is_hopeless.store(true, Ordering::Relaxed);
        }
        opened
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Returns the number of calls with which `shortage` opens a file that finds a descriptor at
    /// the call `found`.
    fn tries(shortage: &Shortage, found: u32) -> u32 {
        let (tries, let_go) = (Cell::new(0), Cell::new(0));
        let opened = shortage.wait(
            |errno: &i32| Some(*errno),
            || {
                tries.set(tries.get() + 1);
                match tries.get() < found {
                    true => Err(Errno::MFILE.raw_os_error()),
                    false => Ok(()),
                }
            },
            || let_go.set(let_go.get() + 1),
        );
        assert_eq!(opened.is_ok(), tries.get() == found);
        assert_eq!(shortage.is_short(), let_go.get() > 0);
        tries.get()
    }

    #[test]
    fn what_never_comes_is_waited_for_once() {
        let shortage = Shortage::default();
        assert_eq!(tries(&shortage, 1), 1);
        assert_eq!(tries(&shortage, 5), 5);
        assert_eq!(tries(&shortage, u32::MAX), WAITS + 1);
        assert_eq!(tries(&shortage, u32::MAX), 2);
        // One was found: there is hope again.
        assert_eq!(tries(&shortage, 2), 2);
        assert_eq!(tries(&shortage, 5), 5);
    }

    #[test]
    fn nobody_waits_after_a_cancellation() {
        let cancel = Cancel::new();
        let shortage = Shortage::new(&cancel);
        assert_eq!(tries(&shortage, 3), 3);
        cancel.stop();
        assert_eq!(tries(&shortage, 3), 2);
    }
}
