//! SHA-1 with the SHA extensions: one message, or a few interleaved.
//!
//! `sha1rnds4` does four rounds with a latency of 6 cycles on Zen 5, but a new one can start every
//! 2: a single message leaves two thirds of the unit idle, more messages fill it.

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
    assert!(state.len() == 5 * N && data.len() == N);
    // The instructions want ABCD in one register, A highest, and E highest in another.
    let mut abcd = [_mm_setzero_si128(); N];
    let mut e = [_mm_setzero_si128(); N];
    for l in 0..N {
        let row = |r: usize| state[r * N + l] as i32;
        abcd[l] = _mm_set_epi32(row(0), row(1), row(2), row(3));
        e[l] = _mm_set_epi32(row(4), 0, 0, 0);
    }
    let big_endian = _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);

    for block in 0..blocks {
        let (start_abcd, start_e) = (abcd, e);
        // The state before the last four rounds: its A, rotated, is the E four rounds on.
        let mut before = abcd;
        // w[q][l]: a ring of four times four words of message l, the earliest word highest.
        let mut w = [[_mm_setzero_si128(); N]; 4];

        let quad = |l: usize, i: usize| {
            // SAFETY: the caller vouches for `blocks` readable blocks behind each pointer.
            unsafe { _mm_loadu_si128(data[l].add(64 * block + 16 * i).cast()) }
        };
        macro_rules! four_rounds {
            ($i:expr) => {
                for l in 0..N {
                    if $i < 4 {
                        w[$i % 4][l] = _mm_shuffle_epi8(quad(l, $i), big_endian);
                    } else {
                        let [w0, w1, w2, w3] = [
                            w[$i % 4][l],
                            w[($i + 1) % 4][l],
                            w[($i + 2) % 4][l],
                            w[($i + 3) % 4][l],
                        ];
                        let xored = _mm_xor_si128(_mm_sha1msg1_epu32(w0, w1), w2);
                        w[$i % 4][l] = _mm_sha1msg2_epu32(xored, w3);
                    }
                    let e_and_words = if $i == 0 {
                        _mm_add_epi32(e[l], w[0][l])
                    } else {
                        _mm_sha1nexte_epu32(before[l], w[$i % 4][l])
                    };
                    before[l] = abcd[l];
                    abcd[l] = _mm_sha1rnds4_epu32::<{ $i / 5 }>(abcd[l], e_and_words);
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
        four_rounds!(16);
        four_rounds!(17);
        four_rounds!(18);
        four_rounds!(19);

        for l in 0..N {
            e[l] = _mm_sha1nexte_epu32(before[l], start_e[l]);
            abcd[l] = _mm_add_epi32(abcd[l], start_abcd[l]);
        }
    }

    for l in 0..N {
        let mut put = |r: usize, word: i32| state[r * N + l] = word as u32;
        put(0, _mm_extract_epi32::<3>(abcd[l]));
        put(1, _mm_extract_epi32::<2>(abcd[l]));
        put(2, _mm_extract_epi32::<1>(abcd[l]));
        put(3, _mm_extract_epi32::<0>(abcd[l]));
        put(4, _mm_extract_epi32::<3>(e[l]));
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
