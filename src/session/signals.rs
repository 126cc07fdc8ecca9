//! Signals that end a run, and the one that did.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use bc_pool::Cancel;
use signal_hook::consts::{SIGINT, SIGTERM};

/// The flag that signals set, for code that waits without a session.
static CANCEL: OnceLock<Cancel> = OnceLock::new();

/// Returns the flag that signals set once they are [`heeded`].
pub fn flag() -> Cancel {
    CANCEL.get_or_init(Cancel::new).clone()
}

/// Returns the signal that asked for the end of the run, if one did.
pub fn interrupted() -> Option<i32> {
    behind(CANCEL.get()?)
}

/// Returns the signal that set this flag, if one did.
pub fn behind(cancel: &Cancel) -> Option<i32> {
    cancel.reason().map(|signal| signal as i32)
}

/// Lets the first signal wait until the work in progress is finished or recorded; a second one ends
/// the process at once.
pub fn end_at_the_second() {
    let first = Arc::new(AtomicBool::new(false));
    for signal in heeded() {
        // In this order: the first one finds the flag not set.
        let second = Arc::clone(&first);
        let _ = signal_hook::flag::register_conditional_default(signal, second);
        let _ = signal_hook::flag::register(signal, Arc::clone(&first));
    }
}

/// Returns SIGINT and SIGTERM, except those that the parent process has set to be ignored: a shell
/// does so for a job in the background, which Ctrl-C is not meant for.
pub fn heeded() -> impl Iterator<Item = i32> {
    [SIGINT, SIGTERM]
        .into_iter()
        .filter(|signal| !bc_fs::streams::ignores_signal(*signal))
}
