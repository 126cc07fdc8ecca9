//! The file of a volume: header and parity are written, and it gets its name once all of it is proven.

use std::sync::{Mutex, PoisonError};

use bc_edit::atomic::AtomicFile;
use bc_edit::content;
use bc_fs::call::FailedCall;
use bc_fs::dirfd;
use bc_walk::job::{Error, ErrorKind};

use super::{EncodeStop, LastDir, NewVolume, PendingVolume, VolumeStream};
use crate::code::{BLOCK, ParityEncoder, parity_blocks};
use crate::file::volume_name;
use crate::format::{PackedHeader, PieceBytes, SHORT, STORED_BLOCK, VolumeHeader, VolumeLayout};
use crate::format::{placed_digest, short_digest};
use crate::plan::VolumeState;

/// Times that a volume is begun again because it came out smaller than planned.
const MOST_REPLANS: u32 = 3;

impl VolumeStream<'_, '_> {
    /// Writes a volume, which waits if its last content is not proven.
    pub(super) fn end(&mut self, volume: NewVolume) -> Result<(), EncodeStop> {
        let means = self.means();
        let data = volume.blocks.len();
        if data == 0 {
            return Ok(());
        }
        let parity = parity_blocks(data, means.redundancy);
        if parity != volume.encoder.parity_blocks() {
            // Files went, or have blocks of zeros: known by now.
            self.encoding.replans += 1;
            if self.encoding.replans <= MOST_REPLANS {
                return Err(EncodeStop::Again);
            }
            if volume.encoder.parity_blocks() > data {
                let text = "too many files change while they are protected";
                return Err(Error::at(ErrorKind::Refused, means.dir.path(), text).into());
            }
        }
        means.share(volume.encoder.slices(), usize::MAX, |slice| {
            volume.encoder.finish(slice)
        })?;
        means.check()?;
        let header = VolumeHeader {
            id: self.encoding.next_id,
            written_ns: means.now_ns,
            manifest: means.contents.trailer,
            algorithm: means.contents.algorithm,
            parity: volume.encoder.parity_blocks(),
            pieces: volume.pieces,
            blocks: volume.blocks,
        };
        let name = volume_name(header.id);
        let path = means.dir.path().join(&name);
        let packed = header
            .pack()
            .map_err(|error| Error::io(&path, "write", &error))?;
        let file = means.dir.create(&name)?;
        let failed = |call: FailedCall| Error::io(&path, call.op, &call.into());
        for offset in packed.layout.copies() {
            content::write_all_at(file.file(), &packed.copy, offset).map_err(failed)?;
        }
        content::write_all_at(file.file(), packed.footer(), packed.layout.footer())
            .map_err(failed)?;
        self.write_parity(&header, &packed, &file, volume.encoder, volume.passes)?;
        self.encoding.next_id += 1;
        let len = packed.layout.len();
        self.pending.push(PendingVolume { header, file, len });
        match self.span {
            Some(_) => Ok(()),
            None => self.commit(),
        }
    }

    /// Writes the parity blocks: those columns that are encoded, and the others once their bytes
    /// were read again.
    fn write_parity(
        &self,
        header: &VolumeHeader,
        packed: &PackedHeader,
        file: &AtomicFile,
        mut encoder: ParityEncoder,
        passes: usize,
    ) -> Result<(), EncodeStop> {
        let means = self.means();
        let path = means.dir.volume_path(header.id);
        let rows = ParityRows {
            header,
            layout: packed.layout,
            file,
        };
        let failed = |call: FailedCall| Error::io(&path, call.op, &call.into());
        for pass in 0..passes {
            if pass > 0 {
                let width = BLOCK / passes;
                drop(encoder);
                encoder = ParityEncoder::new(
                    header.parity,
                    pass * width..(pass + 1) * width,
                    means.workers,
                );
                self.encode_again(header, &mut encoder)?;
            }
            let error = Mutex::new(None);
            means.share(header.parity, usize::MAX, |number| {
                if let Err(call) = rows.write(number, &encoder) {
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
                rows.seal(number).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Reads the stream of a volume once more, proves each block by its digest, and encodes other
    /// columns.
    fn encode_again(
        &self,
        header: &VolumeHeader,
        encoder: &mut ParityEncoder,
    ) -> Result<(), EncodeStop> {
        let means = self.means();
        let mut window = vec![0; self.window.len()];
        let bytes = header.bytes();
        let mut dirs = LastDir::default();
        let mut at = 0;
        while at < bytes {
            means.check()?;
            let len = (bytes - at).min(window.len() as u64);
            let padded = (len as usize).next_multiple_of(BLOCK);
            window[..padded].fill(0);
            for piece in &header.pieces {
                let PieceBytes::Stream(offset) = piece.bytes else {
                    continue;
                };
                let (from, end) = (offset.max(at), (offset + piece.len).min(at + len));
                let content = means.contents.find(&piece.digest, piece.size);
                let (true, Some(content)) = (from < end, content) else {
                    continue;
                };
                let path = self.encoding.path(content);
                let to = &mut window[(from - at) as usize..(end - at) as usize];
                let opened = means.open(path, piece.size, &mut dirs);
                // What has changed meanwhile is noticed by the digests.
                let _ =
                    opened.and_then(|file| means.read(&file, path, to, piece.from + from - offset));
            }
            let first = (at / BLOCK as u64) as usize;
            let blocks = window[..padded].chunks(BLOCK).zip(&header.blocks[first..]);
            if blocks
                .into_iter()
                .any(|(block, digest)| short_digest(block) != *digest)
            {
                return Err(EncodeStop::Again);
            }
            means.share(encoder.slices(), usize::MAX, |slice| {
                encoder.take(slice, &window[..padded])
            })?;
            encoder.taken(padded / BLOCK);
            at += len;
        }
        means.share(encoder.slices(), usize::MAX, |slice| encoder.finish(slice))?;
        Ok(())
    }

    /// Gives the volumes that wait their names: all of their contents are proven.
    pub(super) fn commit(&mut self) -> Result<(), EncodeStop> {
        for PendingVolume { header, file, len } in std::mem::take(&mut self.pending) {
            let dir = self.means().dir;
            dir.commit(&volume_name(header.id), file)?;
            let means = self.means();
            let now = means.now_ns.div_euclid(1_000_000_000);
            let state = VolumeState::of(&header, header.parity, means.contents, None, now);
            self.encoding.written.push((state, len));
        }
        Ok(())
    }
}

/// Parity blocks in the file of a volume.
struct ParityRows<'a> {
    header: &'a VolumeHeader,
    layout: VolumeLayout,
    file: &'a AtomicFile,
}

impl ParityRows<'_> {
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
