//! SHA-1 compression.

#[cfg(target_arch = "aarch64")]
mod arm;
#[cfg(target_arch = "aarch64")]
mod arm_sha;
mod lanes;
#[cfg(target_arch = "x86_64")]
mod sha_ni;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(target_arch = "aarch64")]
pub(crate) use arm::select;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86::select;

/// FIPS 180-4, section 4.2.1: one constant for each twenty rounds.
const K: [u32; 4] = [0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6];

/// Expands to the eighty rounds, each calling `$round!(F, a b c d e, t)` with `$choose`, `$parity`
/// or `$majority` for F: instead of moving the working variables, their roles rotate, and are back
/// in place after five rounds.
macro_rules! eighty_rounds {
    ($round:ident, $a:ident $b:ident $c:ident $d:ident $e:ident) => {
        eighty_rounds!(@twenty $round, choose, $a $b $c $d $e, 0);
        eighty_rounds!(@twenty $round, parity, $a $b $c $d $e, 20);
        eighty_rounds!(@twenty $round, majority, $a $b $c $d $e, 40);
        eighty_rounds!(@twenty $round, parity, $a $b $c $d $e, 60);
    };
    (@twenty $round:ident, $f:ident, $a:ident $b:ident $c:ident $d:ident $e:ident, $t:expr) => {
        eighty_rounds!(@five $round, $f, $a $b $c $d $e, $t);
        eighty_rounds!(@five $round, $f, $a $b $c $d $e, $t + 5);
        eighty_rounds!(@five $round, $f, $a $b $c $d $e, $t + 10);
        eighty_rounds!(@five $round, $f, $a $b $c $d $e, $t + 15);
    };
    (@five $round:ident, $f:ident, $a:ident $b:ident $c:ident $d:ident $e:ident, $t:expr) => {
        $round!($f, $a $b $c $d $e, $t);
        $round!($f, $e $a $b $c $d, $t + 1);
        $round!($f, $d $e $a $b $c, $t + 2);
        $round!($f, $c $d $e $a $b, $t + 3);
        $round!($f, $b $c $d $e $a, $t + 4);
    };
}
use eighty_rounds;
