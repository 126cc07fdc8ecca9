//! Encoding: contents are read once, proven by the manifest's digests, cut into blocks, and written
//! as volumes.
//!
//! A window of some MiB goes through the stream. Files that fit into it are read into their place
//! and proven before it is encoded; those that do not (spans) are hashed while it is, and volumes
//! with bytes of them stay without a name until the last byte is proven. A content that does not fit
//! the manifest is left out: if bytes of it are in the code already, what was not committed is begun
//! again without it. So no volume ever holds content that was not proven.

mod stream;
mod write;

use std::collections::HashMap;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use bc_digest::{CpuFeatures, Hasher};
use bc_edit::atomic::AtomicFile;
use bc_fs::PathError;
use bc_fs::dirfd::{self, Access};
use bc_fs::meta::{FileKind, stat};
use bc_fs::path::split;
use bc_hash::HashProgress;
use bc_pool::Cancel;
use bc_read::Rate;
use bc_walk::job::{Error, path_of};
use rustix::io::Errno;

use crate::code::{BLOCK, ParityEncoder, Redundancy};
use crate::contents::{ContentId, RecordedContents};
use crate::file::ParityDir;
use crate::format::{ShortDigest, StoredPiece, VolumeHeader};
use crate::plan::{ContentPiece, VolumeState};

/// Bytes of the window, where there is memory enough.
const WINDOW: usize = 8 << 20;

/// Means of encoding.
pub(crate) struct EncodeMeans<'a> {
    /// Directory of the volumes.
    pub dir: &'a ParityDir,
    /// Directory that the paths are below, and its path.
    pub top: BorrowedFd<'a>,
    /// Path of that directory.
    pub top_path: &'a [u8],
    /// Contents of the manifest.
    pub contents: &'a RecordedContents,
    /// Share of parity.
    pub redundancy: Redundancy,
    /// Bytes of a full volume, a multiple of a block.
    pub capacity: u64,
    /// Bytes of memory for windows and code.
    pub memory: u64,
    /// Workers.
    pub workers: usize,
    /// Instruction sets to use.
    pub cpu: CpuFeatures,
    /// Ends the work early.
    pub cancel: &'a Cancel,
    /// Counts files and bytes as they are read.
    pub progress: &'a HashProgress,
    /// Limit of bytes a second, if there is one.
    pub rate: Option<Rate>,
    /// Now, in nanoseconds since 1970.
    pub now_ns: i64,
}

/// Contents that could not be proven, with the reason.
pub(crate) type Unproven = HashMap<ContentId, PathError>;

/// End of [`Encoding::run`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum EncodeEnd {
    /// All of it is written, but for contents that could not be proven.
    Complete,
    /// A content with bytes in the code could not be proven: what is not committed is to be planned
    /// again.
    Again,
}

/// State of encoding, which lasts from one plan to the next.
pub(crate) struct Encoding<'a> {
    means: &'a EncodeMeans<'a>,
    next_id: u64,
    /// Paths of a content that failed so far.
    tries: HashMap<ContentId, usize>,
    /// Bytes of a content that are zero, and left out.
    zeros: HashMap<ContentId, u64>,
    replans: u32,
    /// Contents that could not be proven by any of their paths.
    pub unproven: Unproven,
    /// Volumes that were written, and the bytes of their files.
    pub written: Vec<(VolumeState, u64)>,
}

/// A large content that is being read.
struct LargeContent {
    piece: ContentPiece,
    file: OwnedFd,
    path: Vec<u8>,
    size: u64,
    /// Next byte of the content.
    at: u64,
    hasher: Mutex<Hasher>,
    /// Bytes in the window that are to be hashed.
    parts: Vec<Range<usize>>,
    /// True if bytes of it are in an earlier volume.
    is_from_before: bool,
}

impl LargeContent {
    fn end(&self) -> u64 {
        self.piece.from + self.piece.len
    }
}

/// A volume in the making.
struct NewVolume {
    encoder: ParityEncoder,
    pieces: Vec<StoredPiece>,
    blocks: Vec<ShortDigest>,
    /// Bytes of the stream that are encoded.
    stream: u64,
    passes: usize,
}

/// A volume that waits for the proof of its last content.
struct PendingVolume {
    header: VolumeHeader,
    file: AtomicFile,
    len: u64,
}

/// State of one plan.
struct VolumeStream<'a, 'e> {
    encoding: &'e mut Encoding<'a>,
    wanted: &'e [ContentPiece],
    at: usize,
    window: Vec<u8>,
    filled: usize,
    /// Bytes of the large content that come next, which were read while the window was encoded.
    ahead: Vec<u8>,
    ahead_len: usize,
    ahead_failed: Option<PathError>,
    span: Option<LargeContent>,
    /// Contents of the window that are complete, and not yet proven.
    ended: Vec<LargeContent>,
    pending: Vec<PendingVolume>,
}

/// Step that could not be done.
enum EncodeStop {
    Fatal(Error),
    Again,
}

impl From<Error> for EncodeStop {
    fn from(error: Error) -> EncodeStop {
        EncodeStop::Fatal(error)
    }
}

impl<'a> Encoding<'a> {
    /// Makes the state; new volumes are numbered from `next_id` on.
    pub(crate) fn new(means: &'a EncodeMeans<'a>, next_id: u64) -> Encoding<'a> {
        Encoding {
            means,
            next_id,
            tries: HashMap::new(),
            zeros: HashMap::new(),
            replans: 0,
            unproven: Unproven::new(),
            written: Vec::new(),
        }
    }

    /// Encodes pieces into new volumes.
    ///
    /// # Errors
    /// If a volume cannot be written, or it was cancelled: volumes that are committed stay.
    pub(crate) fn run(&mut self, wanted: &[ContentPiece]) -> Result<EncodeEnd, Error> {
        let window = (self.means.memory / 6).clamp(BLOCK as u64, WINDOW as u64) as usize;
        let mut stream = VolumeStream {
            wanted,
            at: 0,
            window: vec![0; window - window % BLOCK],
            filled: 0,
            ahead: Vec::new(),
            ahead_len: 0,
            ahead_failed: None,
            span: None,
            ended: Vec::new(),
            pending: Vec::new(),
            encoding: self,
        };
        match stream.run() {
            Ok(()) => Ok(EncodeEnd::Complete),
            Err(EncodeStop::Again) => Ok(EncodeEnd::Again),
            Err(EncodeStop::Fatal(error)) => Err(error),
        }
    }

    /// Returns the path by which a content is to be read.
    fn path(&self, content: ContentId) -> &'a [u8] {
        let tries = self.tries.get(&content).copied().unwrap_or(0);
        self.means
            .contents
            .paths(content)
            .nth(tries)
            .unwrap_or_default()
    }

    /// Notes that a content was not proven by its path; returns true if there is another one.
    fn failed(&mut self, content: ContentId, error: PathError) -> bool {
        let tries = self.tries.entry(content).or_default();
        *tries += 1;
        let is_left = self.means.contents.paths(content).nth(*tries).is_some();
        if !is_left {
            self.unproven.insert(content, error);
        }
        is_left
    }

    /// Returns the bytes that a piece has in the stream, as far as is known.
    fn stream_len(&self, piece: &ContentPiece) -> u64 {
        let zeros = self.zeros.get(&piece.content).copied().unwrap_or(0);
        piece.len.saturating_sub(zeros).max(1)
    }
}

impl EncodeMeans<'_> {
    fn error(&self, path: &[u8], op: &str, error: impl Into<std::io::Error>) -> PathError {
        let error = error.into();
        let errno = error.raw_os_error();
        PathError::with_reason(self.shown(path), op, errno, error.to_string())
    }

    fn differs(&self, path: &[u8], why: &str) -> PathError {
        PathError::with_reason(self.shown(path), "protect", None, why)
    }

    fn shown(&self, path: &[u8]) -> std::path::PathBuf {
        path_of(&bc_fs::path::join(self.top_path, path))
    }

    /// Opens a file of this size.
    fn open(&self, path: &[u8], size: u64, dirs: &mut LastDir) -> Result<OwnedFd, PathError> {
        let failed = |call: bc_fs::call::FailedCall| self.error(path, call.op, call.errno);
        let (dir, name) = split(path);
        let name = dirfd::name(name).map_err(failed)?;
        let dir = dirs.open(self.top, dir).map_err(failed)?;
        let file = dirfd::open_file(dir, &name, Access::Read).map_err(failed)?;
        let stat = stat(&file).map_err(failed)?;
        if stat.kind() != FileKind::File {
            return Err(self.differs(path, "is no regular file any more: not protected"));
        }
        match stat.stamp.size == size {
            true => Ok(file),
            false => Err(self.differs(path, DIFFERS)),
        }
    }

    fn read(
        &self,
        file: &OwnedFd,
        path: &[u8],
        to: &mut [u8],
        offset: u64,
    ) -> Result<(), PathError> {
        let count = dirfd::read_at(file, to, offset)
            .map_err(|call| self.error(path, call.op, call.errno))?;
        self.progress.bytes.fetch_add(count as u64, Relaxed);
        if let Some(rate) = &self.rate {
            rate.spend(count as u64, self.cancel);
        }
        match count == to.len() {
            true => Ok(()),
            false => Err(self.differs(path, DIFFERS)),
        }
    }

    fn check(&self) -> Result<(), EncodeStop> {
        match self.cancel.is_cancelled() {
            true => Err(EncodeStop::Fatal(Error::cancelled())),
            false => Ok(()),
        }
    }

    /// Runs `task` for all numbers below `count`.
    fn share(
        &self,
        count: usize,
        workers: usize,
        task: impl Fn(usize) + Sync,
    ) -> Result<(), Error> {
        let next = AtomicUsize::new(0);
        bc_pool::run(self.workers.min(workers).min(count).max(1), |_| {
            loop {
                let number = next.fetch_add(1, Relaxed);
                if number >= count || self.cancel.is_cancelled() {
                    return;
                }
                task(number);
            }
        })?;
        Ok(())
    }
}

const DIFFERS: &str = "is not as the manifest says: not protected";

/// The directory of the last file, which is nearly always that of the next.
#[derive(Default)]
struct LastDir(Option<(Vec<u8>, OwnedFd)>);

impl LastDir {
    fn open(&mut self, top: BorrowedFd<'_>, dir: &[u8]) -> bc_fs::call::Result<BorrowedFd<'_>> {
        if self.0.as_ref().is_none_or(|(last, _)| last != dir) {
            self.0 = Some((dir.to_vec(), dirfd::open_below(top, dir)?));
        }
        match &self.0 {
            Some((_, fd)) => Ok(fd.as_fd()),
            None => Err(bc_fs::call::FailedCall {
                op: "open directory",
                errno: Errno::NOENT,
            }),
        }
    }
}
