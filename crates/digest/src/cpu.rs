//! Run-time CPU detection. A [`CpuFeatures`] value is the proof that its instruction sets are present
//! and that the operating system saves their registers.
//!
//! The features that choose a kernel are found with three questions to CPUID.
//! `is_x86_feature_detected!` asks a dozen, for everything it can be asked about. A hypervisor answers
//! each of them itself, 3.7 µs a question on an AMD EPYC under KVM: 44 µs, where hashing one small
//! file takes a millisecond in all. On aarch64 the kernel has put the answers into each process.
#![allow(
    unsafe_code,
    reason = "XGETBV may be executed only where CPUID has said that it may"
)]

use std::sync::OnceLock;

/// Instruction sets that kernels need; each is true only if the operating system saves the
/// registers, too. Those of other architectures are false.
#[allow(dead_code, reason = "each architecture reads its own")]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Features {
    /// AVX2.
    pub(crate) avx2: bool,
    /// AVX-512 F, BW, VL and DQ.
    pub(crate) avx512: bool,
    /// The SHA extensions, SSSE3 and SSE4.1.
    pub(crate) sha_ni: bool,
    /// BMI1 and BMI2.
    pub(crate) bmi: bool,
    /// PCLMULQDQ, SSSE3 and SSE4.1.
    pub(crate) clmul: bool,
    /// VPCLMULQDQ, and `avx512` and `clmul` as well.
    pub(crate) vclmul: bool,
    /// Advanced SIMD.
    pub(crate) neon: bool,
    /// The instructions for SHA-1 and SHA-256 of aarch64, and `neon`.
    pub(crate) arm_sha: bool,
    /// Those for SHA-512, and `arm_sha`.
    pub(crate) arm_sha512: bool,
    /// The instructions for CRC-32 of aarch64.
    pub(crate) arm_crc: bool,
}

/// Asks CPUID for the features of this machine.
#[cfg(target_arch = "x86_64")]
#[allow(
    unused_unsafe,
    reason = "CPUID is unsafe to call up to Rust 1.93; every x86-64 processor has it"
)]
fn ask() -> Features {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    // Leaf 1, register ECX.
    const PCLMULQDQ: u32 = 1 << 1;
    const SSSE3: u32 = 1 << 9;
    const SSE4_1: u32 = 1 << 19;
    const OSXSAVE: u32 = 1 << 27;
    // Leaf 7, register EBX.
    const BMI1: u32 = 1 << 3;
    const AVX2: u32 = 1 << 5;
    const BMI2: u32 = 1 << 8;
    const AVX512: u32 = 1 << 16 | 1 << 17 | 1 << 30 | 1 << 31;
    const SHA: u32 = 1 << 29;
    // Leaf 7, register ECX.
    const VPCLMULQDQ: u32 = 1 << 10;
    // Bits of XCR0 for the registers that the operating system saves. The upper halves of AVX's, and
    // beyond them the mask registers, the upper halves of AVX-512's and its upper sixteen.
    const SAVES_AVX: u64 = 0b110;
    const SAVES_AVX512: u64 = SAVES_AVX | 0b1110_0000;

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
        ..Features::default()
    }
}

/// Returns the register XCR0.
///
/// # Safety
/// The operating system must have enabled XGETBV (OSXSAVE).
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "xsave")]
unsafe fn saved() -> u64 {
    // SAFETY: the caller has made sure of it.
    unsafe { std::arch::x86_64::_xgetbv(0) }
}

/// Reads the features of this machine from the auxiliary vector.
#[cfg(target_arch = "aarch64")]
fn ask() -> Features {
    use std::arch::is_aarch64_feature_detected as has;
    let neon = has!("neon");
    // The standard library's names: `sha2` is SHA-1 and SHA-256, `sha3` is SHA-3 and SHA-512.
    let arm_sha = neon && has!("sha2");
    Features {
        neon,
        arm_sha,
        arm_sha512: arm_sha && has!("sha3"),
        arm_crc: has!("crc"),
        ..Features::default()
    }
}

/// Returns no instruction set: there are no kernels for this architecture.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn ask() -> Features {
    Features::default()
}

/// Returns the features of this machine, asked for once a process.
#[inline]
pub(crate) fn features() -> Features {
    static FOUND: OnceLock<Features> = OnceLock::new();
    *FOUND.get_or_init(ask)
}

/// The instruction sets that hashing may use.
///
/// Values exist only for the features of the running machine, so holding one is the proof the SIMD
/// kernels need. [`CpuFeatures::detect`] is for programs; the narrower constructors let tests and
/// benchmarks run every kernel the machine has.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub struct CpuFeatures {
    avx2: bool,
    avx512: bool,
    sha_ni: bool,
    clmul: bool,
    vclmul: bool,
    neon: bool,
    arm_sha: bool,
    arm_sha512: bool,
    arm_crc: bool,
}

impl CpuFeatures {
    /// Returns all features of this machine. Detected once per process.
    #[inline]
    pub fn detect() -> CpuFeatures {
        let found = features();
        CpuFeatures {
            avx2: found.avx2,
            avx512: found.avx2 && found.avx512,
            sha_ni: found.sha_ni,
            clmul: found.clmul,
            vclmul: found.vclmul,
            neon: found.neon,
            arm_sha: found.arm_sha,
            arm_sha512: found.arm_sha512,
            arm_crc: found.arm_crc,
        }
    }

    /// Returns a value without instructions beyond the compilation target's own. Note that single
    /// streams of the RustCrypto and BLAKE3 crates ([`Hasher`](crate::Hasher)) still detect for
    /// themselves.
    pub const fn portable() -> CpuFeatures {
        CpuFeatures {
            avx2: false,
            avx512: false,
            sha_ni: false,
            clmul: false,
            vclmul: false,
            neon: false,
            arm_sha: false,
            arm_sha512: false,
            arm_crc: false,
        }
    }

    /// Returns AVX2 only, if this machine has it.
    pub fn avx2() -> Option<CpuFeatures> {
        features().avx2.then_some(CpuFeatures {
            avx2: true,
            ..CpuFeatures::portable()
        })
    }

    /// Returns AVX-512 (F, BW, VL and DQ) and AVX2, without SHA-NI, if this machine has them.
    pub fn avx512() -> Option<CpuFeatures> {
        (features().avx2 && features().avx512).then_some(CpuFeatures {
            avx2: true,
            avx512: true,
            ..CpuFeatures::portable()
        })
    }

    /// Returns SHA-NI (with SSSE3 and SSE4.1), and PCLMULQDQ where that exists, too, without AVX2
    /// and AVX-512, if this machine has it.
    pub fn sha_ni() -> Option<CpuFeatures> {
        features().sha_ni.then_some(CpuFeatures {
            sha_ni: true,
            clmul: features().clmul,
            ..CpuFeatures::portable()
        })
    }

    /// Returns NEON only, if this machine has it.
    pub fn neon() -> Option<CpuFeatures> {
        features().neon.then_some(CpuFeatures {
            neon: true,
            ..CpuFeatures::portable()
        })
    }

    /// Returns NEON and the instructions of aarch64 for SHA-1 and SHA-256, and those for CRC-32
    /// where they exist, too, without those for SHA-512, if this machine has them.
    pub fn arm_sha() -> Option<CpuFeatures> {
        features().arm_sha.then_some(CpuFeatures {
            neon: true,
            arm_sha: true,
            arm_crc: features().arm_crc,
            ..CpuFeatures::portable()
        })
    }

    /// Returns every distinct value above that this machine can have, [`CpuFeatures::portable`]
    /// first: a test runs through all of them.
    pub fn available() -> Vec<CpuFeatures> {
        let mut all = vec![CpuFeatures::portable()];
        let found = [
            CpuFeatures::sha_ni(),
            CpuFeatures::avx2(),
            CpuFeatures::avx512(),
            CpuFeatures::neon(),
            CpuFeatures::arm_sha(),
            Some(CpuFeatures::detect()),
        ];
        for cpu in found.into_iter().flatten() {
            if !all.contains(&cpu) {
                all.push(cpu);
            }
        }
        all
    }

    /// Returns the instruction sets in use, e.g. `avx512 avx2 sha-ni`, or `portable`.
    pub fn describe(self) -> String {
        let names = [
            (self.avx512, "avx512"),
            (self.avx2, "avx2"),
            (self.sha_ni, "sha-ni"),
            (self.vclmul, "vpclmulqdq"),
            (self.clmul, "pclmulqdq"),
            (self.neon, "neon"),
            (self.arm_sha, "sha2"),
            (self.arm_sha512, "sha512"),
            (self.arm_crc, "crc"),
        ];
        let names: Vec<&str> = names.iter().filter(|n| n.0).map(|n| n.1).collect();
        if names.is_empty() {
            "portable".to_owned()
        } else {
            names.join(" ")
        }
    }

    /// Returns the CPU features found that some kernel here or in the crates underneath can use, by
    /// their names in `/proc/cpuinfo`'s spirit, e.g. `["sse4.2", "avx2", "sha"]`.
    pub fn flags() -> Vec<&'static str> {
        flags()
    }

    /// True if AVX2 kernels may run.
    #[inline]
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub(crate) const fn may_avx2(self) -> bool {
        self.avx2
    }

    /// True if kernels of AVX-512 F, BW, VL and DQ may run.
    #[inline]
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub(crate) const fn may_avx512(self) -> bool {
        self.avx512
    }

    /// True if kernels of SHA-NI, SSSE3 and SSE4.1 may run.
    #[inline]
    #[cfg_attr(
        not(all(target_arch = "x86_64", feature = "algorithms")),
        allow(dead_code)
    )]
    pub(crate) const fn may_sha_ni(self) -> bool {
        self.sha_ni
    }

    /// True if kernels of PCLMULQDQ, SSSE3 and SSE4.1 may run.
    #[inline]
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub(crate) const fn may_clmul(self) -> bool {
        self.clmul
    }

    /// True if kernels of VPCLMULQDQ with AVX-512, and those of PCLMULQDQ, may run.
    #[inline]
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub(crate) const fn may_vclmul(self) -> bool {
        self.vclmul
    }

    /// True if NEON kernels may run.
    #[inline]
    #[cfg_attr(not(target_arch = "aarch64"), allow(dead_code))]
    pub(crate) const fn may_neon(self) -> bool {
        self.neon
    }

    /// True if kernels of aarch64's instructions for SHA-1 and SHA-256, and of NEON, may run.
    #[inline]
    #[cfg_attr(
        not(all(target_arch = "aarch64", feature = "algorithms")),
        allow(dead_code)
    )]
    pub(crate) const fn may_arm_sha(self) -> bool {
        self.arm_sha
    }

    /// True if kernels of aarch64's instructions for SHA-512, and of NEON, may run.
    #[inline]
    #[cfg_attr(
        not(all(target_arch = "aarch64", feature = "algorithms")),
        allow(dead_code)
    )]
    pub(crate) const fn may_arm_sha512(self) -> bool {
        self.arm_sha512
    }

    /// True if kernels of aarch64's instructions for CRC-32 may run.
    #[inline]
    #[cfg_attr(not(target_arch = "aarch64"), allow(dead_code))]
    pub(crate) const fn may_arm_crc(self) -> bool {
        self.arm_crc
    }
}

#[cfg(target_arch = "x86_64")]
fn flags() -> Vec<&'static str> {
    // The macro takes literals only.
    macro_rules! found {
        ($($name:tt)*) => {
            [$(($name, is_x86_feature_detected!($name))),*]
        };
    }
    found!("ssse3" "sse4.1" "sse4.2" "pclmulqdq" "vpclmulqdq" "avx2" "avx512f" "avx512bw" "avx512vl" "avx512dq" "sha")
        .into_iter()
        .filter(|f| f.1)
        .map(|f| f.0)
        .collect()
}

#[cfg(target_arch = "aarch64")]
fn flags() -> Vec<&'static str> {
    use std::arch::is_aarch64_feature_detected;
    // The macro takes literals only.
    macro_rules! found {
        ($($name:tt)*) => {
            [$(($name, is_aarch64_feature_detected!($name))),*]
        };
    }
    found!("neon" "crc" "sha2" "sha3")
        .into_iter()
        .filter(|f| f.1)
        .map(|f| f.0)
        .collect()
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn flags() -> Vec<&'static str> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detection_is_the_union_of_what_is_available() {
        let all = CpuFeatures::detect();
        assert_eq!(CpuFeatures::detect(), all);
        assert_eq!(all.may_avx2(), CpuFeatures::avx2().is_some());
        assert_eq!(all.may_avx512(), CpuFeatures::avx512().is_some());
        assert_eq!(all.may_sha_ni(), CpuFeatures::sha_ni().is_some());
        assert_eq!(all.may_neon(), CpuFeatures::neon().is_some());
        assert_eq!(all.may_arm_sha(), CpuFeatures::arm_sha().is_some());
        let available = CpuFeatures::available();
        assert_eq!(available[0], CpuFeatures::portable());
        assert!(available.contains(&all));
    }

    #[test]
    fn narrow_kernels_use_nothing_else() {
        let portable = CpuFeatures::portable();
        assert!(!portable.may_avx2() && !portable.may_avx512() && !portable.may_sha_ni());
        assert!(!portable.may_neon() && !portable.may_arm_sha() && !portable.may_arm_crc());
        assert_eq!(portable.describe(), "portable");
        if let Some(k) = CpuFeatures::avx2() {
            assert!(k.may_avx2() && !k.may_avx512() && !k.may_sha_ni());
            assert_eq!(k.describe(), "avx2");
            assert!(CpuFeatures::flags().contains(&"avx2"));
        }
        if let Some(k) = CpuFeatures::avx512() {
            assert!(k.may_avx2() && k.may_avx512() && !k.may_sha_ni());
            assert_eq!(k.describe(), "avx512 avx2");
        }
        if let Some(k) = CpuFeatures::sha_ni() {
            assert!(!k.may_avx2() && !k.may_avx512() && k.may_sha_ni());
            assert!(k.describe().starts_with("sha-ni"));
        }
        if let Some(k) = CpuFeatures::neon() {
            assert!(k.may_neon() && !k.may_arm_sha() && !k.may_arm_sha512() && !k.may_arm_crc());
            assert_eq!(k.describe(), "neon");
            assert!(CpuFeatures::flags().contains(&"neon"));
        }
        if let Some(k) = CpuFeatures::arm_sha() {
            assert!(k.may_neon() && k.may_arm_sha() && !k.may_arm_sha512());
            assert!(k.describe().starts_with("neon sha2"));
        }
    }

    #[cfg(target_arch = "x86_64")]
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
            ..Features::default()
        };
        let all = Features {
            vclmul: all.avx512 && all.clmul && is_x86_feature_detected!("vpclmulqdq"),
            ..all
        };
        assert_eq!(features(), all);
    }
}
