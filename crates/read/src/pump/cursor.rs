//! Position in a file: the bytes read, the next read to ask for, and whether its end is certain.
//! Pure arithmetic: no system calls here.

use crate::types::{Changed, SizeTrust, Want};

/// Position within the wanted part of one file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadCursor {
    /// Next byte to read.
    pos: u64,
    /// First byte not wanted in this part; `u64::MAX` for the file's end.
    stop: u64,
    /// Start of the second part, if there is one.
    suffix: Option<u64>,
    /// `st_size` when opened.
    size: u64,
    /// Read calls that returned anything, the end included.
    calls: u32,
    /// `Trusted` if `size` decides where the file ends.
    trust: SizeTrust,
    changed: Changed,
}

/// Next step after a read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Step {
    /// Read on into the rest of the buffer.
    More,
    /// Hand the buffer on; more follows.
    Full,
    /// Hand the buffer on, it is the last: nothing can have changed.
    Last,
    /// Hand the buffer on as the last, provided that another `fstat` equals the first.
    LastIfSame,
}

impl ReadCursor {
    pub(crate) fn new(want: Want, size: u64, trust: SizeTrust, changed: Changed) -> ReadCursor {
        let (pos, stop, suffix) = match want {
            Want::Whole => (0, u64::MAX, None),
            Want::Range { offset, len } => (offset, offset.saturating_add(len), None),
            Want::Ends { len } if size < 2 * u64::from(len) || len == 0 => (0, u64::MAX, None),
            Want::Ends { len } => (0, u64::from(len), Some(size - u64::from(len))),
        };
        ReadCursor {
            pos,
            stop,
            suffix,
            size,
            calls: 0,
            trust,
            changed,
        }
    }

    /// Returns the offset of the next read.
    pub(crate) fn pos(&self) -> u64 {
        self.pos
    }

    /// True if all of the file is wanted, wherever it ends.
    pub(crate) fn is_whole(&self) -> bool {
        self.stop == u64::MAX
    }

    /// Returns the bytes that are left as far as is known, and one more if the end of the file has
    /// to be seen.
    pub(crate) fn left(&self) -> u64 {
        if self.stop <= self.size {
            self.stop.saturating_sub(self.pos)
        } else {
            (self.size + 1).saturating_sub(self.pos)
        }
    }

    /// True if there is nothing to read from the start: an empty range, or one that begins behind
    /// the end. A file whose size is 0 is read all the same.
    pub(crate) fn nothing(&self) -> bool {
        let behind = self.size > 0 && self.pos >= self.size && self.trust == SizeTrust::Trusted;
        self.calls == 0 && (self.pos >= self.stop || behind)
    }

    /// Returns the number of bytes to ask for with `room` bytes of buffer, where files of more than
    /// `buffer` bytes are read in chunks of `chunk`. Never 0.
    pub(crate) fn ask(&self, room: usize, buffer: usize, chunk: usize) -> usize {
        let room = if self.left() > buffer as u64 {
            room.min(chunk.saturating_sub(buffer - room)).max(1)
        } else {
            room
        };
        let wanted = self.stop - self.pos;
        usize::try_from(wanted).map_or(room, |wanted| room.min(wanted))
    }

    /// Takes note of a read of `n` bytes where `asked` were asked for and the
    /// buffer has room for `room` more after them.
    pub(crate) fn took(&mut self, n: usize, asked: usize, room: usize) -> Step {
        debug_assert!(n <= asked);
        self.pos += n as u64;
        self.calls = self.calls.saturating_add(1);
        if self.pos == self.stop {
            if let Some(suffix) = self.suffix.take() {
                self.pos = suffix;
                self.stop = self.size;
                return Step::Full;
            }
            return self.last();
        }
        let at_size = self.pos == self.size && (self.trust == SizeTrust::Trusted || n == 0);
        // One read that was given less than it asked for, and all there is to
        // have: it has seen the end, and nothing came between two reads.
        if at_size && self.calls == 1 && n < asked {
            return Step::Last;
        }
        if n == 0 || (at_size && self.changed == Changed::Refuse) {
            self.suffix = None;
            return match self.changed {
                Changed::Refuse => Step::LastIfSame,
                Changed::Allow => Step::Last,
            };
        }
        // A chunk as asked for goes out; a short one is topped up.
        if n == asked || room == 0 {
            Step::Full
        } else {
            Step::More
        }
    }

    /// True if at least as many bytes came as the size had promised. Asked at the end.
    pub(crate) fn complete(&self) -> bool {
        self.pos >= self.stop.min(self.size)
    }

    /// True if as many bytes came as the size had promised, and no more. Asked at the end.
    pub(crate) fn exact(&self) -> bool {
        self.pos == self.stop.min(self.size)
    }

    fn last(&self) -> Step {
        if self.calls == 1 || self.changed == Changed::Allow {
            Step::Last
        } else {
            Step::LastIfSame
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUFFER: usize = 4096;

    /// Reads a file of `actual` bytes that claims `size`, each call giving at
    /// most `per_call`; returns (bytes, calls, last step, pieces).
    fn drive(mut cursor: ReadCursor, actual: u64, per_call: usize) -> (u64, u32, Step, Vec<usize>) {
        let (mut bytes, mut filled, mut pieces) = (0, 0, Vec::new());
        for _ in 0..10_000 {
            let asked = cursor.ask(BUFFER - filled, BUFFER, BUFFER / 2);
            assert!(asked > 0 && asked <= BUFFER - filled);
            let there = actual.saturating_sub(cursor.pos()).min(asked as u64) as usize;
            let n = there.min(per_call);
            filled += n;
            bytes += n as u64;
            match cursor.took(n, asked, BUFFER - filled) {
                Step::More => assert!(filled < BUFFER),
                Step::Full => {
                    pieces.push(filled);
                    filled = 0;
                }
                step => {
                    pieces.push(filled);
                    return (bytes, cursor.calls, step, pieces);
                }
            }
        }
        panic!("no end");
    }

    fn whole(size: u64) -> ReadCursor {
        ReadCursor::new(Want::Whole, size, SizeTrust::Trusted, Changed::Refuse)
    }

    #[test]
    fn a_file_that_fits_with_a_byte_to_spare_takes_one_call() {
        for size in [0, 1, 4095] {
            let (bytes, calls, step, pieces) = drive(whole(size), size, BUFFER);
            assert_eq!((bytes, calls, step), (size, 1, Step::Last));
            assert_eq!(pieces, [size as usize]);
        }
    }

    #[test]
    fn a_file_that_fills_the_buffer_is_checked() {
        for size in [4096, 4097, 8191, 8192, 8193, 100_000] {
            let (bytes, _, step, _) = drive(whole(size), size, BUFFER);
            assert_eq!((bytes, step), (size, Step::LastIfSame), "{size}");
        }
    }

    #[test]
    fn short_reads_are_topped_up_and_checked() {
        for size in [3, 4095, 4096, 9000] {
            for per_call in [1, 2, 1000].into_iter().filter(|&n| (n as u64) < size) {
                let cursor = whole(size);
                let (bytes, calls, step, _) = drive(cursor, size, per_call);
                assert_eq!((bytes, step), (size, Step::LastIfSame));
                assert!(calls > 1);
            }
        }
    }

    #[test]
    fn growth_and_shrinkage_are_noticed() {
        let (bytes, _, step, _) = drive(whole(100), 300, BUFFER);
        assert_eq!((bytes, step), (300, Step::LastIfSame));
        let mut cursor = whole(300);
        assert_eq!(cursor.took(100, BUFFER, BUFFER - 100), Step::More);
        assert_eq!(cursor.took(0, BUFFER - 100, BUFFER - 100), Step::LastIfSame);
        assert!(!cursor.complete());
    }

    #[test]
    fn sizes_that_lie_are_read_to_the_end() {
        // A pseudo file says 0 and has content, or says a page and has less.
        let (bytes, calls, step, _) = drive(whole(0), 700, BUFFER);
        assert_eq!((bytes, calls, step), (700, 2, Step::LastIfSame));
        for (size, actual) in [(4096, 5), (0, 0), (0, 9000), (5, 5), (8192, 8192)] {
            let cursor = ReadCursor::new(Want::Whole, size, SizeTrust::Untrusted, Changed::Allow);
            let (bytes, _, step, _) = drive(cursor, actual, 1000);
            assert_eq!((bytes, step), (actual, Step::Last));
        }
    }

    #[test]
    fn allowed_changes_follow_the_file_to_its_end() {
        let cursor = ReadCursor::new(Want::Whole, 5000, SizeTrust::Trusted, Changed::Allow);
        let (bytes, _, step, _) = drive(cursor, 12_000, BUFFER);
        assert_eq!((bytes, step), (12_000, Step::Last));
    }

    #[test]
    fn ranges_read_exactly_what_is_there() {
        let range = |offset, len, size| {
            let want = Want::Range { offset, len };
            ReadCursor::new(want, size, SizeTrust::Trusted, Changed::Refuse)
        };
        assert_eq!(drive(range(10, 20, 100), 100, BUFFER).0, 20);
        assert_eq!(drive(range(10, 20, 100), 100, BUFFER).2, Step::Last);
        assert_eq!(drive(range(90, 10, 100), 100, BUFFER).2, Step::Last);
        assert_eq!(drive(range(90, 20, 100), 100, BUFFER).0, 10);
        assert_eq!(drive(range(90, u64::MAX, 100), 100, BUFFER).2, Step::Last);
        assert_eq!(
            drive(range(0, 6000, 9000), 9000, BUFFER).2,
            Step::LastIfSame
        );
        assert!(range(100, 1, 100).nothing() && range(5, 0, 100).nothing());
        assert!(!range(0, 9, 0).nothing() && !range(99, 1, 100).nothing());
    }

    #[test]
    fn ends_come_in_two_pieces_or_in_one() {
        let ends = |size| {
            let want = Want::Ends { len: 1000 };
            ReadCursor::new(want, size, SizeTrust::Trusted, Changed::Refuse)
        };
        assert_eq!(drive(ends(1999), 1999, BUFFER).3, [1999]);
        assert_eq!(drive(ends(1999), 1999, BUFFER).2, Step::Last);
        assert_eq!(drive(ends(2000), 2000, BUFFER).3, [1000, 1000]);
        assert_eq!(drive(ends(90_000), 90_000, BUFFER).3, [1000, 1000]);
        assert_eq!(drive(ends(90_000), 90_000, BUFFER).2, Step::LastIfSame);
        let mut shrunk = ends(90_000);
        assert_eq!(shrunk.took(1000, 1000, 3096), Step::Full);
        assert_eq!(shrunk.took(0, 1000, BUFFER), Step::LastIfSame);
        assert!(!shrunk.complete());
    }
}
