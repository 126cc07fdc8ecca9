//! BLAKE2b, four messages at once in the 64-bit lanes of AVX2 registers.

use super::super::avx2::load_16x4;
use super::{BLAKE2B_IV, twelve_rounds};
use core::arch::x86_64::*;

/// Messages per call.
pub(crate) const LANES: usize = 4;

#[target_feature(enable = "avx2")]
#[inline]
fn add(x: __m256i, y: __m256i) -> __m256i {
    _mm256_add_epi64(x, y)
}

#[target_feature(enable = "avx2")]
#[inline]
fn xor(x: __m256i, y: __m256i) -> __m256i {
    _mm256_xor_si256(x, y)
}

// The four rotations to the right, without a rotate instruction.

#[target_feature(enable = "avx2")]
#[inline]
fn rotate_32(x: __m256i) -> __m256i {
    _mm256_shuffle_epi32::<0b10_11_00_01>(x)
}

#[target_feature(enable = "avx2")]
#[inline]
fn rotate_24(x: __m256i) -> __m256i {
    let order = _mm_set_epi8(10, 9, 8, 15, 14, 13, 12, 11, 2, 1, 0, 7, 6, 5, 4, 3);
    _mm256_shuffle_epi8(x, _mm256_broadcastsi128_si256(order))
}

#[target_feature(enable = "avx2")]
#[inline]
fn rotate_16(x: __m256i) -> __m256i {
    let order = _mm_set_epi8(9, 8, 15, 14, 13, 12, 11, 10, 1, 0, 7, 6, 5, 4, 3, 2);
    _mm256_shuffle_epi8(x, _mm256_broadcastsi128_si256(order))
}

/// Rotates to the right by 63, which is to the left by 1, and doubling is adding.
#[target_feature(enable = "avx2")]
#[inline]
fn rotate_63(x: __m256i) -> __m256i {
    _mm256_or_si256(_mm256_srli_epi64::<63>(x), _mm256_add_epi64(x, x))
}

/// Compresses `blocks` blocks of each of four messages.
///
/// # Safety
///
/// AVX2 is present; each pointer in `data` is readable for `blocks` times 128 bytes.
#[target_feature(enable = "avx2")]
pub(crate) unsafe fn compress(state: &mut [u64], data: &[*const u8], blocks: usize) {
    assert!(state.len() == 10 * LANES && data.len() == LANES);
    let rows = state.as_chunks_mut::<LANES>().0;
    // SAFETY: a row is 32 bytes.
    let row = |r: usize| unsafe { _mm256_loadu_si256(rows[r].as_ptr().cast()) };
    let mut h: [__m256i; 8] = core::array::from_fn(row);
    let (mut counter, flag) = (row(8), row(9));
    for block in 0..blocks {
        // SAFETY: the caller vouches for `blocks` readable blocks behind each pointer.
        let words = unsafe { load_16x4(data, block * 128) };
        counter = add(counter, _mm256_set1_epi64x(128));
        h = compress_block(h, words, counter, flag);
    }
    for (row, v) in rows.iter_mut().zip(h.iter().chain([&counter])) {
        // SAFETY: a row is 32 bytes.
        unsafe { _mm256_storeu_si256(row.as_mut_ptr().cast(), *v) };
    }
}

/// Compresses one block of words `m`.
#[target_feature(enable = "avx2")]
#[inline]
fn compress_block(
    mut h: [__m256i; 8],
    m: [__m256i; 16],
    counter: __m256i,
    flag: __m256i,
) -> [__m256i; 8] {
    let iv = |i: usize| _mm256_set1_epi64x(BLAKE2B_IV[i] as i64);
    let [
        mut v0,
        mut v1,
        mut v2,
        mut v3,
        mut v4,
        mut v5,
        mut v6,
        mut v7,
    ] = h;
    let (mut v8, mut v9, mut v10, mut v11) = (iv(0), iv(1), iv(2), iv(3));
    let (mut v12, mut v13) = (xor(iv(4), counter), iv(5));
    let (mut v14, mut v15) = (xor(iv(6), flag), iv(7));

    // Half of four G functions, whose steps alternate: each of the four waits for itself only.
    macro_rules! half_mix {
        ($($a:ident $b:ident $c:ident $d:ident $m:literal),*; $rotate_d:ident $rotate_b:ident) => {
            $($a = add(add($a, m[$m]), $b);)*
            $($d = $rotate_d(xor($d, $a));)*
            $($c = add($c, $d);)*
            $($b = $rotate_b(xor($b, $c));)*
        };
    }
    macro_rules! round {
        ($x0:literal $y0:literal $x1:literal $y1:literal $x2:literal $y2:literal $x3:literal $y3:literal,
         $x4:literal $y4:literal $x5:literal $y5:literal $x6:literal $y6:literal $x7:literal $y7:literal) => {
            half_mix!(v0 v4 v8 v12 $x0, v1 v5 v9 v13 $x1, v2 v6 v10 v14 $x2, v3 v7 v11 v15 $x3; rotate_32 rotate_24);
            half_mix!(v0 v4 v8 v12 $y0, v1 v5 v9 v13 $y1, v2 v6 v10 v14 $y2, v3 v7 v11 v15 $y3; rotate_16 rotate_63);
            half_mix!(v0 v5 v10 v15 $x4, v1 v6 v11 v12 $x5, v2 v7 v8 v13 $x6, v3 v4 v9 v14 $x7; rotate_32 rotate_24);
            half_mix!(v0 v5 v10 v15 $y4, v1 v6 v11 v12 $y5, v2 v7 v8 v13 $y6, v3 v4 v9 v14 $y7; rotate_16 rotate_63);
        };
    }
    twelve_rounds!(round);

    let low = [v0, v1, v2, v3, v4, v5, v6, v7];
    let high = [v8, v9, v10, v11, v12, v13, v14, v15];
    for ((h, low), high) in h.iter_mut().zip(low).zip(high) {
        *h = xor(*h, xor(low, high));
    }
    h
}
