//! The time of day.

use std::time::{SystemTime, UNIX_EPOCH};

/// Nanoseconds since 1970; 0 before that.
pub(crate) fn now_ns() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |since| since.as_nanos() as i64)
}

/// Nanoseconds since 1970 from the pair that `stat` gives.
#[allow(clippy::unnecessary_cast)] // The fields' widths differ between architectures.
pub(crate) fn nanoseconds(seconds: impl Into<i64>, nanoseconds: impl TryInto<i64>) -> i64 {
    seconds
        .into()
        .saturating_mul(1_000_000_000)
        .saturating_add(nanoseconds.try_into().unwrap_or(0))
}
