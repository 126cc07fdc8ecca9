//! Encoding: contents are read once, proven by the manifest's digests, cut into blocks, and written
//! as volumes.
//!
//! The manifest is read along, in path order, for the paths of contents that no volume has. A window of
//! some MiB goes through the stream. Files that fit into it are read into their place and proven before
//! it is encoded; those that do not (large ones) are hashed while it is, and volumes with bytes of them
//! stay without a name until these are proven. A content that does not fit the manifest is left out: if
//! bytes of it are in the code already, what was not committed is started again without it. So no volume
//! ever has content that was not proven.

mod large;
mod stream;
mod write;

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use bc_digest::{CpuFeatures, Digest};
use bc_edit::atomic::AtomicFile;
use bc_fs::PathError;
use bc_fs::dirfd::{self, Access};
use bc_fs::meta::{FileKind, stat, stat_at};
use bc_fs::path::split;
use bc_hash::HashProgress;
use bc_integrity::{LineInput, ManifestFile, Trust};
use bc_manifest::integrity::{Entry, Kind, Reader};
use bc_pool::Cancel;
use bc_read::Rate;
use bc_walk::job::{Error, ErrorKind, path_of};
use rustix::io::Errno;

use crate::code::{BLOCK, ParityEncoder, Redundancy};
use crate::contents::{ContentId, ContentPiece, ContentTable, content_of, is_without_digest};
use crate::file::ParityDir;
use crate::format::{DirId, ShortDigest, StoredPiece};
use crate::plan::{VolumeState, uncovered};
use large::LargeContent;

/// Bytes of the window, where there is memory enough.
const WINDOW: usize = 8 << 20;

/// Contents that are not as the manifest says before it is taken for that of another tree, if none is
/// as it says and the manifest does not know why.
const MOST_FAILED: u64 = 1000;

/// Files of one content that are tried.
const MOST_TRIED: usize = 8;

/// Means of encoding.
pub(crate) struct EncodeMeans<'a> {
    /// Directory of the volumes.
    pub dir: &'a ParityDir,
    /// Its id and description, for headers.
    pub id: DirId,
    /// Description of the directory, for headers.
    pub description: Vec<u8>,
    /// Directory that the paths are below, and its path.
    pub top: BorrowedFd<'a>,
    /// Path of that directory.
    pub top_path: &'a [u8],
    /// The manifest.
    pub manifest: &'a ManifestFile,
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

/// Event of encoding.
pub(crate) enum EncodeEvent<'a> {
    /// A file whose content could not be proven.
    Unproven(&'a PathError),
    /// A volume was written: its state, and the bytes of its file.
    Written(&'a VolumeState, u64),
}

/// State of encoding, which lasts from one start to the next.
pub(crate) struct Encoding<'a> {
    means: &'a EncodeMeans<'a>,
    contents: &'a mut ContentTable,
    observer: &'a mut dyn FnMut(EncodeEvent<'_>),
    next_number: u64,
    /// Contents of several files, of which those that were tried could not be proven.
    failed: HashMap<ContentId, FailedContent>,
    /// Path of the last file without a digest that was reported: the manifest may be read again.
    last_bare: Vec<u8>,
    /// All volumes; those that are written come behind the others.
    pub volumes: Vec<VolumeState>,
    /// Contents that could not be proven.
    pub unproven: u64,
    /// Those of them that some file has, as far as the manifest knows.
    unexpected: u64,
    proven: u64,
    /// Times that a volume was not the same when it was read again.
    changed: u32,
}

/// A content of several files, none of which has proven it yet.
struct FailedContent {
    /// The first error.
    error: PathError,
    /// Paths that were tried.
    tried: Vec<Vec<u8>>,
}

/// A file that is to be read.
struct WantedFile {
    piece: ContentPiece,
    path: Vec<u8>,
    digest: Digest,
    size: u64,
    /// Last modification of the file as recorded, if it is.
    mtime_ns: Option<i64>,
}

/// Files of the manifest with content that is to be encoded.
struct WantedFiles {
    reader: Reader<LineInput>,
    next: Option<WantedFile>,
    /// True if the manifest was read to its end.
    is_over: bool,
    /// True if a content may have another file before the place that was read to.
    starts_again: bool,
}

/// A volume in the making.
struct NewVolume {
    encoder: ParityEncoder,
    pieces: Vec<StoredPiece>,
    /// Paths that are too long for the header, by the numbers of their pieces.
    long_paths: HashMap<usize, Vec<u8>>,
    /// Bytes that the pieces take in the header.
    raw: u64,
    blocks: Vec<ShortDigest>,
    /// Bytes of the stream that are encoded.
    stream: u64,
    passes: usize,
}

/// A volume that waits for the proof of its last content.
struct PendingVolume {
    state: VolumeState,
    pieces: Vec<ContentPiece>,
    file: AtomicFile,
    len: u64,
    /// Byte of the large content up to which that has to be proven.
    until: u64,
}

/// State of one start.
struct VolumeStream<'a, 'e> {
    encoding: &'e mut Encoding<'a>,
    files: WantedFiles,
    /// Bytes that are still to be taken from files.
    left: u64,
    /// Contents that these are in.
    left_contents: u64,
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
    /// A content with bytes in the code could not be proven.
    Again,
}

impl From<Error> for EncodeStop {
    fn from(error: Error) -> EncodeStop {
        EncodeStop::Fatal(error)
    }
}

impl<'a> Encoding<'a> {
    /// Makes the state; new volumes are numbered from `next_number` on.
    pub(crate) fn new(
        means: &'a EncodeMeans<'a>,
        contents: &'a mut ContentTable,
        volumes: Vec<VolumeState>,
        next_number: u64,
        observer: &'a mut dyn FnMut(EncodeEvent<'_>),
    ) -> Encoding<'a> {
        Encoding {
            means,
            contents,
            observer,
            next_number,
            failed: HashMap::new(),
            last_bare: Vec::new(),
            volumes,
            unproven: 0,
            unexpected: 0,
            proven: 0,
            changed: 0,
        }
    }

    /// Encodes all content that no volume has.
    ///
    /// # Errors
    /// If a volume cannot be written, nothing in the tree is as the manifest says, or it was cancelled:
    /// volumes that are committed stay.
    pub(crate) fn run(&mut self) -> Result<(), Error> {
        loop {
            let (left_contents, left) = uncovered(self.contents);
            let window = (self.means.memory / 8).clamp(BLOCK as u64, WINDOW as u64) as usize;
            let mut stream = VolumeStream {
                files: WantedFiles::open(self.means.manifest)?,
                left,
                left_contents,
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
            let ended = stream.run();
            drop(stream);
            self.contents.forget_taken();
            match ended {
                Ok(()) => break,
                Err(EncodeStop::Again) => {}
                Err(EncodeStop::Fatal(error)) => return Err(error),
            }
        }
        let mut failed: Vec<(ContentId, FailedContent)> = self.failed.drain().collect();
        failed.sort_unstable_by(|(_, one), (_, other)| one.error.path().cmp(other.error.path()));
        for (content, failed) in failed {
            self.give_up(content, &failed.error);
        }
        // Asked last: those that differ may be the first in path order.
        if self.proven == 0 && self.unexpected >= MOST_FAILED {
            let text = format!(
                "none of {} files is as the manifest says: is it that of another tree?",
                self.unexpected
            );
            let top = path_of(self.means.top_path);
            return Err(Error::at(ErrorKind::Refused, &top, text));
        }
        Ok(())
    }

    /// Notes that a content was not proven by a file.
    fn failed(&mut self, content: ContentId, path: &[u8], error: PathError) {
        let mut error = error;
        if self.contents.state(content).is_shared() {
            let failed = self.failed.entry(content).or_insert(FailedContent {
                error,
                tried: Vec::new(),
            });
            failed.tried.push(path.to_vec());
            if failed.tried.len() < MOST_TRIED {
                return;
            }
            error = match self.failed.remove(&content) {
                Some(failed) => failed.error,
                None => return,
            };
        }
        self.contents.state_mut(content).fail();
        self.give_up(content, &error);
    }

    /// Counts and reports a content that no file has proven.
    fn give_up(&mut self, content: ContentId, error: &PathError) {
        self.unproven += 1;
        self.unexpected += u64::from(!self.contents.is_suspect(content));
        (self.observer)(EncodeEvent::Unproven(error));
    }

    /// Notes that a content was proven.
    fn proven(&mut self, content: ContentId) {
        self.failed.remove(&content);
        self.proven += 1;
        self.means.progress.files.fetch_add(1, Relaxed);
    }

    /// Returns the file that an entry is to be read as, if its content is to be encoded.
    fn wanted(&mut self, entry: &Entry) -> Option<WantedFile> {
        if entry.kind != Kind::File {
            return None;
        }
        if is_without_digest(entry) && entry.path > self.last_bare {
            self.last_bare.clone_from(&entry.path);
            let why = match &entry.error {
                Some(_) => "could not be read when it was recorded: not protected",
                None => "has no digest, or no size, in the manifest: not protected",
            };
            let error = self.means.differs(&entry.path, why);
            (self.observer)(EncodeEvent::Unproven(&error));
        }
        let (digest, size) = content_of(entry)?;
        let content = self.contents.find(&digest, size)?;
        let state = self.contents.state(content);
        if state.is_taken() || state.has_failed() {
            return None;
        }
        let piece = self.contents.missing(content)?;
        let failed = self.failed.get(&content);
        let is_tried = failed.is_some_and(|failed| failed.tried.contains(&entry.path));
        (!is_tried).then(|| WantedFile {
            piece,
            path: entry.path.clone(),
            digest,
            size,
            mtime_ns: entry.meta.map(|meta| meta.mtime_ns),
        })
    }
}

impl WantedFiles {
    fn open(manifest: &ManifestFile) -> Result<WantedFiles, Error> {
        Ok(WantedFiles {
            reader: manifest.reader(Trust::Checked)?,
            next: None,
            is_over: false,
            starts_again: false,
        })
    }

    /// Returns the next file that is to be read, which stays the next.
    fn peek(&mut self, encoding: &mut Encoding<'_>) -> Result<Option<&WantedFile>, Error> {
        let manifest = encoding.means.manifest;
        while self.next.is_none() {
            if self.is_over {
                // Files that were taken before the end may have failed since.
                if !std::mem::take(&mut self.starts_again) {
                    break;
                }
                self.reader = manifest.reader(Trust::Checked)?;
                self.is_over = false;
            }
            match self
                .reader
                .read()
                .map_err(|error| manifest.refused(&error))?
            {
                Some(entry) => self.next = encoding.wanted(&entry),
                None => self.is_over = true,
            }
        }
        Ok(self.next.as_ref())
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
        let other_kind = || self.differs(path, "is no regular file any more: not protected");
        let (dir, name) = split(path);
        let name = dirfd::name(name).map_err(failed)?;
        let dir = dirs.open(self.top, dir).map_err(failed)?;
        // Other kinds are not even opened.
        if stat_at(dir, &name).map_err(failed)?.kind() != FileKind::File {
            return Err(other_kind());
        }
        let file = dirfd::open_file(dir, &name, Access::Read).map_err(failed)?;
        let stat = stat(&file).map_err(failed)?;
        match (stat.kind() == FileKind::File, stat.stamp.size == size) {
            (true, true) => Ok(file),
            (true, false) => Err(self.differs(path, DIFFERS)),
            (false, _) => Err(other_kind()),
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

    /// Returns the number of times that a volume is read, each time for other columns of its blocks.
    fn passes(&self, parity: usize) -> usize {
        // Windows and headers have the other half.
        let memory = self.memory / 2;
        let mut passes = 1;
        while passes < BLOCK / 64 && ParityEncoder::memory(parity, BLOCK / passes) > memory {
            passes *= 2;
        }
        passes
    }

    fn check(&self) -> Result<(), EncodeStop> {
        match self.cancel.is_cancelled() {
            true => Err(EncodeStop::Fatal(Error::cancelled())),
            false => Ok(()),
        }
    }

    /// Runs `task` for all numbers below `count`.
    fn share(&self, count: usize, task: impl Fn(usize) + Sync) -> Result<(), Error> {
        let next = AtomicUsize::new(0);
        bc_pool::run(self.workers.min(count).max(1), |_| {
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
