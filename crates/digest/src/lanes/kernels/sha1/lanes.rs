//! SHA-1, as many messages in each of some registers as it has 32-bit lanes.

/// The kernel of one instruction set: its features, and the file with its vectors.
macro_rules! lanes {
    ($feature:literal, $vector:ident) => {
        use $crate::lanes::kernels::$vector::{self as vector, *};
        use $crate::lanes::kernels::sha1::{K, eighty_rounds};

        const ROWS: usize = 5;

        #[target_feature(enable = $feature)]
        #[inline]
        fn parity(b: Words, c: Words, d: Words) -> Words {
            xor3(c, d, b)
        }

        #[target_feature(enable = $feature)]
        #[inline]
        fn majority(b: Words, c: Words, d: Words) -> Words {
            vector::majority(b, d, c, xor(b, d), xor(c, d))
        }

        /// Compresses `blocks` blocks of each of `LANES * N` messages, in `N` interleaved registers.
        ///
        /// # Safety
        ///
        /// The instruction set is present; each pointer in `data` is readable for `blocks` times 64
        /// bytes.
        #[target_feature(enable = $feature)]
        pub(super) unsafe fn compress<const N: usize>(
            state: &mut [u32],
            data: &[*const u8],
            blocks: usize,
        ) {
            assert!(state.len() == ROWS * LANES * N && data.len() == LANES * N);
            let vectors = state.as_chunks_mut::<LANES>().0;
            let mut h = [[splat_32(0); N]; ROWS];
            for r in 0..ROWS {
                for v in 0..N {
                    h[r][v] = load_row(&vectors[r * N + v]);
                }
            }
            for block in 0..blocks {
                let mut w = [[splat_32(0); N]; 16];
                for v in 0..N {
                    // SAFETY: the caller vouches for `blocks` readable blocks behind each pointer.
                    let words = unsafe { load_block(&data[LANES * v..LANES * (v + 1)], block * 64) };
                    for (w, word) in w.iter_mut().zip(words) {
                        w[v] = swap_bytes_32(word);
                    }
                }
                h = compress_block(h, w);
            }
            for r in 0..ROWS {
                for v in 0..N {
                    store_row(&mut vectors[r * N + v], h[r][v]);
                }
            }
        }

        /// Compresses one block of words `w`.
        #[target_feature(enable = $feature)]
        #[inline]
        fn compress_block<const N: usize>(
            start: [[Words; N]; ROWS],
            mut w: [[Words; N]; 16],
        ) -> [[Words; N]; ROWS] {
            let [mut a, mut b, mut c, mut d, mut e] = start;
            macro_rules! round {
                ($f:ident, $a:ident $b:ident $c:ident $d:ident $e:ident, $t:expr) => {
                    let k = splat_32(K[$t / 20]);
                    for v in 0..N {
                        if $t >= 16 {
                            let (w13, w8, w2) = (
                                w[($t + 13) % 16][v],
                                w[($t + 8) % 16][v],
                                w[($t + 2) % 16][v],
                            );
                            let xored = xor(xor3(w13, w8, w2), w[$t % 16][v]);
                            w[$t % 16][v] = rotate_right_32::<31, 1>(xored);
                        }
                        // Only the last addition waits for the last round.
                        let early = add_32(
                            keep_sum(add_32(add_32($e[v], k), w[$t % 16][v])),
                            $f($b[v], $c[v], $d[v]),
                        );
                        $e[v] = add_32(keep_sum(early), rotate_right_32::<27, 5>($a[v]));
                        $b[v] = rotate_right_32::<2, 30>($b[v]);
                    }
                };
            }
            eighty_rounds!(round, a b c d e);
            let mut end = [a, b, c, d, e];
            for r in 0..ROWS {
                for v in 0..N {
                    end[r][v] = add_32(end[r][v], start[r][v]);
                }
            }
            end
        }
    };
}

pub(super) use lanes;
