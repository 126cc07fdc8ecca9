//! Descriptors of a listing's directories, kept for those that come next.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use bc_fs::dirfd::OpenDirs;
use bc_fs::dirfd::{PLACE, open_through};
use bc_fs::shortage::is_shortage;
use bc_pool::Cancel;
use rustix::fs::CWD;
use rustix::io::Errno;

use crate::open::{AncestorFds, STRIDE};
use crate::{DirId, Error, Listing};

/// Directories that are kept. In path order a file's directory is the last one or an ancestor of
/// it, so this is the depth below which coming back up from a subdirectory costs no second lookup.
const KEPT: usize = 12;

/// Opens directories of a listing, one after the other, as [`Listing::open_dir`] does, and keeps
/// those that were used last: some twenty descriptors, fewer where the process has no more.
///
/// Each is opened from the nearest directory above it that is kept, and where that is far away
/// some of those on the way are kept as well. So all directories of a tree are opened with a
/// number of lookups that grows with the tree, however deep it is, if they come in path order or
/// close to it.
///
/// ```
/// use bc_pool::Cancel;
/// use bc_walk::{DirFdCache, walk};
///
/// let listing = walk(&["."], &Default::default(), 1, &Cancel::new())?;
/// let mut dirs = DirFdCache::new(&listing);
/// for entry in listing.ids() {
///     let dir = dirs.open(listing.dir(entry)).unwrap();
///     rustix::fs::statat(&dir, listing.name(entry), rustix::fs::AtFlags::empty()).unwrap();
/// }
/// # Ok::<(), bc_pool::WorkerPanic>(())
/// ```
pub struct DirFdCache<'a> {
    listing: &'a Listing,
    kept: OpenDirs<DirId, Rc<OwnedFd>>,
    /// Directories that the listing's paths begin with and does not hold open.
    prefixes: AncestorFds<Rc<OwnedFd>>,
    /// Directories from the wanted one up to the nearest kept one: empty between calls.
    way: Vec<DirId>,
    path: Vec<u8>,
}

impl<'a> DirFdCache<'a> {
    /// Keeps nothing yet.
    pub fn new(listing: &'a Listing) -> DirFdCache<'a> {
        DirFdCache {
            listing,
            kept: OpenDirs::new(KEPT),
            prefixes: AncestorFds::default(),
            way: Vec::new(),
            path: Vec::new(),
        }
    }

    /// Returns the directory as a place to open its entries from, kept from before or opened.
    ///
    /// # Errors
    /// Errors of [`Listing::open_dir`].
    ///
    /// # Panics
    /// If the id is not from this listing.
    pub fn open(&mut self, dir: DirId) -> Result<Rc<OwnedFd>, Error> {
        if let Some(fd) = self.find(dir) {
            return Ok(fd);
        }
        if !self.listing.opener.shortage.is_short() {
            match self.open_new(dir) {
                // Kept descriptors are no reason to fail for want of one.
                Err(error) if is_shortage(&error) => {}
                opened => return opened,
            }
        }
        self.give_way();
        let opened = self.listing.open_dir(dir)?;
        Ok(self.keep(dir, None, opened))
    }

    /// Opens as [`open`](Self::open) does, but waits for a second where the process has no
    /// descriptor left, unless `cancel` ends that: other caches of this listing give way.
    ///
    /// # Errors
    /// Errors of [`open`](Self::open).
    ///
    /// # Panics
    /// If the id is not from this listing.
    pub fn open_waiting(&mut self, dir: DirId, cancel: &Cancel) -> Result<Rc<OwnedFd>, Error> {
        let mut wait = self.listing.opener.shortage.wait(1);
        loop {
            let opened = self.open(dir);
            // Kept descriptors were given up when it failed.
            if !wait.again(&opened, || cancel.is_cancelled(), || ()) {
                return opened;
            }
        }
    }

    /// Closes the kept descriptors that have no other user, because descriptors are short; returns
    /// whether there were any. From now on all caches of this listing keep one directory each.
    pub fn give_way(&mut self) -> bool {
        self.listing.opener.shortage.note();
        let any = self.kept.clear();
        self.prefixes.clear() || any
    }

    fn find(&mut self, dir: DirId) -> Option<Rc<OwnedFd>> {
        self.kept.find(|kept| *kept == dir).map(Rc::clone)
    }

    fn open_new(&mut self, dir: DirId) -> Result<Rc<OwnedFd>, Error> {
        self.way.clear();
        let mut at = dir;
        let mut from = loop {
            if let Some(fd) = self.find(at) {
                break From::Kept(at, fd);
            }
            match self.listing.parent(at) {
                Some(parent) => {
                    self.way.push(at);
                    at = parent;
                }
                None => break self.prefix(at)?,
            }
        };
        while !self.way.is_empty() {
            from = self.descend(from)?;
        }
        match from {
            From::Kept(_, fd) => Ok(fd),
            From::Prefix(prefix) => {
                let opened = self.listing.open_below(prefix, b"");
                Ok(self.keep(dir, None, self.named(dir, opened)?))
            }
        }
    }

    /// Opens the wanted directory, or if it is far below `from` one half the way.
    fn descend(&mut self, from: From<'a>) -> Result<From<'a>, Error> {
        let left = self.way.len();
        let next = if left > STRIDE { left / 2 } else { 0 };
        self.path.clear();
        for dir in self.way[next..].iter().rev() {
            if !self.path.is_empty() {
                self.path.push(b'/');
            }
            self.path.extend_from_slice(self.listing.dir_name(*dir));
        }
        let (above, fd) = match &from {
            From::Kept(dir, fd) => (Some(*dir), fd.as_fd()),
            From::Prefix(fd) => (None, *fd),
        };
        let opened = self.listing.open_below(fd, &self.path);
        let opened = self.named(self.way[0], opened)?;
        let dir = self.way[next];
        self.way.truncate(next);
        Ok(From::Kept(dir, self.keep(dir, above, opened)))
    }

    /// Returns the directory that the paths of a prefix begin at, which `dir` is.
    fn prefix(&mut self, dir: DirId) -> Result<From<'a>, Error> {
        let prefix = self.listing.prefix(dir.0);
        if let Some(fd) = &prefix.fd {
            return Ok(From::Prefix(fd.as_fd()));
        }
        let opened = self.prefixes.open(&prefix.path, |from, path, _| {
            let from = from.map_or(CWD, |from| from.as_fd());
            open_through(from, path, PLACE)
        });
        let opened = self.named(dir, opened)?;
        self.listing.check_prefix(dir, &opened)?;
        self.prefixes.push(&prefix.path, &opened);
        Ok(From::Kept(dir, self.keep(dir, None, opened)))
    }

    /// Reports the error of a directory on the way as that of the wanted one.
    fn named<T>(&self, dir: DirId, opened: Result<T, Errno>) -> Result<T, Error> {
        opened.map_err(|errno| Error::new(self.listing.dir_path(dir), "open", errno))
    }

    fn keep(
        &mut self,
        dir: DirId,
        above: Option<DirId>,
        fd: impl Into<Rc<OwnedFd>>,
    ) -> Rc<OwnedFd> {
        let fd = fd.into();
        self.kept.keep(dir, above, Rc::clone(&fd));
        fd
    }
}

/// Directory from which the next one is opened.
enum From<'a> {
    Kept(DirId, Rc<OwnedFd>),
    /// Held open by the listing.
    Prefix(BorrowedFd<'a>),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Entries, FileStat, Metadata, Symlinks, WalkOptions, list_files, walk};
    use std::fs;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::os::unix::fs::symlink;

    fn identity(fd: &OwnedFd) -> crate::Identity {
        FileStat::from(&rustix::fs::fstat(fd).unwrap()).id
    }

    fn listing(root: &std::path::Path, symlinks: Symlinks) -> Listing {
        let options = WalkOptions {
            entries: Entries::All,
            metadata: Metadata::Basic,
            symlinks,
            ..WalkOptions::default()
        };
        walk(&[root], &options, 1, &Cancel::new()).unwrap()
    }

    /// Makes a chain with branches at each level.
    fn tree() -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        let mut at = tree.path().to_owned();
        for level in 0..200 {
            fs::create_dir_all(at.join("a/b")).unwrap();
            fs::create_dir(at.join(format!("z{level}"))).unwrap();
            at.push("d");
            fs::create_dir(&at).unwrap();
        }
        symlink("a/b", tree.path().join("link")).unwrap();
        tree
    }

    #[test]
    fn in_any_order_they_are_the_directories_that_were_walked() {
        let tree = tree();
        for symlinks in [Symlinks::Skip, Symlinks::Follow] {
            let listing = listing(tree.path(), symlinks);
            let all: Vec<DirId> = (0..listing.dirs() as u32).map(DirId).collect();
            assert!(all.len() > 800);
            let mut dirs = DirFdCache::new(&listing);
            let mut check = |dir: &DirId| {
                let fd = dirs.open(*dir).unwrap();
                assert_eq!(Some(identity(&fd)), listing.dir_identity(*dir));
                assert!(dirs.kept.keys().count() <= KEPT);
                assert!(Rc::ptr_eq(&fd, &dirs.open(*dir).unwrap()));
            };
            all.iter().for_each(&mut check);
            all.iter().rev().for_each(&mut check);
            let mixed = |at: usize| &all[at * 7919 % all.len()];
            (0..all.len()).map(mixed).for_each(&mut check);
            assert!(dirs.give_way() && !dirs.give_way());
            // Descriptors are short for all.
            let mut others = DirFdCache::new(&listing);
            for dir in &all[all.len() - 50..] {
                for dirs in [&mut dirs, &mut others] {
                    let fd = dirs.open_waiting(*dir, &Cancel::new()).unwrap();
                    assert_eq!(Some(identity(&fd)), listing.dir_identity(*dir));
                    assert_eq!(dirs.kept.keys().count(), 1);
                }
            }
        }
    }

    #[test]
    fn those_above_the_one_in_use_are_closed_last() {
        let tree = tree();
        let listing = listing(tree.path(), Symlinks::Skip);
        let mut dirs = DirFdCache::new(&listing);
        let depth =
            |dir: DirId| std::iter::successors(Some(dir), |dir| listing.parent(*dir)).count();
        let all = || (0..listing.dirs() as u32).map(DirId);
        let deepest = all().max_by_key(|dir| depth(*dir)).unwrap();
        dirs.open(deepest).unwrap();
        let stops: Vec<DirId> = dirs.kept.keys().copied().collect();
        assert!((3..KEPT).contains(&stops.len()), "{}", stops.len());
        // Up again, each directory closes an older one, but none above itself.
        let mut at = deepest;
        for _ in 0..STRIDE / 2 {
            at = listing.parent(at).unwrap();
            dirs.open(at).unwrap();
            let is_above = |dir: &&DirId| depth(**dir) < depth(at);
            let above = stops.iter().filter(is_above);
            let is_kept = |dir: &DirId| dirs.kept.keys().any(|kept| kept == dir);
            assert!(above.clone().count() > 1 && above.clone().all(is_kept));
        }
    }

    #[test]
    fn a_link_that_was_put_on_the_way_is_refused() {
        let tree = tempfile::tempdir().unwrap();
        for dir in ["a/b/c/d", "other/c/d"] {
            fs::create_dir_all(tree.path().join(dir)).unwrap();
        }
        let listing = listing(tree.path(), Symlinks::Skip);
        let named = |name: &str| {
            let all = (0..listing.dirs() as u32).map(DirId);
            let path = tree.path().join(name).into_os_string().into_vec();
            let mut found = all.filter(|dir| listing.dir_path(*dir) == path);
            found.next().unwrap()
        };
        let mut dirs = DirFdCache::new(&listing);
        dirs.open(named("a")).unwrap();
        fs::rename(tree.path().join("a/b"), tree.path().join("moved")).unwrap();
        symlink("../other", tree.path().join("a/b")).unwrap();
        for below in ["a/b", "a/b/c", "a/b/c/d"] {
            let error = dirs.open(named(below)).unwrap_err();
            let refused = [Errno::LOOP, Errno::NOTDIR].map(|errno| Some(errno.raw_os_error()));
            assert!(refused.contains(&error.errno()), "{below}: {error}");
            let path = tree.path().join(below);
            assert_eq!(error.path(), path.as_os_str().as_bytes());
        }
        // A cache that held it before resumes in the directory that was walked.
        dirs.open(named("other/c")).unwrap();
    }

    #[test]
    fn files_that_are_named_have_directories_too() {
        let tree = tree();
        let chain = |depth: usize| tree.path().join("d/".repeat(depth));
        let mut paths = Vec::new();
        for depth in (0..200).rev() {
            fs::write(chain(depth).join("f"), "").unwrap();
            let odd = chain(depth).join("a//b/../../f");
            paths.push(odd.into_os_string().into_vec());
        }
        let listing = list_files(&paths, &WalkOptions::default(), 1, &Cancel::new()).unwrap();
        assert_eq!(listing.len(), 200);
        let mut dirs = DirFdCache::new(&listing);
        for entry in listing.ids() {
            let dir = listing.dir(entry);
            let fd = dirs.open(dir).unwrap();
            assert_eq!(identity(&fd), identity(&listing.open_dir(dir).unwrap()));
        }
    }
}
