//! The manifest that a run replaces: locked, so that no other run does, and open as it was then.

use std::io;
use std::path::Path;

use bc_edit::atomic::{AsRead, Locked, lock, remove_leftovers};
use bc_walk::OwnFile;
use bc_walk::job::{Error, ErrorKind};

use crate::input::ManifestFile;
use crate::options::Work;

/// A manifest that is about to be replaced.
pub(super) struct LockedManifest {
    pub(super) file: ManifestFile,
    /// Its identity, to be left out of the walk.
    pub(super) own: OwnFile,
    held: AsRead,
    /// Holds the lock.
    _locked: Locked,
}

impl LockedManifest {
    /// Locks and opens the manifest at `path`, and removes what killed runs left beside it: before
    /// the walk, which would list it.
    pub(super) fn open(path: &Path, work: &Work<'_>) -> Result<LockedManifest, Error> {
        // Locking opens it, which would wait for the other end of a pipe.
        ManifestFile::open_to_replace(path)?;
        let locked = lock(path).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => Error::at(
                ErrorKind::Refused,
                path,
                "another update of this manifest is running",
            ),
            _ => Error::io(path, "open", &error),
        })?;
        let held = locked.try_clone().and_then(AsRead::new);
        let held = held.map_err(|error| Error::io(path, "stat", &error))?;
        remove_leftovers(path);
        let file = ManifestFile::open_to_replace(path)?.cancelled_by(work.cancel);
        let (Some(own), Some(_)) = (file.own_file(), file.directory()) else {
            let text = "not a file that could be replaced";
            return Err(Error::at(ErrorKind::Usage, path, text));
        };
        Ok(LockedManifest {
            file,
            own,
            held,
            _locked: locked,
        })
    }

    /// Returns the file that a successor may replace: this one, and no other that another program
    /// has put there.
    pub(super) fn as_read(&self) -> io::Result<AsRead> {
        self.held.try_clone()
    }
}
