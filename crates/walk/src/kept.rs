//! The directories that the workers of a walk keep open, of which each can be made to let go by
//! all.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use rustix::io::Errno;

use crate::ancestors::AncestorFds;

type Ancestors = AncestorFds<Arc<OwnedFd>>;

/// How often and how long a descriptor is waited for that others are about to close: for a second.
const WAITS: u32 = 1000;
const WAIT: Duration = Duration::from_millis(1);

/// What all workers of a walk keep. A worker that waits for work goes on keeping its directories,
/// and those of a few workers are more than a small limit on descriptors allows.
#[derive(Debug, Default)]
pub(crate) struct KeptDirs {
    workers: Mutex<Vec<Weak<Slot>>>,
    /// Waiting was of no use: others hold them.
    is_hopeless: AtomicBool,
}

/// What one worker keeps, but for the time in which it opens a directory. On a cache line of its
/// own, as every directory is two visits.
#[derive(Default)]
#[repr(align(64))]
struct Slot(Mutex<Ancestors>);

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slot").finish_non_exhaustive()
    }
}

impl Slot {
    fn take(&self) -> Ancestors {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl KeptDirs {
    /// A place for what a worker keeps, as long as it lives.
    pub(crate) fn join(&self) -> Own<'_> {
        let slot = Arc::new(Slot::default());
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        workers.retain(|worker| worker.strong_count() > 0);
        workers.push(Arc::downgrade(&slot));
        Own { all: self, slot }
    }

    fn clear(&self) {
        let workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        for worker in workers.iter().filter_map(Weak::upgrade) {
            // Closed after the lock.
            drop(worker.take());
        }
    }
}

/// A worker's part of [`KeptDirs`].
pub(crate) struct Own<'k> {
    all: &'k KeptDirs,
    slot: Arc<Slot>,
}

impl Own<'_> {
    /// Opens what `open` opens with the help of what is kept. Where descriptors are short, all
    /// workers let go of theirs, `note` is told, and those that others use right now are waited
    /// for.
    pub(crate) fn open<T>(
        &self,
        note: impl Fn(),
        mut open: impl FnMut(&mut Ancestors) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let mut kept = self.slot.take();
        let mut opened = open(&mut kept);
        for wait in 0..WAITS {
            if !is_short(&opened) {
                break;
            }
            note();
            kept.clear();
            self.all.clear();
            if wait > 0 {
                if self.all.is_hopeless.load(Ordering::Relaxed) {
                    break;
                }
                std::thread::sleep(WAIT);
            }
            opened = open(&mut kept);
        }
        if is_short(&opened) {
            self.all.is_hopeless.store(true, Ordering::Relaxed);
        }
        *self.slot.0.lock().unwrap_or_else(PoisonError::into_inner) = kept;
        opened
    }
}

fn is_short<T>(opened: &Result<T, Errno>) -> bool {
    matches!(opened, Err(Errno::MFILE | Errno::NFILE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::fs::File;

    fn dir() -> Arc<OwnedFd> {
        Arc::new(File::open(".").unwrap().into())
    }

    #[test]
    fn who_is_short_makes_those_that_wait_for_work_let_go() {
        let all = KeptDirs::default();
        let (own, idle, gone) = (all.join(), all.join(), all.join());
        let fd = dir();
        for worker in [&own, &idle, &gone] {
            let keep = |kept: &mut Ancestors| -> Result<(), Errno> {
                kept.push(b"a", &fd);
                Ok(())
            };
            worker.open(|| (), keep).unwrap();
        }
        assert_eq!(Arc::strong_count(&fd), 4);
        drop(gone);
        assert_eq!(Arc::strong_count(&fd), 3);
        let noted = Cell::new(0);
        let opened = own.open(
            || noted.set(noted.get() + 1),
            |_| match Arc::strong_count(&fd) {
                1 => Ok(()),
                _ => Err(Errno::MFILE),
            },
        );
        assert_eq!((opened, noted.get()), (Ok(()), 1));
    }

    #[test]
    fn what_another_one_uses_is_waited_for() {
        let all = KeptDirs::default();
        let own = all.join();
        let fd = dir();
        let user = Arc::clone(&fd);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                std::thread::sleep(20 * WAIT);
                drop(user);
            });
            let opened = own.open(
                || (),
                |_| match Arc::strong_count(&fd) {
                    1 => Ok(()),
                    _ => Err(Errno::NFILE),
                },
            );
            assert_eq!(opened, Ok(()));
        });
        // What never comes is waited for once.
        for most in [WAITS + 1, 2] {
            let tries = Cell::new(0);
            let opened = own.open(
                || (),
                |_| -> Result<(), Errno> {
                    tries.set(tries.get() + 1);
                    Err(Errno::MFILE)
                },
            );
            assert_eq!((opened, tries.get()), (Err(Errno::MFILE), most));
        }
        let other = own.open(|| (), |_| -> Result<(), Errno> { Err(Errno::ACCESS) });
        assert_eq!(other, Err(Errno::ACCESS));
    }
}
