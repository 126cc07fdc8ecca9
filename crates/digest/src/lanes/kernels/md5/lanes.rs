//! MD5, as many messages in each of some registers as it has 32-bit lanes.

/// The kernel of one instruction set: its features, and the file with its vectors.
macro_rules! lanes {
    ($feature:literal, $vector:ident) => {
        use $crate::lanes::kernels::$vector::*;
        use $crate::lanes::kernels::md5::{K, sixty_four_steps};

        const ROWS: usize = 4;

        // RFC 1321, section 3.4. What was computed last is b.

        #[target_feature(enable = $feature)]
        #[inline]
        fn f(b: Words, c: Words, d: Words) -> Words {
            choose(b, c, d)
        }

        #[target_feature(enable = $feature)]
        #[inline]
        fn g(b: Words, c: Words, d: Words) -> Words {
            choose_early(d, b, c)
        }

        #[target_feature(enable = $feature)]
        #[inline]
        fn h(b: Words, c: Words, d: Words) -> Words {
            xor3(c, d, b)
        }

        #[target_feature(enable = $feature)]
        #[inline]
        fn i(b: Words, c: Words, d: Words) -> Words {
            xor_or_not(c, b, d)
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
                let mut words = [[splat_32(0); 16]; N];
                for v in 0..N {
                    // SAFETY: the caller vouches for `blocks` readable blocks behind each pointer.
                    words[v] = unsafe { load_block(&data[LANES * v..LANES * (v + 1)], block * 64) };
                }
                h = compress_block(h, words);
            }
            for r in 0..ROWS {
                for v in 0..N {
                    store_row(&mut vectors[r * N + v], h[r][v]);
                }
            }
        }

        /// Compresses one block of words `m`.
        #[target_feature(enable = $feature)]
        #[inline]
        fn compress_block<const N: usize>(
            start: [[Words; N]; ROWS],
            m: [[Words; 16]; N],
        ) -> [[Words; N]; ROWS] {
            let [mut a, mut b, mut c, mut d] = start;
            macro_rules! step {
                ($f:ident, $a:ident $b:ident $c:ident $d:ident, $m:expr, $s:literal, $t:expr) => {
                    let k = splat_32(K[$t]);
                    for v in 0..N {
                        // All but F, its addition and the rotation can happen before b is known.
                        let early = keep_sum(add_32(add_32($a[v], k), m[v][$m]));
                        let sum = add_32(early, $f($b[v], $c[v], $d[v]));
                        $a[v] = add_32(rotate_right_32::<{ 32 - $s }, $s>(sum), $b[v]);
                    }
                };
            }
            sixty_four_steps!(step, a b c d);
            let mut end = [a, b, c, d];
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
