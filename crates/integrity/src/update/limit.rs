//! Guard against mass change: an update that finds more edits, removals and damage than its caller
//! expects leaves the manifest as it is. Ransomware and a mistaken `rm -r` look like this, and an
//! update that recorded them would throw away the record of what was there.

use std::fmt;
use std::str::FromStr;

use crate::change::Class;
use crate::compare::summary::ComparisonSummary;

/// Most recorded entries that may have changed for an update to be written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ChangeLimit {
    /// So many entries.
    Entries(u64),
    /// This part of the recorded entries, in millionths.
    Part(u32),
}

/// Millionths in all, and in a percent.
const WHOLE: u32 = 1_000_000;
const PERCENT: f64 = 10_000.0;

impl ChangeLimit {
    fn allows(self, changed: u64, recorded: u64) -> bool {
        match self {
            ChangeLimit::Entries(most) => changed <= most,
            // Paths that only the tree has may be damaged, too, so that there may be more than all.
            ChangeLimit::Part(part) => {
                let most = u128::from(part) * u128::from(recorded);
                part >= WHOLE || u128::from(changed) * u128::from(WHOLE) <= most
            }
        }
    }
}

impl fmt::Display for ChangeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChangeLimit::Entries(most) => most.fmt(f),
            ChangeLimit::Part(part) => write!(f, "{}%", f64::from(*part) / PERCENT),
        }
    }
}

/// A text that is no [`ChangeLimit`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnknownChangeLimit(String);

impl fmt::Display for UnknownChangeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = &self.0;
        write!(
            f,
            "'{text}' is neither a number of entries (100) nor a part of them (5%)"
        )
    }
}

impl std::error::Error for UnknownChangeLimit {}

impl FromStr for ChangeLimit {
    type Err = UnknownChangeLimit;

    /// Parses `100`: so many entries; `5%`, `0.5%`: a part of them.
    fn from_str(text: &str) -> Result<ChangeLimit, UnknownChangeLimit> {
        let digits = |text: &str| text.starts_with(|first: char| first.is_ascii_digit());
        let limit = match text.strip_suffix('%') {
            Some(percent) if digits(percent) => percent
                .parse::<f64>()
                .ok()
                .filter(|percent| (0.0..=100.0).contains(percent))
                .map(|percent| ChangeLimit::Part((percent * PERCENT).round() as u32)),
            None if digits(text) => text.parse().ok().map(ChangeLimit::Entries),
            _ => None,
        };
        limit.ok_or_else(|| UnknownChangeLimit(text.to_owned()))
    }
}

/// Refusal of an update that found more changes than its [`ChangeLimit`] allows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct MassChange {
    /// Recorded entries that were edited, removed, damaged or replaced by another kind of file,
    /// without damage that the manifest noted before.
    pub changed: u64,
    /// All recorded entries.
    pub recorded: u64,
    /// The limit that was set.
    pub limit: ChangeLimit,
}

impl fmt::Display for MassChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MassChange {
            changed,
            recorded,
            limit,
        } = self;
        write!(
            f,
            "{changed} of {recorded} entries were edited, removed or damaged, more than {limit}"
        )
    }
}

impl MassChange {
    /// Returns the refusal if these changes are more than the limit allows; `noted` entries were
    /// known to be damaged before.
    pub(super) fn find(
        summary: &ComparisonSummary,
        noted: u64,
        limit: Option<ChangeLimit>,
    ) -> Option<MassChange> {
        let classes = [
            Class::Modified,
            Class::Removed,
            Class::Damaged,
            Class::Replaced,
        ];
        let found: u64 = classes.iter().map(|class| summary.count(*class)).sum();
        // One that turned out to have been exchanged with others is a move, and no damage any longer.
        let noted = noted.min(summary.count(Class::Damaged));
        // What was renamed is not gone.
        let found = found.saturating_sub(summary.renamed);
        let (changed, recorded) = (found.saturating_sub(noted), summary.old);
        let limit = limit.filter(|limit| !limit.allows(changed, recorded))?;
        Some(MassChange {
            changed,
            recorded,
            limit,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_parts() {
        for (text, limit) in [
            ("0", ChangeLimit::Entries(0)),
            ("100", ChangeLimit::Entries(100)),
            ("0%", ChangeLimit::Part(0)),
            ("7%", ChangeLimit::Part(70_000)),
            ("0.5%", ChangeLimit::Part(5_000)),
            ("100%", ChangeLimit::Part(WHOLE)),
        ] {
            assert_eq!(text.parse(), Ok(limit), "{text}");
            assert_eq!(limit.to_string(), text);
        }
        for bad in [
            "", "%", "-1", "+1", "101%", "-0%", "0.5", "5 %", "10k", "NaN%", "inf%", "many",
        ] {
            let error = bad.parse::<ChangeLimit>().unwrap_err().to_string();
            assert!(error.contains(&format!("'{bad}'")), "{error}");
        }
    }

    #[test]
    fn limits_count_from_one_more() {
        assert!(ChangeLimit::Entries(3).allows(3, 10));
        assert!(!ChangeLimit::Entries(3).allows(4, 10));
        assert!(ChangeLimit::Part(250_000).allows(2, 8));
        assert!(!ChangeLimit::Part(250_000).allows(3, 8));
        assert!(!ChangeLimit::Part(0).allows(1, 8));
        assert!(ChangeLimit::Part(WHOLE).allows(9, 8));
    }
}
