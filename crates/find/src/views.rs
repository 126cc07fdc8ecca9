//! Directories under other numbers. A bind mount shows a directory under its own device and inode
//! number; an overlay, a FUSE file system or a network mount shows it under numbers that are
//! nothing like them. Entries of a reference or of the destination are then known by what is
//! visible on both sides: directories that could be the same (the last name on the way to them is,
//! or a mount begins there), and in those the same names for entries in the same state, change
//! times included, which no copy has.
//!
//! This is asked only where one of the two file systems shows others' entries; see [`Shows`](bc_fs::mount::Shows).

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::fmt;
use std::os::fd::OwnedFd;

use bc_fs::call::{self, FailedCall};
use bc_fs::dirfd;
use bc_fs::known::at_one_time;
use bc_fs::meta;
use bc_fs::mount::{Answer, Mounts, Shows};
use bc_fs::path::split;
use bc_pool::Cancel;
use bc_walk::{DirId, FileKind, FileStat, Identity, Listing};
use rustix::fs::{Dir, Mode, OFlags};
use rustix::io::Errno;

use crate::subtrees::{Files, Subtrees};

/// Answer to the question if a file or directory is, under other numbers, the one that it is
/// compared with. Looks alone answer it: nothing is made to find out.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum SeenView {
    /// It is another.
    No,
    /// The names are the same, the states are not: a view of another file system may show other
    /// times. Within one file system both are seen by the same eyes, and states tell.
    Maybe,
    /// It is.
    Yes,
}

/// Directories of the trees that a directory is compared with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TreeDirs {
    /// All of them.
    All,
    /// Those that are not empty.
    WithEntries,
}

/// Reason why it is unknown if an entry is one of the trees'.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ViewError {
    /// A call failed.
    Failed(FailedCall),
    /// The trees could not be listed, for want of a worker.
    Unlisted,
    /// The search was cancelled.
    Cancelled,
}

impl fmt::Display for ViewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ViewError::Failed(failed) => failed.fmt(f),
            ViewError::Unlisted => f.write_str("the references cannot be listed"),
            ViewError::Cancelled => f.write_str("cancelled"),
        }
    }
}

impl std::error::Error for ViewError {}

impl From<FailedCall> for ViewError {
    fn from(failed: FailedCall) -> ViewError {
        ViewError::Failed(failed)
    }
}

/// Above this number of directories only those count that have a name in common.
const MANY: usize = 64;
/// Number of entries that are compared to find if two directories are one.
const SAMPLE: usize = 16;
/// Depth down to which a file is looked for that stands for a directory.
const DEEP: usize = 32;

/// Results about views of some trees.
#[derive(Default)]
pub struct Views {
    mounts: Mounts,
    /// By device: true if directories there may be some of the trees'.
    involved: HashMap<u64, bool>,
    index: Option<Index>,
    /// Directories of the trees that a directory could be.
    near: HashMap<Identity, Vec<DirId>>,
}

/// The directories of the trees, listed once a view may be involved.
struct Index {
    listing: Listing,
    by_name: HashMap<Vec<u8>, Vec<DirId>>,
    /// Directories that may have any name elsewhere: a mount begins there, or a path that was given
    /// ends there.
    unnamed: Vec<DirId>,
}

impl Views {
    /// Returns true if `dir` can be one of `trees` or lie in one without having its number. For
    /// most file systems this is one call for each device.
    pub fn involve(&mut self, trees: &Subtrees, dir: &OwnedFd, dev: u64) -> bool {
        if let Some(known) = self.involved.get(&dev) {
            return *known;
        }
        let here = self.mounts.of(dev, || Some(dir)).shows;
        let found = trees.devs().any(|(other, path)| {
            let there = self.mounts.of(other, || dirfd::open_root(path).ok()).shows;
            may_be_one([here, there], other != dev)
        });
        self.involved.insert(dev, found);
        found
    }

    /// Checks if the file of a directory is one of the trees'. A file that was written at another
    /// time is none, nor is one on a file system of another size: copies that kept their times lie
    /// on others.
    pub fn file(
        &mut self,
        trees: &Subtrees,
        dir: &OwnedFd,
        name: &CStr,
        cancel: &Cancel,
    ) -> Result<SeenView, ViewError> {
        let id = meta::stat(dir)?.id;
        if !self.involve(trees, dir, id.dev) {
            return Ok(SeenView::No);
        }
        let own = meta::stat_now(dir, name)?;
        let mut seen = SeenView::No;
        for other in self.near(trees, dir, id, cancel)? {
            match meta::stat_now(&other, name) {
                Ok(found) => seen = seen.max(self.same_file(&own, dir, &found, &other)),
                Err(failed) if failed.errno == Errno::NOENT => {}
                Err(_) => seen = seen.max(SeenView::Maybe),
            }
        }
        for (path, file) in trees.open_files() {
            let is_named = split(path).1 == name.to_bytes();
            match meta::stat_now(file, c"") {
                Ok(found) if same_state(&own, &found) => return Ok(SeenView::Yes),
                Ok(found) if is_named => seen = seen.max(self.same_file(&own, dir, &found, file)),
                Err(_) if is_named => seen = seen.max(SeenView::Maybe),
                Ok(_) | Err(_) => {}
            }
        }
        Ok(seen)
    }

    fn same_file(
        &mut self,
        own: &FileStat,
        dir: &OwnedFd,
        found: &FileStat,
        at: &OwnedFd,
    ) -> SeenView {
        match same_state(own, found) {
            true => SeenView::Yes,
            false if written_alike(own, found) && self.may_be_views(dir, at) => SeenView::Maybe,
            false => SeenView::No,
        }
    }

    /// Returns true if two directories or files may lie in two views of one file system that show
    /// other times: in two mounts, which are as large. A union is as large as all that it shows, so
    /// that its size says nothing; a server or a disk of its own is none.
    fn may_be_views(&mut self, one: &OwnedFd, other: &OwnedFd) -> bool {
        let (Ok(here), Ok(there)) = (meta::stat(one), meta::stat(other)) else {
            return true;
        };
        let (here, there) = (here.id.dev, there.id.dev);
        here != there
            && (self.may_be_union(one, here)
                || self.may_be_union(other, there)
                || equally_large(one, other))
    }

    fn may_be_union(&mut self, dir: &OwnedFd, dev: u64) -> bool {
        let traits = self.mounts.of(dev, || Some(dir));
        // FUSE file systems that serve a block device have its number.
        traits.shows != Shows::Own && traits.network != Answer::Yes && rustix::fs::major(dev) == 0
    }

    /// Returns true if the file of a directory may be one of the trees', without asking the file
    /// system by making a file there: it is if it has the same name and state, and may be if it is
    /// as long, was written to at the same time as far as a view reports it, and lies on a file
    /// system as large. A copy that kept its time lies on another.
    pub(crate) fn may_show(
        &mut self,
        trees: &Subtrees,
        dir: &OwnedFd,
        name: &CStr,
        cancel: &Cancel,
    ) -> Result<bool, ViewError> {
        let id = meta::stat(dir)?.id;
        if !self.involve(trees, dir, id.dev) {
            return Ok(false);
        }
        let own = meta::stat_now(dir, name)?;
        let may_be = |found: &FileStat, at: &OwnedFd| {
            same_state(&own, found) || written_alike(&own, found) && equally_large(dir, at)
        };
        for other in self.near(trees, dir, id, cancel)? {
            match meta::stat_now(&other, name) {
                Ok(found) if may_be(&found, &other) => return Ok(true),
                Err(failed) if failed.errno != Errno::NOENT => return Ok(true),
                _ => {}
            }
        }
        let mut files = trees.open_files();
        Ok(files.any(|(_, file)| match meta::stat_now(file, c"") {
            Ok(found) => may_be(&found, file),
            Err(_) => true,
        }))
    }

    /// Returns whose files the file system with `dir` on its device shows: its own, or others'.
    pub fn shows(&mut self, dir: &OwnedFd, dev: u64) -> Shows {
        self.mounts.of(dev, || Some(dir)).shows
    }

    /// Returns true if the file system that has `dir` on its device is on another machine.
    pub(crate) fn is_remote(&mut self, dir: &OwnedFd, dev: u64) -> bool {
        self.mounts.of(dev, || Some(dir)).network == Answer::Yes
    }

    /// Checks if entries of one of the trees' directories are visible in `dir`, perhaps among
    /// others.
    pub fn shown(
        &mut self,
        trees: &Subtrees,
        dir: &OwnedFd,
        cancel: &Cancel,
    ) -> Result<SeenView, ViewError> {
        let id = meta::stat(dir)?.id;
        let near = self.near(trees, dir, id, cancel)?;
        Ok(self.decided(dir, &near, |other| is_shown(other, dir)))
    }

    /// Checks if the directory is one of `candidates`.
    pub fn dir(
        &mut self,
        trees: &Subtrees,
        candidates: TreeDirs,
        dir: &OwnedFd,
        cancel: &Cancel,
    ) -> Result<SeenView, ViewError> {
        let id = meta::stat(dir)?.id;
        if !self.involve(trees, dir, id.dev) {
            return Ok(SeenView::No);
        }
        let mut near = self.near(trees, dir, id, cancel)?;
        if candidates == TreeDirs::WithEntries {
            near.retain(|other| !first_names(other).is_empty());
        }
        Ok(self.decided(dir, &near, |other| compare(dir, other)))
    }

    /// Returns the strongest answer about any of the directories.
    fn decided(
        &mut self,
        dir: &OwnedFd,
        near: &[OwnedFd],
        look: impl Fn(&OwnedFd) -> SeenView,
    ) -> SeenView {
        let answers = near.iter().map(|other| match look(other) {
            SeenView::Maybe if !self.may_be_views(dir, other) => SeenView::No,
            seen => seen,
        });
        answers.max().unwrap_or(SeenView::No)
    }

    /// The directories of the trees that `dir` could be, open.
    fn near(
        &mut self,
        trees: &Subtrees,
        dir: &OwnedFd,
        id: Identity,
        cancel: &Cancel,
    ) -> Result<Vec<OwnedFd>, ViewError> {
        if self.index.is_none() {
            self.index = Some(Index::new(trees, cancel)?);
        }
        let Views {
            index: Some(index),
            mounts,
            ..
        } = self
        else {
            return Ok(Vec::new());
        };
        let open = |at: &DirId| index.listing.open_dir(*at).ok();
        if let Some(known) = self.near.get(&id) {
            return Ok(known.iter().filter_map(open).collect());
        }
        let here = mounts.of(id.dev, || Some(dir)).shows;
        let mut found = index.named(name_of(dir).as_deref());
        found.retain(|at| {
            let Some(other) = index.listing.dir_identity(*at) else {
                return false;
            };
            let there = mounts.of(other.dev, || open(at)).shows;
            may_be_one([here, there], other.dev != id.dev)
        });
        if found.len() > MANY {
            found.retain(|at| open(at).is_none_or(|other| has_one_of(dir, &other)));
        }
        let opened = found.iter().filter_map(open).collect();
        self.near.insert(id, found);
        Ok(opened)
    }
}

impl Index {
    fn new(trees: &Subtrees, cancel: &Cancel) -> Result<Index, ViewError> {
        let listed = trees.list(Files::Named, 1.into(), cancel);
        let listing = listed.map_err(|_| ViewError::Unlisted)?;
        // Results of an early end would be incomplete.
        if cancel.is_cancelled() {
            return Err(ViewError::Cancelled);
        }
        let mut index = Index {
            listing,
            by_name: HashMap::new(),
            unnamed: Vec::new(),
        };
        let mut devs = HashMap::new();
        for at in (0..index.listing.dirs() as u32).map(DirId) {
            let Some(id) = index.listing.dir_identity(at) else {
                continue;
            };
            let mut path = index.listing.dir_path(at);
            while path.len() > 1 && path.ends_with(b"/") {
                path.pop();
            }
            let (parent, name) = split(&path);
            if devs.get(parent) == Some(&id.dev) {
                index.by_name.entry(name.to_vec()).or_default().push(at);
            } else {
                index.unnamed.push(at);
            }
            devs.insert(path, id.dev);
        }
        Ok(index)
    }

    /// All that may be called like that elsewhere; simply all, if there is no name to go by.
    fn named(&self, name: Option<&[u8]>) -> Vec<DirId> {
        match name {
            None => (0..self.listing.dirs() as u32).map(DirId).collect(),
            Some(name) => {
                let named = self.by_name.get(name).into_iter().flatten();
                named.chain(&self.unnamed).copied().collect()
            }
        }
    }
}

/// Returns true if two identities on two file systems, or on one if not `across`, may be one file
/// or one directory.
pub fn may_be_one(shows: [Shows; 2], across: bool) -> bool {
    shows.contains(&Shows::Others) || across && shows.contains(&Shows::Layers)
}

/// Returns true if two directories may be one by their names: these are the same, or one is
/// unknown.
pub fn may_be_called_alike(one: &OwnedFd, other: &OwnedFd) -> bool {
    match (name_of(one), name_of(other)) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    }
}

/// The last name on the way to a directory; `None` where a mount begins, as other ways to it
/// have other names there.
fn name_of(dir: &OwnedFd) -> Option<Vec<u8>> {
    if meta::is_mount_root(dir) != Some(false) {
        return None;
    }
    let path = dirfd::real_path(dir)?;
    Some(split(&path).1.to_vec()).filter(|name| !name.is_empty())
}

/// Time by which a view may be wrong about the last change of a file: where FUSE keeps writes back
/// (fuse-overlayfs), the kernel believes its own clock, not the server.
const VIEW_LATE_NS: u64 = 1_000_000_000;

/// Returns true for the same type, size and times: two names with these are one file, unless one
/// was copied within one tick of the clock. A view that passes inode numbers on may be a little wrong
/// about the last change.
fn same_state(one: &FileStat, other: &FileStat) -> bool {
    let (here, there) = (one.stamp, other.stamp);
    let is_late = || {
        one.id.ino == other.id.ino
            && (here.size, here.mtime_ns) == (there.size, there.mtime_ns)
            && here.ctime_ns.abs_diff(there.ctime_ns) <= VIEW_LATE_NS
    };
    one.kind() == other.kind() && (here == there || is_late())
}

/// Returns true for the same size, and the same time as far as the coarser of two clocks shows.
fn written_alike(one: &FileStat, other: &FileStat) -> bool {
    let (here, there) = (one.stamp, other.stamp);
    here.size == there.size && at_one_time(here.mtime_ns, there.mtime_ns)
}

/// Returns true if two directories lie on file systems of one size, as a view and the file system
/// that it shows do. True if that is unknown, as where a view without a known size makes one up:
/// all of it is free.
pub(crate) fn equally_large(one: &OwnedFd, other: &OwnedFd) -> bool {
    let size = |dir| {
        let found = rustix::fs::fstatvfs(dir).ok()?;
        let is_reported = found.f_blocks > 0 && found.f_bfree < found.f_blocks;
        is_reported.then_some((found.f_frsize.saturating_mul(found.f_blocks), found.f_files))
    };
    match (size(one), size(other)) {
        // A share of SMB does not say how many files its disk takes.
        (Some((one, files)), Some((other, others))) => {
            one == other && (files == others || files == 0 || others == 0)
        }
        _ => true,
    }
}

/// Compares two directories to find if they are one. They are if all entries of one are in the
/// other as well, as in the branches of a union, or if both are empty and changed last at the same
/// moment. They are not if neither is empty and no name is the same.
pub fn compare(one: &OwnedFd, other: &OwnedFd) -> SeenView {
    let (here, there) = (first_names(one), first_names(other));
    if here.is_empty() && there.is_empty() {
        let times = |dir| {
            let stat = meta::stat_now(dir, c"").ok()?;
            Some((stat.stamp.mtime_ns, stat.stamp.ctime_ns))
        };
        return match times(one) {
            Some(at) if times(other) == Some(at) => SeenView::Yes,
            _ => SeenView::Maybe,
        };
    }
    let has = |dir, names: &[CString]| names.iter().any(|name| meta::stat_at(dir, name).is_ok());
    if all_are_in(&here, one, other) || all_are_in(&there, other, one) {
        SeenView::Yes
    } else if here.is_empty() || there.is_empty() || has(other, &here) || has(one, &there) {
        SeenView::Maybe
    } else {
        SeenView::No
    }
}

/// Checks if entries of `one` are visible in `other`. One suffices, as a union shows one of several
/// files of a name; a file with other names does not, as other directories may have it too.
fn is_shown(one: &OwnedFd, other: &OwnedFd) -> SeenView {
    let names = first_names(one);
    let only = |name: &CString| is_same_only_name(one, other, name, DEEP).unwrap_or(false);
    if names.iter().any(only) {
        SeenView::Yes
    } else if names.is_empty() || names.iter().any(|name| meta::stat_at(other, name).is_ok()) {
        SeenView::Maybe
    } else {
        SeenView::No
    }
}

/// Compares as [`same_entry`], only if the entry has no other name.
fn is_same_only_name(
    one: &OwnedFd,
    other: &OwnedFd,
    name: &CStr,
    deep: usize,
) -> call::Result<bool> {
    let (here, there) = (meta::stat_now(one, name)?, meta::stat_now(other, name)?);
    if here.kind() != FileKind::Dir || there.kind() != FileKind::Dir {
        return Ok(here.nlink == 1 && same_state(&here, &there));
    }
    let (inner, outer) = (open_inner(one, name)?, open_inner(other, name)?);
    match first_names(&inner).first() {
        Some(first) if deep > 0 => is_same_only_name(&inner, &outer, first, deep - 1),
        _ => Ok(false),
    }
}

/// Returns true if `names` of `one` are all in `other` as they are, and there are any.
fn all_are_in(names: &[CString], one: &OwnedFd, other: &OwnedFd) -> bool {
    let same = |name: &CString| same_entry(one, other, name, DEEP).unwrap_or(false);
    !names.is_empty() && names.iter().all(same)
}

/// Returns true if the name leads to one entry. A directory's own times are those of one branch in
/// a union, so its first entry stands for it.
fn same_entry(one: &OwnedFd, other: &OwnedFd, name: &CStr, deep: usize) -> call::Result<bool> {
    let (mut here, there) = (meta::stat_now(one, name)?, meta::stat_now(other, name)?);
    if here.kind() != FileKind::Dir || there.kind() != FileKind::Dir {
        return Ok(same_state(&here, &there));
    }
    let (inner, outer) = (open_inner(one, name)?, open_inner(other, name)?);
    match first_names(&inner).first() {
        Some(first) => Ok(deep == 0 || same_entry(&inner, &outer, first, deep - 1)?),
        None => {
            // The size of a directory is the file system's own affair.
            here.stamp.size = there.stamp.size;
            Ok(same_state(&here, &there) && first_names(&outer).is_empty())
        }
    }
}

/// Opens a directory in another one.
fn open_inner(dir: &OwnedFd, name: &CStr) -> call::Result<OwnedFd> {
    dirfd::open_below(dirfd::open_dir_at(dir, b".")?, name.to_bytes())
}

/// Returns true if a name of `other` is in `dir` too, or `other` is empty.
fn has_one_of(dir: &OwnedFd, other: &OwnedFd) -> bool {
    let names = first_names(other);
    names.is_empty() || names.iter().any(|name| meta::stat_at(dir, name).is_ok())
}

/// Beginning of the names by which some unions (fuse-overlayfs, AUFS) mark what one of their layers
/// hides: no view shows these.
const WHITEOUT: &[u8] = b".wh.";

/// Returns the first names in a directory that a view of it shows.
fn first_names(dir: &OwnedFd) -> Vec<CString> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(opened) = rustix::fs::openat(dir, c".", flags, Mode::empty()) else {
        return Vec::new();
    };
    let Ok(entries) = Dir::new(opened) else {
        return Vec::new();
    };
    let names = entries.filter_map(Result::ok).filter_map(|entry| {
        let name = entry.file_name();
        let is_shown = name != c"." && name != c".." && !name.to_bytes().starts_with(WHITEOUT);
        is_shown.then(|| name.to_owned())
    });
    names.take(SAMPLE).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use bc_testkit::TestTree;

    use super::*;

    /// fuse-overlayfs marks each directory that it makes in its upper layer.
    #[test]
    fn marks_of_a_layer_say_nothing_of_its_view() {
        let t = TestTree::new();
        t.write("layer/dir/file", "content").dir("view/dir");
        t.hard_link("layer/dir/file", "view/dir/file");
        for mark in [".wh.gone", "dir/.wh..wh..opq"] {
            t.write(format!("layer/{mark}"), "");
        }
        let open = |path: &str| dirfd::open_root(t.join(path).as_os_str().as_bytes()).unwrap();
        let [layer, view] = ["layer", "view"].map(open);
        assert_eq!(compare(&layer, &view), SeenView::Yes);
        assert_eq!(compare(&view, &layer), SeenView::Yes);
        assert_eq!(is_shown(&layer, &view), SeenView::Maybe);
        t.remove("view/dir/file");
        assert_eq!(compare(&layer, &view), SeenView::Maybe);
    }
}
