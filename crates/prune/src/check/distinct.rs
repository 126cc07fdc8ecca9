//! Proof that two identities are two files, as far as file systems can be relied on for that.

use std::os::fd::OwnedFd;

use bc_find::views::may_be_one;
use bc_fs::meta;
use bc_fs::mount::{Shows, basic_traits};

use crate::check::open_file::OpenFile;
use crate::skip::Skip;

/// Proves that two files with different identities are two files, as far as the file systems can be
/// relied on for that.
pub(crate) fn check(one: &OpenFile, other: &OpenFile) -> Result<(), Skip> {
    let shows = [
        basic_traits(&one.file)?.shows,
        basic_traits(&other.file)?.shows,
    ];
    // Each layer of one overlay has files of its own, and a device number.
    let layers = shows == [Shows::Layers; 2] && is_one_mount(&one.dir, &other.dir);
    let (one_id, other_id) = (one.stat.id, other.stat.id);
    let across = one_id.dev != other_id.dev && !layers;
    if may_be_one(shows, across) {
        return Err(Skip::UnstableInodes);
    }
    let same_number = across && one_id.ino == other_id.ino;
    match same_number && bc_fs::volume::may_be_one_file_system(&one.file, &other.file) {
        true => Err(Skip::SameVolume),
        false => Ok(()),
    }
}

/// Returns true if two directories are in one mount, or in two of one file system. The files of an
/// overlay have the device numbers of its layers, its directories have one.
pub(crate) fn is_one_mount(one: &OwnedFd, other: &OwnedFd) -> bool {
    let dev = |dir| meta::stat(dir).map(|stat| stat.id.dev);
    matches!((dev(one), dev(other)), (Ok(one), Ok(other)) if one == other)
}

/// True if two mounts are known to be two.
pub(crate) fn differ(one: Option<u64>, other: Option<u64>) -> bool {
    matches!((one, other), (Some(one), Some(other)) if one != other)
}
