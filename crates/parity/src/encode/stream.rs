//! The stream of a volume: files are read into the window, proven, and encoded.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use bc_digest::{Batch, Digest};
use bc_fs::PathError;
use bc_walk::job::Error;

use super::large::LargeContent;
use super::{DIFFERS, EncodeMeans, EncodeStop, LastDir, NewVolume, VolumeStream, WantedFile};
use crate::code::{BLOCK, ParityEncoder, parity_blocks};
use crate::format::{FULL_RAW, PieceBytes, ShortDigest, StoredPiece, short_digest};
use crate::plan::blocks_of;

/// Files, and bytes, that a worker takes at a time.
const TOGETHER: usize = 64;
const TOGETHER_BYTES: u64 = 1 << 20;

/// Files that are read into the window at a time.
const MOST_FILES: usize = 4096;

/// Bytes of a large file that a worker reads at a time.
const PART: usize = 1 << 20;

/// Blocks whose digests a worker computes at a time.
const BLOCKS_TOGETHER: usize = 16;

/// A small file that is read into its place.
struct SmallJob<'w> {
    number: usize,
    file: &'w WantedFile,
    to: &'w mut [u8],
}

/// The next bytes of a large content, in parts that are read side by side.
struct SpanParts<'s> {
    span: &'s LargeContent,
    parts: Vec<Mutex<&'s mut [u8]>>,
    failed: Mutex<Option<PathError>>,
}

impl<'s> SpanParts<'s> {
    fn new(span: &'s LargeContent, to: &'s mut [u8]) -> SpanParts<'s> {
        SpanParts {
            span,
            parts: to.chunks_mut(PART).map(Mutex::new).collect(),
            failed: Mutex::new(None),
        }
    }

    fn len(&self) -> usize {
        self.parts.len()
    }

    fn read(&self, means: &EncodeMeans<'_>, number: usize) {
        let mut part = self.parts[number]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let offset = self.span.at + (number * PART) as u64;
        if let Err(error) = means.read(&self.span.file, &self.span.path, &mut part, offset) {
            let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
            failed.get_or_insert(error);
        }
    }

    fn failed(self) -> Option<PathError> {
        self.failed
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// Content that a piece is of.
struct PieceOf<'a> {
    digest: Digest,
    size: u64,
    path: &'a [u8],
}

impl NewVolume {
    /// True if its header has room for more.
    fn takes_pieces(&self) -> bool {
        self.raw < FULL_RAW
    }

    /// Adds a piece, or makes the last one longer.
    fn push(&mut self, of: &PieceOf<'_>, from: u64, len: u64, bytes: PieceBytes) {
        let mut path = of.path;
        if let Some(last) = self.pieces.last_mut()
            && (last.digest, last.size) == (of.digest, of.size)
        {
            let follows = match (last.bytes, bytes) {
                (PieceBytes::Stream(start), PieceBytes::Stream(offset)) => {
                    start + last.len == offset
                }
                (PieceBytes::Zeros, PieceBytes::Zeros) => true,
                _ => false,
            };
            if follows && last.from + last.len == from {
                last.len += len;
                return;
            }
            path = &[];
        }
        let piece = StoredPiece {
            digest: of.digest,
            size: of.size,
            from,
            len,
            bytes,
            path: StoredPiece::hint(path),
        };
        if piece.path.len() < path.len() {
            self.long_paths.insert(self.pieces.len(), path.to_vec());
        }
        self.raw += piece.raw_len();
        self.pieces.push(piece);
    }
}

impl<'a> VolumeStream<'a, '_> {
    pub(super) fn run(&mut self) -> Result<(), EncodeStop> {
        while self.span.is_some() || self.files.peek(self.encoding)?.is_some() {
            let mut volume = self.begin();
            while volume.stream < self.means().capacity && volume.takes_pieces() {
                let room = self.means().capacity - volume.stream;
                self.fill(&mut volume, room.min(self.window.len() as u64) as usize)?;
                // Where nothing but zeros came, there may still be something to prove.
                if self.filled == 0 && self.ended.is_empty() {
                    break;
                }
                self.encode(&mut volume)?;
                self.commit_proven()?;
            }
            self.end(volume)?;
        }
        self.commit()
    }

    pub(super) fn means(&self) -> &'a EncodeMeans<'a> {
        self.encoding.means
    }

    fn begin(&self) -> NewVolume {
        let means = self.means();
        let contents = &self.encoding.contents;
        let ahead = self.span.as_ref().map_or(0, |span| span.end() - span.at);
        let mut planned = (self.left + ahead).clamp(1, means.capacity);
        // Small files fill the header before the stream.
        let path = contents.path_bytes / contents.len().max(1) as u64;
        let most = FULL_RAW / (path + 38 + contents.algorithm.digest_len() as u64);
        if self.left_contents > most {
            planned = planned.min((ahead + self.left / self.left_contents * most).max(1));
        }
        let parity = parity_blocks(blocks_of(planned), means.redundancy);
        let passes = means.passes(parity);
        NewVolume {
            encoder: ParityEncoder::new(parity, 0..BLOCK / passes, means.workers),
            pieces: Vec::new(),
            long_paths: Default::default(),
            raw: 0,
            blocks: Vec::new(),
            stream: 0,
            passes,
        }
    }

    /// Fills the window with the next bytes of the stream, and adds their pieces.
    fn fill(&mut self, volume: &mut NewVolume, room: usize) -> Result<(), EncodeStop> {
        self.filled = 0;
        while self.filled < room && volume.takes_pieces() {
            self.means().check()?;
            if self.span.is_some() {
                self.read_span(volume, room)?;
                continue;
            }
            let small = self.take_small(volume, room)?;
            if !small.is_empty() {
                self.read_small(small, volume)?;
                continue;
            }
            if self.files.peek(self.encoding)?.is_none() {
                break;
            }
            if let Some(wanted) = self.take_next() {
                self.open_span(wanted)?;
            }
        }
        Ok(())
    }

    /// Takes the next file, which was looked at.
    fn take_next(&mut self) -> Option<WantedFile> {
        let wanted = self.files.next.take()?;
        let content = wanted.piece.content;
        self.encoding.contents.state_mut(content).set_taken(true);
        self.left = self.left.saturating_sub(wanted.piece.len);
        self.left_contents = self.left_contents.saturating_sub(1);
        Some(wanted)
    }

    /// Takes the next files that fit into the window whole.
    fn take_small(
        &mut self,
        volume: &NewVolume,
        room: usize,
    ) -> Result<Vec<WantedFile>, EncodeStop> {
        let mut small = Vec::new();
        let (mut bytes, mut raw) = (0, volume.raw);
        while small.len() < MOST_FILES && (raw < FULL_RAW || small.is_empty()) {
            let Some(wanted) = self.files.peek(self.encoding)? else {
                break;
            };
            let len = wanted.piece.len;
            if len != wanted.size || len > (room - self.filled) as u64 - bytes {
                break;
            }
            bytes += len;
            raw += 100 + wanted.path.len() as u64;
            small.extend(self.take_next());
        }
        Ok(small)
    }

    /// Reads files that fit into the window, and proves them.
    fn read_small(
        &mut self,
        small: Vec<WantedFile>,
        volume: &mut NewVolume,
    ) -> Result<(), EncodeStop> {
        let mut from = self.filled;
        let failed = self.read_files(&small)?;
        let mut failed = failed.into_iter().peekable();
        for (number, wanted) in small.iter().enumerate() {
            let len = wanted.size as usize;
            if let Some((_, error)) = failed.next_if(|(failed, _)| *failed == number) {
                self.failed(wanted, error);
            } else {
                self.encoding.proven(wanted.piece.content);
                let of = PieceOf {
                    digest: wanted.digest,
                    size: wanted.size,
                    path: &wanted.path,
                };
                self.keep(&of, 0, from..from + len, volume);
            }
            from += len;
        }
        Ok(())
    }

    /// Notes that a content was not proven by a file, no byte of which is in the code.
    fn failed(&mut self, wanted: &WantedFile, error: PathError) {
        let content = wanted.piece.content;
        let state = self.encoding.contents.state_mut(content);
        state.set_taken(false);
        self.files.starts_again |= state.is_shared();
        self.encoding.failed(content, &wanted.path, error);
    }

    /// Reads files to the end of the window, and returns those that do not have the recorded
    /// content, in order.
    fn read_files(&mut self, small: &[WantedFile]) -> Result<Vec<(usize, PathError)>, EncodeStop> {
        let means = self.means();
        let algorithm = self.encoding.contents.algorithm;
        let mut rest = &mut self.window[self.filled..];
        let mut jobs = Vec::with_capacity(small.len());
        let mut bytes = 0;
        for (number, file) in small.iter().enumerate() {
            let (to, behind) = std::mem::take(&mut rest).split_at_mut(file.size as usize);
            rest = behind;
            bytes += file.size;
            jobs.push(SmallJob { number, file, to });
        }
        let workers = (jobs.len() / 8).max((bytes >> 18) as usize);
        let jobs = Mutex::new(jobs.into_iter());
        let failed = Mutex::new(Vec::new());
        bc_pool::run(means.workers.min(workers).max(1), |_| {
            let mut batch = Batch::new(&[algorithm], means.cpu);
            let mut dirs = LastDir::default();
            let mut bad = Vec::new();
            while !means.cancel.is_cancelled() {
                let mut taken = Vec::with_capacity(TOGETHER);
                {
                    let mut jobs = jobs.lock().unwrap_or_else(PoisonError::into_inner);
                    let mut bytes = 0;
                    while taken.len() < TOGETHER && bytes < TOGETHER_BYTES {
                        let Some(job) = jobs.next() else {
                            break;
                        };
                        bytes += job.to.len() as u64;
                        taken.push(job);
                    }
                }
                if taken.is_empty() {
                    break;
                }
                taken.retain_mut(|job| {
                    let path = &job.file.path;
                    let read = means.open(path, job.to.len() as u64, &mut dirs);
                    let read = read.and_then(|file| means.read(&file, path, job.to, 0));
                    read.map_err(|error| bad.push((job.number, error))).is_ok()
                });
                let messages: Vec<&[u8]> = taken.iter().map(|job| &*job.to).collect();
                batch.hash_all(&messages, |nth, digest| {
                    let job = &taken[nth];
                    if digest != job.file.digest {
                        bad.push((job.number, means.differs(&job.file.path, DIFFERS)));
                    }
                });
            }
            failed
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .append(&mut bad);
        })
        .map_err(Error::from)?;
        means.check()?;
        let mut failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        failed.sort_unstable_by_key(|(number, _)| *number);
        Ok(failed)
    }

    /// Keeps bytes of the window that belong to the stream: moves them down to its end, without the
    /// blocks of zeros. `from` is the first one's offset in the content.
    fn keep(&mut self, of: &PieceOf<'_>, from: u64, bytes: Range<usize>, volume: &mut NewVolume) {
        let end = from + bytes.len() as u64;
        let mut at = from;
        while at < end {
            // Up to the next block of the content.
            let next = (at - at % BLOCK as u64 + BLOCK as u64).min(end);
            let here = bytes.start + (at - from) as usize;
            let len = (next - at) as usize;
            let offset = volume.stream + self.filled as u64;
            // A volume has one block at least.
            if len == BLOCK && offset > 0 && is_zero(&self.window[here..here + len]) {
                volume.push(of, at, len as u64, PieceBytes::Zeros);
            } else {
                if here != self.filled {
                    self.window.copy_within(here..here + len, self.filled);
                }
                self.filled += len;
                volume.push(of, at, len as u64, PieceBytes::Stream(offset));
            }
            at = next;
        }
    }

    /// Opens a content that does not fit into the window, or of which a part is wanted only.
    fn open_span(&mut self, wanted: WantedFile) -> Result<(), EncodeStop> {
        let means = self.means();
        let opened = LargeContent::open(means, self.encoding.contents.algorithm, &wanted);
        means.check()?;
        match opened {
            Ok(span) => self.span = Some(span),
            Err(error) => self.failed(&wanted, error),
        }
        Ok(())
    }

    /// Notes that a large content with bytes in the code could not be proven.
    fn span_failed(&mut self, span: &LargeContent, error: PathError) -> EncodeStop {
        self.encoding.failed(span.piece.content, &span.path, error);
        EncodeStop::Again
    }

    /// Reads the next bytes of the large content into the window.
    fn read_span(&mut self, volume: &mut NewVolume, room: usize) -> Result<(), EncodeStop> {
        let means = self.means();
        let Some(mut span) = self.span.take() else {
            return Ok(());
        };
        let start = self.filled;
        let len = (span.end() - span.at).min((room - start) as u64) as usize;
        let failed = if std::mem::take(&mut self.ahead_len) == len && start == 0 {
            std::mem::swap(&mut self.window, &mut self.ahead);
            self.ahead_failed.take()
        } else {
            let parts = SpanParts::new(&span, &mut self.window[start..start + len]);
            means.share(parts.len(), |number| parts.read(means, number))?;
            parts.failed()
        };
        means.check()?;
        if let Some(error) = failed {
            return Err(self.span_failed(&span, error));
        }
        // Blocks of zeros are left out: all of it has to be hashed before it is moved.
        let lead = (span.at.next_multiple_of(BLOCK as u64) - span.at) as usize;
        let blocks = self.window[start..start + len]
            .get(lead..)
            .unwrap_or_default();
        if blocks.chunks_exact(BLOCK).any(is_zero) {
            let parts = std::mem::take(&mut span.parts);
            let mut proof = span.proof.lock().unwrap_or_else(PoisonError::into_inner);
            parts
                .into_iter()
                .for_each(|part| proof.update(&self.window[part]));
            proof.update(&self.window[start..start + len]);
        } else {
            span.parts.push(start..start + len);
        }
        let path = std::mem::take(&mut span.path);
        let of = PieceOf {
            digest: span.digest,
            size: span.size,
            path: &path,
        };
        self.keep(&of, span.at, start..start + len, volume);
        span.path = path;
        span.at += len as u64;
        match span.at == span.end() {
            true => self.ended.push(span),
            false => self.span = Some(span),
        }
        Ok(())
    }

    /// Returns the number of bytes of the large content that the next window begins with.
    fn next_of_span(&self, stream: u64) -> usize {
        let Some(span) = &self.span else {
            return 0;
        };
        let room = match self.means().capacity - stream {
            0 => self.means().capacity,
            room => room,
        };
        (span.end() - span.at)
            .min(room)
            .min(self.window.len() as u64) as usize
    }

    /// Encodes the window; hashes what is not hashed yet; and reads what comes next of a large
    /// content.
    fn encode(&mut self, volume: &mut NewVolume) -> Result<(), EncodeStop> {
        let means = self.means();
        let end = self.filled.next_multiple_of(BLOCK);
        self.window[self.filled..end].fill(0);
        self.ahead_len = self.next_of_span(volume.stream + end as u64);
        if self.ahead_len > 0 {
            self.ahead.resize(self.window.len(), 0);
        }
        let ahead = &mut self.ahead[..self.ahead_len];
        let ahead = self.span.as_ref().map(|span| SpanParts::new(span, ahead));
        let parts = ahead.as_ref().map_or(0, SpanParts::len);
        let window = &self.window[..end];
        let spans: Vec<&LargeContent> = self.ended.iter().chain(&self.span).collect();
        let count = end / BLOCK;
        let groups = count.div_ceil(BLOCKS_TOGETHER);
        let digests: Vec<Mutex<Vec<ShortDigest>>> = (0..groups).map(|_| Mutex::default()).collect();
        let encoder = &volume.encoder;
        let tasks = spans.len() + parts + groups + encoder.slices();
        // The hash of a large content is one task, and the longest: it comes first.
        means.share(tasks, |task| {
            if let Some(span) = spans.get(task) {
                let mut proof = span.proof.lock().unwrap_or_else(PoisonError::into_inner);
                for part in &span.parts {
                    proof.update(&window[part.clone()]);
                }
                return;
            }
            let task = task - spans.len();
            if let Some(ahead) = ahead.as_ref().filter(|_| task < parts) {
                ahead.read(means, task);
                return;
            }
            let group = task - parts;
            if group < groups {
                let blocks = window
                    .chunks(BLOCK)
                    .skip(group * BLOCKS_TOGETHER)
                    .take(BLOCKS_TOGETHER);
                let computed = blocks.map(short_digest).collect();
                *digests[group]
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner) = computed;
            } else {
                encoder.take(group - groups, window);
            }
        })?;
        means.check()?;
        self.ahead_failed = ahead.and_then(SpanParts::failed);
        drop(spans);
        volume.encoder.taken(count);
        volume.stream += end as u64;
        let digests = digests
            .into_iter()
            .map(|group| group.into_inner().unwrap_or_else(PoisonError::into_inner));
        volume.blocks.extend(digests.flatten());
        if let Some(span) = &mut self.span {
            span.parts.clear();
        }
        for span in std::mem::take(&mut self.ended) {
            self.prove(span)?;
        }
        Ok(())
    }

    /// Proves a large content, all wanted bytes of which are read.
    fn prove(&mut self, span: LargeContent) -> Result<(), EncodeStop> {
        let means = self.means();
        let (content, path) = (span.piece.content, span.path.clone());
        let proven = span.prove(means);
        means.check()?;
        if let Err(error) = proven {
            self.encoding.failed(content, &path, error);
            return Err(EncodeStop::Again);
        }
        self.encoding.proven(content);
        // Those that wait have waited for it.
        self.commit()
    }

    /// Gives the volumes that wait for bytes that are proven by now their names.
    fn commit_proven(&mut self) -> Result<(), EncodeStop> {
        let Some(span) = self.span.as_ref().filter(|_| !self.pending.is_empty()) else {
            return Ok(());
        };
        match span.proven(self.means()) {
            Ok(proven) => self.commit_until(proven),
            Err(error) => {
                let (content, path) = (span.piece.content, span.path.clone());
                self.encoding.failed(content, &path, error);
                Err(EncodeStop::Again)
            }
        }
    }
}
