//! Counts of the files and bytes that a consumer is done with, for a display of progress.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::types::Feed;

/// Files whose counts are published together, to keep the shared counters out of the way of each
/// file.
const PUBLISH_FILES: u64 = 64;
/// Bytes of large files that are published together.
const PUBLISH_BYTES: u64 = 8 << 20;

/// One worker's counts of files and bytes, added to shared ones every now and then: piece by piece,
/// so that a display moves while one huge file is read.
///
/// To be called by a [`Consumer`](crate::Consumer) at each call that it gets.
#[derive(Debug)]
pub struct Counter<'a> {
    shared_files: &'a AtomicU64,
    shared_bytes: &'a AtomicU64,
    files: u64,
    bytes: u64,
    /// Bytes of the file in each slot that are counted already.
    ahead: Vec<u64>,
}

impl<'a> Counter<'a> {
    /// Adds to these.
    pub fn new(files: &'a AtomicU64, bytes: &'a AtomicU64) -> Counter<'a> {
        Counter {
            shared_files: files,
            shared_bytes: bytes,
            files: 0,
            bytes: 0,
            ahead: Vec::new(),
        }
    }

    /// Makes room for slots, which are numbered below `slots`.
    pub fn reserve(&mut self, slots: usize) {
        self.ahead.resize(slots, 0);
    }

    /// Notes that a file begins in the slot. Bytes counted of a file that was there and not
    /// finished, because it is read again, are subtracted.
    pub fn begin(&mut self, slot: usize) {
        let void = std::mem::take(&mut self.ahead[slot]);
        if void > 0 {
            self.publish();
            self.shared_bytes.fetch_sub(void, Ordering::Relaxed);
        }
    }

    /// Counts the pieces of unfinished files that were just used up.
    pub fn advance(&mut self, feeds: &[Feed<'_>], consumed: &[usize]) {
        let unfinished = |feed: &&Feed<'_>| !feed.end && consumed.contains(&feed.slot);
        for feed in feeds.iter().filter(unfinished) {
            self.ahead[feed.slot] += feed.data.len() as u64;
            self.bytes += feed.data.len() as u64;
        }
        if self.bytes >= PUBLISH_BYTES {
            self.publish();
        }
    }

    /// Ends the slot's file: `bytes` were read of it, or it failed, and then bytes that were
    /// counted stay counted, as they do of one that grew.
    pub fn finish(&mut self, slot: usize, bytes: Option<u64>) {
        let ahead = std::mem::take(&mut self.ahead[slot]);
        self.bytes += bytes.map_or(0, |bytes| bytes.saturating_sub(ahead));
        self.file();
    }

    /// Counts a file that was not read.
    pub fn file(&mut self) {
        self.files += 1;
        if self.files >= PUBLISH_FILES {
            self.publish();
        }
    }

    /// Adds the counts that are not yet in the shared counters: to be called at the end.
    pub fn publish(&mut self) {
        let (files, bytes) = (
            std::mem::take(&mut self.files),
            std::mem::take(&mut self.bytes),
        );
        self.shared_files.fetch_add(files, Ordering::Relaxed);
        self.shared_bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_count_once_and_void_ones_not_at_all() {
        let (files, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
        let mut counter = Counter::new(&files, &bytes);
        counter.reserve(2);
        let data = [0; 1000];
        let feed = |slot, end| Feed {
            slot,
            data: &data,
            end,
        };
        let feeds = [feed(0, false), feed(1, false)];
        counter.begin(0);
        counter.advance(&feeds, &[0]);
        counter.advance(&feeds, &[0]);
        // It is read again.
        counter.begin(0);
        counter.advance(&feeds, &[0, 1]);
        counter.advance(&[feed(0, true)], &[0]);
        counter.finish(0, Some(2000));
        // It failed after its first piece.
        counter.finish(1, None);
        counter.file();
        counter.publish();
        let counted = [files, bytes].map(AtomicU64::into_inner);
        assert_eq!(counted, [3, 3000]);
    }
}
