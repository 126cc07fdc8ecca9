//! AVX-512 for kernels: loading message words, so that lane `l` of vector `j` is word `j` of message
//! `l`, and what the texts for lanes of 32-bit words call ([`super`]).

use core::arch::x86_64::*;

/// A word of each of [`LANES`] messages.
pub(super) type Words = __m512i;
/// 32-bit words of a register.
pub(super) const LANES: usize = 16;
/// Vector instructions take at least two cycles on Zen 5, so the longest chain of them decides.
pub(super) const LATENCY_DECIDES: bool = true;

// Truth tables for `vpternlogd`: bit `4a + 2b + c` is the value of the function at (a, b, c). The
// result replaces a: which of a function's arguments that is decides how many have to be copied.
const XOR3: i32 = 0x96;
const CHOOSE: i32 = 0xca; // a ? b : c
const CHOOSE_EARLY: i32 = 0xe4; // c ? a : b
const MAJORITY: i32 = 0xe8;
const XOR_OR_NOT: i32 = 0x39; // b ^ (a | !c)

/// Loads the 64-byte block at `data[l] + offset` of sixteen messages and transposes it: element
/// `l` of result `j` is word `j` of message `l`.
///
/// Each message's cache line is read once and whole. Reading 16 bytes at a time saves half the
/// shuffles, but buffers whose addresses agree modulo 4096 (page-aligned slots) then evict one
/// another from L1 between the reads.
///
/// # Safety
///
/// `data` has 16 pointers, each readable for 64 bytes at `offset`.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
pub(super) unsafe fn load_block(data: &[*const u8], offset: usize) -> [__m512i; 16] {
    let row = |l: usize| {
        // SAFETY: the caller vouches for 64 readable bytes; the load needs no alignment.
        unsafe { _mm512_loadu_si512(data[l].add(offset).cast()) }
    };
    let r: [__m512i; 16] = core::array::from_fn(row);
    transpose_16x16(r)
}

/// Transposes sixteen rows of sixteen 32-bit words.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn transpose_16x16(r: [__m512i; 16]) -> [__m512i; 16] {
    // Within each group of four rows: 4x4 transposes of every 128-bit column, in two steps.
    // `quads[4 * g + k]` holds, in its 128-bit part `c`, word `4 * c + k` of rows 4g .. 4g + 3.
    let mut quads = [_mm512_setzero_si512(); 16];
    let mut g = 0;
    while g < 16 {
        let low01 = _mm512_unpacklo_epi32(r[g], r[g + 1]);
        let high01 = _mm512_unpackhi_epi32(r[g], r[g + 1]);
        let low23 = _mm512_unpacklo_epi32(r[g + 2], r[g + 3]);
        let high23 = _mm512_unpackhi_epi32(r[g + 2], r[g + 3]);
        quads[g] = _mm512_unpacklo_epi64(low01, low23);
        quads[g + 1] = _mm512_unpackhi_epi64(low01, low23);
        quads[g + 2] = _mm512_unpacklo_epi64(high01, high23);
        quads[g + 3] = _mm512_unpackhi_epi64(high01, high23);
        g += 4;
    }
    // Then a 4x4 transpose whose elements are the 128-bit parts.
    let mut words = [_mm512_setzero_si512(); 16];
    let mut k = 0;
    while k < 4 {
        let [a, b, c, d] = transpose_parts(quads[k], quads[4 + k], quads[8 + k], quads[12 + k]);
        words[k] = a;
        words[4 + k] = b;
        words[8 + k] = c;
        words[12 + k] = d;
        k += 1;
    }
    words
}

/// Transposes four rows of four 128-bit parts.
#[target_feature(enable = "avx512f")]
#[inline]
fn transpose_parts(r0: __m512i, r1: __m512i, r2: __m512i, r3: __m512i) -> [__m512i; 4] {
    let low01 = _mm512_shuffle_i32x4::<0x44>(r0, r1); // r0.0 r0.1 r1.0 r1.1
    let high01 = _mm512_shuffle_i32x4::<0xee>(r0, r1);
    let low23 = _mm512_shuffle_i32x4::<0x44>(r2, r3);
    let high23 = _mm512_shuffle_i32x4::<0xee>(r2, r3);
    [
        _mm512_shuffle_i32x4::<0x88>(low01, low23),
        _mm512_shuffle_i32x4::<0xdd>(low01, low23),
        _mm512_shuffle_i32x4::<0x88>(high01, high23),
        _mm512_shuffle_i32x4::<0xdd>(high01, high23),
    ]
}

/// Hides how `x` was computed from the optimiser, at no cost.
///
/// Additions are associative, and LLVM orders sums to share terms between them. A kernel whose
/// speed is the latency of one long chain wants the terms that arrive last added last, even if that
/// takes an addition more.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn keep_sum(mut x: __m512i) -> __m512i {
    // SAFETY: no instruction at all; the comment keeps the operand used.
    unsafe {
        core::arch::asm!("/* {0} */", inout(zmm_reg) x, options(pure, nomem, nostack, preserves_flags));
    }
    x
}

/// Loads a word of each message.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn load_row(row: &[u32; LANES]) -> __m512i {
    // SAFETY: a row is 64 bytes.
    unsafe { _mm512_loadu_si512(row.as_ptr().cast()) }
}

/// Stores a word of each message.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn store_row(row: &mut [u32; LANES], v: __m512i) {
    // SAFETY: a row is 64 bytes.
    unsafe { _mm512_storeu_si512(row.as_mut_ptr().cast(), v) };
}

#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn splat_32(word: u32) -> __m512i {
    _mm512_set1_epi32(word as i32)
}

#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn add_32(x: __m512i, y: __m512i) -> __m512i {
    _mm512_add_epi32(x, y)
}

#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn xor(x: __m512i, y: __m512i) -> __m512i {
    _mm512_xor_si512(x, y)
}

#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn xor3(x: __m512i, y: __m512i, z: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<XOR3>(z, x, y)
}

#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn choose(x: __m512i, y: __m512i, z: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<CHOOSE>(x, y, z)
}

#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn choose_early(x: __m512i, y: __m512i, z: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<CHOOSE_EARLY>(y, z, x)
}

#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn majority(
    x: __m512i,
    y: __m512i,
    z: __m512i,
    _x_xor_y: __m512i,
    _y_xor_z: __m512i,
) -> __m512i {
    _mm512_ternarylogic_epi32::<MAJORITY>(x, y, z)
}

#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn xor_or_not(x: __m512i, y: __m512i, z: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<XOR_OR_NOT>(y, x, z)
}

/// Shifts each 32-bit word right.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn shift_right_32<const BITS: u32>(v: __m512i) -> __m512i {
    _mm512_srli_epi32::<BITS>(v)
}

/// Rotates each 32-bit word right. `LEFT` is `32 - RIGHT`.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn rotate_right_32<const RIGHT: i32, const LEFT: i32>(v: __m512i) -> __m512i {
    const { assert!(RIGHT + LEFT == 32) };
    _mm512_ror_epi32::<RIGHT>(v)
}

/// Reverses the bytes of each 32-bit word.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
pub(super) fn swap_bytes_32(v: __m512i) -> __m512i {
    let order = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
    _mm512_shuffle_epi8(v, _mm512_broadcast_i32x4(order))
}

/// Loads 64 bytes at `data[l] + offset` of eight messages and transposes them: element `l` of
/// result `j` is the `j`-th of eight 64-bit words of message `l`.
///
/// # Safety
///
/// `data` has 8 pointers, each readable for 64 bytes at `offset`.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
unsafe fn load_8x8(data: &[*const u8], offset: usize) -> [__m512i; 8] {
    let row = |l: usize| {
        // SAFETY: the caller vouches for 64 readable bytes; the load needs no alignment.
        unsafe { _mm512_loadu_si512(data[l].add(offset).cast()) }
    };
    // Words 2c (low) and 2c + 1 (high) of two neighbouring rows, c being the 128-bit part.
    let pairs = |l: usize| {
        let (even, odd) = (row(l), row(l + 1));
        (
            _mm512_unpacklo_epi64(even, odd),
            _mm512_unpackhi_epi64(even, odd),
        )
    };
    let ((low0, high0), (low2, high2)) = (pairs(0), pairs(2));
    let ((low4, high4), (low6, high6)) = (pairs(4), pairs(6));
    let [w0, w2, w4, w6] = transpose_parts(low0, low2, low4, low6);
    let [w1, w3, w5, w7] = transpose_parts(high0, high2, high4, high6);
    [w0, w1, w2, w3, w4, w5, w6, w7]
}

/// Loads the 128-byte block at `data[l] + offset` of eight messages and transposes it: element `l`
/// of result `j` is word `j` of message `l`.
///
/// # Safety
///
/// `data` has 8 pointers, each readable for 128 bytes at `offset`.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
pub(super) unsafe fn load_16x8(data: &[*const u8], offset: usize) -> [__m512i; 16] {
    let mut words = [_mm512_setzero_si512(); 16];
    for (half, words) in words.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        // SAFETY: as for this function.
        *words = unsafe { load_8x8(data, offset + 64 * half) };
    }
    words
}

/// Reverses the bytes of each 64-bit word.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
pub(super) fn swap_bytes_64(v: __m512i) -> __m512i {
    let order = _mm_set_epi8(8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
    _mm512_shuffle_epi8(v, _mm512_broadcast_i32x4(order))
}
