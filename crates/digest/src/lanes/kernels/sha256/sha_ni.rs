//! SHA-256 with the SHA extensions: one message, or a few interleaved.
//!
//! `sha256rnds2` does two rounds with a latency of 4 cycles, but a new one can start every 2: a
//! single message leaves half of the unit idle, a second message fills it.

use super::K;
use core::arch::x86_64::*;

/// Compresses `blocks` blocks of each of `N` messages.
///
/// # Safety
///
/// SHA-NI, SSSE3 and SSE4.1 are present; each pointer in `data` is readable for `blocks` times
/// 64 bytes.
#[target_feature(enable = "sha,ssse3,sse4.1")]
pub(crate) unsafe fn compress_interleaved<const N: usize>(
    state: &mut [u32],
    data: &[*const u8],
    blocks: usize,
) {
    assert!(state.len() == 8 * N && data.len() == N);
    // The instructions want the working variables paired as ABEF and CDGH, A and C highest.
    let mut abef = [_mm_setzero_si128(); N];
    let mut cdgh = [_mm_setzero_si128(); N];
    for l in 0..N {
        let row = |r: usize| state[r * N + l] as i32;
        abef[l] = _mm_set_epi32(row(0), row(1), row(4), row(5));
        cdgh[l] = _mm_set_epi32(row(2), row(3), row(6), row(7));
    }
    let big_endian = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);

    for block in 0..blocks {
        let (start_abef, start_cdgh) = (abef, cdgh);
        // w[q][l]: a ring of four times four words of message l.
        let mut w = [[_mm_setzero_si128(); N]; 4];

        let quad = |l: usize, i: usize| {
            // SAFETY: the caller vouches for `blocks` readable blocks behind each pointer.
            unsafe { _mm_loadu_si128(data[l].add(64 * block + 16 * i).cast()) }
        };
        let constants = |i: usize| {
            let k: &[u32; 4] = &K.as_chunks().0[i];
            // SAFETY: four words are 16 bytes.
            unsafe { _mm_loadu_si128(k.as_ptr().cast()) }
        };
        macro_rules! four_rounds {
            ($i:expr) => {
                for l in 0..N {
                    if $i < 4 {
                        w[$i % 4][l] = _mm_shuffle_epi8(quad(l, $i), big_endian);
                    }
                    let kw = _mm_add_epi32(w[$i % 4][l], constants($i));
                    cdgh[l] = _mm_sha256rnds2_epu32(cdgh[l], abef[l], kw);
                    abef[l] =
                        _mm_sha256rnds2_epu32(abef[l], cdgh[l], _mm_shuffle_epi32::<0x0e>(kw));
                    if $i >= 3 && $i < 15 {
                        // Words 4i + 4 .. 4i + 8, over the oldest of the ring.
                        let [w0, w1, w2, w3] = [
                            w[($i + 1) % 4][l],
                            w[($i + 2) % 4][l],
                            w[($i + 3) % 4][l],
                            w[$i % 4][l],
                        ];
                        let sum = _mm_add_epi32(
                            _mm_sha256msg1_epu32(w0, w1),
                            _mm_alignr_epi8::<4>(w3, w2),
                        );
                        w[($i + 1) % 4][l] = _mm_sha256msg2_epu32(sum, w3);
                    }
                }
            };
        }
        four_rounds!(0);
        four_rounds!(1);
        four_rounds!(2);
        four_rounds!(3);
        four_rounds!(4);
        four_rounds!(5);
        four_rounds!(6);
        four_rounds!(7);
        four_rounds!(8);
        four_rounds!(9);
        four_rounds!(10);
        four_rounds!(11);
        four_rounds!(12);
        four_rounds!(13);
        four_rounds!(14);
        four_rounds!(15);

        for l in 0..N {
            abef[l] = _mm_add_epi32(abef[l], start_abef[l]);
            cdgh[l] = _mm_add_epi32(cdgh[l], start_cdgh[l]);
        }
    }

    for l in 0..N {
        let mut put = |r: usize, word: i32| state[r * N + l] = word as u32;
        put(0, _mm_extract_epi32::<3>(abef[l]));
        put(1, _mm_extract_epi32::<2>(abef[l]));
        put(2, _mm_extract_epi32::<3>(cdgh[l]));
        put(3, _mm_extract_epi32::<2>(cdgh[l]));
        put(4, _mm_extract_epi32::<1>(abef[l]));
        put(5, _mm_extract_epi32::<0>(abef[l]));
        put(6, _mm_extract_epi32::<1>(cdgh[l]));
        put(7, _mm_extract_epi32::<0>(cdgh[l]));
    }
}

/// Compresses consecutive blocks of one message.
///
/// # Safety
///
/// SHA-NI, SSSE3 and SSE4.1 are present.
#[target_feature(enable = "sha,ssse3,sse4.1")]
pub(crate) unsafe fn compress(state: &mut [u32], blocks: &[u8]) {
    // SAFETY: the instruction sets are present, and the slice holds that many blocks.
    unsafe { compress_interleaved::<1>(state, &[blocks.as_ptr()], blocks.len() / 64) }
}
