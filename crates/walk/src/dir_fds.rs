//! Descriptors of a listing's directories, kept for those that come next.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use rustix::fs::CWD;
use rustix::io::Errno;

use crate::fd::{PATH_DIR, open_following_from};
use crate::spine::{STRIDE, Spine};
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
/// let listing = walk(&[".".into()], &Default::default(), 1, &Cancel::new())?;
/// let mut dirs = DirFdCache::new(&listing);
/// for entry in listing.ids() {
///     let dir = dirs.open(listing.dir(entry)).unwrap();
///     rustix::fs::statat(&dir, listing.name(entry), rustix::fs::AtFlags::empty()).unwrap();
/// }
/// # Ok::<(), bc_pool::WorkerPanic>(())
/// ```
pub struct DirFdCache<'a> {
    listing: &'a Listing,
    /// Most recently used last. Who is used comes after those that it was opened from.
    kept: Vec<Kept>,
    /// Directories that the listing's paths begin with and does not hold open.
    bases: Spine<Rc<OwnedFd>>,
    /// From the wanted directory up to the nearest kept one: empty between calls.
    way: Vec<DirId>,
    path: Vec<u8>,
}

struct Kept {
    dir: DirId,
    /// What it was opened from.
    above: Option<DirId>,
    fd: Rc<OwnedFd>,
}

impl<'a> DirFdCache<'a> {
    /// Keeps nothing yet.
    pub fn new(listing: &'a Listing) -> DirFdCache<'a> {
        DirFdCache {
            listing,
            kept: Vec::with_capacity(KEPT),
            bases: Spine::default(),
            way: Vec::new(),
            path: Vec::new(),
        }
    }

    /// The directory as a place to open its entries from, kept from before or opened.
    ///
    /// # Errors
    /// Those of [`Listing::open_dir`].
    ///
    /// # Panics
    /// If the id is not from this listing.
    pub fn open(&mut self, dir: DirId) -> Result<Rc<OwnedFd>, Error> {
        if let Some(fd) = self.find(dir) {
            return Ok(fd);
        }
        match self.open_new(dir) {
            // Kept descriptors are no reason to fail for want of one.
            Err(error) if is_short(&error) && self.clear() => {
                let opened = self.listing.open_dir(dir)?;
                Ok(self.keep(dir, None, opened))
            }
            opened => opened,
        }
    }

    /// Closes what is kept, as far as nobody else has it; returns whether anything was.
    pub fn clear(&mut self) -> bool {
        let any = !self.kept.is_empty();
        self.kept.clear();
        self.bases.clear() || any
    }

    /// Finds a directory that is kept, and makes it and those above it the last to be closed.
    fn find(&mut self, dir: DirId) -> Option<Rc<OwnedFd>> {
        let mut wanted = dir;
        let mut end = self.kept.len();
        while let Some(at) = self.kept[..end].iter().rposition(|kept| kept.dir == wanted) {
            self.kept[at..end].rotate_left(1);
            end -= 1;
            match self.kept[end].above {
                // All is in order already, and has been since it was put there.
                _ if at == end && end + 1 == self.kept.len() => break,
                Some(above) => wanted = above,
                None => break,
            }
        }
        let last = self.kept.last().filter(|kept| kept.dir == dir)?;
        Some(Rc::clone(&last.fd))
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
                None => break self.base(at)?,
            }
        };
        while !self.way.is_empty() {
            from = self.descend(from)?;
        }
        match from {
            From::Kept(_, fd) => Ok(fd),
            From::Base(base) => {
                let opened = self.listing.open_below(base, b"");
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
            From::Base(fd) => (None, *fd),
        };
        let opened = self.listing.open_below(fd, &self.path);
        let opened = self.named(self.way[0], opened)?;
        let dir = self.way[next];
        self.way.truncate(next);
        Ok(From::Kept(dir, self.keep(dir, above, opened)))
    }

    /// Where the paths of a base begin, which `dir` is.
    fn base(&mut self, dir: DirId) -> Result<From<'a>, Error> {
        let base = self.listing.base(dir.0);
        if let Some(fd) = &base.fd {
            return Ok(From::Base(fd.as_fd()));
        }
        let opened = self.bases.open(&base.path, |from, path, _| {
            let from = from.map_or(CWD, |from| from.as_fd());
            open_following_from(from, path, PATH_DIR)
        });
        let opened = self.named(dir, opened)?;
        self.listing.check_base(dir, &opened)?;
        self.bases.push(&base.path, &opened);
        Ok(From::Kept(dir, self.keep(dir, None, opened)))
    }

    /// The error of a directory on the way is that of the one that is wanted.
    fn named<T>(&self, dir: DirId, opened: Result<T, Errno>) -> Result<T, Error> {
        opened.map_err(|errno| Error::new(self.listing.dir_path(dir), "open", errno))
    }

    fn keep(
        &mut self,
        dir: DirId,
        above: Option<DirId>,
        fd: impl Into<Rc<OwnedFd>>,
    ) -> Rc<OwnedFd> {
        if self.kept.len() == KEPT {
            self.kept.remove(0);
        }
        let fd = fd.into();
        self.kept.push(Kept {
            dir,
            above,
            fd: Rc::clone(&fd),
        });
        fd
    }
}

/// Where to go on from.
enum From<'a> {
    Kept(DirId, Rc<OwnedFd>),
    /// Held open by the listing.
    Base(BorrowedFd<'a>),
}

fn is_short(error: &Error) -> bool {
    let short = [Errno::MFILE, Errno::NFILE].map(Errno::raw_os_error);
    error.errno().is_some_and(|errno| short.contains(&errno))
}
