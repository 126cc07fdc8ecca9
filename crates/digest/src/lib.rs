//! Digest algorithms: streaming, and many messages at once in the lanes of SIMD registers.
#![deny(unsafe_code)]

mod detect;
mod lanes;

pub use detect::Kernels;
