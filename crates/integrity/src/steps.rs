//! Clocks of file systems with coarse steps: what is written to a file within the step in which its
//! record was made leaves its times as they were recorded.

use bc_fs::known::{COARSEST_STEP_NS, is_racy, possible_step, settled_before};
use bc_fs::mount::{CtimeTrust, Traits};

use crate::entry_ref::EntryRef;

/// Finer steps are over before a file is read.
const LEAST: i64 = 10_000_000;

/// As long as a run may take that reads a file after the time which it records for all.
const RUN: i64 = 86_400_000_000_000;

/// True if a time so soon before the run that read the file, or within it, may be of a clock with
/// steps of up to `step` that are not too fine.
fn is_near(stamp: i64, read: i64, step: u64) -> bool {
    let is_of_run = stamp <= read.saturating_add(RUN);
    is_of_run && possible_step(stamp, step) >= LEAST && is_racy(stamp, read, step)
}

/// True if a file of which neither time has changed may have been written to since a run that began
/// at `read` has read it. `traits` are asked for only where its times allow that.
pub(crate) fn may_hide_an_edit(
    file: &EntryRef<'_>,
    read: i64,
    traits: impl FnOnce() -> Option<Traits>,
) -> bool {
    let times = [file.mtime_ns, file.ctime_ns];
    if !times
        .iter()
        .flatten()
        .any(|time| is_near(*time, read, COARSEST_STEP_NS))
    {
        return false;
    }
    let Some(traits) = traits() else {
        return false;
    };
    // A write moves both; the mtime may have been set since.
    let stamp = match traits.ctime {
        CtimeTrust::MadeUp => file.mtime_ns,
        CtimeTrust::Real | CtimeTrust::Unknown => file.ctime_ns,
    };
    stamp.is_some_and(|stamp| is_near(stamp, read, traits.mtime_step_ns))
}

/// True if that may be so of a file with these times, whatever its file system, by any run since a
/// manifest was `made`.
pub(crate) fn may_have_steps(times: [i64; 2], made: i64) -> bool {
    let is_since = |time: &i64| *time >= settled_before(made);
    times
        .iter()
        .any(|time| is_since(time) && possible_step(*time, COARSEST_STEP_NS) >= LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bc_fs::known::TICK_NS;
    use bc_manifest::integrity::Kind;

    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn a_write_within_the_step_of_the_record_is_not_seen() {
        let mut traits = bc_fs::mount::traits_or_unknown(std::io::stdin(), 0);
        for (step, trust, times, read, expected) in [
            (SECOND, CtimeTrust::Real, [7, 7], 7 * SECOND + 5, true),
            // Its second is over, and the clock of files may not have noticed yet.
            (SECOND, CtimeTrust::Real, [7, 7], 8 * SECOND + 5, true),
            (
                SECOND,
                CtimeTrust::Real,
                [7, 7],
                8 * SECOND + TICK_NS + 1,
                false,
            ),
            (2 * SECOND, CtimeTrust::Real, [6, 6], 7 * SECOND + 5, true),
            // What is not known may have steps of one second.
            (
                2 * SECOND,
                CtimeTrust::Unknown,
                [7, 7],
                7 * SECOND + 5,
                true,
            ),
            // The run began before, and read it then.
            (SECOND, CtimeTrust::Real, [7, 7], 5 * SECOND, true),
            // The clock is wrong.
            (
                SECOND,
                CtimeTrust::Real,
                [7_000_000, 7_000_000],
                5 * SECOND,
                false,
            ),
            (1, CtimeTrust::Real, [7, 7], 7 * SECOND + 5, false),
            // Its content is old, and something else was done to it.
            (SECOND, CtimeTrust::MadeUp, [3, 7], 7 * SECOND + 5, false),
            (SECOND, CtimeTrust::Real, [3, 7], 7 * SECOND + 5, true),
        ] {
            (traits.mtime_step_ns, traits.ctime) = (step as u64, trust);
            let [mtime, ctime] = times.map(|time| time * SECOND);
            let file = EntryRef {
                mtime_ns: Some(mtime),
                ctime_ns: Some(ctime),
                ..EntryRef::new(Kind::File)
            };
            let found = may_hide_an_edit(&file, read, || Some(traits));
            assert_eq!(found, expected, "{step} {trust:?} {times:?} {read}");
            // Times with a fraction are of a clock with fine steps.
            let fine = EntryRef {
                mtime_ns: Some(mtime + 3),
                ctime_ns: Some(ctime + 3),
                ..file
            };
            assert!(!may_hide_an_edit(&fine, read, || None));
        }
    }
}
