//! Recently written files: readings of them that are proven to be of one state.
//!
//! A modification time moves when a write call begins, not when it ends, so an equal time before
//! and after the reading does not show that no process was writing. No call is expected to take
//! more than [`WRITE_CALL_NS`], so a file with older times is at rest. A younger one is read under a
//! lease, which the kernel refuses and breaks for writers; where there are no leases, it is read
//! until two readings in a row agree.

use std::os::fd::AsFd;
use std::time::Duration;

use bc_fs::known::{COARSEST_STEP_NS, WRITE_CALL_NS, file_clock, is_stamp_racy, settled_before};
use bc_fs::lease::{self, Refused};
use bc_pool::Cancel;
use bc_walk::{EntryId, Error, ErrorKind, FileStat, Stamp};
use rustix::io::retry_on_intr;
use xxhash_rust::xxh3::Xxh3;

use crate::types::Want;

/// Pause between two readings of a file. A writer may be held up in the middle of a write call: by
/// the scheduler for some milliseconds, for 200 ms where too much memory is dirty (`MAX_PAUSE` of
/// the kernel's `mm/page-writeback.c`). Two readings meanwhile would give the same mixture.
pub(crate) const PAUSE: Duration = Duration::from_millis(500);
/// Readings of a file until two in a row have to agree.
pub(crate) const READINGS: u32 = 3;

/// Separates fresh files from others at the price of a comparison: the clock is read only for files
/// that were fresh when it was read last.
#[derive(Debug)]
pub(crate) struct Clock {
    /// Time before which files were at rest when the clock was read.
    rest_ns: i64,
}

impl Clock {
    pub(crate) fn new() -> Clock {
        let mut clock = Clock { rest_ns: 0 };
        clock.read();
        clock
    }

    /// Reads the clock. To be called now and then, because clocks are also set back.
    pub(crate) fn read(&mut self) -> i64 {
        let now = now_ns();
        self.rest_ns = at_rest_before(now);
        now
    }

    /// True if a write call may be under way in a file of this stamp, as far as times show.
    pub(crate) fn is_fresh(&mut self, stamp: &Stamp) -> bool {
        stamp.mtime_ns.max(stamp.ctime_ns) > self.rest_ns && is_fresh_at(stamp, self.read())
    }
}

fn is_fresh_at(stamp: &Stamp, now: i64) -> bool {
    is_stamp_racy(stamp, now.saturating_sub(WRITE_CALL_NS), COARSEST_STEP_NS)
}

/// Returns the time by the clock that stamps files, in nanoseconds since 1970.
pub(crate) fn now_ns() -> i64 {
    let ns = file_clock();
    #[cfg(test)]
    let ns = ns + crate::tests::clock_ahead_ns();
    ns
}

/// Waits between two readings; false after a cancellation.
pub(crate) fn pause(cancel: &Cancel) -> bool {
    const GLANCES: u32 = 25;
    (0..GLANCES).all(|_| {
        std::thread::sleep(PAUSE / GLANCES);
        !cancel.is_cancelled()
    })
}

/// The readings of one file, one after the other, with looks at its stamp before and after each.
#[derive(Debug)]
pub(crate) struct Readings<T> {
    /// Content of the last reading, and the stamp from before it.
    last: Option<(Stamp, T)>,
    left: u32,
}

/// Conclusion from a reading.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum SteadyVerdict {
    /// Same bytes as in the reading before, and no write call began from before that one on.
    Agrees,
    /// Another reading is needed.
    Again,
    /// The file does not come to rest.
    Restless,
}

impl<T> Default for Readings<T> {
    fn default() -> Readings<T> {
        Readings {
            last: None,
            left: READINGS,
        }
    }
}

impl<T: PartialEq> Readings<T> {
    /// Takes a reading, which gave `content` if it came to its end, with the states of the file
    /// before and after; returns the conclusion.
    pub(crate) fn end(&mut self, before: Stamp, content: Option<T>, after: Stamp) -> SteadyVerdict {
        self.left = self.left.saturating_sub(1);
        let agrees = |(begun, last): &(Stamp, T)| *begun == after && content.as_ref() == Some(last);
        let agrees = self.last.as_ref().is_some_and(agrees);
        self.last = content.map(|content| (before, content));
        match self.left {
            _ if agrees => SteadyVerdict::Agrees,
            0 => SteadyVerdict::Restless,
            _ => SteadyVerdict::Again,
        }
    }

    /// Returns the content of the last reading.
    fn into_content(self) -> Option<T> {
        self.last.map(|(_, content)| content)
    }
}

/// Measure taken against writers of an open file.
pub(crate) enum Watch {
    /// None: it is old, or its writers do not matter.
    Off,
    /// A read lease of its descriptor. With the earlier readings, which were of no use.
    Lease(Readings<u128>),
    /// Two readings, as there is no lease: it is read until two in a row agree.
    Sum(Box<Summed>),
}

/// A file that is read more than once.
pub(crate) struct Summed {
    pub(crate) readings: Readings<u128>,
    /// Checksum of the reading that is under way. An attacker gains nothing by two contents with
    /// one sum: a process that can write to the file can as well write the content that it wants to
    /// be read.
    pub(crate) sum: Xxh3,
}

/// A file that was written to while it was read, or may have been, and waits to be read again.
pub(crate) struct Unsettled {
    pub(crate) entry: EntryId,
    pub(crate) want: Want,
    /// Readings so far.
    pub(crate) readings: Readings<u128>,
}

/// True if the last write to a file of this stamp is so recent, or so far in the future, that it
/// may still be under way: its content is to be read by [`read_fresh`].
pub fn is_fresh(stamp: &Stamp) -> bool {
    is_fresh_at(stamp, now_ns())
}

/// Returns the time such that a file whose times are all older was no longer written to at `now_ns`
/// (both in nanoseconds since 1970), and that every later write gives it another time.
pub fn at_rest_before(now_ns: i64) -> i64 {
    settled_before(now_ns.saturating_sub(WRITE_CALL_NS))
}

/// Reads one state of an open file that [`is_fresh`], with `read`: under a read lease, or, where
/// there is none, until two readings in a row agree.
///
/// `read` gets the state of the file from before it, and a function to call after each piece of it:
/// false once another process wants to write, or after a cancellation. Then it should give up, and
/// its result does not count. It may fail with kind `Changed`, which calls for another reading.
///
/// # Errors
/// Errors of `read`; `stat` as the system gives it; kind `Changed` for a file that does not come to
/// rest, and kind `Cancelled`. The path is empty in those that do not come from `read`.
pub fn read_fresh<T: PartialEq>(
    file: impl AsFd,
    cancel: &Cancel,
    mut read: impl FnMut(&FileStat, &(dyn Fn() -> bool + Sync)) -> Result<T, Error>,
) -> Result<(FileStat, T), Error> {
    let file = file.as_fd();
    let look = || match retry_on_intr(|| rustix::fs::fstat(file)) {
        Ok(stat) => Ok(FileStat::from(&stat)),
        Err(errno) => Err(Error::new(Vec::new(), "stat", errno)),
    };
    let cancelled = || Error::of_kind(Vec::new(), "read", ErrorKind::Cancelled);
    let changed = |error: &Error| error.kind() == ErrorKind::Changed;
    let mut readings = Readings::default();
    loop {
        let leased = take_lease(file).is_ok();
        // A waiting writer gets the file at once.
        let go_on = || {
            let held = !leased || lease::is_held(file);
            if !held {
                lease::give_up(file);
            }
            held && !cancel.is_cancelled()
        };
        let before = look()?;
        let content = read(&before, &go_on);
        let held = leased && lease::is_held(file);
        lease::give_up(file);
        if cancel.is_cancelled() {
            return Err(cancelled());
        }
        let content = match content {
            Err(error) if changed(&error) => None,
            Err(error) => return Err(error),
            Ok(content) if held => return Ok((before, content)),
            // It was given up when the lease was broken.
            Ok(_) if leased => None,
            Ok(content) => Some(content),
        };
        match readings.end(before.stamp, content, look()?.stamp) {
            SteadyVerdict::Again if pause(cancel) => {}
            SteadyVerdict::Again => return Err(cancelled()),
            SteadyVerdict::Agrees => {
                let content = readings.into_content();
                return Ok((before, content.expect("two readings agreed")));
            }
            SteadyVerdict::Restless => {
                return Err(Error::of_kind(Vec::new(), "read", ErrorKind::Changed));
            }
        }
    }
}

/// Takes a read lease, as [`lease::take`].
pub(crate) fn take_lease(file: impl AsFd) -> Result<(), Refused> {
    #[cfg(test)]
    if crate::tests::pretends_no_lease() {
        return Err(Refused::Unavailable(
            rustix::io::Errno::INVAL.raw_os_error(),
        ));
    }
    lease::take(file)
}
