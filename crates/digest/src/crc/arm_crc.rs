//! CRC-32 by the instructions of aarch64, eight bytes at a time.
#![allow(unsafe_code, reason = "instructions that not every CPU has")]

use std::arch::aarch64::*;

use super::BitOrder;
use crate::CpuFeatures;

/// Returns the register after `data`; `None` where `cpu` has no CRC-32 instructions.
pub(super) fn update(cpu: CpuFeatures, order: BitOrder, register: u32, data: &[u8]) -> Option<u32> {
    if !cpu.may_arm_crc() {
        return None;
    }
    // SAFETY: `cpu` is the proof that the instructions are there.
    Some(unsafe {
        match order {
            BitOrder::Reflected => divided::<true>(register, data),
            // The instructions know the other order alone: each byte is turned round for them, and
            // so is the register.
            BitOrder::Normal => divided::<false>(register.reverse_bits(), data).reverse_bits(),
        }
    })
}

#[target_feature(enable = "crc")]
fn divided<const REFLECTED: bool>(register: u32, data: &[u8]) -> u32 {
    let word = |register, bytes: &[u8; 8]| {
        let word = match REFLECTED {
            true => u64::from_le_bytes(*bytes),
            false => u64::from_be_bytes(*bytes).reverse_bits(),
        };
        __crc32d(register, word)
    };
    let (words, rest) = data.as_chunks::<8>();
    let (fours, ones) = words.as_chunks::<4>();
    let register = fours
        .iter()
        .fold(register, |register, four| four.iter().fold(register, word));
    let register = ones.iter().fold(register, word);
    rest.iter().fold(register, |register, &byte| {
        __crc32b(register, if REFLECTED { byte } else { byte.reverse_bits() })
    })
}
