//! SHA-1 on aarch64.

mod neon {
    super::super::lanes::lanes!("neon", neon);
}

use super::arm_sha;
use crate::CpuFeatures;
use crate::lanes::select::Selection;
use crate::lanes::{LaneKernel, StreamKernel, portable};

static NEON: LaneKernel<u32> = LaneKernel {
    name: "sha1/neon x4",
    lanes: 4,
    compress: neon::compress::<1>,
};
static SHA_2: LaneKernel<u32> = LaneKernel {
    name: "sha1/sha2 x2",
    lanes: 2,
    compress: arm_sha::compress_interleaved::<2>,
};
static SHA: StreamKernel<u32> = StreamKernel {
    name: "sha1/sha2",
    compress: arm_sha::compress,
};

/// Returns the best kernels, if any of `cpu` helps.
pub(crate) fn select(cpu: CpuFeatures) -> Option<Selection<u32>> {
    if cpu.may_arm_sha() {
        Some(Selection {
            lanes: Some(&SHA_2),
            stream: &SHA,
            few: None,
            few_up_to: 1,
        })
    } else if cpu.may_neon() {
        Some(Selection {
            lanes: Some(&NEON),
            stream: &portable::SHA1,
            few: None,
            few_up_to: 1,
        })
    } else {
        None
    }
}
