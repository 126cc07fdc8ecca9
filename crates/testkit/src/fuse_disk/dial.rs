//! Ways in which a [`FuseDisk`](super::FuseDisk) makes its callers wait or fail, and what it counts
//! and records of their requests. Knows nothing of files.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;

/// Content that no close stores: files that contain these bytes lose all their content.
pub const UNSTORABLE: &str = "UNSTORABLE";

/// Part of the names whose requests can be held, with those for what is below them.
pub const STALLING: &str = "STALLING";

/// Part of the names of files and directories that cannot be read to their end.
pub const FAILING: &str = "FAILING";

/// Byte of a [`FAILING`] file from which on it cannot be read.
pub const FAILING_FROM: u64 = 64 << 10;

/// Ways in which a [`FuseDisk`](super::FuseDisk) makes its callers wait or fail. By default it does
/// neither.
#[derive(Clone, Debug, Default)]
pub struct Behaviour {
    /// Time that each request takes, however many are in flight.
    pub latency: Duration,
    /// Greatest random addition to the latency.
    pub jitter: Duration,
    /// Greatest number of requests answered in a second.
    pub requests_per_second: Option<u32>,
    /// Time of the one decompressor for each read: reads wait for each other.
    pub decompressor: Option<Duration>,
    /// Arm of a disk that all reads share.
    pub arm: Option<DiskArm>,
    /// Greatest number of bytes that a read returns, unless it is at the end of the file.
    pub short_reads: Option<usize>,
    /// Error of reads of [`FAILING`] files from [`FAILING_FROM`] on, and of the second half of
    /// [`FAILING`] directories.
    pub read_error: Option<Errno>,
    /// Error of the close of a file that was written to and contains [`UNSTORABLE`]; `fsync`
    /// reports nothing.
    pub close_error: Option<Errno>,
    /// Directories list FIFOs, sockets and devices as regular files.
    pub lists_all_as_files: bool,
    /// Time for which the kernel may believe names and attributes.
    pub believed_for: Duration,
    /// True if requests are recorded, for [`take_record`](super::FuseDisk::take_record).
    pub records: bool,
}

/// Arm of a disk on which files lie in the order of their inode numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiskArm {
    /// Time to read what follows the last read, for each MiB.
    pub transfer: Duration,
    /// Time for a way of one file, and at most of `furthest`.
    pub step: Duration,
    /// Time for the longest way.
    pub furthest: Duration,
}

/// Kind of a request to a [`FuseDisk`](super::FuseDisk).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RequestKind {
    /// Find a name in a directory.
    Lookup,
    /// Return attributes, or the target of a link.
    Attributes,
    /// Set attributes; make, move or remove a name.
    Change,
    /// Open or create a file.
    Open,
    /// Read from a file.
    Read,
    /// Write to a file.
    Write,
    /// Close one of a file's descriptors.
    Close,
    /// Write out a file or a directory.
    Sync,
    /// Open a directory, or list a part of it.
    List,
}

/// Way in which a disk is lost to its callers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DiskLoss {
    /// Each request is answered with this error, by a mount that stays.
    Errors(Errno),
    /// The server is gone: the kernel refuses every request, and what was open stays dead.
    Gone,
}

/// Request that has arrived at a [`FuseDisk`](super::FuseDisk).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DiskRequest {
    /// Its kind.
    pub kind: RequestKind,
    /// Path below the root of what it is about.
    pub path: PathBuf,
}

/// Requests that a [`FuseDisk`](super::FuseDisk) has answered.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RequestCounts {
    /// Number of requests.
    pub requests: u64,
    /// Greatest number of them at one time.
    pub most_in_flight: usize,
    /// Ways of the arm, in files.
    pub travel: u64,
}

/// A [`Behaviour`] at work, shared by all threads of the server.
pub(super) struct Dial {
    pub(super) behaviour: Behaviour,
    state: Mutex<DialState>,
    /// Signalled with each arrival, and at a release.
    changed: Condvar,
}

struct DialState {
    counts: RequestCounts,
    in_flight: usize,
    record: Vec<DiskRequest>,
    /// Kind of the requests for [`STALLING`] names that are held, and the number of those.
    held: Option<RequestKind>,
    holding: usize,
    planned: Option<PlannedLoss>,
    lost: Option<DiskLoss>,
    rate: OneByOne,
    decompressor: OneByOne,
    arm: OneByOne,
    /// Address behind the last read.
    position: u64,
    seed: u64,
}

/// Loss that comes with the last of so many requests of a kind.
struct PlannedLoss {
    kind: RequestKind,
    left: usize,
    loss: DiskLoss,
}

/// Request in flight, from its arrival on.
pub(super) struct InFlight<'d>(&'d Dial);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.lock().in_flight -= 1;
    }
}

impl Dial {
    pub(super) fn new(behaviour: Behaviour) -> Dial {
        let now = Instant::now();
        Dial {
            behaviour,
            state: Mutex::new(DialState {
                counts: RequestCounts::default(),
                in_flight: 0,
                record: Vec::new(),
                held: None,
                holding: 0,
                planned: None,
                lost: None,
                rate: OneByOne { free_at: now },
                decompressor: OneByOne { free_at: now },
                arm: OneByOne { free_at: now },
                position: 0,
                seed: 1,
            }),
            changed: Condvar::new(),
        }
    }

    /// Takes a request, and waits as long as it takes before it is answered.
    pub(super) fn arrive(&self, kind: RequestKind, path: &Path) -> InFlight<'_> {
        let now = Instant::now();
        let mut state = self.lock();
        state.counts.requests += 1;
        state.in_flight += 1;
        state.counts.most_in_flight = state.counts.most_in_flight.max(state.in_flight);
        if self.behaviour.records {
            let path = path.to_owned();
            state.record.push(DiskRequest { kind, path });
        }
        if let Some(planned) = &mut state.planned
            && planned.kind == kind
        {
            planned.left = planned.left.saturating_sub(1);
            if planned.left == 0 {
                state.lost = Some(planned.loss);
                state.planned = None;
            }
        }
        self.changed.notify_all();
        let guard = InFlight(self);
        state.holding += 1;
        while state.held == Some(kind) && is_below(path, STALLING) {
            self.changed.notify_all();
            state = self.wait(state);
        }
        state.holding -= 1;
        let mut done = now + self.behaviour.latency + state.jitter(self.behaviour.jitter);
        if let Some(most) = self.behaviour.requests_per_second {
            let cost = Duration::from_secs(1) / most.max(1);
            done = done.max(state.rate.occupy(now, cost));
        }
        drop(state);
        sleep_until(done);
        guard
    }

    /// Waits for what a read of `length` bytes at `offset` of the file with this number needs.
    pub(super) fn read(&self, file: u64, offset: u64, length: usize) {
        let now = Instant::now();
        let mut done = now;
        let mut state = self.lock();
        if let Some(cost) = self.behaviour.decompressor {
            done = state.decompressor.occupy(now, cost);
        }
        if let Some(arm) = self.behaviour.arm {
            let way = state.travel(file, offset, length);
            let time = arm.step.saturating_mul(way).min(arm.furthest);
            let transfer = arm.transfer.mul_f64(length as f64 / f64::from(1 << 20));
            done = done.max(state.arm.occupy(now, time + transfer));
        }
        drop(state);
        sleep_until(done);
    }

    /// Has the disk lost when its `nth` request of that kind from now on arrives.
    pub(super) fn lose_at(&self, kind: RequestKind, nth: usize, loss: DiskLoss) {
        let left = nth;
        self.lock().planned = Some(PlannedLoss { kind, left, loss });
    }

    pub(super) fn lost(&self) -> Option<DiskLoss> {
        self.lock().lost
    }

    /// Has the disk back, if it was lost or is to be.
    pub(super) fn regain(&self) {
        let mut state = self.lock();
        (state.planned, state.lost) = (None, None);
    }

    pub(super) fn hold(&self, kind: RequestKind) {
        self.lock().held = Some(kind);
    }

    pub(super) fn release(&self) {
        self.lock().held = None;
        self.changed.notify_all();
    }

    pub(super) fn wait_held(&self) -> bool {
        self.wait_until(|state| state.holding > 0)
    }

    pub(super) fn wait_for(&self, is_enough: impl Fn(&[DiskRequest]) -> bool) -> bool {
        self.wait_until(|state| is_enough(&state.record))
    }

    fn wait_until(&self, is_so: impl Fn(&DialState) -> bool) -> bool {
        /// No measure of speed: what has not come by then is taken never to come.
        const NEVER: Duration = Duration::from_secs(60);
        let waited = self
            .changed
            .wait_timeout_while(self.lock(), NEVER, |state| !is_so(state));
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    pub(super) fn take_counts(&self) -> RequestCounts {
        std::mem::take(&mut self.lock().counts)
    }

    pub(super) fn take_record(&self) -> Vec<DiskRequest> {
        std::mem::take(&mut self.lock().record)
    }

    fn lock(&self) -> MutexGuard<'_, DialState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, DialState>) -> MutexGuard<'s, DialState> {
        let waited = self.changed.wait(state);
        waited.unwrap_or_else(PoisonError::into_inner)
    }
}

impl DialState {
    /// Moves the arm to a read and behind it; returns its way in files.
    fn travel(&mut self, file: u64, offset: u64, length: usize) -> u32 {
        /// Files lie so far apart; those that are larger reach into the next ones.
        const SPACING: u64 = 1 << 20;
        let address = file * SPACING + offset;
        let way = self.position.abs_diff(address).div_ceil(SPACING);
        self.position = address + length as u64;
        self.counts.travel += way;
        u32::try_from(way).unwrap_or(u32::MAX)
    }

    /// Returns a part of `most` that looks random: SplitMix64 (Steele, Lea, Flood 2014).
    fn jitter(&mut self, most: Duration) -> Duration {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.seed;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        most.mul_f64((z ^ z >> 31) as f64 / u64::MAX as f64)
    }
}

/// Resource that serves one request after the other.
struct OneByOne {
    free_at: Instant,
}

impl OneByOne {
    /// Takes `cost` of it from `now` on; returns the time when that is done.
    fn occupy(&mut self, now: Instant, cost: Duration) -> Instant {
        self.free_at = self.free_at.max(now) + cost;
        self.free_at
    }
}

fn sleep_until(then: Instant) {
    let left = then.saturating_duration_since(Instant::now());
    if !left.is_zero() {
        std::thread::sleep(left);
    }
}

/// True if `part` is in the last name of the path.
pub(super) fn is_named(path: &Path, part: &str) -> bool {
    let name = path.file_name().map_or(&b""[..], OsStr::as_bytes);
    contains(name, part.as_bytes())
}

/// True if `part` is in any name of the path.
fn is_below(path: &Path, part: &str) -> bool {
    contains(path.as_os_str().as_bytes(), part.as_bytes())
}

pub(super) fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn one_request_at_a_time_is_served() {
        let now = Instant::now();
        let mut one = OneByOne { free_at: now };
        assert_eq!(one.occupy(now, 3 * MS), now + 3 * MS);
        assert_eq!(one.occupy(now + MS, 3 * MS), now + 6 * MS);
        // Idle time is not saved up.
        assert_eq!(one.occupy(now + 20 * MS, MS), now + 21 * MS);
    }

    #[test]
    fn jitter_differs_and_is_bounded() {
        let dial = Dial::new(Behaviour::default());
        let mut state = dial.lock();
        let some: Vec<Duration> = (0..100).map(|_| state.jitter(MS)).collect();
        assert!(some.iter().all(|jitter| *jitter <= MS));
        assert!(some.iter().any(|jitter| *jitter < MS / 4));
        assert!(some.iter().any(|jitter| *jitter > MS * 3 / 4));
        assert_eq!(state.jitter(Duration::ZERO), Duration::ZERO);
    }

    #[test]
    fn the_arm_travels_between_reads_that_do_not_follow_each_other() {
        let dial = Dial::new(Behaviour::default());
        let mut state = dial.lock();
        assert_eq!(state.travel(7, 0, 4096), 7);
        assert_eq!(state.travel(7, 4096, 100), 0, "it follows");
        assert_eq!(state.travel(7, 0, 4096), 1, "again from its beginning");
        assert_eq!(state.travel(9, 0, 10), 2);
        assert_eq!(state.travel(4, 0, 10), 6);
        assert_eq!(state.counts.travel, 16);
    }
}
