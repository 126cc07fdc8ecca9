//! MD5, eight messages in the 32-bit lanes of each AVX2 register.

use super::super::avx2::{load_16x8, rotate_right_32};
use super::{K, sixty_four_steps};
use core::arch::x86_64::*;

#[target_feature(enable = "avx2")]
#[inline]
fn add(x: __m256i, y: __m256i) -> __m256i {
    _mm256_add_epi32(x, y)
}

#[target_feature(enable = "avx2")]
#[inline]
fn xor(x: __m256i, y: __m256i) -> __m256i {
    _mm256_xor_si256(x, y)
}

#[target_feature(enable = "avx2")]
#[inline]
fn f(b: __m256i, c: __m256i, d: __m256i) -> __m256i {
    xor(_mm256_and_si256(xor(c, d), b), d)
}

#[target_feature(enable = "avx2")]
#[inline]
fn g(b: __m256i, c: __m256i, d: __m256i) -> __m256i {
    _mm256_or_si256(_mm256_and_si256(d, b), _mm256_andnot_si256(d, c))
}

#[target_feature(enable = "avx2")]
#[inline]
fn h(b: __m256i, c: __m256i, d: __m256i) -> __m256i {
    xor(xor(c, d), b)
}

#[target_feature(enable = "avx2")]
#[inline]
fn i(b: __m256i, c: __m256i, d: __m256i) -> __m256i {
    let not_d = xor(d, _mm256_set1_epi32(-1));
    xor(_mm256_or_si256(not_d, b), c)
}

/// Compresses `blocks` blocks of each of `8 * N` messages, in `N` interleaved registers.
///
/// # Safety
///
/// AVX2 is present; each pointer in `data` is readable for `blocks` times 64 bytes.
#[target_feature(enable = "avx2")]
pub(crate) unsafe fn compress<const N: usize>(
    state: &mut [u32],
    data: &[*const u8],
    blocks: usize,
) {
    assert!(state.len() == 4 * 8 * N && data.len() == 8 * N);
    let vectors = state.as_chunks_mut::<8>().0;
    let mut h = [[_mm256_setzero_si256(); N]; 4];
    for r in 0..4 {
        for v in 0..N {
            // SAFETY: eight words are 32 bytes.
            h[r][v] = unsafe { _mm256_loadu_si256(vectors[r * N + v].as_ptr().cast()) };
        }
    }
    for block in 0..blocks {
        let mut words = [[_mm256_setzero_si256(); 16]; N];
        for v in 0..N {
            // SAFETY: the caller vouches for `blocks` readable blocks behind each pointer.
            words[v] = unsafe { load_16x8(&data[8 * v..8 * v + 8], block * 64) };
        }
        h = compress_block(h, words);
    }
    for r in 0..4 {
        for v in 0..N {
            // SAFETY: eight words are 32 bytes.
            unsafe { _mm256_storeu_si256(vectors[r * N + v].as_mut_ptr().cast(), h[r][v]) };
        }
    }
}

/// Compresses one block of words `m`.
#[target_feature(enable = "avx2")]
#[inline]
fn compress_block<const N: usize>(
    start: [[__m256i; N]; 4],
    m: [[__m256i; 16]; N],
) -> [[__m256i; N]; 4] {
    let [mut a, mut b, mut c, mut d] = start;
    macro_rules! step {
        ($f:ident, $a:ident $b:ident $c:ident $d:ident, $m:expr, $s:literal, $t:expr) => {
            let k = _mm256_set1_epi32(K[$t] as i32);
            for v in 0..N {
                let early = add(add($a[v], k), m[v][$m]);
                let sum = add(early, $f($b[v], $c[v], $d[v]));
                $a[v] = add(rotate_right_32::<{ 32 - $s }, $s>(sum), $b[v]);
            }
        };
    }
    sixty_four_steps!(step, a b c d);
    let mut end = [a, b, c, d];
    for r in 0..4 {
        for v in 0..N {
            end[r][v] = add(end[r][v], start[r][v]);
        }
    }
    end
}
