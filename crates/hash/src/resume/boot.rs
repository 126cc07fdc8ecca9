//! Identity and time of the system's boot. Bytes that a run read may have been in memory alone,
//! written by another process and not yet on the disk: after a power cut the disk may have the
//! file's new times, and its old bytes. So files read in another boot, or through another mount,
//! count only if they had been changed last before that boot, since their bytes came from the disk.

use bc_fs::known::boot_id;
use rustix::time::{ClockId, clock_gettime};

/// A start of the system.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Boot {
    /// Id from the kernel; zeros where it has none.
    pub(super) id: [u8; 16],
    /// Time of the boot, in nanoseconds since 1970, by the clock as it was when this was asked.
    pub(super) began_ns: i64,
}

impl Boot {
    /// Returns the present boot.
    pub(super) fn this() -> Boot {
        let ns = |clock| {
            let time = clock_gettime(clock);
            let ns = time.tv_sec.saturating_mul(1_000_000_000);
            ns.saturating_add(time.tv_nsec)
        };
        Boot {
            id: boot_id(),
            began_ns: ns(ClockId::Realtime).saturating_sub(ns(ClockId::Boottime)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_boot_is_itself_and_began_before_now() {
        let (one, other) = (Boot::this(), Boot::this());
        let apart = one.began_ns.abs_diff(other.began_ns);
        assert!(apart < 60_000_000_000, "{one:?} {other:?}");
        assert_eq!(one.id, other.id);
    }
}
