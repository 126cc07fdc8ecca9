//! MD5 of one message in integer registers.
//!
//! Each step waits for the one before it, through b: the time depends on the number of instructions
//! between b and the next b. F takes five (and, xor, add, rotate, add) and G, in its usual form `(b
//! & d) | (c & !d)`, as many if its two parts are ored before they are added. But they have no bit
//! in common, so the sum can take them one by one, and only the part with b has to wait: four.

use super::super::scalar::keep_sum_32;
use super::{K, sixty_four_steps};

/// Compresses consecutive blocks of one message.
pub(crate) fn compress(state: &mut [u32], blocks: &[u8]) {
    let state: &mut [u32; 4] = state.try_into().expect("four words of state");
    for block in blocks.as_chunks::<64>().0 {
        compress_block(state, block);
    }
}

fn compress_block(state: &mut [u32; 4], block: &[u8; 64]) {
    let mut m = [0_u32; 16];
    for (m, bytes) in m.iter_mut().zip(block.as_chunks().0) {
        *m = u32::from_le_bytes(*bytes);
    }
    let [mut a, mut b, mut c, mut d] = *state;
    macro_rules! step {
        ($f:ident, $a:ident $b:ident $c:ident $d:ident, $m:expr, $s:literal, $t:expr) => {
            let early = keep_sum_32($a.wrapping_add(K[$t]).wrapping_add(m[$m]));
            let sum = step!(@$f early, $b $c $d);
            $a = sum.rotate_left($s).wrapping_add($b);
        };
        (@f $early:ident, $b:ident $c:ident $d:ident) => {
            $early.wrapping_add((($c ^ $d) & $b) ^ $d)
        };
        (@g $early:ident, $b:ident $c:ident $d:ident) => {
            keep_sum_32($early.wrapping_add(!$d & $c)).wrapping_add($d & $b)
        };
        (@h $early:ident, $b:ident $c:ident $d:ident) => {
            $early.wrapping_add(keep_sum_32($c ^ $d) ^ $b)
        };
        (@i $early:ident, $b:ident $c:ident $d:ident) => {
            $early.wrapping_add((!$d | $b) ^ $c)
        };
    }
    sixty_four_steps!(step, a b c d);
    for (s, v) in state.iter_mut().zip([a, b, c, d]) {
        *s = s.wrapping_add(v);
    }
}
