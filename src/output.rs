//! Where results go: stdout, or a file that appears whole or not at all.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use bc_walk::Identity;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};

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
    pending: Option<Pending>,
    name: String,
}

/// How writing ended.
pub enum Written {
    /// Everything is where it was asked to be.
    Whole,
    /// The reader of the pipe went away, which is its right.
    ReaderLeft,
}

/// A file that is not in place yet.
struct Pending {
    file: File,
    target: PathBuf,
    /// None while the file has no name at all (O_TMPFILE).
    temporary: Option<PathBuf>,
}

impl Output {
    /// To FILE, or to stdout without one. Errors say operation and reason.
    pub fn open(target: Option<&Path>) -> Result<Output, String> {
        let Some(target) = target.filter(|t| t.as_os_str() != "-") else {
            return Ok(Output::plain(stdout(), "stdout"));
        };
        let name = bc_manifest::escape(target.as_os_str().as_encoded_bytes()).into_owned();
        let existing = std::fs::metadata(target).ok();
        let special = existing.as_ref().is_some_and(|m| {
            let kind = m.file_type();
            kind.is_char_device() || kind.is_fifo() || kind.is_socket() || kind.is_block_device()
        });
        if special {
            // /dev/stdout, a FIFO, /dev/full: nothing to replace, written as it comes.
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
        // Through a symbolic link the file it names is replaced, not the link.
        let target = std::fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
        let pending =
            Pending::create(&target).map_err(|error| format!("{name}: create: {error}"))?;
        if let Some(old) = existing {
            // The replacement keeps the permissions of what it replaces.
            let _ = pending
                .file
                .set_permissions(std::fs::Permissions::from_mode(old.mode() & 0o7777));
        }
        let file = pending
            .file
            .try_clone()
            .map_err(|error| format!("{name}: dup: {error}"))?;
        let mut output = Output::plain(Box::new(file), &name);
        output.pending = Some(pending);
        Ok(output)
    }

    fn plain(to: Box<dyn Write>, name: &str) -> Output {
        Output {
            to: BufWriter::with_capacity(256 << 10, to),
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
            Err(error) => return Err(format!("{}: write: {error}", self.name)),
        }
        if let Some(pending) = self.pending.take() {
            pending
                .into_place()
                .map_err(|(op, error)| format!("{}: {op}: {error}", self.name))?;
        }
        Ok(Written::Whole)
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

impl Pending {
    /// Prefers a file without a name, which a killed run cannot leave behind.
    fn create(target: &Path) -> io::Result<Pending> {
        let directory = directory_of(target);
        sweep(target);
        let mode = Mode::from_raw_mode(0o666);
        let nameless = rustix::fs::openat(
            CWD,
            directory,
            OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC,
            mode,
        );
        if let Ok(fd) = nameless {
            return Ok(Pending {
                file: fd.into(),
                target: target.to_owned(),
                temporary: None,
            });
        }
        let temporary = temporary_name(target);
        let file = File::options()
            .write(true)
            .create_new(true)
            .open(&temporary)?;
        Ok(Pending {
            file,
            target: target.to_owned(),
            temporary: Some(temporary),
        })
    }

    fn into_place(mut self) -> Result<(), (&'static str, io::Error)> {
        self.file.sync_all().map_err(|error| ("sync", error))?;
        let temporary = match self.temporary.take() {
            Some(path) => path,
            None => {
                let path = temporary_name(&self.target);
                let _ = std::fs::remove_file(&path);
                let own = format!(
                    "/proc/self/fd/{}",
                    std::os::fd::AsRawFd::as_raw_fd(&self.file.as_fd())
                );
                rustix::fs::linkat(CWD, own.as_str(), CWD, &path, AtFlags::SYMLINK_FOLLOW)
                    .map_err(|error| ("link", error.into()))?;
                path
            }
        };
        self.temporary = Some(temporary.clone());
        std::fs::rename(&temporary, &self.target).map_err(|error| ("rename", error))?;
        self.temporary = None;
        // The rename itself survives a power cut only once the directory is on disk.
        if let Ok(directory) = File::open(directory_of(&self.target)) {
            let _ = directory.sync_all();
        }
        Ok(())
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(path) = &self.temporary {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Writes a small file atomically (metrics, calibration).
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

fn directory_of(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn temporary_name(target: &Path) -> PathBuf {
    let mut name = prefix(target);
    name.push(format!("{}.bc-tmp", std::process::id()));
    directory_of(target).join(name)
}

fn prefix(target: &Path) -> OsString {
    // A name near 255 bytes leaves no room for more.
    let base = target.file_name().unwrap_or_default().as_encoded_bytes();
    let mut name = OsString::from(".");
    name.push(String::from_utf8_lossy(&base[..base.len().min(60)]).as_ref());
    name.push(".");
    name
}

/// Removes what a killed run left beside `target`.
fn sweep(target: &Path) {
    let prefix = prefix(target);
    let Ok(entries) = std::fs::read_dir(directory_of(target)) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let pid = name
            .as_encoded_bytes()
            .strip_prefix(prefix.as_encoded_bytes())
            .and_then(|rest| rest.strip_suffix(b".bc-tmp"))
            .and_then(|pid| std::str::from_utf8(pid).ok()?.parse::<i32>().ok())
            .and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            let gone = rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH);
            if gone && entry.file_type().is_ok_and(|t| t.is_file()) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}
