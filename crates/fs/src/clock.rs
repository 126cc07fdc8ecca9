//! The time of day.

use std::time::{SystemTime, UNIX_EPOCH};

/// Nanoseconds since 1970; 0 before that.
pub fn now_ns() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |since| since.as_nanos() as i64)
}

/// Returns any time in nanoseconds, exactly, with nothing clipped.
#[allow(clippy::unnecessary_cast)] // The fields' widths differ between architectures.
pub fn exact(seconds: impl Into<i64>, nanoseconds: impl Into<i64>) -> i128 {
    i128::from(seconds.into()) * 1_000_000_000 + i128::from(nanoseconds.into())
}

/// A time of any length as listings have it.
pub fn clipped(ns: i128) -> i64 {
    i64::try_from(ns).unwrap_or(if ns < 0 { i64::MIN } else { i64::MAX })
}

/// Returns true if a time may have been clipped.
pub fn is_clipped(ns: i128) -> bool {
    let (first, last) = (i128::from(i64::MIN), i128::from(i64::MAX));
    // Earlier versions added the nanoseconds to the first.
    ns == last || (first..first + 1_000_000_000).contains(&ns)
}
