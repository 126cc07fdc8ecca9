//! The CPU features that choose a kernel, found with three questions to CPUID.
//!
//! `is_x86_feature_detected!` asks a dozen, for everything it can be asked about. A hypervisor answers
//! each of them itself, 3.7 µs a question on an AMD EPYC under KVM: 44 µs, where hashing one small
//! file takes a millisecond in all.
#![allow(
    unsafe_code,
    reason = "XGETBV may be executed only where CPUID has said that it may"
)]

use std::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};

use crate::cpu::Features;

/// Leaf 1, register ECX.
const PCLMULQDQ: u32 = 1 << 1;
const SSSE3: u32 = 1 << 9;
const SSE4_1: u32 = 1 << 19;
const OSXSAVE: u32 = 1 << 27;
/// Leaf 7, register EBX.
const BMI1: u32 = 1 << 3;
const AVX2: u32 = 1 << 5;
const BMI2: u32 = 1 << 8;
const AVX512: u32 = 1 << 16 | 1 << 17 | 1 << 30 | 1 << 31;
const SHA: u32 = 1 << 29;
/// Leaf 7, register ECX.
const VPCLMULQDQ: u32 = 1 << 10;
/// Bits of XCR0 for the registers that the operating system saves. The upper halves of AVX's, and
/// beyond them the mask registers, the upper halves of AVX-512's and its upper sixteen.
const SAVES_AVX: u64 = 0b110;
const SAVES_AVX512: u64 = SAVES_AVX | 0b1110_0000;

/// Asks CPUID for the features of this machine.
#[allow(
    unused_unsafe,
    reason = "CPUID is unsafe to call up to Rust 1.93; every x86-64 processor has it"
)]
pub(crate) fn ask() -> Features {
    // SAFETY: every x86-64 processor has CPUID, and leaf 0 says which others there are.
    let (highest, one) = unsafe { (__cpuid(0).eax, __cpuid(1).ecx) };
    let (seven, seven_c) = match highest {
        // SAFETY: as above; a leaf beyond the highest one would give another leaf's answer.
        7.. => unsafe {
            let leaf = __cpuid_count(7, 0);
            (leaf.ebx, leaf.ecx)
        },
        _ => (0, 0),
    };
    let saved = match one & OSXSAVE {
        0 => 0,
        // SAFETY: OSXSAVE says that the operating system has enabled XGETBV.
        _ => unsafe { saved() },
    };
    let has = |register: u32, bits: u32| register & bits == bits;
    let saves = |bits: u64| saved & bits == bits;
    let avx512 = has(seven, AVX512) && saves(SAVES_AVX512);
    let clmul = has(one, PCLMULQDQ | SSSE3 | SSE4_1);
    Features {
        avx2: has(seven, AVX2) && saves(SAVES_AVX),
        avx512,
        sha_ni: has(seven, SHA) && has(one, SSSE3 | SSE4_1),
        bmi: has(seven, BMI1 | BMI2),
        clmul,
        vclmul: avx512 && clmul && has(seven_c, VPCLMULQDQ),
    }
}

/// Returns the register XCR0.
///
/// # Safety
/// The operating system must have enabled XGETBV (OSXSAVE).
#[target_feature(enable = "xsave")]
unsafe fn saved() -> u64 {
    // SAFETY: the caller has made sure of it.
    unsafe { _xgetbv(0) }
}

#[cfg(test)]
mod tests {
    use crate::cpu::{Features, features};

    #[test]
    fn three_questions_find_what_a_dozen_do() {
        let all = Features {
            avx2: is_x86_feature_detected!("avx2"),
            avx512: is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq"),
            sha_ni: is_x86_feature_detected!("sha")
                && is_x86_feature_detected!("ssse3")
                && is_x86_feature_detected!("sse4.1"),
            bmi: is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("bmi2"),
            clmul: is_x86_feature_detected!("pclmulqdq")
                && is_x86_feature_detected!("ssse3")
                && is_x86_feature_detected!("sse4.1"),
            vclmul: false,
        };
        let all = Features {
            vclmul: all.avx512 && all.clmul && is_x86_feature_detected!("vpclmulqdq"),
            ..all
        };
        assert_eq!(features(), all);
    }
}
