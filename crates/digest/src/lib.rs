//! Digest algorithms: one message as it arrives, or many at once in the lanes of SIMD registers.
//!
//! MD5, SHA-1, SHA-2 and BLAKE2b are serial within a message but independent between messages. [`Batch`]
//! hashes up to 16 messages per core at once with AVX-512, 8 with AVX2, two interleaved with SHA-NI, and
//! keeps the lanes full: when one message ends, another takes its lane, for any lengths. XXH3 has AVX2 and
//! AVX-512 loops in every build, BLAKE3 and CRC-32C get theirs from their crates, and the CRCs of `cksum`
//! are folded by carry-less multiplication.
//!
//! On aarch64, two messages are interleaved with the instructions for SHA-1, SHA-256 and SHA-512 if the CPU
//! has them; otherwise, four or eight messages are hashed in NEON lanes (except for SHA-512 and BLAKE2b).
//! XXH3 uses NEON, and CRC-32 the CPU's instructions. 32-bit and big-endian targets are refused.
//!
//! ```
//! use bc_digest::{Algorithm, Hasher, hash, hash_many};
//!
//! // One message, at once or in pieces.
//! let digest = hash(Algorithm::Sha256, b"abc");
//! assert_eq!(
//!     digest.to_string(),
//!     "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
//! );
//! let mut hasher = Hasher::new(Algorithm::Sha256);
//! hasher.update(b"a");
//! hasher.update(b"bc");
//! assert_eq!(hasher.finalize(), digest);
//!
//! // Many messages.
//! let messages: Vec<Vec<u8>> = (0..50).map(|i| vec![b'x'; i * i]).collect();
//! let slices: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
//! let digests = hash_many("sha512".parse::<Algorithm>()?, &slices);
//! assert_eq!(digests[49], hash(Algorithm::Sha512, &messages[49]));
//! # Ok::<(), bc_digest::UnknownAlgorithm>(())
//! ```
//!
//! A [`Hasher`] is an [`io::Write`](std::io::Write); [`hash_reader`] and [`hash_file`] read their input.
//! Nothing else here does any I/O.
//!
//! # Features
//!
//! - `algorithms` (default): MD5, SHA-1, SHA-2, SHA-3, SM3 and BLAKE2b, and thus all hashing in lanes.
//!   Without it, there are BLAKE3, xxHash and the checksums, which build in a fraction of the time.
//!
//! # Invariants
//!
//! - Kernels are chosen at run time; a build without any flags is as fast as one with them, and runs on
//!   every CPU of its target. A [`CpuFeatures`] value proves that its instruction sets exist; nothing else
//!   leads to their code.
//! - A digest depends only on the message: not on the kernel, the pieces, or the rest of the batch.
//! - Nothing is allocated per message or per call of [`Batch::advance`], and no pointer into a
//!   piece outlives that call.
//! - `unsafe` is denied except in files that call or contain kernels; each states why it is allowed.
//! - There is deliberately no keyed mode, no salt, no seed, and no comparison in constant time:
//!   digests here identify content, they do not authenticate it.
#![deny(unsafe_code)]
// The examples of the registry's page run, too.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

#[cfg(target_pointer_width = "32")]
compile_error!("bc-digest needs a target of 64 bits: lengths of messages are kept in `usize`");
#[cfg(target_endian = "big")]
compile_error!(
    "bc-digest needs a little-endian target: no digest has been compared with its test vectors on \
     another one, and there is no machine for that"
);

mod algorithm;
mod batch;
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub mod blake3_tree;
#[cfg(feature = "algorithms")]
mod blocks;
mod chunk;
mod cpu;
mod crc;
mod digest;
mod hasher;
#[cfg(feature = "algorithms")]
mod lanes;
mod sums;
#[cfg(all(test, feature = "algorithms"))]
mod tests;
mod xxh3;

pub use algorithm::{Algorithm, Plain, UnknownAlgorithm};
pub use batch::{Batch, hash_many};
pub use chunk::Chunk;
pub use cpu::CpuFeatures;
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use digest::push_hex;
pub use digest::{Digest, InvalidDigest};
pub use hasher::{Hasher, hash, hash_file, hash_reader};
#[cfg(feature = "algorithms")]
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use lanes::raw;
