//! Names that a search takes for one file's, as device and inode number are the same: where a file
//! system passes on the numbers of several others they may be two files' all the same.

use std::os::fd::AsFd;

use bc_fs::compare::{SideBySide, UnreadSide};
use bc_fs::mount::Mounts;
use bc_pool::Cancel;
use bc_read::Opener;
use bc_walk::{EntryId, Error, ErrorKind, Listing};

use super::contents::Contents;

/// Compares names of one inode number byte for byte where numbers do not identify files, and splits
/// off those that differ. A name that cannot be compared is reported and split off as well.
pub(super) fn tell_apart(listing: &Listing, found: &mut Contents, cancel: &Cancel) -> Vec<Error> {
    let mut mounts = Mounts::default();
    let mut opener = Opener::new(listing, cancel);
    let mut errors = Vec::new();
    let mut apart = Vec::new();
    for (at, content) in found.iter().enumerate() {
        let names = content.names;
        if names.len() < 2 {
            continue;
        }
        let mut stays = vec![true; names.len()];
        for (nth, name) in names.iter().enumerate().skip(1) {
            let same = |other: &&EntryId| listing.identity(**other) == listing.identity(*name);
            let Some(first) = names[..nth].iter().find(same) else {
                continue;
            };
            let dev = listing.identity(*name).map_or(0, |id| id.dev);
            let open = || listing.open_dir(listing.dir(*name)).ok();
            if mounts.of(dev, open).numbers_are_its_own() {
                continue;
            }
            match are_equal(listing, &mut opener, [*first, *name], cancel) {
                Ok(true) => {}
                unequal => {
                    stays[nth] = false;
                    errors.extend(unequal.err());
                }
            }
        }
        if stays.contains(&false) {
            apart.push((at, stays));
        }
    }
    for (at, stays) in apart {
        found.part(at, &stays);
    }
    errors
}

fn are_equal(
    listing: &Listing,
    opener: &mut Opener<'_>,
    names: [EntryId; 2],
    cancel: &Cancel,
) -> Result<bool, Error> {
    let [one, other] = names;
    let (here, stat) = opener.open_checked(one)?;
    let (there, _) = opener.open_checked(other)?;
    let mut buffers = Default::default();
    let mut sides = SideBySide::new([here.as_fd(), there.as_fd()], stat.stamp.size, &mut buffers);
    while !sides.is_over() {
        if cancel.is_cancelled() {
            let path = listing.path(other);
            return Err(Error::of_kind(path, "read", ErrorKind::Cancelled));
        }
        let [here, there] = sides.read().map_err(|UnreadSide { file, call }| {
            Error::new(listing.path(names[file]), call.op, call.errno)
        })?;
        if here != there {
            return Ok(false);
        }
    }
    Ok(true)
}
