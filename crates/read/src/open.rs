//! Opening an entry so that nothing but the regular file that was walked can
//! be read: relative to its directory's descriptor, without following or
//! waiting, and with an `fstat` to verify it.

use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bc_fs::mount::{Answer, Decompression, Inodes, Shows, Traits, basic_traits, traits_or_unknown};
use bc_pool::Cancel;
use bc_walk::{
    BasicStat, DirFdCache, DirId, EntryId, Error, ErrorKind, FileKind, FileStat, Listing,
};
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::{Errno, retry_on_intr};

/// Flags of every open of file content. `NONBLOCK`: a FIFO swapped in must not hang the run.
const FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOATIME);

/// Descriptors that opening a file takes: its directory's, and its own.
pub(crate) const NEEDED: u32 = 2;

/// Opens one listed file for reading. The file must be a regular one and, where
/// the listing has metadata, the one that was walked; it is opened relative to
/// its directory without following links and without waiting for a FIFO's
/// writer, or for a descriptor where none is left.
///
/// # Errors
/// `open` and `stat` as the system gives them; kind `NotRegular` for anything
/// but a regular file, `Changed` for another file than the walked one.
pub fn open_checked(listing: &Listing, entry: EntryId) -> Result<(OwnedFd, FileStat), Error> {
    let cancel = Cancel::new();
    let mut opener = Opener::new(listing, &cancel);
    let file = opener.open_in_dir(entry)?;
    let stat = verify(listing, entry, &file)?;
    Ok((file, stat))
}

/// Opens many entries, one after the other: keeps the last few directories, and remembers the flags
/// and calls that the system refuses.
pub struct Opener<'a> {
    listing: &'a Listing,
    cancel: &'a Cancel,
    dirs: DirFdCache<'a>,
    /// The directory used last.
    last: Option<(DirId, EntryDir)>,
    noatime: OFlags,
    cached: Lookup,
    /// Devices that wait for something else than a disk, as far as that was asked.
    known: Vec<(u64, Waits)>,
    /// The same of all workers of the run.
    shared: Option<&'a DeviceWaits>,
    /// Devices that are known not to report what of their files is resident.
    silent: Vec<u64>,
}

/// A directory that files are opened in.
#[derive(Clone)]
pub(crate) struct EntryDir {
    pub(crate) dir: Rc<OwnedFd>,
    pub(crate) waits: Waits,
}

/// Resource that opening and reading the files of a directory wait for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Waits {
    /// A disk, unless the kernel remembers what it is asked for.
    Disk,
    /// Unknown: a server, which is asked at each open, so that a known name is no measure of how
    /// long that takes, or a disk below a file system that does not report what is resident.
    Unsaid,
    /// A processor, which decompresses. The ring would hand all of it to threads of the kernel,
    /// which get no more processors than plain calls do, and want to be woken for each call.
    Processor,
    /// A processor as well, but one file at a time.
    Decompressor,
}

/// Devices that wait for something else than a disk, as the workers of a run have found them. Each of
/// those that join because others wait would ask the server twice, and read the table of mounts.
#[derive(Debug, Default)]
pub(crate) struct DeviceWaits(Mutex<Vec<(u64, Waits)>>);

impl DeviceWaits {
    fn found(&self) -> MutexGuard<'_, Vec<(u64, Waits)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Availability of `openat2(RESOLVE_CACHED)` (Linux 5.12, and no filter).
#[derive(Clone, Copy, Eq, PartialEq)]
enum Lookup {
    Cached,
    Blocking,
}

/// Result of opening without waiting for a disk.
pub(crate) enum Cached {
    Open(OwnedFd),
    /// Finding the file needs the disk.
    Miss,
}

impl<'a> Opener<'a> {
    /// Makes an opener for entries of this listing, best used in path order; `cancel` ends each
    /// wait for a descriptor.
    pub fn new(listing: &'a Listing, cancel: &'a Cancel) -> Opener<'a> {
        Opener {
            listing,
            cancel,
            dirs: DirFdCache::new(listing),
            last: None,
            noatime: OFlags::NOATIME,
            cached: Lookup::Cached,
            known: Vec::new(),
            shared: None,
            silent: Vec::new(),
        }
    }

    /// Makes the opener of a worker that knows what others have found, and tells them.
    pub(crate) fn sharing(
        listing: &'a Listing,
        cancel: &'a Cancel,
        shared: &'a DeviceWaits,
    ) -> Opener<'a> {
        Opener {
            known: shared.found().clone(),
            shared: Some(shared),
            ..Opener::new(listing, cancel)
        }
    }

    /// Opens and verifies as [`open_checked`](fn@open_checked) does, and waits where descriptors
    /// are short: a second at most, and not after a cancellation.
    ///
    /// # Errors
    /// Errors of that function.
    pub fn open_checked(&mut self, entry: EntryId) -> Result<(OwnedFd, FileStat), Error> {
        let file = self.open_waiting(entry, || ())?;
        let stat = verify(self.listing, entry, &file)?;
        Ok((file, stat))
    }

    // For our other crates. Hidden, and no part of what we promise: rustix may change its types.
    #[doc(hidden)]
    pub fn open_for_copy(
        &mut self,
        entry: EntryId,
        let_go: impl FnMut(),
    ) -> Result<(OwnedFd, Stat), Error> {
        let file = self.open_waiting(entry, let_go)?;
        let stat = verify_raw(self.listing, entry, &file)?;
        Ok((file, stat))
    }

    /// Opens an entry's file, and waits where descriptors are short: other workers have some that
    /// they will close, and the caller closes its own in `let_go`. The directory that was opened for
    /// this very file cannot be done without: given up, it is opened again.
    fn open_waiting(&mut self, entry: EntryId, mut let_go: impl FnMut()) -> Result<OwnedFd, Error> {
        let cancel = self.cancel;
        let mut wait = self.listing.shortage().wait(NEEDED);
        loop {
            let opened = self.open_in_dir(entry);
            let release = || {
                self.release();
                let_go();
            };
            if !wait.again(&opened, || cancel.is_cancelled(), release) {
                return opened;
            }
        }
    }

    fn open_in_dir(&mut self, entry: EntryId) -> Result<OwnedFd, Error> {
        let place = self.place(entry)?;
        self.open(&place.dir, entry)
    }

    /// Returns the directory that holds `entry`.
    pub(crate) fn place(&mut self, entry: EntryId) -> Result<EntryDir, Error> {
        let id = self.listing.dir(entry);
        if let Some((_, place)) = self.last.as_ref().filter(|(last, _)| *last == id) {
            return Ok(place.clone());
        }
        let opened = self.dirs.open(id);
        let dir = opened.map_err(|error| self.rename(&error, entry))?;
        let waits = match self.listing.decompression(id) {
            Decompression::None => self.known_waits(&dir),
            Decompression::ByEach => Waits::Processor,
            Decompression::InTurn => Waits::Decompressor,
        };
        let place = EntryDir { dir, waits };
        self.last = Some((id, place.clone()));
        Ok(place)
    }

    /// Returns what calls on a directory's device wait for; the directory was just opened.
    fn known_waits(&self, dir: &OwnedFd) -> Waits {
        if self.known.is_empty() {
            return Waits::Disk;
        }
        let dev = retry_on_intr(|| rustix::fs::fstat(dir)).map(|stat| stat.st_dev);
        let known = self.known.iter().find(|(known, _)| dev == Ok(*known));
        known.map_or(Waits::Disk, |(_, waits)| *waits)
    }

    /// Finds what calls in the directory used last wait for, and remembers that of its device;
    /// `is_silent`: its files do not report what is resident. Not called for each directory: those
    /// of a disk would pay for it.
    pub(crate) fn find_waits(&mut self, is_silent: bool) -> Waits {
        let Some((_, place)) = &mut self.last else {
            return Waits::Disk;
        };
        let stat = retry_on_intr(|| rustix::fs::fstat(&*place.dir));
        let waits = match (basic_traits(&*place.dir), &stat) {
            // One number stands for many servers, of which some decompress.
            (Ok(traits), Ok(stat)) if traits.asks_at_open != Answer::No => {
                Ok(traits_or_unknown(&*place.dir, stat.st_dev))
            }
            (traits, _) => traits,
        };
        let waits = match waits {
            Ok(traits) => match decompression(&traits) {
                Decompression::ByEach => Waits::Processor,
                Decompression::InTurn => Waits::Decompressor,
                Decompression::None if in_memory(&traits) => return Waits::Disk,
                Decompression::None if !is_silent && says(&traits) => return Waits::Disk,
                Decompression::None => Waits::Unsaid,
            },
            Err(_) => Waits::Unsaid,
        };
        place.waits = waits;
        if let Ok(stat) = stat {
            let found = (stat.st_dev, waits);
            let note = |known: &mut Vec<_>| {
                if !known.contains(&found) {
                    known.push(found);
                }
            };
            note(&mut self.known);
            if let Some(shared) = self.shared {
                note(&mut shared.found());
            }
        }
        waits
    }

    /// Notes that files of a device do not report what is resident, of which this is one that was
    /// opened last.
    pub(crate) fn note_silent(&mut self, entry: EntryId, dev: u64) {
        if self.waits(entry) == Waits::Disk && !self.silent.contains(&dev) {
            self.silent.push(dev);
            self.find_waits(true);
        }
    }

    /// Returns what calls in an entry's directory wait for; the entry was just opened.
    pub(crate) fn waits(&self, entry: EntryId) -> Waits {
        match &self.last {
            Some((last, place)) if *last == self.listing.dir(entry) => place.waits,
            _ => Waits::Disk,
        }
    }

    /// Closes the kept directories, whose descriptors are needed; returns whether there were any.
    pub(crate) fn release(&mut self) -> bool {
        self.last = None;
        self.dirs.give_way()
    }

    /// Returns the flags to open `entry` with.
    pub(crate) fn flags(&self, entry: EntryId) -> OFlags {
        let mut flags = FLAGS.difference(OFlags::NOATIME).union(self.noatime);
        if !self.listing.follow(entry) {
            flags |= OFlags::NOFOLLOW;
        }
        flags
    }

    /// True if an open that failed like this should be tried again: `O_NOATIME` is for the owner
    /// only. Remembered, so that a tree of another user's files does not open each of them twice.
    pub(crate) fn again(&mut self, errno: Errno, flags: OFlags) -> bool {
        if errno == Errno::PERM && flags.contains(OFlags::NOATIME) {
            self.noatime = OFlags::empty();
            return true;
        }
        errno == Errno::INTR
    }

    /// Opens `entry` in its directory, waiting for the disk if need be.
    pub(crate) fn open(&mut self, dir: &OwnedFd, entry: EntryId) -> Result<OwnedFd, Error> {
        loop {
            let flags = self.flags(entry);
            match rustix::fs::openat(dir, self.listing.name(entry), flags, Mode::empty()) {
                Ok(file) => return Ok(file),
                Err(errno) if self.again(errno, flags) => {}
                Err(errno) => return Err(self.error(entry, "open", errno)),
            }
        }
    }

    /// Opens `entry` if the kernel knows it without asking the disk.
    pub(crate) fn open_cached(&mut self, dir: &OwnedFd, entry: EntryId) -> Result<Cached, Error> {
        while self.cached == Lookup::Cached {
            let flags = self.flags(entry);
            let name = self.listing.name(entry);
            match rustix::fs::openat2(dir, name, flags, Mode::empty(), ResolveFlags::CACHED) {
                Ok(file) => return Ok(Cached::Open(file)),
                Err(Errno::AGAIN) => return Ok(Cached::Miss),
                Err(errno) if self.again(errno, flags) => {}
                // Older kernels know no openat2 (ENOSYS) or no such flag
                // (EINVAL), some filters answer EPERM. An error of the file
                // itself comes up again below.
                Err(Errno::NOSYS | Errno::INVAL | Errno::PERM | Errno::TOOBIG) => {
                    self.cached = Lookup::Blocking;
                }
                Err(errno) => return Err(self.error(entry, "open", errno)),
            }
        }
        self.open(dir, entry).map(Cached::Open)
    }

    /// Returns an error about `entry`.
    pub(crate) fn error(&self, entry: EntryId, op: &'static str, errno: Errno) -> Error {
        Error::new(self.listing.path(entry), op, errno)
    }

    /// Returns the error of a directory, reported for the entry in it: each entry has one.
    fn rename(&self, error: &Error, entry: EntryId) -> Error {
        Error::of_kind(self.listing.path(entry), "open", error.kind())
    }
}

fn decompression(traits: &Traits) -> Decompression {
    #[cfg(test)]
    if crate::tests::pretends_decompression() {
        return Decompression::ByEach;
    }
    traits.decompression
}

fn in_memory(traits: &Traits) -> bool {
    // Tests may run on such file systems.
    #[cfg(test)]
    if crate::tests::pretends_unknown() {
        return false;
    }
    traits.in_memory
}

/// True if a name that is known can be opened without waiting.
fn says(traits: &Traits) -> bool {
    traits.asks_at_open == Answer::No && traits.shows == Shows::Own
}

/// Returns the listing's metadata of a regular file; `None` without metadata.
pub(crate) fn as_listed(listing: &Listing, entry: EntryId) -> Option<FileStat> {
    listing.meta(entry).map(|meta| FileStat {
        id: meta.id,
        stamp: meta.stamp,
        mode: FileType::RegularFile.as_raw_mode(),
        uid: 0,
        gid: 0,
        nlink: meta.nlink,
        rdev: 0,
        blocks: 0,
    })
}

/// True if a file with another identity than the walked one's may be that file all the same: where
/// the file system numbers files when it looks them up, one whose name was forgotten meanwhile
/// (memory was short) comes back under another number. A file with the same path, size and mtime
/// there is taken for it.
fn was_renumbered(walked: &BasicStat, stat: &FileStat, inodes: impl FnOnce() -> Inodes) -> bool {
    let (then, now) = (&walked.stamp, &stat.stamp);
    walked.id.dev == stat.id.dev
        && (then.size, then.mtime_ns) == (now.size, now.mtime_ns)
        && inodes() != Inodes::Stable
}

/// Verifies that `file` is the regular file that was walked as `entry`.
pub(crate) fn verify(
    listing: &Listing,
    entry: EntryId,
    file: impl AsFd,
) -> Result<FileStat, Error> {
    verify_raw(listing, entry, file).map(|stat| FileStat::from(&stat))
}

fn verify_raw(listing: &Listing, entry: EntryId, file: impl AsFd) -> Result<Stat, Error> {
    let raw = retry_on_intr(|| rustix::fs::fstat(file.as_fd()))
        .map_err(|errno| Error::new(listing.path(entry), "stat", errno))?;
    let stat = FileStat::from(&raw);
    if stat.kind() != FileKind::File {
        return Err(Error::of_kind(
            listing.path(entry),
            "open",
            ErrorKind::NotRegular,
        ));
    }
    let inodes = || traits_or_unknown(file.as_fd(), stat.id.dev).inodes;
    if let Some(meta) = listing.meta(entry)
        && meta.id != stat.id
        && !was_renumbered(&meta, &stat, inodes)
    {
        return Err(Error::of_kind(
            listing.path(entry),
            "open",
            ErrorKind::Changed,
        ));
    }
    Ok(raw)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bc_walk::{Identity, Stamp};

    #[test]
    fn another_number_is_another_file_where_numbers_last() {
        let stamp = Stamp {
            size: 5,
            mtime_ns: 6,
            ctime_ns: 7,
        };
        let id = |ino| Identity { dev: 1, ino };
        let walked = BasicStat {
            id: id(10),
            stamp,
            nlink: 1,
        };
        let stat = |id, stamp| FileStat {
            id,
            stamp,
            mode: 0,
            uid: 0,
            gid: 0,
            nlink: 1,
            rdev: 0,
            blocks: 0,
        };
        let same = stat(id(11), stamp);
        assert!(was_renumbered(&walked, &same, || Inodes::Moving));
        assert!(was_renumbered(&walked, &same, || Inodes::Unknown));
        assert!(!was_renumbered(&walked, &same, || Inodes::Stable));
        let edited = stat(
            id(11),
            Stamp {
                mtime_ns: 8,
                ..stamp
            },
        );
        assert!(!was_renumbered(&walked, &edited, || Inodes::Moving));
        let elsewhere = stat(Identity { dev: 2, ino: 10 }, stamp);
        assert!(!was_renumbered(&walked, &elsewhere, || Inodes::Moving));
    }
}
