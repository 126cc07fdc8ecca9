//! XXH3, 64 and 128 bit, seed 0 and default secret, with the kernel for long messages chosen at run
//! time.
//!
//! Messages up to 240 bytes have no vector code and go to xxhash-rust. For longer ones that crate
//! picks its kernel when it is compiled, which in a plain release build means SSE2; ours reach the
//! speed of AVX2 and AVX-512 in the same binary.

mod kernel;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod sse2;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod vector;

#[cfg(test)]
mod tests;

use crate::CpuFeatures;
use kernel::Kernel;

/// Bytes per accumulator round.
const STRIPE: usize = 64;
/// Stripes between two scrambles: the secret slides by 8 bytes a stripe, over 192 - 64 bytes.
const BLOCK_STRIPES: usize = 16;
/// Messages up to here are the business of xxhash-rust.
const SHORT: usize = 240;

const PRIME32_1: u64 = 0x9e37_79b1;
const PRIME32_2: u64 = 0x85eb_ca77;
const PRIME32_3: u64 = 0xc2b2_ae3d;
const PRIME64_1: u64 = 0x9e37_79b1_85eb_ca87;
const PRIME64_2: u64 = 0xc2b2_ae3d_27d4_eb4f;
const PRIME64_3: u64 = 0x1656_67b1_9e37_79f9;
const PRIME64_4: u64 = 0x85eb_ca77_c2b2_ae63;
const PRIME64_5: u64 = 0x27d4_eb2f_1656_67c5;

/// `XXH3_kSecret` of xxhash.h 0.8: taken from FARSH.
static SECRET: [u8; 192] = [
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
    0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
    0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
    0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
    0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
    0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
    0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
    0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
    0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
    0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
    0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
];

/// The last stripe's secret ends 7 bytes before the secret does.
const LAST_STRIPE_SECRET: usize = SECRET.len() - STRIPE - 7;
/// Offset in the secret from which the accumulators are merged.
const MERGE_SECRET: usize = 11;

/// Accumulators of a long message, aligned for whole-register loads.
#[derive(Copy, Clone)]
#[repr(align(64))]
struct Accumulators([u64; 8]);

static START: Accumulators = Accumulators([
    PRIME32_3, PRIME64_1, PRIME64_2, PRIME64_3, PRIME64_4, PRIME32_2, PRIME64_5, PRIME32_1,
]);

/// Returns the 64-bit digest of a whole message.
#[inline]
pub(crate) fn xxh3_64(cpu: CpuFeatures, data: &[u8]) -> u64 {
    if data.len() <= SHORT {
        return xxhash_rust::xxh3::xxh3_64(data);
    }
    long_64(cpu, data)
}

/// Returns the 128-bit digest of a whole message.
#[inline]
pub(crate) fn xxh3_128(cpu: CpuFeatures, data: &[u8]) -> u128 {
    if data.len() <= SHORT {
        return xxhash_rust::xxh3::xxh3_128(data);
    }
    long_128(cpu, data)
}

// Kept out of the callers, whose stack frames the accumulators would align.
#[inline(never)]
fn long_64(cpu: CpuFeatures, data: &[u8]) -> u64 {
    merge64(&long(cpu, data), data.len() as u64)
}

#[inline(never)]
fn long_128(cpu: CpuFeatures, data: &[u8]) -> u128 {
    merge128(&long(cpu, data), data.len() as u64)
}

#[inline]
fn long(cpu: CpuFeatures, data: &[u8]) -> Accumulators {
    // The last stripe, full or not, is special: it is the last 64 bytes.
    let stripes = (data.len() - 1) / STRIPE * STRIPE;
    let last = data.last_chunk().expect("a long message");
    Kernel::select(cpu).whole(&data[..stripes], last)
}

/// A message that arrives in pieces; both digest lengths share it.
#[derive(Clone)]
pub(crate) struct Xxh3 {
    acc: Accumulators,
    /// The bytes not accumulated yet, at least one once the message is longer than the buffer.
    /// While fewer than [`STRIPE`] of them are here, the end of the buffer holds the bytes before
    /// them.
    buffer: [u8; BUFFER],
    buffered: usize,
    /// Stripes accumulated since the last scramble.
    phase: usize,
    total: u64,
    kernel: Kernel,
}

/// Bytes of the buffer: more than a short message, and whole stripes.
const BUFFER: usize = 256;

impl Xxh3 {
    pub(crate) fn new(cpu: CpuFeatures) -> Xxh3 {
        Xxh3 {
            acc: START,
            buffer: [0; BUFFER],
            buffered: 0,
            phase: 0,
            total: 0,
            kernel: Kernel::select(cpu),
        }
    }

    pub(crate) fn reset(&mut self) {
        self.acc = START;
        self.buffered = 0;
        self.phase = 0;
        self.total = 0;
    }

    pub(crate) fn update(&mut self, mut data: &[u8]) {
        self.total += data.len() as u64;
        let room = BUFFER - self.buffered;
        if data.len() <= room {
            self.buffer[self.buffered..self.buffered + data.len()].copy_from_slice(data);
            self.buffered += data.len();
            return;
        }
        if self.buffered > 0 {
            let (head, rest) = data.split_at(room);
            self.buffer[self.buffered..].copy_from_slice(head);
            self.phase = self
                .kernel
                .accumulate(&mut self.acc, &self.buffer, self.phase);
            data = rest;
        }
        // At least one byte stays back, since the last stripe is treated differently.
        let (whole, rest) = data.split_at((data.len() - 1) / STRIPE * STRIPE);
        self.phase = self.kernel.accumulate(&mut self.acc, whole, self.phase);
        if let Some(last) = whole.last_chunk::<STRIPE>() {
            self.buffer[BUFFER - STRIPE..].copy_from_slice(last);
        }
        self.buffer[..rest.len()].copy_from_slice(rest);
        self.buffered = rest.len();
    }

    pub(crate) fn digest64(&self) -> u64 {
        if self.total <= SHORT as u64 {
            return xxhash_rust::xxh3::xxh3_64(&self.buffer[..self.buffered]);
        }
        merge64(&self.finish(), self.total)
    }

    pub(crate) fn digest128(&self) -> u128 {
        if self.total <= SHORT as u64 {
            return xxhash_rust::xxh3::xxh3_128(&self.buffer[..self.buffered]);
        }
        merge128(&self.finish(), self.total)
    }

    fn finish(&self) -> Accumulators {
        let mut acc = self.acc;
        let held = &self.buffer[..self.buffered];
        let stripes = (held.len() - 1) / STRIPE;
        self.kernel
            .accumulate(&mut acc, &held[..stripes * STRIPE], self.phase);
        let mut last = [0; STRIPE];
        let missing = STRIPE.saturating_sub(held.len());
        last[..missing].copy_from_slice(&self.buffer[BUFFER - missing..]);
        last[missing..].copy_from_slice(&held[held.len() - (STRIPE - missing)..]);
        scalar::stripe(&mut acc, &last, LAST_STRIPE_SECRET);
        acc
    }
}

fn merge64(acc: &Accumulators, total: u64) -> u64 {
    merge(acc, MERGE_SECRET, total.wrapping_mul(PRIME64_1))
}

fn merge128(acc: &Accumulators, total: u64) -> u128 {
    let low = merge64(acc, total);
    let high = merge(
        acc,
        SECRET.len() - STRIPE - MERGE_SECRET,
        !total.wrapping_mul(PRIME64_2),
    );
    u128::from(high) << 64 | u128::from(low)
}

fn merge(acc: &Accumulators, secret: usize, start: u64) -> u64 {
    let mut result = start;
    for (i, pair) in acc.0.as_chunks::<2>().0.iter().enumerate() {
        let product = u128::from(pair[0] ^ secret_word(secret + 16 * i))
            * u128::from(pair[1] ^ secret_word(secret + 16 * i + 8));
        result = result.wrapping_add(product as u64 ^ (product >> 64) as u64);
    }
    result ^= result >> 37;
    result = result.wrapping_mul(0x1656_6791_9e37_79f9);
    result ^ (result >> 32)
}

#[inline(always)]
fn secret_word(at: usize) -> u64 {
    u64::from_le_bytes(*SECRET[at..].first_chunk().expect("within the secret"))
}
