//! XXH3's accumulation with AVX-512 F.
#![allow(unsafe_code)] // loads and stores through pointers

use std::arch::x86_64::*;

super::vector::accumulation!(
    "avx512f", __m512i,
    load _mm512_loadu_si512, store _mm512_storeu_si512, xor _mm512_xor_si512, add _mm512_add_epi64,
    shift_right _mm512_srli_epi64, swap swap, scale scale, halves halves
);

super::vector::multiplications!(
    "avx512f", __m512i, add _mm512_add_epi64, mul _mm512_mul_epu32,
    shift_right _mm512_srli_epi64, shift_left _mm512_slli_epi64,
    shuffle _mm512_shuffle_epi32, splat _mm512_set1_epi32
);
