//! CRC-32 with the polynomial of Ethernet, in both bit orders: `cksum`'s (POSIX) takes the most
//! significant bit of a byte first, that of zip and SFV files the least significant.
//!
//! Both have one shape: long pieces are folded, sixteen bytes at a time, by carry-less
//! multiplication, where the CPU has it ("Fast CRC Computation for Generic Polynomials Using
//! PCLMULQDQ Instruction", Intel 2009), and the rest goes through tables.
//!
//! The crate `crc-fast` is as quick with long pieces (61 GB/s and 52 to 62 here, in a cache). It asks
//! the standard library what the CPU has, which takes 33 µs in a virtual machine (see `cpu`): 4 to
//! 5 % of what `cksum` takes for a small file.

#[cfg(target_arch = "aarch64")]
mod arm_crc;
#[cfg(target_arch = "x86_64")]
mod clmul;
mod tables;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod vclmul;

use crate::CpuFeatures;

/// x³² + x²⁶ + x²³ + x²² + x¹⁶ + x¹² + x¹¹ + x¹⁰ + x⁸ + x⁷ + x⁵ + x⁴ + x² + x + 1, without x³².
const POLYNOMIAL: u32 = 0x04c1_1db7;

/// BitOrder of the bits in a byte: the position of the highest power of x.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum BitOrder {
    /// The most significant one.
    Normal,
    /// The least significant one.
    Reflected,
}

/// A register in the middle of a message, as the polynomial division leaves it: no complement, no
/// length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crc {
    order: BitOrder,
    register: u32,
    cpu: CpuFeatures,
}

impl Crc {
    pub(crate) fn new(order: BitOrder, start: u32, cpu: CpuFeatures) -> Crc {
        Crc {
            order,
            register: start,
            cpu,
        }
    }

    pub(crate) fn register(&self) -> u32 {
        self.register
    }

    pub(crate) fn update(&mut self, data: &[u8]) {
        self.register = update(self.cpu, self.order, self.register, data);
    }
}

#[cfg(target_arch = "x86_64")]
fn update(cpu: CpuFeatures, order: BitOrder, register: u32, data: &[u8]) -> u32 {
    vclmul::update(cpu, order, register, data)
        .or_else(|| clmul::update(cpu, order, register, data))
        .unwrap_or_else(|| tables::update(order, register, data))
}

#[cfg(target_arch = "aarch64")]
fn update(cpu: CpuFeatures, order: BitOrder, register: u32, data: &[u8]) -> u32 {
    arm_crc::update(cpu, order, register, data)
        .unwrap_or_else(|| tables::update(order, register, data))
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn update(_cpu: CpuFeatures, order: BitOrder, register: u32, data: &[u8]) -> u32 {
    tables::update(order, register, data)
}

/// Returns the two factors that carry sixteen bytes over `bits` bits of message: for the half of
/// higher powers and for that of lower ones, as the bit order wants them in a register.
#[cfg(target_arch = "x86_64")]
const fn factors(order: BitOrder, bits: u32) -> (u64, u64) {
    match order {
        BitOrder::Normal => (power(bits + 64) as u64, power(bits) as u64),
        // A product of two reflected polynomials comes out one place too low; and 32 bits stand at
        // the wrong end of 64.
        BitOrder::Reflected => (
            (power(bits + 32).reverse_bits() as u64) << 1,
            (power(bits - 32).reverse_bits() as u64) << 1,
        ),
    }
}

/// Returns x to this power, modulo the polynomial.
#[cfg(target_arch = "x86_64")]
const fn power(exponent: u32) -> u32 {
    let mut rest: u32 = 1;
    let mut i = 0;
    while i < exponent {
        rest = (rest << 1) ^ (POLYNOMIAL & (rest >> 31).wrapping_neg());
        i += 1;
    }
    rest
}
