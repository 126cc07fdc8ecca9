//! SIMD compression functions, one file per algorithm and instruction set.
