//! Directories for files that hold memory, and the creation of those files.

use std::ffi::CString;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use bc_fs::escape;
use rustix::fs::{
    AtFlags, CWD, FallocateFlags, Mode, OFlags, fallocate, fstatfs, openat, unlinkat,
};
use rustix::io::{Errno, pwrite};

use super::SpillFailure;
use crate::names;

/// Magic numbers of file systems that are memory, from `linux/magic.h`.
const TMPFS: u32 = 0x0102_1994;
const RAMFS: u32 = 0x8584_58f6;

/// Number of random names that are tried.
const TRIES: u32 = 64;

/// A directory on a disk in which files can be made.
#[derive(Debug)]
pub(super) struct Directory {
    pub(super) path: PathBuf,
    fd: OwnedFd,
}

impl Directory {
    /// Opens the first directory that is fit; otherwise returns what is wrong with each.
    pub(super) fn first_of(candidates: &[PathBuf]) -> Result<Directory, String> {
        let mut reasons = Vec::new();
        for path in candidates {
            match Directory::open(path) {
                Ok(directory) => return Ok(directory),
                Err(reason) => {
                    let path = escape(path.as_os_str().as_encoded_bytes());
                    reasons.push(format!("{path}: {reason}"));
                }
            }
        }
        match reasons.is_empty() {
            true => Err("no directory to put files in".to_owned()),
            false => Err(reasons.join("; ")),
        }
    }

    fn open(path: &Path) -> Result<Directory, String> {
        let said = |failed: SpillFailure| {
            let reason = std::io::Error::from(failed.errno);
            format!("{}: {reason}", failed.op)
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat(CWD, path, flags, Mode::empty()).map_err(SpillFailure::at("open"));
        let directory = Directory {
            path: path.to_owned(),
            fd: opened.map_err(said)?,
        };
        let file = directory.file().map_err(said)?;
        let system = fstatfs(&file)
            .map_err(SpillFailure::at("statfs"))
            .map_err(said)?;
        match system.f_type as u32 {
            TMPFS | RAMFS => Err("is in memory itself".to_owned()),
            _ => Ok(directory),
        }
    }

    /// Makes a file that has no name, or none any more.
    pub(super) fn file(&self) -> Result<OwnedFd, SpillFailure> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::TMPFILE;
        match openat(&self.fd, c".", flags, Mode::RUSR | Mode::WUSR) {
            // Not known to the file system, or to the kernel.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => self.unnamed(),
            opened => opened.map_err(SpillFailure::at("create")),
        }
    }

    /// Makes a file that loses its name at once.
    fn unnamed(&self) -> Result<OwnedFd, SpillFailure> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let process = std::process::id();
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        for _ in 0..TRIES {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = CString::new(names::spill(process, count)).unwrap_or_default();
            match openat(&self.fd, &name, flags, Mode::RUSR | Mode::WUSR) {
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(SpillFailure::at("create")(errno)),
                Ok(file) => {
                    let gone = unlinkat(&self.fd, &name, AtFlags::empty());
                    return gone.map(|()| file).map_err(SpillFailure::at("unlink"));
                }
            }
        }
        Err(SpillFailure::at("create")(Errno::EXIST))
    }
}

/// Reserves the room for `start..end` of a file, which nothing was written to, so that writing to
/// its mapping cannot fail for want of it.
pub(super) fn reserve(file: BorrowedFd<'_>, start: usize, end: usize) -> Result<(), SpillFailure> {
    let (at, len) = (start as u64, (end - start) as u64);
    loop {
        match fallocate(file, FallocateFlags::empty(), at, len) {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => return fill(file, start, end),
            Err(errno) => return Err(SpillFailure::at("reserve room")(errno)),
        }
    }
}

/// Reserves room by writing zeros, where the file system cannot reserve.
fn fill(file: BorrowedFd<'_>, start: usize, end: usize) -> Result<(), SpillFailure> {
    static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
    let mut at = start;
    while at < end {
        match pwrite(file, &ZEROS[..ZEROS.len().min(end - at)], at as u64) {
            Ok(written) => at += written,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(SpillFailure::at("write")(errno)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn what_is_wrong_with_each_directory_is_said() {
        let here = tempfile::tempdir().unwrap();
        let (none, file) = (here.path().join("none"), here.path().join("file"));
        std::fs::write(&file, "").unwrap();
        let said = Directory::first_of(&[none.clone(), file.clone()]).unwrap_err();
        assert!(
            said.contains("none: open: No such file or directory"),
            "{said}"
        );
        assert!(said.contains("file: open: Not a directory"), "{said}");
        let said = Directory::first_of(&[]).unwrap_err();
        assert_eq!(said, "no directory to put files in");
        if let Ok(proc) = Directory::first_of(&["/proc/self".into()]) {
            panic!("{proc:?}");
        }
    }

    #[test]
    fn memory_is_no_place_for_what_memory_has_no_room_for() {
        let shm = Path::new("/dev/shm");
        match Directory::open(shm) {
            Ok(directory) => {
                let file = directory.file().unwrap();
                assert_ne!(fstatfs(&file).unwrap().f_type as u32, TMPFS);
            }
            Err(reason) => assert!(
                !shm.is_dir() || reason == "is in memory itself" || reason.contains("create"),
                "{reason}"
            ),
        }
    }

    #[test]
    fn a_file_has_no_name_and_its_room_is_there() {
        let here = tempfile::tempdir().unwrap();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = Directory {
            path: here.path().to_owned(),
            fd: openat(CWD, here.path(), flags, Mode::empty()).unwrap(),
        };
        for file in [directory.file(), directory.unnamed()] {
            let file = file.unwrap();
            assert_eq!(std::fs::read_dir(here.path()).unwrap().count(), 0);
            reserve(file.as_fd(), 0, 1 << 20).unwrap();
            fill(file.as_fd(), 1 << 20, (2 << 20) + 5).unwrap();
            let stat = rustix::fs::fstat(&file).unwrap();
            assert_eq!((stat.st_size, stat.st_nlink), ((2 << 20) + 5, 0));
        }
    }

    #[test]
    fn a_name_that_is_taken_is_passed_over() {
        let here = tempfile::tempdir().unwrap();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = Directory {
            path: here.path().to_owned(),
            fd: openat(CWD, here.path(), flags, Mode::empty()).unwrap(),
        };
        let process = std::process::id();
        for count in 0..40 {
            std::fs::write(
                here.path().join(format!(".bc-spill-{process}-{count}")),
                "x",
            )
            .unwrap();
        }
        directory.unnamed().unwrap();
        let left = std::fs::read_dir(here.path()).unwrap();
        let intact = left.filter(|file| file.as_ref().unwrap().metadata().unwrap().len() == 1);
        assert_eq!(intact.count(), 40);
    }
}
