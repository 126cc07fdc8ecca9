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

/// Compares the time at which an inode was born with the recorded times: its change time, by the
/// same clock, and the time at which the record was made, which may be by another clock. All in
/// nanoseconds since 1970.
pub(crate) fn proof(born: Option<i64>, ctime: Option<i64>, made: Option<i64>) -> Proof {
    let known = |time: &i64| !is_beyond(*time);
    let (born, ctime) = (born.filter(known), ctime.filter(known));
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
                proof(born, ctime, made),
                expected,
                "{born:?} {ctime:?} {made:?}"
            );
        }
    }
}
