//! The file where a journal is, or would be: examined without being changed, created so that no
//! other process holds it.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;

use bc_fs::place::Place;
use rustix::fs::{FileType, OFlags};

use super::owner::{FLAGS, NotOurs, check};
use crate::locked::Locked;
use crate::{content, entry};

/// State of the file at the place of a journal.
pub(super) enum FoundJournal {
    Nothing,
    /// A file that is this user's alone, held.
    File(Locked),
    /// A file as of [`File`](Look::File), but left by a run that was killed between the making of
    /// its journal and the first byte: other programs make no empty files that only their owner may
    /// read.
    Stub(Locked),
    /// Held by another process.
    Busy,
    /// A file that is not this user's alone, with the reason.
    Foreign(String),
}

pub(super) fn look(place: &Place) -> io::Result<FoundJournal> {
    let foreign = |why: String| Ok(FoundJournal::Foreign(why));
    // Before it is opened: for a device that alone can be an order.
    match place.existing() {
        Ok(None) => return Ok(FoundJournal::Nothing),
        Ok(Some(stat)) => match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            FileType::Symlink => return foreign("a symbolic link".to_owned()),
            _ => return foreign(NotOurs::NotRegular.to_string()),
        },
        Err(error) => return foreign(error.to_string()),
    }
    let file = match place.open(place.name(), OFlags::RDWR | FLAGS) {
        Ok(file) => File::from(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(FoundJournal::Nothing),
        Err(error) => return foreign(format!("open: {error}")),
    };
    if let Err(why) = check(&file)? {
        return foreign(why.to_string());
    }
    let meta = file.metadata()?;
    if meta.nlink() != 1 {
        return foreign("has several names".to_owned());
    }
    let file = match Locked::new(file, false) {
        Ok(file) => file,
        Err((error, _)) if error.kind() == io::ErrorKind::WouldBlock => {
            return Ok(FoundJournal::Busy);
        }
        Err((error, _)) => return foreign(format!("lock: {error}")),
    };
    // Between the look and the lock its writer may have ended and removed it.
    if !place.means(&file) {
        return Ok(FoundJournal::Busy);
    }
    let meta = file.metadata()?;
    Ok(match meta.len() == 0 && meta.mode() & 0o7777 == 0o600 {
        true => FoundJournal::Stub(file),
        false => FoundJournal::File(file),
    })
}

/// Returns a new file at `place`, held.
pub(super) fn create(place: &Place) -> io::Result<Locked> {
    let file = content::create(place.directory(), place.name(), 0o600).map(File::from)?;
    let unlink = || {
        let _ = entry::unlink(place.directory(), place.name());
    };
    let refused = match check(&file) {
        Ok(Ok(())) => None,
        Ok(Err(why)) => {
            let text = why.to_string();
            Some(io::Error::new(io::ErrorKind::PermissionDenied, text))
        }
        Err(error) => Some(error),
    };
    if let Some(refused) = refused {
        unlink();
        return Err(refused);
    }
    Locked::new(file, false).map_err(|(error, _)| {
        // The process that holds it by now took it for the remains of a killed run, and resumes
        // with it.
        if error.kind() != io::ErrorKind::WouldBlock {
            unlink();
        }
        error
    })
}
