//! Entries of the tree with all wanted fields: the walk's stat, the digest, the link's target,
//! extended attributes.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use bc_hash::{HashOutcome, HashedWindow};
use bc_manifest::Failure;
use bc_manifest::integrity::{Kind, Mounted, Xattrs};
use bc_pool::{Cancel, Workers};
use bc_walk::job::Error;
use bc_walk::{
    DirFdCache, DirId, EntryId, ErrorKind as WalkErrorKind, FileStat, Identity, Listing,
};
use rustix::fs::AtFlags;
use rustix::io::Errno;

use crate::entry_ref::EntryRef;
use crate::options::{Work, XattrPolicy};
use crate::tree::attributes;
use crate::tree::{Link, PathItem, Tree, failure};
use std::ops::ControlFlow;

/// One entry of the tree.
pub(crate) struct LoadedEntry<'a> {
    pub(crate) path: &'a [u8],
    pub(crate) view: EntryRef<'a>,
    /// `None` for a path that the walk could not even call `stat` for.
    pub(crate) id: Option<EntryId>,
    /// File system that is mounted on it.
    pub(crate) mount: Option<&'a Mounted>,
    /// True for the directory that the manifest is in.
    pub(crate) holds_manifest: bool,
    /// Role as a link that was to be followed, or as the target of one.
    pub(crate) link: Link,
}

impl<'a> LoadedEntry<'a> {
    /// Returns an entry that no walk has listed: its path could not be looked at, or it is of a
    /// manifest.
    pub(crate) fn unlisted(path: &'a [u8], view: EntryRef<'a>) -> LoadedEntry<'a> {
        LoadedEntry {
            path,
            view,
            id: None,
            mount: None,
            holds_manifest: false,
            link: Link::No,
        }
    }

    /// Returns the fields to compare: writing the manifest changed its directory, which is no
    /// difference.
    pub(crate) fn compared(&self) -> EntryRef<'a> {
        if self.holds_manifest {
            return EntryRef {
                mtime_ns: None,
                ctime_ns: None,
                size: None,
                ..self.view
            };
        }
        self.view
    }
}

/// Loads the entries of a tree in path order, with the fields that the walk left open.
pub(crate) struct EntryLoader<'a> {
    pub(crate) tree: &'a Tree,
    xattrs: XattrPolicy,
    /// The directory with the manifest: writing the manifest changed it.
    touched: Option<Identity>,
    dirs: DirFdCache<'a>,
    cancel: &'a Cancel,
    path: Vec<u8>,
    /// The directory that the path is in, and the length of that part of the path.
    prefix: Option<(DirId, usize)>,
    /// Threads that may read attributes.
    workers: Workers,
    /// The attributes of the present range, if they are asked for.
    attributes: std::vec::IntoIter<Result<Xattrs, bc_walk::Error>>,
}

impl<'a> EntryLoader<'a> {
    pub(crate) fn new(
        tree: &'a Tree,
        xattrs: XattrPolicy,
        touched: Option<Identity>,
        work: &Work<'a>,
    ) -> EntryLoader<'a> {
        EntryLoader {
            tree,
            xattrs,
            touched,
            dirs: DirFdCache::new(&tree.listing),
            cancel: work.cancel,
            path: Vec::new(),
            prefix: None,
            workers: work.walk_workers,
            attributes: Vec::new().into_iter(),
        }
    }

    /// Returns the policy for extended attributes.
    pub(crate) fn xattrs(&self) -> XattrPolicy {
        self.xattrs
    }

    /// Passes each entry of `range` to `see`, none of them read.
    pub(crate) fn all_of(
        &mut self,
        range: Range<u32>,
        cancel: &Cancel,
        mut see: impl FnMut(&LoadedEntry<'_>) -> Result<ControlFlow<()>, Error>,
    ) -> Result<ControlFlow<()>, Error> {
        /// Entries between two checks for a cancellation.
        const STEP: u32 = 8192;
        let end = range.end;
        for start in range.step_by(STEP as usize) {
            if cancel.is_cancelled() {
                return Err(Error::cancelled());
            }
            if self
                .each(start..end.min(start + STEP), None, &mut see)?
                .is_break()
            {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Passes each entry of `range` to `see`, with the digests that `window` has of it.
    pub(crate) fn each(
        &mut self,
        range: Range<u32>,
        window: Option<&HashedWindow>,
        mut see: impl FnMut(&LoadedEntry<'_>) -> Result<ControlFlow<()>, Error>,
    ) -> Result<ControlFlow<()>, Error> {
        let tree = self.tree;
        if self.xattrs == XattrPolicy::Record {
            self.attributes =
                attributes::read(&tree.listing, &range, self.workers, self.cancel)?.into_iter();
        }
        for item in tree.items_of(range) {
            let mut path = std::mem::take(&mut self.path);
            self.write_path(item, &mut path);
            let flow = match item {
                PathItem::Unlisted(unlisted) => {
                    let view = EntryRef {
                        error: Some(&unlisted.failure),
                        ..EntryRef::new(Kind::File)
                    };
                    see(&LoadedEntry::unlisted(&path, view))
                }
                PathItem::Entry(id) => self.entry(id, &path, window, &mut see),
            };
            self.path = path;
            if flow?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Replaces `path` by the path of an item. Neighbours are mostly in the
    /// same directory: then only the name is written.
    fn write_path(&mut self, item: PathItem<'_>, path: &mut Vec<u8>) {
        match item {
            PathItem::Unlisted(unlisted) => {
                path.clear();
                path.extend_from_slice(&unlisted.path);
                self.prefix = None;
            }
            PathItem::Entry(id) => {
                let listing = &self.tree.listing;
                let (dir, name) = (listing.dir(id), listing.name_bytes(id));
                match self.prefix {
                    Some((same, len)) if same == dir => {
                        path.truncate(len);
                        path.extend_from_slice(name);
                    }
                    _ => {
                        path.clear();
                        listing.write_relative(id, path);
                        self.prefix = Some((dir, path.len() - name.len()));
                    }
                }
            }
        }
    }

    fn entry(
        &mut self,
        id: EntryId,
        path: &[u8],
        window: Option<&HashedWindow>,
        see: &mut impl FnMut(&LoadedEntry<'_>) -> Result<ControlFlow<()>, Error>,
    ) -> Result<ControlFlow<()>, Error> {
        let tree = self.tree;
        let outcome = window.map_or(HashOutcome::NotRead, |window| window.outcome(id));
        let mut unseen = None;
        let looked;
        let stat = match outcome {
            HashOutcome::Digest(_, stat) => stat,
            // It was left to the reading, which failed.
            _ if window.is_some() && tree.listing.meta(id).is_none() => match self.stat(id) {
                Ok(stat) => {
                    looked = stat;
                    Some(&looked)
                }
                Err(error) => {
                    unseen = Some(failure(&error));
                    None
                }
            },
            _ => None,
        };
        let mut view = tree.view(id, stat);
        let failed: Failure;
        let target;
        let xattrs;
        match outcome {
            HashOutcome::Digest(digest, _) => view.digest = Some(digest),
            HashOutcome::Failed(error) => {
                failed = unseen.unwrap_or_else(|| failure(error));
                view.error = Some(&failed);
            }
            HashOutcome::NotRead if view.kind == Kind::Symlink => match self.target(id) {
                Ok(found) => {
                    target = found;
                    view.target = Some(&target);
                }
                Err(error) => {
                    failed = failure(&error);
                    view.error = Some(&failed);
                }
            },
            HashOutcome::NotRead => {}
        }
        let holds_manifest = view.kind == Kind::Dir
            && self.touched.is_some()
            && self.touched == tree.listing.meta(id).map(|meta| meta.id);
        let attributes_failed;
        match self.attributes.next() {
            Some(Ok(found)) => {
                xattrs = found;
                view.xattrs = Some(&xattrs);
            }
            Some(Err(error)) if view.error.is_none() => {
                attributes_failed = failure(&error);
                view.error = Some(&attributes_failed);
            }
            Some(Err(_)) | None => {}
        }
        see(&LoadedEntry {
            path,
            view,
            id: Some(id),
            mount: tree.mount_of(id, &view),
            holds_manifest,
            link: tree.link(id, view.kind),
        })
    }

    fn in_dir(&mut self, id: EntryId) -> Result<Rc<OwnedFd>, bc_walk::Error> {
        self.dirs
            .open_waiting(self.tree.listing.dir(id), self.cancel)
    }

    /// Returns the metadata of a file without opening it.
    fn stat(&mut self, id: EntryId) -> Result<FileStat, bc_walk::Error> {
        let listing = &self.tree.listing;
        let flags = if listing.follow(id) {
            AtFlags::empty()
        } else {
            AtFlags::SYMLINK_NOFOLLOW
        };
        let dir = self.in_dir(id)?;
        let stat = rustix::fs::statat(dir, listing.name(id), flags)
            .map_err(|errno| system(listing, id, "stat", errno))?;
        let stat = FileStat::from(&stat);
        if stat.kind() != listing.kind(id) {
            let path = listing.path(id);
            return Err(bc_walk::Error::of_kind(
                path,
                "stat",
                WalkErrorKind::Changed,
            ));
        }
        Ok(stat)
    }

    fn target(&mut self, id: EntryId) -> Result<Vec<u8>, bc_walk::Error> {
        let listing = &self.tree.listing;
        let dir = self.in_dir(id)?;
        let target = rustix::fs::readlinkat(dir, listing.name(id), Vec::new());
        target
            .map(|target| target.into_bytes())
            .map_err(|errno| system(listing, id, "readlink", errno))
    }
}

fn system(listing: &Listing, id: EntryId, op: &'static str, errno: Errno) -> bc_walk::Error {
    bc_walk::Error::new(listing.path(id), op, errno)
}
