//! Where results go: stdout, or a file that appears whole or not at all.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use bc_fs::atomic::AtomicFile;
use bc_walk::Identity;
use rustix::fs::OFlags;

use crate::progress::Shared;

/// Unbuffered stdout without std's line buffering on top.
pub fn stdout() -> Box<dyn Write> {
    match rustix::stdio::stdout().try_clone_to_owned() {
        Ok(fd) if io::stdout().is_terminal() => Box::new(Shared(File::from(fd))),
        Ok(fd) => Box::new(File::from(fd)),
        Err(_) => Box::new(io::stdout()),
    }
}

/// A destination for results.
pub struct Output {
    to: BufWriter<Box<dyn Write>>,
    pending: Option<AtomicFile>,
    name: String,
}

/// How writing ended.
pub enum Written {
    /// Everything is where it was asked to be.
    Whole,
    /// The reader of the pipe went away, which is its right.
    ReaderLeft,
}

impl Output {
    /// To FILE, or to stdout without one. Errors say operation and reason.
    pub fn open(target: Option<&Path>) -> Result<Output, String> {
        let Some(target) = target.filter(|t| t.as_os_str() != "-") else {
            return Ok(Output::plain(stdout(), "stdout"));
        };
        let name = bc_fs::escape(target.as_os_str().as_encoded_bytes()).into_owned();
        if let Some(number) = descriptor(target) {
            // What is behind it, a log perhaps, is the caller's: never replaced.
            let open = || File::options().append(true).open(target);
            return match number {
                1 => Ok(Output::plain(stdout(), &name)),
                2 => rustix::stdio::stderr()
                    .try_clone_to_owned()
                    .map(|fd| Output::plain(Box::new(File::from(fd)), &name))
                    .map_err(|error| format!("{name}: dup: {error}")),
                _ => open()
                    .map(|file| Output::plain(Box::new(file), &name))
                    .map_err(|error| format!("{name}: open: {error}")),
            };
        }
        let existing = std::fs::metadata(target).ok();
        let special = existing.as_ref().is_some_and(|m| {
            let kind = m.file_type();
            kind.is_char_device() || kind.is_fifo() || kind.is_socket() || kind.is_block_device()
        });
        if special {
            // A FIFO, /dev/full: nothing to replace, written as it comes.
            let file = File::options()
                .write(true)
                .custom_flags(OFlags::CLOEXEC.bits() as i32)
                .open(target)
                .map_err(|error| format!("{name}: open: {error}"))?;
            return Ok(Output::plain(Box::new(file), &name));
        }
        if existing.as_ref().is_some_and(std::fs::Metadata::is_dir) {
            return Err(format!("{name}: open: Is a directory (os error 21)"));
        }
        let pending =
            AtomicFile::create(target).map_err(|error| format!("{name}: create: {error}"))?;
        let file = pending
            .file()
            .try_clone()
            .map_err(|error| format!("{name}: dup: {error}"))?;
        let mut output = Output::plain(Box::new(file), &name);
        output.pending = Some(pending);
        Ok(output)
    }

    /// Identity of the file being written, which may have a name already; see [`identity`].
    pub fn own_identity(&self) -> Option<Identity> {
        let meta = self.pending.as_ref()?.file().metadata().ok()?;
        Some(Identity {
            dev: meta.dev(),
            ino: meta.ino(),
        })
    }

    fn plain(to: Box<dyn Write>, name: &str) -> Output {
        Output {
            to: BufWriter::with_capacity(64 << 10, to),
            pending: None,
            name: name.to_owned(),
        }
    }

    /// Flushes; a file is synced and renamed into place. Without this call a
    /// file leaves no trace.
    pub fn finish(mut self, result: io::Result<()>) -> Result<Written, String> {
        let written = result.and_then(|()| self.to.flush());
        match written {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                return Ok(Written::ReaderLeft);
            }
            Err(error) => {
                let named = error.get_ref().and_then(|e| e.downcast_ref::<Named>());
                let reason = named.map_or(&error, |named| &named.error);
                return Err(format!("{}: write: {reason}", self.name));
            }
        }
        if let Some(pending) = self.pending.take() {
            pending
                .commit()
                .map_err(|not| format!("{}: {}: {}", self.name, not.operation, not.error))?;
        }
        Ok(Written::Whole)
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Output { to, name, .. } = self;
        to.write(bytes).map_err(|error| Named::wrap(name, error))
    }

    fn flush(&mut self) -> io::Result<()> {
        let Output { to, name, .. } = self;
        to.flush().map_err(|error| Named::wrap(name, error))
    }
}

/// A failed write with the name of the output, for those who see the error alone.
#[derive(Debug)]
struct Named {
    name: String,
    error: io::Error,
}

impl Named {
    fn wrap(name: &str, error: io::Error) -> io::Error {
        let name = name.to_owned();
        io::Error::new(error.kind(), Named { name, error })
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.error)
    }
}

impl std::error::Error for Named {}

/// The number of this process's descriptor that a path means, as `/dev/stdout` does, through any
/// links: resolved step by step, since the last one leads to a file, or to the name that a deleted
/// file once had.
fn descriptor(target: &Path) -> Option<u32> {
    let mut path = target.to_path_buf();
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

/// Writes a small file atomically (metrics).
pub fn write_whole(target: &Path, contents: &[u8]) -> Result<(), String> {
    let mut output = Output::open(Some(target))?;
    let result = output.write_all(contents);
    output.finish(result).map(|_| ())
}

/// Identity of the file that FILE replaces, so that the walk can leave it out.
pub fn identity(target: Option<&Path>) -> Option<Identity> {
    let meta = std::fs::metadata(target?).ok()?;
    Some(Identity {
        dev: meta.dev(),
        ino: meta.ino(),
    })
}
