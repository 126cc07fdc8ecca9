//! SHA-1, sixteen messages in the 32-bit lanes of each AVX-512 register.

use super::super::avx512::{keep_sum, load_16x16, swap_bytes_32};
use super::{K, eighty_rounds};
use core::arch::x86_64::*;

// Truth tables for `vpternlogd`: bit `4x + 2y + z` is the value of the function at (x, y, z).
const CHOOSE: i32 = 0xca; // x ? y : z
const PARITY: i32 = 0x96;
const MAJORITY: i32 = 0xe8;

#[target_feature(enable = "avx512f")]
#[inline]
fn add(x: __m512i, y: __m512i) -> __m512i {
    _mm512_add_epi32(x, y)
}

#[target_feature(enable = "avx512f")]
#[inline]
fn choose(b: __m512i, c: __m512i, d: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<CHOOSE>(b, c, d)
}

#[target_feature(enable = "avx512f")]
#[inline]
fn parity(b: __m512i, c: __m512i, d: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<PARITY>(b, c, d)
}

#[target_feature(enable = "avx512f")]
#[inline]
fn majority(b: __m512i, c: __m512i, d: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<MAJORITY>(b, c, d)
}

/// Compresses `blocks` blocks of each of `16 * N` messages, in `N` interleaved registers.
///
/// # Safety
///
/// AVX-512 F and BW are present; each pointer in `data` is readable for `blocks` times 64 bytes.
#[target_feature(enable = "avx512f,avx512bw")]
pub(crate) unsafe fn compress<const N: usize>(
    state: &mut [u32],
    data: &[*const u8],
    blocks: usize,
) {
    assert!(state.len() == 5 * 16 * N && data.len() == 16 * N);
    let vectors = state.as_chunks_mut::<16>().0;
    let mut h = [[_mm512_setzero_si512(); N]; 5];
    for r in 0..5 {
        for v in 0..N {
            // SAFETY: sixteen words are 64 bytes.
            h[r][v] = unsafe { _mm512_loadu_si512(vectors[r * N + v].as_ptr().cast()) };
        }
    }
    for block in 0..blocks {
        let mut w = [[_mm512_setzero_si512(); N]; 16];
        for v in 0..N {
            // SAFETY: the caller vouches for `blocks` readable blocks behind each pointer.
            let words = unsafe { load_16x16(&data[16 * v..16 * v + 16], block * 64) };
            for (w, word) in w.iter_mut().zip(words) {
                w[v] = swap_bytes_32(word);
            }
        }
        h = compress_block(h, w);
    }
    for r in 0..5 {
        for v in 0..N {
            // SAFETY: sixteen words are 64 bytes.
            unsafe { _mm512_storeu_si512(vectors[r * N + v].as_mut_ptr().cast(), h[r][v]) };
        }
    }
}

/// Compresses one block of words `w`.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn compress_block<const N: usize>(
    start: [[__m512i; N]; 5],
    mut w: [[__m512i; N]; 16],
) -> [[__m512i; N]; 5] {
    let [mut a, mut b, mut c, mut d, mut e] = start;
    macro_rules! round {
        ($f:ident, $a:ident $b:ident $c:ident $d:ident $e:ident, $t:expr) => {
            let k = _mm512_set1_epi32(K[$t / 20]);
            for v in 0..N {
                if $t >= 16 {
                    let (w13, w8, w2) = (
                        w[($t + 13) % 16][v],
                        w[($t + 8) % 16][v],
                        w[($t + 2) % 16][v],
                    );
                    let xored = _mm512_ternarylogic_epi32::<PARITY>(w13, w8, w2);
                    w[$t % 16][v] = _mm512_rol_epi32::<1>(_mm512_xor_si512(xored, w[$t % 16][v]));
                }
                // Only the last addition waits for the last round.
                let early = add(
                    keep_sum(add(add($e[v], k), w[$t % 16][v])),
                    $f($b[v], $c[v], $d[v]),
                );
                $e[v] = add(keep_sum(early), _mm512_rol_epi32::<5>($a[v]));
                $b[v] = _mm512_rol_epi32::<30>($b[v]);
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
