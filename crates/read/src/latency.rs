//! Waiting calls, recognised by the time they take: for file systems that cannot report what is
//! resident (NFS, FUSE, some overlays).

use std::time::{Duration, Instant};

use crate::idle::Idle;

/// A call of this length, and a nanosecond for each byte that is read, has waited for so long that
/// a few more workers are no help: those [join](bc_pool::Growth) before, and wait for less without
/// having to be woken by the ring's. With 50 µs and with 1 ms 2,982 files of 21 KB took as long,
/// cold and warm, on bindfs, fuse-overlayfs, EROFS and an overlay: 0.9 to 1.1 of it.
const SLOW: Duration = Duration::from_micros(200);
/// Slow reads, less the fast ones among them, after which reads are queued.
const ENOUGH: u8 = 4;
/// More slow reads than this are not remembered.
const MOST: u8 = 8;
/// Number of queued reads of which one is a plain one, and timed.
const PROBE: u8 = 16;

/// A score with hysteresis: up by one for a slow read, down by one for a fast
/// one; while reads are queued, one fast probe outweighs four slow ones.
#[derive(Debug, Default)]
pub(crate) struct Latency {
    score: u8,
    queued: u8,
    idle: Idle,
}

impl Latency {
    /// True if the next call is to be queued instead of waited for.
    pub(crate) fn queues(&mut self) -> bool {
        if self.score < ENOUGH {
            return false;
        }
        if !self.idle.is_found() {
            return false;
        }
        self.queued = (self.queued + 1) % PROBE;
        self.queued != 0
    }

    /// Does a plain read and notes its time.
    pub(crate) fn timed<E>(&mut self, read: impl FnOnce() -> Result<usize, E>) -> Result<usize, E> {
        self.timed_call(read, |bytes| *bytes)
    }

    /// Does a plain call that takes the longer the more `bytes` it gives, and notes its time if it
    /// succeeds.
    pub(crate) fn timed_call<T, E>(
        &mut self,
        call: impl FnOnce() -> Result<T, E>,
        bytes: impl FnOnce(&T) -> usize,
    ) -> Result<T, E> {
        let start = Instant::now();
        let result = call();
        if let Ok(given) = &result {
            self.note(start.elapsed(), bytes(given));
        }
        result
    }

    fn note(&mut self, took: Duration, bytes: usize) {
        #[cfg(test)]
        let took = took + crate::tests::pretended_latency();
        if took > SLOW + Duration::from_nanos(bytes as u64) {
            self.score = (self.score + 1).min(MOST);
        } else if self.score < ENOUGH {
            self.score = self.score.saturating_sub(1);
        } else {
            self.score -= ENOUGH;
            self.idle.forget();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAST: Duration = Duration::from_micros(5);
    const WAIT: Duration = Duration::from_millis(3);

    #[test]
    fn a_few_slow_reads_change_nothing() {
        let mut latency = Latency::default();
        for turn in 0..100 {
            assert!(!latency.queues());
            latency.note(if turn % 2 == 0 { WAIT } else { FAST }, 4096);
        }
        // A large read may take its time.
        for _ in 0..100 {
            latency.note(Duration::from_micros(150), 128 << 10);
            assert!(!latency.queues());
        }
    }

    #[test]
    fn slow_reads_are_queued_until_probes_are_fast() {
        let mut latency = Latency::default();
        for _ in 0..ENOUGH {
            assert!(!latency.queues());
            latency.note(WAIT, 4096);
        }
        let mut probes = 0;
        for _ in 0..160 {
            if !latency.queues() {
                probes += 1;
                latency.note(WAIT, 4096);
            }
        }
        assert_eq!(probes, 10);
        let mut probes = 0;
        while latency.score >= ENOUGH {
            if !latency.queues() {
                probes += 1;
                latency.note(FAST, 4096);
            }
        }
        assert_eq!(probes, 2, "one fast probe is not enough");
        assert!(!latency.queues());
    }
}
