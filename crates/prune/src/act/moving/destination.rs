//! Destination of a move: the path below the directory that files are moved to, the directories on
//! the way, which are made as private as their sources, and what a dry run can foresee of them.

use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;

use bc_edit::entry;
use bc_edit::made;
use bc_fs::call::FailedCall;
use bc_fs::dirfd::{self, deepest_existing, is_lost};
use bc_fs::known::file_clock;
use bc_fs::meta;
use bc_fs::path::{sibling, split};
use bc_walk::Identity;
use rustix::io::Errno;

use crate::check::abilities;
use crate::check::compare::mounts_differ;
use crate::check::meta::{give_dir_metadata, read_dir_metadata};
use crate::check::open_file::OpenFile;
use crate::leftovers;
use crate::leftovers::StageSources;
use crate::means::PruneRun;
use crate::options::OnMetadataDiff;
use crate::skip::Skip;
use crate::step::{Action, StepKind};

/// Opens the directory of `to`, which lies below `dir`, creating missing directories: `dir` itself
/// for its owner alone, and those in it with the owner and the permissions of the source's
/// directories.
pub(crate) fn open_parent(
    dir: &[u8],
    to: &[u8],
    source: &[u8],
) -> Result<(OwnedFd, CString), Skip> {
    let mut at = open_or_make(dir)?;
    let below = to.get(dir.len()..).unwrap_or_default();
    let (parents, name) = split(below);
    let mut prefix = Vec::with_capacity(source.len());
    if source.first() == Some(&b'/') {
        prefix.push(b'/');
    }
    let mut originals = source.split(|byte| *byte == b'/');
    for part in parents
        .split(|byte| *byte == b'/')
        .filter(|part| !part.is_empty())
    {
        for original in originals.by_ref() {
            prefix.extend_from_slice(original);
            prefix.push(b'/');
            if original == part {
                break;
            }
        }
        make_dir(&at, &dirfd::name(part)?, &prefix)?;
        at = dirfd::open_below(at, part)?;
    }
    Ok((at, dirfd::name(name)?))
}

/// Opens the directory that files are moved to; makes it if only its own name is missing.
fn open_or_make(dir: &[u8]) -> Result<OwnedFd, Skip> {
    match dirfd::open_root(dir) {
        Err(failed) if failed.errno == Errno::NOENT => {}
        opened => return Ok(opened?),
    }
    let (above, missing) = deepest_existing(dir)?;
    if missing > 1 || is_lost(dir) {
        return Err(Skip::lost());
    }
    let Some(name) = last_name(dir).filter(|_| missing == 1) else {
        return Ok(above);
    };
    match entry::make_dir(&above, &dirfd::name(name)?, 0o700) {
        Err(failed) if failed.errno != Errno::EXIST => return Err(failed.into()),
        Ok(()) | Err(_) => {}
    }
    Ok(dirfd::open_below(&above, name)?)
}

/// Returns the last name of a path that no `..` behind it takes back.
fn last_name(path: &[u8]) -> Option<&[u8]> {
    let mut taken_back = 0_usize;
    let mut parts = path.rsplit(|byte| *byte == b'/');
    parts.find(|part| match *part {
        b"" | b"." => false,
        b".." => {
            taken_back += 1;
            false
        }
        _ if taken_back > 0 => {
            taken_back -= 1;
            false
        }
        _ => true,
    })
}

/// Makes a directory with the metadata of the one at the path `source`. One that is there stays as
/// it is.
fn make_dir(at: &OwnedFd, name: &CStr, source: &[u8]) -> Result<(), Skip> {
    let since = file_clock();
    match entry::make_dir(at, name, 0o700) {
        Err(failed) if failed.errno == Errno::EXIST => return Ok(()),
        made => made?,
    }
    let held = made::hold_dir(at, name, since).map_err(|errno| FailedCall { op: "open", errno })?;
    // Otherwise another process has taken the name.
    if let Some(made) = held {
        give_dir_metadata(read_dir_metadata(source), &made)?;
    }
    Ok(())
}

impl PruneRun<'_> {
    /// Removes leftovers from where a file is to be moved to, if that is there.
    /// Returns true if there were any.
    pub(crate) fn sweep_destination(&mut self, to: &[u8], sources: StageSources<'_>) -> bool {
        match self.look_up(to).map(|(dir, _)| (meta::stat(&dir), dir)) {
            Some((Ok(stat), dir)) => self.sweep(&dir, &stat.id, to, sources),
            Some((Err(_), _)) | None => false,
        }
    }

    /// The directory that a file is to be moved to, if it exists, and the name
    /// there: the way there follows links as little as the move itself.
    pub(super) fn look_up(&self, to: &[u8]) -> Option<(OwnedFd, CString)> {
        let Action::Move(given) = &self.options.action else {
            return None;
        };
        let (below, name) = split(to.get(given.len()..).unwrap_or_default());
        let below = below.strip_prefix(b"/").unwrap_or(below);
        let root = dirfd::open_root(given).ok()?;
        let dir = dirfd::open_below(root, below).ok()?;
        Some((dir, dirfd::name(name).ok()?))
    }

    /// Opens the file with this inode number in the directory of `to`, under a name that is not a
    /// temporary one. The device's number may be another one since it was mounted again.
    pub(crate) fn copies_at(&self, to: &[u8], copy: Identity) -> Option<OpenFile> {
        let (dir, _) = self.look_up(to)?;
        let name = leftovers::with_number(&dir, copy.ino)?;
        OpenFile::find(&dir, &name, &sibling(to, name.as_bytes())).ok()
    }

    /// Opens the directory that a move goes to, with missing directories on the way made; `None`
    /// for steps that are no moves.
    pub(crate) fn open_destination(
        &self,
        kind: &StepKind,
        target: &OpenFile,
    ) -> Result<Option<(OwnedFd, CString)>, Skip> {
        match (kind, &self.options.action) {
            (StepKind::Move(to), Action::Move(dir)) => {
                let opened = open_parent(dir, to, &target.path);
                opened.map(Some).map_err(|why| self.foreseen(to, why))
            }
            _ => Ok(None),
        }
    }

    /// Proves as far as it can be seen that the directories on the way can be made, and a name in the
    /// last of them.
    pub(crate) fn foresee_destination(&self, to: &[u8]) -> Result<OwnedFd, Skip> {
        let Action::Move(given) = &self.options.action else {
            return Err(Skip::Changed);
        };
        let (mut at, missing) = deepest_existing(given)?;
        if missing > 1 || missing > 0 && is_lost(given) {
            return Err(Skip::lost());
        }
        if missing == 0 {
            let below = split(to.get(given.len()..).unwrap_or_default()).0;
            for part in below
                .split(|byte| *byte == b'/')
                .filter(|part| !part.is_empty())
            {
                match dirfd::open_below(&at, part) {
                    Ok(next) => at = next,
                    Err(failed) if failed.errno == Errno::NOENT => break,
                    Err(failed) => return Err(failed.into()),
                }
            }
        }
        dirfd::may_change(&at)?;
        Ok(at)
    }

    /// Proves that a copy which has to be made below this directory can be given the file's owner.
    pub(super) fn foresee_owner(&self, at: &OwnedFd, target: &OpenFile) -> Result<(), Skip> {
        let there = meta::stat_all(at)?;
        let is_renamed =
            there.stat.id.dev == target.stat.id.dev && !mounts_differ(there.mount, target.mount);
        if is_renamed || self.options.on_metadata_diff == OnMetadataDiff::Ignore {
            return Ok(());
        }
        let caller = &self.abilities.caller;
        caller
            .may_give(Some(&there.stat), abilities::owner(target))
            .map_err(|errno| {
                let reason = std::io::Error::from(errno);
                Skip::MetadataLost(format!("owner: {reason}"))
            })
    }

    /// Returns the reason why a move did not arrive, in the words of a dry run where that would
    /// have reported it.
    pub(super) fn foreseen(&self, to: &[u8], why: Skip) -> Skip {
        match &why {
            Skip::System { errno, .. }
                if matches!(
                    Errno::from_raw_os_error(*errno),
                    Errno::ACCESS | Errno::ROFS | Errno::NOTDIR | Errno::LOOP | Errno::NOENT
                ) =>
            {
                self.foresee_destination(to).err().unwrap_or(why)
            }
            _ => why,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::last_name;

    #[test]
    fn the_name_of_a_directory_is_its_last() {
        for (path, expected) in [
            ("a/b//.", Some("b")),
            ("/a/", Some("a")),
            ("a/new/..", Some("a")),
            ("a/../b", Some("b")),
            ("a/..", None),
            ("./", None),
        ] {
            let name = last_name(path.as_bytes());
            assert_eq!(name, expected.map(str::as_bytes), "{path}");
        }
    }
}
