//! Extended attributes, which take three calls an entry and more: those of a range of entries are
//! read by several threads, like everything else.

use std::collections::BTreeMap;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use bc_fs::dirfd::own_path;
use bc_manifest::integrity::Xattrs;
use bc_pool::{Cursor, WorkerPanic};
use bc_walk::{DirFdCache, DirId, EntryId, Error, FileKind, Listing};
use rustix::io::Errno;

/// The kernel's limits for one value and for the list of names, from
/// `linux/limits.h`.
const XATTR_MAX: usize = 64 << 10;

/// Operation reported where an entry's attributes could not be read.
pub(crate) const OPERATION: &str = "getxattr";

/// Entries a thread takes at once: neighbours share a directory.
const STEP: usize = 64;

/// Reads the attributes of all entries of `range`, in order.
pub(crate) fn read(
    listing: &Listing,
    range: &Range<u32>,
    workers: usize,
) -> Result<Vec<Result<Xattrs, Error>>, WorkerPanic> {
    let workers = workers.min(range.len().div_ceil(STEP));
    let cursor = Cursor::with_batch(range.len(), workers, STEP, STEP);
    let found = bc_pool::run(workers, |_| {
        let mut reader = AttributeReader::new(listing);
        let mut found = Vec::new();
        while let Some(batch) = cursor.next() {
            let ids = batch.clone().map(|at| EntryId(range.start + at as u32));
            let read: Vec<_> = ids.map(|id| reader.attributes(id)).collect();
            found.push((batch.start, read));
        }
        found
    })?;
    let mut all: Vec<_> = found.into_iter().flatten().collect();
    all.sort_unstable_by_key(|(start, _)| *start);
    Ok(all.into_iter().flat_map(|(_, found)| found).collect())
}

/// State of one thread.
struct AttributeReader<'a> {
    listing: &'a Listing,
    dirs: DirFdCache<'a>,
    dir: Option<(DirId, Rc<OwnedFd>)>,
    /// Path of the directory, through `/proc/self/fd`.
    path: Vec<u8>,
    value: Vec<u8>,
}

impl<'a> AttributeReader<'a> {
    fn new(listing: &'a Listing) -> AttributeReader<'a> {
        AttributeReader {
            listing,
            dirs: DirFdCache::new(listing),
            dir: None,
            path: Vec::new(),
            value: vec![0; XATTR_MAX],
        }
    }

    /// Returns all extended attributes that may be seen, ACLs and capabilities among them. Nothing
    /// is opened, since special files may not be: the calls go through `/proc/self/fd`.
    fn attributes(&mut self, id: EntryId) -> Result<Xattrs, Error> {
        let listing = self.listing;
        let dir = listing.dir(id);
        if self.dir.as_ref().is_none_or(|(open, _)| *open != dir) {
            let fd = self.dirs.open_waiting(dir)?;
            self.path = (own_path(&fd) + "/").into_bytes();
            self.dir = Some((dir, fd));
        }
        let len = self.path.len();
        self.path.extend_from_slice(listing.name(id).to_bytes());
        let path = &self.path[..];
        let found = if listing.follow(id) {
            collect(
                &mut self.value,
                |list| rustix::fs::listxattr(path, list),
                |name, value| rustix::fs::getxattr(path, name, value),
            )
        } else {
            collect(
                &mut self.value,
                |list| rustix::fs::llistxattr(path, list),
                |name, value| rustix::fs::lgetxattr(path, name, value),
            )
        };
        self.path.truncate(len);
        let found = match found {
            // Without /proc only regular files can be read.
            Err(Errno::NOENT) if listing.kind(id) == FileKind::File => self.of_file(id)?,
            found => found,
        };
        found.map_err(|errno| Error::new(listing.path(id), OPERATION, errno))
    }

    fn of_file(&mut self, id: EntryId) -> Result<Result<Xattrs, Errno>, Error> {
        let (file, _) = bc_read::open_checked(self.listing, id)?;
        Ok(collect(
            &mut self.value,
            |list| rustix::fs::flistxattr(&file, list),
            |name, value| rustix::fs::fgetxattr(&file, name, value),
        ))
    }
}

fn collect(
    value: &mut [u8],
    list: impl Fn(&mut [u8]) -> Result<usize, Errno>,
    get: impl Fn(&[u8], &mut [u8]) -> Result<usize, Errno>,
) -> Result<Xattrs, Errno> {
    let count = match list(value) {
        // A file system without them has none.
        Err(Errno::NOTSUP) => 0,
        other => other?,
    };
    let mut all = BTreeMap::new();
    if count == 0 {
        return Ok(all);
    }
    let names = value[..count].to_vec();
    for name in names
        .split(|&byte| byte == 0)
        .filter(|name| !name.is_empty())
    {
        match get(name, value) {
            Ok(len) => drop(all.insert(name.to_vec(), value[..len].to_vec())),
            // Removed meanwhile, or listed but not for us to see (trusted.*).
            Err(Errno::NODATA | Errno::NOTSUP) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(all)
}
