//! SHA-512 on aarch64.

use super::arm_sha512;
use crate::CpuFeatures;
use crate::lanes::select::Selection;
use crate::lanes::{LaneKernel, StreamKernel};

static SHA512_2: LaneKernel<u64> = LaneKernel {
    name: "sha512/sha512 x2",
    lanes: 2,
    compress: arm_sha512::compress_interleaved::<2>,
};
static SHA512: StreamKernel<u64> = StreamKernel {
    name: "sha512/sha512",
    compress: arm_sha512::compress,
};

/// Returns the best kernels, if any of `cpu` helps.
///
/// Two messages in the lanes of NEON would take two thirds of the instructions that one after the
/// other takes in integer registers, which rotate for nothing, on fewer units.
pub(crate) fn select(cpu: CpuFeatures) -> Option<Selection<u64>> {
    cpu.may_arm_sha512().then_some(Selection {
        lanes: Some(&SHA512_2),
        stream: &SHA512,
        few: None,
        few_up_to: 1,
    })
}
