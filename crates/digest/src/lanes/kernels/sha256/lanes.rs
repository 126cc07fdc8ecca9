//! SHA-256, as many messages at once as a register has 32-bit lanes.

/// The kernel of one instruction set: its features, and the file with its vectors.
macro_rules! lanes {
    ($feature:literal, $vector:ident) => {
        use $crate::lanes::kernels::$vector::*;
        use $crate::lanes::kernels::sha2::sixteen_rounds;
        use $crate::lanes::kernels::sha256::K;

        /// Σ0: rotations by 2, 13 and 22, xored.
        #[target_feature(enable = $feature)]
        #[inline]
        fn big_sigma0(x: Words) -> Words {
            let (r2, r13) = (rotate_right_32::<2, 30>(x), rotate_right_32::<13, 19>(x));
            xor3(r2, r13, rotate_right_32::<22, 10>(x))
        }

        /// Σ1: rotations by 6, 11 and 25, xored.
        #[target_feature(enable = $feature)]
        #[inline]
        fn big_sigma1(x: Words) -> Words {
            let (r6, r11) = (rotate_right_32::<6, 26>(x), rotate_right_32::<11, 21>(x));
            xor3(r6, r11, rotate_right_32::<25, 7>(x))
        }

        /// σ0: rotations by 7 and 18 and a shift by 3, xored.
        #[target_feature(enable = $feature)]
        #[inline]
        fn small_sigma0(x: Words) -> Words {
            let (r7, r18) = (rotate_right_32::<7, 25>(x), rotate_right_32::<18, 14>(x));
            xor3(r7, r18, shift_right_32::<3>(x))
        }

        /// σ1: rotations by 17 and 19 and a shift by 10, xored.
        #[target_feature(enable = $feature)]
        #[inline]
        fn small_sigma1(x: Words) -> Words {
            let (r17, r19) = (rotate_right_32::<17, 15>(x), rotate_right_32::<19, 13>(x));
            xor3(r17, r19, shift_right_32::<10>(x))
        }

        /// Compresses `blocks` blocks of each of [`LANES`] messages.
        ///
        /// # Safety
        ///
        /// The instruction set is present; each pointer in `data` is readable for `blocks` times 64
        /// bytes.
        #[target_feature(enable = $feature)]
        pub(super) unsafe fn compress(state: &mut [u32], data: &[*const u8], blocks: usize) {
            assert!(state.len() == 8 * LANES && data.len() == LANES);
            let rows = state.as_chunks_mut::<LANES>().0;
            let mut h = [splat_32(0); 8];
            for (h, row) in h.iter_mut().zip(rows.iter()) {
                *h = load_row(row);
            }
            for block in 0..blocks {
                // SAFETY: the caller vouches for `blocks` readable blocks behind each pointer.
                let words = unsafe { load_block(data, block * 64) };
                h = compress_block(h, words);
            }
            for (h, row) in h.iter().zip(rows) {
                store_row(row, *h);
            }
        }

        /// Compresses one block, `w` being its transposed words as they are in memory.
        #[target_feature(enable = $feature)]
        #[inline]
        fn compress_block(start: [Words; 8], mut w: [Words; 16]) -> [Words; 8] {
            let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = start;
            // This round's a ^ b is the next one's b ^ c.
            let mut b_xor_c = xor(b, c);

            macro_rules! round {
                ($a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $g:ident $h:ident, $kw:expr) => {
                    let early = add_32(keep_sum(add_32($h, $kw)), choose($e, $f, $g));
                    let sigma1 = big_sigma1($e);
                    let a_xor_b = xor($a, $b);
                    let most = majority($a, $b, $c, a_xor_b, b_xor_c);
                    b_xor_c = a_xor_b;
                    if LATENCY_DECIDES {
                        // The chains through e and a: the sums are in the order in which their terms
                        // become known. Where LLVM is left to order them, this is 10 to 15 % slower (6.2
                        // to 6.5 against 7.2 GB/s with AVX-512 on AMD EPYC Zen 5).
                        $d = add_32(keep_sum(add_32($d, early)), sigma1);
                        let sum = keep_sum(add_32(keep_sum(add_32(early, most)), sigma1));
                        $h = add_32(sum, big_sigma0($a));
                    } else {
                        let t1 = add_32(early, sigma1);
                        $d = add_32($d, t1);
                        $h = add_32(t1, add_32(big_sigma0($a), most));
                    }
                };
            }
            macro_rules! load_round {
                ($a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $g:ident $h:ident, $i:expr) => {
                    w[$i] = swap_bytes_32(w[$i]);
                    round!($a $b $c $d $e $f $g $h, add_32(w[$i], splat_32(K[$i])));
                };
            }
            sixteen_rounds!(load_round, a b c d e f g h);
            for k in K[16..].as_chunks::<16>().0 {
                macro_rules! expand_round {
                    ($a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $g:ident $h:ident, $i:expr) => {
                        let s0 = small_sigma0(w[($i + 1) % 16]);
                        let s1 = small_sigma1(w[($i + 14) % 16]);
                        w[$i] = add_32(add_32(w[$i], w[($i + 9) % 16]), add_32(s0, s1));
                        round!($a $b $c $d $e $f $g $h, add_32(w[$i], splat_32(k[$i])));
                    };
                }
                sixteen_rounds!(expand_round, a b c d e f g h);
            }
            // The last round's a ^ b has no successor.
            let _ = b_xor_c;
            let mut end = [a, b, c, d, e, f, g, h];
            for (end, start) in end.iter_mut().zip(start) {
                *end = add_32(*end, start);
            }
            end
        }
    };
}

pub(super) use lanes;
