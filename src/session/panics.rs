//! Reports of panics: one line like every other error, as text or as JSON, and none for a panic
//! that is caught where damage was expected.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::{Location, PanicHookInfo};

use crate::report::Exit;

/// Reports panics in the program's own way from here on.
pub fn report_as_errors() {
    std::panic::set_hook(Box::new(|info| {
        if !bc_find::panic_is_expected() {
            crate::report::fatal("bc", reported(info));
        }
    }));
}

/// Runs `f`; a panic, which the hook has reported by then, is a fatal end.
pub fn caught(f: impl FnOnce() -> Exit) -> Exit {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).unwrap_or(Exit::Fatal)
}

fn reported(info: &PanicHookInfo<'_>) -> String {
    let payload = info.payload();
    let formatted = payload.downcast_ref::<String>().map(String::as_str);
    let message = formatted.or_else(|| payload.downcast_ref::<&str>().copied());
    let mut text = text(message, info.location());
    // Only where RUST_BACKTRACE asks for it.
    let trace = Backtrace::capture();
    if trace.status() == BacktraceStatus::Captured {
        text += &format!("\n{trace}");
    }
    text
}

fn text(message: Option<&str>, location: Option<&Location<'_>>) -> String {
    let message = message.unwrap_or("no message");
    let message = bc_fs::escape(message.as_bytes());
    let place = location.map_or_else(String::new, |at| format!(" ({at})"));
    format!("internal error, please report it: {message}{place}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_and_place_are_told() {
        let reported = text(Some("index 7\x1b[2J"), Some(Location::caller()));
        assert!(
            reported.starts_with(
                r"internal error, please report it: index 7\x1b[2J (src/session/panics.rs:"
            ),
            "{reported}"
        );
        assert!(text(None, None).ends_with(": no message"));
    }

    #[test]
    fn a_panic_is_a_fatal_end() {
        assert_eq!(caught(|| panic!("of a test")), Exit::Fatal);
        assert_eq!(caught(|| Exit::Differs), Exit::Differs);
    }
}
