//! The file of a volume: header and parity are written, and it gets its name once all of it is proven.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use bc_edit::atomic::AtomicFile;
use bc_edit::content;
use bc_fs::PathError;
use bc_fs::call::FailedCall;
use bc_fs::dirfd;
use bc_fs::meta::stat;
use bc_walk::job::Error;

use super::{
    EncodeEvent, EncodeMeans, EncodeStop, LastDir, NewVolume, PendingVolume, VolumeStream,
};
use crate::code::{BLOCK, ParityEncoder, parity_blocks};
use crate::file::{number_after, volume_name};
use crate::format::{
    PackedHeader, PieceBytes, SHORT, STORED_BLOCK, StoredPiece, VolumeHeader, VolumeId,
    VolumeLayout, placed_digest, short_digest,
};
use crate::index::IndexLine;
use crate::plan::{VolumeState, live_pieces};

/// Times that a volume may be another one when it is read again, before files of it are left out.
const MOST_CHANGED: u32 = 2;

/// A volume whose parity is being written.
struct VolumeWriter<'v> {
    header: &'v VolumeHeader,
    /// Paths that the header has no room for, by the numbers of their pieces.
    long_paths: &'v HashMap<usize, Vec<u8>>,
    layout: VolumeLayout,
    file: &'v AtomicFile,
}

impl VolumeStream<'_, '_> {
    /// Writes a volume, which waits if its last content is not proven.
    pub(super) fn end(&mut self, volume: NewVolume) -> Result<(), EncodeStop> {
        let means = self.means();
        let NewVolume {
            mut encoder,
            pieces,
            long_paths,
            blocks,
            passes,
            ..
        } = volume;
        let data = blocks.len();
        if data == 0 {
            return Ok(());
        }
        let parity = parity_blocks(data, means.redundancy);
        // It may have come out smaller than planned: files changed, or have blocks of zeros.
        let fits = encoder.settle(parity);
        let number = self.encoding.next_number;
        let name = volume_name(number);
        let path = means.dir.path().join(&name);
        let header = VolumeHeader {
            id: VolumeId {
                dir: means.id,
                number,
                written_ns: means.now_ns,
            },
            manifest: self.encoding.contents.trailer,
            directory: means.description.clone(),
            algorithm: self.encoding.contents.algorithm,
            parity,
            pieces,
            blocks,
        };
        let packed = header
            .pack()
            .map_err(|error| Error::io(&path, "write", &error))?;
        let file = means.dir.create(&name)?;
        let failed = |call: FailedCall| Error::io(&path, call.op, &call.into());
        write_header(&packed, &file).map_err(failed)?;
        let (layout, len) = (packed.layout, packed.layout.len());
        drop(packed);
        let writer = VolumeWriter {
            header: &header,
            long_paths: &long_paths,
            layout,
            file: &file,
        };
        let passes = match fits {
            true => {
                means.share(encoder.slices(), |slice| encoder.finish(slice))?;
                means.check()?;
                passes
            }
            false => {
                drop(encoder);
                let passes = means.passes(parity);
                encoder = ParityEncoder::new(parity, 0..BLOCK / passes, means.workers);
                self.encode_again(&writer, &mut encoder)?;
                passes
            }
        };
        self.write_parity(&writer, encoder, passes)?;
        self.encoding.next_number = number_after(number, means.dir.path())?;
        let stat = stat(file.file()).map_err(failed)?;
        let state = VolumeState {
            number,
            file: stat.id,
            written_ns: header.id.written_ns,
            raw_len: header.raw_len(),
            suspect: 0,
            is_live: true,
            has_sound: true,
            has_unread: false,
            last_removed: None,
            line: IndexLine::new(&header),
        };
        self.pending.push(PendingVolume {
            state,
            pieces: live_pieces(self.encoding.contents, &header),
            file,
            len,
            until: self.span.as_ref().map_or(0, |span| span.at),
        });
        match self.span {
            Some(_) => Ok(()),
            None => self.commit(),
        }
    }

    /// Writes the parity blocks: those columns that are encoded, and the others once their bytes
    /// were read again.
    fn write_parity(
        &mut self,
        writer: &VolumeWriter<'_>,
        mut encoder: ParityEncoder,
        passes: usize,
    ) -> Result<(), EncodeStop> {
        let means = self.means();
        let header = writer.header;
        let path = means.dir.volume_path(header.id.number);
        let failed = |call: FailedCall| Error::io(&path, call.op, &call.into());
        for pass in 0..passes {
            if pass > 0 {
                let width = BLOCK / passes;
                drop(encoder);
                let columns = pass * width..(pass + 1) * width;
                encoder = ParityEncoder::new(header.parity, columns, means.workers);
                self.encode_again(writer, &mut encoder)?;
            }
            let error = Mutex::new(None);
            means.share(header.parity, |number| {
                if let Err(call) = writer.write(number, &encoder) {
                    error
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .get_or_insert(call);
                }
            })?;
            means.check()?;
            let error = error.into_inner().unwrap_or_else(PoisonError::into_inner);
            error.map_or(Ok(()), |call| Err(failed(call)))?;
        }
        if passes > 1 {
            for number in 0..header.parity {
                writer.seal(number).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Reads the stream of a volume once more, proves each block by its digest, and encodes other
    /// columns.
    fn encode_again(
        &mut self,
        writer: &VolumeWriter<'_>,
        encoder: &mut ParityEncoder,
    ) -> Result<(), EncodeStop> {
        let means = self.means();
        let header = writer.header;
        let bytes = header.bytes();
        let most = self.window.len() as u64;
        let mut buffer = vec![0; bytes.next_multiple_of(BLOCK as u64).min(most) as usize];
        let (mut dirs, mut at, mut first) = (LastDir::default(), 0, 0);
        while at < bytes {
            means.check()?;
            let len = (bytes - at).min(buffer.len() as u64);
            let padded = (len as usize).next_multiple_of(BLOCK);
            buffer[..padded].fill(0);
            let mut error = None;
            // From the piece that the last window has ended in.
            for (number, piece) in header.pieces.iter().enumerate().skip(first) {
                let PieceBytes::Stream(offset) = piece.bytes else {
                    continue;
                };
                if offset >= at + len {
                    break;
                }
                let (from, end) = (offset.max(at), (offset + piece.len).min(at + len));
                if from >= end {
                    continue;
                }
                first = number;
                let to = &mut buffer[(from - at) as usize..(end - at) as usize];
                let read = read_again(
                    means,
                    writer.path(number),
                    piece,
                    to,
                    from - offset,
                    &mut dirs,
                );
                // What has changed meanwhile is noticed by the digests.
                error = error.or(read.err().map(|error| (number, error)));
            }
            let blocks = buffer[..padded]
                .chunks(BLOCK)
                .zip(&header.blocks[(at / BLOCK as u64) as usize..]);
            let differs = blocks
                .into_iter()
                .position(|(block, digest)| short_digest(block) != *digest);
            if let Some(block) = differs {
                let offset = at + (block * BLOCK) as u64;
                let window = at..at + len;
                return Err(self.changed(writer, offset, error, window, &buffer));
            }
            means.share(encoder.slices(), |slice| {
                encoder.take(slice, &buffer[..padded])
            })?;
            encoder.taken(padded / BLOCK);
            at += len;
        }
        means.share(encoder.slices(), |slice| encoder.finish(slice))?;
        means.check()
    }

    /// Starts again since a block of a volume is another one than before. If that happens often, contents in
    /// it are left out: those that are others by now; if that is true of none which is whole in the window,
    /// those that are not; and if there is none, all, so that it ends.
    fn changed(
        &mut self,
        writer: &VolumeWriter<'_>,
        offset: u64,
        error: Option<(usize, PathError)>,
        window: Range<u64>,
        bytes: &[u8],
    ) -> EncodeStop {
        self.encoding.changed += 1;
        if self.encoding.changed <= MOST_CHANGED {
            return EncodeStop::Again;
        }
        let algorithm = writer.header.algorithm;
        let (mut all, mut in_part, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for (number, piece) in writer.header.pieces.iter().enumerate() {
            let PieceBytes::Stream(from) = piece.bytes else {
                continue;
            };
            let end = from + piece.len;
            if from >= offset + BLOCK as u64 || end <= offset {
                continue;
            }
            all.push(number);
            if piece.len == piece.size && window.start <= from && end <= window.end {
                let now = (from - window.start) as usize..(end - window.start) as usize;
                if bc_digest::hash(algorithm, &bytes[now]) != piece.digest {
                    others.push(number);
                }
            } else {
                in_part.push(number);
            }
        }
        let left_out = [others, in_part, all]
            .into_iter()
            .find(|contents| !contents.is_empty());
        for number in left_out.unwrap_or_default() {
            let (piece, path) = (&writer.header.pieces[number], writer.path(number));
            let Some(content) = self.encoding.contents.find(&piece.digest, piece.size) else {
                continue;
            };
            let error = match &error {
                Some((number, error)) if writer.path(*number) == path => error.clone(),
                _ => {
                    let why = "changes while it is protected: not protected";
                    self.encoding.means.differs(path, why)
                }
            };
            self.encoding.failed(content, path, error);
        }
        EncodeStop::Again
    }

    /// Gives the volumes that wait their names: all of their contents are proven.
    pub(super) fn commit(&mut self) -> Result<(), EncodeStop> {
        self.commit_until(u64::MAX)
    }

    /// Gives the volumes their names that wait for no later byte than this.
    pub(super) fn commit_until(&mut self, proven: u64) -> Result<(), EncodeStop> {
        while self
            .pending
            .first()
            .is_some_and(|volume| volume.until <= proven)
        {
            let PendingVolume {
                state,
                pieces,
                file,
                len,
                ..
            } = self.pending.remove(0);
            let encoding = &mut *self.encoding;
            encoding
                .means
                .dir
                .commit(&volume_name(state.number), file)?;
            let number = encoding.volumes.len() as u32;
            for piece in pieces {
                encoding.contents.cover(piece, number);
            }
            (encoding.observer)(EncodeEvent::Written(&state, len));
            encoding.volumes.push(state);
        }
        Ok(())
    }
}

fn write_header(packed: &PackedHeader, file: &AtomicFile) -> bc_fs::call::Result<()> {
    for offset in packed.layout.copies() {
        content::write_all_at(file.file(), &packed.copy, offset)?;
    }
    content::write_all_at(file.file(), packed.footer(), packed.layout.footer())
}

/// Reads bytes of a piece that was encoded before.
fn read_again(
    means: &EncodeMeans<'_>,
    path: &[u8],
    piece: &StoredPiece,
    to: &mut [u8],
    from: u64,
    dirs: &mut LastDir,
) -> Result<(), PathError> {
    let file = means.open(path, piece.size, dirs)?;
    means.read(&file, path, to, piece.from + from)
}

impl VolumeWriter<'_> {
    /// Returns the path that a piece was read by.
    fn path(&self, number: usize) -> &[u8] {
        let pieces = &self.header.pieces;
        let of = |piece: &StoredPiece| (piece.digest, piece.size);
        let mut first = number;
        while pieces[first].path.is_empty()
            && !self.long_paths.contains_key(&first)
            && first > 0
            && of(&pieces[first - 1]) == of(&pieces[number])
        {
            first -= 1;
        }
        let long = self.long_paths.get(&first);
        long.unwrap_or(&pieces[first].path)
    }

    /// Writes the columns of one block that are encoded; all of it with its digest, if all are.
    fn write(&self, number: usize, encoder: &ParityEncoder) -> bc_fs::call::Result<()> {
        let columns = encoder.columns();
        let mut row = vec![0; SHORT + columns.len()];
        let (digest, block) = row.split_at_mut(SHORT);
        encoder.parity(number, block);
        let offset = self.layout.parity(number);
        if columns.len() == BLOCK {
            digest.copy_from_slice(&placed_digest(self.header.id, number as u32, block));
            return content::write_all_at(self.file.file(), &row, offset);
        }
        content::write_all_at(
            self.file.file(),
            block,
            offset + (SHORT + columns.start) as u64,
        )
    }

    /// Writes the digest of a block that was written some columns at a time.
    fn seal(&self, number: usize) -> bc_fs::call::Result<()> {
        let mut row = vec![0; STORED_BLOCK];
        let offset = self.layout.parity(number);
        dirfd::read_at(self.file.file(), &mut row[SHORT..], offset + SHORT as u64)?;
        let digest = placed_digest(self.header.id, number as u32, &row[SHORT..]);
        content::write_all_at(self.file.file(), &digest, offset)
    }
}
