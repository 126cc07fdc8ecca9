//! Which threads read a file that one of them consumes: all, or that one alone. Measured while the
//! file is read, for no rule that was tried holds for every processor.
//!
//! What another core has read has to cross from its cache to the consumer's, and two threads of one
//! core slow each other down. SHA-256 of 1 GiB, cached, two threads and one: 0.55 s and 0.66 s on an
//! AMD EPYC (Zen 5), 0.85 s and 0.67 s on an Intel Xeon (user time 0.80 s and 0.53 s).

use std::time::Duration;

/// Threads that read a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ReadBy {
    All,
    Consumer,
}

impl ReadBy {
    fn other(self) -> ReadBy {
        match self {
            ReadBy::All => ReadBy::Consumer,
            ReadBy::Consumer => ReadBy::All,
        }
    }
}

/// Regular rounds before the first trial: 14 MiB and more, below which it would not pay.
const FIRST: u32 = 2;
/// Regular rounds between two trials, at most: 0.9 GiB and more.
const MOST: u32 = 128;

/// The choice between the two ways, by the time of one round in each of them. A round of the other
/// way, the trial, lies between two regular ones. It has to beat both, so that a disk which becomes
/// faster or slower meanwhile, or an interruption, decides nothing.
#[derive(Debug)]
pub(super) struct ReaderChoice {
    regular: ReadBy,
    phase: Phase,
    /// Regular rounds from one trial to the next.
    distance: u32,
    /// Regular rounds until the next trial.
    until: u32,
    /// Time of the last regular round.
    before: Option<Duration>,
}

#[derive(Debug)]
enum Phase {
    Regular,
    Trial,
    /// After a trial that took so long.
    After(Duration),
}

impl ReaderChoice {
    pub(super) fn new() -> ReaderChoice {
        ReaderChoice {
            regular: ReadBy::All,
            phase: Phase::Regular,
            distance: FIRST,
            until: FIRST,
            before: None,
        }
    }

    /// Takes note of the time of a round, and returns who reads in the next one. Where all read and
    /// their chunks are late, reading is what takes the time, and one alone is not tried: it would be
    /// slower for sure, 7 % of a file of 1 GiB with XXH128.
    pub(super) fn round(&mut self, took: Duration, is_late: bool) -> ReadBy {
        match self.phase {
            Phase::Regular => {
                if self.before.is_some_and(|before| differ(before, took)) {
                    // Other data, or another load: what was measured is no longer true.
                    self.distance = FIRST;
                    self.until = self.until.min(FIRST);
                }
                self.before = Some(took);
                self.until -= 1;
                if self.until > 0 {
                    return self.regular;
                }
                if is_late && self.regular == ReadBy::All {
                    self.until = self.distance;
                    return self.regular;
                }
                self.phase = Phase::Trial;
                self.regular.other()
            }
            Phase::Trial => {
                self.phase = Phase::After(took);
                self.regular
            }
            Phase::After(trial) => {
                let best = self.before.map_or(took, |before| before.min(took));
                self.before = Some(took);
                // 2 %: less is noise.
                if trial * 50 < best * 49 {
                    self.regular = self.regular.other();
                    self.before = Some(trial);
                }
                self.phase = Phase::Regular;
                self.distance = (self.distance * 8).min(MOST);
                self.until = self.distance;
                self.regular
            }
        }
    }
}

/// True if one time is more than half as long again as the other.
fn differ(a: Duration, b: Duration) -> bool {
    a.max(b) * 2 > a.min(b) * 3
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs so many rounds whose times follow from the number and the way, and returns the ways as
    /// letters.
    fn ways(rounds: u32, took: impl Fn(u32, ReadBy) -> u64) -> String {
        ways_late(rounds, took, |_| false)
    }

    /// The same, with chunks that are late in some of the rounds.
    fn ways_late(
        rounds: u32,
        took: impl Fn(u32, ReadBy) -> u64,
        is_late: impl Fn(u32) -> bool,
    ) -> String {
        let mut choice = ReaderChoice::new();
        let mut by = ReadBy::All;
        let letter = |by| match by {
            ReadBy::All => 'a',
            ReadBy::Consumer => 'c',
        };
        let round = |number| {
            let way = letter(by);
            by = choice.round(Duration::from_micros(took(number, by)), is_late(number));
            way
        };
        (0..rounds).map(round).collect()
    }

    #[test]
    fn the_faster_way_is_taken_and_the_other_one_tried_less_and_less() {
        let all_faster = ways(100, |_, by| if by == ReadBy::All { 100 } else { 120 });
        assert_eq!(all_faster[..22], *"aacaaaaaaaaaaaaaaaaaca");
        assert_eq!(all_faster.matches('c').count(), 2);
        let consumer_faster = ways(100, |_, by| if by == ReadBy::All { 130 } else { 100 });
        assert_eq!(consumer_faster[..22], *"aacaccccccccccccccccac");
        assert_eq!(consumer_faster.matches('a').count(), 4);
    }

    #[test]
    fn where_reading_takes_the_time_all_read() {
        let took = |_, by| if by == ReadBy::All { 100 } else { 160 };
        assert_eq!(ways_late(100, took, |_| true), "a".repeat(100));
        // From a slow disk up to round 40, cached then, and hashed more slowly than read.
        let took = |_, by| if by == ReadBy::All { 130 } else { 100 };
        let cached = ways_late(60, took, |number| number < 40);
        assert_eq!(cached[..41], "a".repeat(41));
        assert!(cached.ends_with("cccc"), "{cached}");
    }

    #[test]
    fn equal_ways_stay_as_they_are() {
        let equal = ways(40, |number, _| 100 + u64::from(number % 2));
        assert_eq!(equal.matches('c').count(), 2, "{equal}");
    }

    #[test]
    fn an_interruption_or_a_disk_that_becomes_faster_decides_nothing() {
        // The round before the trial, and that after it.
        for slow in [1, 3] {
            let ways = ways(20, |number, by| match by {
                ReadBy::All if number == slow => 1000,
                ReadBy::All => 100,
                ReadBy::Consumer => 110,
            });
            assert!(!ways.contains("cc"), "{ways}");
        }
        let faster = ways(60, |number, _| 10_000 / u64::from(number + 1));
        assert!(!faster.contains("cc"), "{faster}");
    }

    #[test]
    fn data_that_take_longer_are_measured_soon() {
        // Cached up to round 40, from a slow disk then.
        let ways = ways(60, |number, by| match (number, by) {
            (..40, ReadBy::All) => 130,
            (..40, ReadBy::Consumer) => 100,
            (_, ReadBy::All) => 500,
            (_, ReadBy::Consumer) => 800,
        });
        let end = &ways[46..];
        assert!(end.starts_with("aaaaaa"), "{ways}");
    }
}
