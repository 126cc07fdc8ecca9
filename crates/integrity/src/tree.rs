//! The tree as it is now: the walk's listing as sorted entries with paths relative to the root,
//! each with the failures of the walk.

pub(crate) mod attributes;
pub(crate) mod hashing;
pub(crate) mod loader;
pub(crate) mod mounts;
pub(crate) mod recording;
pub(crate) mod unread;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bc_manifest::integrity::{Kind, ROOT, path_order};
use bc_walk::job::{Error, ErrorKind, path_of};
use bc_walk::{
    EntryId, ExactPaths, FileStat, FileStats, Listing, OwnFile, Shard, Symlinks, WalkOptions,
};

use self::mounts::MountPoints;
use self::mounts::MountTable;
pub(crate) use self::unread::failure;
use self::unread::{Unlisted, Unread};
use crate::entry_ref::{EntryRef, kind_of};
use crate::options::{TreeOptions, Work};

/// Role of a symbolic link in an entry, where links are followed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Link {
    /// None, or links are not followed.
    No,
    /// The entry is the target of a link.
    Followed,
    /// The link leads nowhere, and is the entry itself.
    Broken,
}

/// A walked tree.
pub(crate) struct Tree {
    pub(crate) listing: Listing,
    /// The root's absolute path without links, where it has one.
    pub(crate) real: Option<PathBuf>,
    /// All mounts after the walk; `None` where the kernel does not list them.
    pub(crate) mounts: Option<MountTable>,
    /// Treatment of symbolic links.
    symlinks: Symlinks,
    /// Files that were left out of the walk, and are not reported.
    left_out: Vec<OwnFile>,
    mount_points: MountPoints,
    unread: Unread,
    /// Part of the tree that was asked for, if not all.
    shard: Option<Shard>,
}

/// One path of the tree, in path order.
#[derive(Clone, Copy)]
pub(crate) enum PathItem<'a> {
    Entry(EntryId),
    Unlisted(&'a Unlisted),
}

impl Tree {
    /// Walks `root`, leaving out the files in `leave_out`.
    pub(crate) fn walk(
        root: &OsStr,
        options: &TreeOptions,
        file_stats: FileStats,
        leave_out: &[OwnFile],
        work: &Work<'_>,
    ) -> Result<Tree, Error> {
        Tree::walk_part(root, options, None, file_stats, leave_out, work)
    }

    /// Walks these paths below `root` only, and the directories on the way to them. Files are left
    /// to the reading.
    pub(crate) fn walk_only(
        root: &OsStr,
        options: &TreeOptions,
        only: ExactPaths,
        leave_out: &[OwnFile],
        work: &Work<'_>,
    ) -> Result<Tree, Error> {
        let walk = options.to_walk()?.only(Some(Arc::new(only)));
        Tree::walk_with(
            root,
            walk,
            options.symlinks,
            FileStats::Left,
            leave_out,
            work,
        )
    }

    /// Walks a part of the tree, if one is asked for. The root is an entry of every part.
    pub(crate) fn walk_part(
        root: &OsStr,
        options: &TreeOptions,
        shard: Option<Shard>,
        file_stats: FileStats,
        leave_out: &[OwnFile],
        work: &Work<'_>,
    ) -> Result<Tree, Error> {
        let walk = options.to_walk()?.shard(shard);
        Tree::walk_with(root, walk, options.symlinks, file_stats, leave_out, work)
    }

    fn walk_with(
        root: &OsStr,
        mut walk: WalkOptions,
        symlinks: Symlinks,
        file_stats: FileStats,
        leave_out: &[OwnFile],
        work: &Work<'_>,
    ) -> Result<Tree, Error> {
        walk.file_stats = file_stats;
        walk.leave_out = leave_out.to_vec();
        walk.skipped = work.observer.map_or_else(Default::default, |o| o.skipped);
        let listing = bc_walk::walk(&[root.to_owned()], &walk, work.walk_workers, work.cancel)?;
        if work.cancel.is_cancelled() {
            return Err(Error::cancelled());
        }
        if let (true, [error, ..]) = (listing.is_empty(), listing.errors()) {
            return Err(root_failed(error));
        }
        if let Some(observer) = work.observer {
            (observer.walked)(&listing);
        }
        let mut tree = Tree {
            listing,
            real: std::fs::canonicalize(root).ok(),
            mounts: MountTable::read(),
            symlinks,
            left_out: leave_out.to_vec(),
            mount_points: MountPoints::default(),
            unread: Unread::default(),
            shard: walk.shard,
        };
        tree.unread = tree.find_unread(root.as_bytes());
        tree.mount_points = tree.find_mount_points();
        Ok(tree)
    }

    /// True if the entry is a file or a directory that a followed link below the root leads to.
    fn is_followed(&self, id: EntryId) -> bool {
        let listing = &self.listing;
        let plain = matches!(
            listing.kind(id),
            bc_walk::FileKind::Dir | bc_walk::FileKind::File
        );
        plain && listing.follow(id) && listing.name_bytes(id) != ROOT
    }

    /// Returns the role of a link in an entry that was found to be of this kind.
    pub(crate) fn link(&self, id: EntryId, kind: Kind) -> Link {
        match (self.symlinks, kind) {
            (Symlinks::Skip, _) => Link::No,
            (Symlinks::Follow, Kind::Symlink) => Link::Broken,
            (Symlinks::Follow, _) if self.is_followed(id) => Link::Followed,
            (Symlinks::Follow, _) => Link::No,
        }
    }

    /// Finds the entry of a path.
    pub(crate) fn find(&self, path: &[u8]) -> Option<EntryId> {
        let (id, found) = self.first_from(path);
        (found == path).then_some(id)
    }

    /// Finds the entry of a path, or the first behind it where there is none.
    pub(crate) fn place_of(&self, path: &[u8]) -> Result<u32, u32> {
        let (EntryId(id), found) = self.first_from(path);
        if found == path { Ok(id) } else { Err(id) }
    }

    /// Returns entries of which more is known than `stat` returns, and those next to paths of which
    /// less is: the root, mount points, and paths that could not be read. In order.
    pub(crate) fn apart(&self) -> Vec<u32> {
        let mounts = self.mount_points.ids();
        let known = mounts.chain(self.unread.failures.keys()).map(|id| id.0);
        let root = self.root().map(|_| 0);
        // Paths behind the last one come with it.
        let last = (self.listing.len() as u32).saturating_sub(1);
        let unlisted = self
            .unread
            .unlisted
            .iter()
            .map(|entry| entry.before.min(last));
        let mut all: Vec<u32> = known.chain(root).chain(unlisted).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Returns the first entry that does not come before `path`, and its path, which is empty
    /// behind the last one.
    fn first_from(&self, path: &[u8]) -> (EntryId, Vec<u8>) {
        let mut at = Vec::new();
        let id = partition_point(self.listing.len(), |id| {
            at.clear();
            self.listing.write_relative(id, &mut at);
            path_order(&at, path).is_lt()
        });
        at.clear();
        if (id as usize) < self.listing.len() {
            self.listing.write_relative(EntryId(id), &mut at);
        }
        (EntryId(id), at)
    }

    /// Returns the paths of a range of entries, unlisted ones before each included; those behind
    /// the last entry of all come with the range that ends there.
    pub(crate) fn items_of(
        &self,
        range: std::ops::Range<u32>,
    ) -> impl Iterator<Item = PathItem<'_>> {
        let all = &self.unread.unlisted;
        let from = all.partition_point(|unlisted| unlisted.before < range.start);
        let end = range.end;
        let is_last = end as usize == self.listing.len();
        let mut unlisted = all[from..].iter().peekable();
        let mut ids = range.peekable();
        std::iter::from_fn(move || {
            let next = ids.peek().copied();
            let due = |unlisted: &&Unlisted| match next {
                Some(id) => unlisted.before <= id,
                None => is_last,
            };
            match unlisted.next_if(due) {
                Some(unlisted) => Some(PathItem::Unlisted(unlisted)),
                None => ids.next().map(|id| PathItem::Entry(EntryId(id))),
            }
        })
    }

    /// Returns the fields of an entry that the walk knows; `stat` is the newer one of the
    /// descriptor that was read, if it differs.
    pub(crate) fn view(&self, id: EntryId, stat: Option<&FileStat>) -> EntryRef<'_> {
        let walked;
        let stat = match stat {
            Some(stat) => stat,
            None => match self.listing.stat(id) {
                Some(stat) => {
                    walked = stat;
                    &walked
                }
                None => return EntryRef::new(kind_of(self.listing.kind(id))),
            },
        };
        let mut view = EntryRef {
            error: self.unread.failures.get(&id),
            ..EntryRef::from(stat)
        };
        if view.kind == Kind::Dir && self.listing.name_bytes(id) == ROOT {
            view.dev = Some(stat.id.dev);
        }
        view
    }

    /// True if the file at a path that is not in the listing is one of those left out, such as an
    /// output.
    pub(crate) fn is_left_out(&self, path: &[u8]) -> bool {
        // Nearly always there is none.
        if self.listing.skipped().left_out == 0 {
            return false;
        }
        let is_own = |path: &Path| self.left_out.iter().any(|own| own.is_at(path));
        let real = self.real.as_ref();
        real.is_some_and(|real| is_own(&real.join(OsStr::from_bytes(path))))
    }

    /// Returns the root's own stat, if the root is a directory.
    pub(crate) fn root(&self) -> Option<FileStat> {
        let first = EntryId(0);
        let is_root = !self.listing.is_empty() && self.listing.name_bytes(first) == ROOT;
        if is_root {
            self.listing.stat(first)
        } else {
            None
        }
    }

    /// True if the root is a directory. Where only files are listed, it is not listed itself.
    pub(crate) fn is_directory(&self) -> bool {
        self.root().is_some() || self.real.as_ref().is_some_and(|real| real.is_dir())
    }

    /// Returns the device that the root is on, be it listed or not.
    pub(crate) fn root_dev(&self) -> Option<u64> {
        use std::os::unix::fs::MetadataExt;
        let listed = self.root().map(|stat| stat.id.dev);
        let real = self.real.as_deref();
        listed.or_else(|| real.and_then(|real| Some(real.metadata().ok()?.dev())))
    }

    /// True if there is nothing but the root itself.
    pub(crate) fn is_empty(&self) -> bool {
        let entries = self.listing.len() - usize::from(self.root().is_some());
        entries == 0 && self.unread.is_empty()
    }
}

/// Returns the first id below `len` for which `before` is false.
fn partition_point(len: usize, mut before: impl FnMut(EntryId) -> bool) -> u32 {
    let (mut low, mut high) = (0, len as u32);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(EntryId(middle)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// Makes the error of a root that cannot be walked.
fn root_failed(error: &bc_walk::Error) -> Error {
    let text = format!("{}: {}", error.op(), error.message());
    let failed = Error::at(ErrorKind::Refused, &path_of(error.path()), text);
    match error.errno() {
        Some(errno) => failed.of_system(error.op(), Some(errno)),
        None => failed,
    }
}
