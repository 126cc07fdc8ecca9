//! Idle processors, which could work on more requests at once.

use std::time::{Duration, Instant};

/// Shortest time between two looks. Times are counted in ticks of 10 ms for each processor: fewer
/// are no measure.
const WINDOW: Duration = Duration::from_millis(40);
/// Share of idle processors that is enough: one in so many.
const SHARE: u64 = 5;

/// A slow call waits for a disk or a network, or else for a processor: a FUSE server decrypts, the
/// kernel decompresses. Only the first kind gets faster if more of them wait at once. On two
/// processors, cold, 3,000 files of 16 KiB hashed with XXH128: plain calls took 0.81 of the time of
/// queued ones on gocryptfs, 0.76 on SquashFS, 0.86 on EROFS, and 1.08 of it on bindfs over ext4.
///
/// The source is `/proc/stat`, read while nothing is queued: a queue keeps processors busy.
#[derive(Debug, Default)]
pub(crate) struct Idle {
    last: Option<(Instant, Times)>,
    found: bool,
}

/// Times of all processors since the system's start, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Times {
    /// Idle, or idle until a disk answers.
    idle: u64,
    all: u64,
}

impl Idle {
    /// True if a good part of the processors was idle between earlier calls and this one. `false`
    /// at first; where the system does not report it, they are taken to be.
    pub(crate) fn is_found(&mut self) -> bool {
        // Tests say by themselves what waits.
        if cfg!(test) || self.found {
            return true;
        }
        self.look()
    }

    fn look(&mut self) -> bool {
        let now = Instant::now();
        if let Some((then, _)) = self.last
            && now - then < WINDOW
        {
            return false;
        }
        let Some(times) = std::fs::read_to_string("/proc/stat")
            .ok()
            .and_then(|text| Times::parse(&text))
        else {
            self.found = true;
            return true;
        };
        self.found = self
            .last
            .is_some_and(|(_, before)| times.is_idle_since(before));
        self.last = Some((now, times));
        self.found
    }

    /// Forgets the answer, so that the next call looks again.
    pub(crate) fn forget(&mut self) {
        *self = Idle::default();
    }
}

impl Times {
    /// Parses the first line: `cpu`, then ticks in user mode, niced, in the kernel, idle, waiting
    /// for a disk, and others (proc_stat(5)). Time of virtual machines is in the first two already.
    fn parse(text: &str) -> Option<Times> {
        let mut fields = text.lines().next()?.split_whitespace();
        if fields.next() != Some("cpu") {
            return None;
        }
        let ticks: Vec<u64> = fields
            .take(8)
            .map_while(|field| field.parse().ok())
            .collect();
        Some(Times {
            idle: ticks.get(3)? + ticks.get(4).unwrap_or(&0),
            all: ticks.iter().sum(),
        })
    }

    fn is_idle_since(self, before: Times) -> bool {
        let all = self.all.saturating_sub(before.all);
        // The time of waiting for a disk may be counted backwards.
        let idle = self.idle.saturating_sub(before.idle);
        all > 0 && idle * SHARE >= all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_read() {
        let text = "cpu  100 2 30 400 50 6 7 8 9 1\ncpu0 1 1 1 1 1 1 1 1 1 1\nintr 5\n";
        let times = Times::parse(text);
        assert_eq!(
            times,
            Some(Times {
                idle: 450,
                all: 603
            })
        );
        let old = Times::parse("cpu 1 2 3 4\n");
        assert_eq!(old, Some(Times { idle: 4, all: 10 }));
        for bad in ["", "cpu\n", "cpu 1 2 3\n", "cpu0 1 2 3 4 5\n", "cpu a\n"] {
            assert_eq!(Times::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_fifth_idle_is_idle() {
        let before = Times {
            idle: 100,
            all: 1000,
        };
        let after = |idle: u64, all: u64| {
            Times {
                idle: 100 + idle,
                all: 1000 + all,
            }
            .is_idle_since(before)
        };
        assert!(after(2, 8) && after(2, 10) && after(8, 8));
        assert!(!after(1, 8) && !after(0, 8) && !after(0, 0));
        assert!(
            !Times {
                idle: 90,
                all: 1010
            }
            .is_idle_since(before)
        );
    }

    #[test]
    fn the_system_tells() {
        let text = std::fs::read_to_string("/proc/stat").expect("/proc is mounted");
        let times = Times::parse(&text).expect("a line of all processors");
        assert!(times.all > times.idle, "{times:?}");
        let mut idle = Idle::default();
        assert!(!idle.look() && idle.last.is_some());
        assert!(!idle.look(), "too early to tell");
    }
}
