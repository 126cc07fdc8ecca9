//! Which unchanged files an update reads all the same: those verified longest
//! ago, as much of them as was asked for.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use bc_fs::Size;
use bc_walk::EntryId;

/// How much to read again.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Reread {
    /// Nothing that looks unchanged.
    #[default]
    None,
    /// This part of the unchanged files, from 0 to 1.
    Fraction(f64),
    /// So many bytes.
    Bytes(u64),
    /// For so long.
    For(Duration),
}

/// A text that is no [`Reread`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnknownReread(String);

impl fmt::Display for UnknownReread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is neither a part (5%, 0.05), a size (20G) nor a time (90s, 30m, 2h, 1d)",
            self.0
        )
    }
}

impl std::error::Error for UnknownReread {}

impl FromStr for Reread {
    type Err = UnknownReread;

    /// `5%` or `0.05`: a part; `90s`, `30m`, `2h`, `1.5d`: a time, where `m` is minutes;
    /// everything else is a [`Size`]: `20G`, `500MB`, `1.5g`.
    fn from_str(text: &str) -> Result<Reread, UnknownReread> {
        parse(text).ok_or_else(|| UnknownReread(text.to_string()))
    }
}

fn parse(text: &str) -> Option<Reread> {
    let part = |number: f64| {
        (0.0..=1.0)
            .contains(&number)
            .then_some(Reread::Fraction(number))
    };
    if let Some(percent) = text.strip_suffix('%') {
        return part(percent.parse::<f64>().ok()? / 100.0);
    }
    let unit_at = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    if unit.is_empty() && number.contains('.') {
        return part(number.parse().ok()?);
    }
    // A lone `m` is minutes here, as it is for every timer; `M` and `MiB` are sizes.
    let seconds = match unit.trim_start() {
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return text.parse::<Size>().ok().map(|size| Reread::Bytes(size.0)),
    };
    let time = number.parse::<f64>().ok()? * seconds;
    Duration::try_from_secs_f64(time).ok().map(Reread::For)
}

/// An unchanged file. 24 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    /// When it was last tried, in nanoseconds since 1970.
    pub(crate) last: i64,
    pub(crate) size: u64,
    pub(crate) entry: EntryId,
}

/// Those to read, the least recently tried first; of a time limit all, to
/// be read in this order until it is over.
///
/// A time after `now` was stamped by a clock that was wrong, then or now, and counts as never.
/// Those go by how far ahead they are, so that a clock that begins anew with every boot reaches
/// them all.
pub(crate) fn choose(mut candidates: Vec<Candidate>, reread: Reread, now: i64) -> Vec<EntryId> {
    // Ties in path order, so that a scrub goes on where the last one stopped.
    let never = |c: &Candidate| c.last > now;
    candidates.sort_unstable_by_key(|c| match never(c) {
        true => (false, !c.last, c.entry),
        false => (true, c.last, c.entry),
    });
    // A byte for the name: a part of many empty files is a part all the same.
    let cost = |c: &Candidate| u128::from(c.size) + 1;
    let total: u128 = candidates.iter().map(cost).sum();
    let limit = match reread {
        Reread::None => 0,
        Reread::Fraction(part) => (total as f64 * part.clamp(0.0, 1.0)).ceil() as u128,
        Reread::Bytes(bytes) => u128::from(bytes),
        Reread::For(_) => total,
    };
    let limit = if reread == Reread::Fraction(1.0) {
        total
    } else {
        limit
    };
    let mut sum = 0;
    let chosen = candidates.iter().take_while(|candidate| {
        let takes = sum < limit;
        sum += match reread {
            Reread::Bytes(_) => u128::from(candidate.size),
            _ => cost(candidate),
        };
        takes
    });
    chosen.map(|candidate| candidate.entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_sizes_and_times() {
        for (text, expected) in [
            ("5%", Reread::Fraction(0.05)),
            ("100%", Reread::Fraction(1.0)),
            ("0.25", Reread::Fraction(0.25)),
            ("20G", Reread::Bytes(20 << 30)),
            ("1MB", Reread::Bytes(1_000_000)),
            ("4096", Reread::Bytes(4096)),
            ("1.5G", Reread::Bytes(3 << 29)),
            ("20g", Reread::Bytes(20 << 30)),
            ("1.5h", Reread::For(Duration::from_secs(5400))),
            ("30m", Reread::For(Duration::from_secs(1800))),
            ("2h", Reread::For(Duration::from_secs(7200))),
            ("90s", Reread::For(Duration::from_secs(90))),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        for bad in [
            "",
            "%",
            "101%",
            "-1",
            "1.5",
            "5x",
            "m",
            "99999999999T",
            "NaN%",
        ] {
            assert!(bad.parse::<Reread>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_least_recently_verified_come_first() {
        let candidate = |last, size, entry| Candidate {
            last,
            size,
            entry: EntryId(entry),
        };
        let all = vec![
            candidate(9, 10, 0),
            candidate(5, 10, 1),
            candidate(5, 10, 2),
            candidate(7, 0, 3),
        ];
        let ids = |reread| {
            choose(all.clone(), reread, 9)
                .iter()
                .map(|id| id.0)
                .collect::<Vec<_>>()
        };
        assert!(ids(Reread::None).is_empty());
        assert_eq!(ids(Reread::Bytes(1)), [1]);
        assert_eq!(ids(Reread::Bytes(11)), [1, 2]);
        assert_eq!(ids(Reread::Fraction(0.5)), [1, 2]);
        assert_eq!(ids(Reread::Fraction(1.0)), [1, 2, 3, 0]);
        assert_eq!(ids(Reread::For(Duration::ZERO)), [1, 2, 3, 0]);
    }

    #[test]
    fn times_that_are_not_over_are_never() {
        let times = [i64::MIN, -1, 0, 7, 8, 9, i64::MAX];
        let all = (0..).zip(times).map(|(entry, last)| Candidate {
            last,
            size: 1,
            entry: EntryId(entry),
        });
        let order = choose(all.collect(), Reread::Fraction(1.0), 7);
        let order: Vec<u32> = order.iter().map(|id| id.0).collect();
        assert_eq!(order, [6, 5, 4, 0, 1, 2, 3]);
    }
}
