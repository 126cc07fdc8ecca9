//! The time of day.

use std::time::{SystemTime, UNIX_EPOCH};

/// Nanoseconds since 1970; 0 before that.
pub fn now_ns() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |since| since.as_nanos() as i64)
}
