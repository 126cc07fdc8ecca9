//! MD5 on aarch64.

mod neon {
    super::super::lanes::lanes!("neon", neon);
}

use super::SCALAR;
use crate::CpuFeatures;
use crate::lanes::LaneKernel;
use crate::lanes::select::Selection;

/// Two registers, for the latency of MD5's one chain.
static NEON: LaneKernel<u32> = LaneKernel {
    name: "md5/neon x8",
    lanes: 8,
    compress: neon::compress::<2>,
};

/// Returns the best kernels.
pub(crate) fn select(cpu: CpuFeatures) -> Option<Selection<u32>> {
    let (lanes, few_up_to) = if cpu.may_neon() {
        (Some(&NEON), 2)
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
