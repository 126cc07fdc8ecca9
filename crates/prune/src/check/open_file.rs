//! The proofs that must hold before anything is changed: the name still leads to the scanned file
//! in the scanned state, and its bytes are the kept file's.

use std::cell::{Cell, OnceCell};
use std::ffi::{CStr, CString};
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::time::{Duration, Instant, UNIX_EPOCH};

use bc_edit::InodeFlags;
use bc_edit::content;
use bc_edit::metadata::FileMetadata;
use bc_edit::names::prune::Mark;
use bc_find::groups::FileRef;
use bc_fs::dirfd::{self, Access};
use bc_fs::known::now_ns;
use bc_fs::known::{COARSEST_STEP_NS, file_clock, possible_step};
use bc_fs::lease::{self, Refused};
use bc_fs::meta::{self, FullStat};
use bc_fs::mount::{Answer, Shows, basic_traits};
use bc_walk::{FileKind, FileStat, Identity, Stamp};
use rustix::fs::{FlockOperation, StatxAttributes, flock};
use rustix::io::Errno;

use crate::check::dir::{Dir, open_parent};
use crate::check::meta::{give_times, read_metadata};
use crate::options::RunMode;
use crate::skip::Skip;

/// A file held open, and the directory and name it was opened by.
pub(crate) struct OpenFile {
    pub(crate) path: Vec<u8>,
    pub(crate) dir: Rc<Dir>,
    pub(crate) name: CString,
    pub(crate) file: Handle,
    /// State at the last check.
    pub(crate) stat: FileStat,
    pub(crate) atime_ns: i64,
    /// Time of birth, in nanoseconds since 1970; `None` where its file system does not keep that.
    pub(crate) born_ns: Option<u64>,
    /// Marks that it had (`chattr`) when it was opened, and a bit for the root of a mount.
    pub(crate) marks: StatxAttributes,
    /// The number of the mount that it was opened by, where the kernel reports it.
    pub(crate) mount: Option<u64>,
    /// Names that it has: without those that a dry run would take from it, or that this run took
    /// and that a lower layer still counts.
    pub(crate) links: u64,
    /// True if its content is known to be on the disk.
    pub(crate) settled: bool,
    /// True if it is a reference's.
    pub(crate) protected: bool,
    /// True if `file` has a read lease.
    pub(crate) leased: bool,
    /// Flags, read once in this state.
    pub(crate) flags: OnceCell<InodeFlags>,
}

/// An open file; a lock on it ends with it.
pub(crate) struct Handle {
    fd: OwnedFd,
    is_locked: Cell<bool>,
}

impl From<OwnedFd> for Handle {
    fn from(fd: OwnedFd) -> Handle {
        Handle {
            fd,
            is_locked: Cell::new(false),
        }
    }
}

impl Handle {
    /// Locks the file against other runs. Two that put their own in the place of one name at a time
    /// would each find the other's under its temporary name, and leave that.
    ///
    /// # Errors
    /// [`Skip::Locked`]. Where there are no such locks, the call succeeds without one.
    pub(crate) fn lock(&self, mode: RunMode) -> Result<(), Skip> {
        let how = match mode {
            RunMode::DryRun => FlockOperation::NonBlockingLockShared,
            RunMode::Execute => FlockOperation::NonBlockingLockExclusive,
        };
        match bc_edit::flock(&self.fd, how) {
            Ok(()) => {
                self.is_locked.set(true);
                Ok(())
            }
            Err(Errno::WOULDBLOCK) => Err(Skip::Locked),
            Err(_) => Ok(()),
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Closing is not enough while a process that was forked meanwhile has the descriptor.
        if self.is_locked.get() {
            let _ = flock(&self.fd, FlockOperation::Unlock);
        }
    }
}

impl Deref for Handle {
    type Target = OwnedFd;

    fn deref(&self) -> &OwnedFd {
        &self.fd
    }
}

impl AsFd for Handle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Files older than this are on the disk: the kernel writes dirty pages
/// back after 30 seconds (`vm.dirty_expire_centisecs`).
const SETTLED_NS: i64 = 600_000_000_000;

/// Detection of writers of a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Watched {
    Yes,
    /// The system gives no lease, for the reason of this error number.
    No(i32),
}

/// Opens the file and proves that it is the one that `file` names, in the state given.
pub(crate) fn open(file: &FileRef, stamp: Stamp) -> Result<OpenFile, Skip> {
    let (dir, name) = open_parent(file)?;
    open_in(&Dir::new(dir), &name, file, stamp)
}

/// Opens the file, with the same proof, by the name that it has in a directory.
pub(crate) fn open_in(
    dir: &Rc<Dir>,
    name: &CString,
    file: &FileRef,
    stamp: Stamp,
) -> Result<OpenFile, Skip> {
    let held = open_any(dir, name, file)?;
    if held.stat.id != file.id || held.stat.stamp != stamp {
        return Err(Skip::Changed);
    }
    wait_for_clock(stamp.mtime_ns);
    Ok(held)
}

/// Opens a file of which this run changed another name, which left it in the state `stamp`.
///
/// Where one file may have several numbers, the kernel keeps the times of each name on its own, and
/// learns late of changes through another one. There the server is asked, the change time does not
/// count, and the bytes are compared with the kept file's as ever. Where files are copied up, the
/// other name need not have noticed at all.
pub(crate) fn open_again(file: &FileRef, stamp: Stamp) -> Result<OpenFile, Skip> {
    let (dir, name) = open_parent(file)?;
    open_again_in(&Dir::new(dir), &name, file, stamp)
}

/// Opens such a file by the name that it has in a directory.
pub(crate) fn open_again_in(
    dir: &Rc<Dir>,
    name: &CString,
    file: &FileRef,
    stamp: Stamp,
) -> Result<OpenFile, Skip> {
    let mut held = open_any(dir, name, file)?;
    let traits = basic_traits(&held.file)?;
    let apart = traits.copy_up == Answer::Yes && held.stat.stamp == file.stamp;
    if traits.shows == Shows::Others {
        held.stat = meta::stat_now(&held.file, c"")?;
        held.links = held.stat.nlink;
        if !held.same_content(file.stamp) {
            return Err(Skip::Changed);
        }
    } else if held.stat.stamp != stamp && !apart {
        return Err(Skip::Changed);
    }
    if held.stat.id != file.id {
        return Err(Skip::Changed);
    }
    wait_for_clock(stamp.mtime_ns);
    Ok(held)
}

/// Opens the regular file that the name leads to, whichever it is.
fn open_any(dir: &Rc<Dir>, name: &CString, file: &FileRef) -> Result<OpenFile, Skip> {
    let opened = dirfd::open_file(dir, name, Access::Read)?;
    let found = meta::stat_all(&opened)?;
    let (dir, path) = (Rc::clone(dir), file.path.clone());
    let held = OpenFile::new(opened, found, dir, name.clone(), path);
    if held.stat.kind() != FileKind::File {
        return Err(Skip::NotRegular);
    }
    if held.stat.nlink == 0 {
        return Err(Skip::Deleted);
    }
    Ok(OpenFile {
        protected: file.protected,
        ..held
    })
}

/// The kernel's clock for file times stands still between two ticks, 10 ms at
/// most ([`bc_fs::known::TICK_NS`] is for where waiting costs nothing). Two writes within one tick leave the same mtime, so a file written
/// just now is compared only once a further write is sure to show.
const TICK: Duration = Duration::from_millis(20);

/// Waits until a further write to a file is sure to give it another mtime.
pub(crate) fn wait_for_clock(mtime_ns: i64) {
    let since = UNIX_EPOCH + Duration::from_nanos(mtime_ns.max(0).unsigned_abs());
    if let Ok(age) = since.elapsed()
        && let Some(rest) = tick_of(mtime_ns).checked_sub(age)
    {
        std::thread::sleep(rest);
    }
}

/// Returns the time after which a write is sure to leave another mtime than this: whole seconds may
/// be of a file system that keeps nothing finer.
fn tick_of(mtime_ns: i64) -> Duration {
    TICK + Duration::from_nanos(possible_step(mtime_ns, COARSEST_STEP_NS).unsigned_abs())
}

/// Waits until the clock for file times has left this time behind.
pub(crate) fn wait_past(ctime_ns: i64) {
    let began = Instant::now();
    // Not for a file from the future, or stamped by another machine's clock.
    while began.elapsed() < TICK {
        if file_clock() > ctime_ns {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

impl OpenFile {
    fn new(file: OwnedFd, found: FullStat, dir: Rc<Dir>, name: CString, path: Vec<u8>) -> OpenFile {
        OpenFile {
            path,
            dir,
            name,
            file: file.into(),
            links: found.stat.nlink,
            stat: found.stat,
            atime_ns: found.atime_ns,
            born_ns: found.born_ns,
            marks: found.marks,
            mount: found.mount,
            settled: false,
            leased: false,
            protected: false,
            flags: OnceCell::new(),
        }
    }

    /// Holds the regular file that the name leads to now, whichever it is.
    pub(crate) fn find(dir: &OwnedFd, name: &CString, path: &[u8]) -> Result<OpenFile, Skip> {
        OpenFile::of(dirfd::open_file(dir, name, Access::Read)?, dir, name, path)
    }

    /// Holds an open regular file by the name that it has.
    pub(crate) fn of(
        file: OwnedFd,
        dir: &OwnedFd,
        name: &CString,
        path: &[u8],
    ) -> Result<OpenFile, Skip> {
        let held = OpenFile::link(file, dir, name, path)?;
        match held.stat.kind() {
            FileKind::File => Ok(held),
            _ => Err(Skip::NotRegular),
        }
    }

    /// Holds an open file of any kind by the name that it has.
    pub(crate) fn link(
        file: OwnedFd,
        dir: &OwnedFd,
        name: &CString,
        path: &[u8],
    ) -> Result<OpenFile, Skip> {
        let dir = dir.try_clone().map_err(|error| Skip::System {
            op: "dup",
            errno: error.raw_os_error().unwrap_or_default(),
        })?;
        // The kernel need not have noticed yet what a run has done to it a moment ago, by another
        // name, and would notice later.
        let found = meta::stat_all_now(&file)?;
        let (dir, path) = (Dir::new(dir), path.to_vec());
        Ok(OpenFile::new(file, found, dir, name.clone(), path))
    }

    /// Proves that the file is still in the state it was opened in and that
    /// its name still leads to it.
    pub(crate) fn check(&self) -> Result<(), Skip> {
        let now = self.seen_by_name()?;
        match now.stamp == self.stat.stamp && now.mode == self.stat.mode {
            true => Ok(()),
            false => Err(Skip::Changed),
        }
    }

    /// Returns the current state of the file, after a check that its name leads to it. One look by
    /// the name does both, where there is a lease: on network file systems, which give none,
    /// another machine may have removed the file and its number may be given again.
    fn seen_by_name(&self) -> Result<FileStat, Skip> {
        match self.leased {
            true => self.named(),
            false => {
                let now = meta::stat(&self.file)?;
                self.named().map(|_| now)
            }
        }
    }

    /// Returns the state of the name, which must still lead to this very file.
    fn named(&self) -> Result<FileStat, Skip> {
        match stat_at(&self.dir, &self.name)? {
            Some(now) if now.id == self.stat.id => Ok(now),
            Some(_) => Err(Skip::Changed),
            None => Err(Skip::Gone),
        }
    }

    /// Proves that the name leads to this very file, and that nothing was done to that since it
    /// was held: as the server has it, as far as there is one.
    pub(crate) fn check_untouched(&self) -> Result<(), Skip> {
        let now = meta::stat_now(&self.dir, &self.name)?;
        match now.id == self.stat.id && now.stamp == self.stat.stamp {
            true => Ok(()),
            false => Err(Skip::Changed),
        }
    }

    /// Returns true if the file found under a name is this very file. A rename may copy it up and
    /// give it another number with that: then the open file has it, too.
    pub(crate) fn is(&self, found: Identity) -> bool {
        let now = || meta::stat(&self.file).is_ok_and(|stat| stat.id == found);
        found == self.stat.id || now()
    }

    /// Proves that the name leads to this very file.
    pub(crate) fn check_name(&self) -> Result<(), Skip> {
        self.named().map(drop)
    }

    /// Proves that the content is as it was at the last check, and that no process has opened it
    /// for writing. The ctime does not count: renaming and linking the file change it.
    pub(crate) fn check_content(&self) -> Result<(), Skip> {
        self.check_content_of(meta::stat(&self.file)?)
    }

    /// Proves the same as [`check_content`](Self::check_content), and that the name leads to this
    /// very file.
    pub(crate) fn check_named_content(&self) -> Result<(), Skip> {
        self.check_content_of(self.seen_by_name()?)
    }

    /// Proves the same of another name, which it has now.
    pub(crate) fn check_content_at(&self, name: &CStr) -> Result<(), Skip> {
        match stat_at(&self.dir, name)? {
            Some(now) if now.id == self.stat.id && self.leased => self.check_content_of(now),
            // A rename may copy it up and give it another number with that: then the open file has
            // it, too.
            Some(now) if self.is(now.id) => self.check_content(),
            _ => Err(Skip::Changed),
        }
    }

    fn check_content_of(&self, now: FileStat) -> Result<(), Skip> {
        match self.same_content(now.stamp) {
            true => self.check_lease(),
            false => Err(Skip::Changed),
        }
    }

    /// [Locks](Handle::lock) the file against other runs on this machine, where it knows of all of
    /// them.
    pub(crate) fn lock(&self, mode: RunMode) -> Result<(), Skip> {
        match basic_traits(&self.file)?.network {
            Answer::No => self.file.lock(mode),
            _ => Ok(()),
        }
    }

    /// Asks for a read lease, which changes of names leave alone. A process that opens the file for
    /// writing from here on has to wait until it is [released](OpenFile::release), and is noticed.
    pub(crate) fn watch(&mut self) -> Result<Watched, Skip> {
        match lease::take_when_closed(&self.file, self.stat.stamp.ctime_ns) {
            Ok(()) => {
                self.leased = true;
                Ok(Watched::Yes)
            }
            Err(Refused::Unavailable(errno)) => Ok(Watched::No(errno)),
            Err(Refused::Writer) => Err(Skip::OpenForWriting),
        }
    }

    /// Proves that no process has opened the file for writing since it is watched.
    pub(crate) fn check_lease(&self) -> Result<(), Skip> {
        if !self.leased || lease::is_held(&self.file) {
            Ok(())
        } else {
            Err(Skip::OpenForWriting)
        }
    }

    /// Lets writers in.
    pub(crate) fn release(&mut self) {
        if std::mem::take(&mut self.leased) {
            lease::give_up(&self.file);
        }
    }

    /// Waits until a change of its names will show in its ctime; for
    /// [`outlives`](OpenFile::outlives).
    pub(crate) fn wait_for_tick(&self) {
        wait_past(self.stat.stamp.ctime_ns);
    }

    /// Proves that this file still has its name and its content now that the
    /// name of `target`, which was given another one or taken away, is about to
    /// be lost: that the two are not one file seen under two mounts.
    ///
    /// No list of file systems is complete, and names may be cached. But a rename moves a file's
    /// ctime, under all its mounts.
    pub(crate) fn outlives(&self, target: &OpenFile) -> Result<(), Skip> {
        self.check_content().map_err(Skip::of_kept_file)?;
        let named = meta::stat_now(&self.dir, &self.name).map_err(|failed| match failed.errno {
            Errno::NOENT => Skip::SameFile,
            _ => failed.into(),
        })?;
        let mut there = meta::stat_now(&target.file, c"")?;
        if there.stamp.ctime_ns == target.stat.stamp.ctime_ns {
            // It still has its name, or its file system does not count names. Its times, set to
            // what they are, move it as well.
            if give_times(&target.metadata()?, &target.file).is_ok() {
                there = meta::stat_now(&target.file, c"")?;
            }
        }
        let now = meta::stat_now(&self.file, c"")?;
        let moved = now.stamp.ctime_ns != self.stat.stamp.ctime_ns;
        if moved && now.stamp.ctime_ns == there.stamp.ctime_ns {
            return Err(Skip::SameFile);
        }
        if moved || now.nlink < self.stat.nlink || named.id != self.stat.id {
            return Err(Skip::KeptFileChanged);
        }
        Ok(())
    }

    /// Makes content that was written lately durable before another copy of it is given up.
    pub(crate) fn settle(&mut self) -> Result<(), Skip> {
        if self.settled {
            return Ok(());
        }
        let age = now_ns().saturating_sub(self.stat.stamp.mtime_ns.max(self.stat.stamp.ctime_ns));
        if age < SETTLED_NS {
            match content::sync(&self.file) {
                // An image has nothing that could be written out.
                Err(failed) if !is_image(&self.file, failed.errno) => return Err(failed.into()),
                _ => {}
            }
        }
        self.settled = true;
        Ok(())
    }

    fn same_content(&self, now: Stamp) -> bool {
        now.size == self.stat.stamp.size && now.mtime_ns == self.stat.stamp.mtime_ns
    }

    /// Takes the state that our own change of its names left the file in: from the server, as
    /// the kernel need not have noticed a change of another name.
    pub(crate) fn refresh(&mut self) -> Result<(), Skip> {
        let now = meta::stat_all_now(&self.file)?;
        if !self.same_content(now.stat.stamp) {
            return Err(Skip::Changed);
        }
        self.stat = now.stat;
        // A change of them moved the ctime that is taken over.
        self.flags = OnceCell::new();
        // A file that was copied up is another one.
        self.born_ns = now.born_ns;
        self.links = self.stat.nlink;
        Ok(())
    }

    /// Returns the mark by which a later run recognises this file.
    pub(crate) fn mark(&self) -> Mark {
        Mark {
            id: self.stat.id,
            born_ns: self.born_ns,
        }
    }

    /// Everything about it that is not its content.
    pub(crate) fn metadata(&self) -> Result<FileMetadata, Skip> {
        read_metadata(&self.file, &self.stat, self.atime_ns)
    }

    /// Returns the flags of `chattr`, and the encryption, which are read once in each state.
    pub(crate) fn flags(&self) -> Result<&InodeFlags, Skip> {
        if let Some(flags) = self.flags.get() {
            return Ok(flags);
        }
        let flags = InodeFlags::of(&self.file)?;
        Ok(self.flags.get_or_init(|| flags))
    }

    /// True if something is mounted under its name: a mount begins there, or a file was bind-mounted.
    /// The name is the mount's and can neither go nor be given to another file.
    pub(crate) fn is_mounted(&self) -> bool {
        self.marks.contains(StatxAttributes::MOUNT_ROOT)
    }
}

/// Returns true if `fsync` failed because the file is on a read-only file system.
fn is_image(file: &OwnedFd, errno: Errno) -> bool {
    matches!(errno, Errno::INVAL | Errno::ROFS | Errno::OPNOTSUPP)
        && basic_traits(file).is_ok_and(|traits| traits.read_only)
}

/// Returns the identity of the file that a name of a directory leads to; `None` if there is no such
/// name.
pub(crate) fn identity_at(dir: &OwnedFd, name: &CStr) -> Result<Option<Identity>, Skip> {
    Ok(stat_at(dir, name)?.map(|stat| stat.id))
}

fn stat_at(dir: &OwnedFd, name: &CStr) -> Result<Option<FileStat>, Skip> {
    match meta::stat_at(dir, name) {
        Ok(stat) => Ok(Some(stat)),
        Err(failed) if failed.errno == Errno::NOENT => Ok(None),
        Err(failed) => Err(failed.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_second_may_last_as_long_as_fat_has_it() {
        const S: i64 = 1_000_000_000;
        for (mtime_ns, milliseconds) in [
            (100 * S, 2020),
            (101 * S, 2020),
            (100 * S + 40_000_000, 30),
            (100 * S + 1_000_000, 21),
        ] {
            assert_eq!(tick_of(mtime_ns), Duration::from_millis(milliseconds));
        }
        assert_eq!(tick_of(100 * S + 7), TICK + Duration::from_nanos(1));
    }
}
