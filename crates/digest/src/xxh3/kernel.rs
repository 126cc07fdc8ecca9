//! The accumulation loop's kernels behind one type.
#![allow(unsafe_code)] // calls functions of instruction sets that were detected

#[cfg(target_arch = "aarch64")]
use super::neon;
use super::{Accumulators, STRIPE, scalar};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512, sse2};
use crate::CpuFeatures;

/// A kernel that may run: it comes from a [`CpuFeatures`], which proves it, and from nowhere else.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(super) struct Kernel(Which);

#[derive(Copy, Clone, Debug, Eq, PartialEq)]
#[cfg_attr(target_arch = "x86_64", allow(dead_code))] // `Scalar` is for the other architectures
enum Which {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Sse2,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "aarch64")]
    Neon,
}

impl Kernel {
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub(super) fn select(cpu: CpuFeatures) -> Kernel {
        if cpu.may_avx512() {
            Kernel(Which::Avx512)
        } else if cpu.may_avx2() {
            Kernel(Which::Avx2)
        } else {
            Kernel(Which::Sse2)
        }
    }

    #[cfg(target_arch = "aarch64")]
    #[inline]
    pub(super) fn select(cpu: CpuFeatures) -> Kernel {
        match cpu.may_neon() {
            true => Kernel(Which::Neon),
            false => Kernel(Which::Scalar),
        }
    }

    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    #[inline]
    pub(super) fn select(_cpu: CpuFeatures) -> Kernel {
        Kernel(Which::Scalar)
    }

    /// Accumulates whole stripes and scrambles after every sixteenth, of which `phase` (0 to 15)
    /// are already done. Returns the new phase.
    #[inline]
    pub(super) fn accumulate(self, acc: &mut Accumulators, stripes: &[u8], phase: usize) -> usize {
        debug_assert!(stripes.len().is_multiple_of(STRIPE));
        match self.0 {
            Which::Scalar => scalar::accumulate(acc, stripes, phase),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: SSE2 is part of x86-64.
            Which::Sse2 => unsafe { sse2::accumulate(acc, stripes, phase) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the value came from a `CpuFeatures` with AVX2.
            Which::Avx2 => unsafe { avx2::accumulate(acc, stripes, phase) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the value came from a `CpuFeatures` with AVX-512.
            Which::Avx512 => unsafe { avx512::accumulate(acc, stripes, phase) },
            #[cfg(target_arch = "aarch64")]
            // SAFETY: the value came from a `CpuFeatures` with NEON.
            Which::Neon => unsafe { neon::accumulate(acc, stripes, phase) },
        }
    }

    /// Accumulates a whole message: its stripes but the last, and its last 64 bytes. One function,
    /// because sums that pass through memory between two of them, written in halves and read
    /// whole, would cost a short message more than its stripes.
    #[inline]
    pub(super) fn whole(self, stripes: &[u8], last: &[u8; STRIPE]) -> Accumulators {
        debug_assert!(stripes.len().is_multiple_of(STRIPE));
        match self.0 {
            Which::Scalar => scalar::whole(stripes, last),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: SSE2 is part of x86-64.
            Which::Sse2 => unsafe { sse2::whole(stripes, last) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the value came from a `CpuFeatures` with AVX2.
            Which::Avx2 => unsafe { avx2::whole(stripes, last) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the value came from a `CpuFeatures` with AVX-512.
            Which::Avx512 => unsafe { avx512::whole(stripes, last) },
            #[cfg(target_arch = "aarch64")]
            // SAFETY: the value came from a `CpuFeatures` with NEON.
            Which::Neon => unsafe { neon::whole(stripes, last) },
        }
    }
}
