//! Folding with PCLMULQDQ, four registers of sixteen bytes at once.
#![allow(
    unsafe_code,
    reason = "instructions that not every CPU has, and loads through pointers"
)]

use std::arch::x86_64::*;

use super::{BitOrder, factors, tables};
use crate::CpuFeatures;

/// Bytes of the shortest piece that is worth the way in and out.
pub(super) const LEAST: usize = 64;

/// Returns the register after `data`; `None` where `cpu` has no PCLMULQDQ, SSSE3 or SSE4.1, or the
/// bytes are fewer than [`LEAST`].
pub(super) fn update(cpu: CpuFeatures, order: BitOrder, register: u32, data: &[u8]) -> Option<u32> {
    if !cpu.may_clmul() || data.len() < LEAST {
        return None;
    }
    // SAFETY: `cpu` is the proof that the instructions are there.
    Some(unsafe {
        match order {
            BitOrder::Normal => folded::<false>(register, data),
            BitOrder::Reflected => folded::<true>(register, data),
        }
    })
}

pub(super) const fn order(reflected: bool) -> BitOrder {
    match reflected {
        true => BitOrder::Reflected,
        false => BitOrder::Normal,
    }
}

/// Loads sixteen bytes as a polynomial: in the normal order the first byte is the highest.
#[target_feature(enable = "pclmulqdq,ssse3,sse4.1")]
fn load<const REFLECTED: bool>(block: &[u8; 16]) -> __m128i {
    // SAFETY: there are sixteen bytes to be read, at any alignment.
    let bytes = unsafe { _mm_loadu_si128(block.as_ptr().cast()) };
    turned::<REFLECTED>(bytes)
}

/// Converts between memory's order of bytes and the polynomial's.
#[target_feature(enable = "pclmulqdq,ssse3,sse4.1")]
pub(super) fn turned<const REFLECTED: bool>(bytes: __m128i) -> __m128i {
    match REFLECTED {
        true => bytes,
        false => _mm_shuffle_epi8(
            bytes,
            _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
        ),
    }
}

/// Returns the factors for `BITS` bits, the one of higher powers in the half of the register for
/// those.
#[target_feature(enable = "pclmulqdq,ssse3,sse4.1")]
fn multipliers<const REFLECTED: bool, const BITS: u32>() -> __m128i {
    let (high, low) = const { factors(order(REFLECTED), BITS) };
    match REFLECTED {
        // The first eight bytes, of higher powers, are the lower half of a register.
        true => _mm_set_epi64x(low as i64, high as i64),
        false => _mm_set_epi64x(high as i64, low as i64),
    }
}

/// Returns `sum` carried over, plus `next`.
#[target_feature(enable = "pclmulqdq,ssse3,sse4.1")]
fn fold(sum: __m128i, by: __m128i, next: __m128i) -> __m128i {
    let lower = _mm_clmulepi64_si128::<0x00>(sum, by);
    let upper = _mm_clmulepi64_si128::<0x11>(sum, by);
    _mm_xor_si128(_mm_xor_si128(lower, upper), next)
}

#[target_feature(enable = "pclmulqdq,ssse3,sse4.1")]
fn folded<const REFLECTED: bool>(register: u32, data: &[u8]) -> u32 {
    let (blocks, rest) = data.as_chunks::<16>();
    let (fours, blocks) = blocks.as_chunks::<4>();
    let Some((first, fours)) = fours.split_first() else {
        return tables::update(order(REFLECTED), register, data);
    };
    let mut sums = [
        load::<REFLECTED>(&first[0]),
        load::<REFLECTED>(&first[1]),
        load::<REFLECTED>(&first[2]),
        load::<REFLECTED>(&first[3]),
    ];
    sums[0] = _mm_xor_si128(sums[0], start::<REFLECTED>(register));
    let by = multipliers::<REFLECTED, 512>();
    for four in fours {
        for (sum, block) in sums.iter_mut().zip(four) {
            *sum = fold(*sum, by, load::<REFLECTED>(block));
        }
    }
    joined::<REFLECTED>(sums, blocks, rest)
}

/// Places the register where it is added to the first bytes.
#[target_feature(enable = "pclmulqdq,ssse3,sse4.1")]
pub(super) fn start<const REFLECTED: bool>(register: u32) -> __m128i {
    match REFLECTED {
        true => _mm_set_epi32(0, 0, 0, register as i32),
        false => _mm_set_epi32(register as i32, 0, 0, 0),
    }
}

/// Joins four sums that follow each other, and then the rest of a message, to one register.
#[target_feature(enable = "pclmulqdq,ssse3,sse4.1")]
pub(super) fn joined<const REFLECTED: bool>(
    sums: [__m128i; 4],
    blocks: &[[u8; 16]],
    rest: &[u8],
) -> u32 {
    let by = multipliers::<REFLECTED, 128>();
    let mut sum = sums[0];
    for next in &sums[1..] {
        sum = fold(sum, by, *next);
    }
    for block in blocks {
        sum = fold(sum, by, load::<REFLECTED>(block));
    }
    let mut last = [0; 16];
    // SAFETY: there are sixteen bytes to be written to, at any alignment.
    unsafe { _mm_storeu_si128(last.as_mut_ptr().cast(), turned::<REFLECTED>(sum)) };
    let register = tables::update(order(REFLECTED), 0, &last);
    tables::update(order(REFLECTED), register, rest)
}
