//! AVX2 for kernels: loading message words, so that lane `l` of vector `j` is word `j` of message
//! `l`, and what the texts for lanes of 32-bit words call ([`super`]).

use core::arch::x86_64::*;

/// A word of each of [`LANES`] messages.
pub(super) type Words = __m256i;
/// 32-bit words of a register.
pub(super) const LANES: usize = 8;
/// The number of instructions decides: the next one can start after a cycle.
pub(super) const LATENCY_DECIDES: bool = false;

/// Loads 16 bytes at `data[l] + offset` of eight messages and transposes them: element `l` of
/// result `j` is the `j`-th of four 32-bit words of message `l`.
///
/// The upper halves come in by `vinserti128` from memory, which needs no shuffle unit.
///
/// # Safety
///
/// `data` has 8 pointers, each readable for 16 bytes at `offset`.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) unsafe fn load_4x8(data: &[*const u8], offset: usize) -> [__m256i; 4] {
    // SAFETY: the caller vouches for 16 readable bytes; the load needs no alignment.
    let row = |l: usize| unsafe { _mm_loadu_si128(data[l].add(offset).cast()) };
    let two_rows =
        |l: usize| _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(row(l)), row(l + 4));
    let (r0, r1, r2, r3) = (two_rows(0), two_rows(1), two_rows(2), two_rows(3));
    let low01 = _mm256_unpacklo_epi32(r0, r1);
    let high01 = _mm256_unpackhi_epi32(r0, r1);
    let low23 = _mm256_unpacklo_epi32(r2, r3);
    let high23 = _mm256_unpackhi_epi32(r2, r3);
    [
        _mm256_unpacklo_epi64(low01, low23),
        _mm256_unpackhi_epi64(low01, low23),
        _mm256_unpacklo_epi64(high01, high23),
        _mm256_unpackhi_epi64(high01, high23),
    ]
}

/// Loads the 64-byte block at `data[l] + offset` of eight messages and transposes it: element `l`
/// of result `j` is word `j` of message `l`.
///
/// # Safety
///
/// `data` has 8 pointers, each readable for 64 bytes at `offset`.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) unsafe fn load_block(data: &[*const u8], offset: usize) -> [__m256i; 16] {
    let mut words = [_mm256_setzero_si256(); 16];
    for (q, quad) in words.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        // SAFETY: as for this function.
        *quad = unsafe { load_4x8(data, offset + 16 * q) };
    }
    words
}

/// Loads a word of each message.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn load_row(row: &[u32; LANES]) -> __m256i {
    // SAFETY: a row is 32 bytes.
    unsafe { _mm256_loadu_si256(row.as_ptr().cast()) }
}

/// Stores a word of each message.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn store_row(row: &mut [u32; LANES], v: __m256i) {
    // SAFETY: a row is 32 bytes.
    unsafe { _mm256_storeu_si256(row.as_mut_ptr().cast(), v) };
}

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn splat_32(word: u32) -> __m256i {
    _mm256_set1_epi32(word as i32)
}

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn add_32(x: __m256i, y: __m256i) -> __m256i {
    _mm256_add_epi32(x, y)
}

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn keep_sum(x: __m256i) -> __m256i {
    x
}

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn xor(x: __m256i, y: __m256i) -> __m256i {
    _mm256_xor_si256(x, y)
}

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn xor3(x: __m256i, y: __m256i, z: __m256i) -> __m256i {
    xor(xor(x, y), z)
}

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn choose(x: __m256i, y: __m256i, z: __m256i) -> __m256i {
    xor(_mm256_and_si256(xor(y, z), x), z)
}

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn choose_early(x: __m256i, y: __m256i, z: __m256i) -> __m256i {
    _mm256_or_si256(_mm256_and_si256(x, y), _mm256_andnot_si256(x, z))
}

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn majority(
    _x: __m256i,
    y: __m256i,
    _z: __m256i,
    x_xor_y: __m256i,
    y_xor_z: __m256i,
) -> __m256i {
    xor(_mm256_and_si256(x_xor_y, y_xor_z), y)
}

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn xor_or_not(x: __m256i, y: __m256i, z: __m256i) -> __m256i {
    let not_z = xor(z, _mm256_set1_epi32(-1));
    xor(_mm256_or_si256(not_z, y), x)
}

/// Shifts each 32-bit word right.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn shift_right_32<const BITS: i32>(v: __m256i) -> __m256i {
    _mm256_srli_epi32::<BITS>(v)
}

/// Reverses the bytes of each 32-bit word.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn swap_bytes_32(v: __m256i) -> __m256i {
    let order = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
    _mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(order))
}

/// Rotates each 32-bit word right. `LEFT` is `32 - RIGHT`.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn rotate_right_32<const RIGHT: i32, const LEFT: i32>(v: __m256i) -> __m256i {
    const { assert!(RIGHT + LEFT == 32) };
    _mm256_or_si256(_mm256_srli_epi32::<RIGHT>(v), _mm256_slli_epi32::<LEFT>(v))
}

/// Loads the 128-byte block at `data[l] + offset` of four messages and transposes it: element `l`
/// of result `j` is word `j` of message `l`.
///
/// # Safety
///
/// `data` has 4 pointers, each readable for 128 bytes at `offset`.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) unsafe fn load_16x4(data: &[*const u8], offset: usize) -> [__m256i; 16] {
    let mut words = [_mm256_setzero_si256(); 16];
    for (p, pair) in words.as_chunks_mut::<2>().0.iter_mut().enumerate() {
        // SAFETY: the caller vouches for 128 readable bytes; the load needs no alignment.
        let row = |l: usize| unsafe { _mm_loadu_si128(data[l].add(offset + 16 * p).cast()) };
        let even_rows = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(row(0)), row(2));
        let odd_rows = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(row(1)), row(3));
        *pair = [
            _mm256_unpacklo_epi64(even_rows, odd_rows),
            _mm256_unpackhi_epi64(even_rows, odd_rows),
        ];
    }
    words
}

/// Reverses the bytes of each 64-bit word.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn swap_bytes_64(v: __m256i) -> __m256i {
    let order = _mm_set_epi8(8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
    _mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(order))
}

/// Rotates each 64-bit word right. `LEFT` is `64 - RIGHT`.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn rotate_right_64<const RIGHT: i32, const LEFT: i32>(v: __m256i) -> __m256i {
    const { assert!(RIGHT + LEFT == 64) };
    _mm256_or_si256(_mm256_srli_epi64::<RIGHT>(v), _mm256_slli_epi64::<LEFT>(v))
}
