//! What `bc integrity import` reads: a file or a pipe, never a device, until a signal comes.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use bc_pool::Cancel;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Most bytes from a pipe: all paths are held in memory, and a pipe may never end.
const MOST: u64 = 1 << 30;

/// How long a signal may wait for a pipe that gives nothing.
const GLANCE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// Opens the file that was named; `-` is standard input.
pub fn open(path: &Path) -> Result<File, String> {
    let name = bc_fs::escape(path.as_os_str().as_encoded_bytes());
    let device = || format!("{name}: is a device, not a file of digests");
    let is_device = |meta: &std::fs::Metadata| {
        let kind = meta.file_type();
        kind.is_char_device() || kind.is_block_device()
    };
    let file = if crate::args::is_dash(path.as_os_str()) {
        let fd = rustix::stdio::stdin().try_clone_to_owned();
        File::from(fd.map_err(|error| format!("{name}: read: {error}"))?)
    } else {
        // To open a device may already do something.
        if std::fs::metadata(path).is_ok_and(|meta| is_device(&meta)) {
            return Err(device());
        }
        File::open(path).map_err(|error| format!("{name}: open: {error}"))?
    };
    let meta = file.metadata();
    let meta = meta.map_err(|error| format!("{name}: stat: {error}"))?;
    if is_device(&meta) && !file.is_terminal() {
        return Err(device());
    }
    Ok(file)
}

/// Reads until a signal comes, and from what is no file no more than [`MOST`].
pub struct Input<'a> {
    file: File,
    cancel: &'a Cancel,
    /// Of what is no file; `None` of files, which end.
    left: Option<u64>,
}

impl<'a> Input<'a> {
    /// From the file's present offset on.
    pub fn new(file: File, cancel: &'a Cancel) -> Input<'a> {
        let ends = file.metadata().is_ok_and(|meta| meta.is_file());
        Input {
            file,
            cancel,
            left: (!ends).then_some(MOST),
        }
    }

    fn wait(&self) -> io::Result<()> {
        loop {
            if self.cancel.is_cancelled() {
                return Err(io::Error::other("cancelled"));
            }
            let mut fds = [PollFd::new(&self.file, PollFlags::IN)];
            match poll(&mut fds, Some(&GLANCE)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                // What cannot be polled is read.
                Ok(_) | Err(_) => return Ok(()),
            }
        }
    }
}

impl Read for Input<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.wait()?;
        let count = self.file.read(buffer)?;
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(count as u64).ok_or_else(|| {
                io::Error::other("over 1 GiB from a pipe: save it to a file first")
            })?;
        }
        Ok(count)
    }
}
