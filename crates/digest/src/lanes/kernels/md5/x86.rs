//! MD5 on x86-64.

mod avx2 {
    super::super::lanes::lanes!("avx2", avx2);
}
mod avx512 {
    super::super::lanes::lanes!("avx512f,avx512bw", avx512);
}

use super::SCALAR;
use crate::CpuFeatures;
use crate::lanes::LaneKernel;
use crate::lanes::select::Selection;

/// 15.5 GB/s. One register (16 messages) is at half of that, for the latency of MD5's one chain;
/// three and four are slower, their buffers crowding the L1 cache.
static AVX512: LaneKernel<u32> = LaneKernel {
    name: "md5/avx512x32",
    lanes: 32,
    compress: avx512::compress::<2>,
};
/// 5.4 GB/s. One register is at half of that; three are at 7.1, for the latency of Zen 5, which has
/// AVX-512 anyway.
static AVX2: LaneKernel<u32> = LaneKernel {
    name: "md5/avx2x16",
    lanes: 16,
    compress: avx2::compress::<2>,
};

/// Returns the best kernels.
pub(crate) fn select(cpu: CpuFeatures) -> Option<Selection<u32>> {
    // 1/32 of 15.5 GB/s and 2/16 of 5.4 GB/s are less than 0.92 GB/s.
    let (lanes, few_up_to) = if cpu.may_avx512() {
        (Some(&AVX512), 1)
    } else if cpu.may_avx2() {
        (Some(&AVX2), 2)
    } else {
        (None, 0)
    };
    Some(Selection {
        lanes,
        stream: &SCALAR,
        few: None,
        few_up_to,
    })
}
