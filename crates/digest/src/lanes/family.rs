//! Parameters of a compression function for the scheduler: word, block, padding, byte order; and the
//! names of the kernels that serve an algorithm.

use super::select::{self, Selection};
use crate::CpuFeatures;
use crate::algorithm::Algorithm;
use crate::lanes::portable::BLAKE2B_IV;

/// Rows of the largest state, BLAKE2b's.
pub(crate) const MAX_ROWS: usize = 10;

/// A message's chaining value; rows beyond the family's are zero.
pub(crate) type State<W> = [W; MAX_ROWS];

/// The largest padding: two blocks of 128 bytes, when SHA-512's length does not fit the first.
pub(crate) const TAIL: usize = 256;

/// A compression function and the padding around it.
pub(crate) trait Family: 'static {
    /// `u32` or `u64`.
    type Word: Copy + Default + Send + 'static;
    /// Bytes of a block, a power of two.
    const BLOCK: usize;
    /// Words of state, see [`LaneKernel::compress`](super::LaneKernel::compress).
    const ROWS: usize;
    /// True if the last block is compressed differently even if it is full, so that a full block
    /// must wait until more bytes follow or the message ends.
    const HOLD_LAST: bool;

    /// Returns the kernels for this family.
    fn select(cpu: CpuFeatures) -> Selection<Self::Word>;

    /// Pads `tail`, of which `len` bytes are taken (fewer than a block, or up to a whole one with
    /// [`Family::HOLD_LAST`]), for a message of `total` bytes. Returns the blocks to compress, 1 or
    /// 2, and the words to put into rows 8 and 9 before.
    fn pad(tail: &mut [u8; TAIL], len: usize, total: u64) -> (u32, Option<[Self::Word; 2]>);

    /// Returns the state as bytes of the digest.
    fn bytes(state: &State<Self::Word>) -> [u8; 64];
}

/// MD5.
pub(crate) struct Md5;
/// SHA-1.
pub(crate) struct Sha1;
/// SHA-224 and SHA-256.
pub(crate) struct Sha256;
/// SHA-384, SHA-512 and SHA-512/256.
pub(crate) struct Sha512;
/// BLAKE2b of any length, unkeyed.
pub(crate) struct Blake2b;

#[derive(Copy, Clone)]
enum Endian {
    Little,
    Big,
}

/// Applies Merkle–Damgård strengthening: a one bit, zeros, and the length in bits in the last
/// `length` bytes.
#[inline]
fn strengthen(
    tail: &mut [u8; TAIL],
    len: usize,
    total: u64,
    block: usize,
    length: usize,
    order: Endian,
) -> u32 {
    let blocks = if len + 1 + length <= block { 1 } else { 2 };
    let end = blocks * block;
    tail[len] = 0x80;
    tail[len + 1..end].fill(0);
    // 2^61 bytes and more do not exist; the upper half of SHA-512's length gets the lost bits anyway.
    let bits = u128::from(total) << 3;
    match order {
        Endian::Little => tail[end - 8..end].copy_from_slice(&(bits as u64).to_le_bytes()),
        Endian::Big if length == 16 => tail[end - 16..end].copy_from_slice(&bits.to_be_bytes()),
        Endian::Big => tail[end - 8..end].copy_from_slice(&(bits as u64).to_be_bytes()),
    }
    blocks as u32
}

fn bytes32(state: &State<u32>, order: Endian) -> [u8; 64] {
    let mut out = [0; 64];
    for (bytes, word) in out.as_chunks_mut().0.iter_mut().zip(state) {
        *bytes = match order {
            Endian::Little => word.to_le_bytes(),
            Endian::Big => word.to_be_bytes(),
        };
    }
    out
}

fn bytes64(state: &State<u64>, order: Endian) -> [u8; 64] {
    let mut out = [0; 64];
    for (bytes, word) in out.as_chunks_mut().0.iter_mut().zip(state) {
        *bytes = match order {
            Endian::Little => word.to_le_bytes(),
            Endian::Big => word.to_be_bytes(),
        };
    }
    out
}

macro_rules! merkle_damgard {
    ($family:ty, $word:ty, $rows:literal, $block:literal, $length:literal, $order:expr, $bytes:ident, $select:path) => {
        impl Family for $family {
            type Word = $word;
            const BLOCK: usize = $block;
            const ROWS: usize = $rows;
            const HOLD_LAST: bool = false;

            fn select(cpu: CpuFeatures) -> Selection<$word> {
                $select(cpu)
            }

            #[inline]
            fn pad(tail: &mut [u8; TAIL], len: usize, total: u64) -> (u32, Option<[$word; 2]>) {
                (strengthen(tail, len, total, $block, $length, $order), None)
            }

            fn bytes(state: &State<$word>) -> [u8; 64] {
                $bytes(state, $order)
            }
        }
    };
}

merkle_damgard!(Md5, u32, 4, 64, 8, Endian::Little, bytes32, select::md5);
merkle_damgard!(Sha1, u32, 5, 64, 8, Endian::Big, bytes32, select::sha1);
merkle_damgard!(Sha256, u32, 8, 64, 8, Endian::Big, bytes32, select::sha256);
merkle_damgard!(
    Sha512,
    u64,
    8,
    128,
    16,
    Endian::Big,
    bytes64,
    select::sha512
);

impl Blake2b {
    /// Returns true if many messages are hashed in lanes; else each is the crate's, as a single
    /// one is.
    pub(crate) fn has_lanes(cpu: CpuFeatures) -> bool {
        Blake2b::select(cpu).lanes.is_some()
    }
}

impl Family for Blake2b {
    type Word = u64;
    const BLOCK: usize = 128;
    const ROWS: usize = 10;
    const HOLD_LAST: bool = true;

    fn select(cpu: CpuFeatures) -> Selection<u64> {
        select::blake2b(cpu)
    }

    #[inline]
    fn pad(tail: &mut [u8; TAIL], len: usize, total: u64) -> (u32, Option<[u64; 2]>) {
        tail[len..128].fill(0);
        // The kernel adds 128 before the block; the counter must then be the number of real bytes.
        (1, Some([total.wrapping_sub(128), u64::MAX]))
    }

    fn bytes(state: &State<u64>) -> [u8; 64] {
        bytes64(state, Endian::Little)
    }
}

const fn widen<W: Copy, const N: usize>(words: [W; N], zero: W) -> State<W> {
    let mut state = [zero; MAX_ROWS];
    let mut i = 0;
    while i < N {
        state[i] = words[i];
        i += 1;
    }
    state
}

/// RFC 1321 section 3.3.
pub(crate) const MD5_IV: State<u32> =
    widen([0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476], 0);

/// FIPS 180-4 section 5.3.1.
pub(crate) const SHA1_IV: State<u32> = widen(
    [
        0x6745_2301,
        0xefcd_ab89,
        0x98ba_dcfe,
        0x1032_5476,
        0xc3d2_e1f0,
    ],
    0,
);

/// FIPS 180-4 section 5.3.2.
const SHA224_IV: State<u32> = widen(
    [
        0xc105_9ed8,
        0x367c_d507,
        0x3070_dd17,
        0xf70e_5939,
        0xffc0_0b31,
        0x6858_1511,
        0x64f9_8fa7,
        0xbefa_4fa4,
    ],
    0,
);

/// FIPS 180-4 section 5.3.3.
const SHA256_IV: State<u32> = widen(
    [
        0x6a09_e667,
        0xbb67_ae85,
        0x3c6e_f372,
        0xa54f_f53a,
        0x510e_527f,
        0x9b05_688c,
        0x1f83_d9ab,
        0x5be0_cd19,
    ],
    0,
);

/// FIPS 180-4 section 5.3.4.
const SHA384_IV: State<u64> = widen(
    [
        0xcbbb_9d5d_c105_9ed8,
        0x629a_292a_367c_d507,
        0x9159_015a_3070_dd17,
        0x152f_ecd8_f70e_5939,
        0x6733_2667_ffc0_0b31,
        0x8eb4_4a87_6858_1511,
        0xdb0c_2e0d_64f9_8fa7,
        0x47b5_481d_befa_4fa4,
    ],
    0,
);

/// FIPS 180-4 section 5.3.5; BLAKE2b took its constants from here.
const SHA512_IV: State<u64> = widen(BLAKE2B_IV, 0);

/// FIPS 180-4 section 5.3.6.2.
const SHA512_256_IV: State<u64> = widen(
    [
        0x2231_2194_fc2b_f72c,
        0x9f55_5fa3_c84c_64c2,
        0x2393_b86b_6f53_b151,
        0x9638_7719_5940_eabd,
        0x9628_3ee2_a88e_ffe3,
        0xbe5e_1e25_5386_3992,
        0x2b01_99fc_2c85_b8aa,
        0x0eb7_2ddc_81c5_2ca2,
    ],
    0,
);

/// Returns the initial chaining value of SHA-224 or SHA-256.
pub(crate) const fn sha256_iv(algorithm: Algorithm) -> State<u32> {
    match algorithm {
        Algorithm::Sha224 => SHA224_IV,
        _ => SHA256_IV,
    }
}

/// Returns the initial chaining value of SHA-384, SHA-512 or SHA-512/256.
pub(crate) const fn sha512_iv(algorithm: Algorithm) -> State<u64> {
    match algorithm {
        Algorithm::Sha384 => SHA384_IV,
        Algorithm::Sha512_256 => SHA512_256_IV,
        _ => SHA512_IV,
    }
}

/// Returns the initial chaining value of unkeyed BLAKE2b (RFC 7693 section 2.5): the digest's
/// length, fan-out 1 and depth 1 in the first word.
pub(crate) const fn blake2b_iv(algorithm: Algorithm) -> State<u64> {
    let mut state = widen(BLAKE2B_IV, 0);
    state[0] ^= 0x0101_0000 ^ algorithm.digest_len() as u64;
    state
}

impl CpuFeatures {
    /// Returns the kernels that serve an algorithm, e.g. `["sha256/avx512", "sha256/sha-ni"]`: the
    /// one for many messages, if there is one, the one for a few, and the one for a single message.
    /// Empty for algorithms that are always hashed one message at a time.
    pub fn serving(self, algorithm: Algorithm) -> Vec<&'static str> {
        match algorithm {
            Algorithm::Md5 => Md5::select(self).names(),
            Algorithm::Sha1 => Sha1::select(self).names(),
            Algorithm::Sha224 | Algorithm::Sha256 => Sha256::select(self).names(),
            Algorithm::Sha384 | Algorithm::Sha512 | Algorithm::Sha512_256 => {
                Sha512::select(self).names()
            }
            Algorithm::Blake2b | Algorithm::Blake2b256 if Blake2b::has_lanes(self) => {
                Blake2b::select(self).names()
            }
            Algorithm::Blake2b | Algorithm::Blake2b256 => vec!["blake2b/blake2 crate"],
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Algorithm, CpuFeatures};

    #[test]
    fn kernels_are_named_after_their_function() {
        for cpu in CpuFeatures::available() {
            for &algorithm in Algorithm::ALL {
                let family = match algorithm {
                    Algorithm::Sha224 => "sha256/",
                    Algorithm::Sha384 | Algorithm::Sha512_256 => "sha512/",
                    Algorithm::Blake2b256 => "blake2b/",
                    other => &format!("{}/", other.name()),
                };
                for name in cpu.serving(algorithm) {
                    assert!(name.starts_with(family), "{name} serves {algorithm}");
                }
            }
        }
    }
}
