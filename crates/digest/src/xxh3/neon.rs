//! XXH3's accumulation with NEON.
#![allow(unsafe_code)] // loads and stores through pointers

use std::arch::aarch64::*;

super::vector::accumulation!(
    "neon", uint64x2_t,
    load load_any, store store_any, xor veorq_u64, add vaddq_u64,
    shift_right vshrq_n_u64, swap swap, scale scale, halves halves
);

/// # Safety
///
/// Sixteen bytes are readable, at any alignment.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn load_any(from: *const uint64x2_t) -> uint64x2_t {
    // SAFETY: as for this function.
    vreinterpretq_u64_u8(unsafe { vld1q_u8(from.cast()) })
}

/// # Safety
///
/// Sixteen bytes are writable, at any alignment.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn store_any(to: *mut uint64x2_t, words: uint64x2_t) {
    // SAFETY: as for this function.
    unsafe { vst1q_u8(to.cast(), vreinterpretq_u8_u64(words)) }
}

#[inline]
#[target_feature(enable = "neon")]
fn swap(words: uint64x2_t) -> uint64x2_t {
    vextq_u64::<1>(words, words)
}

#[inline]
#[target_feature(enable = "neon")]
fn scale(key: uint64x2_t) -> uint64x2_t {
    // The product of the upper half alone has its place there already.
    let upper = vreinterpretq_u32_u64(vdupq_n_u64(super::PRIME32_1 << 32));
    let high = vmulq_u32(vreinterpretq_u32_u64(key), upper);
    let prime = vdup_n_u32(super::PRIME32_1 as u32);
    vmlal_u32(vreinterpretq_u64_u32(high), vmovn_u64(key), prime)
}

/// Takes two registers at a time: their lower halves in one, their upper halves in another, which is
/// half of the instructions that narrowing each takes.
#[inline]
#[target_feature(enable = "neon")]
fn halves(keys: [uint64x2_t; REGISTERS]) -> [uint64x2_t; REGISTERS] {
    let mut products = keys;
    for pair in products.as_chunks_mut::<2>().0 {
        let [first, second] = pair.map(|key| vreinterpretq_u32_u64(key));
        let (low, high) = (vuzp1q_u32(first, second), vuzp2q_u32(first, second));
        *pair = [
            vmull_u32(vget_low_u32(low), vget_low_u32(high)),
            vmull_high_u32(low, high),
        ];
    }
    products
}
