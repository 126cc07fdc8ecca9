//! The code: parity blocks of a volume's data blocks, and data blocks from those that are left.
//!
//! It is always the high-rate form of `reed-solomon-simd`, whatever the numbers of blocks are. That
//! takes the data in chunks of as many blocks as there are parity blocks, rounded up to a power of
//! two, so that [`ParityEncoder`] needs memory for two chunks and not for the volume. Columns (the
//! same bytes of every block) do not depend on each other: they are cut into slices, which are the
//! unit of parallel work, and where memory is short a volume is coded some columns at a time.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use reed_solomon_simd::engine::{DefaultEngine, Engine, ShardsRefMut, utils::xor};
use reed_solomon_simd::rate::{DecoderWork, HighRateDecoder, RateDecoder};

/// Bytes of a block.
pub(crate) const BLOCK: usize = 64 << 10;

/// Greatest number of data blocks in a volume.
pub(crate) const MOST_BLOCKS: usize = 32_768;

/// Bytes of the smallest piece of a block that the code works on.
const GROUP: usize = 64;

/// Bytes of each block in a slice: a chunk of 256 blocks is 1 MiB then, which stays in a cache.
const SLICE: usize = 4 << 10;

type ByteGroup = [u8; GROUP];

/// Parity blocks for so many data blocks: two at least, but not more than there are data blocks.
pub(crate) fn parity_blocks(data: usize, redundancy: Redundancy) -> usize {
    let share = (data as u64 * u64::from(redundancy.0)).div_ceil(u64::from(Redundancy::WHOLE));
    (share as usize).max(2).min(data)
}

/// Share of parity: 5 % unless another one is given.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Redundancy(u32);

impl Redundancy {
    /// All of it: as many parity blocks as data blocks.
    const WHOLE: u32 = 100_000;

    /// True if the least number of parity blocks is more than twice this share of so many data blocks.
    pub(crate) fn is_exceeded_by(self, data: usize) -> bool {
        let least = 2.min(data) as u64 * u64::from(Redundancy::WHOLE);
        least > 2 * data as u64 * u64::from(self.0)
    }

    /// The usual share.
    pub(crate) const FIVE: Redundancy = Redundancy(Redundancy::WHOLE / 20);
}

impl Default for Redundancy {
    fn default() -> Redundancy {
        Redundancy::FIVE
    }
}

impl std::fmt::Display for Redundancy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (whole, rest) = (self.0 / 1000, self.0 % 1000);
        match rest {
            0 => write!(f, "{whole}%"),
            _ => write!(f, "{whole}.{}%", format!("{rest:03}").trim_end_matches('0')),
        }
    }
}

impl std::str::FromStr for Redundancy {
    type Err = String;

    /// Reads `5%` or `0.5%`, with at most three decimals.
    fn from_str(text: &str) -> Result<Redundancy, String> {
        let wrong = || format!("'{text}' is no share from 0.001% to 100%, such as 5%");
        let number = text.strip_suffix('%').ok_or_else(wrong)?;
        let (whole, rest) = number.split_once('.').unwrap_or((number, "0"));
        let digits =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || !digits(rest) || whole.len() > 3 || rest.len() > 3 {
            return Err(wrong());
        }
        let parts = format!("{whole}{rest:0<3}").parse().map_err(|_| wrong())?;
        match parts {
            1..=Redundancy::WHOLE => Ok(Redundancy(parts)),
            _ => Err(wrong()),
        }
    }
}

/// Encoder of one volume, for some columns of its blocks.
pub(crate) struct ParityEncoder {
    parity: usize,
    /// Blocks of a chunk.
    chunk: usize,
    columns: Range<usize>,
    /// Bytes of each block in a slice.
    width: usize,
    slices: Vec<Mutex<EncoderSlice>>,
    /// Blocks taken so far.
    taken: usize,
}

/// State of one slice.
struct EncoderSlice {
    /// Blocks of the chunk that is not complete.
    blocks: Vec<ByteGroup>,
    /// Sum of the transformed chunks; nothing before the first.
    sum: Option<Vec<ByteGroup>>,
}

impl ParityEncoder {
    /// Makes an encoder for so many parity blocks. `columns` are multiples of 64.
    ///
    /// # Panics
    /// If the columns are none, or no multiples of 64.
    pub(crate) fn new(parity: usize, columns: Range<usize>, workers: usize) -> ParityEncoder {
        let bytes = columns.len();
        assert!(bytes > 0 && bytes.is_multiple_of(GROUP) && columns.end <= BLOCK);
        let chunk = parity.next_power_of_two();
        // Each worker has something to do, and slices are of one width.
        let mut width = bytes;
        while width > SLICE.min(bytes.div_ceil(workers.max(1)).max(GROUP))
            && width.is_multiple_of(2 * GROUP)
        {
            width /= 2;
        }
        let slice = || {
            Mutex::new(EncoderSlice {
                blocks: vec![[0; GROUP]; chunk * (width / GROUP)],
                sum: None,
            })
        };
        ParityEncoder {
            parity,
            chunk,
            width,
            slices: (0..bytes / width).map(|_| slice()).collect(),
            columns,
            taken: 0,
        }
    }

    /// Bytes of memory for so many parity blocks and columns.
    pub(crate) fn memory(parity: usize, columns: usize) -> u64 {
        2 * parity.next_power_of_two() as u64 * columns as u64
    }

    /// Returns the number of slices: numbers of the parallel work.
    pub(crate) fn slices(&self) -> usize {
        self.slices.len()
    }

    /// Takes the columns of the next blocks into one slice. When all slices have them,
    /// [`taken`](Self::taken) says so.
    pub(crate) fn take(&self, slice: usize, blocks: &[u8]) {
        let mut state = self.slices[slice]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        let from = self.columns.start + slice * self.width;
        let (groups, engine) = (self.width / GROUP, DefaultEngine::new());
        for (nth, block) in blocks.chunks(BLOCK).enumerate() {
            let number = self.taken + nth;
            let row = number % self.chunk;
            let to = state.blocks[row * groups..][..groups].as_flattened_mut();
            to.copy_from_slice(&block[from..from + self.width]);
            if row + 1 == self.chunk {
                state.add(&engine, number / self.chunk, self.chunk, self.chunk, groups);
            }
        }
    }

    /// Sets the number of parity blocks that are wanted in the end; false if this encoder cannot give
    /// them: its chunks are of another length.
    pub(crate) fn settle(&mut self, parity: usize) -> bool {
        let fits = parity.next_power_of_two() == self.chunk;
        self.parity = if fits { parity } else { self.parity };
        fits
    }

    /// Notes that all slices have so many more blocks.
    pub(crate) fn taken(&mut self, blocks: usize) {
        self.taken += blocks;
    }

    /// Completes one slice.
    pub(crate) fn finish(&self, slice: usize) {
        let mut state = self.slices[slice]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let (groups, engine) = (self.width / GROUP, DefaultEngine::new());
        let rest = self.taken % self.chunk;
        if rest > 0 {
            let number = self.taken / self.chunk;
            state.add(&engine, number, self.chunk, rest, groups);
        }
        if let Some(sum) = &mut state.sum {
            let mut sum = ShardsRefMut::new(self.chunk, groups, sum);
            engine.fft(&mut sum, 0, self.chunk, self.parity, 0);
        }
    }

    /// Copies the columns of one parity block, once all slices are complete.
    pub(crate) fn parity(&self, number: usize, to: &mut [u8]) {
        let groups = self.width / GROUP;
        for (slice, to) in self.slices.iter().zip(to.chunks_mut(self.width)) {
            let state = slice.lock().unwrap_or_else(PoisonError::into_inner);
            match &state.sum {
                Some(sum) => to.copy_from_slice(sum[number * groups..][..groups].as_flattened()),
                None => to.fill(0),
            }
        }
    }

    /// Returns the columns.
    pub(crate) fn columns(&self) -> Range<usize> {
        self.columns.clone()
    }
}

impl EncoderSlice {
    /// Transforms the chunk, of which `count` blocks are data, and adds it to the sum.
    fn add(
        &mut self,
        engine: &DefaultEngine,
        number: usize,
        chunk: usize,
        count: usize,
        groups: usize,
    ) {
        self.blocks[count * groups..].fill([0; GROUP]);
        let mut blocks = ShardsRefMut::new(chunk, groups, &mut self.blocks);
        engine.ifft(&mut blocks, 0, chunk, count, (number + 1) * chunk);
        match &mut self.sum {
            Some(sum) => xor(sum, &self.blocks),
            None => self.sum = Some(self.blocks.clone()),
        }
    }
}

/// Numbers of blocks of a volume, with those that are lost.
pub(crate) struct Erasures<'a> {
    /// True for each data block that is there.
    pub data: &'a [bool],
    /// True for each parity block that is there.
    pub parity: &'a [bool],
}

impl Erasures<'_> {
    /// Returns the number of data blocks that are lost.
    pub(crate) fn lost(&self) -> usize {
        self.data.iter().filter(|good| !**good).count()
    }

    /// Returns the number of parity blocks that are there.
    pub(crate) fn spare(&self) -> usize {
        self.parity.iter().filter(|good| **good).count()
    }
}

/// Decoder of some columns of a volume's blocks; its memory is used again.
#[derive(Default)]
pub(crate) struct ColumnDecoder {
    work: Option<DecoderWork>,
    buffer: Vec<u8>,
}

/// Block of a volume.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum VolumeBlock {
    /// Data block of this number.
    Data(usize),
    /// Parity block of this number.
    Parity(usize),
}

impl ColumnDecoder {
    /// Bytes of memory for so many blocks, and bytes of each.
    pub(crate) fn memory(data: usize, parity: usize, width: usize) -> u64 {
        let work = (parity.next_power_of_two() + data).next_power_of_two();
        work as u64 * width as u64
    }

    /// Computes the columns of lost data blocks. `read` fills a buffer of `width` bytes, a multiple
    /// of 64, with those of a block that is there; `write` takes those of one that was lost.
    ///
    /// # Errors
    /// The first of `read` or `write`; `None` if more is lost than can be computed.
    pub(crate) fn decode<E>(
        &mut self,
        erasures: &Erasures<'_>,
        width: usize,
        mut read: impl FnMut(VolumeBlock, &mut [u8]) -> Result<(), E>,
        mut write: impl FnMut(usize, &[u8]) -> Result<(), E>,
    ) -> Result<(), Option<E>> {
        let (data, parity) = (erasures.data.len(), erasures.parity.len());
        let lost = erasures.lost();
        if lost == 0 {
            return Ok(());
        }
        let work = self.work.take();
        let decoder = HighRateDecoder::new(data, parity, width, DefaultEngine::new(), work);
        let mut decoder = decoder.map_err(|_| None)?;
        self.buffer.resize(width, 0);
        for number in (0..data).filter(|number| erasures.data[*number]) {
            read(VolumeBlock::Data(number), &mut self.buffer).map_err(Some)?;
            decoder
                .add_original_shard(number, &self.buffer)
                .map_err(|_| None)?;
        }
        // As many as are needed: each costs.
        for number in (0..parity)
            .filter(|number| erasures.parity[*number])
            .take(lost)
        {
            read(VolumeBlock::Parity(number), &mut self.buffer).map_err(Some)?;
            decoder
                .add_recovery_shard(number, &self.buffer)
                .map_err(|_| None)?;
        }
        {
            let decoded = decoder.decode().map_err(|_| None)?;
            for (number, columns) in decoded.restored_original_iter() {
                write(number, columns).map_err(Some)?;
            }
        }
        self.work = Some(decoder.into_parts().1);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use reed_solomon_simd::rate::{HighRateEncoder, RateEncoder};

    use super::*;

    /// Blocks of different bytes.
    fn blocks(count: usize, seed: u64) -> Vec<u8> {
        let mut state = seed | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()
        };
        (0..count * BLOCK / 8).flat_map(|_| next()).collect()
    }

    fn encode(data: &[u8], parity: usize, columns: Range<usize>, at_once: usize) -> Vec<Vec<u8>> {
        let mut encoder = ParityEncoder::new(parity, columns.clone(), 2);
        for piece in data.chunks(at_once * BLOCK) {
            (0..encoder.slices()).for_each(|slice| encoder.take(slice, piece));
            encoder.taken(piece.len() / BLOCK);
        }
        (0..encoder.slices()).for_each(|slice| encoder.finish(slice));
        let row = |number| {
            let mut row = vec![0; columns.len()];
            encoder.parity(number, &mut row);
            row
        };
        (0..parity).map(row).collect()
    }

    #[test]
    fn chunks_and_slices_give_the_bytes_of_the_high_rate_form() {
        for (data, parity) in [
            (1, 1),
            (2, 2),
            (3, 2),
            (5, 3),
            (8, 8),
            (9, 4),
            (17, 5),
            (40, 2),
        ] {
            let bytes = blocks(data, (data * 31 + parity) as u64);
            let engine = DefaultEngine::new();
            let mut whole = HighRateEncoder::new(data, parity, BLOCK, engine, None).unwrap();
            for block in bytes.chunks(BLOCK) {
                whole.add_original_shard(block).unwrap();
            }
            let result = whole.encode().unwrap();
            let expected: Vec<&[u8]> = result.recovery_iter().collect();
            for at_once in [1, 3, 64] {
                assert_eq!(
                    encode(&bytes, parity, 0..BLOCK, at_once),
                    expected,
                    "{data}+{parity}"
                );
            }
            let columns = 8192..8192 + 1024;
            let some: Vec<&[u8]> = expected.iter().map(|row| &row[columns.clone()]).collect();
            assert_eq!(encode(&bytes, parity, columns, 2), some);
        }
    }

    /// Loses these blocks and compares those that are computed again.
    fn heals(data: &[u8], parity: &[Vec<u8>], lost: u32) -> bool {
        let count = data.len() / BLOCK;
        let is_there = |number: usize| lost >> number & 1 == 0;
        let good: Vec<bool> = (0..count).map(is_there).collect();
        let spare: Vec<bool> = (count..count + parity.len()).map(is_there).collect();
        let erasures = Erasures {
            data: &good,
            parity: &spare,
        };
        let mut decoder = ColumnDecoder::default();
        let read = |block, to: &mut [u8]| -> Result<(), ()> {
            to.copy_from_slice(match block {
                VolumeBlock::Data(number) => {
                    assert!(good[number]);
                    &data[number * BLOCK..][..to.len()]
                }
                VolumeBlock::Parity(number) => {
                    assert!(spare[number]);
                    &parity[number][..to.len()]
                }
            });
            Ok(())
        };
        let mut found = 0;
        let decoded = decoder.decode(&erasures, 64, read, |number, columns| {
            assert_eq!(columns, &data[number * BLOCK..][..64]);
            found += 1;
            Ok(())
        });
        decoded.is_ok() && found == erasures.lost()
    }

    #[test]
    fn every_pattern_up_to_the_limit_heals_and_one_beyond_does_not() {
        for data in 1..=8 {
            // All of up to three, and of as many as there are data blocks where those are few: each
            // pattern takes a transform over the whole field.
            for parity in (1..=data).filter(|parity| *parity <= 3 || data <= 5) {
                let bytes = blocks(data, data as u64);
                let rows = encode(&bytes, parity, 0..BLOCK, 8);
                for lost in 0..1_u32 << (data + parity) {
                    let of_data = (lost & ((1 << data) - 1)).count_ones();
                    let spare = parity as u32 - (lost >> data).count_ones();
                    assert_eq!(
                        heals(&bytes, &rows, lost),
                        of_data <= spare,
                        "{data}+{parity} {lost:b}"
                    );
                }
            }
        }
    }

    #[test]
    fn shares_are_read_and_written() {
        for (text, parts) in [
            ("5%", 5000),
            ("0.5%", 500),
            ("100%", 100_000),
            ("0.001%", 1),
        ] {
            let redundancy: Redundancy = text.parse().unwrap();
            assert_eq!((redundancy.0, &*redundancy.to_string()), (parts, text));
        }
        for text in ["", "5", "%", "0%", "101%", "-1%", "1.2345%", "1e1%", "١%"] {
            assert!(text.parse::<Redundancy>().is_err(), "{text}");
        }
        let five = Redundancy::default();
        let blocks = |data| parity_blocks(data, five);
        assert_eq!([1, 2, 40, 41, 4096].map(blocks), [1, 2, 2, 3, 205]);
    }
}
