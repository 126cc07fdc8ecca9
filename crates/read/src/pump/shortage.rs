//! Shortage of descriptors: files are closed before others are opened, and failed opens are put
//! off.

use bc_walk::shortage::{WAIT, WAITS, is_shortage};

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

    /// True if an open that failed with `errno` is worth another try once a descriptor has become
    /// free: by one of this worker's own files or kept directories, or for a second by another
    /// worker's. The slot of the failed open counts as used.
    pub(super) fn defers(&mut self, errno: Option<i32>) -> bool {
        if !is_shortage(errno) {
            return false;
        }
        self.short = true;
        if self.free.len() + 1 < self.slots.len() {
            return true;
        }
        self.waits += 1;
        // Where one descriptor is all there is, a directory takes it each time.
        if !self.opener.release() || self.waits > 1 {
            std::thread::sleep(WAIT);
        }
        self.waits < WAITS
    }
}
