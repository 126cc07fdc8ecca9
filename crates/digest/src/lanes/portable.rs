//! Single-stream compression without instructions of our own choosing: the RustCrypto crates (which
//! detect SHA-NI and AVX2 themselves) and a plain BLAKE2b, for the message that is alone among lanes.
//! All other BLAKE2b is the crate `blake2`'s, which is as quick (1.53 GB/s, this 1.58) but takes and
//! gives no chaining value, by which a message leaves its lane when it is the last one: in its lane it
//! would have half of that speed.

use super::StreamKernel;

pub(crate) static MD5: StreamKernel<u32> = StreamKernel {
    name: "md5/portable",
    compress: |state, blocks| md5::block_api::compress(exact(state), whole(blocks)),
};

pub(crate) static SHA1: StreamKernel<u32> = StreamKernel {
    name: "sha1/sha1 crate",
    compress: |state, blocks| sha1::block_api::compress(exact(state), whole(blocks)),
};

pub(crate) static SHA256: StreamKernel<u32> = StreamKernel {
    name: "sha256/sha2 crate",
    compress: |state, blocks| sha2::block_api::compress256(exact(state), whole(blocks)),
};

pub(crate) static SHA512: StreamKernel<u64> = StreamKernel {
    name: "sha512/sha2 crate",
    compress: |state, blocks| sha2::block_api::compress512(exact(state), whole(blocks)),
};

pub(crate) static BLAKE2B: StreamKernel<u64> = StreamKernel {
    name: "blake2b/portable",
    compress: |state, blocks| blake2b(exact(state), whole(blocks)),
};

fn exact<W, const N: usize>(state: &mut [W]) -> &mut [W; N] {
    state.try_into().expect("one word per row")
}

fn whole<const N: usize>(blocks: &[u8]) -> &[[u8; N]] {
    let (blocks, rest) = blocks.as_chunks();
    debug_assert!(rest.is_empty());
    blocks
}

/// RFC 7693 section 2.6, the same as the fractional parts in SHA-512.
pub(crate) const BLAKE2B_IV: [u64; 8] = [
    0x6a09_e667_f3bc_c908,
    0xbb67_ae85_84ca_a73b,
    0x3c6e_f372_fe94_f82b,
    0xa54f_f53a_5f1d_36f1,
    0x510e_527f_ade6_82d1,
    0x9b05_688c_2b3e_6c1f,
    0x1f83_d9ab_fb41_bd6b,
    0x5be0_cd19_137e_2179,
];

/// RFC 7693 section 2.7; rounds 10 and 11 repeat rows 0 and 1.
const SIGMA: [[u8; 16]; 12] = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
    [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
    [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
    [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
    [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
    [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
    [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
    [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
];

#[inline(always)]
fn mix(v: &mut [u64; 16], a: usize, b: usize, c: usize, d: usize, x: u64, y: u64) {
    v[a] = v[a].wrapping_add(v[b]).wrapping_add(x);
    v[d] = (v[d] ^ v[a]).rotate_right(32);
    v[c] = v[c].wrapping_add(v[d]);
    v[b] = (v[b] ^ v[c]).rotate_right(24);
    v[a] = v[a].wrapping_add(v[b]).wrapping_add(y);
    v[d] = (v[d] ^ v[a]).rotate_right(16);
    v[c] = v[c].wrapping_add(v[d]);
    v[b] = (v[b] ^ v[c]).rotate_right(63);
}

/// `state`: eight words, the byte counter, the final flag.
fn blake2b(state: &mut [u64; 10], blocks: &[[u8; 128]]) {
    for block in blocks {
        let m: [u64; 16] = std::array::from_fn(|i| {
            u64::from_le_bytes(block[8 * i..8 * i + 8].try_into().expect("eight bytes"))
        });
        state[8] = state[8].wrapping_add(128);
        let mut v = [0; 16];
        v[..8].copy_from_slice(&state[..8]);
        v[8..].copy_from_slice(&BLAKE2B_IV);
        v[12] ^= state[8];
        v[14] ^= state[9];
        // The message schedule as constants: a loop over SIGMA would index at run time.
        macro_rules! rounds {
            ($($r:literal)*) => {$(
                const { assert!($r < SIGMA.len()) };
                let s = const { &SIGMA[$r] };
                mix(&mut v, 0, 4, 8, 12, m[s[0] as usize], m[s[1] as usize]);
                mix(&mut v, 1, 5, 9, 13, m[s[2] as usize], m[s[3] as usize]);
                mix(&mut v, 2, 6, 10, 14, m[s[4] as usize], m[s[5] as usize]);
                mix(&mut v, 3, 7, 11, 15, m[s[6] as usize], m[s[7] as usize]);
                mix(&mut v, 0, 5, 10, 15, m[s[8] as usize], m[s[9] as usize]);
                mix(&mut v, 1, 6, 11, 12, m[s[10] as usize], m[s[11] as usize]);
                mix(&mut v, 2, 7, 8, 13, m[s[12] as usize], m[s[13] as usize]);
                mix(&mut v, 3, 4, 9, 14, m[s[14] as usize], m[s[15] as usize]);
            )*};
        }
        rounds!(0 1 2 3 4 5 6 7 8 9 10 11);
        for i in 0..8 {
            state[i] ^= v[i] ^ v[i + 8];
        }
    }
}
