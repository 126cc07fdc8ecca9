//! XXH3's accumulation with AVX2.
#![allow(unsafe_code)] // loads and stores through pointers

use std::arch::x86_64::*;

super::vector::accumulation!(
    "avx2", __m256i,
    load _mm256_loadu_si256, store _mm256_storeu_si256, xor _mm256_xor_si256, add _mm256_add_epi64,
    shift_right _mm256_srli_epi64, swap swap, scale scale, halves halves
);

super::vector::multiplications!(
    "avx2", __m256i, add _mm256_add_epi64, mul _mm256_mul_epu32,
    shift_right _mm256_srli_epi64, shift_left _mm256_slli_epi64,
    shuffle _mm256_shuffle_epi32, splat _mm256_set1_epi32
);
