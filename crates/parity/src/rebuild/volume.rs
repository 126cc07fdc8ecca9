//! A volume of which bytes are wanted: its blocks are read where their contents are now, judged, and
//! computed.

use std::collections::HashMap;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bc_fs::dirfd;
use bc_fs::meta::{Stamp, stat};
use bc_walk::job::{Error, ErrorKind};

use super::content::{ByteSource, KnownPart, SourceFile, open_source};
use super::scratch::{Scratch, ScratchFile};
use super::{CandidateName, ContentNames, ContentPlaces, RebuildMeans};
use crate::code::{BLOCK, ColumnDecoder, Erasures, VolumeBlock};
use crate::file::{ParityDir, ParityFile};
use crate::format::{PieceBytes, StoredPiece, short_digest};

/// Bytes of memory where no budget is given: a volume of the usual size, and decoders.
const MEMORY: u64 = 640 << 20;

/// Bytes of each block that are decoded at a time, where there is memory enough.
const WIDTH: usize = 4 << 10;

/// Least bytes of each block that are decoded at a time.
const LEAST_WIDTH: usize = 64;

/// Greatest size of a content that is proven by its own digest where a block does not fit.
const SMALL: u64 = BLOCK as u64;

/// Blocks that a worker judges at a time.
const BLOCKS_TOGETHER: usize = 16;

/// Sets of parity blocks that are tried, if what they give is not what was recorded.
const MOST_DECODINGS: usize = 4;

/// A candidate that is not chosen yet.
const UNKNOWN: u8 = u8::MAX;

/// No candidate has the content.
const NONE: u8 = u8::MAX - 1;

/// A volume, and where its contents are now.
pub(super) struct OpenVolume<'a> {
    dir: &'a ParityDir,
    file: &'a ParityFile,
    names: &'a ContentNames,
    places: ContentPlaces<'a>,
    means: &'a RebuildMeans<'a>,
    path: PathBuf,
    /// Pieces in the stream, with their offsets.
    starts: Vec<(u64, usize)>,
    /// Candidate that each piece was found by.
    chosen: Vec<AtomicU8>,
    /// True for each piece of a wanted content.
    is_needed: Vec<bool>,
    /// Device of the top: files that only a header names are on it.
    device: Option<u64>,
}

/// Bytes of a block that are of one piece.
struct Segment {
    piece: usize,
    /// Place in the block.
    at: Range<usize>,
    /// Offset of the first in the content.
    offset: u64,
}

/// State of a block.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum BlockState {
    /// It was read.
    Good,
    /// It was computed, and kept.
    Computed,
    /// It could be computed.
    Foreseen,
    Lost,
}

/// Files that bytes of needed pieces are in, by block and piece.
type Sources = HashMap<(usize, usize), Arc<SourceFile>>;

/// Blocks of a volume, judged and computed.
pub(super) struct VolumeBlocks {
    states: Vec<BlockState>,
    sources: Sources,
    /// Those that were computed.
    kept: Option<BlockStore>,
    /// Blocks that there is no parity for.
    shortage: u64,
    failed: Option<Error>,
}

impl VolumeBlocks {
    /// Returns the number of blocks that there is no parity for.
    pub(super) fn shortage(&self) -> u64 {
        self.shortage
    }
}

/// Bytes of the blocks of a volume.
enum BlockStore {
    Memory(Vec<Mutex<Box<[u8]>>>),
    File(ScratchFile),
}

impl BlockStore {
    fn in_memory(blocks: usize) -> BlockStore {
        BlockStore::Memory((0..blocks).map(|_| Mutex::default()).collect())
    }

    fn write(&self, block: usize, from: usize, bytes: &[u8]) -> Result<(), Error> {
        match self {
            BlockStore::File(file) => file.write(bytes, (block * BLOCK + from) as u64),
            BlockStore::Memory(blocks) => {
                let mut kept = lock(&blocks[block]);
                if kept.is_empty() {
                    *kept = vec![0; BLOCK].into();
                }
                kept[from..from + bytes.len()].copy_from_slice(bytes);
                Ok(())
            }
        }
    }

    fn read(&self, block: usize, from: usize, to: &mut [u8]) -> Result<(), Error> {
        match self {
            BlockStore::File(file) => file.read(to, (block * BLOCK + from) as u64),
            BlockStore::Memory(blocks) => {
                let kept = lock(&blocks[block]);
                match kept.get(from..from + to.len()) {
                    Some(kept) => to.copy_from_slice(kept),
                    None => to.fill(0),
                }
                Ok(())
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Result of decoding by some parity blocks.
enum Decoded {
    /// All blocks are those that were recorded.
    All,
    /// This parity block could not be read again.
    Unreadable(usize),
    /// They are others.
    Wrong,
}

impl<'a> OpenVolume<'a> {
    pub(super) fn new(
        dir: &'a ParityDir,
        file: &'a ParityFile,
        names: &'a ContentNames,
        needed: &[(usize, usize)],
        places: ContentPlaces<'a>,
        means: &'a RebuildMeans<'a>,
    ) -> OpenVolume<'a> {
        let pieces = &file.header.pieces;
        let in_stream = |(number, piece): (usize, &StoredPiece)| match piece.bytes {
            PieceBytes::Stream(offset) => Some((offset, number)),
            PieceBytes::Zeros => None,
        };
        let mut is_needed = vec![false; pieces.len()];
        needed
            .iter()
            .for_each(|(piece, _)| is_needed[*piece] = true);
        OpenVolume {
            dir,
            file,
            names,
            places,
            means,
            path: file.path.clone(),
            starts: pieces.iter().enumerate().filter_map(in_stream).collect(),
            chosen: pieces.iter().map(|_| AtomicU8::new(UNKNOWN)).collect(),
            is_needed,
            device: stat(places.top).ok().map(|stat| stat.id.dev),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the files that may have what no volume has of the content of a piece: those that are there. A
    /// small content is proven by its own digest.
    pub(super) fn bases(&self, piece: usize) -> Vec<Arc<SourceFile>> {
        let candidates: &[CandidateName] = match self.is_small(piece) {
            true => &[],
            false => self.candidates(piece),
        };
        let opened = candidates.iter().filter_map(|name| {
            let (_, stamp) = self.open(name)?;
            let path = name.path.clone();
            let stamp = Some(stamp);
            Some(Arc::new(SourceFile { path, stamp }))
        });
        opened.collect()
    }

    fn stored(&self, piece: usize) -> &StoredPiece {
        &self.file.header.pieces[piece]
    }

    fn candidates(&self, piece: usize) -> &[CandidateName] {
        self.names.get(&self.stored(piece).digest)
    }

    fn open(&self, name: &CandidateName) -> Option<(OwnedFd, Stamp)> {
        let only_on = self.device.filter(|_| name.is_hint);
        open_source(self.places.top, &name.path, only_on).ok()
    }

    /// Returns the bytes of memory for blocks and decoders.
    fn memory(&self) -> u64 {
        let header = &self.file.header;
        let piece = (size_of::<StoredPiece>() + size_of::<(u64, usize)>() + 2) as u64;
        let paths: usize = header.pieces.iter().map(|piece| piece.path.len()).sum();
        let lists = piece * header.pieces.len() as u64
            + paths as u64
            + 64 * header.blocks.len() as u64
            + self.names.memory();
        let memory = self.means.memory.unwrap_or(MEMORY);
        memory.saturating_sub(lists)
    }

    /// Judges the blocks, and computes those that are lost if any of them is needed.
    ///
    /// # Errors
    /// If it was cancelled, or a worker failed. All else is in the result.
    pub(super) fn blocks(&self) -> Result<VolumeBlocks, Error> {
        let count = self.file.header.blocks.len();
        let good: Vec<AtomicBool> = (0..count).map(|_| AtomicBool::new(false)).collect();
        let sources = Mutex::new(Sources::new());
        let mut needed: Vec<usize> = (0..self.is_needed.len())
            .filter(|piece| self.is_needed[*piece])
            .flat_map(|piece| self.stored(piece).blocks())
            .collect();
        needed.sort_unstable();
        needed.dedup();
        let fits = (count * BLOCK) as u64 <= self.memory() / 2;
        let mut kept = (fits && !self.means.dry_run).then(|| BlockStore::in_memory(count));
        self.judge(&needed, kept.as_ref(), &good, &sources)?;
        let is_good = |block: &usize| good[*block].load(Relaxed);
        let mut failed = None;
        let (mut states, mut shortage) = (Vec::new(), 0);
        if !needed.iter().all(is_good) {
            let mut rest: Vec<usize> = (0..count)
                .filter(|block| needed.binary_search(block).is_err())
                .collect();
            if kept.is_none() && !self.means.dry_run {
                match ScratchFile::new(&self.scratch_dirs(), (count * BLOCK) as u64) {
                    Ok(file) => kept = Some(BlockStore::File(file)),
                    Err(error) => failed = Some(error),
                }
                // What was not kept is read again: what is decoded is what was judged.
                rest = (0..count).collect();
                good.iter().for_each(|good| good.store(false, Relaxed));
            }
            if failed.is_none() {
                failed = self.judge(&rest, kept.as_ref(), &good, &sources)?;
            }
            let good: Vec<bool> = (0..count).map(|block| is_good(&block)).collect();
            let parity = (self.file).judge(&mut |bytes| self.means.spent(bytes));
            self.check()?;
            let erasures = Erasures {
                data: &good,
                parity: &parity,
            };
            let mut of_lost = BlockState::Lost;
            if let Some(beyond @ 1..) = erasures.lost().checked_sub(erasures.spare()) {
                shortage = beyond as u64;
            } else if self.means.dry_run {
                of_lost = BlockState::Foreseen;
            } else if let Some(kept) = kept.as_ref().filter(|_| failed.is_none()) {
                match self.compute(&good, parity, kept) {
                    Ok(()) => of_lost = BlockState::Computed,
                    Err(error) if error.kind() == ErrorKind::Cancelled => return Err(error),
                    Err(error) => failed = Some(error),
                }
            }
            let state = |good| if good { BlockState::Good } else { of_lost };
            states.extend(good.into_iter().map(state));
        } else {
            // The others are not asked about.
            states = vec![BlockState::Lost; count];
            needed
                .iter()
                .for_each(|block| states[*block] = BlockState::Good);
        }
        Ok(VolumeBlocks {
            states,
            sources: sources.into_inner().unwrap_or_else(PoisonError::into_inner),
            kept,
            shortage,
            failed,
        })
    }

    fn check(&self) -> Result<(), Error> {
        match self.means.cancel.is_cancelled() {
            true => Err(Error::cancelled()),
            false => Ok(()),
        }
    }

    fn scratch_dirs(&self) -> [(BorrowedFd<'_>, &Path); 2] {
        [
            (self.dir.fd(), self.dir.path()),
            (self.places.top, self.places.top_path),
        ]
    }

    /// Adds what is known of a piece to what is known of its content.
    pub(super) fn add_piece(
        &self,
        piece: usize,
        part: &mut KnownPart,
        blocks: &VolumeBlocks,
        computed: &mut Scratch,
    ) {
        let stored = self.stored(piece);
        let PieceBytes::Stream(start) = stored.bytes else {
            part.push(stored.from..stored.from + stored.len, ByteSource::Zeros);
            return;
        };
        for block in stored.blocks() {
            let first = (block * BLOCK) as u64;
            let (from, end) = (
                first.max(start),
                (first + BLOCK as u64).min(start + stored.len),
            );
            let columns = (from - first) as usize..(end - first) as usize;
            let offset = stored.from + from - start;
            let bytes = offset..offset + columns.len() as u64;
            let source = match blocks.states[block] {
                BlockState::Good => blocks.sources.get(&(block, piece)).map(|source| {
                    match source.stamp {
                        Some(_) => ByteSource::File(source.clone()),
                        // It was judged without a file.
                        None => ByteSource::Zeros,
                    }
                }),
                BlockState::Foreseen => Some(ByteSource::Foreseen),
                BlockState::Computed => match self.keep(block, columns.clone(), blocks, computed) {
                    Ok(source) => Some(source),
                    Err(error) => {
                        part.failed.get_or_insert(error);
                        None
                    }
                },
                BlockState::Lost => None,
            };
            match source.or_else(|| self.proven(piece)) {
                Some(source) => part.push(bytes, source),
                None => part.lose(bytes, columns.len() == BLOCK),
            }
        }
        if part.failed.is_none() && part.lost > 0 {
            part.failed.clone_from(&blocks.failed);
        }
    }

    /// Keeps bytes of a block that was computed.
    fn keep(
        &self,
        block: usize,
        columns: Range<usize>,
        blocks: &VolumeBlocks,
        computed: &mut Scratch,
    ) -> Result<ByteSource, Error> {
        let mut bytes = vec![0; columns.len()];
        if let Some(kept) = &blocks.kept {
            kept.read(block, columns.start, &mut bytes)?;
        }
        let place = computed.reserve(&self.scratch_dirs(), bytes.len() as u64)?;
        computed.write(place, &bytes)?;
        Ok(ByteSource::Scratch(place))
    }

    /// Returns the file that has a small content, if one was found: also where the block that it lies in
    /// is lost.
    fn proven(&self, piece: usize) -> Option<ByteSource> {
        let chosen = self.chosen[piece].load(Relaxed);
        let name = self.candidates(piece).get(usize::from(chosen))?;
        self.is_small(piece).then(|| {
            let path = name.path.clone();
            let stamp = self.open(name).map(|(_, stamp)| stamp);
            ByteSource::File(Arc::new(SourceFile { path, stamp }))
        })
    }

    /// True if a piece is all of a content that is proven by its own digest.
    fn is_small(&self, piece: usize) -> bool {
        let stored = self.stored(piece);
        stored.from == 0 && stored.len == stored.size && stored.size <= SMALL
    }

    /// Reads blocks, compares them with their digests, and keeps their bytes if they are to be kept.
    /// Returns the reason for which they could not be.
    fn judge(
        &self,
        blocks: &[usize],
        kept: Option<&BlockStore>,
        good: &[AtomicBool],
        sources: &Mutex<Sources>,
    ) -> Result<Option<Error>, Error> {
        let next = AtomicUsize::new(0);
        let failed: Mutex<Option<Error>> = Mutex::new(None);
        let workers = self
            .means
            .workers
            .min(blocks.len().div_ceil(BLOCKS_TOGETHER));
        bc_pool::run(workers.max(1), |_| {
            let mut reader = PieceReader::default();
            let mut buffer = vec![0; BLOCK];
            while !self.means.cancel.is_cancelled() && lock(&failed).is_none() {
                let first = next.fetch_add(BLOCKS_TOGETHER, Relaxed);
                let Some(rest) = blocks.get(first..).filter(|rest| !rest.is_empty()) else {
                    return;
                };
                for &block in rest.iter().take(BLOCKS_TOGETHER) {
                    let Some(found) = self.judge_block(block, &mut reader, &mut buffer) else {
                        continue;
                    };
                    if let Some(Err(error)) = kept.map(|kept| kept.write(block, 0, &buffer)) {
                        lock(&failed).get_or_insert(error);
                        return;
                    }
                    good[block].store(true, Relaxed);
                    if !found.is_empty() {
                        let found = found.into_iter();
                        lock(sources).extend(found.map(|(piece, source)| ((block, piece), source)));
                    }
                }
            }
        })?;
        self.check()?;
        Ok(failed.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the segments of a block.
    fn segments(&self, block: usize) -> Vec<Segment> {
        let (first, end) = ((block * BLOCK) as u64, ((block + 1) * BLOCK) as u64);
        let from = self
            .starts
            .partition_point(|(offset, _)| *offset <= first)
            .saturating_sub(1);
        let mut segments = Vec::new();
        let starts = self.starts[from..].iter();
        for &(offset, piece) in starts.take_while(|(offset, _)| *offset < end) {
            let stored = self.stored(piece);
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

    /// Reads a block; `None` if it is lost, else the files that its needed pieces are in.
    fn judge_block(
        &self,
        block: usize,
        reader: &mut PieceReader,
        buffer: &mut [u8],
    ) -> Option<Vec<(usize, Arc<SourceFile>)>> {
        let segments = self.segments(block);
        let mut read = BlockReading {
            volume: self,
            choices: segments
                .iter()
                .map(|segment| match self.chosen[segment.piece].load(Relaxed) {
                    // A damaged one may be whole in this block.
                    UNKNOWN | NONE => 0,
                    chosen => chosen,
                })
                .collect(),
            sources: vec![None; segments.len()],
            segments,
            digest: self.file.header.blocks[block],
        };
        buffer.fill(0);
        for number in 0..read.segments.len() {
            read.read(number, reader, buffer);
        }
        if !read.fits(buffer) && !read.prove(reader, buffer) && !read.try_others(reader, buffer) {
            return None;
        }
        Some(read.found())
    }

    /// Returns the candidate that has a small content.
    fn prove(&self, piece: usize, reader: &mut PieceReader) -> u8 {
        let chosen = self.chosen[piece].load(Relaxed);
        if chosen != UNKNOWN {
            return chosen;
        }
        let stored = self.stored(piece);
        let mut content = vec![0; stored.size as usize];
        let mut has_it = |choice: &u8| {
            content.fill(0);
            reader.read(self, piece, *choice, 0, &mut content);
            bc_digest::hash(self.file.header.algorithm, &content) == stored.digest
        };
        let found = (0..self.candidates(piece).len() as u8).find(&mut has_it);
        let found = found.unwrap_or(NONE);
        self.chosen[piece].store(found, Relaxed);
        found
    }

    /// Computes the lost blocks to where the others are kept.
    ///
    /// # Errors
    /// If they cannot be kept, or are not those that were recorded.
    fn compute(
        &self,
        good: &[bool],
        mut parity: Vec<bool>,
        kept: &BlockStore,
    ) -> Result<(), Error> {
        let mut tries = 0;
        loop {
            let erasures = Erasures {
                data: good,
                parity: &parity,
            };
            let (lost, spare) = (erasures.lost(), erasures.spare());
            if lost > spare || tries == MOST_DECODINGS {
                let text = "its parity is not that of its blocks";
                return Err(Error::at(ErrorKind::Manifest, &self.path, text));
            }
            match self.decode(&erasures, kept)? {
                Decoded::All => return Ok(()),
                Decoded::Unreadable(number) => parity[number] = false,
                Decoded::Wrong => {
                    // Those that were used are not used again.
                    let used = parity.iter_mut().filter(|good| **good).take(lost);
                    used.for_each(|good| *good = false);
                    tries += 1;
                }
            }
        }
    }

    fn decode(&self, erasures: &Erasures<'_>, kept: &BlockStore) -> Result<Decoded, Error> {
        let header = &self.file.header;
        let in_memory = match kept {
            BlockStore::Memory(blocks) => (blocks.len() * BLOCK) as u64,
            BlockStore::File(_) => 0,
        };
        let left = self.memory().saturating_sub(in_memory);
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
        let failed: Mutex<Option<Stop>> = Mutex::new(None);
        let next = AtomicUsize::new(0);
        bc_pool::run(workers, |_| {
            let mut decoder = ColumnDecoder::default();
            while !self.means.cancel.is_cancelled() && lock(&failed).is_none() {
                let from = next.fetch_add(width, Relaxed);
                if from >= BLOCK {
                    return;
                }
                let read = |block, to: &mut [u8]| match block {
                    VolumeBlock::Data(block) => kept.read(block, from, to).map_err(Stop::Failed),
                    VolumeBlock::Parity(number) => {
                        let read = self.file.columns(number, from, to);
                        self.means.spent(to.len() as u64);
                        read.map_err(|_| Stop::Unreadable(number))
                    }
                };
                let write = |block: usize, columns: &[u8]| {
                    kept.write(block, from, columns).map_err(Stop::Failed)
                };
                if let Err(stop) = decoder.decode(erasures, width, read, write) {
                    lock(&failed).get_or_insert(stop.unwrap_or(Stop::Wrong));
                }
            }
        })?;
        self.check()?;
        match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(Stop::Failed(error)) => return Err(error),
            Some(Stop::Unreadable(number)) => return Ok(Decoded::Unreadable(number)),
            Some(Stop::Wrong) => return Ok(Decoded::Wrong),
            None => {}
        }
        let mut buffer = vec![0; BLOCK];
        for block in (0..header.blocks.len()).filter(|block| !erasures.data[*block]) {
            kept.read(block, 0, &mut buffer)?;
            if short_digest(&buffer) != header.blocks[block] {
                return Ok(Decoded::Wrong);
            }
        }
        Ok(Decoded::All)
    }
}

/// Reason for which decoding ended.
enum Stop {
    Failed(Error),
    Unreadable(usize),
    Wrong,
}

/// A block that is being read.
struct BlockReading<'v, 'a> {
    volume: &'v OpenVolume<'a>,
    segments: Vec<Segment>,
    /// Candidate of each segment.
    choices: Vec<u8>,
    /// File of each segment, if its piece is needed.
    sources: Vec<Option<Arc<SourceFile>>>,
    digest: [u8; 16],
}

impl BlockReading<'_, '_> {
    fn fits(&self, buffer: &[u8]) -> bool {
        short_digest(buffer) == self.digest
    }

    fn read(&mut self, number: usize, reader: &mut PieceReader, buffer: &mut [u8]) {
        let segment = &self.segments[number];
        let to = &mut buffer[segment.at.clone()];
        to.fill(0);
        let choice = self.choices[number];
        reader.read(self.volume, segment.piece, choice, segment.offset, to);
        if self.volume.is_needed[segment.piece] {
            self.sources[number] = reader.source();
        }
    }

    /// Finds small contents by their own digests; returns true if the block fits then.
    fn prove(&mut self, reader: &mut PieceReader, buffer: &mut [u8]) -> bool {
        let mut has_changed = false;
        for number in 0..self.segments.len() {
            let piece = self.segments[number].piece;
            if !self.volume.is_small(piece) {
                continue;
            }
            let choice = self.volume.prove(piece, reader);
            if choice != NONE && choice != self.choices[number] {
                self.choices[number] = choice;
                self.read(number, reader, buffer);
                has_changed = true;
            }
        }
        has_changed && self.fits(buffer)
    }

    /// Tries other files for contents that reach beyond the block, of which it has two at most; returns
    /// true if it fits then.
    fn try_others(&mut self, reader: &mut PieceReader, buffer: &mut [u8]) -> bool {
        let volume = self.volume;
        let large: Vec<usize> = (0..self.segments.len())
            .filter(|number| {
                let segment = &self.segments[*number];
                let is_part = (segment.at.len() as u64) < volume.stored(segment.piece).len;
                let is_open = !volume.is_small(segment.piece)
                    || is_part && volume.chosen[segment.piece].load(Relaxed) == NONE;
                is_open && volume.candidates(segment.piece).len() > 1
            })
            .take(2)
            .collect();
        let count = |number: &usize| volume.candidates(self.segments[*number].piece).len() as u8;
        let counts: Vec<u8> = large.iter().map(count).collect();
        let first: Vec<u8> = large.iter().map(|number| self.choices[*number]).collect();
        let (one, other) = match (large.as_slice(), counts.as_slice()) {
            ([], _) => return false,
            ([one], [count]) => ((*one, *count), None),
            ([one, other, ..], [count, others, ..]) => ((*one, *count), Some((*other, *others))),
            _ => return false,
        };
        for choice in 0..one.1 {
            self.choose(one.0, choice, reader, buffer);
            match other {
                None if self.fits(buffer) => return true,
                None => {}
                Some((other, count)) => {
                    for choice in 0..count {
                        self.choose(other, choice, reader, buffer);
                        if self.fits(buffer) {
                            return true;
                        }
                    }
                }
            }
        }
        for (number, choice) in large.iter().zip(first) {
            self.choices[*number] = choice;
        }
        false
    }

    fn choose(&mut self, number: usize, choice: u8, reader: &mut PieceReader, buffer: &mut [u8]) {
        if self.choices[number] != choice {
            self.choices[number] = choice;
            self.read(number, reader, buffer);
        }
    }

    /// Notes the files that were found, and returns those of needed pieces.
    fn found(self) -> Vec<(usize, Arc<SourceFile>)> {
        let mut found = Vec::new();
        for ((segment, choice), source) in self.segments.iter().zip(self.choices).zip(self.sources)
        {
            if !self.volume.is_small(segment.piece) {
                self.volume.chosen[segment.piece].store(choice, Relaxed);
            }
            found.extend(source.map(|source| (segment.piece, source)));
        }
        found
    }
}

/// Reader of pieces, which keeps the last file open.
#[derive(Default)]
struct PieceReader {
    open: Option<OpenSource>,
}

struct OpenSource {
    piece: usize,
    choice: u8,
    file: Option<OwnedFd>,
    source: Arc<SourceFile>,
}

impl PieceReader {
    /// Reads bytes of a content from one of the files that may have it. What cannot be read is left
    /// as it is.
    fn read(
        &mut self,
        volume: &OpenVolume<'_>,
        piece: usize,
        choice: u8,
        offset: u64,
        to: &mut [u8],
    ) {
        let is_open = |open: &OpenSource| (open.piece, open.choice) == (piece, choice);
        if !self.open.as_ref().is_some_and(is_open) {
            let name = volume.candidates(piece).get(usize::from(choice));
            let opened = name.and_then(|name| volume.open(name)).unzip();
            let path = name.map(|name| name.path.clone()).unwrap_or_default();
            self.open = Some(OpenSource {
                piece,
                choice,
                file: opened.0,
                source: Arc::new(SourceFile {
                    path,
                    stamp: opened.1,
                }),
            });
        }
        let Some(file) = self.open.as_ref().and_then(|open| open.file.as_ref()) else {
            return;
        };
        match dirfd::read_at(file.as_fd(), to, offset) {
            Ok(count) => {
                volume.means.spent(count as u64);
            }
            Err(_) => to.fill(0),
        }
    }

    /// Returns the file that was read last.
    fn source(&self) -> Option<Arc<SourceFile>> {
        self.open.as_ref().map(|open| open.source.clone())
    }
}
