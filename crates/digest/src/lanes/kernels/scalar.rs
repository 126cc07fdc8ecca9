//! Functions shared by the kernels in integer registers.

/// Hides how `x` was computed from the optimiser, at no cost.
///
/// Additions are associative, and LLVM orders sums to share terms between them. A kernel whose
/// speed is the latency of one long chain wants the terms that arrive last added last.
#[inline(always)]
pub(super) fn keep_sum_32(mut x: u32) -> u32 {
    // SAFETY: no instruction at all; the comment keeps the operand used.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        core::arch::asm!("/* {0:e} */", inout(reg) x, options(pure, nomem, nostack, preserves_flags));
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        core::arch::asm!("/* {0:w} */", inout(reg) x, options(pure, nomem, nostack, preserves_flags));
    }
    x
}

/// [`keep_sum_32`] for 64-bit words.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn keep_sum_64(mut x: u64) -> u64 {
    // SAFETY: no instruction at all; the comment keeps the operand used.
    unsafe {
        core::arch::asm!("/* {0} */", inout(reg) x, options(pure, nomem, nostack, preserves_flags));
    }
    x
}
