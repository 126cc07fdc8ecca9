//! Proof that the file with a recorded inode number, size and mtime is the recorded one. Numbers
//! are given to new files, and size and mtime are common to packages, images and chunks; the time
//! of birth, which no program can set, decides.

use bc_manifest::time::is_beyond;

/// Result of the comparison.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Proof {
    /// It was there when the record was made.
    Same,
    /// It was born later: another file has the number.
    Other,
    /// Undecided: there is no time of birth, or clocks contradict each other.
    Unproven,
}

/// Times of an inode by its file system's clock, in nanoseconds since 1970, as far as known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    pub(crate) born: Option<i64>,
    /// Time of the last change.
    pub(crate) ctime: Option<i64>,
}

/// Compares the times of an inode with the recorded ones: its change time, by the same clock, and
/// the time at which the record was made, which may be by another clock. No program can set either
/// of the inode's; where they go backwards the clock was set, and its times prove nothing.
pub(crate) fn proof(now: Times, ctime: Option<i64>, made: Option<i64>) -> Proof {
    let known = |time: &i64| !is_beyond(*time);
    let (born, ctime) = (now.born.filter(known), ctime.filter(known));
    match (now.ctime.filter(known), ctime) {
        // Of file systems that count seconds many changes have one time.
        (Some(is), Some(was)) if is == was && is % 1_000_000_000 != 0 => return Proof::Same,
        (Some(is), Some(was)) if is < was => return Proof::Unproven,
        (Some(is), _) if born.is_some_and(|born| born > is) => return Proof::Unproven,
        _ => {}
    }
    match (born, ctime) {
        (None, _) => Proof::Unproven,
        (Some(born), Some(ctime)) if born <= ctime => Proof::Same,
        // After both clocks' times: one alone may have been wrong.
        (Some(born), ctime) => match ctime.max(made) {
            Some(record) if born > record => Proof::Other,
            _ => Proof::Unproven,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn born_after_the_record_is_another_file() {
        let later = Some(20);
        for (born, ctime, made, expected) in [
            (Some(5), Some(7), Some(9), Proof::Same),
            // Written at once: both times are one tick of the kernel's clock.
            (Some(7), Some(7), Some(9), Proof::Same),
            (Some(10), Some(7), Some(9), Proof::Other),
            (Some(10), Some(7), None, Proof::Other),
            (Some(10), None, Some(9), Proof::Other),
            // A server's clock is behind, or this one's was set.
            (Some(8), Some(7), Some(9), Proof::Unproven),
            (Some(8), None, None, Proof::Unproven),
            (None, Some(7), Some(9), Proof::Unproven),
            // Times that cannot be held.
            (Some(i64::MAX), Some(7), Some(9), Proof::Unproven),
            (Some(5), Some(i64::MIN), Some(9), Proof::Unproven),
            (Some(10), Some(i64::MAX), Some(9), Proof::Other),
        ] {
            assert_eq!(
                proof(Times { born, ctime: later }, ctime, made),
                expected,
                "{born:?} {ctime:?} {made:?}"
            );
        }
    }

    #[test]
    fn a_clock_that_was_set_proves_nothing() {
        for (born, is, ctime, expected) in [
            // It was changed last when the record says so, whenever it was born.
            (Some(50), Some(7), Some(7), Proof::Same),
            (None, Some(7), Some(7), Proof::Same),
            // The record is of a time that was not yet.
            (Some(9), Some(9), Some(30), Proof::Unproven),
            (Some(5), Some(9), Some(30), Proof::Unproven),
            // Born later than it was changed.
            (Some(50), Some(8), Some(7), Proof::Unproven),
            (Some(50), Some(8), None, Proof::Unproven),
            (Some(5), None, Some(7), Proof::Same),
            // Times that cannot be held are not equal.
            (None, Some(i64::MAX), Some(i64::MAX), Proof::Unproven),
        ] {
            let now = Times { born, ctime: is };
            assert_eq!(proof(now, ctime, Some(9)), expected, "{now:?} {ctime:?}");
        }
    }
}
