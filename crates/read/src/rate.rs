//! A limit of bytes a second, for jobs that leave the disk to others: one bucket that all workers
//! take from.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bc_pool::Cancel;

/// Longest sleep before a cancellation is noticed.
const GLANCE: Duration = Duration::from_millis(20);

/// A limit of bytes a second. Clones share it.
///
/// Bytes are counted when they have been read or written, and paid for before the next ones: what
/// is in flight may run ahead of the limit by a buffer for each worker, and no further. Time in
/// which nothing was read is not made up for.
///
/// ```
/// let rate = bc_read::Rate::new(10 << 20);
/// assert!(rate.spend(512 << 10, &bc_pool::Cancel::new()));
/// ```
#[derive(Clone, Debug)]
pub struct Rate {
    bytes_per_second: u64,
    /// Time at which all bytes so far are paid for.
    paid: Arc<Mutex<Instant>>,
}

impl Rate {
    /// Makes a limit; 0 counts as 1.
    pub fn new(bytes_per_second: u64) -> Rate {
        Rate {
            bytes_per_second: bytes_per_second.max(1),
            paid: Arc::new(Mutex::new(Instant::now())),
        }
    }

    /// Notes that so many bytes were read or written, and waits until they are paid for. Returns
    /// false if it was cancelled meanwhile. Not for callers that hold a lease: see
    /// [`spend_while`](Rate::spend_while).
    pub fn spend(&self, bytes: u64, cancel: &Cancel) -> bool {
        self.spend_while(bytes, cancel, || true)
    }

    /// Does the same as [`spend`](Rate::spend) as long as `go_on` holds, which is asked before each
    /// part of the wait, of some milliseconds: for callers that others may have to wait for, as they
    /// hold a lease. What was not waited for stays to be paid for before the next bytes.
    pub fn spend_while(
        &self,
        bytes: u64,
        cancel: &Cancel,
        mut go_on: impl FnMut() -> bool,
    ) -> bool {
        let until = {
            let mut paid = self.paid.lock().unwrap_or_else(PoisonError::into_inner);
            *paid = self.after(*paid, Instant::now(), bytes);
            *paid
        };
        loop {
            if cancel.is_cancelled() {
                return false;
            }
            match until.checked_duration_since(Instant::now()) {
                None | Some(Duration::ZERO) => return true,
                Some(_) if !go_on() => return false,
                Some(left) => std::thread::sleep(left.min(GLANCE)),
            }
        }
    }

    /// Returns the time at which `bytes` more are paid for, if all before are at `paid`.
    fn after(&self, paid: Instant, now: Instant, bytes: u64) -> Instant {
        // A century at most, so that no number of bytes is beyond all times.
        const LONGEST: u128 = 100 * 365 * 86_400 * 1_000_000_000;
        let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(self.bytes_per_second);
        let cost = Duration::from_nanos(nanos.min(LONGEST) as u64);
        let from = paid.max(now);
        from.checked_add(cost).unwrap_or(from)
    }
}

/// Bytes of one worker that are not paid for yet.
#[derive(Debug)]
pub(crate) struct Unpaid<'a> {
    rate: Option<&'a Rate>,
    /// Bytes paid for.
    paid: u64,
}

impl<'a> Unpaid<'a> {
    pub(crate) fn new(rate: Option<&'a Rate>) -> Unpaid<'a> {
        Unpaid { rate, paid: 0 }
    }

    /// Returns the number of `read` bytes that are not paid for, and the limit by which they are to
    /// be from now on.
    pub(crate) fn take(&mut self, read: u64) -> Option<(&'a Rate, u64)> {
        let rate = self.rate?;
        // A file that is read again takes its bytes back.
        let more = read.saturating_sub(self.paid);
        self.paid = read;
        (more > 0).then_some((rate, more))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_their_time() {
        let rate = Rate::new(1000);
        let begun = Instant::now();
        let after = |paid, now, bytes| rate.after(begun + paid, begun + now, bytes) - begun;
        let ms = Duration::from_millis;
        assert_eq!(after(ms(0), ms(0), 500), ms(500));
        // One after the other, whoever asks.
        assert_eq!(after(ms(500), ms(100), 500), ms(1000));
        // Time that has gone by is not made up for.
        assert_eq!(after(ms(500), ms(9000), 500), ms(9500));
        assert_eq!(after(ms(500), ms(600), 0), ms(600));
        assert!(after(ms(0), ms(0), u64::MAX) > ms(1 << 40));
    }

    #[test]
    fn waiting_ends_with_a_cancellation() {
        // A century: the test ends only if it is left.
        let rate = Rate::new(1);
        let cancel = Cancel::new();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| rate.spend(u64::MAX, &cancel));
            cancel.stop();
            assert!(!waits.join().unwrap());
        });
        assert!(!rate.spend(1, &cancel));
        assert!(Rate::new(0).spend(0, &Cancel::new()));
    }

    #[test]
    fn waiting_ends_when_another_process_waits_for_it() {
        // A century, as above.
        let (rate, cancel) = (Rate::new(1), Cancel::new());
        let mut asked = 0;
        let is_asked_often = || {
            asked += 1;
            asked < 3
        };
        assert!(!rate.spend_while(u64::MAX, &cancel, is_asked_often));
        assert_eq!(asked, 3);
        // Not asked where there is nothing to wait for.
        assert!(Rate::new(1).spend_while(0, &cancel, || panic!("it is paid for")));
    }
}
