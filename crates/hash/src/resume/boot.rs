//! Since when the system runs. What a run read may have been in memory alone, written by somebody
//! and not yet on the disk: after a power cut the disk may have the file's new times, and its old
//! bytes. So what was read in another boot, or through another mount, counts only of files that had
//! been changed last before that boot, whose bytes came from the disk.

use rustix::time::{ClockId, clock_gettime};

/// A start of the system.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Boot {
    /// As the kernel names it; zeros where it does not.
    pub(super) id: [u8; 16],
    /// When, in nanoseconds since 1970, by the clock as it was when this was asked.
    pub(super) began_ns: i64,
}

impl Boot {
    /// This one.
    pub(super) fn this() -> Boot {
        let ns = |clock| {
            let time = clock_gettime(clock);
            let ns = time.tv_sec.saturating_mul(1_000_000_000);
            ns.saturating_add(time.tv_nsec)
        };
        Boot {
            id: id().unwrap_or_default(),
            began_ns: ns(ClockId::Realtime).saturating_sub(ns(ClockId::Boottime)),
        }
    }

    /// Whether both are known to be one.
    pub(super) fn is(&self, other: &Boot) -> bool {
        self.id == other.id && self.id != [0; 16]
    }
}

fn id() -> Option<[u8; 16]> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    let bytes: Vec<u8> = digits
        .chunks_exact(2)
        .map(|pair| (pair[0] << 4 | pair[1]) as u8)
        .collect();
    bytes.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_boot_is_itself_and_began_before_now() {
        let (one, other) = (Boot::this(), Boot::this());
        let apart = one.began_ns.abs_diff(other.began_ns);
        assert!(apart < 60_000_000_000, "{one:?} {other:?}");
        assert_eq!(one.is(&other), one.id != [0; 16]);
        let unknown = Boot { id: [0; 16], ..one };
        assert!(!unknown.is(&unknown));
    }
}
