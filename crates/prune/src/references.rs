//! Files that a run must not touch: those at or below a reference are never changed, and those in
//! the directory that files are moved to are neither changed nor kept instead of others. Both by
//! the identity of the directories on the way up, so that no spelling, link or mount of a path
//! matters; and where a mount has other identities, by the entries that are visible there
//! ([`Views`]). Where these leave it open, the answer is no change: nothing is tried out.
//!
//! A union is one directory that shows several, of which one may be a reference's. A name made or
//! changed in it is made in the one that the union chooses (mergerfs by its policies, unionfs-fuse
//! and an overlay in the one that can be written to), also if the current file is another's. So a
//! directory in which a reference's entries are visible counts as the reference's, and so do those
//! below: the union makes the directories on the way where it writes.

use std::collections::{HashMap, HashSet};
use std::ffi::CStr;
use std::os::fd::OwnedFd;

use bc_find::groups::FileGroup;
use bc_find::views::{self, SeenView, TreeDirs, Views};
use bc_find::{Files, Subtrees};
use bc_fs::call::FailedCall;
use bc_fs::dirfd;
use bc_fs::dirfd::{deepest_existing, visit_ancestors};
use bc_fs::meta;
use bc_fs::mount::{MountEntry, Shows, entries};
use bc_fs::path::below;
use bc_pool::Cancel;
use bc_walk::{Error, Identity, Symlinks};

use crate::check::dir;
use crate::check::open_file::OpenFile;
use crate::skip::Skip;
use crate::step::{Action, lies_in_home_trash, lies_in_trash};

/// Position of a directory in relation to references and destination.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct WatchedPlace {
    reference: bool,
    destination: bool,
    /// It may be a directory of a reference under another number.
    in_view: bool,
}

/// The places that matter to a run.
pub(crate) struct WatchedPlaces<'a> {
    references: &'a Subtrees,
    /// Directory that files are moved to.
    destination: Option<&'a [u8]>,
    /// True if files go to trashes: none of what lies in one is kept for others, or touched.
    is_trash: bool,
    /// True if names go away for good or to another place, by which what is kept in a trash would be
    /// the last of its content.
    takes_away: bool,
    /// Path of the working directory, once it was asked for.
    working_dir: Option<Vec<u8>>,
    /// Identities of it and of the directories in it, as soon as it exists.
    opened: HashSet<Identity>,
    /// The destination itself lies below a reference, where nothing is to change.
    barred: bool,
    known: HashMap<Identity, WatchedPlace>,
    /// Under which other numbers references are seen.
    views: Views,
    /// Directories in which entries of a reference's are seen.
    unions: HashMap<Identity, SeenView>,
    /// The destination as a tree, as soon as it exists, with the results about views of it.
    target: Option<(Subtrees, Views)>,
    shown: HashMap<Identity, bool>,
    /// True once the destination was found to be no reference's.
    is_destination_free: bool,
    cancel: &'a Cancel,
}

impl<'a> WatchedPlaces<'a> {
    pub(crate) fn new(
        references: &'a Subtrees,
        action: &'a Action,
        cancel: &'a Cancel,
    ) -> WatchedPlaces<'a> {
        let destination = match action {
            Action::Move(dir) => Some(dir.as_slice()),
            Action::Trash(home) => home.as_deref(),
            _ => None,
        };
        let is_trash = matches!(action, Action::Trash(_));
        let mut places = WatchedPlaces {
            references,
            destination,
            is_trash,
            takes_away: !matches!(action, Action::Hardlink | Action::Reflink),
            working_dir: None,
            opened: HashSet::new(),
            // Of trashes each is looked at before it is used.
            barred: !is_trash
                && destination
                    .is_some_and(|dir| lies_below(dir, references, cancel).unwrap_or(true)),
            known: HashMap::new(),
            views: Views::default(),
            unions: HashMap::new(),
            target: None,
            shown: HashMap::new(),
            is_destination_free: false,
            cancel,
        };
        places.open_destination();
        // Directories in it are known wherever else they are mounted. To read a whole disk for
        // that is worth it only where something is.
        if let Some(dir) = destination
            && may_be_mounted_twice(dir)
            && let Ok(mut trees) = Subtrees::open([dir.to_vec()])
            && trees
                .survey(Symlinks::Skip, Files::Named, 1.into(), cancel)
                .is_ok()
        {
            // Nor is anything put into a reference that is mounted in there.
            places.barred |= !is_trash && trees.dirs().any(|id| references.has_dir(id));
            places.opened.extend(trees.dirs());
        }
        places
    }

    /// True if names are to go away, and a path leads into a trash, which may be emptied at any time:
    /// by the names on the way, as no file system knows what a trash is.
    pub(crate) fn is_in_trash(&mut self, path: &[u8]) -> bool {
        let leads = |path: &[u8]| lies_in_trash(path) || lies_in_home_trash(path);
        if !self.takes_away {
            return false;
        }
        if path.starts_with(b"/") {
            return leads(path);
        }
        let working_dir = self.working_dir.get_or_insert_with(|| {
            let open = dirfd::open_root(b".").ok();
            open.and_then(|open| dirfd::real_path(&open))
                .unwrap_or_default()
        });
        leads(&[working_dir, &b"/"[..], path].concat())
    }

    fn matter(&self) -> bool {
        self.destination.is_some() || self.is_trash || !self.references.is_empty()
    }

    /// Proves right before a directory is changed that it is in none of the places, and that it is
    /// not above the destination.
    pub(crate) fn check_dir(&mut self, dir: &OwnedFd) -> Result<(), Skip> {
        if !self.matter() {
            return Ok(());
        }
        self.open_destination();
        let place = self.look(dir)?;
        if self.barred || place.reference {
            return Err(Skip::Protected);
        }
        if place.destination {
            return Err(Skip::InDestination);
        }
        match place.in_view
            && self
                .views
                .dir(self.references, TreeDirs::All, dir, self.cancel)?
                != SeenView::No
        {
            true => Err(Skip::Protected),
            false => Ok(()),
        }
    }

    /// While it does not exist, nothing lies in it.
    fn open_destination(&mut self) {
        if let Some(dir) = self.destination
            && self.opened.is_empty()
            && let Ok((opened, 0)) = deepest_existing(dir)
            && let Ok(stat) = meta::stat(&opened)
        {
            self.opened.insert(stat.id);
        }
    }

    /// Marks protected files, and takes out those in the destination; returns the number of the
    /// latter. A file whose directory cannot be opened stays as it is: it will be skipped for that.
    pub(crate) fn sort_out(&mut self, group: &mut FileGroup) -> usize {
        if !self.matter() {
            return 0;
        }
        let before = group.files.len();
        let mut in_view = false;
        group.files.retain_mut(|file| {
            let opened = dir::open_parent(file).ok();
            let place = opened
                .as_ref()
                .and_then(|(dir, _)| self.place(dir).ok())
                .unwrap_or_default();
            file.protected |= place.reference || self.references.has_file(file.id);
            if place.in_view
                && let Some((dir, name)) = opened
            {
                in_view = true;
                file.protected |= self
                    .seen(&dir, &name)
                    .is_ok_and(|seen| seen == SeenView::Yes);
            }
            !place.destination
        });
        if in_view {
            protect_aliases(group);
        }
        before - group.files.len()
    }

    /// Checks if the file is a reference's under another number.
    fn seen(&mut self, dir: &OwnedFd, name: &CStr) -> Result<SeenView, Skip> {
        Ok(self.views.file(self.references, dir, name, self.cancel)?)
    }

    fn place(&mut self, dir: &OwnedFd) -> Result<WatchedPlace, Skip> {
        let id = meta::stat(dir)?.id;
        if let Some(place) = self.known.get(&id) {
            return Ok(*place);
        }
        let place = self.look(dir)?;
        self.known.insert(id, place);
        Ok(place)
    }

    fn look(&mut self, dir: &OwnedFd) -> Result<WatchedPlace, Skip> {
        let mut place = WatchedPlace {
            destination: self.is_trash
                && dirfd::real_path(dir)
                    .is_some_and(|path| lies_in_trash(&path) || lies_in_home_trash(&path)),
            ..WatchedPlace::default()
        };
        let mut first = true;
        visit_ancestors(dir, |id, at| {
            if std::mem::take(&mut first) && !self.references.is_empty() {
                place.in_view = self.views.involve(self.references, at, id.dev);
            }
            place.reference |= self.references.has_dir(id);
            place.destination |= self.opened.contains(&id) || self.shows_destination(id, at);
            false
        })?;
        Ok(place)
    }

    /// Returns true if a directory is known to be the destination or one in it, under another number.
    /// One that only may be, by names that both have, is not: an earlier run made directories of the
    /// same names there.
    fn shows_destination(&mut self, id: Identity, at: &OwnedFd) -> bool {
        let Some(dir) = self.destination else {
            return false;
        };
        // Until it exists nothing lies in it.
        if self.opened.is_empty() {
            return false;
        }
        if let Some(known) = self.shown.get(&id) {
            return *known;
        }
        if self.target.is_none() {
            let Ok(trees) = Subtrees::open([dir.to_vec()]) else {
                return false;
            };
            self.target = Some((trees, Views::default()));
        }
        let Some((trees, views)) = &mut self.target else {
            return false;
        };
        // Nothing was moved into an empty one.
        let found = views.dir(trees, TreeDirs::WithEntries, at, self.cancel);
        let found = found.unwrap_or(SeenView::No) == SeenView::Yes;
        self.shown.insert(id, found);
        found
    }

    /// Proves, before anything is made there, that the destination is not a reference's.
    pub(crate) fn check_destination(&mut self) -> Result<(), Skip> {
        let is_known = self.is_destination_free || self.is_trash;
        let Some(dir) = self.destination.filter(|_| !is_known) else {
            return Ok(());
        };
        if !self.references.is_empty() {
            let (dir, _) = deepest_existing(dir)?;
            let seen = self
                .views
                .dir(self.references, TreeDirs::All, &dir, self.cancel)?;
            refuse(seen)?;
            refuse(self.union(&dir)?)?;
        }
        self.is_destination_free = true;
        Ok(())
    }

    /// Returns true if a name that no two directories have is visible in a reference as well, or if
    /// that is unknown.
    pub(crate) fn is_elsewhere(&mut self, dir: &OwnedFd, name: &CStr) -> bool {
        !self.references.is_empty()
            && (self.seen(dir, name) != Ok(SeenView::No) || self.union(dir) != Ok(SeenView::No))
    }

    /// Returns true if the directory is a reference or lies below one, or if that is unknown: then
    /// nothing is removed there either.
    pub(crate) fn protect(&mut self, dir: &OwnedFd) -> bool {
        !self.references.is_empty() && self.place(dir).map_or(true, |place| place.reference)
    }

    /// Proves right before a file is changed that it lies in none of the places now, wherever it
    /// was when it was found.
    pub(crate) fn check(&mut self, held: &OpenFile) -> Result<(), Skip> {
        if !self.matter() {
            return Ok(());
        }
        self.open_destination();
        let place = self.look(&held.dir)?;
        if self.barred || place.reference || self.references.has_file(held.stat.id) {
            Err(Skip::Protected)
        } else if place.destination {
            Err(Skip::InDestination)
        } else if !place.in_view {
            Ok(())
        } else {
            refuse(self.seen(&held.dir, &held.name)?)?;
            refuse(self.union(&held.dir)?)
        }
    }

    /// Determines if a reference's directory is visible in `dir`, or in one above it in the same
    /// mount.
    fn union(&mut self, dir: &OwnedFd) -> Result<SeenView, Skip> {
        if self.references.is_empty() {
            return Ok(SeenView::No);
        }
        let dev = meta::stat(dir)?.id.dev;
        let shows = self.views.shows(dir, dev);
        if shows == Shows::Own || !self.views.involve(self.references, dir, dev) {
            return Ok(SeenView::No);
        }
        let (mut found, mut failed, mut first) = (SeenView::No, None, true);
        visit_ancestors(dir, |id, at| {
            if id.dev != dev {
                return true;
            }
            let seen = match self.unions.get(&id) {
                Some(seen) => *seen,
                None => match self.views.shown(self.references, at, self.cancel) {
                    Ok(seen) => *self.unions.entry(id).or_insert(seen),
                    Err(error) => {
                        failed = Some(error);
                        return true;
                    }
                },
            };
            // Of directories further up the names alone say too little.
            if seen == SeenView::Yes || first {
                found = found.max(seen);
            }
            first = false;
            found == SeenView::Yes
        })?;
        match (failed, found) {
            (Some(error), _) => Err(error.into()),
            // An overlay always writes to its upper layer, which need not be the reference's.
            (None, SeenView::Yes) if shows == Shows::Layers => Ok(SeenView::Maybe),
            (None, found) => Ok(found),
        }
    }
}

/// Refuses what is a reference's, or may be.
fn refuse(seen: SeenView) -> Result<(), Skip> {
    match seen {
        SeenView::No => Ok(()),
        SeenView::Maybe => Err(Skip::ReferenceUndecided),
        SeenView::Yes => Err(Skip::Protected),
    }
}

/// Protects other names of protected files, which have another number in a view: they have the
/// same content, as many names, and the same times to the nanosecond.
fn protect_aliases(group: &mut FileGroup) {
    let known = group.files.iter().filter(|file| file.protected);
    let known: HashSet<_> = known.map(|file| (file.stamp, file.nlink)).collect();
    for file in &mut group.files {
        file.protected |= file.nlink > 1 && known.contains(&(file.stamp, file.nlink));
    }
}

/// Returns true if parts of a directory may appear in another place, or other places in it, because
/// of a mount: there is one below it, or its file system is mounted more than once. True if that is
/// unknown.
fn may_be_mounted_twice(dir: &[u8]) -> bool {
    let Ok(opened) = dirfd::open_root(dir) else {
        return false;
    };
    let (Ok(stat), Some(path)) = (meta::stat(&opened), dirfd::real_path(&opened)) else {
        return true;
    };
    entries().is_none_or(|mounts| mounted_twice(&mounts, stat.id.dev, &path))
}

/// Answers that from the mounts.
fn mounted_twice(mounts: &[MountEntry], dev: u64, path: &[u8]) -> bool {
    let is_below = |mount: &MountEntry| below(&mount.point, path).is_some();
    // None at all: a subvolume, whose number the table does not have.
    mounts.iter().any(is_below) || mounts.iter().filter(|mount| mount.dev == dev).count() != 1
}

/// Returns true if the directory `dir`, which need not exist yet, is or would be at or below one of
/// `trees`: its deepest ancestor that exists is, or shows one.
///
/// # Errors
/// If the system refuses a look.
pub fn lies_below(dir: &[u8], trees: &Subtrees, cancel: &Cancel) -> Result<bool, Error> {
    if trees.is_empty() {
        return Ok(false);
    }
    let failed = |failed: FailedCall| Error::new(dir, failed.op, failed.errno);
    let (existing, _) = deepest_existing(dir).map_err(failed)?;
    let below = visit_ancestors(&existing, |id, _| trees.has_dir(id)).map_err(failed)?;
    if below {
        return Ok(true);
    }
    Ok(
        match Views::default().dir(trees, TreeDirs::All, &existing, cancel) {
            Ok(seen) => seen == SeenView::Yes,
            // A run that is cancelled gets no further, whatever the answer.
            Err(_) => !cancel.is_cancelled(),
        },
    )
}

/// Returns true if one of the directories `trees` were opened by lies at or below `dir`, or in a
/// directory that this shows; false if `dir` does not exist.
///
/// # Errors
/// If the system refuses a look.
pub fn lies_above(dir: &[u8], trees: &Subtrees) -> Result<bool, Error> {
    let failed = |failed: FailedCall| Error::new(dir, failed.op, failed.errno);
    let (opened, missing) = deepest_existing(dir).map_err(failed)?;
    if missing > 0 || trees.is_empty() {
        return Ok(false);
    }
    let ours = meta::stat(&opened).map_err(failed)?.id;
    let in_view = Views::default().involve(trees, &opened, ours.dev);
    for tree in trees.open_dirs() {
        let found = visit_ancestors(tree, |id, at| {
            id == ours
                || in_view
                    && views::may_be_called_alike(at, &opened)
                    && views::compare(at, &opened) == SeenView::Yes
        });
        if found.map_err(failed)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns true if the directory `dir` is not there, and neither is the one that it would be made
/// in. A typing error would otherwise become a tree of new directories.
///
/// # Errors
/// If the system refuses a look.
pub fn lacks_parent(dir: &[u8]) -> Result<bool, Error> {
    match deepest_existing(dir) {
        Ok((_, missing)) => Ok(missing > 1),
        Err(failed) => Err(Error::new(dir, failed.op, failed.errno)),
    }
}

#[cfg(test)]
mod tests {
    use bc_fs::mount::entries_of;
    use rustix::fs::makedev;

    use super::mounted_twice;

    #[test]
    fn mounts_that_matter_are_told_from_others() {
        let table = b"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
            23 22 0:5 / /proc rw - proc proc rw\n\
            24 22 8:2 / /mnt/a\\040disk rw shared:1 - ext4 /dev/sda2 rw\n\
            25 22 8:3 / /srv rw - ext4 /dev/sda3 rw\n\
            26 22 8:3 /archive/sub /copy/x rw - ext4 /dev/sda3 rw\n";
        for (dev, path, expected) in [
            ((8, 1), "/var/trash", false),
            ((8, 1), "/", true),
            ((8, 1), "/mnt", true),
            ((8, 1), "/mnt/a", false),
            ((8, 2), "/mnt/a disk", false),
            ((8, 1), "/mnt/a disk/..", false),
            ((8, 3), "/srv/trash", true),
            ((0, 99), "/btrfs/subvolume", true),
        ] {
            let found = mounted_twice(&entries_of(table), makedev(dev.0, dev.1), path.as_bytes());
            assert_eq!(found, expected, "{dev:?} {path}");
        }
    }
}
