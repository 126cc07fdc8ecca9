//! SHA-256 of one message for CPUs with AVX2 and BMI2 but not the SHA extensions: the message
//! schedules of two consecutive blocks are computed in the two halves of AVX2 registers, the rounds
//! in integer registers, where `rorx` and `andn` save moves.

use super::super::scalar::keep_sum_32;
use super::super::sha2::sixteen_rounds;
use super::K;
use core::arch::x86_64::*;

/// One round, `$kw` being `W[t] + K[t]`. The sums are in the order in which their terms become
/// known after the last round's e and a; Ch is added in its two disjoint parts, one `and` and one
/// `andn`. 4 % faster than the order LLVM prefers (AMD EPYC Zen 5).
macro_rules! scalar_round {
    ($a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $g:ident $h:ident, $kw:expr) => {
        let sigma1 = keep_sum_32($e.rotate_right(25) ^ $e.rotate_right(11)) ^ $e.rotate_right(6);
        let t1 = keep_sum_32($h.wrapping_add($kw));
        let t1 = keep_sum_32(t1.wrapping_add(keep_sum_32($e & $f)));
        let t1 = keep_sum_32(t1.wrapping_add(!$e & $g));
        let t1 = keep_sum_32(t1.wrapping_add(sigma1));
        $d = keep_sum_32($d.wrapping_add(t1));
        let majority = (($a ^ $b) & ($b ^ $c)) ^ $b;
        let sigma0 = keep_sum_32($a.rotate_right(22) ^ $a.rotate_right(13)) ^ $a.rotate_right(2);
        $h = keep_sum_32(t1.wrapping_add(majority)).wrapping_add(sigma0);
    };
}

/// `W[t] + K[t]` of two blocks: quads of rounds, each for the first block and then the second.
#[repr(align(32))]
struct RoundInputs([[[u32; 4]; 2]; 16]);

/// Compresses consecutive blocks of one message.
///
/// # Safety
///
/// AVX2, BMI1 and BMI2 are present.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(crate) unsafe fn compress(state: &mut [u32], blocks: &[u8]) {
    let state: &mut [u32; 8] = state.try_into().expect("eight words of state");
    let mut inputs = RoundInputs([[[0; 4]; 2]; 16]);
    let (pairs, rest) = blocks.as_chunks::<128>();
    for pair in pairs {
        let (first, second) = pair.split_at(64);
        two_blocks(state, first, second, &mut inputs);
        second_block(state, &inputs);
    }
    if !rest.is_empty() {
        two_blocks(state, rest, rest, &mut inputs);
    }
}

/// Loads 16 bytes of each block, at `quad` times 16, as big-endian words.
#[target_feature(enable = "avx2")]
#[inline]
fn load_quad(first: &[u8], second: &[u8], quad: usize) -> __m256i {
    let load = |block: &[u8]| {
        let bytes: &[u8; 16] = &block.as_chunks().0[quad];
        // SAFETY: 16 bytes; the load needs no alignment.
        unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
    };
    let order = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
    _mm256_shuffle_epi8(
        _mm256_set_m128i(load(second), load(first)),
        _mm256_broadcastsi128_si256(order),
    )
}

/// Returns the four words after `w`, which is the sixteen words before them, oldest first.
#[target_feature(enable = "avx2")]
#[inline]
fn expand(w: [__m256i; 4]) -> __m256i {
    let xor = |x, y| _mm256_xor_si256(x, y);
    let w1 = _mm256_alignr_epi8::<4>(w[1], w[0]);
    let w9 = _mm256_alignr_epi8::<4>(w[3], w[2]);
    // Rotations are xors of two shifts, so σ0 is one xor of five shifts.
    let right = xor(
        xor(_mm256_srli_epi32::<3>(w1), _mm256_srli_epi32::<7>(w1)),
        _mm256_srli_epi32::<18>(w1),
    );
    let left = xor(_mm256_slli_epi32::<25>(w1), _mm256_slli_epi32::<14>(w1));
    let partial = _mm256_add_epi32(_mm256_add_epi32(w[0], w9), xor(right, left));

    // σ1 needs words t-2 and t-1, so two at a time. Each word doubled in 64 bits makes a 64-bit
    // shift a rotation in its low half; the results are then packed to where they are added.
    let small_sigma1 = |doubled| {
        let rotations = xor(
            _mm256_srli_epi64::<17>(doubled),
            _mm256_srli_epi64::<19>(doubled),
        );
        xor(rotations, _mm256_srli_epi32::<10>(doubled))
    };
    let to_low = _mm256_broadcastsi128_si256(_mm_set_epi8(
        -1, -1, -1, -1, -1, -1, -1, -1, 11, 10, 9, 8, 3, 2, 1, 0,
    ));
    let to_high = _mm256_broadcastsi128_si256(_mm_set_epi8(
        11, 10, 9, 8, 3, 2, 1, 0, -1, -1, -1, -1, -1, -1, -1, -1,
    ));
    let low = small_sigma1(_mm256_shuffle_epi32::<0xfa>(w[3]));
    let half = _mm256_add_epi32(partial, _mm256_shuffle_epi8(low, to_low));
    let high = small_sigma1(_mm256_shuffle_epi32::<0x50>(half));
    _mm256_add_epi32(half, _mm256_shuffle_epi8(high, to_high))
}

/// Expands both blocks while it compresses the first; only the rounds of the second are left.
#[target_feature(enable = "avx2,bmi1,bmi2")]
#[inline]
fn two_blocks(state: &mut [u32; 8], first: &[u8], second: &[u8], inputs: &mut RoundInputs) {
    let put = |inputs: &mut RoundInputs, q: usize, w: __m256i| {
        let k: &[u32; 4] = &K.as_chunks().0[q];
        // SAFETY: 16 bytes; the load needs no alignment.
        let k = unsafe { _mm_loadu_si128(k.as_ptr().cast()) };
        let sum = _mm256_add_epi32(w, _mm256_broadcastsi128_si256(k));
        // SAFETY: two times four words are 32 bytes.
        unsafe { _mm256_storeu_si256((&raw mut inputs.0[q]).cast(), sum) };
    };
    let mut w = [_mm256_setzero_si256(); 4];
    for (q, w) in w.iter_mut().enumerate() {
        *w = load_quad(first, second, q);
        put(inputs, q, *w);
    }

    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for trip in 0..3 {
        macro_rules! round {
            ($a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $g:ident $h:ident, $i:expr) => {
                // Before each four rounds, those sixteen rounds further on.
                if $i % 4 == 0 {
                    w = [w[1], w[2], w[3], expand(w)];
                    put(inputs, 4 * (trip + 1) + $i / 4, w[3]);
                }
                scalar_round!($a $b $c $d $e $f $g $h, inputs.0[4 * trip + $i / 4][0][$i % 4]);
            };
        }
        sixteen_rounds!(round, a b c d e f g h);
    }
    macro_rules! last_round {
        ($a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $g:ident $h:ident, $i:expr) => {
            scalar_round!($a $b $c $d $e $f $g $h, inputs.0[12 + $i / 4][0][$i % 4]);
        };
    }
    sixteen_rounds!(last_round, a b c d e f g h);
    for (s, v) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *s = s.wrapping_add(v);
    }
}

/// Compresses the second block: its rounds only.
#[target_feature(enable = "avx2,bmi1,bmi2")]
#[inline]
fn second_block(state: &mut [u32; 8], inputs: &RoundInputs) {
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for quads in inputs.0.as_chunks::<4>().0 {
        macro_rules! round {
            ($a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $g:ident $h:ident, $i:expr) => {
                scalar_round!($a $b $c $d $e $f $g $h, quads[$i / 4][1][$i % 4]);
            };
        }
        sixteen_rounds!(round, a b c d e f g h);
    }
    for (s, v) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *s = s.wrapping_add(v);
    }
}
