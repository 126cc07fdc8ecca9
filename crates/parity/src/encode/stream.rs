//! The stream of a volume: files are read into the window, proven, and encoded.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

use bc_digest::{Batch, Digest, Hasher};
use bc_fs::PathError;
use bc_walk::job::Error;

use super::{
    ContentPiece, DIFFERS, EncodeMeans, EncodeStop, LargeContent, LastDir, NewVolume, VolumeStream,
};
use crate::code::{BLOCK, ParityEncoder, parity_blocks};
use crate::contents::ContentId;
use crate::format::{MOST_PATHS, PieceBytes, ShortDigest, StoredPiece, short_digest};
use crate::plan::blocks_of;

/// Files, and bytes, that a worker takes at a time.
const TOGETHER: usize = 64;
const TOGETHER_BYTES: u64 = 1 << 20;

/// Bytes of a large file that a worker reads at a time.
const PART: usize = 1 << 20;

/// Blocks whose digests a worker computes at a time.
const BLOCKS_TOGETHER: usize = 16;

/// A small file that is read into its place.
struct SmallJob<'w> {
    number: usize,
    content: ContentId,
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

impl<'a> VolumeStream<'a, '_> {
    pub(super) fn run(&mut self) -> Result<(), EncodeStop> {
        loop {
            let left = self.left();
            if left == 0 {
                break;
            }
            let mut volume = self.begin(left);
            while volume.stream < self.means().capacity {
                let room = self.means().capacity - volume.stream;
                self.fill(&mut volume, room.min(self.window.len() as u64) as usize)?;
                if self.filled == 0 {
                    break;
                }
                self.encode(&mut volume)?;
            }
            self.end(volume)?;
        }
        self.commit()
    }

    pub(super) fn means(&self) -> &'a EncodeMeans<'a> {
        self.encoding.means
    }

    /// Returns the bytes that are still to be encoded, up to those of a volume.
    fn left(&self) -> u64 {
        let mut left = self.span.as_ref().map_or(0, |span| span.end() - span.at);
        for piece in &self.wanted[self.at..] {
            if left >= self.means().capacity {
                break;
            }
            if !self.encoding.unproven.contains_key(&piece.content) {
                left += self.encoding.stream_len(piece);
            }
        }
        left
    }

    fn begin(&mut self, left: u64) -> NewVolume {
        let means = self.means();
        let parity = parity_blocks(blocks_of(left.min(means.capacity)), means.redundancy);
        // Windows and rows of parity have a third of the memory.
        let memory = means.memory - means.memory / 3;
        let mut passes = 1;
        while passes < BLOCK / 64 && ParityEncoder::memory(parity, BLOCK / passes) > memory {
            passes *= 2;
        }
        if let Some(span) = &mut self.span {
            span.is_from_before = true;
        }
        NewVolume {
            encoder: ParityEncoder::new(parity, 0..BLOCK / passes, means.workers),
            pieces: Vec::new(),
            blocks: Vec::new(),
            stream: 0,
            passes,
        }
    }

    /// Fills the window with the next bytes of the stream, and adds their pieces.
    fn fill(&mut self, volume: &mut NewVolume, room: usize) -> Result<(), EncodeStop> {
        let means = self.means();
        let (stream, pieces) = (volume.stream, &mut volume.pieces);
        self.filled = 0;
        while self.filled < room {
            means.check()?;
            if self.span.is_some() {
                self.read_span(stream, room, pieces)?;
                continue;
            }
            let mut small = Vec::new();
            let mut bytes = 0;
            while let Some(&piece) = self.wanted.get(self.at) {
                let is_whole = piece.len == means.contents.get(piece.content).size;
                if self.encoding.unproven.contains_key(&piece.content) {
                    self.at += 1;
                    continue;
                }
                if !is_whole || piece.len > (room - self.filled) as u64 - bytes {
                    break;
                }
                bytes += piece.len;
                small.push(piece.content);
                self.at += 1;
            }
            if !small.is_empty() {
                self.read_small(small, stream, pieces)?;
                continue;
            }
            let Some(&piece) = self.wanted.get(self.at) else {
                break;
            };
            self.at += 1;
            self.open_span(piece)?;
        }
        Ok(())
    }

    /// Reads files that fit into the window, and proves them.
    fn read_small(
        &mut self,
        mut small: Vec<ContentId>,
        stream: u64,
        pieces: &mut Vec<StoredPiece>,
    ) -> Result<(), EncodeStop> {
        let means = self.means();
        // Contents with another path are read again by that.
        while !small.is_empty() {
            let start = self.filled;
            let failed = self.read_files(&small)?;
            let mut again = Vec::new();
            let mut from = start;
            let mut failed = failed.into_iter().peekable();
            for (number, &content) in small.iter().enumerate() {
                let len = means.contents.get(content).size as usize;
                if let Some((_, error)) = failed.next_if(|(failed, _)| *failed == number) {
                    if self.encoding.failed(content, error) {
                        again.push(content);
                    }
                } else {
                    means.progress.files.fetch_add(1, Relaxed);
                    self.encoding.zeros.remove(&content);
                    self.keep(content, 0, from..from + len, stream, pieces);
                }
                from += len;
            }
            small = again;
        }
        Ok(())
    }

    /// Reads files to the end of the window, and returns those that do not have the recorded
    /// content, in order.
    fn read_files(&mut self, small: &[ContentId]) -> Result<Vec<(usize, PathError)>, EncodeStop> {
        let means = self.means();
        let encoding = &*self.encoding;
        let contents = means.contents;
        let mut rest = &mut self.window[self.filled..];
        let mut jobs = Vec::with_capacity(small.len());
        let mut bytes = 0;
        for (number, &content) in small.iter().enumerate() {
            let len = contents.get(content).size;
            let (to, behind) = std::mem::take(&mut rest).split_at_mut(len as usize);
            rest = behind;
            bytes += len;
            jobs.push(SmallJob {
                number,
                content,
                to,
            });
        }
        let workers = (jobs.len() / 8).max((bytes >> 18) as usize);
        let jobs = Mutex::new(jobs.into_iter());
        let failed = Mutex::new(Vec::new());
        bc_pool::run(means.workers.min(workers).max(1), |_| {
            let mut batch = Batch::new(&[contents.algorithm], means.cpu);
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
                    let path = encoding.path(job.content);
                    let read = means.open(path, job.to.len() as u64, &mut dirs);
                    let read = read.and_then(|file| means.read(&file, path, job.to, 0));
                    read.map_err(|error| bad.push((job.number, error))).is_ok()
                });
                let messages: Vec<&[u8]> = taken.iter().map(|job| &*job.to).collect();
                batch.hash_all(&messages, |nth, digest| {
                    let job = &taken[nth];
                    if digest != contents.get(job.content).digest {
                        bad.push((
                            job.number,
                            means.differs(encoding.path(job.content), DIFFERS),
                        ));
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
    fn keep(
        &mut self,
        content: ContentId,
        from: u64,
        bytes: Range<usize>,
        stream: u64,
        pieces: &mut Vec<StoredPiece>,
    ) {
        let end = from + bytes.len() as u64;
        let mut at = from;
        while at < end {
            // Up to the next block of the content.
            let next = (at - at % BLOCK as u64 + BLOCK as u64).min(end);
            let here = bytes.start + (at - from) as usize;
            let len = (next - at) as usize;
            let is_first = stream + self.filled as u64 == 0;
            // A volume has one block at least.
            if len == BLOCK && !is_first && is_zero(&self.window[here..here + len]) {
                *self.encoding.zeros.entry(content).or_default() += len as u64;
                self.push(content, at, len as u64, PieceBytes::Zeros, pieces);
            } else {
                let offset = stream + self.filled as u64;
                if here != self.filled {
                    self.window.copy_within(here..here + len, self.filled);
                }
                self.filled += len;
                self.push(content, at, len as u64, PieceBytes::Stream(offset), pieces);
            }
            at = next;
        }
    }

    /// Adds a piece, or makes the last one longer.
    fn push(
        &self,
        content: ContentId,
        from: u64,
        len: u64,
        bytes: PieceBytes,
        pieces: &mut Vec<StoredPiece>,
    ) {
        let contents = self.means().contents;
        let recorded = contents.get(content);
        if let Some(last) = pieces.last_mut()
            && (last.digest, last.size, last.from + last.len)
                == (recorded.digest, recorded.size, from)
        {
            let follows = match (last.bytes, bytes) {
                (PieceBytes::Stream(start), PieceBytes::Stream(offset)) => {
                    start + last.len == offset
                }
                (PieceBytes::Zeros, PieceBytes::Zeros) => true,
                _ => false,
            };
            if follows {
                last.len += len;
                return;
            }
        }
        let paths = contents.paths(content).take(MOST_PATHS);
        pieces.push(StoredPiece {
            digest: recorded.digest,
            size: recorded.size,
            from,
            len,
            bytes,
            paths: paths.map(<[u8]>::to_vec).collect(),
        });
    }

    /// Opens a content that does not fit into the window, or of which a part is wanted only.
    fn open_span(&mut self, piece: ContentPiece) -> Result<(), EncodeStop> {
        let means = self.means();
        let recorded = means.contents.get(piece.content);
        self.encoding.zeros.remove(&piece.content);
        loop {
            let path = self.encoding.path(piece.content).to_vec();
            let opened = means.open(&path, recorded.size, &mut LastDir::default());
            let opened = opened.and_then(|file| {
                let mut hasher = Hasher::with_cpu(means.contents.algorithm, means.cpu);
                self.hash_beside(&file, &path, 0..piece.from, &mut hasher)?;
                Ok((file, hasher))
            });
            means.check()?;
            match opened {
                Ok((file, hasher)) => {
                    self.span = Some(LargeContent {
                        piece,
                        file,
                        path,
                        size: recorded.size,
                        at: piece.from,
                        hasher: Mutex::new(hasher),
                        parts: Vec::new(),
                        is_from_before: false,
                    });
                    return Ok(());
                }
                Err(error) => {
                    let has_another = self.encoding.failed(piece.content, error);
                    if !has_another {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Hashes bytes of a file that go into no volume.
    fn hash_beside(
        &self,
        file: &OwnedFd,
        path: &[u8],
        bytes: Range<u64>,
        hasher: &mut Hasher,
    ) -> Result<(), PathError> {
        let mut buffer = vec![0; PART.min((bytes.end - bytes.start) as usize)];
        let mut at = bytes.start;
        while at < bytes.end && !self.means().cancel.is_cancelled() {
            let len = (bytes.end - at).min(PART as u64) as usize;
            self.means().read(file, path, &mut buffer[..len], at)?;
            hasher.update(&buffer[..len]);
            at += len as u64;
        }
        Ok(())
    }

    /// Reads the next bytes of the large content into the window.
    fn read_span(
        &mut self,
        stream: u64,
        room: usize,
        pieces: &mut Vec<StoredPiece>,
    ) -> Result<(), EncodeStop> {
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
            means.share(parts.len(), usize::MAX, |number| parts.read(means, number))?;
            parts.failed()
        };
        means.check()?;
        if let Some(error) = failed {
            self.encoding.failed(span.piece.content, error);
            return Err(EncodeStop::Again);
        }
        // Blocks of zeros are left out: all of it has to be hashed before it is moved.
        let lead = (span.at.next_multiple_of(BLOCK as u64) - span.at) as usize;
        let blocks = self.window[start..start + len]
            .get(lead..)
            .unwrap_or_default();
        if blocks.chunks_exact(BLOCK).any(is_zero) {
            let parts = std::mem::take(&mut span.parts);
            let mut hasher = span.hasher.lock().unwrap_or_else(PoisonError::into_inner);
            parts
                .into_iter()
                .for_each(|part| hasher.update(&self.window[part]));
            hasher.update(&self.window[start..start + len]);
        } else {
            span.parts.push(start..start + len);
        }
        self.keep(
            span.piece.content,
            span.at,
            start..start + len,
            stream,
            pieces,
        );
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
        means.share(tasks, usize::MAX, |task| {
            if let Some(span) = spans.get(task) {
                let mut hasher = span.hasher.lock().unwrap_or_else(PoisonError::into_inner);
                for part in &span.parts {
                    hasher.update(&window[part.clone()]);
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

    /// Compares the digest of a large content, all bytes of which are read.
    fn prove(&mut self, span: LargeContent) -> Result<(), EncodeStop> {
        let means = self.means();
        let mut hasher = span
            .hasher
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        let end = span.piece.from + span.piece.len;
        let read = self.hash_beside(&span.file, &span.path, end..span.size, &mut hasher);
        means.check()?;
        let content = span.piece.content;
        let found: Digest = hasher.finalize();
        let proven = read.and_then(|()| match found == means.contents.get(content).digest {
            true => Ok(()),
            false => Err(means.differs(&span.path, DIFFERS)),
        });
        if let Err(error) = proven {
            self.encoding.failed(content, error);
            return Err(EncodeStop::Again);
        }
        means.progress.files.fetch_add(1, Relaxed);
        match span.is_from_before {
            true => self.commit(),
            false => Ok(()),
        }
    }
}
