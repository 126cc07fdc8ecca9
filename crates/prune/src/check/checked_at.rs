//! Age of a check's result.

use std::time::{Duration, Instant};

/// Age up to which a result is still relied on: which directory a path leads to, and which metadata
/// a file has. Some hundred small files are processed meanwhile, so that a longer time wins
/// nothing, and one large file is compared as long; it is less than two ticks of the clock for file
/// times.
const RECHECK_AFTER: Duration = Duration::from_millis(20);

/// Time of a check or a change.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct CheckedAt(Instant);

impl CheckedAt {
    /// Returns the time; in tests that of a [clock](clock) that they set: where each call of a run
    /// fails in turn, the number of calls must not depend on the speed of the run.
    pub(crate) fn now() -> CheckedAt {
        #[cfg(not(test))]
        return CheckedAt(Instant::now());
        #[cfg(test)]
        return CheckedAt(clock::now());
    }

    pub(crate) fn since(self, earlier: CheckedAt) -> Duration {
        self.0.saturating_duration_since(earlier.0)
    }

    /// Returns true if a result of that time can still be relied on `now`.
    pub(crate) fn is_fresh(self, now: CheckedAt) -> bool {
        now.since(self) < RECHECK_AFTER
    }
}

/// The clock of each thread of the tests of this crate.
#[cfg(test)]
pub(crate) mod clock {
    use std::cell::Cell;
    use std::sync::OnceLock;
    use std::time::{Duration, Instant};

    static START: OnceLock<Instant> = OnceLock::new();

    thread_local! {
        static PASSED: Cell<Duration> = Cell::default();
        static STEP: Cell<Duration> = Cell::default();
    }

    pub(crate) fn now() -> Instant {
        pass(STEP.get());
        *START.get_or_init(Instant::now) + PASSED.get()
    }

    /// Lets time pass.
    pub(crate) fn pass(time: Duration) {
        PASSED.set(PASSED.get() + time);
    }

    /// Moves the clock on by this much at each reading. Initially it stands still.
    pub(crate) fn pass_each_time(time: Duration) {
        STEP.set(time);
    }
}
