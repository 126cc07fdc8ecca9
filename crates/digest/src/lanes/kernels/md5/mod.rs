//! MD5 compression.

#[cfg(target_arch = "aarch64")]
mod arm;
mod lanes;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod x86;

use crate::lanes::StreamKernel;
#[cfg(target_arch = "aarch64")]
pub(crate) use arm::select;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86::select;

/// 0.92 GB/s, the md-5 crate 0.73.
static SCALAR: StreamKernel<u32> = StreamKernel {
    name: "md5/scalar",
    compress: scalar::compress,
};

/// RFC 1321, section 3.4: `floor(2^32 * abs(sin(i + 1)))`.
const K: [u32; 64] = [
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391,
];

/// Expands to the 64 steps, each calling `$step!(F, a b c d, m, s, t)`: function, working
/// variables in their rotating roles, message word, rotation to the left, number of the step.
macro_rules! sixty_four_steps {
    ($step:ident, $a:ident $b:ident $c:ident $d:ident) => {
        sixty_four_steps!(@sixteen $step, f, $a $b $c $d, 0, 1, 0, [7, 12, 17, 22]);
        sixty_four_steps!(@sixteen $step, g, $a $b $c $d, 16, 5, 1, [5, 9, 14, 20]);
        sixty_four_steps!(@sixteen $step, h, $a $b $c $d, 32, 3, 5, [4, 11, 16, 23]);
        sixty_four_steps!(@sixteen $step, i, $a $b $c $d, 48, 7, 0, [6, 10, 15, 21]);
    };
    // Message words $start, $start + $stride, ... modulo 16.
    (@sixteen $step:ident, $f:ident, $a:ident $b:ident $c:ident $d:ident, $t:literal, $stride:literal, $start:literal, $s:tt) => {
        sixty_four_steps!(@four $step, $f, $a $b $c $d, $t, $stride, $start, $s);
        sixty_four_steps!(@four $step, $f, $a $b $c $d, $t + 4, $stride, $start + 4 * $stride, $s);
        sixty_four_steps!(@four $step, $f, $a $b $c $d, $t + 8, $stride, $start + 8 * $stride, $s);
        sixty_four_steps!(@four $step, $f, $a $b $c $d, $t + 12, $stride, $start + 12 * $stride, $s);
    };
    (@four $step:ident, $f:ident, $a:ident $b:ident $c:ident $d:ident, $t:expr, $stride:literal, $word:expr, [$s0:literal, $s1:literal, $s2:literal, $s3:literal]) => {
        $step!($f, $a $b $c $d, ($word) % 16, $s0, $t);
        $step!($f, $d $a $b $c, ($word + $stride) % 16, $s1, $t + 1);
        $step!($f, $c $d $a $b, ($word + 2 * $stride) % 16, $s2, $t + 2);
        $step!($f, $b $c $d $a, ($word + 3 * $stride) % 16, $s3, $t + 3);
    };
}
use sixty_four_steps;
