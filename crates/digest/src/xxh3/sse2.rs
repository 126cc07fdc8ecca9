//! XXH3's accumulation with SSE2, which every x86-64 has.
#![allow(unsafe_code)] // loads and stores through pointers

use std::arch::x86_64::*;

super::vector::accumulation!(
    "sse2", __m128i,
    load _mm_loadu_si128, store _mm_storeu_si128, xor _mm_xor_si128, add _mm_add_epi64,
    shift_right _mm_srli_epi64, swap swap, scale scale, halves halves
);

super::vector::multiplications!(
    "sse2", __m128i, add _mm_add_epi64, mul _mm_mul_epu32,
    shift_right _mm_srli_epi64, shift_left _mm_slli_epi64,
    shuffle _mm_shuffle_epi32, splat _mm_set1_epi32
);
