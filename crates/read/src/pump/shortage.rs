//! Shortage of descriptors: files are closed before others are opened, and failed opens are put
//! off.

use bc_fs::shortage::{ErrorNumber, is_shortage};

use super::Pump;
use crate::types::Consumer;

impl<C: Consumer> Pump<'_, C> {
    /// Returns the number of slots that should be filled before the consumer is called.
    pub(super) fn enough(&self, width: usize) -> usize {
        if self.is_short() { 1 } else { width }
    }

    /// True if files have to be closed before others can be opened.
    pub(super) fn is_short(&self) -> bool {
        self.short && self.free.len() < self.slots.len()
    }

    /// True if a failed open is worth another try once a descriptor has become free: by one of this
    /// worker's own files or kept directories, or for a second by another worker's. The slot of the
    /// failed open counts as used.
    pub(super) fn defers<T, E: ErrorNumber>(&mut self, opened: &Result<T, E>) -> bool {
        match opened {
            Err(error) if is_shortage(error) => {}
            _ => return false,
        }
        self.short = true;
        // After a cancellation what is deferred is dropped.
        if self.free.len() + 1 < self.slots.len() || self.cancel.is_cancelled() {
            return true;
        }
        let cancel = self.cancel;
        self.wait.again(
            opened,
            || cancel.is_cancelled(),
            || {
                self.opener.release();
            },
        ) || cancel.is_cancelled()
    }
}
