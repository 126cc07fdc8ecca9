//! One status line on stderr, redrawn a few times a second by a thread of its
//! own, so that the engines only bump counters they keep anyway.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::args::{Choice, Common};

/// Time between two drawings.
const EVERY: Duration = Duration::from_millis(100);
/// Runs shorter than this draw nothing, so that quick commands do not flicker.
const PATIENCE: Duration = Duration::from_millis(300);

/// Is a status line on the screen right now?
static DRAWN: AtomicBool = AtomicBool::new(false);

/// What a status line shows; engines count in `files` and `bytes`.
#[derive(Default)]
pub struct Phase {
    name: Mutex<&'static str>,
    files_total: AtomicU64,
    bytes_total: AtomicU64,
}

/// A running display; [`Display::stop`] or drop takes it off the screen.
pub struct Display {
    phase: Arc<Phase>,
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

/// Reads how far the work is: (files, bytes).
pub type Reading = Box<dyn Fn() -> (u64, u64) + Send>;

/// Reads an engine's counters.
pub fn reading(progress: &Arc<bc_hash::Progress>) -> Reading {
    let progress = Arc::clone(progress);
    Box::new(move || {
        (
            progress.files.load(Ordering::Relaxed),
            progress.bytes.load(Ordering::Relaxed),
        )
    })
}

impl Display {
    /// Starts a display if the options and the terminal want one.
    pub fn start(common: &Common, phase: &'static str, reading: Reading) -> Display {
        let wanted = match common.progress {
            Choice::Always => true,
            Choice::Never => false,
            Choice::Auto => !common.quiet && std::io::stderr().is_terminal(),
        };
        let mut display = Display {
            phase: Arc::new(Phase {
                name: Mutex::new(phase),
                ..Phase::default()
            }),
            stop: Arc::default(),
            thread: None,
        };
        if !wanted {
            return display;
        }
        let (shown, stop) = (Arc::clone(&display.phase), Arc::clone(&display.stop));
        let always = common.progress == Choice::Always;
        let thread = std::thread::Builder::new()
            .name("progress".into())
            .spawn(move || draw_until(&shown, &stop, &reading, always));
        display.thread = thread.ok();
        display
    }

    /// Names the phase and, where known, the total work (0: not known).
    pub fn phase(&self, name: &'static str, files: u64, bytes: u64) {
        if let Ok(mut current) = self.phase.name.lock() {
            *current = name;
        }
        self.phase.files_total.store(files, Ordering::Relaxed);
        self.phase.bytes_total.store(bytes, Ordering::Relaxed);
    }

    /// Takes the line off the screen.
    pub fn stop(mut self) {
        self.halt();
    }

    fn halt(&mut self) {
        let Some(thread) = self.thread.take() else {
            return;
        };
        if let Ok(mut stop) = self.stop.0.lock() {
            *stop = true;
            self.stop.1.notify_all();
        }
        let _ = thread.join();
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        self.halt();
    }
}

fn draw_until(phase: &Phase, stop: &(Mutex<bool>, Condvar), reading: &Reading, always: bool) {
    let started = Instant::now();
    let Ok(mut stopped) = stop.0.lock() else {
        return;
    };
    loop {
        let Ok((next, _)) = stop.1.wait_timeout_while(stopped, EVERY, |s| !*s) else {
            return;
        };
        stopped = next;
        let elapsed = started.elapsed();
        if (elapsed >= PATIENCE && !*stopped) || (always && *stopped) {
            let line = render(phase, reading(), elapsed);
            let width = rustix::termios::tcgetwinsize(rustix::stdio::stderr())
                .map_or(80, |size| usize::from(size.ws_col).max(20));
            let line: String = line.chars().take(width - 1).collect();
            let mut err = std::io::stderr().lock();
            let _ = write!(err, "\r\x1b[K{line}");
            let _ = err.flush();
            DRAWN.store(true, Ordering::Relaxed);
        }
        if *stopped {
            clear_line();
            return;
        }
    }
}

/// Takes the status line off before something else is printed.
pub fn clear_line() {
    if DRAWN.swap(false, Ordering::Relaxed) {
        let mut err = std::io::stderr().lock();
        let _ = err.write_all(b"\r\x1b[K");
        let _ = err.flush();
    }
}

fn render(phase: &Phase, (files, bytes): (u64, u64), elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64().max(0.001);
    let name = phase.name.lock().map_or("", |n| *n);
    let files_total = phase.files_total.load(Ordering::Relaxed);
    let bytes_total = phase.bytes_total.load(Ordering::Relaxed);
    let mut line = format!("{name}  {}", thousands(files));
    if files_total > 0 {
        line += &format!("/{}", thousands(files_total));
    }
    line += &format!(
        " files  {}  {} files/s  {}/s",
        size(bytes),
        thousands((files as f64 / seconds) as u64),
        size((bytes as f64 / seconds) as u64),
    );
    // By bytes where they are known, else by files.
    let share = if bytes_total > 0 {
        bytes as f64 / bytes_total as f64
    } else if files_total > 0 {
        files as f64 / files_total as f64
    } else {
        return line;
    };
    if share > 0.0 {
        let left = (seconds / share.min(1.0) - seconds).round() as u64;
        line += &format!(
            "  {:>3.0}%  ETA {}:{:02}",
            share.min(1.0) * 100.0,
            left / 60,
            left % 60
        );
    }
    line
}

/// `1234567` as `1,234,567`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Bytes for people, in binary units.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{bytes} B")
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(size(999), "999 B");
        assert_eq!(size(1_512_785_519), "1.4 GiB");
        assert_eq!(size(1000), "1.0 KiB");
        assert_eq!(size(u64::MAX), "16384.0 PiB");
    }

    #[test]
    fn eta_appears_once_the_total_is_known() {
        let phase = Phase {
            name: Mutex::new("hash"),
            ..Phase::default()
        };
        let line = render(&phase, (10, 1024), Duration::from_secs(2));
        assert_eq!(line, "hash  10 files  1.0 KiB  5 files/s  512 B/s");
        phase.files_total.store(40, Ordering::Relaxed);
        let line = render(&phase, (10, 1024), Duration::from_secs(2));
        assert!(line.ends_with(" 25%  ETA 0:06"), "{line}");
    }
}
