//! SHA-1 compression.

mod avx2;
mod avx512;
mod sha_ni;

use crate::CpuFeatures;
use crate::lanes::select::Selection;
use crate::lanes::{LaneKernel, StreamKernel, portable};

/// 12.8 GB/s; with 32 messages in two interleaved registers no more.
static AVX512: LaneKernel<u32> = LaneKernel {
    name: "sha1/avx512x16",
    lanes: 16,
    compress: avx512::compress::<1>,
};
/// 3.9 GB/s; with 16 messages 4.9. That is the latency of Zen 5, which has AVX-512 anyway: where
/// the next instruction can start after one cycle, eight messages keep every unit busy.
static AVX2: LaneKernel<u32> = LaneKernel {
    name: "sha1/avx2x8",
    lanes: 8,
    compress: avx2::compress::<1>,
};
/// 5.6 GB/s.
static SHA_NI_4: LaneKernel<u32> = LaneKernel {
    name: "sha1/sha-ni x4",
    lanes: 4,
    compress: sha_ni::compress_interleaved::<4>,
};
/// 3.9 GB/s.
static SHA_NI_2: LaneKernel<u32> = LaneKernel {
    name: "sha1/sha-ni x2",
    lanes: 2,
    compress: sha_ni::compress_interleaved::<2>,
};
/// 2.1 GB/s.
static SHA_NI: StreamKernel<u32> = StreamKernel {
    name: "sha1/sha-ni",
    compress: sha_ni::compress,
};

/// Returns the best kernels, if any of `cpu` helps.
pub(crate) fn select(cpu: CpuFeatures) -> Option<Selection<u32>> {
    if cpu.may_sha_ni() {
        // n messages in 16 lanes run at n/16 of 12.8 GB/s: 4 slower than two interleaved at 3.9.
        let (lanes, few_up_to) = if cpu.may_avx512() {
            (&AVX512, 4)
        } else {
            (&SHA_NI_4, 2)
        };
        Some(Selection {
            lanes: Some(lanes),
            stream: &SHA_NI,
            few: Some(&SHA_NI_2),
            few_up_to,
        })
    } else if cpu.may_avx2() {
        // The stream is the plain code of the sha1 crate, at 1.1 GB/s.
        let (lanes, few_up_to) = if cpu.may_avx512() {
            (&AVX512, 1)
        } else {
            (&AVX2, 2)
        };
        Some(Selection {
            lanes: Some(lanes),
            stream: &portable::SHA1,
            few: None,
            few_up_to,
        })
    } else {
        None
    }
}

/// FIPS 180-4, section 4.2.1: one constant for each twenty rounds.
const K: [i32; 4] = [
    0x5a827999,
    0x6ed9eba1,
    0x8f1bbcdc_u32 as i32,
    0xca62c1d6_u32 as i32,
];

/// Expands to the eighty rounds, each calling `$round!(F, a b c d e, t)` with `$choose`, `$parity`
/// or `$majority` for F: instead of moving the working variables, their roles rotate, and are back
/// in place after five rounds.
macro_rules! eighty_rounds {
    ($round:ident, $a:ident $b:ident $c:ident $d:ident $e:ident) => {
        eighty_rounds!(@twenty $round, choose, $a $b $c $d $e, 0);
        eighty_rounds!(@twenty $round, parity, $a $b $c $d $e, 20);
        eighty_rounds!(@twenty $round, majority, $a $b $c $d $e, 40);
        eighty_rounds!(@twenty $round, parity, $a $b $c $d $e, 60);
    };
    (@twenty $round:ident, $f:ident, $a:ident $b:ident $c:ident $d:ident $e:ident, $t:expr) => {
        eighty_rounds!(@five $round, $f, $a $b $c $d $e, $t);
        eighty_rounds!(@five $round, $f, $a $b $c $d $e, $t + 5);
        eighty_rounds!(@five $round, $f, $a $b $c $d $e, $t + 10);
        eighty_rounds!(@five $round, $f, $a $b $c $d $e, $t + 15);
    };
    (@five $round:ident, $f:ident, $a:ident $b:ident $c:ident $d:ident $e:ident, $t:expr) => {
        $round!($f, $a $b $c $d $e, $t);
        $round!($f, $e $a $b $c $d, $t + 1);
        $round!($f, $d $e $a $b $c, $t + 2);
        $round!($f, $c $d $e $a $b, $t + 3);
        $round!($f, $b $c $d $e $a, $t + 4);
    };
}
use eighty_rounds;
