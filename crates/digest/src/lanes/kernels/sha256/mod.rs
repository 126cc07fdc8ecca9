//! SHA-256 and SHA-224 compression: the two differ only in the initial state.

mod avx2;
mod avx2_schedule;
mod avx512;
mod sha_ni;

use super::may_bmi2;
use crate::CpuFeatures;
use crate::lanes::select::Selection;
use crate::lanes::{LaneKernel, StreamKernel};

/// 7.2 GB/s.
static AVX512: LaneKernel<u32> = LaneKernel {
    name: "sha256/avx512x16",
    lanes: avx512::LANES,
    compress: avx512::compress,
};
/// 2.0 GB/s.
static AVX2: LaneKernel<u32> = LaneKernel {
    name: "sha256/avx2x8",
    lanes: avx2::LANES,
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

/// FIPS 180-4, section 4.2.2: the first 32 bits of the fractional parts of the cube roots of the
/// first 64 primes.
const K: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];
