//! Other places of a content, and what forbids to rely on them: files that could not be read, names
//! that a search takes for one file's and may be two files' all the same, as a file system passes on
//! the numbers of several others, and files with [unseen writers](crate::writers). And entries that
//! have no content.

use std::collections::HashSet;
use std::os::fd::AsFd;

use bc_fs::compare::{SideBySide, UnreadSide};
use bc_fs::dirfd;
use bc_fs::mount::{Answer, Mounts};
use bc_pool::Cancel;
use bc_read::Opener;
use bc_walk::{DirId, EntryId, Error, ErrorKind, FileKind, Listing};

use super::contents::{Contents, Presence};
use super::reference_copy::ReferenceCopies;
use crate::scan::Scan;

/// Entries of the trees other than files.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct NotFiles {
    /// Symbolic links.
    pub links: u64,
    /// FIFOs and sockets.
    pub fifos: u64,
    /// Devices.
    pub devices: u64,
    /// Directories that hold nothing that was listed.
    pub empty_directories: u64,
}

impl NotFiles {
    /// Counts them in a listing of everything.
    pub(super) fn of(listing: &Listing) -> NotFiles {
        let mut found = NotFiles::default();
        let mut used = vec![false; listing.dirs()];
        for entry in listing.ids() {
            match listing.kind(entry) {
                FileKind::Symlink => found.links += 1,
                FileKind::Fifo | FileKind::Socket => found.fifos += 1,
                FileKind::Block | FileKind::Char => found.devices += 1,
                FileKind::File | FileKind::Dir => {}
            }
            if listing.name(entry) != c"." {
                used[listing.dir(entry).0 as usize] = true;
            }
        }
        let walked = |dir: usize| listing.dir_identity(DirId(dir as u32)).is_some();
        let empty = used
            .iter()
            .enumerate()
            .filter(|(dir, used)| !**used && walked(*dir));
        found.empty_directories = empty.count() as u64;
        found
    }
}

/// Marks, without references, contents that at least two files have as being in another one.
pub(super) fn mark_shared(found: &mut Contents, reference_copies: &mut ReferenceCopies<'_>) {
    for (row, names) in found.rows_mut() {
        if row.group.is_some() && reference_copies.are_several(names) {
            row.presence = Presence::Another;
        }
    }
}

/// Marks each content of a reference copy as being in its reference, `number` by the root that the
/// copy was found under. Returns the first name of each such content with its copy.
pub(super) fn by_directories(
    scan: &Scan,
    found: &mut Contents,
    reference_copies: &mut ReferenceCopies<'_>,
    number: impl Fn(usize) -> usize,
) -> Vec<(EntryId, EntryId)> {
    let mut relied = Vec::new();
    let groups: Vec<_> = scan.groups().collect();
    for (row, names) in found.rows_mut() {
        let Some(group) = row.group else {
            continue;
        };
        let reference_copy = groups[group as usize]
            .files()
            .find_map(|file| Some((file.names[0], reference_copies.reference_copy(file.names)?)));
        reference_copies.settle_written(reference_copy.is_some());
        if let Some((file, root)) = reference_copy {
            relied.push((names[0], file));
            row.presence = Presence::Directory {
                reference: number(root),
            };
        }
    }
    relied
}

/// Marks files that could not be read: their other places are unknown.
pub(super) fn note_unread(listing: &Listing, scan: &Scan, found: &mut Contents) {
    if scan.errors.is_empty() {
        return;
    }
    let failed: HashSet<&[u8]> = scan.errors.iter().map(Error::path).collect();
    for (row, names) in found.rows_mut() {
        let unread = || {
            names
                .iter()
                .any(|name| failed.contains(&listing.path(*name)[..]))
        };
        if row.presence == Presence::Nowhere && unread() {
            row.presence = Presence::Unread;
        }
    }
}

/// Files of size 0 are empty only where sizes are reliable; elsewhere each is opened and read. One
/// that turns out to hold something becomes a content that is nowhere else.
pub(super) fn settle_empty(
    listing: &Listing,
    own: usize,
    found: &mut Contents,
    cancel: &Cancel,
) -> Vec<Error> {
    let mut mounts = Mounts::default();
    let mut opener = Opener::new(listing, cancel);
    let mut errors = Vec::new();
    if found.empty == 0 {
        return errors;
    }
    for entry in listing.ids().take(own) {
        let is_file = listing.kind(entry) == FileKind::File;
        if !is_file || listing.size(entry) != Some(0) {
            continue;
        }
        let dev = listing.identity(entry).map_or(0, |id| id.dev);
        let open = || listing.open_dir(listing.dir(entry)).ok();
        if mounts.of(dev, open).sizes == Answer::Yes {
            continue;
        }
        match holds_something(listing, &mut opener, entry) {
            Ok(false) => {}
            holds => {
                found.empty -= 1;
                found.push(0, &[entry], 1, None);
                errors.extend(holds.err());
            }
        }
    }
    errors
}

fn holds_something(
    listing: &Listing,
    opener: &mut Opener<'_>,
    entry: EntryId,
) -> Result<bool, Error> {
    let (file, _) = opener.open_checked(entry)?;
    let read = dirfd::read_at(&file, &mut [0; 1], 0);
    read.map(|count| count > 0)
        .map_err(|why| Error::new(listing.path(entry), why.op, why.errno))
}

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

/// Marks such files as unread, as their content may have changed by the time the answer is used,
/// and returns an error for each. `refused` are reference copies among them.
pub(super) fn note_written(
    listing: &Listing,
    writers: &[EntryId],
    refused: &[EntryId],
    found: &mut Contents,
) -> Vec<Error> {
    let mut reported = refused.to_vec();
    for (row, names) in found.rows_mut() {
        if matches!(row.presence, Presence::Nowhere | Presence::Unread) {
            continue;
        }
        let before = reported.len();
        let written = names
            .iter()
            .filter(|name| writers.binary_search(name).is_ok());
        reported.extend(written);
        if reported.len() > before {
            row.presence = Presence::Unread;
        }
    }
    reported.sort_unstable();
    reported.dedup();
    let error = |entry| {
        let text = "is open for writing, and what is written may not show";
        Error::with_message(listing.path(entry), "search", text)
    };
    reported.into_iter().map(error).collect()
}
