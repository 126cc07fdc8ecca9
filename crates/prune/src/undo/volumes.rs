//! Check that the file system of a step is mounted. Where a disk is not mounted, its mount point is
//! an empty directory of another one, which must not be filled.

use std::borrow::Cow;
use std::collections::HashMap;
use std::os::fd::OwnedFd;

use bc_fs::dirfd;
use bc_fs::meta;
use bc_fs::mount::{Answer, basic_traits};
use bc_fs::path::split;

use super::reference;
use crate::check::dir;
use crate::journal::{Index, JournalStep, Recorded, TreeAction};
use crate::skip::Skip;

/// File systems of the steps, and those mounted now.
#[derive(Default)]
pub(super) struct Volumes {
    /// Volumes by run and device.
    recorded: HashMap<(u64, u64), String>,
    /// Volumes mounted now, by device.
    present: HashMap<u64, Option<String>>,
}

impl Volumes {
    pub(super) fn of(index: &Index) -> Volumes {
        Volumes {
            recorded: index.volumes.clone(),
            present: HashMap::new(),
        }
    }

    /// Proves that the name of a step, or its nearest existing ancestor, is on the file system that
    /// it was on, as far as that can be determined.
    pub(super) fn check(&mut self, run: u64, entry: &JournalStep, path: &[u8]) -> Result<(), Skip> {
        let of_directory = entry
            .tree_action()
            .is_some_and(|action| action != TreeAction::RemoveLink);
        // A directory may itself be where a mount begins.
        let path = match of_directory {
            true => Cow::Owned([path, b"/."].concat()),
            false => Cow::Borrowed(path),
        };
        let Some(dir) = nearest(&path, &entry.target) else {
            return Ok(());
        };
        let (before, now) = (entry.target.id().dev, meta::stat(&dir)?.id.dev);
        let present = self.present.entry(now);
        let present = present
            .or_insert_with(|| bc_fs::volume::volume_at(dirfd::own_path(&dir)))
            .as_deref();
        let recorded = self.recorded.get(&(run, before)).map(String::as_str);
        let is_there = match (recorded, present) {
            (Some(recorded), Some(present)) if has_uuid(recorded) && has_uuid(present) => {
                recorded == present
            }
            _ if before == now => true,
            // The type of the file system, and what it was mounted from.
            (Some(recorded), Some(present)) if !has_uuid(recorded) && !has_uuid(present) => {
                recorded == present && !is_the_keepers(entry, &dir, now)
            }
            // Numbers of devices change when they are mounted again.
            _ => !is_the_keepers(entry, &dir, now),
        };
        match is_there {
            true => Ok(()),
            false => Err(Skip::OtherVolume),
        }
    }
}

/// Whether the volume is known by a UUID, or the shorter number that FAT and NTFS have, not by its
/// type and what it was mounted from.
fn has_uuid(volume: &str) -> bool {
    let uuid = volume.split(' ').next().unwrap_or_default();
    let digits = |c: char| c.is_ascii_hexdigit() || c == '-';
    uuid.len() >= 8 && uuid.chars().all(digits)
}

/// Opens the directory of a name, or the nearest existing one above it.
fn nearest(path: &[u8], recorded: &Recorded) -> Option<OwnedFd> {
    let mut at = path;
    while at.len() > 1 {
        match dir::open_parent(&reference(at, recorded)) {
            Ok((dir, _)) => return Some(dir),
            Err(Skip::Gone) => at = split(at).0,
            Err(_) => return None,
        }
    }
    None
}

/// Returns true if a directory with this device is on the kept file's file system, while the step's
/// file was on another.
fn is_the_keepers(entry: &JournalStep, dir: &OwnedFd, dev: u64) -> bool {
    if entry.kept_file.id().dev == entry.target.id().dev {
        return false;
    }
    // There, files of one file system may have several numbers.
    if basic_traits(dir).is_ok_and(|traits| traits.copy_up == Answer::Yes) {
        return false;
    }
    let kept_file = entry
        .kept_file
        .path()
        .and_then(|path| dir::open_parent(&reference(&path, &entry.kept_file)).ok());
    kept_file
        .and_then(|(dir, _)| meta::stat(&dir).ok())
        .is_some_and(|stat| stat.id.dev == dev)
}

#[cfg(test)]
mod tests {
    use super::has_uuid;

    #[test]
    fn uuids_are_told_from_types() {
        for uuid in [
            "6a3fe1a0-1f6a-4b6e-9d9a-0d2f3a6b7c8d",
            "6a3fe1a0-1f6a-4b6e-9d9a-0d2f3a6b7c8d 1f",
            "1234-ABCD",
            "01D5E8F2A3B4C5D6",
        ] {
            assert!(has_uuid(uuid), "{uuid}");
        }
        for kind in [
            "ext4 /dev/sda1",
            "nfs4 server:/a",
            "overlay overlay",
            "9p abc",
            "",
        ] {
            assert!(!has_uuid(kind), "{kind}");
        }
    }
}
