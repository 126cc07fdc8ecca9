//! A worker's ring: not yet needed, made, or refused.

use bc_walk::Error;
use rustix::io::Errno;

use crate::types::{Backend, Choice};
use crate::uring::{Completion, Ring};
use crate::waits::{Call, CallHistory, Residency};

/// The ring of one worker, made when it is first needed: over resident files
/// `Choice::Auto` never makes one.
pub(crate) struct ReadQueue<'a> {
    choice: Choice,
    /// True if the way was to be chosen by what calls wait for, whatever the kernel has refused since.
    auto: bool,
    slots: usize,
    ring: Option<Ring<'a>>,
    refused: Option<Error>,
    used: Backend,
    /// Reads in a row that found their data resident.
    hits: u32,
    /// Misses of open and read, by [`Call`].
    asked: [CallHistory; 2],
}

/// First way to try a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum FirstTry {
    /// By a call that does not wait for the disk.
    Cached,
    /// Waiting if need be.
    Plain,
    /// By the ring, or by a plain call if there is none.
    Ring,
}

/// Number of reads in a row without waiting, after which only one file in [`SAMPLE`] is asked,
/// until one would wait. Asking whether an open or a read would wait costs some 60 ns each, 3 % of
/// opening, reading and closing a small file.
const STEADY: u32 = 64;
const SAMPLE: u32 = 4;

impl<'a> ReadQueue<'a> {
    pub(crate) fn new(choice: Choice, slots: usize, residency: &Residency) -> ReadQueue<'a> {
        ReadQueue {
            choice,
            auto: choice == Choice::Auto,
            slots,
            ring: None,
            refused: None,
            used: Backend::Sync,
            hits: 0,
            asked: [Call::Open, Call::Read].map(|call| residency.asked(call)),
        }
    }

    /// Returns the way to open a file, or to read on in it: while all is resident both are asked
    /// alike, for they see the same count of hits.
    pub(crate) fn way(&self, call: Call) -> FirstTry {
        #[cfg(test)]
        if crate::tests::pretends_miss() {
            return FirstTry::Ring;
        }
        match self.choice {
            Choice::Auto if !self.asked[call as usize].is_due() => FirstTry::Ring,
            Choice::Auto if self.hits < STEADY || self.hits.is_multiple_of(SAMPLE) => {
                FirstTry::Cached
            }
            Choice::Auto => FirstTry::Plain,
            Choice::Sync | Choice::Uring => FirstTry::Ring,
        }
    }

    /// True if there are plain calls only.
    pub(crate) fn is_plain(&self) -> bool {
        self.choice == Choice::Sync
    }

    /// True if the way is chosen by what calls wait for. Without a ring that decides how many workers
    /// make plain calls.
    pub(crate) fn chooses(&self) -> bool {
        self.auto
    }

    /// Returns the way to read a file for which the ring need not be considered: plain calls are
    /// all there is, or the read before found its data resident.
    pub(crate) fn direct(&self) -> Option<FirstTry> {
        match (self.way(Call::Read), self.choice) {
            (way @ (FirstTry::Cached | FirstTry::Plain), _) => (self.hits > 0).then_some(way),
            (FirstTry::Ring, Choice::Sync) => Some(FirstTry::Plain),
            (FirstTry::Ring, _) => None,
        }
    }

    /// Notes that an open that does not wait found its file.
    pub(crate) fn found(&mut self) {
        self.asked[Call::Open as usize].hit();
    }

    /// Notes that a read that does not wait found its data.
    pub(crate) fn hit(&mut self) {
        self.asked[Call::Read as usize].hit();
        self.hits = if self.hits < u32::MAX {
            self.hits + 1
        } else {
            STEADY
        };
    }

    /// Notes that a call's data were not resident.
    pub(crate) fn miss(&mut self, call: Call) {
        self.hits = 0;
        self.asked[call as usize].miss();
    }

    /// Notes that a call was left to the ring without asking.
    pub(crate) fn passed(&mut self, call: Call) {
        self.asked[call as usize].pass();
    }

    /// Returns the ring, unless plain calls were asked for or the kernel refuses it: from then on
    /// this is a queue of `Choice::Sync`.
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

    pub(crate) fn reap(&mut self) -> Option<(usize, Completion)> {
        self.ring.as_mut()?.reap()
    }

    /// Continues without the ring after it failed with `errno`; returns the slots that were in
    /// flight.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(choice: Choice) -> ReadQueue<'static> {
        ReadQueue::new(choice, 1, &Residency::default())
    }

    #[test]
    fn residency_is_sampled_after_many_hits_and_asked_after_a_miss() {
        let mut queue = queue(Choice::Auto);
        let mut asked = 0;
        for _ in 0..STEADY {
            assert_eq!(queue.way(Call::Read), FirstTry::Cached);
            queue.hit();
        }
        for _ in 0..100 * SAMPLE {
            asked += u32::from(queue.way(Call::Read) == FirstTry::Cached);
            queue.hit();
        }
        assert_eq!(asked, 100);
        queue.hits = u32::MAX - 1;
        queue.hit();
        queue.hit();
        assert_eq!(queue.hits, STEADY);
        queue.miss(Call::Read);
        while queue.way(Call::Read) == FirstTry::Ring {
            queue.passed(Call::Read);
        }
        for _ in 0..STEADY {
            assert_eq!(queue.way(Call::Read), FirstTry::Cached);
            queue.hit();
        }
    }

    /// Or no worker would ever join at a server where the kernel has no ring.
    #[test]
    fn a_refused_ring_changes_nothing_about_who_chooses() {
        for choice in [Choice::Auto, Choice::Uring] {
            let mut queue = queue(choice);
            assert!(queue.abandon(Errno::PERM).is_empty());
            assert!(queue.is_plain() && queue.ring().is_none());
            assert_eq!(queue.chooses(), choice == Choice::Auto);
        }
    }

    #[test]
    fn other_choices_ask_nothing() {
        for choice in [Choice::Sync, Choice::Uring] {
            let mut queue = queue(choice);
            for _ in 0..2 * STEADY {
                assert_eq!(queue.way(Call::Read), FirstTry::Ring);
                queue.hit();
            }
        }
    }
}
