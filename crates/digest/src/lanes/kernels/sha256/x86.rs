//! SHA-256 on x86-64.

mod avx2 {
    super::super::lanes::lanes!("avx2", avx2);
}
mod avx512 {
    super::super::lanes::lanes!("avx512f,avx512bw", avx512);
}

use super::super::may_bmi2;
use super::{avx2_schedule, sha_ni};
use crate::CpuFeatures;
use crate::lanes::select::Selection;
use crate::lanes::{LaneKernel, StreamKernel};

/// 7.2 GB/s. Two interleaved vectors, 32 messages, measured only 5 % faster, their working variables
/// spilling; not worth twice the live messages and twice the buffers in L2.
static AVX512: LaneKernel<u32> = LaneKernel {
    name: "sha256/avx512x16",
    lanes: 16,
    compress: avx512::compress,
};
/// 2.0 GB/s.
static AVX2: LaneKernel<u32> = LaneKernel {
    name: "sha256/avx2x8",
    lanes: 8,
    compress: avx2::compress,
};
/// 3.8 GB/s.
static SHA_NI_4: LaneKernel<u32> = LaneKernel {
    name: "sha256/sha-ni x4",
    lanes: 4,
    compress: sha_ni::compress_interleaved::<4>,
};
/// 3.2 GB/s.
static SHA_NI_2: LaneKernel<u32> = LaneKernel {
    name: "sha256/sha-ni x2",
    lanes: 2,
    compress: sha_ni::compress_interleaved::<2>,
};
/// 2.1 GB/s.
static SHA_NI: StreamKernel<u32> = StreamKernel {
    name: "sha256/sha-ni",
    compress: sha_ni::compress,
};
/// 0.72 GB/s; OpenSSL 3.0 without the SHA extensions 0.75, the plain code of the sha2 crate 0.4.
static AVX2_SCHEDULE: StreamKernel<u32> = StreamKernel {
    name: "sha256/avx2+bmi2",
    compress: avx2_schedule::compress,
};

/// Returns the best kernels, if any of `cpu` helps.
pub(crate) fn select(cpu: CpuFeatures) -> Option<Selection<u32>> {
    if cpu.may_sha_ni() {
        // n messages in 16 lanes run at n/16 of 7.2 GB/s: 7 hardly at the speed of two interleaved.
        // Nor do 3 in 4 lanes.
        let (lanes, few_up_to) = if cpu.may_avx512() {
            (&AVX512, 7)
        } else {
            (&SHA_NI_4, 3)
        };
        Some(Selection {
            lanes: Some(lanes),
            stream: &SHA_NI,
            few: Some(&SHA_NI_2),
            few_up_to,
        })
    } else if may_bmi2(cpu) {
        // 1/16 of 7.2 GB/s and 2/8 of 2.0 GB/s are less than 0.72 GB/s.
        let (lanes, few_up_to) = if cpu.may_avx512() {
            (&AVX512, 1)
        } else {
            (&AVX2, 2)
        };
        Some(Selection {
            lanes: Some(lanes),
            stream: &AVX2_SCHEDULE,
            few: None,
            few_up_to,
        })
    } else {
        None
    }
}
