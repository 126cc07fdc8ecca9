//! One status line on stderr, redrawn a few times a second by a thread of its
//! own, so that the engines only bump counters they keep anyway.
//!
//! The cursor waits at the start of the line. So even if a terminal rewraps the line when it is
//! made narrower, erasing from the cursor on removes it all.

pub mod line;

use std::collections::VecDeque;
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::calls::{CallWatch, LongCall};
use crate::parse::args::{Choice, Common, LogFormat};
pub use line::{ProgressCounts, counted, nonzero, size, thousands};
use line::{Rate, render};

/// Time between two drawings.
const EVERY: Duration = Duration::from_millis(100);
/// Runs shorter than this draw nothing, so that quick commands do not flicker.
const PATIENCE: Duration = Duration::from_millis(300);
/// Rates are those of this last stretch, so that a stall shows.
const RECENT: Duration = Duration::from_secs(5);
/// Time between two looks at what the threads wait for.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A call that has waited for so long is shown.
const LONG: Duration = Duration::from_secs(5);

/// True while a status line is on the screen. Only changed under stderr's lock.
static DRAWN: AtomicBool = AtomicBool::new(false);
/// True while the cursor is behind a line that another writer has not finished, or the process is
/// about to end: nothing may be drawn then.
static HELD: AtomicBool = AtomicBool::new(false);

const ERASE: &[u8] = b"\r\x1b[J";

/// Name and totals of the phase that a status line shows beside the counts.
struct Phase {
    name: &'static str,
    files_total: u64,
    bytes_total: u64,
    /// Counts at the start of the phase.
    begun: CountsAt,
}

/// Counts at a time.
#[derive(Clone, Copy)]
struct CountsAt {
    time: Instant,
    counts: ProgressCounts,
}

/// A running display; [`Display::stop`] or drop takes it off the screen.
pub struct Display {
    phase: Arc<Mutex<Phase>>,
    reading: Arc<Reading>,
    thread: Option<DrawingThread>,
}

/// Thread that draws until `working` is dropped.
struct DrawingThread {
    working: Sender<()>,
    handle: JoinHandle<()>,
}

/// Reads how far the work is. Totals it does not know stay 0.
pub type Reading = dyn Fn() -> ProgressCounts + Send + Sync;

/// Reads an engine's counters.
pub fn reading(progress: &Arc<bc_hash::HashProgress>) -> Arc<Reading> {
    let progress = Arc::clone(progress);
    Arc::new(move || counts(&progress.files, &progress.bytes))
}

/// Returns the counts without totals.
pub fn counts(files: &AtomicU64, bytes: &AtomicU64) -> ProgressCounts {
    ProgressCounts {
        files: files.load(Ordering::Relaxed),
        bytes: bytes.load(Ordering::Relaxed),
        ..ProgressCounts::default()
    }
}

impl Display {
    /// Starts a display if the options and the terminal want one.
    pub fn start(common: &Common, phase: &'static str, reading: Arc<Reading>) -> Display {
        let mut display = Display {
            phase: Arc::new(Mutex::new(Phase {
                name: phase,
                files_total: 0,
                bytes_total: 0,
                begun: CountsAt {
                    time: Instant::now(),
                    counts: ProgressCounts::default(),
                },
            })),
            reading: Arc::clone(&reading),
            thread: None,
        };
        let wanted = match common.progress {
            Choice::Never => false,
            // It is no object, and every line is to be one.
            _ if common.log_format == LogFormat::Json => false,
            Choice::Always => true,
            Choice::Auto => !common.quiet && can_redraw(),
        };
        if !wanted {
            return display;
        }
        // Somebody who sees it may press Ctrl-C.
        super::signals::watch();
        let shown = Arc::clone(&display.phase);
        let (working, is_over) = mpsc::channel();
        let always = common.progress == Choice::Always;
        let thread = std::thread::Builder::new()
            .name("progress".into())
            .spawn(move || draw_until(&shown, &is_over, &*reading, always));
        display.thread = thread.ok().map(|handle| DrawingThread { working, handle });
        display
    }

    /// Returns true if it is shown.
    pub fn is_shown(&self) -> bool {
        self.thread.is_some()
    }

    /// Sets the name of the phase and, where known, its work (0: not known).
    pub fn phase(&self, name: &'static str, files: u64, bytes: u64) {
        if let Ok(mut phase) = self.phase.lock() {
            *phase = Phase {
                name,
                files_total: files,
                bytes_total: bytes,
                begun: CountsAt {
                    time: Instant::now(),
                    counts: (self.reading)(),
                },
            };
        }
    }

    /// Takes the line off the screen.
    pub fn stop(mut self) {
        self.halt();
    }

    fn halt(&mut self) {
        if let Some(DrawingThread { working, handle }) = self.thread.take() {
            drop(working);
            let _ = handle.join();
        }
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        self.halt();
    }
}

/// Returns true if stderr is a terminal that can erase what it shows.
fn can_redraw() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

fn draw_until(phase: &Mutex<Phase>, is_over: &Receiver<()>, reading: &Reading, always: bool) {
    let started = Instant::now();
    let mut recent = Recent::default();
    let mut waits = ShownWait::default();
    loop {
        let stopped = is_over.recv_timeout(EVERY) != Err(RecvTimeoutError::Timeout);
        let waits_for = waits.look(started.elapsed());
        let Ok(phase) = phase.lock() else { return };
        let (now, counts) = (Instant::now(), reading());
        let rate = recent.rate(phase.begun, CountsAt { time: now, counts });
        let text = ((now - started >= PATIENCE && !stopped) || (always && stopped))
            .then(|| phase.line(counts, rate, waits_for, now, width()));
        drop(phase);
        if let Some(text) = text {
            draw(&text);
        }
        if stopped {
            clear_line();
            return;
        }
    }
}

impl Phase {
    fn line(
        &self,
        mut counts: ProgressCounts,
        rate: Rate,
        waits_for: Option<&LongCall>,
        now: Instant,
        width: usize,
    ) -> String {
        counts.files_total = counts.files_total.max(self.files_total);
        counts.bytes_total = counts.bytes_total.max(self.bytes_total);
        // Only this phase's work counts: earlier work had another speed.
        counts.files = counts.files.saturating_sub(self.begun.counts.files);
        counts.bytes = counts.bytes.saturating_sub(self.begun.counts.bytes);
        render(
            counts.phase.unwrap_or(self.name),
            counts,
            rate,
            waits_for,
            now.saturating_duration_since(self.begun.time),
            width,
        )
    }
}

/// Calls that the threads wait for.
#[derive(Default)]
struct ShownWait {
    calls: CallWatch,
    looked: Duration,
    longest: Option<LongCall>,
}

impl ShownWait {
    /// Returns the call about a file that has waited for [`LONG`], and longest; looks from time to time.
    fn look(&mut self, now: Duration) -> Option<&LongCall> {
        if now - self.looked >= LOOK_EVERY {
            self.looked = now;
            self.calls.look(now);
            let mut long = self.calls.long_calls(now, LONG);
            self.longest = long.find(LongCall::is_about_a_file);
        }
        self.longest.as_ref()
    }
}

/// Counts of the last few seconds.
#[derive(Default)]
struct Recent(VecDeque<CountsAt>);

impl Recent {
    /// Returns the work per second since `begun`, the phase's beginning, or of its last [`RECENT`].
    fn rate(&mut self, begun: CountsAt, now: CountsAt) -> Rate {
        while self.0.front().is_some_and(|then| then.time < begun.time) {
            self.0.pop_front();
        }
        if self.0.is_empty() {
            self.0.push_back(begun);
        }
        self.0.push_back(now);
        while self.0.len() > 2 && now.time - self.0[1].time >= RECENT {
            self.0.pop_front();
        }
        let then = self.0[0];
        let seconds = (now.time - then.time).as_secs_f64();
        if seconds <= 0.0 {
            return Rate::default();
        }
        Rate {
            files: now.counts.files.saturating_sub(then.counts.files) as f64 / seconds,
            bytes: now.counts.bytes.saturating_sub(then.counts.bytes) as f64 / seconds,
        }
    }
}

/// Returns the columns that a line may fill: one is left free, where terminals differ in when they
/// wrap.
pub fn width() -> usize {
    columns(rustix::stdio::stderr()) - 1
}

/// Returns the columns of a terminal; 80 of one that does not tell.
pub fn columns(terminal: impl AsFd) -> usize {
    match rustix::termios::tcgetwinsize(terminal) {
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
        _ => 80,
    }
}

/// Returns true if this process is in the background of a shell, which has the screen for itself.
fn in_background() -> bool {
    rustix::termios::tcgetpgrp(rustix::stdio::stderr())
        .is_ok_and(|group| group != rustix::process::getpgrp())
}

fn draw(text: &str) {
    let mut err = std::io::stderr().lock();
    if HELD.load(Ordering::Relaxed) || in_background() {
        return;
    }
    let _ = err.write_all(&[ERASE, text.as_bytes(), b"\r"].concat());
    let _ = err.flush();
    DRAWN.store(true, Ordering::Relaxed);
}

/// Takes the status line off before something else is printed.
pub fn clear_line() {
    let _ = with_line_off(|_| Ok(()));
}

/// Takes it off for good: the process is about to end.
pub fn clear_for_good() {
    HELD.store(true, Ordering::Relaxed);
    clear_line();
}

/// Runs `write` while no status line is on the screen.
pub fn with_line_off<T>(
    write: impl FnOnce(&mut std::io::StderrLock<'_>) -> std::io::Result<T>,
) -> std::io::Result<T> {
    let mut err = std::io::stderr().lock();
    if DRAWN.swap(false, Ordering::Relaxed) {
        let _ = err.write_all(ERASE);
        let _ = err.flush();
    }
    write(&mut err)
}

/// Results on the terminal that may also show the status line.
pub struct Shared<W>(pub W);

impl<W: Write> Write for Shared<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        with_line_off(|_| {
            let count = self.0.write(bytes)?;
            if let Some(last) = bytes[..count].last() {
                // Drawing behind half a line would erase it.
                HELD.store(*last != b'\n', Ordering::Relaxed);
            }
            Ok(count)
        })
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(bytes: u64) -> ProgressCounts {
        ProgressCounts {
            files: bytes / 100,
            bytes,
            ..ProgressCounts::default()
        }
    }

    #[test]
    fn rates_are_those_of_the_phase_and_of_late() {
        let start = Instant::now();
        let after = |millis| start + Duration::from_millis(millis);
        let mut recent = Recent::default();
        let counted = |millis, bytes| CountsAt {
            time: after(millis),
            counts: at(bytes),
        };
        let begun = counted(0, 0);
        let mut bytes = |begun, millis, count| recent.rate(begun, counted(millis, count)).bytes;
        // No earlier sample than the beginning.
        assert_eq!(bytes(begun, 50, 1000), 20_000.0);
        assert_eq!(bytes(begun, 100, 1000), 10_000.0);
        // Another phase: earlier work does not count.
        let next = counted(200, 1000);
        assert_eq!(bytes(next, 300, 1500), 5_000.0);
        // A stall shows once the stretch has passed.
        assert_eq!(bytes(next, 5200, 1500), 100.0);
        assert_eq!(bytes(next, 5300, 1500), 0.0);
    }
}
