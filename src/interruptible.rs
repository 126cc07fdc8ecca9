//! Interruptible writer of results to a pipe that perhaps no process reads: the write waits in the
//! kernel, where no flag is seen. A signal ends the process all the same.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;

/// Bytes that a pipe takes without waiting once it can be written to.
const PIPE_BUF: usize = 4096;

/// A writer that does not wait for ever once a signal came.
struct InterruptibleWriter {
    to: File,
    /// Odd while a write is under way; None until one might wait.
    turn: Option<Arc<AtomicU64>>,
}

/// Makes a writer interruptible, where it is a pipe or a socket.
pub fn interruptible(to: File) -> Box<dyn Write + Send> {
    let kind = rustix::fs::fstat(&to).map(|stat| FileType::from_raw_mode(stat.st_mode));
    match kind {
        Ok(FileType::Fifo | FileType::Socket) => Box::new(InterruptibleWriter { to, turn: None }),
        _ => Box::new(to),
    }
}

impl InterruptibleWriter {
    fn is_ready(&self) -> bool {
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let mut fds = [PollFd::new(&self.to, PollFlags::OUT)];
        poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
    }
}

impl Write for InterruptibleWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() <= PIPE_BUF && self.is_ready() {
            return self.to.write(bytes);
        }
        if crate::signals::interrupted().is_some() {
            // Output that would have to wait is dropped.
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let turn = self.turn.get_or_insert_with(watched);
        turn.fetch_add(1, Ordering::Relaxed);
        let written = self.to.write(bytes);
        turn.fetch_add(1, Ordering::Relaxed);
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Returns a count of turns that a thread watches until it is dropped: a write that still waits
/// some time after a signal ends the process. The output that it would have written has no name, so
/// there is nothing to clean up.
fn watched() -> Arc<AtomicU64> {
    let turn = Arc::new(AtomicU64::new(0));
    let watch = Arc::clone(&turn);
    // Without a thread to spare it waits as any other program does.
    let _ = std::thread::Builder::new().spawn(move || {
        let mut last = 0;
        while Arc::strong_count(&watch) > 1 {
            let now = watch.load(Ordering::Relaxed);
            if let Some(signal) = crate::signals::interrupted()
                && now % 2 == 1
                && now == last
            {
                crate::progress::clear_for_good();
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
            last = now;
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    turn
}
