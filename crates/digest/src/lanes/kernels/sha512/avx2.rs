//! SHA-512, four messages at once in the 64-bit lanes of AVX2 registers.

use super::super::avx2::{load_16x4, rotate_right_64, swap_bytes_64};
use super::super::sha2::sixteen_rounds;
use super::K;
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

/// Σ0: rotations by 28, 34 and 39, xored.
#[target_feature(enable = "avx2")]
#[inline]
fn big_sigma0(x: __m256i) -> __m256i {
    let first_two = xor(rotate_right_64::<28, 36>(x), rotate_right_64::<34, 30>(x));
    xor(first_two, rotate_right_64::<39, 25>(x))
}

/// Σ1: rotations by 14, 18 and 41, xored.
#[target_feature(enable = "avx2")]
#[inline]
fn big_sigma1(x: __m256i) -> __m256i {
    let first_two = xor(rotate_right_64::<14, 50>(x), rotate_right_64::<18, 46>(x));
    xor(first_two, rotate_right_64::<41, 23>(x))
}

/// σ0: rotations by 1 and 8 and a shift by 7, xored.
#[target_feature(enable = "avx2")]
#[inline]
fn small_sigma0(x: __m256i) -> __m256i {
    let rotations = xor(rotate_right_64::<1, 63>(x), rotate_right_64::<8, 56>(x));
    xor(rotations, _mm256_srli_epi64::<7>(x))
}

/// σ1: rotations by 19 and 61 and a shift by 6, xored.
#[target_feature(enable = "avx2")]
#[inline]
fn small_sigma1(x: __m256i) -> __m256i {
    let rotations = xor(rotate_right_64::<19, 45>(x), rotate_right_64::<61, 3>(x));
    xor(rotations, _mm256_srli_epi64::<6>(x))
}

/// Compresses `blocks` blocks of each of four messages.
///
/// # Safety
///
/// AVX2 is present; each pointer in `data` is readable for `blocks` times 128 bytes.
#[target_feature(enable = "avx2")]
pub(crate) unsafe fn compress(state: &mut [u64], data: &[*const u8], blocks: usize) {
    assert!(state.len() == 8 * LANES && data.len() == LANES);
    let rows = state.as_chunks_mut::<LANES>().0;
    let mut h = [_mm256_setzero_si256(); 8];
    for (h, row) in h.iter_mut().zip(rows.iter()) {
        // SAFETY: a row is 32 bytes.
        *h = unsafe { _mm256_loadu_si256(row.as_ptr().cast()) };
    }
    for block in 0..blocks {
        // SAFETY: the caller vouches for `blocks` readable blocks behind each pointer.
        let words = unsafe { load_16x4(data, block * 128) };
        h = compress_block(h, words);
    }
    for (h, row) in h.iter().zip(rows) {
        // SAFETY: a row is 32 bytes.
        unsafe { _mm256_storeu_si256(row.as_mut_ptr().cast(), *h) };
    }
}

/// Compresses one block, `w` being its transposed words as they are in memory.
#[target_feature(enable = "avx2")]
#[inline]
fn compress_block(start: [__m256i; 8], mut w: [__m256i; 16]) -> [__m256i; 8] {
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = start;
    // Maj(a, b, c) = ((a ^ b) & (b ^ c)) ^ b, and this round's a ^ b is the next one's b ^ c.
    let mut b_xor_c = xor(b, c);

    macro_rules! round {
        ($a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $g:ident $h:ident, $kw:expr) => {
            let choose = xor(_mm256_and_si256(xor($f, $g), $e), $g);
            let t1 = add(add(add($h, $kw), choose), big_sigma1($e));
            let a_xor_b = xor($a, $b);
            let majority = xor(_mm256_and_si256(a_xor_b, b_xor_c), $b);
            b_xor_c = a_xor_b;
            $d = add($d, t1);
            $h = add(t1, add(big_sigma0($a), majority));
        };
    }
    macro_rules! load_round {
        ($a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $g:ident $h:ident, $i:expr) => {
            w[$i] = swap_bytes_64(w[$i]);
            round!($a $b $c $d $e $f $g $h, add(w[$i], _mm256_set1_epi64x(K[$i] as i64)));
        };
    }
    sixteen_rounds!(load_round, a b c d e f g h);
    for k in K[16..].as_chunks::<16>().0 {
        macro_rules! expand_round {
            ($a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $g:ident $h:ident, $i:expr) => {
                let s0 = small_sigma0(w[($i + 1) % 16]);
                let s1 = small_sigma1(w[($i + 14) % 16]);
                w[$i] = add(add(w[$i], w[($i + 9) % 16]), add(s0, s1));
                round!($a $b $c $d $e $f $g $h, add(w[$i], _mm256_set1_epi64x(k[$i] as i64)));
            };
        }
        sixteen_rounds!(expand_round, a b c d e f g h);
    }
    // The last round's a ^ b has no successor.
    let _ = b_xor_c;
    let mut end = [a, b, c, d, e, f, g, h];
    for (end, start) in end.iter_mut().zip(start) {
        *end = add(*end, start);
    }
    end
}
