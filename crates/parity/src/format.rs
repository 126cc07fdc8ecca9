//! The format `parity/1`: header of a volume, and where everything lies in its file.
//!
//! The file has the header three times, with the parity blocks between them:
//!
//! ```text
//! copy  parity blocks 0 .. ⌈m/2⌉  copy  parity blocks ⌈m/2⌉ .. m  copy  head
//! copy = head (136 bytes), records
//! record = BLAKE3-128 of (volume, number, payload), payload (65,520 bytes, fewer in the last)
//! parity block = BLAKE3-128 of (volume, number, block), block (65,536 bytes)
//! volume = id of the directory (16 bytes), number, time
//! ```
//!
//! The payloads are the header in one zstd frame; all three copies are equal, so that each record is
//! taken from whichever has it whole. Bytes that cannot be read are damage like any other. A file may
//! have been made by anybody: numbers are checked before anything is allocated or computed by them.

use std::fmt;
use std::io::{Read, Write};
use std::ops::Range;

use bc_digest::{Algorithm, Digest, Hasher};
use bc_manifest::compress::{Compressor, decompress};
use bc_manifest::integrity::check_path;

use crate::code::{BLOCK, MOST_BLOCKS};

/// Beginning of each head.
pub(crate) const MAGIC: [u8; 8] = *b"BCPARITY";

/// The schema, and the only one that is read.
const SCHEMA: u32 = 1;

/// Bytes of a head.
pub(crate) const HEAD: usize = 136;

/// Bytes of a short digest.
pub(crate) const SHORT: usize = 16;

/// Bytes of a record's payload: with its digest it has 64 KiB.
const PAYLOAD: usize = BLOCK - SHORT;

/// Bytes of a parity block with its digest.
pub(crate) const STORED_BLOCK: usize = SHORT + BLOCK;

/// Greatest length of a header before it is compressed, and after it.
const MOST_RAW: u64 = 4 << 20;

/// Length from which on a header takes no more pieces.
pub(crate) const FULL_RAW: u64 = 2 << 20;

/// Longest path that is recorded, as a hint.
const MOST_PATH: usize = 4096;

/// Greatest length of a volume's file.
pub(crate) const MOST_FILE: u64 = 4 * MOST_RAW + (MOST_BLOCKS * STORED_BLOCK) as u64;

/// The first 128 bits of a BLAKE3 digest.
pub(crate) type ShortDigest = [u8; SHORT];

/// Random bytes that a parity directory gets when it is made.
pub(crate) type DirId = [u8; 16];

/// Identity of a volume. Numbers are used again once a volume is gone; with the time they are not.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct VolumeId {
    /// The directory that it was made for.
    pub dir: DirId,
    /// Its number in that directory.
    pub number: u64,
    /// Time when it was written, in nanoseconds since 1970.
    pub written_ns: i64,
}

impl VolumeId {
    fn to_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(&self.dir);
        bytes[16..24].copy_from_slice(&self.number.to_le_bytes());
        bytes[24..].copy_from_slice(&self.written_ns.to_le_bytes());
        bytes
    }
}

/// Returns the digest of a block.
pub(crate) fn short_digest(block: &[u8]) -> ShortDigest {
    shortened(bc_digest::hash(Algorithm::Blake3, block))
}

/// Returns the digest of a part of a volume's file: with the volume and the part's number in it, so
/// that a part in another's place is damage.
pub(crate) fn placed_digest(volume: VolumeId, number: u32, bytes: &[u8]) -> ShortDigest {
    let mut hasher = Hasher::new(Algorithm::Blake3);
    hasher.update(&volume.to_bytes());
    hasher.update(&number.to_le_bytes());
    hasher.update(bytes);
    shortened(hasher.finalize())
}

fn shortened(digest: Digest) -> ShortDigest {
    let mut short = [0; SHORT];
    short.copy_from_slice(&digest.as_bytes()[..SHORT]);
    short
}

/// Reason for which a file is no volume, or none that can be used.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct BadVolume(pub &'static str);

impl fmt::Display for BadVolume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for BadVolume {}

/// A volume of a later version: what it protects is not known here.
pub(crate) const NEWER: BadVolume =
    BadVolume("has a schema that this version does not know: a later one wrote it");

/// Place of a piece's bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum PieceBytes {
    /// In the stream, from this offset on.
    Stream(u64),
    /// Nowhere: all of them are zero.
    Zeros,
}

/// A piece of a recorded content.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct StoredPiece {
    /// Digest of the whole content.
    pub digest: Digest,
    /// Size of the whole content.
    pub size: u64,
    /// First byte of the piece in the content.
    pub from: u64,
    /// Number of its bytes.
    pub len: u64,
    /// Place of its bytes.
    pub bytes: PieceBytes,
    /// Path that the content had, below the root: a hint. Empty in further pieces of a content.
    pub path: Vec<u8>,
}

/// Bytes of a piece in a header, its digest and path aside.
const PIECE: usize = 1 + 4 * 8 + 1 + 4;

impl StoredPiece {
    /// Returns a path as it is recorded: none if it is too long for a hint.
    pub(crate) fn hint(path: &[u8]) -> Vec<u8> {
        let path = Some(path).filter(|path| path.len() <= MOST_PATH);
        path.unwrap_or_default().to_vec()
    }

    /// Returns the bytes that it takes in a header.
    pub(crate) fn raw_len(&self) -> u64 {
        (PIECE + self.digest.as_bytes().len() + self.path.len()) as u64
    }

    /// Returns the blocks of the stream that the piece has bytes in.
    pub(crate) fn blocks(&self) -> Range<usize> {
        match self.bytes {
            PieceBytes::Zeros => 0..0,
            PieceBytes::Stream(offset) => {
                let end = (offset + self.len).div_ceil(BLOCK as u64);
                (offset / BLOCK as u64) as usize..end as usize
            }
        }
    }

    fn from_cursor(raw: &mut RawHeader<'_>, stream: u64) -> Result<StoredPiece, BadVolume> {
        let kind = raw.take(1)?[0];
        let [size, offset, from, len] = [raw.u64()?, raw.u64()?, raw.u64()?, raw.u64()?];
        let digest =
            Digest::from_slice(raw.short()?).ok_or(BadVolume("a digest in its header is none"))?;
        let bytes = match kind {
            0 if offset == stream => PieceBytes::Stream(offset),
            1 if offset == 0 => PieceBytes::Zeros,
            _ => return Err(BadVolume("its contents do not follow each other")),
        };
        let end = from.checked_add(len).ok_or(TOO_LONG)?;
        if len == 0 || end > size || size > i64::MAX as u64 {
            return Err(BadVolume("a piece lies outside of its content"));
        }
        let path = raw.long()?;
        if !path.is_empty() {
            check_path(path)
                .map_err(|_| BadVolume("a path in its header is none below the root"))?;
        }
        Ok(StoredPiece {
            digest,
            size,
            from,
            len,
            bytes,
            path: path.to_vec(),
        })
    }
}

const TOO_LONG: BadVolume = BadVolume("its lengths are no file's");

/// Header of a volume.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct VolumeHeader {
    /// Identity of the volume.
    pub id: VolumeId,
    /// SHA-256 in the trailer of the manifest that it was made from.
    pub manifest: [u8; 32],
    /// Description of the directory that it was made for, as in the first line of the index.
    pub directory: Vec<u8>,
    /// Algorithm of the contents' digests.
    pub algorithm: Algorithm,
    /// Number of parity blocks.
    pub parity: usize,
    /// Pieces, in the order of the stream.
    pub pieces: Vec<StoredPiece>,
    /// Digest of each data block.
    pub blocks: Vec<ShortDigest>,
}

impl VolumeHeader {
    /// Returns the number of bytes in the stream.
    pub(crate) fn bytes(&self) -> u64 {
        let in_stream = |piece: &&StoredPiece| piece.bytes != PieceBytes::Zeros;
        self.pieces
            .iter()
            .filter(in_stream)
            .map(|piece| piece.len)
            .sum()
    }

    /// Returns the bytes that its pieces take in the header.
    pub(crate) fn raw_len(&self) -> u64 {
        self.pieces.iter().map(StoredPiece::raw_len).sum()
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut raw = b"bcparity".to_vec();
        raw.extend(SCHEMA.to_le_bytes());
        raw.extend(self.id.to_bytes());
        raw.extend(self.manifest);
        for count in [self.blocks.len(), self.parity, BLOCK, self.pieces.len()] {
            raw.extend((count as u32).to_le_bytes());
        }
        let name = self.algorithm.name().as_bytes();
        raw.push(name.len() as u8);
        raw.extend(name);
        push_long(&mut raw, &self.directory);
        for piece in &self.pieces {
            let (kind, offset) = match piece.bytes {
                PieceBytes::Stream(offset) => (0, offset),
                PieceBytes::Zeros => (1, 0),
            };
            raw.push(kind);
            for number in [piece.size, offset, piece.from, piece.len] {
                raw.extend(number.to_le_bytes());
            }
            raw.push(piece.digest.as_bytes().len() as u8);
            raw.extend(piece.digest.as_bytes());
            push_long(&mut raw, &piece.path);
        }
        raw.extend(self.blocks.as_flattened());
        raw
    }

    fn from_bytes(raw: &[u8], head: &VolumeHead) -> Result<VolumeHeader, BadVolume> {
        let mut raw = RawHeader(raw);
        if raw.take(8)? != b"bcparity" || raw.u32()? != SCHEMA {
            return Err(BadVolume("its header is of another kind"));
        }
        let id = raw.id()?;
        let mut manifest = [0; 32];
        manifest.copy_from_slice(raw.take(32)?);
        let counts = [raw.u32()?, raw.u32()?, raw.u32()?].map(|count| count as usize);
        if (id, counts) != (head.id, [head.data, head.parity, BLOCK]) {
            return Err(BadVolume("its header contradicts its head"));
        }
        let count = raw.u32()?;
        let name = raw.short()?;
        let name = std::str::from_utf8(name)
            .ok()
            .and_then(Algorithm::from_name);
        let algorithm = name.ok_or(BadVolume("its algorithm is not known here"))?;
        let directory = raw.long()?.to_vec();
        let mut pieces = Vec::new();
        let mut stream = 0_u64;
        for _ in 0..count {
            let piece = StoredPiece::from_cursor(&mut raw, stream)?;
            if piece.bytes != PieceBytes::Zeros {
                stream = stream.checked_add(piece.len).ok_or(TOO_LONG)?;
            }
            if piece.digest.as_bytes().len() != algorithm.digest_len() {
                return Err(BadVolume("a digest in its header has another length"));
            }
            pieces.push(piece);
        }
        if stream.div_ceil(BLOCK as u64) != head.data as u64 {
            return Err(BadVolume("its contents do not fill its blocks"));
        }
        let digests = raw.take(head.data * SHORT)?;
        let blocks = digests.as_chunks::<SHORT>().0.to_vec();
        match raw.0.is_empty() {
            true => Ok(VolumeHeader {
                id,
                manifest,
                directory,
                algorithm,
                parity: head.parity,
                pieces,
                blocks,
            }),
            false => Err(BadVolume("its header continues behind its end")),
        }
    }

    /// Returns the parts of the file that are not parity blocks.
    ///
    /// # Errors
    /// If the header is too long, or cannot be compressed.
    pub(crate) fn pack(&self) -> std::io::Result<PackedHeader> {
        let raw = self.to_bytes();
        let mut packed = Compressor::new(Vec::new())?;
        packed.write_all(&raw)?;
        let packed = packed.finish()?;
        let mut head = VolumeHead {
            id: self.id,
            data: self.blocks.len(),
            parity: self.parity,
            raw: raw.len() as u64,
            packed: packed.len() as u64,
            digest: [0; 32],
        };
        if !head.is_plausible() {
            return Err(std::io::Error::other("the header of a volume is too long"));
        }
        head.digest
            .copy_from_slice(bc_digest::hash(Algorithm::Blake3, &raw).as_bytes());
        drop(raw);
        let layout = head.layout();
        let mut copy = Vec::with_capacity(layout.copy as usize);
        copy.extend(head.to_bytes());
        for (number, payload) in packed.chunks(PAYLOAD).enumerate() {
            copy.extend(placed_digest(self.id, number as u32, payload));
            copy.extend(payload);
        }
        debug_assert_eq!(copy.len() as u64, layout.copy);
        Ok(PackedHeader { copy, layout })
    }
}

fn push_long(raw: &mut Vec<u8>, bytes: &[u8]) {
    raw.extend((bytes.len() as u32).to_le_bytes());
    raw.extend(bytes);
}

/// The bytes of a header that are not read yet.
struct RawHeader<'a>(&'a [u8]);

impl<'a> RawHeader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], BadVolume> {
        let (taken, rest) = self
            .0
            .split_at_checked(len)
            .ok_or(BadVolume("its header is cut short"))?;
        self.0 = rest;
        Ok(taken)
    }

    /// Reads bytes behind their number in one byte.
    fn short(&mut self) -> Result<&'a [u8], BadVolume> {
        let len = self.take(1)?[0];
        self.take(usize::from(len))
    }

    /// Reads bytes behind their number in four bytes.
    fn long(&mut self) -> Result<&'a [u8], BadVolume> {
        let len = self.u32()?;
        self.take(len as usize)
    }

    fn u32(&mut self) -> Result<u32, BadVolume> {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(self.take(4)?);
        Ok(u32::from_le_bytes(bytes))
    }

    fn u64(&mut self) -> Result<u64, BadVolume> {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(self.take(8)?);
        Ok(u64::from_le_bytes(bytes))
    }

    fn id(&mut self) -> Result<VolumeId, BadVolume> {
        let mut dir = DirId::default();
        dir.copy_from_slice(self.take(16)?);
        let number = self.u64()?;
        let written_ns = self.u64()? as i64;
        Ok(VolumeId {
            dir,
            number,
            written_ns,
        })
    }
}

/// Fixed beginning of each copy of the header, which finds the others.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct VolumeHead {
    /// Identity of the volume.
    pub id: VolumeId,
    /// Number of data blocks.
    pub data: usize,
    /// Number of parity blocks.
    pub parity: usize,
    raw: u64,
    packed: u64,
    /// BLAKE3 of the header.
    digest: [u8; 32],
}

impl VolumeHead {
    fn to_bytes(self) -> [u8; HEAD] {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(SCHEMA.to_le_bytes());
        bytes.extend((BLOCK as u32).to_le_bytes());
        bytes.extend(self.id.to_bytes());
        bytes.extend((self.data as u32).to_le_bytes());
        bytes.extend((self.parity as u32).to_le_bytes());
        bytes.extend(self.raw.to_le_bytes());
        bytes.extend(self.packed.to_le_bytes());
        bytes.extend(self.digest);
        let digest = bc_digest::hash(Algorithm::Blake3, &bytes);
        bytes.extend(digest.as_bytes());
        let mut head = [0; HEAD];
        head.copy_from_slice(&bytes);
        head
    }

    /// Reads a head; `None` if it is damaged, or there is none.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Result<VolumeHead, BadVolume>> {
        let bytes: &[u8; HEAD] = bytes.try_into().ok()?;
        let digest = bc_digest::hash(Algorithm::Blake3, &bytes[..HEAD - 32]);
        if !bytes.starts_with(&MAGIC) || digest.as_bytes() != &bytes[HEAD - 32..] {
            return None;
        }
        Some(VolumeHead::parsed(bytes))
    }

    fn parsed(bytes: &[u8; HEAD]) -> Result<VolumeHead, BadVolume> {
        let mut cursor = RawHeader(&bytes[8..]);
        if cursor.u32()? != SCHEMA {
            return Err(NEWER);
        }
        if cursor.u32()? as usize != BLOCK {
            return Err(BadVolume("its blocks have another size than 64 KiB"));
        }
        let mut head = VolumeHead {
            id: cursor.id()?,
            data: cursor.u32()? as usize,
            parity: cursor.u32()? as usize,
            raw: cursor.u64()?,
            packed: cursor.u64()?,
            digest: [0; 32],
        };
        head.digest.copy_from_slice(cursor.take(32)?);
        match head.is_plausible() {
            true => Ok(head),
            false => Err(BadVolume("its numbers are no volume's")),
        }
    }

    fn is_plausible(&self) -> bool {
        let is_counted = 1 <= self.parity && self.parity <= self.data && self.data <= MOST_BLOCKS;
        is_counted && 0 < self.packed && self.packed <= MOST_RAW && self.raw <= MOST_RAW
    }

    /// Returns where everything lies in the file.
    pub(crate) fn layout(&self) -> VolumeLayout {
        // Numbers that are plausible do not overflow.
        let records = self.packed.div_ceil(PAYLOAD as u64);
        let copy = HEAD as u64 + self.packed + records * SHORT as u64;
        VolumeLayout {
            copy,
            parity: self.parity as u64,
        }
    }
}

/// Places in the file of a volume.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct VolumeLayout {
    /// Bytes of a copy of the header.
    pub copy: u64,
    parity: u64,
}

impl VolumeLayout {
    /// Returns the offset of a parity block, with its digest before it.
    pub(crate) fn parity(&self, number: usize) -> u64 {
        let number = number as u64;
        let copies = if number < self.parity.div_ceil(2) {
            1
        } else {
            2
        };
        self.copy * copies + number * STORED_BLOCK as u64
    }

    /// Returns the offsets of the copies of the header.
    pub(crate) fn copies(&self) -> [u64; 3] {
        let first = self.parity.div_ceil(2) * STORED_BLOCK as u64;
        let all = self.parity * STORED_BLOCK as u64;
        [0, self.copy + first, self.copy * 2 + all]
    }

    /// Returns the offset of the last head, which is the end of the file but for the head.
    pub(crate) fn footer(&self) -> u64 {
        self.copies()[2] + self.copy
    }

    /// Returns the length of the file.
    pub(crate) fn len(&self) -> u64 {
        self.footer() + HEAD as u64
    }
}

/// A header as it is stored.
pub(crate) struct PackedHeader {
    /// One copy of it.
    pub copy: Vec<u8>,
    /// Places in the file.
    pub layout: VolumeLayout,
}

impl PackedHeader {
    /// Returns the head that ends the file.
    pub(crate) fn footer(&self) -> &[u8] {
        &self.copy[..HEAD]
    }
}

/// Reads the header that a head belongs to, each record from the first copy that has it whole.
/// `read_at` fills as much of a buffer as can be read there, and returns how much that is.
///
/// # Errors
/// If a record is whole in no copy, or the header is not sound.
pub(crate) fn read_header(
    head: &VolumeHead,
    len: u64,
    mut read_at: impl FnMut(&mut [u8], u64) -> usize,
) -> Result<VolumeHeader, BadVolume> {
    if head.packed > len {
        return Err(BadVolume("it is too short for its header"));
    }
    let layout = head.layout();
    let mut packed = Vec::with_capacity(head.packed as usize);
    let mut record = vec![0; BLOCK];
    for number in 0..head.packed.div_ceil(PAYLOAD as u64) {
        let offset = HEAD as u64 + number * BLOCK as u64;
        let rest = head.packed - number * PAYLOAD as u64;
        let record = &mut record[..SHORT + rest.min(PAYLOAD as u64) as usize];
        let is_whole = layout.copies().into_iter().any(|copy| {
            let count = read_at(record, copy + offset);
            let (digest, payload) = record.split_at(SHORT);
            count == record.len() && *digest == placed_digest(head.id, number as u32, payload)
        });
        if !is_whole {
            return Err(BadVolume(
                "a part of its header is damaged in all three copies",
            ));
        }
        packed.extend_from_slice(&record[SHORT..]);
    }
    let mut raw = Vec::new();
    let unpacked = decompress(&packed[..])
        .and_then(|unpacked| unpacked.take(head.raw + 1).read_to_end(&mut raw));
    let digest = bc_digest::hash(Algorithm::Blake3, &raw);
    if unpacked.is_err() || raw.len() as u64 != head.raw || digest.as_bytes() != head.digest {
        return Err(BadVolume("its header is damaged"));
    }
    drop(packed);
    VolumeHeader::from_bytes(&raw, head)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ID: VolumeId = VolumeId {
        dir: [9; 16],
        number: 7,
        written_ns: -1,
    };

    fn header(pieces: usize) -> VolumeHeader {
        let piece = |number: usize| StoredPiece {
            digest: bc_digest::hash(Algorithm::Sha256, &number.to_le_bytes()),
            size: 1000,
            from: 0,
            len: 1000,
            bytes: PieceBytes::Stream(number as u64 * 1000),
            path: format!("a/{number}").into_bytes(),
        };
        VolumeHeader {
            id: ID,
            manifest: [3; 32],
            directory: b"{}".to_vec(),
            algorithm: Algorithm::Sha256,
            parity: 1,
            pieces: (0..pieces).map(piece).collect(),
            blocks: vec![[5; SHORT]; (pieces * 1000).div_ceil(BLOCK)],
        }
    }

    fn read(file: &[u8]) -> Option<VolumeHeader> {
        let head = VolumeHead::from_bytes(file.get(..HEAD)?)?.ok()?;
        let read_at = |to: &mut [u8], offset: u64| {
            let from = usize::try_from(offset)
                .unwrap_or(usize::MAX)
                .min(file.len());
            (&file[from..]).read(to).unwrap()
        };
        read_header(&head, file.len() as u64, read_at).ok()
    }

    #[test]
    fn headers_are_read_as_they_were_written() {
        for pieces in [1, 66, 4000] {
            let header = header(pieces);
            let packed = header.pack().unwrap();
            assert_eq!(packed.copy.len() as u64, packed.layout.copy);
            assert_eq!(read(&packed.copy).as_ref(), Some(&header));
            assert_eq!(header.bytes(), pieces as u64 * 1000);
            let fixed = header.to_bytes().len() as u64 - header.raw_len();
            // The name of the algorithm, and a description of two bytes.
            assert_eq!(fixed, 92 + 7 + 6 + header.blocks.len() as u64 * 16);
        }
    }

    /// A header whose digests are right, and whose content is not.
    fn forged(raw: &[u8], data: usize) -> Result<VolumeHeader, BadVolume> {
        let head = VolumeHead {
            id: ID,
            data,
            parity: 1,
            raw: raw.len() as u64,
            packed: 1,
            digest: [0; 32],
        };
        VolumeHeader::from_bytes(raw, &head)
    }

    #[test]
    fn what_no_volume_says_is_refused() {
        let good = header(2);
        assert_eq!(forged(&good.to_bytes(), 1), Ok(good.clone()));
        let changed = |change: fn(&mut VolumeHeader)| {
            let mut header = good.clone();
            change(&mut header);
            forged(&header.to_bytes(), 1).unwrap_err().0
        };
        let outside = "a piece lies outside of its content";
        assert_eq!(changed(|header| header.pieces[0].len = 0), outside);
        assert_eq!(changed(|header| header.pieces[1].from = 1), outside);
        assert_eq!(changed(|header| header.pieces[1].size = u64::MAX), outside);
        assert!(changed(|header| header.pieces[1].from = u64::MAX).contains("no file's"));
        assert!(
            changed(|header| header.pieces[1].bytes = PieceBytes::Stream(999)).contains("follow")
        );
        assert!(changed(|header| header.pieces[1].path = b"../up".to_vec()).contains("path"));
        assert!(changed(|header| header.pieces[1].path = b"/etc/passwd".to_vec()).contains("path"));
        assert!(
            changed(|header| header.pieces[0].digest = Digest::new(&[1; 16])).contains("length")
        );
        assert!(changed(|header| header.blocks.push([0; SHORT])).contains("head"));
        assert!(changed(|header| header.id.dir[3] = 0).contains("head"));
        assert!(forged(&good.to_bytes(), 2).is_err());
    }

    proptest! {
        #[test]
        fn no_header_does_any_harm(at in 0usize..400, byte: u8, cut in 0usize..400) {
            let mut raw = header(2).to_bytes();
            let len = raw.len();
            raw[at % len] = byte;
            let _ = forged(&raw, 1);
            let _ = forged(&raw[..cut.min(len)], 1);
        }
    }
}
