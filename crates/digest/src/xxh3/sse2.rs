//! XXH3's accumulation with SSE2, which every x86-64 has.
#![allow(unsafe_code)] // loads and stores through pointers

use std::arch::x86_64::*;

use super::{Accumulators, BLOCK_STRIPES, LAST_STRIPE_SECRET, PRIME32_1, SECRET, START, STRIPE};

const REGISTERS: usize = STRIPE / size_of::<__m128i>();

/// See [`Kernel::accumulate`](super::kernel::Kernel::accumulate).
#[target_feature(enable = "sse2")]
pub(super) fn accumulate(acc: &mut Accumulators, stripes: &[u8], phase: usize) -> usize {
    let mut sums = load(&acc.0);
    let phase = advance(&mut sums, stripes, phase);
    store(&mut acc.0, &sums);
    phase
}

/// See [`Kernel::whole`](super::kernel::Kernel::whole).
#[target_feature(enable = "sse2")]
pub(super) fn whole(stripes: &[u8], last: &[u8; STRIPE]) -> Accumulators {
    let mut sums = load(&START.0);
    advance(&mut sums, stripes, 0);
    stripe(&mut sums, last, LAST_STRIPE_SECRET);
    let mut acc = Accumulators([0; 8]);
    store(&mut acc.0, &sums);
    acc
}

#[inline]
#[target_feature(enable = "sse2")]
fn advance(sums: &mut [__m128i; REGISTERS], stripes: &[u8], mut phase: usize) -> usize {
    let mut rest = stripes.as_chunks::<STRIPE>().0;
    // Up to the next scramble, stripe by stripe; then whole blocks, unrolled.
    if phase > 0 {
        let (head, tail) = rest.split_at(rest.len().min(BLOCK_STRIPES - phase));
        for bytes in head {
            stripe(sums, bytes, 8 * phase);
            phase += 1;
        }
        if phase == BLOCK_STRIPES {
            scramble(sums);
            phase = 0;
        }
        rest = tail;
    }
    let (blocks, rest) = rest.as_chunks::<BLOCK_STRIPES>();
    for block in blocks {
        for (i, bytes) in block.iter().enumerate() {
            stripe(sums, bytes, 8 * i);
        }
        scramble(sums);
    }
    for bytes in rest {
        stripe(sums, bytes, 8 * phase);
        phase += 1;
    }
    phase
}

/// Sixty-four bytes as registers.
#[inline]
#[target_feature(enable = "sse2")]
fn load<T>(bytes: &T) -> [__m128i; REGISTERS] {
    const { assert!(size_of::<T>() == STRIPE) };
    // SAFETY: 64 bytes are readable, and unaligned loads take any address.
    std::array::from_fn(|i| unsafe {
        _mm_loadu_si128(std::ptr::from_ref(bytes).cast::<__m128i>().add(i))
    })
}

#[inline]
#[target_feature(enable = "sse2")]
fn store(words: &mut [u64; 8], sums: &[__m128i; REGISTERS]) {
    for (i, &sum) in sums.iter().enumerate() {
        // SAFETY: 64 bytes are writable, and unaligned stores take any address.
        unsafe { _mm_storeu_si128(words.as_mut_ptr().cast::<__m128i>().add(i), sum) }
    }
}

#[inline]
#[target_feature(enable = "sse2")]
fn secret(at: usize) -> [__m128i; REGISTERS] {
    load::<[u8; STRIPE]>(SECRET[at..].first_chunk().expect("within the secret"))
}

#[inline]
#[target_feature(enable = "sse2")]
fn stripe(sums: &mut [__m128i; REGISTERS], bytes: &[u8; STRIPE], at: usize) {
    let data = load(bytes);
    let secret = secret(at);
    for i in 0..REGISTERS {
        let key = _mm_xor_si128(data[i], secret[i]);
        let product = _mm_mul_epu32(key, _mm_srli_epi64::<32>(key));
        // The words go to their neighbours' sums.
        let swapped = _mm_shuffle_epi32::<0b01_00_11_10>(data[i]);
        sums[i] = _mm_add_epi64(product, _mm_add_epi64(sums[i], swapped));
    }
}

#[inline]
#[target_feature(enable = "sse2")]
fn scramble(sums: &mut [__m128i; REGISTERS]) {
    let secret = secret(SECRET.len() - STRIPE);
    let prime = _mm_set1_epi32(PRIME32_1 as i32);
    for i in 0..REGISTERS {
        let key = _mm_xor_si128(
            _mm_xor_si128(sums[i], _mm_srli_epi64::<47>(sums[i])),
            secret[i],
        );
        // 64 bits by 32: the low product, and the high one shifted into place.
        let low = _mm_mul_epu32(key, prime);
        let high = _mm_mul_epu32(_mm_srli_epi64::<32>(key), prime);
        sums[i] = _mm_add_epi64(low, _mm_slli_epi64::<32>(high));
    }
}
