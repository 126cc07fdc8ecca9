//! Which signals end a run, and which one did.

use std::sync::OnceLock;

use bc_pool::Cancel;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::budget;

/// The flag that signals set, for those who wait without a session at hand.
static CANCEL: OnceLock<Cancel> = OnceLock::new();

/// The flag that signals set once they are [`heeded`].
pub fn flag() -> Cancel {
    CANCEL.get_or_init(Cancel::new).clone()
}

/// The signal that asked for the end of the run, if one did.
pub fn interrupted() -> Option<i32> {
    behind(CANCEL.get()?)
}

/// The signal that set this flag, if one did.
pub fn behind(cancel: &Cancel) -> Option<i32> {
    let reason = cancel.reason().filter(|reason| *reason != budget::NO_ROOM);
    reason.map(|signal| signal as i32)
}

/// SIGINT and SIGTERM, but for those that whoever started the program has it ignore: a shell does
/// so for a job in the background, which Ctrl-C is not meant for.
pub fn heeded() -> impl Iterator<Item = i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = ignored(&status);
    [SIGINT, SIGTERM]
        .into_iter()
        .filter(move |signal| ignored & (1 << (signal - 1)) == 0)
}

/// The set of ignored signals, bit 0 being signal 1, from proc_pid_status(5); none without it.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::ignored;

    #[test]
    fn the_set_is_found_among_the_fields() {
        let status = "Name:\tSigIgn:\nSigBlk:\t0000000000000001\nSigIgn:\t0000000000004002\n";
        assert_eq!(ignored(status), 1 << 14 | 1 << 1);
        assert_eq!(ignored(""), 0);
        assert_eq!(ignored("SigIgn:\tx\n"), 0);
    }
}
