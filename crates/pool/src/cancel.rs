//! A flag that asks all workers to stop, settable from a signal handler.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A request to stop, shared by all workers on one job.
///
/// Clones share the flag. Zero means "carry on"; anything else is the reason, by
/// convention the number of the signal that asked.
///
/// ```
/// # use bc_pool::Cancel;
/// let cancel = Cancel::new();
/// let seen_by_a_worker = cancel.clone();
/// cancel.cancel(15);
/// assert!(seen_by_a_worker.is_cancelled());
/// assert_eq!(seen_by_a_worker.reason(), Some(15));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicUsize>);

impl Cancel {
    /// Makes a flag that is not set.
    pub fn new() -> Cancel {
        Cancel::default()
    }

    /// Asks all workers to stop. The first reason stays; zero is taken as one, because zero means
    /// "carry on".
    pub fn cancel(&self, reason: usize) {
        let _ = self
            .0
            .compare_exchange(0, reason.max(1), Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Asks all workers to stop, for no particular reason.
    pub fn stop(&self) {
        self.cancel(1);
    }

    /// True once a stop was requested. One relaxed load: cheap enough for every file.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// Returns the reason: the number given to [`Cancel::cancel`] or stored through
    /// [`Cancel::flag`].
    pub fn reason(&self) -> Option<usize> {
        match self.0.load(Ordering::SeqCst) {
            0 => None,
            reason => Some(reason),
        }
    }

    /// Returns the flag itself, for a signal handler that stores the signal's number in it: with
    /// the crate `signal-hook`, `signal_hook::flag::register_usize(SIGINT, cancel.flag(), SIGINT as
    /// usize)`.
    pub fn flag(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_reason_stays() {
        let cancel = Cancel::new();
        assert!(!cancel.is_cancelled());
        assert_eq!(cancel.reason(), None);
        cancel.cancel(2);
        cancel.cancel(15);
        assert_eq!(cancel.reason(), Some(2));
    }

    #[test]
    fn zero_still_cancels() {
        let cancel = Cancel::new();
        cancel.cancel(0);
        assert_eq!(cancel.reason(), Some(1));
    }

    #[test]
    fn flag_is_shared() {
        let cancel = Cancel::new();
        cancel.flag().store(15, Ordering::SeqCst);
        assert_eq!(cancel.reason(), Some(15));
    }
}
