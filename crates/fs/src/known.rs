//! Judges if a file is the one that was recorded, and if a later change of it would show: numbers,
//! times of birth and change, volumes and boots are weighed here and nowhere else.
//!
//! A judgement is [`Same`](Judgement::Same), [`Other`](Judgement::Other) or
//! [`Unproven`](Judgement::Unproven); its caller decides what the last one means. None of them
//! authorises a change: that needs the bytes.
//!
//! A time proves nothing if a later write may leave the same one, which git calls racy. That is so
//! within the file system's [step](crate::mount::Traits::mtime_step_ns), which [`is_racy`] is told,
//! and within a tick of the kernel's clock, for which it has [`TICK_NS`].

use std::os::fd::AsFd;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

use crate::meta::{Identity, Stamp, nanoseconds};
use crate::mount::{CtimeTrust, Inodes, Traits, mount_number};

const SECOND_NS: i64 = 1_000_000_000;

/// Steps in which file systems keep times, in nanoseconds: NTFS, UDF, servers that count
/// milliseconds, exFAT, ext2 and ext4 with inodes of 128 bytes, FAT.
const STEPS_NS: [i64; 6] = [100, 1_000, 1_000_000, 10_000_000, SECOND_NS, COARSEST];
const COARSEST: i64 = COARSEST_STEP_NS.cast_signed();

/// The coarsest step of any file system, FAT's (`fat_truncate_mtime` of the kernel's
/// `fs/fat/misc.c`), in nanoseconds: for where the step is not known.
pub const COARSEST_STEP_NS: u64 = 2_000_000_000;

/// Nanoseconds for which the kernel's clock for file times may stand still while other clocks go
/// on. It moves with the timer's interrupt (`ktime_get_coarse_real_ts64`), every 10 ms at most
/// (`HZ` is at least 100, `kernel/Kconfig.hz`). The interrupt comes late where a virtual machine
/// does not run, so ten of them are allowed for. Since Linux 6.13 some file systems take a finer
/// time where the last one was looked at, others still do not.
pub const TICK_NS: i64 = 100_000_000;

/// Nanoseconds that no write call is expected to take: with the [tick](TICK_NS), two seconds. A
/// modification time moves when a call begins to write, not when it ends.
pub const WRITE_CALL_NS: i64 = 2 * SECOND_NS - TICK_NS;

/// Returns the time by the clock that stamps files, in nanoseconds since 1970.
// The fields' widths differ between architectures.
#[allow(clippy::unnecessary_cast)]
pub fn file_clock() -> i64 {
    let now = clock_gettime(ClockId::RealtimeCoarse);
    nanoseconds(now.tv_sec as i64, now.tv_nsec as u32)
}

/// Returns the time of day in nanoseconds since 1970; 0 before that. Times of files are counted so.
///
/// ```
/// use bc_fs::known::now_ns;
///
/// let day = 24 * 60 * 60 * 1_000_000_000;
/// let yesterday = now_ns() - day;
/// assert!(yesterday > 0);
/// ```
pub fn now_ns() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |since| since.as_nanos() as i64)
}

/// True if a write at the time `looked_ns` or later may leave a file the time that it has: the
/// file's step, or the tick in which it was written, was not over. A time in the future always may.
///
/// `looked_ns` is by [`file_clock`] or by the time of day; `step_ns` is the coarsest step in which
/// the file system keeps times ([`Traits::mtime_step_ns`]), [`COARSEST_STEP_NS`] where it is not
/// known. All three are in nanoseconds.
pub fn is_racy(time_ns: i64, looked_ns: i64, step_ns: u64) -> bool {
    let end = time_ns.saturating_add(possible_step(time_ns, step_ns));
    looked_ns <= end.saturating_add(TICK_NS)
}

/// True if one of a file's times [is racy](is_racy).
pub fn is_stamp_racy(stamp: &Stamp, looked_ns: i64, step_ns: u64) -> bool {
    [stamp.mtime_ns, stamp.ctime_ns]
        .iter()
        .any(|time| is_racy(*time, looked_ns, step_ns))
}

/// Returns the time such that all earlier times are not racy at `looked_ns`, whatever the file
/// system (both in nanoseconds since 1970).
pub fn settled_before(looked_ns: i64) -> i64 {
    looked_ns.saturating_sub(COARSEST + TICK_NS)
}

/// Returns the step that the file system of a time may have, in nanoseconds, if its coarsest is
/// `coarsest_ns`: that for whole seconds, 1 for times that have digits of the finest clock.
///
/// The table of file systems has the coarsest step where one depends on how it was made or mounted.
pub fn possible_step(time_ns: i64, coarsest_ns: u64) -> i64 {
    let coarsest_ns = within(coarsest_ns);
    match time_ns % SECOND_NS {
        0 => coarsest_ns,
        _ => step_of(time_ns, coarsest_ns),
    }
}

/// Returns a step of the table as a positive number of the range of times.
fn within(step_ns: u64) -> i64 {
    step_ns.clamp(1, COARSEST_STEP_NS).cast_signed()
}

/// Returns the longest step up to `coarsest_ns` that a time is a multiple of.
fn step_of(time_ns: i64, coarsest_ns: i64) -> i64 {
    let steps = STEPS_NS.iter().rev();
    let mut possible = steps.filter(|step| **step <= coarsest_ns && time_ns % **step == 0);
    possible.next().copied().unwrap_or(1)
}

/// Returns the second as many views have it: modulo 2^32, as SSH sends it.
pub fn second(ns: i64) -> u32 {
    ns.div_euclid(SECOND_NS) as u32
}

/// Seconds of the coarsest clock.
pub const COARSEST_STEP_SECONDS: u32 = (COARSEST / SECOND_NS) as u32;

/// True if two times are one at the resolution of the coarser of two clocks, which is known by its
/// zeros. Seconds count modulo 2^32.
pub fn at_one_time(one_ns: i64, other_ns: i64) -> bool {
    if one_ns == other_ns {
        return true;
    }
    let apart = second(one_ns).wrapping_sub(second(other_ns)).cast_signed();
    if apart.unsigned_abs() > COARSEST_STEP_SECONDS {
        return false;
    }
    let below = |ns: i64| ns.rem_euclid(SECOND_NS);
    let step = |ns| match possible_step(ns, COARSEST_STEP_NS) {
        1 => 0,
        step => step,
    };
    let difference = i64::from(apart) * SECOND_NS + below(one_ns) - below(other_ns);
    difference.abs() <= step(one_ns).max(step(other_ns))
}

/// True if a time is `before_ns`, or the value to which a file system with steps of `step_ns`
/// rounds it.
pub fn is_kept_as(before_ns: i64, now_ns: i64, step_ns: u64) -> bool {
    let step = within(step_ns);
    let is_rounded = || before_ns - before_ns.rem_euclid(step) == now_ns;
    before_ns == now_ns || now_ns.rem_euclid(step) == 0 && is_rounded()
}

/// True if a time is later than that of another file, even if the file system of the other one has
/// cut off what it could not keep: its coarsest step in nanoseconds is asked for only where that
/// decides. Any clock may count in 100 ns.
pub fn is_later(time_ns: i64, than_ns: i64, step_ns: impl FnOnce() -> u64) -> bool {
    match time_ns.saturating_sub(than_ns) {
        ..=0 => false,
        COARSEST.. => true,
        later => later >= step_of(than_ns, within(step_ns()).max(STEPS_NS[0])),
    }
}

/// True if a time that was rounded down is certain to have been before `since_ns`.
pub fn is_before(time_ns: i64, since_ns: i64) -> bool {
    let last = time_ns.saturating_add(possible_step(time_ns, COARSEST_STEP_NS) - 1);
    last < since_ns
}

/// True if this stands for a time that 64 bits of nanoseconds cannot hold: see
/// [`nanoseconds`]. Two of them that look equal may be any two. Earlier versions recorded the first
/// with a fraction of a second.
fn is_clipped(time_ns: i64) -> bool {
    time_ns == i64::MAX || time_ns < i64::MIN + SECOND_NS
}

/// Answer to the question if a file is the one that was recorded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Judgement {
    /// It is.
    Same,
    /// It is another one, or another state of it.
    Other,
    /// The evidence does not say.
    Unproven(Doubt),
}

/// Reason for which equal numbers and times prove nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Doubt {
    /// The device has another number, and the volume is not known: another one may have the same
    /// numbers.
    Device,
    /// Inode numbers are not a file's for good.
    Numbers,
    /// Change times are set to what a program wants.
    ChangeTime,
    /// A time is so far away that it could not be recorded.
    Clipped,
    /// The file was changed so shortly before that a later change may have left it the same times.
    Racy,
    /// The time of birth is not known, or on one side only.
    Birth,
    /// Times contradict each other: a clock was set.
    Clock,
}

/// Recorded evidence of a file in one state, or what was found of it now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Known<'a> {
    /// Device and inode number.
    pub id: Identity,
    /// Time of birth in nanoseconds since 1970, if its file system keeps that and it was asked for.
    pub born_ns: Option<i64>,
    /// Size and times.
    pub stamp: Stamp,
    /// Name of the volume as of [`volume_at`](crate::volume::volume_at), which it has in every boot; empty
    /// where it is not known.
    pub volume: &'a str,
}

impl Known<'_> {
    /// Returns what `stat` says of a file.
    pub fn of(id: Identity, stamp: Stamp) -> Known<'static> {
        Known {
            id,
            stamp,
            born_ns: None,
            volume: "",
        }
    }

    /// True if both volumes are known and differ.
    pub fn is_on_another_volume(&self, now: &Known<'_>) -> bool {
        let known = !self.volume.is_empty() && !now.volume.is_empty();
        known && self.volume != now.volume
    }

    /// Judges if what was found `now` is this file in this state, by numbers and times as they are:
    /// [`doubt`](Known::doubt) says what they are worth. Devices may change their numbers from mount
    /// to mount: volumes that are known decide.
    pub fn judge(&self, now: &Known<'_>) -> Judgement {
        let births = self.born_ns.zip(now.born_ns);
        let same_volume = !self.volume.is_empty() && self.volume == now.volume;
        if self.is_on_another_volume(now)
            || self.id.ino != now.id.ino
            || self.stamp != now.stamp
            || births.is_some_and(|(then, now)| then != now)
        {
            Judgement::Other
        } else if self.id.dev != now.id.dev && !same_volume {
            Judgement::Unproven(Doubt::Device)
        } else if self.born_ns.is_some() != now.born_ns.is_some() {
            Judgement::Unproven(Doubt::Birth)
        } else {
            Judgement::Same
        }
    }

    /// Returns the reason for which this state, seen at `looked_ns` (see [`is_racy`]) on a file
    /// system of these traits, does not prove its content when it is met again; `None` if it does.
    pub fn doubt(&self, looked_ns: i64, traits: &Traits) -> Option<Doubt> {
        if traits.inodes != Inodes::Stable || self.id.ino >= traits.inodes_below {
            Some(Doubt::Numbers)
        } else if traits.ctime != CtimeTrust::Real {
            Some(Doubt::ChangeTime)
        } else if is_clipped(self.stamp.ctime_ns) {
            Some(Doubt::Clipped)
        } else {
            // Every change moves this one, and no program can set it.
            let ctime_ns = self.stamp.ctime_ns;
            is_racy(ctime_ns, looked_ns, traits.mtime_step_ns).then_some(Doubt::Racy)
        }
    }

    /// True if an edit in the very moment of the last change of this state would show: it may leave
    /// the time of change alone, but not the time of modification too, unless that is of this
    /// moment itself. On a file system that keeps whole seconds such a moment is long.
    pub fn shows_edits_of_its_moment(&self) -> bool {
        let Stamp {
            mtime_ns, ctime_ns, ..
        } = self.stamp;
        ctime_ns % SECOND_NS != 0 && mtime_ns.abs_diff(ctime_ns) > TICK_NS.unsigned_abs()
    }
}

/// Times of an inode by its file system's clock, in nanoseconds since 1970, as far as known.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct InodeTimes {
    /// Time of birth.
    pub born_ns: Option<i64>,
    /// Time of the last change.
    pub ctime_ns: Option<i64>,
}

impl InodeTimes {
    /// Judges if the inode with a recorded number, size and time of modification is the recorded
    /// one. Numbers are given to new files, and size and mtime are common to packages, images and
    /// chunks; the time of birth, which no program can set, decides.
    ///
    /// Its times are compared with the recorded change time, by the same clock, and with the time
    /// at which the record was made, which may be by another clock. No program can set either of
    /// the inode's; where they go backwards the clock was set, and its times prove nothing.
    pub fn judge(self, ctime_ns: Option<i64>, recorded_ns: Option<i64>) -> Judgement {
        let known = |time: &i64| !is_clipped(*time);
        let (born, ctime) = (self.born_ns.filter(known), ctime_ns.filter(known));
        match (self.ctime_ns.filter(known), ctime) {
            // Of file systems that count seconds many changes have one time.
            (Some(is), Some(was)) if is == was && is % SECOND_NS != 0 => return Judgement::Same,
            (Some(is), Some(was)) if is < was => return Judgement::Unproven(Doubt::Clock),
            (Some(is), _) if born.is_some_and(|born| born > is) => {
                return Judgement::Unproven(Doubt::Clock);
            }
            _ => {}
        }
        match (born, ctime) {
            (None, _) => Judgement::Unproven(Doubt::Birth),
            (Some(born), Some(ctime)) if born <= ctime => Judgement::Same,
            // After both clocks' times: one alone may have been wrong.
            (Some(born), ctime) => match ctime.max(recorded_ns) {
                Some(record) if born > record => Judgement::Other,
                _ => Judgement::Unproven(Doubt::Clock),
            },
        }
    }
}

/// A boot and a mount within it: while both are the same, data that were written to a file system
/// and not yet to its disk are still there.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct MountSession {
    /// The kernel's identifier of the boot; zeros where it has none.
    pub boot: [u8; 16],
    /// The mount, as of [`mount_number`]; 0 where it is not known.
    pub mount: u64,
}

impl MountSession {
    /// Returns the present session of the mount that `file` was opened by.
    pub fn of(file: impl AsFd) -> MountSession {
        MountSession {
            boot: boot_id(),
            mount: mount_number(file).unwrap_or(0),
        }
    }

    /// True if both of it are known.
    pub fn is_known(&self) -> bool {
        self.boot != [0; 16] && self.mount != 0
    }

    /// True if both are known to be one.
    pub fn is(&self, other: &MountSession) -> bool {
        self.is_known() && self == other
    }
}

/// Returns the kernel's identifier of this boot; zeros where there is none.
pub fn boot_id() -> [u8; 16] {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    let bytes: Vec<u8> = digits
        .chunks_exact(2)
        .map(|pair| (pair[0] << 4 | pair[1]) as u8)
        .collect();
    bytes.try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests;
