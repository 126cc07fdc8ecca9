//! NEON for kernels: loading message words, so that lane `l` of vector `j` is word `j` of message
//! `l`, and what the texts for lanes of 32-bit words call ([`super`]).

use core::arch::aarch64::*;

/// A word of each of [`LANES`] messages.
pub(super) type Words = uint32x4_t;
/// 32-bit words of a register.
pub(super) const LANES: usize = 4;
/// The number of instructions is what is known.
pub(super) const LATENCY_DECIDES: bool = false;

/// Loads the 64-byte block at `data[l] + offset` of four messages and transposes it: element `l` of
/// result `j` is word `j` of message `l`.
///
/// # Safety
///
/// `data` has 4 pointers, each readable for 64 bytes at `offset`.
#[target_feature(enable = "neon")]
#[inline]
pub(super) unsafe fn load_block(data: &[*const u8], offset: usize) -> [uint32x4_t; 16] {
    let mut words = [splat_32(0); 16];
    for (q, quad) in words.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        // SAFETY: the caller vouches for 64 readable bytes; the load needs no alignment.
        let row = |l: usize| unsafe { vld1q_u8(data[l].add(offset + 16 * q)) };
        // Pairs of words: those with even numbers, and those with odd ones, of two messages.
        let pairs = |l: usize| {
            let (first, second) = (row(l), row(l + 1));
            let (first, second) = (vreinterpretq_u32_u8(first), vreinterpretq_u32_u8(second));
            [vtrn1q_u32(first, second), vtrn2q_u32(first, second)].map(|v| vreinterpretq_u64_u32(v))
        };
        let ([even01, odd01], [even23, odd23]) = (pairs(0), pairs(2));
        *quad = [
            vtrn1q_u64(even01, even23),
            vtrn1q_u64(odd01, odd23),
            vtrn2q_u64(even01, even23),
            vtrn2q_u64(odd01, odd23),
        ]
        .map(|v| vreinterpretq_u32_u64(v));
    }
    words
}

/// Loads a word of each message.
#[target_feature(enable = "neon")]
#[inline]
pub(super) fn load_row(row: &[u32; LANES]) -> uint32x4_t {
    // SAFETY: a row is 16 bytes.
    unsafe { vld1q_u32(row.as_ptr()) }
}

/// Stores a word of each message.
#[target_feature(enable = "neon")]
#[inline]
pub(super) fn store_row(row: &mut [u32; LANES], v: uint32x4_t) {
    // SAFETY: a row is 16 bytes.
    unsafe { vst1q_u32(row.as_mut_ptr(), v) };
}

#[target_feature(enable = "neon")]
#[inline]
pub(super) fn splat_32(word: u32) -> uint32x4_t {
    vdupq_n_u32(word)
}

#[target_feature(enable = "neon")]
#[inline]
pub(super) fn add_32(x: uint32x4_t, y: uint32x4_t) -> uint32x4_t {
    vaddq_u32(x, y)
}

#[target_feature(enable = "neon")]
#[inline]
pub(super) fn keep_sum(x: uint32x4_t) -> uint32x4_t {
    x
}

#[target_feature(enable = "neon")]
#[inline]
pub(super) fn xor(x: uint32x4_t, y: uint32x4_t) -> uint32x4_t {
    veorq_u32(x, y)
}

#[target_feature(enable = "neon")]
#[inline]
pub(super) fn xor3(x: uint32x4_t, y: uint32x4_t, z: uint32x4_t) -> uint32x4_t {
    xor(xor(x, y), z)
}

#[target_feature(enable = "neon")]
#[inline]
pub(super) fn choose(x: uint32x4_t, y: uint32x4_t, z: uint32x4_t) -> uint32x4_t {
    vbslq_u32(x, y, z)
}

#[target_feature(enable = "neon")]
#[inline]
pub(super) fn choose_early(x: uint32x4_t, y: uint32x4_t, z: uint32x4_t) -> uint32x4_t {
    choose(x, y, z)
}

#[target_feature(enable = "neon")]
#[inline]
pub(super) fn majority(
    _x: uint32x4_t,
    y: uint32x4_t,
    z: uint32x4_t,
    x_xor_y: uint32x4_t,
    _y_xor_z: uint32x4_t,
) -> uint32x4_t {
    // Where x and y differ, z has the majority.
    choose(x_xor_y, z, y)
}

#[target_feature(enable = "neon")]
#[inline]
pub(super) fn xor_or_not(x: uint32x4_t, y: uint32x4_t, z: uint32x4_t) -> uint32x4_t {
    xor(vornq_u32(y, z), x)
}

/// Shifts each 32-bit word right.
#[target_feature(enable = "neon")]
#[inline]
pub(super) fn shift_right_32<const BITS: i32>(v: uint32x4_t) -> uint32x4_t {
    vshrq_n_u32::<BITS>(v)
}

/// Rotates each 32-bit word right. `LEFT` is `32 - RIGHT`.
#[target_feature(enable = "neon")]
#[inline]
pub(super) fn rotate_right_32<const RIGHT: i32, const LEFT: i32>(v: uint32x4_t) -> uint32x4_t {
    const { assert!(RIGHT + LEFT == 32) };
    match RIGHT {
        16 => vreinterpretq_u32_u16(vrev32q_u16(vreinterpretq_u16_u32(v))),
        // Shifts right into what the shift to the left has left empty: two instructions.
        _ => vsriq_n_u32::<RIGHT>(vshlq_n_u32::<LEFT>(v), v),
    }
}

/// Reverses the bytes of each 32-bit word.
#[target_feature(enable = "neon")]
#[inline]
pub(super) fn swap_bytes_32(v: uint32x4_t) -> uint32x4_t {
    vreinterpretq_u32_u8(vrev32q_u8(vreinterpretq_u8_u32(v)))
}
