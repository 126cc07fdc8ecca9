//! Output file for results: one that appears whole, or a device, FIFO or descriptor that takes
//! bytes as they come.
//!
//! Only regular files are ever replaced. Any other file stays what it is and is written to, as a
//! shell's `>` does: a device that became a file would be missed by the whole machine.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bc_fs::call::close;
use bc_fs::place::Place;
use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use crate::atomic::{AtomicFile, Uncommitted};

/// Returns the number of this process's descriptor that a path means, as `/dev/stdout` does,
/// through any links: resolved step by step, since the last one leads to a file, or to the name
/// that a deleted file once had.
pub fn descriptor(target: impl AsRef<Path>) -> Option<u32> {
    let mut path: PathBuf = target.as_ref().to_path_buf();
    // As many links as the kernel follows.
    for _ in 0..40 {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.canonicalize().ok()?,
            Some(_) => Path::new(".").canonicalize().ok()?,
            None => return None,
        };
        let own = Path::new("/proc/self/fd").canonicalize().ok()?;
        if folder == own {
            return path.file_name()?.to_str()?.parse().ok();
        }
        let next = std::fs::read_link(&path).ok()?;
        path = folder.join(next);
    }
    None
}

/// True if bytes written to `target` are taken as they come: by a device, a FIFO or a descriptor of
/// this process. Nothing is opened for the answer: opening some devices has an effect.
pub fn takes_at_once(target: impl AsRef<Path>) -> bool {
    let target = target.as_ref();
    let is_stream = |stat: rustix::fs::Stat| {
        use FileType::{BlockDevice, CharacterDevice, Fifo};
        let kind = FileType::from_raw_mode(stat.st_mode);
        matches!(kind, BlockDevice | CharacterDevice | Fifo)
    };
    let existing = || Place::find(target).and_then(|place| place.existing());
    descriptor(target).is_some() || existing().is_ok_and(|found| found.is_some_and(is_stream))
}

/// A file that is being written.
#[derive(Debug)]
pub struct OutputFile {
    file: File,
    /// File that appears whole; `None` for a stream, which takes bytes as they come.
    pending: Option<AtomicFile>,
}

impl OutputFile {
    /// Opens `target` for writing: a regular file, or a name that is free, gets its content on
    /// [`end`](Self::end); a device, FIFO or descriptor of this process takes it at once. A FIFO is
    /// waited for until a process reads it, or `is_cancelled` returns true.
    ///
    /// # Errors
    /// The operation that failed and the reason: a directory, a socket, a file that another user
    /// put into a directory where others may write ([`Place::find`]); otherwise those of opening
    /// and of [`AtomicFile::create`].
    pub fn create(
        target: impl AsRef<Path>,
        is_cancelled: impl Fn() -> bool,
    ) -> Result<OutputFile, Uncommitted> {
        OutputFile::create_for(target.as_ref(), &is_cancelled)
    }

    fn create_for(
        target: &Path,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<OutputFile, Uncommitted> {
        let (create, open) = (Uncommitted::at("create"), Uncommitted::at("open"));
        if descriptor(target).is_some() {
            // The file behind it, a log perhaps, is the caller's: never replaced.
            let file = File::options().append(true).open(target).map_err(open)?;
            return Ok(OutputFile::from(file));
        }
        let place = Place::find(target).map_err(&create)?;
        let existing = place.existing().map_err(&create)?;
        match existing.map(|stat| FileType::from_raw_mode(stat.st_mode)) {
            None | Some(FileType::RegularFile) => {
                let pending = AtomicFile::create_at(place).map_err(create)?;
                let file = pending.file().try_clone();
                Ok(OutputFile {
                    file: file.map_err(Uncommitted::at("dup"))?,
                    pending: Some(pending),
                })
            }
            Some(FileType::Directory) => Err(Uncommitted::at("open")(Errno::ISDIR)),
            // Nothing that opens by its path, ever.
            Some(FileType::Socket) => Err(Uncommitted::at("open")(Errno::NXIO)),
            Some(_) => {
                let opened = open_special(&place, is_cancelled);
                Ok(OutputFile::from(opened.map_err(open)?))
            }
        }
    }

    /// Returns the file to write to.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns the file that appears whole; none for a stream.
    pub fn pending(&self) -> Option<&AtomicFile> {
        self.pending.as_ref()
    }

    /// Ends the output: a file that appears whole appears now, by `commit`, which may ask for more
    /// than [`AtomicFile::commit`] does; a stream has received the bytes already.
    ///
    /// # Errors
    /// Errors of `commit`.
    pub fn end(
        self,
        commit: impl FnOnce(AtomicFile) -> Result<(), Uncommitted>,
    ) -> Result<(), Uncommitted> {
        match self.pending {
            Some(pending) => {
                // A failed write is reported to the first descriptor that is closed.
                close(self.file).map_err(Uncommitted::at("close"))?;
                commit(pending)
            }
            None => close(self.file).map_err(Uncommitted::at("close")),
        }
    }
}

/// An open file takes bytes as they come.
impl From<File> for OutputFile {
    fn from(file: File) -> OutputFile {
        OutputFile {
            file,
            pending: None,
        }
    }
}

/// Opens a file that is not regular. A FIFO is waited for until a process reads it.
fn open_special(place: &Place, is_cancelled: &dyn Fn() -> bool) -> io::Result<File> {
    let fd = loop {
        // Without waiting in the kernel, where no signal would be noticed.
        match place.open(place.name(), OFlags::WRONLY | OFlags::NOCTTY) {
            Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
                if is_cancelled() {
                    return Err(io::ErrorKind::Interrupted.into());
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            opened => break opened?,
        }
    };
    let flags = rustix::fs::fcntl_getfl(&fd)?;
    rustix::fs::fcntl_setfl(&fd, flags - OFlags::NONBLOCK)?;
    Ok(File::from(fd))
}
