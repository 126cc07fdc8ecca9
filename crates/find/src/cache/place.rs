//! The file of a cache: its owner, proof that it ever was a cache, its opening, and the backup of a
//! damaged one.
//!
//! Nothing that never was a cache of ours is touched: the path may be a slip
//! of the fingers. Nothing that others may write is believed, or they could
//! make files look equal that are not.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use bc_edit::atomic::AtomicFile;
use bc_edit::entry;
use bc_edit::metadata::Subject;
use bc_fs::Escaped;
use bc_fs::place::Place;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::Location;

/// The first bytes of every `redb` file.
const MAGIC: &[u8] = b"redb\x1a\x0a\xa9\x0d\x0a";

/// Part of the names of all our tables, so somewhere in the bytes of every cache.
const MARK: &[u8] = b"bc dup p";

/// Number of damaged caches that may lie beside each other.
const MOST_ASIDE: u32 = 1000;

/// Path of a cache that exists or will be created.
#[derive(Debug)]
pub(crate) struct CachePlace {
    path: PathBuf,
    location: Location,
}

/// Content found at a cache's path.
pub(crate) enum CacheContent {
    /// Nothing, or an empty file, which is equivalent.
    Nothing(Place),
    /// A file that begins like a cache and that only this user can have written.
    Cache(Place, File),
}

impl CachePlace {
    pub(crate) fn new(path: &Path, location: Location) -> CachePlace {
        CachePlace {
            path: path.to_owned(),
            location,
        }
    }

    pub(crate) fn path(&self) -> Escaped<'_> {
        Escaped(self.path.as_os_str().as_encoded_bytes())
    }

    /// Opens the file there, to be read, or to be written as well.
    pub(crate) fn look(&self, access: OFlags) -> Result<CacheContent, CacheFailure> {
        let found = self.look_at_content(access)?;
        if let CacheContent::Cache(_, file) = &found
            && file.metadata().map_err(unusable)?.mode() & 0o022 != 0
        {
            return Err(CacheFailure::Damaged("others may write to it".to_owned()));
        }
        Ok(found)
    }

    /// Opens the file without a check of whether others may write to it.
    fn look_at_content(&self, access: OFlags) -> Result<CacheContent, CacheFailure> {
        let place = Place::find(&self.path).map_err(of_the_way)?;
        // Before it is opened: for a device that alone can be an order.
        match place.existing().map_err(of_the_way)? {
            None => return Ok(CacheContent::Nothing(place)),
            Some(stat) if !is_regular(stat.st_mode) => return Err(no_cache()),
            Some(_) => {}
        }
        let file = File::from(place.open(place.name(), access).map_err(unusable)?);
        let meta = file.metadata().map_err(unusable)?;
        if !is_regular(meta.mode()) {
            return Err(no_cache());
        }
        if meta.uid() != rustix::process::geteuid().as_raw() {
            let text = format!("belongs to user {}, not believed", meta.uid());
            return Err(CacheFailure::Foreign(text));
        }
        if meta.len() == 0 {
            return Ok(CacheContent::Nothing(place));
        }
        let mut magic = [0; MAGIC.len()];
        let read = file.read_at(&mut magic, 0).map_err(unusable)?;
        if magic[..read] != *MAGIC {
            return Err(match self.location {
                Location::Named => no_cache(),
                Location::Usual => CacheFailure::Damaged("damaged".to_owned()),
            });
        }
        Ok(CacheContent::Cache(place, file))
    }

    /// Was this damaged file a cache of ours?
    pub(crate) fn was_ours(&self) -> bool {
        if self.location == Location::Usual {
            return true;
        }
        match self.look_at_content(OFlags::RDONLY) {
            Ok(CacheContent::Cache(_, file)) => holds(&file, MARK).unwrap_or(false),
            _ => false,
        }
    }

    /// Gives a damaged cache a new name, never one that is taken, and says which.
    pub(crate) fn set_aside(&self) -> io::Result<PathBuf> {
        let place = Place::find(&self.path)?;
        for attempt in 1..=MOST_ASIDE {
            let mut name = OsString::from(place.name());
            name.push(".damaged");
            if attempt > 1 {
                name.push(format!("-{attempt}"));
            }
            match entry::rename_new(place.directory(), place.name(), place.directory(), &*name) {
                Ok(()) => return Ok(self.path.with_file_name(name)),
                Err(failed) if failed.errno == Errno::EXIST => {}
                Err(failed) => return Err(failed.into()),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

/// A cache that appears once it is whole.
pub(crate) struct Beginning {
    place: Place,
    new: AtomicFile,
}

impl Beginning {
    pub(crate) fn at(place: Place) -> io::Result<(Beginning, File)> {
        let new = AtomicFile::create_at(place.try_clone()?)?;
        // No other user needs it, and a cache that others may write is not believed.
        Subject::open(new.file().as_fd()).chmod(Mode::from_raw_mode(0o600))?;
        let file = new.file().try_clone()?;
        Ok((Beginning { place, new }, file))
    }

    /// Gives it its name, which must not be taken by now but for an empty file.
    pub(crate) fn commit(self) -> io::Result<()> {
        if let Some(stat) = self.place.existing()?
            && is_regular(stat.st_mode)
            && stat.st_size == 0
        {
            remove(&self.place)?;
        }
        self.new.commit_new().map_err(|not| not.error)
    }
}

/// Removes a cache that was just seen to be ours.
pub(crate) fn remove(place: &Place) -> io::Result<()> {
    Ok(entry::unlink(place.directory(), place.name())?)
}

/// Does the file hold these bytes anywhere?
fn holds(file: &File, bytes: &[u8]) -> io::Result<bool> {
    let mut buffer = vec![0; 1 << 20];
    let mut at = 0;
    loop {
        let read = file.read_at(&mut buffer, at)?;
        if buffer[..read]
            .windows(bytes.len())
            .any(|part| part == bytes)
        {
            return Ok(true);
        }
        if read < bytes.len() {
            return Ok(false);
        }
        // The next part begins with the end of this one.
        at += (read + 1 - bytes.len()) as u64;
    }
}

/// Converts an error on the way to the file, or one about its owner, into a [`Failure`].
fn of_the_way(error: io::Error) -> CacheFailure {
    match error.kind() {
        io::ErrorKind::IsADirectory => no_cache(),
        // With the reason: another user's link or file.
        io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => {
            CacheFailure::Foreign(error.to_string())
        }
        _ => unusable(error),
    }
}

fn is_regular(mode: u32) -> bool {
    FileType::from_raw_mode(mode) == FileType::RegularFile
}

fn no_cache() -> CacheFailure {
    CacheFailure::Foreign("not a cache of bc dup".to_owned())
}

fn unusable(error: io::Error) -> CacheFailure {
    CacheFailure::Unusable(error.to_string())
}

/// Reason why the store is not used.
pub(crate) enum CacheFailure {
    /// Another run holds it.
    Busy,
    /// It cannot be read or written.
    Unusable(String),
    /// Its content is damaged.
    Damaged(String),
    /// It never was a cache of this user's.
    Foreign(String),
}

#[cfg(feature = "cache")]
impl From<redb::Error> for CacheFailure {
    fn from(error: redb::Error) -> CacheFailure {
        use std::io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
        match error {
            redb::Error::DatabaseAlreadyOpen => CacheFailure::Busy,
            redb::Error::Io(error)
                if !matches!(error.kind(), InvalidData | UnexpectedEof | InvalidInput) =>
            {
                CacheFailure::Unusable(error.to_string())
            }
            error => CacheFailure::Damaged(error.to_string()),
        }
    }
}
