//! SHA-1 on x86-64.

mod avx2 {
    super::super::lanes::lanes!("avx2", avx2);
}
mod avx512 {
    super::super::lanes::lanes!("avx512f,avx512bw", avx512);
}

use super::sha_ni;
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
