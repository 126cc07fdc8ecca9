//! The copy that a move made, or accepted as made, once it has its new name: the state that it must
//! have for the original to go, and for the copy itself to be taken back.

use std::ffi::CString;

use bc_edit::entry;
use bc_edit::metadata::FileMetadata;
use bc_fs::path::sibling;

use crate::act::moving::existing_target::{self, CopyOrigin};
use crate::check::open_file::{OpenFile, identity_at};
use crate::skip::Skip;

/// The copy under its new name.
pub(crate) struct Arrival {
    pub(crate) held: OpenFile,
    pub(crate) metadata: FileMetadata,
    pub(crate) origin: CopyOrigin,
    /// True if it existed before the move.
    stood: bool,
    /// True if `held` has the state after the copy was given its name.
    settled: bool,
    /// The temporary name that it has as well, until the original has gone: a
    /// second proof of whose copy it is.
    stage: Option<CString>,
}

impl Arrival {
    /// Returns a copy of our own making, which may have the name `stage` too.
    pub(crate) fn made(held: OpenFile, metadata: FileMetadata, stage: Option<CString>) -> Arrival {
        Arrival {
            held,
            metadata,
            origin: CopyOrigin::Made,
            stood: false,
            settled: false,
            stage,
        }
    }

    /// Returns a copy that existed before.
    pub(crate) fn stood(held: OpenFile, metadata: FileMetadata, origin: CopyOrigin) -> Arrival {
        Arrival {
            held,
            metadata,
            origin,
            stood: true,
            settled: true,
            stage: None,
        }
    }

    /// Takes the state that giving it its name left it in.
    pub(crate) fn settle(&mut self) -> Result<(), Skip> {
        if !self.settled {
            self.held.refresh()?;
            self.held.wait_for_tick();
            self.settled = true;
        }
        Ok(())
    }

    /// Proves, now that `target` was set aside, that it is another file than the copy, and that the
    /// copy is unchanged.
    pub(crate) fn replaces(&self, target: &OpenFile) -> Result<(), Skip> {
        if self.stood {
            existing_target::outlives(&self.held, target)?;
        }
        self.stands()
    }

    /// Proves that the copy has its name, and that no process changed it.
    pub(crate) fn stands(&self) -> Result<(), Skip> {
        self.held
            .check_untouched()
            .and_then(|()| self.held.check_lease())
            .map_err(|why| match why {
                Skip::Gone | Skip::Changed => Skip::CopyChanged,
                why => why,
            })
    }

    /// Returns true if the path shown to the user leads to it.
    pub(crate) fn is_at(&self, path: &[u8]) -> bool {
        rustix::fs::lstat(path).is_ok_and(|stat| stat.st_ino == self.held.stat.id.ino)
    }

    /// The copy in the state that it was left in, to be taken back.
    pub(crate) fn as_left(&mut self) -> Result<&OpenFile, Skip> {
        self.settle()?;
        Ok(&self.held)
    }

    /// Says that the temporary name could not be removed, if it is there still.
    pub(crate) fn left(&self, errno: i32) -> Result<(), Skip> {
        let Some(stage) = &self.stage else {
            return Ok(());
        };
        let path = sibling(&self.held.path, stage.as_bytes());
        Err(Skip::Left { path, errno })
    }

    /// Takes the temporary name away.
    pub(crate) fn drop_stage(&mut self) -> Result<(), Skip> {
        let dir = &self.held.dir;
        let Some(stage) = &self.stage else {
            return Ok(());
        };
        if identity_at(dir, stage)? == Some(self.held.stat.id) {
            entry::unlink(dir, stage)?;
        }
        self.stage = None;
        Ok(())
    }
}
