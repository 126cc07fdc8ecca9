//! Residency as learned from reading: which questions a file system never answers, and how cold its
//! files have been lately. Workers start with the experience of others before them.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Experience of workers that read with clones of the same [`ReadOptions`](crate::ReadOptions): a
/// search in several passes, or many workers, need not ask again what was asked before. It decides
/// about speed alone.
#[derive(Clone, Debug, Default)]
pub struct Residency(Arc<Learned>);

#[derive(Debug, Default)]
struct Learned {
    /// Misses in a row, by [`Call`], of the worker that asked last, as far as they count.
    misses: [AtomicU8; 2],
    /// Devices that cannot report what of a file is resident.
    silent: Mutex<Vec<u64>>,
}

/// Calls that can be tried without waiting for the disk.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Call {
    Open,
    Read,
}

/// Frequency of questions: after so many misses in a row, one call of so many is asked. A disk's
/// latency is a hundred times what a question costs, so one miss is enough to ask less; 512 files
/// more or less on the ring are not noticed. So both calls of a file together fail for less than
/// one file in a hundred, whether all of them are cold or any part.
const ONE_OF: [u32; 4] = [1, 8, 64, 512];
/// Misses that a new worker believes in without having seen them: what it is to read may have
/// become resident since.
const BELIEVED: u8 = 2;

/// One worker's memory of how one of the calls went.
#[derive(Debug)]
pub(crate) struct CallHistory {
    call: Call,
    misses: u8,
    /// Calls since the last question.
    passed: u32,
    residency: Residency,
}

impl Residency {
    /// Returns the memory of a worker that begins.
    pub(crate) fn asked(&self, call: Call) -> CallHistory {
        let misses = self.0.misses[call as usize].load(Ordering::Relaxed);
        CallHistory {
            call,
            misses: misses.min(BELIEVED),
            passed: 0,
            residency: self.clone(),
        }
    }

    /// Returns the devices that were found silent: they cannot report what of a file is resident.
    pub(crate) fn silent(&self) -> MutexGuard<'_, Vec<u64>> {
        let devs = self.0.silent.lock();
        devs.unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallHistory {
    /// True if the next call is to be asked.
    pub(crate) fn is_due(&self) -> bool {
        self.passed + 1 >= ONE_OF[usize::from(self.misses)]
    }

    /// Notes that the data asked for were resident.
    pub(crate) fn hit(&mut self) {
        if self.misses > 0 {
            self.report(0);
        }
    }

    /// Notes that the data asked for were not resident.
    pub(crate) fn miss(&mut self) {
        let most = ONE_OF.len() as u8 - 1;
        self.passed = 0;
        self.report((self.misses + 1).min(most));
    }

    /// Notes that a call was made without a question.
    pub(crate) fn pass(&mut self) {
        self.passed = self.passed.saturating_add(1).min(u32::MAX - 1);
    }

    /// Shares the misses; others' lines of the cache are written to only when something has
    /// changed.
    fn report(&mut self, misses: u8) {
        self.misses = misses;
        let reported = &self.residency.0.misses[self.call as usize];
        if reported.load(Ordering::Relaxed) != misses {
            reported.store(misses, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of questions and that of negative answers, for `files` files whose
    /// residency `is_resident` returns.
    fn ask(asked: &mut CallHistory, files: u32, is_resident: impl Fn(u32) -> bool) -> (u32, u32) {
        let (mut questions, mut failed) = (0, 0);
        for file in 0..files {
            if !asked.is_due() {
                asked.pass();
                continue;
            }
            questions += 1;
            if is_resident(file) {
                asked.hit();
            } else {
                failed += 1;
                asked.miss();
            }
        }
        (questions, failed)
    }

    #[test]
    fn what_is_cold_is_seldom_asked() {
        let residency = Residency::default();
        let (_, failed) = ask(&mut residency.asked(Call::Read), 1_000, |_| false);
        assert!((2..=5).contains(&failed), "{failed}");
        // Other workers, and later passes, ask less at their beginning.
        let (_, failed) = ask(&mut residency.asked(Call::Read), 1_000, |_| false);
        assert!((1..=3).contains(&failed), "{failed}");
        // Names are known, or not, apart from contents.
        assert!(residency.asked(Call::Open).is_due());
    }

    #[test]
    fn any_part_that_is_cold_costs_few_questions() {
        for one_of in [2, 3, 5, 10, 50] {
            let mut rng = bc_testkit::Rng::new(one_of);
            let resident: Vec<bool> = (0..100_000).map(|_| rng.below(one_of) == 0).collect();
            let mut asked = Residency::default().asked(Call::Read);
            let (_, failed) = ask(&mut asked, 100_000, |file| resident[file as usize]);
            assert!(failed <= 2_000, "1 of {one_of} resident: {failed}");
        }
    }

    #[test]
    fn what_is_resident_is_asked_at_once_and_again_after_a_miss() {
        let residency = Residency::default();
        assert_eq!(
            ask(&mut residency.asked(Call::Read), 1_000, |_| true),
            (1_000, 0)
        );
        let mut asked = residency.asked(Call::Read);
        let (questions, failed) = ask(&mut asked, 1_000, |file| file % 100 != 0);
        assert_eq!(failed, 10);
        assert!(questions >= 900, "{questions}");
        ask(&mut asked, 10_000, |_| false);
        let (questions, _) = ask(&mut asked, 1_000, |_| true);
        assert!(questions > 400, "{questions}");
        // And so is it by a worker that knows of a cold disk.
        ask(&mut asked, 10_000, |_| false);
        let (questions, _) = ask(&mut residency.asked(Call::Read), 1_000, |_| true);
        assert!(questions > 900, "{questions}");
    }
}
