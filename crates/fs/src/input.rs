//! Files named by a user as input, of any kind: opening and reading them ends on request, also
//! where a FIFO has no writer yet or a pipe delivers nothing.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat};
use rustix::io::Errno;

/// Longest time that a request to end may go unnoticed.
const GLANCE: Duration = Duration::from_millis(50);

/// Opens a file for reading until `is_over`, without waiting for a FIFO's writer: to read from that
/// is for [`Interruptible`].
///
/// # Errors
/// Errors of the system; once `is_over`, one that has no number.
pub fn open(path: &Path, is_over: impl Fn() -> bool) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut options = File::options();
    options.read(true).custom_flags(flags.bits() as i32);
    loop {
        match options.open(path) {
            Ok(file) => {
                let flags = fcntl_getfl(&file)?.difference(OFlags::NONBLOCK);
                fcntl_setfl(&file, flags)?;
                return Ok(file);
            }
            // Another process holds a lease, and was just asked to give it up.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if is_over() {
                    return Err(interrupted());
                }
                std::thread::sleep(GLANCE);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Reads a file until `is_over`. After that each read fails.
#[derive(Debug)]
pub struct Interruptible<F> {
    file: File,
    may_wait: bool,
    is_over: F,
}

impl<F: Fn() -> bool> Interruptible<F> {
    /// Reads `file`, which [`open`] has opened, or a standard stream is.
    pub fn new(file: File, is_over: F) -> Interruptible<F> {
        // Files never wait, and a call for each piece of one would be for nothing.
        let kind = fstat(&file).map(|stat| FileType::from_raw_mode(stat.st_mode));
        let may_wait = kind != Ok(FileType::RegularFile);
        Interruptible {
            file,
            may_wait,
            is_over,
        }
    }

    /// Waits until there is something to read, in short steps.
    fn wait(&self) -> io::Result<()> {
        let glance = Timespec {
            tv_sec: 0,
            tv_nsec: GLANCE.as_nanos() as i64,
        };
        loop {
            if (self.is_over)() {
                return Err(interrupted());
            }
            if !self.may_wait {
                return Ok(());
            }
            let mut fds = [PollFd::new(&self.file, PollFlags::IN)];
            match poll(&mut fds, Some(&glance)) {
                Ok(0) | Err(Errno::INTR) => {}
                // A file that cannot be polled is read.
                Ok(_) | Err(_) => return Ok(()),
            }
        }
    }
}

impl<F: Fn() -> bool> Read for Interruptible<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.wait()?;
        self.file.read(buffer)
    }
}

/// Returns an error of another kind than `Interrupted`, after which every caller tries again.
fn interrupted() -> io::Error {
    io::Error::other("interrupted")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode, mknodat};
    use std::cell::Cell;
    use std::io::Write;

    #[test]
    fn a_fifo_is_waited_for_until_that_is_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fifo");
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let file = open(&path, || false).unwrap();
        let asked = Cell::new(0);
        // No process has it open for writing, which is no end of file.
        let mut input = Interruptible::new(file, || asked.replace(asked.get() + 1) == 3);
        let error = input.read(&mut [0; 10]).unwrap_err();
        assert_eq!((error.raw_os_error(), asked.get()), (None, 4));
        let mut input = Interruptible::new(input.file, || false);
        let writer = std::thread::spawn({
            let path = path.clone();
            move || File::create(path).unwrap().write_all(b"text").unwrap()
        });
        let mut text = String::new();
        input.read_to_string(&mut text).unwrap();
        writer.join().unwrap();
        assert_eq!(text, "text");
    }

    #[test]
    fn files_are_read_to_their_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "text").unwrap();
        let file = open(&path, || true).unwrap();
        assert!(!fcntl_getfl(&file).unwrap().contains(OFlags::NONBLOCK));
        let mut text = String::new();
        Interruptible::new(file, || false)
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, "text");
        let missing = open(&dir.path().join("none"), || true).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
