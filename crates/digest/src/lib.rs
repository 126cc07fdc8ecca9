//! Digest algorithms: streaming, and many messages at once in the lanes of SIMD registers.
#![deny(unsafe_code)]

mod algorithm;
mod batch;
pub mod blake3_tree;
mod detect;
mod digest;
mod hasher;
mod lanes;
mod serial;
#[cfg(test)]
mod tests;
mod xxh3;

pub use algorithm::{Algorithm, UnknownAlgorithm};
pub use batch::{Batch, Feed, hash_many};
pub use detect::Kernels;
pub use digest::Digest;
pub use hasher::{Hasher, hash};
