//! Two open files read side by side, so that they can be compared byte for byte.

use std::os::fd::BorrowedFd;

use crate::call::FailedCall;
use crate::dirfd;

/// Bytes read at a time, per file.
pub const PIECE: usize = 256 << 10;

/// Returns the number of bytes to read at a time of a file that should have `size` bytes: one byte
/// more than it has, so that a longer file is noticed. Never 0, nor more than [`PIECE`].
pub fn piece(size: u64) -> usize {
    size.saturating_add(1).min(PIECE as u64) as usize
}

/// Two files read side by side, a piece of both at a time, from the beginning to the end of the
/// first.
///
/// ```
/// use std::os::fd::AsFd;
/// use bc_fs::compare::SideBySide;
///
/// let file = std::fs::File::open("/etc/passwd")?;
/// let mut buffers = Default::default();
/// let mut sides = SideBySide::new([file.as_fd(); 2], file.metadata()?.len(), &mut buffers);
/// while !sides.is_over() {
///     let [one, other] = sides.read().map_err(|unread| unread.call)?;
///     assert_eq!(one, other);
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct SideBySide<'a> {
    files: [BorrowedFd<'a>; 2],
    buffers: &'a mut [Vec<u8>; 2],
    piece: usize,
    size: u64,
    offset: u64,
    is_over: bool,
}

/// A call that failed on one of two files.
#[derive(Clone, Copy, Debug)]
pub struct UnreadSide {
    /// Index of the file: 0 or 1.
    pub file: usize,
    /// The call.
    pub call: FailedCall,
}

impl<'a> SideBySide<'a> {
    /// Starts at the beginning of two files that should have `size` bytes. Buffers that are too
    /// small are enlarged; larger ones are used whole.
    pub fn new(
        files: [BorrowedFd<'a>; 2],
        size: u64,
        buffers: &'a mut [Vec<u8>; 2],
    ) -> SideBySide<'a> {
        let [one, other] = &*buffers;
        let piece = piece(size).max(one.len()).max(other.len());
        for buffer in &mut *buffers {
            buffer.resize(piece, 0);
        }
        SideBySide {
            files,
            buffers,
            piece,
            size,
            offset: 0,
            is_over: false,
        }
    }

    /// True if the end of the first file was read.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns the number of bytes of the first file that were read.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the largest length of a piece; a shorter one is the end of its file.
    pub fn piece(&self) -> usize {
        self.piece
    }

    /// Reads the next piece of both files. The lengths are the same unless the files differ in
    /// theirs, or are being changed. A file as long as it should be is known to end without a call
    /// that reads nothing.
    ///
    /// # Errors
    /// Those of `pread`.
    pub fn read(&mut self) -> Result<[&[u8]; 2], UnreadSide> {
        let left = self.size.saturating_sub(self.offset);
        // A file that is one byte longer shows in the same call.
        let enough = usize::try_from(left).map_or(self.piece, |left| left.clamp(1, self.piece));
        let mut lengths = [0; 2];
        for (file, length) in lengths.iter_mut().enumerate() {
            let buffer = &mut self.buffers[file];
            *length = dirfd::read_at_least(self.files[file], buffer, self.offset, enough)
                .map_err(|call| UnreadSide { file, call })?;
        }
        self.offset += lengths[0] as u64;
        self.is_over = lengths[0] < self.piece;
        let [one, other] = &*self.buffers;
        Ok([&one[..lengths[0]], &other[..lengths[1]]])
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::os::fd::AsFd;

    use super::*;

    fn file(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    /// Returns true for the same bytes, and the number of bytes read.
    fn compare(one: &[u8], other: &[u8], size: u64, buffers: &mut [Vec<u8>; 2]) -> (bool, u64) {
        let (one, other) = (file(one), file(other));
        let mut sides = SideBySide::new([one.as_fd(), other.as_fd()], size, buffers);
        let mut same = true;
        while same && !sides.is_over() {
            let [one, other] = sides.read().unwrap();
            same = one == other;
        }
        (same, sides.offset())
    }

    #[test]
    fn files_are_compared_to_their_ends_whatever_their_lengths() {
        for length in [0, 1, 7, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE] {
            let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let longer = [&bytes[..], b"x"].concat();
            let size = length as u64;
            for buffers in [Default::default(), [vec![0; PIECE], vec![0; PIECE]]] {
                let mut buffers = buffers;
                assert_eq!(compare(&bytes, &bytes, size, &mut buffers), (true, size));
                // Both are longer than they should be: the whole of both is compared.
                let read = compare(&longer, &longer, size, &mut buffers);
                assert_eq!(read, (true, size + 1));
                assert!(!compare(&bytes, &longer, size, &mut buffers).0);
                assert!(!compare(&longer, &bytes, size, &mut buffers).0);
                let mut other = longer.clone();
                other[length / 2] ^= 1;
                assert!(!compare(&longer, &other, size + 1, &mut buffers).0);
            }
        }
    }

    #[test]
    fn the_side_that_cannot_be_read_is_named() {
        let (good, dir) = (file(b"a"), File::open("/").unwrap());
        let mut buffers = Default::default();
        let mut sides = SideBySide::new([good.as_fd(), dir.as_fd()], 1, &mut buffers);
        assert_eq!(sides.read().unwrap_err().file, 1);
    }
}
