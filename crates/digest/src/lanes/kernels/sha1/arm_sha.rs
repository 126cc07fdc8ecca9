//! SHA-1 with the instructions of aarch64: one message, or a few interleaved, for the reason that
//! SHA-256 has.

use super::K;
use core::arch::aarch64::*;

/// Compresses `blocks` blocks of each of `N` messages.
///
/// # Safety
///
/// NEON and the instructions for SHA-1 are present; each pointer in `data` is readable for `blocks`
/// times 64 bytes.
#[target_feature(enable = "neon,sha2")]
pub(super) unsafe fn compress_interleaved<const N: usize>(
    state: &mut [u32],
    data: &[*const u8],
    blocks: usize,
) {
    assert!(state.len() == 5 * N && data.len() == N);
    let mut abcd = [vdupq_n_u32(0); N];
    let mut e = [0; N];
    for l in 0..N {
        let column: [u32; 4] = core::array::from_fn(|r| state[r * N + l]);
        // SAFETY: four words are 16 bytes.
        abcd[l] = unsafe { vld1q_u32(column.as_ptr()) };
        e[l] = state[4 * N + l];
    }

    for block in 0..blocks {
        let (start_abcd, start_e) = (abcd, e);
        // w[q][l]: a ring of four times four words of message l.
        let mut w = [[vdupq_n_u32(0); N]; 4];

        let quad = |l: usize, i: usize| {
            // SAFETY: the caller vouches for `blocks` readable blocks behind each pointer.
            unsafe { vld1q_u8(data[l].add(64 * block + 16 * i)) }
        };
        macro_rules! four_rounds {
            ($($i:literal)*; $rounds:ident) => {$(
                for l in 0..N {
                    if $i < 4 {
                        w[$i % 4][l] = vreinterpretq_u32_u8(vrev32q_u8(quad(l, $i)));
                    } else {
                        // Over the oldest of the ring.
                        let [w0, w1, w2, w3] = [
                            w[$i % 4][l],
                            w[($i + 1) % 4][l],
                            w[($i + 2) % 4][l],
                            w[($i + 3) % 4][l],
                        ];
                        w[$i % 4][l] = vsha1su1q_u32(vsha1su0q_u32(w0, w1, w2), w3);
                    }
                    let kw = vaddq_u32(w[$i % 4][l], vdupq_n_u32(K[$i / 5]));
                    // A, rotated, is the E four rounds on.
                    let next = vsha1h_u32(vgetq_lane_u32::<0>(abcd[l]));
                    abcd[l] = $rounds(abcd[l], e[l], kw);
                    e[l] = next;
                }
            )*};
        }
        four_rounds!(0 1 2 3 4; vsha1cq_u32);
        four_rounds!(5 6 7 8 9; vsha1pq_u32);
        four_rounds!(10 11 12 13 14; vsha1mq_u32);
        four_rounds!(15 16 17 18 19; vsha1pq_u32);

        for l in 0..N {
            abcd[l] = vaddq_u32(abcd[l], start_abcd[l]);
            e[l] = e[l].wrapping_add(start_e[l]);
        }
    }

    for l in 0..N {
        let mut column = [0; 4];
        // SAFETY: four words are 16 bytes.
        unsafe { vst1q_u32(column.as_mut_ptr(), abcd[l]) };
        for (r, word) in column.into_iter().enumerate() {
            state[r * N + l] = word;
        }
        state[4 * N + l] = e[l];
    }
}

/// Compresses consecutive blocks of one message.
///
/// # Safety
///
/// NEON and the instructions for SHA-1 are present.
#[target_feature(enable = "neon,sha2")]
pub(super) unsafe fn compress(state: &mut [u32], blocks: &[u8]) {
    // SAFETY: the instruction sets are present, and the slice holds that many blocks.
    unsafe { compress_interleaved::<1>(state, &[blocks.as_ptr()], blocks.len() / 64) }
}
