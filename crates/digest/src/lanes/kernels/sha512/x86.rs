//! SHA-512 on x86-64.

use super::super::may_bmi2;
use super::{avx2, avx2_schedule, avx512};
use crate::CpuFeatures;
use crate::lanes::select::Selection;
use crate::lanes::{LaneKernel, StreamKernel};

/// 5.8 GB/s.
static AVX512: LaneKernel<u64> = LaneKernel {
    name: "sha512/avx512x8",
    lanes: avx512::LANES,
    compress: avx512::compress,
};
/// 1.65 GB/s.
static AVX2: LaneKernel<u64> = LaneKernel {
    name: "sha512/avx2x4",
    lanes: avx2::LANES,
    compress: avx2::compress,
};
/// 1.12 GB/s; OpenSSL 3.0 1.18, the sha2 crate 0.90.
static AVX2_SCHEDULE: StreamKernel<u64> = StreamKernel {
    name: "sha512/avx2+bmi2",
    compress: avx2_schedule::compress,
};

/// Returns the best kernels, if any of `cpu` helps.
pub(crate) fn select(cpu: CpuFeatures) -> Option<Selection<u64>> {
    if !may_bmi2(cpu) {
        return None;
    }
    // 1/8 of 5.8 GB/s and 2/4 of 1.65 GB/s are less than 1.12 GB/s.
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
}
