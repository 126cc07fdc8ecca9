//! Time that a thread has had or wanted the CPU, and time that it waited.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Lap of which the host of a virtual machine does not take most.
const LONG: Duration = Duration::from_millis(16);

/// Measures the calling thread from lap to lap.
pub(super) struct Meter {
    cpu: Duration,
    /// Opened when time is missing for the first time.
    schedule: Option<(File, Schedule)>,
}

/// Scheduler's counters of a thread.
#[derive(Clone, Copy)]
struct Schedule {
    /// Spent ready to run, while others had the CPU.
    delayed: Duration,
    /// Number of times that it was given the CPU.
    turns: u64,
}

impl Meter {
    pub(super) fn new() -> Meter {
        Meter {
            cpu: cpu_time(),
            schedule: None,
        }
    }

    /// Makes the meter of a thread that will wait, so that its first lap is known.
    pub(super) fn of_waiting() -> Meter {
        Meter {
            cpu: cpu_time(),
            schedule: Schedule::open().filter(|(_, now)| now.turns > 0),
        }
    }

    /// Returns the time since the last lap in which the thread had the CPU or wanted it; more than
    /// `busy`, the time in which it had something to do, if it wanted it otherwise too.
    ///
    /// As long as only `little` of `busy` is missing from its CPU time, that is all that is
    /// looked at. `None`: it is not known, this time at least.
    pub(super) fn lap(&mut self, busy: Duration, little: Duration) -> Option<Duration> {
        let cpu = cpu_time();
        let running = cpu.saturating_sub(std::mem::replace(&mut self.cpu, cpu));
        if let Some((file, last)) = &mut self.schedule {
            let now = Schedule::read(file)?;
            let before = std::mem::replace(last, now);
            return Some(running_between(before, now, running, busy));
        }
        if busy.saturating_sub(running) <= little {
            return Some(running);
        }
        let (file, now) = Schedule::open()?;
        self.schedule = Some((file, now));
        // All delay since the thread's start is an upper bound of the lap's. As long a lap is known to
        // have waited even so if most of it is missing.
        let running = running + now.delayed;
        (now.turns > 0 && busy >= LONG && running < busy / 2).then_some(running)
    }
}

fn running_between(before: Schedule, now: Schedule, on_cpu: Duration, busy: Duration) -> Duration {
    // A thread that was not given the CPU again has never let go of it: the missing time was taken
    // by the host of this machine. Or the kernel does not count.
    if now.turns == before.turns {
        return busy;
    }
    on_cpu + now.delayed.saturating_sub(before.delayed)
}

impl Schedule {
    fn open() -> Option<(File, Schedule)> {
        let file = File::open("/proc/thread-self/schedstat").ok()?;
        let now = Schedule::read(&file)?;
        Some((file, now))
    }

    fn read(file: &File) -> Option<Schedule> {
        let mut text = [0; 64];
        let len = file.read_at(&mut text, 0).ok()?;
        Schedule::parse(&text[..len])
    }

    /// Parses three numbers: nanoseconds on the CPU, which are not up to date, nanoseconds of
    /// delay, turns (`Documentation/scheduler/sched-stats.rst`).
    fn parse(text: &[u8]) -> Option<Schedule> {
        let mut numbers = std::str::from_utf8(text).ok()?.split_ascii_whitespace();
        let mut next = || numbers.next()?.parse::<u64>().ok();
        let _on_cpu = next()?;
        Some(Schedule {
            delayed: Duration::from_nanos(next()?),
            turns: next()?,
        })
    }
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn what_the_kernel_writes() {
        let schedule = Schedule::parse(b"125307 1113165 2\n").unwrap();
        assert_eq!(schedule.delayed, Duration::from_nanos(1_113_165));
        assert_eq!(schedule.turns, 2);
        for wrong in [&b""[..], b"1 2", b"1 2 x\n", b"-1 -2 -3", b"\xff 2 3"] {
            assert!(Schedule::parse(wrong).is_none());
        }
    }

    /// Runs `what` in laps until one of them satisfies the check: how long the system lets the
    /// thread wait is out of a test's control.
    fn laps(mut what: impl FnMut(), satisfies: impl Fn(Duration, Option<Duration>) -> bool) {
        let mut meter = Meter::new();
        loop {
            let started = Instant::now();
            what();
            let busy = started.elapsed();
            if satisfies(busy, meter.lap(busy, busy / 8)) {
                return;
            }
        }
    }

    fn spin() {
        let started = Instant::now();
        while started.elapsed() < Duration::from_millis(3) {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn work_is_not_waiting() {
        laps(spin, |busy, running| {
            running.is_some_and(|running| running * 8 > busy * 7)
        });
    }

    #[test]
    fn who_joins_those_that_wait_knows_its_first_lap() {
        let counts = Schedule::open();
        let meter = Meter::of_waiting();
        let knows = counts.is_some_and(|(_, schedule)| schedule.turns > 0);
        assert_eq!(meter.schedule.is_some(), knows);
        assert!(Meter::new().schedule.is_none());
    }

    #[test]
    fn losing_the_cpu_is_not_waiting() {
        let schedule = |delayed, turns| Schedule {
            delayed: Duration::from_millis(delayed),
            turns,
        };
        let running = |now| {
            let ms = Duration::from_millis;
            running_between(schedule(100, 7), now, ms(2), ms(10)).as_millis()
        };
        assert_eq!(running(schedule(108, 8)), 2 + 8, "to another process");
        assert_eq!(running(schedule(100, 7)), 10, "to the host");
        assert_eq!(running(schedule(101, 9)), 2 + 1, "it waited for the rest");
    }

    #[test]
    fn sleep_is_waiting() {
        let counts = Schedule::read(&File::open("/proc/thread-self/schedstat").unwrap());
        if counts.is_none_or(|schedule| schedule.turns == 0) {
            return; // Not counted here.
        }
        let sleep = || std::thread::sleep(Duration::from_millis(3));
        laps(sleep, |busy, running| {
            running.is_some_and(|running| running * 2 < busy)
        });
    }
}
