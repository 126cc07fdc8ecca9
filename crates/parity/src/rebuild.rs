//! Lost contents, computed again from what is left of their volumes.
//!
//! Of each volume with bytes of a lost content all blocks are read where their contents are now, and
//! judged by their digests: a wrong guess, an edit and damage all are an erasure. If there are as many
//! parity blocks as erasures, the lost blocks are computed and compared with their digests. What comes
//! out is a file without a name for each content, which the caller proves as a whole by the manifest.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use bc_digest::Digest;
use bc_edit::content;
use bc_fs::dirfd::{self, Access};
use bc_fs::meta::{FileKind, stat};
use bc_fs::path::split;
use bc_integrity::ManifestFile;
use bc_pool::Cancel;
use bc_read::Rate;
use bc_walk::job::{Error, ErrorKind};

use crate::code::{BLOCK, ColumnDecoder, Erasures, VolumeBlock};
use crate::contents::RecordedContents;
use crate::file::{DirUse, ParityDir, ParityFile, is_forgeable};
use crate::format::{PieceBytes, StoredPiece, VolumeHeader, short_digest};

/// Bytes of memory where no budget is given: a volume of the usual size, and two decoders.
const MEMORY: u64 = 512 << 20;

/// Bytes of each block that are decoded at a time, where there is memory enough.
const WIDTH: usize = 4 << 10;

/// Least bytes of each block that are decoded at a time.
const LEAST_WIDTH: usize = 64;

/// A content that is to be computed again.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct LostContent {
    /// Its digest.
    pub digest: Digest,
    /// Its size.
    pub size: u64,
}

/// Places where contents are now.
#[derive(Clone, Copy)]
pub struct ContentPlaces<'a> {
    /// Directory that the paths are below.
    pub top: BorrowedFd<'a>,
    /// Returns the path that a recorded file has now, if it was renamed.
    pub renamed: &'a (dyn Fn(&[u8]) -> Option<Vec<u8>> + Sync),
    /// True for a path whose file does not have its content.
    pub is_lost: &'a (dyn Fn(&[u8]) -> bool + Sync),
}

/// Means of computing.
#[derive(Clone)]
pub struct RebuildMeans<'a> {
    /// Workers.
    pub workers: usize,
    /// Bytes of memory that may be used, if there is a limit.
    pub memory: Option<u64>,
    /// Ends the work early.
    pub cancel: &'a Cancel,
    /// Limit of bytes a second, if there is one.
    pub rate: Option<Rate>,
}

/// A content in a file without a name.
#[derive(Debug)]
pub struct RebuiltContent {
    /// The file. Blocks that could not be computed are holes.
    pub file: OwnedFd,
    /// Path of the volume that has the last of it.
    pub from: PathBuf,
}

/// Outcome for a lost content.
#[derive(Debug)]
pub enum Rebuilt {
    /// All of it is there.
    Whole(RebuiltContent),
    /// More is lost than there is parity for.
    Short {
        /// Number of blocks that are missing: parity, or data.
        blocks: u64,
        /// The parts that are there.
        partial: RebuiltContent,
    },
    /// No volume has all of it.
    Unprotected,
}

/// Receiver of an outcome, with the number of the content.
pub type OnRebuilt<'a> = dyn FnMut(usize, Rebuilt) -> Result<(), Error> + 'a;

/// A parity directory as a source of contents.
pub struct ParityRestore {
    dir: ParityDir,
    contents: RecordedContents,
    volumes: Vec<u64>,
    /// Files in the directory that are no sound volumes.
    pub unreadable: Vec<Error>,
}

impl ParityRestore {
    /// Opens the parity directory of a manifest; `None` if there is none.
    ///
    /// # Errors
    /// If it cannot be read, or others may have written to it and digests of the manifest can be
    /// forged.
    pub fn open(dir: &Path, manifest: &ManifestFile) -> Result<Option<ParityRestore>, Error> {
        let Some(dir) = ParityDir::open(dir, DirUse::Read)? else {
            return Ok(None);
        };
        let contents = RecordedContents::of(manifest)?;
        if is_forgeable(contents.algorithm) {
            dir.refuse_others()?;
        }
        let volumes = dir.volumes()?;
        Ok(Some(ParityRestore {
            dir,
            contents,
            volumes,
            unreadable: Vec::new(),
        }))
    }

    /// Computes contents again, and gives each to `each` as soon as all of it is known.
    ///
    /// # Errors
    /// Those of `each`; of temporary files; if it was cancelled.
    pub fn rebuild(
        &mut self,
        lost: &[LostContent],
        places: ContentPlaces<'_>,
        means: &RebuildMeans<'_>,
        each: &mut OnRebuilt<'_>,
    ) -> Result<(), Error> {
        let wanted: HashMap<(Digest, u64), usize> = lost
            .iter()
            .enumerate()
            .map(|(number, lost)| ((lost.digest, lost.size), number))
            .collect();
        let (volumes, last) = self.volumes_of(&wanted)?;
        let mut parts: HashMap<usize, KnownPart> = HashMap::new();
        let mut done: BTreeSet<usize> = BTreeSet::new();
        for id in volumes {
            if means.cancel.is_cancelled() {
                return Err(Error::cancelled());
            }
            let file = match self.read(id) {
                Ok(file) => Some(file),
                Err(error) => {
                    self.unreadable.push(error);
                    None
                }
            };
            if let Some(file) = &file {
                let volume = OpenVolume {
                    restore: self,
                    file,
                    places,
                    means,
                };
                let problem = volume.add(&wanted, &done, &mut parts)?;
                self.unreadable.extend(problem);
            }
            let mut ended: Vec<usize> = last
                .iter()
                .filter(|(_, last)| **last == id)
                .map(|(number, _)| *number)
                .collect();
            ended.extend(
                parts
                    .iter()
                    .filter(|(number, part)| part.is_whole(lost[**number].size))
                    .map(|(number, _)| *number),
            );
            ended.sort_unstable();
            ended.dedup();
            for number in ended {
                if done.insert(number) {
                    let part = parts.remove(&number);
                    each(number, KnownPart::outcome(part, lost[number].size))?;
                }
            }
        }
        for number in (0..lost.len()).filter(|number| !done.contains(number)) {
            each(number, Rebuilt::Unprotected)?;
        }
        Ok(())
    }

    fn read(&self, id: u64) -> Result<ParityFile, Error> {
        let file = self.dir.read(id)?;
        if file.header.algorithm != self.contents.algorithm {
            let text = "has digests of another algorithm than the manifest";
            return Err(Error::at(
                ErrorKind::Manifest,
                &self.dir.volume_path(id),
                text,
            ));
        }
        if is_forgeable(self.contents.algorithm) {
            self.dir.refuse_volume_of_others(&file)?;
        }
        Ok(file)
    }

    /// Returns the volumes that have bytes of the contents, and the last one of each content.
    fn volumes_of(
        &mut self,
        wanted: &HashMap<(Digest, u64), usize>,
    ) -> Result<(Vec<u64>, HashMap<usize, u64>), Error> {
        let (mut volumes, mut last) = (Vec::new(), HashMap::new());
        for &id in &self.volumes {
            let file = match self.read(id) {
                Ok(file) => file,
                Err(error) => {
                    self.unreadable.push(error);
                    continue;
                }
            };
            let mut has_any = false;
            for piece in &file.header.pieces {
                if let Some(number) = wanted.get(&(piece.digest, piece.size)) {
                    last.insert(*number, id);
                    has_any = true;
                }
            }
            volumes.extend(has_any.then_some(id));
        }
        Ok((volumes, last))
    }
}

/// A lost content, as far as it is known.
struct KnownPart {
    file: OwnedFd,
    /// Ranges that are known.
    known: Vec<Range<u64>>,
    /// Blocks for which there was no parity.
    missing: u64,
    from: PathBuf,
}

impl KnownPart {
    fn is_whole(&self, size: u64) -> bool {
        self.known_from_start() >= size
    }

    /// Returns the number of bytes from the first on that are known without a gap.
    fn known_from_start(&self) -> u64 {
        let mut known: Vec<&Range<u64>> = self.known.iter().collect();
        known.sort_unstable_by_key(|range| range.start);
        known.iter().fold(0, |end, range| {
            if range.start <= end {
                end.max(range.end)
            } else {
                end
            }
        })
    }

    fn outcome(part: Option<KnownPart>, size: u64) -> Rebuilt {
        let Some(part) = part else {
            return Rebuilt::Unprotected;
        };
        let is_whole = part.is_whole(size);
        let (file, from, missing) = (part.file, part.from, part.missing);
        let content = RebuiltContent { file, from };
        match (is_whole, missing) {
            (true, _) => Rebuilt::Whole(content),
            (false, 0) => Rebuilt::Unprotected,
            (false, blocks) => Rebuilt::Short {
                blocks,
                partial: content,
            },
        }
    }
}

/// A volume, and where its contents are now.
struct OpenVolume<'a> {
    restore: &'a ParityRestore,
    file: &'a ParityFile,
    places: ContentPlaces<'a>,
    means: &'a RebuildMeans<'a>,
}

/// Bytes of a block that are of one piece.
struct Segment {
    piece: usize,
    /// Place in the block.
    at: Range<usize>,
    /// Offset of the first in the content.
    offset: u64,
}

/// Candidate that a piece is taken from in a block, where it is not the first.
type CandidateChoice = (usize, usize);

/// Blocks of a volume, judged.
struct JudgedBlocks {
    good: Vec<bool>,
    /// Choices that are not the first, by block.
    choices: HashMap<usize, CandidateChoice>,
    /// The stream, where there is memory for it.
    stream: Option<Vec<u8>>,
}

impl OpenVolume<'_> {
    fn header(&self) -> &VolumeHeader {
        &self.file.header
    }

    fn path(&self) -> PathBuf {
        self.restore.dir.volume_path(self.header().id)
    }

    fn memory(&self) -> u64 {
        self.means
            .memory
            .unwrap_or(MEMORY)
            .saturating_sub(self.restore.contents.memory())
    }

    /// Adds what this volume has of the wanted contents. Returns the reason if blocks could not be
    /// computed though there is parity enough.
    fn add(
        &self,
        wanted: &HashMap<(Digest, u64), usize>,
        done: &BTreeSet<usize>,
        parts: &mut HashMap<usize, KnownPart>,
    ) -> Result<Option<Error>, Error> {
        let header = self.header();
        let number_of = |piece: &StoredPiece| {
            let number = wanted.get(&(piece.digest, piece.size)).copied();
            number.filter(|number| !done.contains(number))
        };
        let needed: Vec<(usize, usize)> = header
            .pieces
            .iter()
            .enumerate()
            .filter_map(|(piece, stored)| Some((piece, number_of(stored)?)))
            .collect();
        if needed.is_empty() {
            return Ok(None);
        }
        let judged = self.judge()?;
        let is_needed_lost = needed.iter().any(|(piece, _)| {
            let mut blocks = header.pieces[*piece].blocks();
            blocks.any(|block| !judged.good[block])
        });
        let (mut computed, mut missing, mut problem) = (None, 0, None);
        if is_needed_lost {
            let parity = self.file.judge();
            let erasures = Erasures {
                data: &judged.good,
                parity: &parity,
            };
            match erasures.lost().checked_sub(erasures.spare()) {
                Some(beyond @ 1..) => missing = beyond as u64,
                _ => match self.compute(&judged, &erasures) {
                    Err(error) if error.kind() == ErrorKind::Manifest => problem = Some(error),
                    file => computed = Some(file?),
                },
            }
        }
        for (piece, number) in needed {
            let part = match parts.entry(number) {
                std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::hash_map::Entry::Vacant(entry) => entry.insert(KnownPart {
                    file: self.temporary(header.pieces[piece].size)?,
                    known: Vec::new(),
                    missing: 0,
                    from: self.path(),
                }),
            };
            part.from = self.path();
            self.add_piece(piece, part, &judged, computed.as_ref(), missing)?;
        }
        Ok(problem)
    }

    /// Makes a file without a name, on the file system of the tree if that can be.
    fn temporary(&self, size: u64) -> Result<OwnedFd, Error> {
        let in_tree = content::create_unnamed(self.places.top, 0o600);
        let beside = |_| content::create_unnamed(self.restore.dir.fd(), 0o600);
        let file = in_tree
            .or_else(beside)
            .or_else(|call| content::create_temporary().ok_or(call));
        let failed = |call: bc_fs::call::FailedCall| {
            Error::io(self.restore.dir.path(), call.op, &call.into())
        };
        let file = file.map_err(failed)?;
        content::truncate(&file, size).map_err(failed)?;
        Ok(file)
    }

    fn add_piece(
        &self,
        piece: usize,
        part: &mut KnownPart,
        judged: &JudgedBlocks,
        computed: Option<&OwnedFd>,
        missing: u64,
    ) -> Result<(), Error> {
        let stored = &self.header().pieces[piece];
        let range = stored.from..stored.from + stored.len;
        let PieceBytes::Stream(start) = stored.bytes else {
            part.known.push(range);
            return Ok(());
        };
        let failed = |call: bc_fs::call::FailedCall| {
            Error::io(self.restore.dir.path(), call.op, &call.into())
        };
        let mut reader = PieceReader::default();
        let mut buffer = vec![0; BLOCK];
        let mut is_short = false;
        for block in stored.blocks() {
            let first = (block * BLOCK) as u64;
            let (from, end) = (
                first.max(start),
                (first + BLOCK as u64).min(start + stored.len),
            );
            let columns = (from - first) as usize..(end - first) as usize;
            let bytes = &mut buffer[..columns.len()];
            let is_there = match (judged.good[block], computed) {
                (true, _) => self.read(block, columns, judged, &mut reader, bytes),
                (false, Some(computed)) => {
                    let place = self.place_of(judged, block) * BLOCK as u64 + columns.start as u64;
                    dirfd::read_at(computed, bytes, place).map_err(failed)? == bytes.len()
                }
                (false, None) => false,
            };
            let offset = stored.from + from - start;
            if is_there {
                content::write_all_at(&part.file, bytes, offset).map_err(failed)?;
                part.known.push(offset..offset + bytes.len() as u64);
            } else {
                is_short = true;
            }
        }
        if is_short {
            part.missing += missing.max(1);
        }
        Ok(())
    }

    /// Returns the number of a lost block among the lost ones.
    fn place_of(&self, judged: &JudgedBlocks, block: usize) -> u64 {
        judged.good[..block].iter().filter(|good| !**good).count() as u64
    }

    /// Reads all blocks and compares them with their digests.
    fn judge(&self) -> Result<JudgedBlocks, Error> {
        let header = self.header();
        let count = header.blocks.len();
        // Large files are read again sooner than so much memory is made; many small ones are not.
        let is_small = header.pieces.len() > count;
        let keeps = is_small && 2 * (count * BLOCK) as u64 <= self.memory();
        let mut stream = vec![0; if keeps { count * BLOCK } else { 0 }];
        let choices = Mutex::new(HashMap::new());
        let good: Vec<AtomicBool> = (0..count).map(|_| AtomicBool::new(false)).collect();
        let starts = self.starts();
        {
            let kept: Vec<Mutex<&mut [u8]>> = stream.chunks_mut(BLOCK).map(Mutex::new).collect();
            let next = AtomicUsize::new(0);
            bc_pool::run(self.means.workers.min(count.div_ceil(16)).max(1), |_| {
                let mut reader = PieceReader::default();
                let mut buffer = vec![0; BLOCK];
                while !self.means.cancel.is_cancelled() {
                    let first = next.fetch_add(16, Relaxed);
                    if first >= count {
                        return;
                    }
                    for (block, good) in good.iter().enumerate().skip(first).take(16) {
                        let Some(choice) =
                            self.judge_block(block, &starts, &mut reader, &mut buffer)
                        else {
                            continue;
                        };
                        good.store(true, Relaxed);
                        if let Some(choice) = choice {
                            choices
                                .lock()
                                .unwrap_or_else(PoisonError::into_inner)
                                .insert(block, choice);
                        }
                        if let Some(kept) = kept.get(block) {
                            kept.lock()
                                .unwrap_or_else(PoisonError::into_inner)
                                .copy_from_slice(&buffer);
                        }
                    }
                }
            })?;
        }
        if self.means.cancel.is_cancelled() {
            return Err(Error::cancelled());
        }
        Ok(JudgedBlocks {
            good: good.iter().map(|good| good.load(Relaxed)).collect(),
            choices: choices.into_inner().unwrap_or_else(PoisonError::into_inner),
            stream: keeps.then_some(stream),
        })
    }

    /// Returns the numbers of the pieces in the stream, with their offsets.
    fn starts(&self) -> Vec<(u64, usize)> {
        let in_stream = |(number, piece): (usize, &StoredPiece)| match piece.bytes {
            PieceBytes::Stream(offset) => Some((offset, number)),
            PieceBytes::Zeros => None,
        };
        self.header()
            .pieces
            .iter()
            .enumerate()
            .filter_map(in_stream)
            .collect()
    }

    /// Returns the segments of some columns of a block.
    fn segments(
        &self,
        block: usize,
        columns: Range<usize>,
        starts: &[(u64, usize)],
    ) -> Vec<Segment> {
        let first = (block * BLOCK + columns.start) as u64;
        let end = (block * BLOCK + columns.end) as u64;
        let from = starts
            .partition_point(|(offset, _)| *offset <= first)
            .saturating_sub(1);
        let mut segments = Vec::new();
        for &(offset, piece) in starts[from..]
            .iter()
            .take_while(|(offset, _)| *offset < end)
        {
            let stored = &self.header().pieces[piece];
            let (start, stop) = (offset.max(first), (offset + stored.len).min(end));
            if start < stop {
                segments.push(Segment {
                    piece,
                    at: (start - first) as usize..(stop - first) as usize,
                    offset: stored.from + start - offset,
                });
            }
        }
        segments
    }

    /// Reads a block; `None` if it is lost, else the choice by which it is not.
    fn judge_block(
        &self,
        block: usize,
        starts: &[(u64, usize)],
        reader: &mut PieceReader,
        buffer: &mut [u8],
    ) -> Option<Option<CandidateChoice>> {
        let segments = self.segments(block, 0..BLOCK, starts);
        buffer.fill(0);
        for segment in &segments {
            self.read_segment(segment, 0, reader, buffer);
        }
        let is_good = |buffer: &[u8]| short_digest(buffer) == self.header().blocks[block];
        if is_good(buffer) {
            return Some(None);
        }
        // Other files that may have the content: of one piece at a time.
        for segment in &segments {
            for choice in 1..self.candidates(segment.piece).len() {
                buffer[segment.at.clone()].fill(0);
                self.read_segment(segment, choice, reader, buffer);
                if is_good(buffer) {
                    return Some(Some((segment.piece, choice)));
                }
            }
            buffer[segment.at.clone()].fill(0);
            self.read_segment(segment, 0, reader, buffer);
        }
        None
    }

    fn read_segment(
        &self,
        segment: &Segment,
        choice: usize,
        reader: &mut PieceReader,
        buffer: &mut [u8],
    ) -> bool {
        let to = &mut buffer[segment.at.clone()];
        let count = reader.read(self, segment.piece, choice, segment.offset, to);
        if let Some(rate) = &self.means.rate {
            rate.spend(count as u64, self.means.cancel);
        }
        count == to.len()
    }

    /// Reads columns of a block that was judged good.
    fn read(
        &self,
        block: usize,
        columns: Range<usize>,
        judged: &JudgedBlocks,
        reader: &mut PieceReader,
        to: &mut [u8],
    ) -> bool {
        if let Some(stream) = &judged.stream {
            to.copy_from_slice(&stream[block * BLOCK..][columns]);
            return true;
        }
        to.fill(0);
        let choice = judged.choices.get(&block);
        if reader.starts.is_empty() {
            reader.starts = self.starts();
        }
        let segments = self.segments(block, columns, &reader.starts);
        segments.iter().all(|segment| {
            let choice = choice
                .filter(|(piece, _)| *piece == segment.piece)
                .map_or(0, |(_, choice)| *choice);
            self.read_segment(segment, choice, reader, to)
        })
    }

    /// Returns the paths of files that may have the content of a piece, the most likely first.
    fn candidates(&self, piece: usize) -> Vec<Vec<u8>> {
        let stored = &self.header().pieces[piece];
        let contents = &self.restore.contents;
        let recorded = contents.find(&stored.digest, stored.size);
        let recorded = recorded
            .into_iter()
            .flat_map(|content| contents.paths(content));
        let recorded = recorded.chain(stored.paths.iter().map(|path| &path[..]));
        let mut paths: Vec<Vec<u8>> = Vec::new();
        for path in recorded {
            let renamed = (self.places.renamed)(path);
            for path in renamed.into_iter().chain([path.to_vec()]) {
                if !paths.contains(&path) {
                    paths.push(path);
                }
            }
        }
        paths.sort_by_key(|path| (self.places.is_lost)(path));
        paths
    }

    fn changed(&self) -> Error {
        let text =
            "a file changed while its volume was read, or the parity is not that of its blocks";
        Error::at(ErrorKind::Manifest, &self.path(), text)
    }

    /// Computes the lost blocks into a file without a name, one behind the other, and compares them
    /// with their digests.
    fn compute(&self, judged: &JudgedBlocks, erasures: &Erasures<'_>) -> Result<OwnedFd, Error> {
        let header = self.header();
        let lost: Vec<usize> = (0..header.blocks.len())
            .filter(|block| !judged.good[*block])
            .collect();
        let file = self.temporary((lost.len() * BLOCK) as u64)?;
        let left = self.memory().saturating_sub(
            judged
                .stream
                .as_ref()
                .map_or(0, |stream| stream.len() as u64),
        );
        let (mut width, mut workers) = (WIDTH, self.means.workers.max(1));
        let needs = |width, workers: usize| {
            ColumnDecoder::memory(header.blocks.len(), header.parity, width) * workers as u64
        };
        while needs(width, workers) > left && (width > LEAST_WIDTH || workers > 1) {
            match width > 1024 || workers == 1 {
                true => width /= 2,
                false => workers -= 1,
            }
        }
        let places: HashMap<usize, usize> = lost
            .iter()
            .enumerate()
            .map(|(place, block)| (*block, place))
            .collect();
        let failed: Mutex<Option<Error>> = Mutex::new(None);
        let next = AtomicUsize::new(0);
        bc_pool::run(workers, |_| {
            let mut decoder = ColumnDecoder::default();
            let mut reader = PieceReader::default();
            loop {
                let from = next.fetch_add(width, Relaxed);
                if from >= BLOCK || self.means.cancel.is_cancelled() {
                    return;
                }
                let read = |block, to: &mut [u8]| {
                    let read = match block {
                        VolumeBlock::Data(block) => {
                            match self.read(block, from..from + width, judged, &mut reader, to) {
                                true => Ok(()),
                                false => Err(std::io::ErrorKind::UnexpectedEof.into()),
                            }
                        }
                        VolumeBlock::Parity(number) => self.file.columns(number, from, to),
                    };
                    read.map_err(|_| self.changed())
                };
                let write = |block: usize, columns: &[u8]| {
                    let offset = (places[&block] * BLOCK + from) as u64;
                    let written = content::write_all_at(&file, columns, offset);
                    written
                        .map_err(|call| Error::io(self.restore.dir.path(), call.op, &call.into()))
                };
                if let Err(error) = decoder.decode(erasures, width, read, write) {
                    let error = error.unwrap_or_else(|| {
                        Error::at(
                            ErrorKind::Manifest,
                            &self.path(),
                            "its blocks cannot be decoded",
                        )
                    });
                    failed
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .get_or_insert(error);
                }
            }
        })?;
        if self.means.cancel.is_cancelled() {
            return Err(Error::cancelled());
        }
        failed
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
            .map_or(Ok(()), Err)?;
        let mut buffer = vec![0; BLOCK];
        for (place, block) in lost.iter().enumerate() {
            let read = dirfd::read_at(&file, &mut buffer, (place * BLOCK) as u64);
            if read != Ok(BLOCK) || short_digest(&buffer) != header.blocks[*block] {
                return Err(self.changed());
            }
        }
        Ok(file)
    }
}

/// Reader of pieces, which keeps the last file open.
#[derive(Default)]
struct PieceReader {
    open: Option<(CandidateChoice, Option<OwnedFd>)>,
    starts: Vec<(u64, usize)>,
}

impl PieceReader {
    /// Reads bytes of a piece from one of the files that may have it; returns how many there are.
    fn read(
        &mut self,
        volume: &OpenVolume<'_>,
        piece: usize,
        choice: usize,
        offset: u64,
        to: &mut [u8],
    ) -> usize {
        if self
            .open
            .as_ref()
            .is_none_or(|(open, _)| *open != (piece, choice))
        {
            let paths = volume.candidates(piece);
            let file = paths
                .get(choice)
                .and_then(|path| open_regular(volume.places.top, path));
            self.open = Some(((piece, choice), file));
        }
        match &self.open {
            // What cannot be read is lost.
            Some((_, Some(file))) => dirfd::read_at(file, to, offset).unwrap_or(0),
            _ => 0,
        }
    }
}

fn open_regular(top: BorrowedFd<'_>, path: &[u8]) -> Option<OwnedFd> {
    let (dir, name) = split(path);
    let dir = dirfd::open_below(top, dir).ok()?;
    let file = dirfd::open_file(dir.as_fd(), &dirfd::name(name).ok()?, Access::Read).ok()?;
    (stat(&file).ok()?.kind() == FileKind::File).then_some(file)
}
