//! XXH3's accumulation with vector instructions: one text, which each instruction set's file makes
//! into its own functions. A macro and no trait, since only functions of an instruction set
//! may be inlined into its functions, and what is not inlined here costs more than it computes.

/// The functions of one instruction set: its name, its register, and what it calls the operations
/// on bits and on 64-bit numbers. `swap` exchanges the two numbers in each 128 bits, `scale` is a
/// number times [`PRIME32_1`](super::PRIME32_1), and `halves` are the products of the two halves of
/// each number of a stripe.
macro_rules! accumulation {
    (
        $feature:literal, $register:ty,
        load $load:ident, store $store:ident, xor $xor:ident, add $add:ident,
        shift_right $shift_right:ident, swap $swap:ident, scale $scale:ident, halves $halves:ident
    ) => {
        use super::{Accumulators, BLOCK_STRIPES, LAST_STRIPE_SECRET, SECRET, START, STRIPE};

        const REGISTERS: usize = STRIPE / size_of::<$register>();

        /// See [`Kernel::accumulate`](super::kernel::Kernel::accumulate).
        #[target_feature(enable = $feature)]
        pub(super) fn accumulate(acc: &mut Accumulators, stripes: &[u8], phase: usize) -> usize {
            let mut sums = load(&acc.0);
            let phase = advance(&mut sums, stripes, phase);
            store(&mut acc.0, &sums);
            phase
        }

        /// See [`Kernel::whole`](super::kernel::Kernel::whole).
        #[target_feature(enable = $feature)]
        pub(super) fn whole(stripes: &[u8], last: &[u8; STRIPE]) -> Accumulators {
            let mut sums = load(&START.0);
            advance(&mut sums, stripes, 0);
            stripe(&mut sums, last, LAST_STRIPE_SECRET);
            let mut acc = Accumulators([0; 8]);
            store(&mut acc.0, &sums);
            acc
        }

        #[inline]
        #[target_feature(enable = $feature)]
        fn advance(sums: &mut [$register; REGISTERS], stripes: &[u8], mut phase: usize) -> usize {
            let mut rest = stripes.as_chunks::<STRIPE>().0;
            // Up to the next scramble, stripe by stripe; then whole blocks, unrolled.
            if phase > 0 {
                let (head, tail) = rest.split_at(rest.len().min(BLOCK_STRIPES - phase));
                for bytes in head {
                    stripe(sums, bytes, 8 * phase);
                    phase += 1;
                }
                if phase == BLOCK_STRIPES {
                    scramble(sums);
                    phase = 0;
                }
                rest = tail;
            }
            let (blocks, rest) = rest.as_chunks::<BLOCK_STRIPES>();
            for block in blocks {
                for (i, bytes) in block.iter().enumerate() {
                    stripe(sums, bytes, 8 * i);
                }
                scramble(sums);
            }
            for bytes in rest {
                stripe(sums, bytes, 8 * phase);
                phase += 1;
            }
            phase
        }

        /// Loads sixty-four bytes as registers.
        #[inline]
        #[target_feature(enable = $feature)]
        fn load<T>(bytes: &T) -> [$register; REGISTERS] {
            const { assert!(size_of::<T>() == STRIPE) };
            // SAFETY: 64 bytes are readable, and unaligned loads take any address.
            std::array::from_fn(|i| unsafe {
                $load(std::ptr::from_ref(bytes).cast::<$register>().add(i))
            })
        }

        #[inline]
        #[target_feature(enable = $feature)]
        fn store(words: &mut [u64; 8], sums: &[$register; REGISTERS]) {
            for (i, &sum) in sums.iter().enumerate() {
                // SAFETY: 64 bytes are writable, and unaligned stores take any address.
                unsafe { $store(words.as_mut_ptr().cast::<$register>().add(i), sum) }
            }
        }

        #[inline]
        #[target_feature(enable = $feature)]
        fn secret(at: usize) -> [$register; REGISTERS] {
            load::<[u8; STRIPE]>(SECRET[at..].first_chunk().expect("within the secret"))
        }

        #[inline]
        #[target_feature(enable = $feature)]
        fn stripe(sums: &mut [$register; REGISTERS], bytes: &[u8; STRIPE], at: usize) {
            let data = load(bytes);
            let secret = secret(at);
            let products = $halves(std::array::from_fn(|i| $xor(data[i], secret[i])));
            for i in 0..REGISTERS {
                // The words go to their neighbours' sums.
                sums[i] = $add(products[i], $add(sums[i], $swap(data[i])));
            }
        }

        #[inline]
        #[target_feature(enable = $feature)]
        fn scramble(sums: &mut [$register; REGISTERS]) {
            let secret = secret(SECRET.len() - STRIPE);
            for i in 0..REGISTERS {
                let key = $xor($xor(sums[i], $shift_right::<47>(sums[i])), secret[i]);
                sums[i] = $scale(key);
            }
        }
    };
}

/// The functions `swap`, `scale` and `halves` on x86-64, where a multiplication takes every other
/// 32-bit number of a register.
#[cfg(target_arch = "x86_64")]
macro_rules! multiplications {
    (
        $feature:literal, $register:ty, add $add:ident, mul $mul:ident,
        shift_right $shift_right:ident, shift_left $shift_left:ident,
        shuffle $shuffle:ident, splat $splat:ident
    ) => {
        #[inline]
        #[target_feature(enable = $feature)]
        fn swap(words: $register) -> $register {
            $shuffle::<0b01_00_11_10>(words)
        }

        #[inline]
        #[target_feature(enable = $feature)]
        fn scale(key: $register) -> $register {
            let prime = $splat(super::PRIME32_1 as i32);
            // 64 bits by 32: the low product, and the high one shifted into place.
            let low = $mul(key, prime);
            let high = $mul($shift_right::<32>(key), prime);
            $add(low, $shift_left::<32>(high))
        }

        #[inline]
        #[target_feature(enable = $feature)]
        fn halves(keys: [$register; REGISTERS]) -> [$register; REGISTERS] {
            keys.map(|key| $mul(key, $shift_right::<32>(key)))
        }
    };
}

pub(super) use accumulation;
#[cfg(target_arch = "x86_64")]
pub(super) use multiplications;
