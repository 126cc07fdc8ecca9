//! SHA-512 with the instructions of aarch64: one message, or a few interleaved, for the reason that
//! SHA-256 has.

use super::K;
use core::arch::aarch64::*;

/// Compresses `blocks` blocks of each of `N` messages.
///
/// # Safety
///
/// NEON and the instructions for SHA-512 are present; each pointer in `data` is readable for
/// `blocks` times 128 bytes.
#[target_feature(enable = "neon,sha3")]
pub(super) unsafe fn compress_interleaved<const N: usize>(
    state: &mut [u64],
    data: &[*const u8],
    blocks: usize,
) {
    assert!(state.len() == 8 * N && data.len() == N);
    // h[p][l]: the words 2p and 2p + 1 of message l, which are AB, CD, EF and GH.
    let mut h = [[vdupq_n_u64(0); N]; 4];
    for p in 0..4 {
        for l in 0..N {
            let words = [state[2 * p * N + l], state[(2 * p + 1) * N + l]];
            // SAFETY: two words are 16 bytes.
            h[p][l] = unsafe { vld1q_u64(words.as_ptr()) };
        }
    }

    for block in 0..blocks {
        let [mut ab, mut cd, mut ef, mut gh] = h;
        // w[p][l]: a ring of eight times two words of message l.
        let mut w = [[vdupq_n_u64(0); N]; 8];

        let pair = |l: usize, i: usize| {
            // SAFETY: the caller vouches for `blocks` readable blocks behind each pointer.
            unsafe { vld1q_u8(data[l].add(128 * block + 16 * i)) }
        };
        let constants = |i: usize| {
            let k: &[u64; 2] = &K.as_chunks().0[i];
            // SAFETY: two words are 16 bytes.
            unsafe { vld1q_u64(k.as_ptr()) }
        };
        // Two rounds: GH becomes the next AB, and CD the next EF.
        macro_rules! two_rounds {
            ($trip:expr, $i:expr, $ab:ident $cd:ident $ef:ident $gh:ident) => {
                for l in 0..N {
                    if $trip == 0 {
                        w[$i][l] = vreinterpretq_u64_u8(vrev64q_u8(pair(l, $i)));
                    } else {
                        // Over the oldest of the ring.
                        let first = vsha512su0q_u64(w[$i][l], w[($i + 1) % 8][l]);
                        let w9 = vextq_u64::<1>(w[($i + 4) % 8][l], w[($i + 5) % 8][l]);
                        w[$i][l] = vsha512su1q_u64(first, w[($i + 7) % 8][l], w9);
                    }
                    let kw = vaddq_u64(w[$i][l], constants(8 * $trip + $i));
                    let sum = vaddq_u64(vextq_u64::<1>(kw, kw), $gh[l]);
                    let fg = vextq_u64::<1>($ef[l], $gh[l]);
                    let de = vextq_u64::<1>($cd[l], $ef[l]);
                    let t1 = vsha512hq_u64(sum, fg, de);
                    $gh[l] = vsha512h2q_u64(t1, $cd[l], $ab[l]);
                    $cd[l] = vaddq_u64($cd[l], t1);
                }
            };
        }
        macro_rules! sixteen_rounds {
            ($trip:expr) => {
                two_rounds!($trip, 0, ab cd ef gh);
                two_rounds!($trip, 1, gh ab cd ef);
                two_rounds!($trip, 2, ef gh ab cd);
                two_rounds!($trip, 3, cd ef gh ab);
                two_rounds!($trip, 4, ab cd ef gh);
                two_rounds!($trip, 5, gh ab cd ef);
                two_rounds!($trip, 6, ef gh ab cd);
                two_rounds!($trip, 7, cd ef gh ab);
            };
        }
        sixteen_rounds!(0);
        for trip in 1..5 {
            sixteen_rounds!(trip);
        }
        for (h, end) in h.iter_mut().zip([ab, cd, ef, gh]) {
            for l in 0..N {
                h[l] = vaddq_u64(h[l], end[l]);
            }
        }
    }

    for p in 0..4 {
        for l in 0..N {
            state[2 * p * N + l] = vgetq_lane_u64::<0>(h[p][l]);
            state[(2 * p + 1) * N + l] = vgetq_lane_u64::<1>(h[p][l]);
        }
    }
}

/// Compresses consecutive blocks of one message.
///
/// # Safety
///
/// NEON and the instructions for SHA-512 are present.
#[target_feature(enable = "neon,sha3")]
pub(super) unsafe fn compress(state: &mut [u64], blocks: &[u8]) {
    // SAFETY: the instruction sets are present, and the slice holds that many blocks.
    unsafe { compress_interleaved::<1>(state, &[blocks.as_ptr()], blocks.len() / 128) }
}
