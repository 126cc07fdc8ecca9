//! The directories that the workers of a walk keep open, of which each can be made to let go by
//! all.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bc_fs::shortage::Shortage;
use bc_pool::Cancel;
use rustix::io::Errno;

use crate::ancestors::AncestorFds;

type Ancestors = AncestorFds<Arc<OwnedFd>>;

/// Directories kept open by all workers of a walk. A worker that waits for work keeps its
/// directories, and those of a few workers are more than a small limit on descriptors allows.
#[derive(Debug, Default)]
pub(crate) struct KeptDirs {
    workers: Mutex<Vec<Weak<Slot>>>,
}

/// Directories kept by one worker, except while it opens a directory. On a cache line of its own,
/// as every directory is two visits.
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
    /// Returns a slot for the directories that a worker keeps, as long as it lives.
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
    /// Opens a directory by `open`, which is given the kept ones. Where descriptors are short, all
    /// workers let go of theirs, and those that others use right now are waited for until `cancel`.
    pub(crate) fn open<T>(
        &self,
        shortage: &Shortage,
        cancel: &Cancel,
        mut open: impl FnMut(&mut Ancestors) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let mut kept = self.slot.take();
        let mut wait = shortage.wait(1);
        let opened = loop {
            let opened = open(&mut kept);
            let let_go = || {
                kept.clear();
                self.all.clear();
            };
            if !wait.again(&opened, || cancel.is_cancelled(), let_go) {
                break opened;
            }
        };
        *self.slot.0.lock().unwrap_or_else(PoisonError::into_inner) = kept;
        opened
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    fn dir() -> Arc<OwnedFd> {
        Arc::new(File::open(".").unwrap().into())
    }

    #[test]
    fn who_is_short_makes_those_that_wait_for_work_let_go() {
        let all = KeptDirs::default();
        let (own, idle, gone) = (all.join(), all.join(), all.join());
        let (fd, shortage) = (dir(), Shortage::new());
        for worker in [&own, &idle, &gone] {
            let keep = |kept: &mut Ancestors| -> Result<(), Errno> {
                kept.push(b"a", &fd);
                Ok(())
            };
            worker.open(&shortage, &Cancel::new(), keep).unwrap();
        }
        assert_eq!(Arc::strong_count(&fd), 4);
        drop(gone);
        assert_eq!(Arc::strong_count(&fd), 3);
        let mut tries = 0;
        let opened = own.open(&shortage, &Cancel::new(), |_| {
            tries += 1;
            match Arc::strong_count(&fd) {
                1 => Ok(()),
                _ => Err(Errno::MFILE),
            }
        });
        assert_eq!((opened, tries), (Ok(()), 2));
        assert!(shortage.is_short());
    }

    #[test]
    fn what_another_one_uses_is_waited_for() {
        let all = KeptDirs::default();
        let own = all.join();
        let (fd, shortage) = (dir(), Shortage::new());
        let mut user = Some(Arc::clone(&fd));
        let mut tries = 0;
        let opened = own.open(&shortage, &Cancel::new(), |_| {
            tries += 1;
            if tries == 5 {
                user = None;
            }
            match Arc::strong_count(&fd) {
                1 => Ok(()),
                _ => Err(Errno::NFILE),
            }
        });
        assert_eq!((opened, tries), (Ok(()), 5));
        let other = own.open(&shortage, &Cancel::new(), |_| -> Result<(), Errno> {
            Err(Errno::ACCESS)
        });
        assert_eq!(other, Err(Errno::ACCESS));
    }
}
