//! Whether a worker has a ring, wants one, or was refused.

use bc_walk::Error;
use rustix::io::Errno;

use crate::types::{Backend, Choice};
use crate::uring::{Done, Ring};

/// The ring of one worker, made when it is first needed: over resident files
/// `Choice::Auto` never makes one.
pub(crate) struct Queue<'a> {
    choice: Choice,
    slots: usize,
    ring: Option<Ring<'a>>,
    refused: Option<Error>,
    used: Backend,
}

impl<'a> Queue<'a> {
    pub(crate) fn new(choice: Choice, slots: usize) -> Queue<'a> {
        Queue {
            choice,
            slots,
            ring: None,
            refused: None,
            used: Backend::Sync,
        }
    }

    /// Whether calls that do not wait for the disk come first.
    pub(crate) fn tries_cached(&self) -> bool {
        #[cfg(test)]
        if crate::tests::pretends_miss() {
            return false;
        }
        self.choice == Choice::Auto
    }

    /// The ring, unless plain calls were asked for or the kernel refuses it:
    /// from then on this is a queue of `Choice::Sync`.
    pub(crate) fn ring(&mut self) -> Option<&mut Ring<'a>> {
        if self.choice == Choice::Sync {
            return None;
        }
        if self.ring.is_none() {
            match Ring::new(self.slots) {
                Ok(ring) => {
                    self.ring = Some(ring);
                    self.used = match self.choice {
                        Choice::Uring => Backend::Uring,
                        _ => Backend::Mixed,
                    };
                }
                Err(error) => {
                    self.refused = Some(error);
                    self.choice = Choice::Sync;
                }
            }
        }
        self.ring.as_mut()
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.ring.as_ref().map_or(0, Ring::in_flight)
    }

    pub(crate) fn submit(&mut self, wait: usize) -> Result<(), Errno> {
        self.ring.as_mut().map_or(Ok(()), |ring| ring.submit(wait))
    }

    pub(crate) fn reap(&mut self) -> Option<(usize, Done)> {
        self.ring.as_mut()?.reap()
    }

    /// Goes on without the ring after it failed with `errno`; returns the slots
    /// that were in flight.
    pub(crate) fn abandon(&mut self, errno: Errno) -> Vec<usize> {
        self.choice = Choice::Sync;
        self.used = Backend::Mixed;
        self.refused = Some(Error::new(Vec::new(), "io_uring", errno));
        self.ring
            .take()
            .map_or_else(Vec::new, |mut ring| ring.abandon())
    }

    pub(crate) fn outcome(self) -> (Backend, Option<Error>) {
        (self.used, self.refused)
    }
}
