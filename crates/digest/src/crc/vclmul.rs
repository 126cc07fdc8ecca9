//! Folding with VPCLMULQDQ and AVX-512, four registers of 64 bytes at once.
#![allow(
    unsafe_code,
    reason = "instructions that not every CPU has, and loads through pointers"
)]

use std::arch::x86_64::*;

use super::clmul::{self, order};
use super::{BitOrder, factors, tables};
use crate::CpuFeatures;

/// Bytes of the shortest piece that is worth the way in and out.
pub(super) const LEAST: usize = 256;

/// Returns the register after `data`; `None` where `cpu` has no VPCLMULQDQ, AVX-512 F or BW, or
/// lacks the features that [`clmul`] needs, or the bytes are fewer than [`LEAST`].
pub(super) fn update(cpu: CpuFeatures, order: BitOrder, register: u32, data: &[u8]) -> Option<u32> {
    if !cpu.may_vclmul() || data.len() < LEAST {
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

#[target_feature(enable = "vpclmulqdq,avx512f,avx512bw,pclmulqdq,ssse3,sse4.1")]
fn load<const REFLECTED: bool>(block: &[u8; 64]) -> __m512i {
    // SAFETY: there are 64 bytes to be read, at any alignment.
    let bytes = unsafe { _mm512_loadu_si512(block.as_ptr().cast()) };
    match REFLECTED {
        true => bytes,
        false => {
            let turn = _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
            _mm512_shuffle_epi8(bytes, _mm512_broadcast_i32x4(turn))
        }
    }
}

#[target_feature(enable = "vpclmulqdq,avx512f,avx512bw,pclmulqdq,ssse3,sse4.1")]
fn multipliers<const REFLECTED: bool, const BITS: u32>() -> __m512i {
    let (high, low) = const { factors(order(REFLECTED), BITS) };
    let (first, second) = match REFLECTED {
        true => (high, low),
        false => (low, high),
    };
    _mm512_broadcast_i32x4(_mm_set_epi64x(second as i64, first as i64))
}

/// Returns `sum` carried over, plus `next`.
#[target_feature(enable = "vpclmulqdq,avx512f,avx512bw,pclmulqdq,ssse3,sse4.1")]
fn fold(sum: __m512i, by: __m512i, next: __m512i) -> __m512i {
    let lower = _mm512_clmulepi64_epi128::<0x00>(sum, by);
    let upper = _mm512_clmulepi64_epi128::<0x11>(sum, by);
    // The sum of the three.
    _mm512_ternarylogic_epi64::<0x96>(lower, upper, next)
}

#[target_feature(enable = "vpclmulqdq,avx512f,avx512bw,pclmulqdq,ssse3,sse4.1")]
fn folded<const REFLECTED: bool>(register: u32, data: &[u8]) -> u32 {
    let (wide, rest) = data.as_chunks::<64>();
    let (fours, ones) = wide.as_chunks::<4>();
    let Some((first, fours)) = fours.split_first() else {
        return tables::update(order(REFLECTED), register, data);
    };
    let mut sums = [
        load::<REFLECTED>(&first[0]),
        load::<REFLECTED>(&first[1]),
        load::<REFLECTED>(&first[2]),
        load::<REFLECTED>(&first[3]),
    ];
    let start = _mm512_zextsi128_si512(clmul::start::<REFLECTED>(register));
    sums[0] = _mm512_xor_si512(sums[0], start);
    let by = multipliers::<REFLECTED, 2048>();
    for four in fours {
        for (sum, block) in sums.iter_mut().zip(four) {
            *sum = fold(*sum, by, load::<REFLECTED>(block));
        }
    }
    let by = multipliers::<REFLECTED, 512>();
    let mut sum = sums[0];
    for next in &sums[1..] {
        sum = fold(sum, by, *next);
    }
    for block in ones {
        sum = fold(sum, by, load::<REFLECTED>(block));
    }
    let quarters = [
        _mm512_extracti32x4_epi32::<0>(sum),
        _mm512_extracti32x4_epi32::<1>(sum),
        _mm512_extracti32x4_epi32::<2>(sum),
        _mm512_extracti32x4_epi32::<3>(sum),
    ];
    let (blocks, rest) = rest.as_chunks::<16>();
    clmul::joined::<REFLECTED>(quarters, blocks, rest)
}
