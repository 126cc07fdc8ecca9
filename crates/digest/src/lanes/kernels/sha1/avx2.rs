//! SHA-1, eight messages in the 32-bit lanes of each AVX2 register.

use super::super::avx2::{load_16x8, rotate_right_32, swap_bytes_32};
use super::{K, eighty_rounds};
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
fn choose(b: __m256i, c: __m256i, d: __m256i) -> __m256i {
    xor(_mm256_and_si256(xor(c, d), b), d)
}

#[target_feature(enable = "avx2")]
#[inline]
fn parity(b: __m256i, c: __m256i, d: __m256i) -> __m256i {
    xor(b, xor(c, d))
}

#[target_feature(enable = "avx2")]
#[inline]
fn majority(b: __m256i, c: __m256i, d: __m256i) -> __m256i {
    xor(_mm256_and_si256(xor(c, d), xor(b, d)), d)
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
    assert!(state.len() == 5 * 8 * N && data.len() == 8 * N);
    let vectors = state.as_chunks_mut::<8>().0;
    let mut h = [[_mm256_setzero_si256(); N]; 5];
    for r in 0..5 {
        for v in 0..N {
            // SAFETY: eight words are 32 bytes.
            h[r][v] = unsafe { _mm256_loadu_si256(vectors[r * N + v].as_ptr().cast()) };
        }
    }
    for block in 0..blocks {
        let mut w = [[_mm256_setzero_si256(); N]; 16];
        for v in 0..N {
            // SAFETY: the caller vouches for `blocks` readable blocks behind each pointer.
            let words = unsafe { load_16x8(&data[8 * v..8 * v + 8], block * 64) };
            for (w, word) in w.iter_mut().zip(words) {
                w[v] = swap_bytes_32(word);
            }
        }
        h = compress_block(h, w);
    }
    for r in 0..5 {
        for v in 0..N {
            // SAFETY: eight words are 32 bytes.
            unsafe { _mm256_storeu_si256(vectors[r * N + v].as_mut_ptr().cast(), h[r][v]) };
        }
    }
}

/// Compresses one block of words `w`.
#[target_feature(enable = "avx2")]
#[inline]
fn compress_block<const N: usize>(
    start: [[__m256i; N]; 5],
    mut w: [[__m256i; N]; 16],
) -> [[__m256i; N]; 5] {
    let [mut a, mut b, mut c, mut d, mut e] = start;
    macro_rules! round {
        ($f:ident, $a:ident $b:ident $c:ident $d:ident $e:ident, $t:expr) => {
            let k = _mm256_set1_epi32(K[$t / 20]);
            for v in 0..N {
                if $t >= 16 {
                    let (w13, w8, w2) = (
                        w[($t + 13) % 16][v],
                        w[($t + 8) % 16][v],
                        w[($t + 2) % 16][v],
                    );
                    let xored = xor(xor(w13, w8), xor(w2, w[$t % 16][v]));
                    w[$t % 16][v] = rotate_right_32::<31, 1>(xored);
                }
                let early = add(add(add($e[v], k), w[$t % 16][v]), $f($b[v], $c[v], $d[v]));
                $e[v] = add(early, rotate_right_32::<27, 5>($a[v]));
                $b[v] = rotate_right_32::<2, 30>($b[v]);
            }
        };
    }
    eighty_rounds!(round, a b c d e);
    let mut end = [a, b, c, d, e];
    for r in 0..5 {
        for v in 0..N {
            end[r][v] = add(end[r][v], start[r][v]);
        }
    }
    end
}
