//! Freed bytes, as the program and as the file system report them.

use anyhow::Result;

use super::super::sheet::Verdict;
use super::Faults;

/// Figures of the file system for one action.
pub(super) struct Freed {
    /// Bytes that the program says are freed, less those that it says are used.
    pub(super) claimed: i64,
    /// True if that was reported as the worst case, or is about files that stay on the file system
    /// alone.
    pub(super) at_least: bool,
    pub(super) seen: i64,
    pub(super) changed: u64,
    pub(super) block: u64,
}

/// Checks that the file system has as many bytes more as were freed, within a block for each file
/// changed; where they are a worst case, it has no less.
pub(super) fn check(spaces: &[(&str, Freed)]) -> Result<Verdict> {
    if spaces.is_empty() {
        return Ok(Verdict::Skip("nothing could be changed".to_owned()));
    }
    let mut faults = Faults::default();
    for (action, freed) in spaces {
        let missing = freed.claimed - freed.seen;
        let allowed = (freed.changed * freed.block) as i64;
        let holds = missing <= allowed && (freed.at_least || missing >= -allowed);
        faults.unless(holds, || {
            format!(
                "{action}: {} bytes said to be freed, {} seen ({} files of blocks of {})",
                freed.claimed, freed.seen, freed.changed, freed.block
            )
        });
    }
    faults.result()?;
    let reported: Vec<String> = spaces
        .iter()
        .map(|(action, freed)| {
            let relation = if freed.at_least { "at least" } else { "=" };
            format!("{action} {} {relation} {}", freed.seen, freed.claimed)
        })
        .collect();
    Ok(Verdict::Ok(reported.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(claimed: i64, seen: i64, at_least: bool) -> bool {
        let freed = Freed {
            claimed,
            at_least,
            seen,
            changed: 2,
            block: 4096,
        };
        check(&[("delete", freed)]).is_ok()
    }

    #[test]
    fn a_claim_is_true_within_a_block_per_file() {
        assert!(holds(100_000, 100_000 - 2 * 4096, false));
        assert!(!holds(100_000, 100_000 - 2 * 4096 - 1, false));
        assert!(!holds(0, 100_000, false), "more than was said");
        assert!(holds(-50_000, -50_000, false), "used, and said so");
        assert!(!holds(0, -50_000, false), "used in silence");
    }

    #[test]
    fn a_worst_case_may_be_exceeded_and_not_missed() {
        assert!(holds(0, 100_000, true));
        assert!(!holds(0, -50_000, true));
    }
}
