//! MD5, sixteen messages in the 32-bit lanes of each AVX-512 register.

use super::super::avx512::{keep_sum, load_16x16};
use super::{K, sixty_four_steps};
use core::arch::x86_64::*;

// Truth tables for `vpternlogd`: bit `4x + 2y + z` is the value of the function at (x, y, z), here
// (b, c, d).
const F: i32 = 0xca; // b ? c : d
const G: i32 = 0xe4; // d ? b : c
const H: i32 = 0x96; // b ^ c ^ d
const I: i32 = 0x39; // c ^ (b | !d)

#[target_feature(enable = "avx512f")]
#[inline]
fn add(x: __m512i, y: __m512i) -> __m512i {
    _mm512_add_epi32(x, y)
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
    assert!(state.len() == 4 * 16 * N && data.len() == 16 * N);
    let vectors = state.as_chunks_mut::<16>().0;
    let mut h = [[_mm512_setzero_si512(); N]; 4];
    for r in 0..4 {
        for v in 0..N {
            // SAFETY: sixteen words are 64 bytes.
            h[r][v] = unsafe { _mm512_loadu_si512(vectors[r * N + v].as_ptr().cast()) };
        }
    }
    for block in 0..blocks {
        let mut words = [[_mm512_setzero_si512(); 16]; N];
        for v in 0..N {
            // SAFETY: the caller vouches for `blocks` readable blocks behind each pointer.
            words[v] = unsafe { load_16x16(&data[16 * v..16 * v + 16], block * 64) };
        }
        h = compress_block(h, words);
    }
    for r in 0..4 {
        for v in 0..N {
            // SAFETY: sixteen words are 64 bytes.
            unsafe { _mm512_storeu_si512(vectors[r * N + v].as_mut_ptr().cast(), h[r][v]) };
        }
    }
}

/// Compresses one block of words `m`.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn compress_block<const N: usize>(
    start: [[__m512i; N]; 4],
    m: [[__m512i; 16]; N],
) -> [[__m512i; N]; 4] {
    let [mut a, mut b, mut c, mut d] = start;
    macro_rules! step {
        ($f:ident, $a:ident $b:ident $c:ident $d:ident, $m:expr, $s:literal, $t:expr) => {
            let k = _mm512_set1_epi32(K[$t] as i32);
            for v in 0..N {
                // All but F, its addition and the rotation can happen before b is known.
                let early = keep_sum(add(add($a[v], k), m[v][$m]));
                let sum = add(early, _mm512_ternarylogic_epi32::<{ step!(@$f) }>($b[v], $c[v], $d[v]));
                $a[v] = add(_mm512_rol_epi32::<$s>(sum), $b[v]);
            }
        };
        (@f) => { F };
        (@g) => { G };
        (@h) => { H };
        (@i) => { I };
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
