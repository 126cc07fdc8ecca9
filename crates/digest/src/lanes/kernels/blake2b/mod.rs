//! BLAKE2b compression.
//!
//! State rows: eight chaining words, the byte counter, the finalisation flag. Each block adds its
//! 128 bytes to the counter before it is compressed.

mod avx2;
mod avx512;

use crate::CpuFeatures;
use crate::lanes::LaneKernel;
use crate::lanes::portable::{self, BLAKE2B_IV};
use crate::lanes::select::Selection;

/// 6.8 GB/s; with two interleaved registers, 16 messages, no more: their working variables spill.
static AVX512: LaneKernel<u64> = LaneKernel {
    name: "blake2b/avx512x8",
    lanes: avx512::LANES,
    compress: avx512::compress,
};
/// 2.6 GB/s.
static AVX2: LaneKernel<u64> = LaneKernel {
    name: "blake2b/avx2x4",
    lanes: avx2::LANES,
    compress: avx2::compress,
};

/// Returns the best kernels, if any of `cpu` helps.
///
/// One message runs at 1.6 GB/s in plain code. With a row of its matrix in each AVX2 register it
/// was at 0.8: one chain of vector instructions, and message words to be gathered.
pub(crate) fn select(cpu: CpuFeatures) -> Option<Selection<u64>> {
    // 1/8 of 6.8 GB/s and 2/4 of 2.6 GB/s are less than 1.6 GB/s.
    let (lanes, few_up_to) = if cpu.may_avx512() {
        (&AVX512, 1)
    } else if cpu.may_avx2() {
        (&AVX2, 2)
    } else {
        return None;
    };
    Some(Selection {
        lanes: Some(lanes),
        stream: &portable::BLAKE2B,
        few: None,
        few_up_to,
    })
}

/// Expands to the twelve rounds, each calling `$round!` with its permutation of the message words
/// (RFC 7693, section 2.7): first those for the columns, then those for the diagonals.
macro_rules! twelve_rounds {
    ($round:ident) => {
        $round!(0 1 2 3 4 5 6 7, 8 9 10 11 12 13 14 15);
        $round!(14 10 4 8 9 15 13 6, 1 12 0 2 11 7 5 3);
        $round!(11 8 12 0 5 2 15 13, 10 14 3 6 7 1 9 4);
        $round!(7 9 3 1 13 12 11 14, 2 6 5 10 4 0 15 8);
        $round!(9 0 5 7 2 4 10 15, 14 1 11 12 6 8 3 13);
        $round!(2 12 6 10 0 11 8 3, 4 13 7 5 15 14 1 9);
        $round!(12 5 1 15 14 13 4 10, 0 7 6 3 9 2 8 11);
        $round!(13 11 7 14 12 1 3 9, 5 0 15 4 8 6 2 10);
        $round!(6 15 14 9 11 3 0 8, 12 2 13 7 1 4 10 5);
        $round!(10 2 8 4 7 6 1 5, 15 11 9 14 3 12 13 0);
        $round!(0 1 2 3 4 5 6 7, 8 9 10 11 12 13 14 15);
        $round!(14 10 4 8 9 15 13 6, 1 12 0 2 11 7 5 3);
    };
}
use twelve_rounds;
