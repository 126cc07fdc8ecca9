//! SHA-256 with the instructions of aarch64: one message, or a few interleaved.
//!
//! `sha256h` and `sha256h2` do four rounds between them with a latency of four cycles or so, and the
//! schedule of the next words fills as many: a second message takes what a single one leaves.

use super::K;
use core::arch::aarch64::*;

/// Compresses `blocks` blocks of each of `N` messages.
///
/// # Safety
///
/// NEON and the instructions for SHA-256 are present; each pointer in `data` is readable for
/// `blocks` times 64 bytes.
#[target_feature(enable = "neon,sha2")]
pub(super) unsafe fn compress_interleaved<const N: usize>(
    state: &mut [u32],
    data: &[*const u8],
    blocks: usize,
) {
    assert!(state.len() == 8 * N && data.len() == N);
    let mut abcd = [vdupq_n_u32(0); N];
    let mut efgh = [vdupq_n_u32(0); N];
    for l in 0..N {
        let column: [u32; 8] = core::array::from_fn(|r| state[r * N + l]);
        // SAFETY: four of eight words are 16 bytes.
        abcd[l] = unsafe { vld1q_u32(column[..4].as_ptr()) };
        // SAFETY: as above.
        efgh[l] = unsafe { vld1q_u32(column[4..].as_ptr()) };
    }

    for block in 0..blocks {
        let (start_abcd, start_efgh) = (abcd, efgh);
        // w[q][l]: a ring of four times four words of message l.
        let mut w = [[vdupq_n_u32(0); N]; 4];

        let quad = |l: usize, i: usize| {
            // SAFETY: the caller vouches for `blocks` readable blocks behind each pointer.
            unsafe { vld1q_u8(data[l].add(64 * block + 16 * i)) }
        };
        let constants = |i: usize| {
            let k: &[u32; 4] = &K.as_chunks().0[i];
            // SAFETY: four words are 16 bytes.
            unsafe { vld1q_u32(k.as_ptr()) }
        };
        macro_rules! four_rounds {
            ($i:expr) => {
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
                        w[$i % 4][l] = vsha256su1q_u32(vsha256su0q_u32(w0, w1), w2, w3);
                    }
                    let kw = vaddq_u32(w[$i % 4][l], constants($i));
                    let before = abcd[l];
                    abcd[l] = vsha256hq_u32(before, efgh[l], kw);
                    efgh[l] = vsha256h2q_u32(efgh[l], before, kw);
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
            abcd[l] = vaddq_u32(abcd[l], start_abcd[l]);
            efgh[l] = vaddq_u32(efgh[l], start_efgh[l]);
        }
    }

    for l in 0..N {
        let mut column = [0; 8];
        // SAFETY: four of eight words are 16 bytes.
        unsafe { vst1q_u32(column[..4].as_mut_ptr(), abcd[l]) };
        // SAFETY: as above.
        unsafe { vst1q_u32(column[4..].as_mut_ptr(), efgh[l]) };
        for (r, word) in column.into_iter().enumerate() {
            state[r * N + l] = word;
        }
    }
}

/// Compresses consecutive blocks of one message.
///
/// # Safety
///
/// NEON and the instructions for SHA-256 are present.
#[target_feature(enable = "neon,sha2")]
pub(super) unsafe fn compress(state: &mut [u32], blocks: &[u8]) {
    // SAFETY: the instruction sets are present, and the slice holds that many blocks.
    unsafe { compress_interleaved::<1>(state, &[blocks.as_ptr()], blocks.len() / 64) }
}
