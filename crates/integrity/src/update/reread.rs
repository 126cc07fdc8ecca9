//! Unchanged files that an update reads all the same: those verified longest ago, as many of them
//! as were asked for.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use bc_fs::Size;
use bc_walk::job::Error;
use bc_walk::{EntryId, Identity, Listing};

/// Amount to read again.
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

/// Bare numbers below this are percentages whose sign was forgotten: a scrub never reads so few
/// bytes.
const FEW: u64 = 4096;

/// A text that is no [`Reread`], a bare number too small to be meant as bytes, or nothing at all.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnknownReread(String);

impl fmt::Display for UnknownReread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.trim_end();
        if parse(text).is_some_and(Reread::is_nothing) {
            return write!(f, "'{text}': nothing would be read again");
        }
        match text.parse::<u64>() {
            Ok(..=100) => write!(
                f,
                "'{text}' needs a unit: {text}% for a part, {text}B for bytes"
            ),
            Ok(..FEW) => write!(
                f,
                "'{text}' needs a unit: {text}B for bytes; a part is at most 100%"
            ),
            _ => write!(
                f,
                "'{text}' is neither a part (5%, 0.05), a size (20G) nor a time (90s, 30m, 2h, 1d)"
            ),
        }
    }
}

impl std::error::Error for UnknownReread {}

impl FromStr for Reread {
    type Err = UnknownReread;

    /// Parses `5%` or `0.05`: a part; `90s`, `30m`, `2h`, `1.5d`: a time, where `m` is minutes;
    /// everything else is a [`Size`]: `20G`, `500MB`, `1.5g`. A bare number from 1 to 4095 is
    /// refused: `20` is `20%` or `20B`; and so is an amount of zero, which would be no scrub.
    fn from_str(text: &str) -> Result<Reread, UnknownReread> {
        parse(text)
            .filter(|reread| !reread.is_nothing())
            .ok_or_else(|| UnknownReread(text.to_string()))
    }
}

impl Reread {
    /// Checks that a part is one.
    ///
    /// # Errors
    /// If it is not from 0 to 1.
    pub(crate) fn check(self) -> Result<(), Error> {
        match self {
            Reread::Fraction(part) if !(0.0..=1.0).contains(&part) => {
                let text =
                    format!("{part} of the files cannot be read again: a part is from 0 to 1");
                Err(Error::usage(text))
            }
            _ => Ok(()),
        }
    }

    fn is_nothing(self) -> bool {
        match self {
            Reread::None => true,
            Reread::Fraction(part) => part <= 0.0,
            Reread::Bytes(bytes) => bytes == 0,
            Reread::For(time) => time.is_zero(),
        }
    }
}

/// Parses `5%` or `0.05`: a part of all, from 0 to 1.
pub(super) fn parse_part(text: &str) -> Option<f64> {
    let part = match text.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().ok()? / 100.0,
        None if text.contains('.') => text.parse().ok()?,
        None => return None,
    };
    (0.0..=1.0).contains(&part).then_some(part)
}

fn parse(text: &str) -> Option<Reread> {
    if text.ends_with('%') {
        return parse_part(text).map(Reread::Fraction);
    }
    let unit_at = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    if unit.is_empty() && number.contains('.') {
        return parse_part(number).map(Reread::Fraction);
    }
    if unit.trim().is_empty() && number.parse().is_ok_and(|few| (1..FEW).contains(&few)) {
        return None;
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

/// An unchanged file. 16 bytes; its size is looked up elsewhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RereadCandidate {
    /// The run that tried it last, 0 if none did.
    pub(crate) run: u32,
    /// Time at which it was last tried, in nanoseconds since 1970.
    pub(crate) last: i64,
    pub(crate) entry: EntryId,
}

/// Returns the files to read, the least recently tried first; for a time limit all, to be read in
/// this order until it is over. Names of one file follow each other, and count once.
///
/// Runs are counted, so that no clock keeps a file from its turn: files that were tried go to the
/// end of the queue, whatever time that was. Times order the files of one run, and those that no
/// run has tried since runs are counted. There, a time after `now` was stamped by a clock that was
/// wrong, then or now, and counts as never; such files are ordered by how far ahead they are.
pub(crate) fn choose(
    mut candidates: Vec<RereadCandidate>,
    files: &impl Files,
    reread: Reread,
    now: i64,
) -> Vec<EntryId> {
    // Ties in path order, so that a scrub resumes where the last one stopped.
    let never = |c: &RereadCandidate| c.last > now;
    candidates.sort_unstable_by_key(|c| match never(c) {
        true => (c.run, false, !c.last, c.entry),
        false => (c.run, true, c.last, c.entry),
    });
    let mut others = other_names(&mut candidates, files, |candidate| candidate.entry);
    let cost = |c: &RereadCandidate| cost(files, c.entry);
    let total: u128 = candidates.iter().map(cost).sum();
    let limit = match reread {
        Reread::None => 0,
        Reread::Fraction(1.0) | Reread::For(_) => total,
        Reread::Fraction(part) => (total as f64 * part).ceil() as u128,
        Reread::Bytes(bytes) => u128::from(bytes),
    };
    let mut sum = 0;
    let chosen = candidates.iter().take_while(|candidate| {
        let takes = sum < limit;
        sum += match reread {
            Reread::Bytes(_) => u128::from(files.size(candidate.entry)),
            _ => cost(candidate),
        };
        takes
    });
    let mut ids = Vec::new();
    for candidate in chosen {
        ids.push(candidate.entry);
        if let Some(file) = files.linked(candidate.entry) {
            ids.extend(others.remove(&file).unwrap_or_default());
        }
    }
    ids
}

/// Files that may be read again.
pub(crate) trait Files {
    /// Size in bytes; 0 if it is not known.
    fn size(&self, entry: EntryId) -> u64;

    /// Identity of a file that has more names than one.
    fn linked(&self, entry: EntryId) -> Option<Identity>;
}

impl Files for Listing {
    fn size(&self, entry: EntryId) -> u64 {
        Listing::size(self, entry).unwrap_or(0)
    }

    fn linked(&self, entry: EntryId) -> Option<Identity> {
        let meta = self.meta(entry)?;
        (meta.nlink > 1).then(|| self.identity(entry)).flatten()
    }
}

/// Returns the amount that a file counts for in a part of all. A byte for the name: a part of many
/// empty files is a part all the same.
pub(super) fn cost(files: &impl Files, entry: EntryId) -> u128 {
    u128::from(files.size(entry)) + 1
}

/// Leaves the first name of each file among the candidates, and returns the others. A file is read
/// once, whatever its names, and the digest is recorded for all of them: a name that kept an older
/// digest would contradict the others.
pub(super) fn other_names<T>(
    candidates: &mut Vec<T>,
    files: &impl Files,
    entry: impl Fn(&T) -> EntryId,
) -> HashMap<Identity, Vec<EntryId>> {
    let mut others: HashMap<Identity, Vec<EntryId>> = HashMap::new();
    candidates.retain(|candidate| match files.linked(entry(candidate)) {
        None => true,
        Some(file) => match others.entry(file) {
            Slot::Vacant(slot) => {
                slot.insert(Vec::new());
                true
            }
            Slot::Occupied(mut slot) => {
                slot.get_mut().push(entry(candidate));
                false
            }
        },
    });
    others
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
            ("20B", Reread::Bytes(20)),
            ("4095b", Reread::Bytes(4095)),
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
    fn nothing_at_all_is_no_scrub() {
        for text in [
            "0", "0%", "0.0", "0.0%", "-0%", "0B", "0G", "0s", "0m", "0 d", "00",
        ] {
            let error = text.parse::<Reread>().unwrap_err().to_string();
            assert!(
                error.contains("nothing would be read again"),
                "{text}: {error}"
            );
        }
        assert!("1e-9%".parse::<Reread>().is_ok());
    }

    #[test]
    fn a_forgotten_sign_is_not_taken_for_bytes() {
        for (text, hint) in [
            ("20", "'20' needs a unit: 20% for a part, 20B for bytes"),
            ("1", "1% for a part, 1B for"),
            ("020", "020% for a part"),
            ("20 ", "20% for a part, 20B for"),
            ("100", "100% for a part, 100B for"),
            ("101", "101B for bytes; a part is at most 100%"),
            ("4095", "4095B for"),
            ("99999999999999999999999", "neither a part"),
        ] {
            let error = text.parse::<Reread>().unwrap_err().to_string();
            assert!(error.contains(hint), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_no_part_is_the_callers_mistake() {
        for part in [f64::NAN, -0.1, 1.1, f64::INFINITY] {
            let error = Reread::Fraction(part).check().unwrap_err();
            assert_eq!(error.kind(), bc_walk::job::ErrorKind::Usage, "{error}");
        }
        for part in [0.0, 0.5, 1.0] {
            assert!(Reread::Fraction(part).check().is_ok());
        }
    }

    /// Sizes of files by the numbers of their entries; those of odd size are names of one file.
    struct Sizes<'a>(&'a [u64]);

    impl Files for Sizes<'_> {
        fn size(&self, entry: EntryId) -> u64 {
            self.0[entry.0 as usize]
        }

        fn linked(&self, entry: EntryId) -> Option<Identity> {
            let ino = self.size(entry);
            (ino > 2 && ino % 2 == 1).then_some(Identity { dev: 1, ino })
        }
    }

    #[test]
    fn names_of_one_file_are_chosen_together() {
        let all: Vec<RereadCandidate> = (0..6)
            .map(|entry| RereadCandidate {
                run: 0,
                last: i64::from(entry),
                entry: EntryId(entry),
            })
            .collect();
        let files = Sizes(&[10, 11, 10, 13, 11, 13]);
        let ids = |reread| -> Vec<u32> {
            let chosen = choose(all.clone(), &files, reread, 9);
            chosen.iter().map(|id| id.0).collect()
        };
        assert_eq!(ids(Reread::Bytes(10)), [0]);
        assert_eq!(ids(Reread::Bytes(11)), [0, 1, 4]);
        assert_eq!(ids(Reread::Bytes(22)), [0, 1, 4, 2]);
        assert_eq!(ids(Reread::Fraction(0.5)), [0, 1, 4, 2]);
        assert_eq!(ids(Reread::For(Duration::ZERO)), [0, 1, 4, 2, 3, 5]);
    }

    #[test]
    fn the_least_recently_verified_come_first() {
        let candidate = |last, entry| RereadCandidate {
            run: 0,
            last,
            entry: EntryId(entry),
        };
        let all = vec![
            candidate(9, 0),
            candidate(5, 1),
            candidate(5, 2),
            candidate(7, 3),
        ];
        let files = Sizes(&[10, 10, 10, 0]);
        let ids = |reread| {
            choose(all.clone(), &files, reread, 9)
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
    fn runs_count_before_times() {
        let all = [(2, 1), (0, 9), (1, 99), (1, 5), (0, i64::MAX)];
        let all = (0..).zip(all).map(|(entry, (run, last))| RereadCandidate {
            run,
            last,
            entry: EntryId(entry),
        });
        let order = choose(all.collect(), &Sizes(&[1; 7]), Reread::Fraction(1.0), 7);
        let order: Vec<u32> = order.iter().map(|id| id.0).collect();
        assert_eq!(order, [4, 1, 2, 3, 0]);
    }

    #[test]
    fn times_that_are_not_over_are_never() {
        let times = [i64::MIN, -1, 0, 7, 8, 9, i64::MAX];
        let all = (0..).zip(times).map(|(entry, last)| RereadCandidate {
            run: 0,
            last,
            entry: EntryId(entry),
        });
        let order = choose(all.collect(), &Sizes(&[1; 7]), Reread::Fraction(1.0), 7);
        let order: Vec<u32> = order.iter().map(|id| id.0).collect();
        assert_eq!(order, [6, 5, 4, 0, 1, 2, 3]);
    }
}
