//! SIMD compression functions, one folder per algorithm, one file per instruction set. Each folder's
//! `select` names the kernels for given instruction sets, or none if they are of no use.
//!
//! The figures there and in the files were measured in one process, the kernels taking turns, on 16
//! KiB for each message, in GB/s on an AMD EPYC Zen 5 at 4.2 GHz. That CPU has everything, so
//! choices for CPUs without AVX-512 or the SHA extensions also reason from what is known of those:
//! most start a vector instruction every cycle after its predecessor, where Zen 5 takes two. Those for
//! aarch64 were seen in emulation only: their choices reason from numbers of instructions, which
//! `cargo xtask isa` counts.
//!
//! MD5, SHA-1 and SHA-256 in lanes have one text each, for all instruction sets: the macro in
//! `lanes.rs` of their folders. A macro and no trait, since only functions of an instruction set may
//! be inlined into its functions. The text calls the functions of one of the files `avx2`, `avx512`
//! and `neon` here, whose names say what they do, but for these:
//!
//! - `choose(x, y, z)` has the bits of y where x has ones, and those of z where it has zeros; so has
//!   `choose_early`, where y and not x is what was computed last.
//! - `xor3(x, y, z)`: z was computed last.
//! - `majority(x, y, z, x ^ y, y ^ z)`: what two of the first three have.
//! - `xor_or_not(x, y, z)`: `x ^ (y | !z)`.
//! - `keep_sum` hides how a sum was computed from the optimiser if `LATENCY_DECIDES`: if the longest
//!   chain of instructions that wait for each other decides about the speed, and not their number.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
pub(super) mod blake2b;
pub(super) mod md5;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;
pub(super) mod sha1;
mod sha2;
pub(super) mod sha256;
pub(super) mod sha512;
#[cfg(test)]
mod tests;

/// True if AVX2 kernels that also use BMI1 and BMI2 may run: on every CPU with AVX2, if no
/// hypervisor hides them.
#[cfg(target_arch = "x86_64")]
fn may_bmi2(cpu: crate::CpuFeatures) -> bool {
    cpu.may_avx2() && crate::cpu::features().bmi
}
