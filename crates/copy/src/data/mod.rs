//! A file's bytes: which of them are written, how the kernel copies them, or how they are read once,
//! hashed while the cache has them, and written to all outputs from the same buffer.

pub(crate) mod huge;
pub(crate) mod receiver;
pub(crate) mod single;
pub(crate) mod small;

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;

use bc_digest::blake3_tree::{self, Subtree};
use bc_digest::{Algorithm, Digest, Hasher, hash};
use bc_edit::content;
use bc_fs::dirfd::read_at;
use bc_walk::FileStat;
use rustix::fs::SeekFrom;
use rustix::io::Errno;

use crate::options::When;
use crate::place::Open;

/// Bytes that are read, hashed and written at once: a subtree of BLAKE3, half of the L2 cache of a
/// current core.
pub(crate) const PART: usize = 512 << 10;

/// Files from this size on are huge.
pub(crate) const HUGE: u64 = 64 << 20;

/// Bytes of a block: the most of it that is lost when the process is killed.
pub(crate) const BLOCK: u64 = 8 * PART as u64;

/// Bytes that `copy_file_range` is asked for at once, so that a cancellation is noticed.
const RANGE: u64 = 128 << 20;

/// Zeros of this many bytes, at a multiple of it, become a hole where all zeros are to.
const HOLE: usize = 4096;

/// Failure while bytes are copied, and the side on which it occurred.
#[derive(Debug)]
pub(crate) enum DataError {
    /// The source failed: operation and reason.
    Source(&'static str, Errno),
    /// The destination failed: operation and reason.
    Target(&'static str, Errno),
    /// The source has changed since the copy began.
    Changed,
    /// The copy was cancelled.
    Cancelled,
}

/// Byte ranges of a file that are written.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) size: u64,
    /// Ranges that hold data, in order.
    pub(crate) data: Vec<Range<u64>>,
    /// True if zeros within these ranges become holes too.
    pub(crate) zeros_are_holes: bool,
}

impl Layout {
    /// Returns a layout in which all bytes are data.
    pub(crate) fn solid(size: u64) -> Layout {
        Layout {
            size,
            data: std::iter::once(0..size).collect(),
            zeros_are_holes: false,
        }
    }

    /// Asks the file system for the ranges that hold data; all of a file that has blocks for all of
    /// its bytes, or of which it cannot say.
    pub(crate) fn of(file: BorrowedFd<'_>, blocks: u64, size: u64) -> Layout {
        if blocks * 512 >= size {
            return Layout::solid(size);
        }
        let mut data = Vec::new();
        let mut at = 0;
        while at < size {
            let start = match rustix::fs::seek(file, SeekFrom::Data(at)) {
                Ok(start) => start.min(size),
                Err(Errno::NXIO) => break,
                // It cannot say.
                Err(_) => return Layout::solid(size),
            };
            let end = match rustix::fs::seek(file, SeekFrom::Hole(start)) {
                Ok(end) => end.min(size),
                Err(Errno::NXIO) => break,
                Err(_) => return Layout::solid(size),
            };
            if end <= start {
                break;
            }
            data.push(start..end);
            at = end;
        }
        Layout {
            size,
            data,
            zeros_are_holes: false,
        }
    }

    pub(crate) fn has_holes(&self) -> bool {
        self.zeros_are_holes
            || self
                .data
                .iter()
                .map(|range| range.end - range.start)
                .sum::<u64>()
                < self.size
    }

    /// Writes the bytes at `at` as far as they are data. Bytes that should be a hole but are not
    /// zero, because the file system was wrong, are written too.
    pub(crate) fn write(&self, to: &std::fs::File, bytes: &[u8], at: u64) -> Result<(), DataError> {
        let end = at + bytes.len() as u64;
        let mut done = at;
        let from = self.data.partition_point(|range| range.end <= at);
        for range in &self.data[from..] {
            let start = range.start.clamp(done, end);
            let hole = &bytes[(done - at) as usize..(start - at) as usize];
            self.write_unless_zero(to, hole, done)?;
            let stop = range.end.clamp(start, end);
            let data = &bytes[(start - at) as usize..(stop - at) as usize];
            match self.zeros_are_holes {
                true => self.write_unless_zero(to, data, start)?,
                false => write_all(to, data, start)?,
            }
            done = stop;
            if done >= end {
                return Ok(());
            }
        }
        self.write_unless_zero(to, &bytes[(done - at) as usize..], done)
    }

    fn write_unless_zero(
        &self,
        to: &std::fs::File,
        bytes: &[u8],
        at: u64,
    ) -> Result<(), DataError> {
        let mut run: Option<usize> = None;
        let mut offset = 0;
        while offset < bytes.len() {
            // Up to the next multiple, so that pieces fit blocks.
            let step = (HOLE - (at as usize + offset) % HOLE).min(bytes.len() - offset);
            let is_zero = bytes[offset..offset + step].iter().all(|byte| *byte == 0);
            match (is_zero, run) {
                (false, None) => run = Some(offset),
                (true, Some(start)) => {
                    write_all(to, &bytes[start..offset], at + start as u64)?;
                    run = None;
                }
                _ => {}
            }
            offset += step;
        }
        match run {
            Some(start) => write_all(to, &bytes[start..], at + start as u64),
            None => Ok(()),
        }
    }
}

fn write_all(to: &std::fs::File, bytes: &[u8], at: u64) -> Result<(), DataError> {
    to.write_all_at(bytes, at).map_err(|error| {
        let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
        DataError::Target("write", errno)
    })
}

/// Sets the length of the stage to that of the source, which a hole at its end needs.
pub(crate) fn end_at(to: &std::fs::File, size: u64) -> Result<(), DataError> {
    content::truncate(to, size).map_err(|failed| DataError::Target(failed.op, failed.errno))
}

/// Reads a part of the source; a source that ends too soon is an error.
pub(crate) fn read_part(from: BorrowedFd<'_>, buffer: &mut [u8], at: u64) -> Result<(), DataError> {
    let count =
        read_at(from, buffer, at).map_err(|failed| DataError::Source(failed.op, failed.errno))?;
    match count == buffer.len() {
        true => Ok(()),
        false => Err(DataError::Changed),
    }
}

/// Returns the ranges to write, by the wish for sparse files and what the source has.
pub(crate) fn layout(sparse: When, open: &Open, stat: &FileStat) -> Layout {
    let size = stat.stamp.size;
    let mut layout = match sparse {
        When::Never => return Layout::solid(size),
        _ => Layout::of(open.file.as_fd(), open.stat.blocks, size),
    };
    layout.zeros_are_holes = sparse == When::Always;
    layout
}

/// Returns the number of leading bytes that stage and source have in common, in whole parts. Bytes
/// of the stage behind them are of no use.
pub(crate) fn common(
    from: BorrowedFd<'_>,
    stage: &std::fs::File,
    size: u64,
    buffer: &mut Vec<u8>,
    reported: &dyn Fn(u64) -> bool,
) -> Result<u64, DataError> {
    buffer.resize(buffer.len().max(2 * PART), 0);
    let (ours, theirs) = buffer.split_at_mut(PART);
    let mut at = 0;
    while at < size {
        let length = (size - at).min(PART as u64) as usize;
        let (ours, theirs) = (&mut ours[..length], &mut theirs[..length]);
        // Parts that the stage lacks need not be read from the source.
        if read_at(stage, theirs, at).unwrap_or(0) < length {
            break;
        }
        read_part(from, ours, at)?;
        if ours != theirs {
            break;
        }
        at += length as u64;
        if !reported(length as u64) {
            return Err(DataError::Cancelled);
        }
    }
    Ok(at)
}

/// Copies the data behind the first `there` bytes, which the stage already has, within the kernel. Returns `Ok(false)` where
/// it cannot, and nothing was done.
pub(crate) fn copy_ranges(
    from: BorrowedFd<'_>,
    to: &std::fs::File,
    there: u64,
    layout: &Layout,
    reported: &dyn Fn(u64) -> bool,
) -> Result<bool, DataError> {
    let mut first = true;
    for range in &layout.data {
        let mut at = range.start.max(there);
        while at < range.end {
            let (mut source, mut target) = (at, at);
            let length = (range.end - at).min(RANGE) as usize;
            let copied = content::copy_range(from, &mut source, to, &mut target, length);
            match copied.map_err(Errno::from) {
                // 0 is the answer of files that are not what they seem; others end too soon.
                Ok(0) if first => return Ok(false),
                Ok(0) => return Err(DataError::Changed),
                Ok(count) => {
                    at += count as u64;
                    first = false;
                    if !reported(count as u64) {
                        return Err(DataError::Cancelled);
                    }
                }
                Err(
                    Errno::XDEV
                    | Errno::NOSYS
                    | Errno::INVAL
                    | Errno::OPNOTSUPP
                    | Errno::PERM
                    | Errno::BADF,
                ) if first => return Ok(false),
                Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::ROFS | Errno::FBIG)) => {
                    return Err(DataError::Target("copy_file_range", errno));
                }
                Err(errno) => return Err(DataError::Source("copy_file_range", errno)),
            }
        }
    }
    end_at(to, layout.size)?;
    Ok(true)
}

/// One of the destinations of a file's bytes.
pub(crate) struct ByteSink<'a> {
    file: &'a std::fs::File,
    /// Offset before which all bytes are there already: whole parts, or all.
    from: u64,
    /// Reason for which it takes no more.
    pub(crate) error: Option<DataError>,
}

impl<'a> ByteSink<'a> {
    pub(crate) fn new(file: &'a std::fs::File, from: u64) -> ByteSink<'a> {
        ByteSink {
            file,
            from,
            error: None,
        }
    }

    /// True if the part that ends at `end` was written to it.
    pub(crate) fn has_got(&self, end: u64) -> bool {
        self.error.is_none() && end > self.from
    }

    fn take(&mut self, layout: &Layout, part: &[u8], at: u64) {
        if self.error.is_none() && at >= self.from {
            self.error = layout.write(self.file, part, at).err();
        }
    }

    fn end(&mut self, size: u64) {
        if self.error.is_none() {
            self.error = end_at(self.file, size).err();
        }
    }
}

/// The digest of a file that comes part by part.
pub(crate) enum Digesting {
    None,
    /// Any algorithm.
    Stream(Box<Hasher>),
    /// Subtrees of BLAKE3.
    Tree(Vec<Subtree>),
    /// BLAKE3 of one part.
    Whole(Option<Digest>),
}

impl Digesting {
    pub(crate) fn new(algorithm: Option<Algorithm>, size: u64) -> Digesting {
        match algorithm {
            None => Digesting::None,
            Some(Algorithm::Blake3) if size > PART as u64 => Digesting::Tree(Vec::new()),
            Some(Algorithm::Blake3) => Digesting::Whole(None),
            Some(algorithm) => Digesting::Stream(Box::new(Hasher::new(algorithm))),
        }
    }

    fn add(&mut self, at: u64, bytes: &[u8]) {
        match self {
            Digesting::None => {}
            Digesting::Stream(hasher) => hasher.update(bytes),
            Digesting::Tree(parts) => parts.push(blake3_tree::subtree(at, bytes)),
            Digesting::Whole(digest) => *digest = Some(hash(Algorithm::Blake3, bytes)),
        }
    }

    /// Continues a digest of the bytes before.
    pub(crate) fn from(hasher: Hasher) -> Digesting {
        Digesting::Stream(Box::new(hasher))
    }

    /// Returns the digest of the bytes so far, where it can be had before the end.
    pub(crate) fn so_far(&self) -> Option<Digest> {
        match self {
            Digesting::Stream(hasher) => Some(hasher.finalize()),
            _ => None,
        }
    }

    fn end(self) -> Option<Digest> {
        match self {
            Digesting::None => None,
            Digesting::Stream(hasher) => Some(hasher.finalize()),
            Digesting::Tree(parts) => Some(blake3_tree::root(&parts)),
            Digesting::Whole(digest) => {
                Some(digest.unwrap_or_else(|| hash(Algorithm::Blake3, b"")))
            }
        }
    }
}

/// Progress of reading, hashing and writing a file.
pub(crate) struct ReadProgress<'a> {
    /// Bytes of the last part, and the offset of its end.
    pub(crate) count: u64,
    pub(crate) end: u64,
    /// The digest of all up to there.
    pub(crate) digesting: &'a Digesting,
    /// Outputs of the file.
    pub(crate) outputs: &'a [ByteSink<'a>],
}

/// Callback for each step, which returns whether to continue.
pub(crate) type Steps<'a> = dyn FnMut(ReadProgress<'_>) -> bool + 'a;

/// Reads all bytes that any output lacks once, hashes them, and writes them to each output from the
/// same buffer. An output that takes no more is left behind. `digesting` has the bytes before.
pub(crate) fn read_hash_write(
    from: BorrowedFd<'_>,
    outputs: &mut [ByteSink<'_>],
    layout: &Layout,
    mut digesting: Digesting,
    buffer: &mut Vec<u8>,
    reported: &mut Steps<'_>,
) -> Result<Option<Digest>, DataError> {
    buffer.resize(buffer.len().max(PART), 0);
    let mut at = outputs.iter().map(|output| output.from).min().unwrap_or(0);
    while at < layout.size && outputs.iter().any(|output| output.error.is_none()) {
        let length = (layout.size - at).min(PART as u64) as usize;
        let part = &mut buffer[..length];
        read_part(from, part, at)?;
        digesting.add(at, part);
        for output in &mut *outputs {
            output.take(layout, part, at);
        }
        at += length as u64;
        let step = ReadProgress {
            count: length as u64,
            end: at,
            digesting: &digesting,
            outputs,
        };
        if !reported(step) {
            return Err(DataError::Cancelled);
        }
    }
    for output in &mut *outputs {
        output.end(layout.size);
    }
    // Without an output that has it all, not all was read.
    let is_whole = outputs.iter().any(|output| output.error.is_none());
    Ok(is_whole.then(|| digesting.end()).flatten())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use bc_digest::{Algorithm, Digest, hash};

    use super::*;
    use crate::data::{ByteSink, Digesting, read_hash_write};

    fn pattern(length: usize) -> Vec<u8> {
        (0..length).map(|i| (i * 7 % 251) as u8 + 1).collect()
    }

    fn written(
        from: &std::fs::File,
        to: &std::fs::File,
        layout: &Layout,
        algorithm: Option<Algorithm>,
    ) -> Result<Option<Digest>, DataError> {
        let mut outputs = [ByteSink::new(to, 0)];
        let digesting = Digesting::new(algorithm, layout.size);
        let (from, buffer) = (from.as_fd(), &mut Vec::new());
        read_hash_write(from, &mut outputs, layout, digesting, buffer, &mut |_| true)
    }

    fn copied(content: &[u8], layout: &Layout) -> (Vec<u8>, u64, Option<Digest>) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("from"), content).unwrap();
        let from = std::fs::File::open(dir.path().join("from")).unwrap();
        let to = std::fs::File::create(dir.path().join("to")).unwrap();
        let digest = written(&from, &to, layout, Some(Algorithm::Blake3));
        let bytes = std::fs::read(dir.path().join("to")).unwrap();
        (bytes, to.metadata().unwrap().blocks(), digest.unwrap())
    }

    #[test]
    fn digests_are_those_of_the_whole() {
        let block = 8 * PART;
        for length in [0, 1, PART - 1, PART, PART + 1, block - 1, block, block + 1] {
            let content = pattern(length);
            let (bytes, _, digest) = copied(&content, &Layout::solid(length as u64));
            assert!(bytes == content, "{length}");
            assert_eq!(digest, Some(hash(Algorithm::Blake3, &content)), "{length}");
        }
    }

    #[test]
    fn holes_stay_and_lies_about_them_do_no_harm() {
        let mut content = vec![0; 3 * PART + 5];
        content[PART..PART + 10_000].copy_from_slice(&pattern(10_000));
        let size = content.len() as u64;
        let mut layout = Layout {
            size,
            data: std::iter::once(PART as u64..PART as u64 + 10_000).collect(),
            zeros_are_holes: false,
        };
        let (bytes, blocks, _) = copied(&content, &layout);
        assert!(bytes == content);
        let solid = copied(&content, &Layout::solid(size)).1;
        assert!(blocks < solid, "{blocks} {solid}");
        // There is no hole there at all.
        layout.data.clear();
        assert!(copied(&content, &layout).0 == content);
        layout = Layout::solid(size);
        layout.zeros_are_holes = true;
        let (bytes, blocks, _) = copied(&content, &layout);
        assert!(bytes == content && blocks < solid);
        assert!(layout.has_holes() && !Layout::solid(size).has_holes());
    }

    #[test]
    fn what_a_stage_has_in_common_with_its_source() {
        let dir = tempfile::tempdir().unwrap();
        let content = pattern(3 * PART + 5);
        let opened = |name: &str, content: &[u8]| {
            std::fs::write(dir.path().join(name), content).unwrap();
            std::fs::File::open(dir.path().join(name)).unwrap()
        };
        let from = opened("from", &content);
        let mut flipped = content.clone();
        flipped[2 * PART] ^= 1;
        for (staged, expected) in [
            (&content[..0], 0),
            (&content[..PART - 1], 0),
            (&content[..2 * PART + 7], 2 * PART),
            (&flipped, 2 * PART),
            (&content, content.len()),
            (&[&content[..], b"dirt"].concat(), content.len()),
        ] {
            let stage = opened("stage", staged);
            let (size, buffer) = (content.len() as u64, &mut Vec::new());
            let found = common(from.as_fd(), &stage, size, buffer, &|_| true);
            assert_eq!(found.unwrap(), expected as u64);
        }
    }

    /// An output that takes no more stops nothing but itself.
    #[test]
    fn several_outputs_of_one_reading() {
        let dir = tempfile::tempdir().unwrap();
        let content = pattern(3 * PART + 5);
        let size = content.len() as u64;
        std::fs::write(dir.path().join("from"), &content).unwrap();
        let from = std::fs::File::open(dir.path().join("from")).unwrap();
        let file = |name: &str| std::fs::File::create(dir.path().join(name)).unwrap();
        let (whole, rest, closed) = (file("whole"), file("rest"), from.try_clone().unwrap());
        let there = 2 * PART as u64;
        std::os::unix::fs::FileExt::write_all_at(&rest, &content[..2 * PART], 0).unwrap();
        let mut outputs = [(&closed, 0), (&rest, there), (&whole, 0)]
            .map(|(file, from)| ByteSink::new(file, from));
        let digesting = Digesting::new(Some(Algorithm::Sha256), size);
        let mut read = 0;
        let mut reported = |step: crate::data::ReadProgress<'_>| {
            read += step.count;
            let got = step.outputs.iter().map(|output| output.has_got(step.end));
            assert_eq!(got.collect::<Vec<_>>(), [false, step.end > there, true]);
            true
        };
        let layout = Layout::solid(size);
        let (from, buffer) = (from.as_fd(), &mut Vec::new());
        let digest = read_hash_write(
            from,
            &mut outputs,
            &layout,
            digesting,
            buffer,
            &mut reported,
        );
        assert_eq!(digest.unwrap(), Some(hash(Algorithm::Sha256, &content)));
        assert!(matches!(
            outputs[0].error,
            Some(DataError::Target("write", _))
        ));
        for name in ["whole", "rest"] {
            assert!(
                std::fs::read(dir.path().join(name)).unwrap() == content,
                "{name}"
            );
        }
        assert_eq!(read, size);
    }

    #[test]
    fn a_source_that_ends_too_soon_is_told() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("from"), b"short").unwrap();
        let from = std::fs::File::open(dir.path().join("from")).unwrap();
        let to = std::fs::File::create(dir.path().join("to")).unwrap();
        let layout = Layout::solid(6);
        let result = written(&from, &to, &layout, None);
        assert!(matches!(result, Err(DataError::Changed)));
    }
}
