//! Every way to compute against the definition, bit by bit.

use super::{BitOrder, POLYNOMIAL, tables};

/// A way to take in a piece.
type Update = fn(BitOrder, u32, &[u8]) -> u32;

fn bitwise(order: BitOrder, register: u32, data: &[u8]) -> u32 {
    let step = |register: u32, bit: u8| match order {
        BitOrder::Normal => {
            let out = (register >> 31) ^ u32::from(bit);
            (register << 1) ^ (POLYNOMIAL & out.wrapping_neg())
        }
        BitOrder::Reflected => {
            let out = (register & 1) ^ u32::from(bit);
            (register >> 1) ^ (POLYNOMIAL.reverse_bits() & out.wrapping_neg())
        }
    };
    data.iter().fold(register, |register, byte| {
        (0..8).fold(register, |register, i| {
            let place = match order {
                BitOrder::Normal => 7 - i,
                BitOrder::Reflected => i,
            };
            step(register, (byte >> place) & 1)
        })
    })
}

/// Returns the implementations that this machine can run, each with the shortest length that it
/// takes.
fn ways() -> Vec<(&'static str, usize, Update)> {
    let mut ways: Vec<(&'static str, usize, Update)> = vec![("tables", 0, tables::update)];
    #[cfg(target_arch = "x86_64")]
    {
        let cpu = crate::CpuFeatures::detect();
        if cpu.may_clmul() {
            let update: Update = |order, register, data| {
                let cpu = crate::CpuFeatures::detect();
                super::clmul::update(cpu, order, register, data).expect("long enough")
            };
            ways.push(("clmul", super::clmul::LEAST, update));
        }
        if cpu.may_vclmul() {
            let update: Update = |order, register, data| {
                let cpu = crate::CpuFeatures::detect();
                super::vclmul::update(cpu, order, register, data).expect("long enough")
            };
            ways.push(("vclmul", super::vclmul::LEAST, update));
        }
    }
    #[cfg(target_arch = "aarch64")]
    if crate::CpuFeatures::detect().may_arm_crc() {
        let update: Update = |order, register, data| {
            let cpu = crate::CpuFeatures::detect();
            super::arm_crc::update(cpu, order, register, data).expect("the instructions")
        };
        ways.push(("arm_crc", 0, update));
    }
    ways
}

/// Returns bytes without a pattern.
fn noise(len: usize) -> Vec<u8> {
    let mut state: u32 = 0x2545_f491;
    let byte = |_| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 11) as u8
    };
    (0..len).map(byte).collect()
}

#[test]
fn every_way_is_the_definition_at_every_boundary() {
    let data = noise(5000);
    // All lengths over the blocks of 16, 64 and 256 bytes, and around multiples of them.
    let around = (4..20).flat_map(|k| [256 * k - 1, 256 * k, 256 * k + 1, 256 * k + 17]);
    let lengths: Vec<usize> = (0..=700).chain(around).collect();
    for order in [BitOrder::Normal, BitOrder::Reflected] {
        for (name, least, update) in ways() {
            for &len in lengths.iter().filter(|len| **len >= least) {
                // At every alignment to a vector, and from any register.
                let from = len % 64;
                let piece = &data[from..from + len.min(data.len() - from)];
                for register in [0, !0, 0x1234_5678] {
                    assert_eq!(
                        update(order, register, piece),
                        bitwise(order, register, piece),
                        "{name}, {order:?}, {len} bytes from {register:#x}"
                    );
                }
            }
        }
    }
}

/// Checks that a kernel asks for its proof itself: a caller without one is refused, and nothing is
/// executed.
#[cfg(target_arch = "x86_64")]
#[test]
fn kernels_ask_for_proof() {
    use super::{clmul, vclmul};
    use crate::CpuFeatures;
    let data = noise(1024);
    for cpu in CpuFeatures::available() {
        let folded = clmul::update(cpu, BitOrder::Normal, 0, &data);
        let wide = vclmul::update(cpu, BitOrder::Normal, 0, &data);
        assert_eq!(folded.is_some(), cpu.may_clmul(), "{cpu:?}");
        assert_eq!(wide.is_some(), cpu.may_vclmul(), "{cpu:?}");
        let few = &data[..clmul::LEAST - 1];
        assert_eq!(clmul::update(cpu, BitOrder::Normal, 0, few), None);
        assert_eq!(vclmul::update(cpu, BitOrder::Normal, 0, few), None);
    }
    let none = CpuFeatures::portable();
    assert_eq!(clmul::update(none, BitOrder::Normal, 0, &data), None);
    assert_eq!(vclmul::update(none, BitOrder::Normal, 0, &data), None);
}

/// Checks that the kernel asks for its proof itself: a caller without one is refused.
#[cfg(target_arch = "aarch64")]
#[test]
fn kernels_ask_for_proof() {
    use super::arm_crc;
    use crate::CpuFeatures;
    let data = noise(1024);
    for cpu in CpuFeatures::available() {
        let divided = arm_crc::update(cpu, BitOrder::Normal, 0, &data);
        assert_eq!(divided.is_some(), cpu.may_arm_crc(), "{cpu:?}");
    }
    let none = CpuFeatures::portable();
    assert_eq!(arm_crc::update(none, BitOrder::Normal, 0, &data), None);
}

/// Checks the values of the catalogue of parametrised CRC algorithms: CRC-32/CKSUM, CRC-32/BZIP2
/// and CRC-32/ISO-HDLC of the nine digits.
#[test]
fn check_values() {
    let digits = b"123456789";
    assert_eq!(!tables::update(BitOrder::Normal, 0, digits), 0x765e_7680);
    assert_eq!(!tables::update(BitOrder::Normal, !0, digits), 0xfc89_1918);
    assert_eq!(
        !tables::update(BitOrder::Reflected, !0, digits),
        0xcbf4_3926
    );
}

/// Compares the factors with those in Intel's paper and in zlib's ports.
#[cfg(target_arch = "x86_64")]
#[test]
fn factors_are_the_published_ones() {
    use super::factors;
    assert_eq!(
        factors(BitOrder::Reflected, 512),
        (0x1_5444_2bd4, 0x1_c6e4_1596)
    );
    assert_eq!(
        factors(BitOrder::Reflected, 128),
        (0x1_7519_97d0, 0xccaa_009e)
    );
    assert_eq!(factors(BitOrder::Normal, 512), (0x8833_794c, 0xe622_8b11));
    assert_eq!(factors(BitOrder::Normal, 128), (0xc5b9_cd4c, 0xe8a4_5605));
}
