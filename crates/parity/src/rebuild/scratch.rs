//! Files without a name for blocks that were computed, and for the blocks of a volume where memory is
//! short.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use bc_edit::content;
use bc_fs::call::FailedCall;
use bc_fs::dirfd;
use bc_walk::job::Error;
use rustix::fs::FallocateFlags;
use rustix::io::Errno;

/// Directories in which a file without a name may be made, the best first.
pub(super) type ScratchDirs<'a> = [(BorrowedFd<'a>, &'a Path)];

/// Errors of a file system that has no room.
const FULL: [Errno; 3] = [Errno::NOSPC, Errno::DQUOT, Errno::FBIG];

/// A file without a name.
#[derive(Debug)]
pub(super) struct ScratchFile {
    file: OwnedFd,
    /// Directory that it is in.
    path: PathBuf,
    len: u64,
}

impl ScratchFile {
    /// Makes a file with room for so many bytes.
    ///
    /// # Errors
    /// If no directory has room for it: that of the last.
    pub(super) fn new(dirs: &ScratchDirs<'_>, len: u64) -> Result<ScratchFile, Error> {
        // Where the last has no room, that is where the contents are to go.
        let (mut failed, mut is_full) = (None, false);
        for (dir, path) in dirs {
            match content::create_unnamed(dir, 0o600) {
                Ok(file) => match ScratchFile::with_room(file, path, len) {
                    Ok(file) => return Ok(file),
                    Err(error) => {
                        let errno = error.raw_os_error().map(Errno::from_raw_os_error);
                        is_full = errno.is_some_and(|errno| FULL.contains(&errno));
                        failed = Some(error);
                    }
                },
                // One that is full says more than one that has no such files.
                Err(call) => {
                    is_full = FULL.contains(&call.errno);
                    failed.get_or_insert_with(|| Error::io(path, call.op, &call.into()));
                }
            }
        }
        let temporary = match is_full {
            true => None,
            false => content::create_temporary(),
        };
        match (temporary, failed) {
            (Some(file), _) => ScratchFile::with_room(file, Path::new("temporary directory"), len),
            (None, Some(error)) => Err(error),
            (None, None) => Err(Error::usage("there is no directory for temporary files")),
        }
    }

    fn with_room(file: OwnedFd, path: &Path, len: u64) -> Result<ScratchFile, Error> {
        let mut file = ScratchFile {
            file,
            path: path.to_owned(),
            len: 0,
        };
        file.reserve(len)?;
        Ok(file)
    }

    /// Makes room for more bytes; returns the offset of the first.
    fn reserve(&mut self, len: u64) -> Result<u64, Error> {
        let at = self.len;
        if len == 0 {
            return Ok(at);
        }
        let allocated = content::allocate(&self.file, FallocateFlags::empty(), at, len);
        match allocated {
            // Not every file system can: writing tells.
            Err(call) if ![Errno::OPNOTSUPP, Errno::NOSYS].contains(&call.errno) => {
                return Err(self.failed(call));
            }
            _ => {}
        }
        self.len += len;
        Ok(at)
    }

    fn failed(&self, call: FailedCall) -> Error {
        Error::io(&self.path, call.op, &call.into())
    }

    /// Reads bytes that were written.
    ///
    /// # Errors
    /// Those of `pread`.
    pub(super) fn read(&self, to: &mut [u8], offset: u64) -> Result<(), Error> {
        let count = dirfd::read_at(&self.file, to, offset).map_err(|call| self.failed(call))?;
        match count == to.len() {
            true => Ok(()),
            false => Err(Error::io(
                &self.path,
                "read",
                &std::io::ErrorKind::UnexpectedEof.into(),
            )),
        }
    }

    /// Writes bytes.
    ///
    /// # Errors
    /// Those of `pwrite`.
    pub(super) fn write(&self, bytes: &[u8], offset: u64) -> Result<(), Error> {
        content::write_all_at(&self.file, bytes, offset).map_err(|call| self.failed(call))
    }
}

/// Place in one of the scratch files.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct ScratchPlace {
    file: usize,
    at: u64,
}

impl ScratchPlace {
    /// Returns the place so many bytes further on.
    pub(super) fn behind(self, bytes: u64) -> ScratchPlace {
        ScratchPlace {
            at: self.at + bytes,
            ..self
        }
    }
}

/// Bytes that were computed.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    files: Vec<ScratchFile>,
}

impl Scratch {
    /// Makes room for so many bytes, in another file if the last has none.
    ///
    /// # Errors
    /// As of [`ScratchFile::new`].
    pub(super) fn reserve(
        &mut self,
        dirs: &ScratchDirs<'_>,
        len: u64,
    ) -> Result<ScratchPlace, Error> {
        let reserved = self.files.last_mut().map(|file| file.reserve(len));
        if let Some(Ok(at)) = reserved {
            let file = self.files.len() - 1;
            return Ok(ScratchPlace { file, at });
        }
        self.files.push(ScratchFile::new(dirs, len)?);
        let file = self.files.len() - 1;
        Ok(ScratchPlace { file, at: 0 })
    }

    /// Writes bytes to a place that was reserved.
    ///
    /// # Errors
    /// Those of `pwrite`.
    pub(super) fn write(&self, place: ScratchPlace, bytes: &[u8]) -> Result<(), Error> {
        self.files[place.file].write(bytes, place.at)
    }

    /// Reads bytes.
    ///
    /// # Errors
    /// Those of `pread`.
    pub(super) fn read(&self, place: ScratchPlace, to: &mut [u8]) -> Result<(), Error> {
        self.files[place.file].read(to, place.at)
    }
}
