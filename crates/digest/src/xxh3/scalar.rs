//! XXH3's accumulation in plain Rust, for every architecture.

use super::{
    Accumulators, BLOCK_STRIPES, LAST_STRIPE_SECRET, PRIME32_1, SECRET, START, STRIPE, secret_word,
};

/// See [`Kernel::accumulate`](super::kernel::Kernel::accumulate).
pub(super) fn accumulate(acc: &mut Accumulators, stripes: &[u8], mut phase: usize) -> usize {
    for bytes in stripes.as_chunks::<STRIPE>().0 {
        stripe(acc, bytes, 8 * phase);
        phase += 1;
        if phase == BLOCK_STRIPES {
            scramble(acc);
            phase = 0;
        }
    }
    phase
}

/// See [`Kernel::whole`](super::kernel::Kernel::whole).
pub(super) fn whole(stripes: &[u8], last: &[u8; STRIPE]) -> Accumulators {
    let mut acc = START;
    accumulate(&mut acc, stripes, 0);
    stripe(&mut acc, last, LAST_STRIPE_SECRET);
    acc
}

/// Accumulates one stripe with the secret from byte `secret`.
#[inline]
pub(super) fn stripe(acc: &mut Accumulators, bytes: &[u8; STRIPE], secret: usize) {
    for (i, word) in bytes.as_chunks().0.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let key = word ^ secret_word(secret + 8 * i);
        acc.0[i ^ 1] = acc.0[i ^ 1].wrapping_add(word);
        acc.0[i] = acc.0[i].wrapping_add((key & 0xffff_ffff) * (key >> 32));
    }
}

fn scramble(acc: &mut Accumulators) {
    for (i, word) in acc.0.iter_mut().enumerate() {
        *word ^= *word >> 47;
        *word ^= secret_word(SECRET.len() - STRIPE + 8 * i);
        *word = word.wrapping_mul(PRIME32_1);
    }
}
