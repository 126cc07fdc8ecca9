//! Extended attributes, which take three calls an entry and more: those of a range of entries are
//! read by several threads, like everything else.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use bc_fs::dirfd::own_path;
use bc_fs::meta::{Attributed, NoFile, XattrReader};
use bc_manifest::integrity::Xattrs;
use bc_pool::{Cancel, WorkerPanic, Workers};
use bc_walk::{DirFdCache, DirId, EntryId, Error, FileKind, Listing};
use rustix::io::Errno;

/// Operation reported where an entry's attributes could not be read.
pub(crate) const OPERATION: &str = "getxattr";

/// Entries a thread takes at once: neighbours share a directory.
const STEP: usize = 64;

/// Reads the attributes of all entries of `range`, in order.
pub(crate) fn read(
    listing: &Listing,
    range: &Range<u32>,
    workers: Workers,
    cancel: &Cancel,
) -> Result<Vec<Result<Xattrs, Error>>, WorkerPanic> {
    let begin = || AttributeReader::new(listing, cancel);
    let read = |reader: &mut AttributeReader<'_>, batch: Range<usize>| -> Vec<_> {
        let ids = batch.map(|at| EntryId(range.start + at as u32));
        ids.map(|id| reader.attributes(id)).collect()
    };
    let found = bc_pool::ordered(workers, range.len(), STEP, begin, read)?;
    Ok(found.into_iter().flatten().collect())
}

/// State of one thread.
struct AttributeReader<'a> {
    listing: &'a Listing,
    cancel: &'a Cancel,
    dirs: DirFdCache<'a>,
    dir: Option<(DirId, Rc<OwnedFd>)>,
    /// Path of the directory, through `/proc/self/fd`.
    path: Vec<u8>,
    reader: XattrReader,
}

impl<'a> AttributeReader<'a> {
    fn new(listing: &'a Listing, cancel: &'a Cancel) -> AttributeReader<'a> {
        AttributeReader {
            listing,
            cancel,
            dirs: DirFdCache::new(listing),
            dir: None,
            path: Vec::new(),
            // Removed meanwhile, or listed but not for us to see (trusted.*).
            reader: XattrReader::new(&[Errno::NODATA, Errno::NOTSUP]),
        }
    }

    /// Returns all extended attributes that may be seen, ACLs and capabilities among them. Nothing
    /// is opened, since special files may not be: the calls go through `/proc/self/fd`.
    fn attributes(&mut self, id: EntryId) -> Result<Xattrs, Error> {
        let listing = self.listing;
        let dir = listing.dir(id);
        if self.dir.as_ref().is_none_or(|(open, _)| *open != dir) {
            // Not held while another one is waited for.
            self.dir = None;
            let fd = self.dirs.open_waiting(dir, self.cancel)?;
            self.path = (own_path(&fd) + "/").into_bytes();
            self.dir = Some((dir, fd));
        }
        let len = self.path.len();
        self.path.extend_from_slice(listing.name(id).to_bytes());
        let path = &self.path[..];
        let of: Attributed<'_, NoFile> = match listing.follow(id) {
            true => Attributed::Through(path),
            false => Attributed::At(path),
        };
        let found = self.reader.all(of);
        self.path.truncate(len);
        let found = match found {
            // Without /proc only regular files can be read.
            Err(failed) if failed.errno == Errno::NOENT && listing.kind(id) == FileKind::File => {
                let (file, _) = bc_read::Opener::new(listing, self.cancel).open_checked(id)?;
                self.reader.all(Attributed::Open(file))
            }
            found => found,
        };
        let found = found.map(|found| found.into_iter().collect());
        found.map_err(|failed| Error::new(listing.path(id), OPERATION, failed.errno))
    }
}
