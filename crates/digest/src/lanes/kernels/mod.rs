//! SIMD compression functions, one folder per algorithm, one file per instruction set. Each folder's
//! `select` names the kernels for given instruction sets, or none if they are of no use.
//!
//! The figures there and in the files were measured in one process, the kernels taking turns, on 16
//! KiB for each message, in GB/s on an AMD EPYC Zen 5 at 4.2 GHz. That CPU has everything, so
//! choices for CPUs without AVX-512 or the SHA extensions also reason from what is known of those:
//! most start a vector instruction every cycle after its predecessor, where Zen 5 takes two.
#![allow(unsafe_code)]

mod avx2;
mod avx512;
pub(super) mod blake2b;
pub(super) mod md5;
mod scalar;
pub(super) mod sha1;
mod sha2;
pub(super) mod sha256;
pub(super) mod sha512;
#[cfg(test)]
mod tests;

use crate::CpuFeatures;

/// True if AVX2 kernels that also use BMI1 and BMI2 may run: on every CPU with AVX2, if no
/// hypervisor hides them.
fn may_bmi2(cpu: CpuFeatures) -> bool {
    cpu.may_avx2() && crate::cpu::features().bmi
}
