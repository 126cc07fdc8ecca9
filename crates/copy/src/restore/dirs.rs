//! Entries without content. Directories on the way: missing ones are made, and get their recorded
//! metadata last; existing ones get their times back, where these were as recorded. Symbolic links,
//! whose targets are recorded.

use std::collections::{HashMap, HashSet};
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard};

use bc_edit::entry;
use bc_edit::made::{Thing, hold_dir};
use bc_edit::metadata::{Subject, times_of};
use bc_fs::caller::check_name;
use bc_fs::dirfd::{self, own_path};
use bc_fs::known::file_clock;
use bc_fs::meta::Attributed;
use bc_fs::mount::mount_number;
use bc_fs::path::split;
use bc_manifest::integrity::{Entry, Kind, ROOT};
use bc_walk::{Error, FileStat, Identity};
use rustix::fs::{AtFlags, Mode, OFlags, Timestamps};
use rustix::io::{Errno, retry_on_intr};

use super::needs::{Need, above};
use super::{RepairSource, Restore, distant_time};
use crate::lock;
use crate::meta::{self, SourceXattrs, fstat, stat, stat_at};
use crate::place::DestDir;
use crate::stage::put::{NotPut, put_new};
use crate::stage::{NotMade, SpecialEntry, remove, swapped};

/// Directories that files are put into.
pub(super) struct Dirs {
    records: HashMap<Vec<u8>, Entry>,
    state: Mutex<TouchedDirs>,
}

#[derive(Default)]
struct TouchedDirs {
    /// Made directories in the order in which they were made, parents before children, with their
    /// identities.
    made: Vec<(Vec<u8>, Option<Identity>)>,
    /// Times to put back, by path, with the directory's identity.
    times: HashMap<Vec<u8>, (Identity, Option<Timestamps>)>,
}

/// A file system as it is mounted in one place: its device number, and the mount's.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Volume(u64, Option<u64>);

/// Reason for which a directory was not opened.
#[derive(Clone, Copy, Debug)]
pub(super) enum NotOpened {
    /// It may be on another file system than the one that was verified.
    MountedOtherwise,
    System(Errno),
}

impl From<Errno> for NotOpened {
    fn from(errno: Errno) -> NotOpened {
        NotOpened::System(errno)
    }
}

impl NotOpened {
    /// Returns the failure of the path that needs it.
    pub(super) fn error(self, shown: Vec<u8>, op: &'static str) -> Error {
        match self {
            NotOpened::System(errno) => Error::new(shown, op, errno),
            NotOpened::MountedOtherwise => {
                let text = "something was mounted or unmounted in the tree since it was verified";
                Error::with_message(shown, op, text)
            }
        }
    }
}

impl Dirs {
    pub(super) fn new(records: HashMap<Vec<u8>, Entry>) -> Dirs {
        Dirs {
            records,
            state: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, TouchedDirs> {
        lock(&self.state)
    }

    fn record(&self, path: &[u8]) -> Option<&Entry> {
        self.records.get(if path.is_empty() { ROOT } else { path })
    }

    /// Opens a directory to put something into, and makes it if it is missing.
    pub(super) fn open(&self, restore: &Restore<'_>, path: &[u8]) -> Result<DestDir, NotOpened> {
        let top = restore.plan.top.fd.as_fd();
        let mut state = self.lock();
        let dir = match DestDir::open(top, path) {
            Err(Errno::NOENT) => {
                // Else it would be made anew below where a disk was.
                self.refuse_other_mounts(restore)?;
                for dir in above(path).chain([path]) {
                    self.make(restore, &mut state, dir)?;
                }
                DestDir::open(top, path)?
            }
            opened => opened?,
        };
        // What is open stays what it is.
        self.refuse_other_mounts(restore)?;
        self.note(&mut state, path, &dir)?;
        Ok(dir)
    }

    fn refuse_other_mounts(&self, restore: &Restore<'_>) -> Result<(), NotOpened> {
        match restore.plan.top.is_mounted_otherwise() {
            true => Err(NotOpened::MountedOtherwise),
            false => Ok(()),
        }
    }

    fn make(
        &self,
        restore: &Restore<'_>,
        state: &mut TouchedDirs,
        path: &[u8],
    ) -> Result<(), Errno> {
        let (parent, name) = split(path);
        let parent_dir = DestDir::open(restore.plan.top.fd.as_fd(), parent)?;
        match stat_at(&parent_dir.fd, name) {
            Err(Errno::NOENT) => {}
            found => return found.map(drop),
        }
        self.note(state, parent, &parent_dir)?;
        let recorded = self.record(path).and_then(|entry| entry.meta);
        let bits = recorded.filter(|_| restore.plan.trusts);
        let mode = parent_dir.mode_of_new_dir(bits.map_or(0, |meta| meta.mode));
        let since = file_clock();
        match entry::make_dir(&parent_dir.fd, name, mode).map_err(Errno::from) {
            Ok(()) => {
                // It is made whatever becomes of its name.
                let held = hold_dir(&parent_dir.fd, name, since).ok().flatten();
                let id = held.and_then(|held| stat(&held).ok()).map(|stat| stat.id);
                state.made.push((path.to_vec(), id));
            }
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        Ok(())
    }

    /// Remembers the times of a directory before anything is put into it.
    fn note(&self, state: &mut TouchedDirs, path: &[u8], dir: &DestDir) -> Result<(), Errno> {
        if state.times.contains_key(path) {
            return Ok(());
        }
        let stat = fstat(&dir.fd)?;
        let now = FileStat::from(&stat).stamp.mtime_ns;
        let recorded = self.record(path).and_then(|entry| entry.meta);
        let fits = recorded.is_some_and(|meta| meta.mtime_ns == now);
        let times = fits.then(|| times_of(&stat));
        state.times.insert(path.to_vec(), (dir.id, times));
        Ok(())
    }

    /// Checks whether a file could be put at a path, as far as possible without trying.
    pub(super) fn may_put(&self, restore: &Restore<'_>, path: &[u8]) -> Result<(), Errno> {
        let dir = nearest(restore, path)?;
        let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
        rustix::fs::accessat(&dir.fd, c".", access, AtFlags::EACCESS)
    }

    /// Checks whether a file could be made and given the name of a path, as far as possible without
    /// trying; `op` is the call that makes it.
    pub(super) fn may_name(
        &self,
        restore: &Restore<'_>,
        path: &[u8],
        op: &'static str,
    ) -> Result<(), Error> {
        if let Ok(dir) = DestDir::open(restore.plan.top.fd.as_fd(), split(path).0) {
            check_put(restore, &dir, path)?;
        }
        let may = self.may_put(restore, path);
        may.map_err(|errno| Error::new(restore.shown(path), op, errno))
    }

    /// The file system that a path is on, or would be.
    pub(super) fn volume(&self, restore: &Restore<'_>, path: &[u8]) -> Option<Volume> {
        let dir = nearest(restore, path).ok()?;
        Some(Volume(dir.id.dev, mount_number(&dir.fd)))
    }

    /// Gives new directories their recorded metadata, and the others their times.
    pub(super) fn finish(&self, restore: &Restore<'_>) {
        let state = std::mem::take(&mut *self.lock());
        let mut failed = Vec::new();
        for (path, id) in state.made.iter().rev() {
            let lost = self.finish_made(restore, path, *id);
            failed.extend(lost.unwrap_or_else(|error| vec![error]));
        }
        let made: HashSet<&Vec<u8>> = state.made.iter().map(|(path, _)| path).collect();
        for (path, (id, times)) in &state.times {
            let Some(times) = times.as_ref().filter(|_| !made.contains(path)) else {
                continue;
            };
            let refused = |op| move |errno| Error::new(restore.shown(path), op, errno);
            let put_back = || {
                let dir =
                    DestDir::open(restore.plan.top.fd.as_fd(), path).map_err(refused("open"))?;
                if dir.id != *id {
                    return Err(replaced(restore.shown(path)));
                }
                let given = Subject::place(dir.fd.as_fd()).set_times(times);
                given.map_err(refused("utimens"))
            };
            failed.extend(put_back().err());
        }
        failed.sort_by(|a, b| a.path().cmp(b.path()));
        failed.iter().for_each(|error| restore.not_given(error));
    }

    /// Gives a new directory its metadata; returns what it could not be given.
    fn finish_made(
        &self,
        restore: &Restore<'_>,
        path: &[u8],
        id: Option<Identity>,
    ) -> Result<Vec<Error>, Error> {
        let failed = |errno| Error::new(restore.shown(path), "open", errno);
        let (parent, name) = split(path);
        let parent = DestDir::open(restore.plan.top.fd.as_fd(), parent).map_err(failed)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = || rustix::fs::openat(&parent.fd, name, flags, Mode::empty());
        let dir = retry_on_intr(open).map_err(failed)?;
        let now = stat(&dir).map_err(failed)?.id;
        if id != Some(now) {
            return Err(replaced(restore.shown(path)));
        }
        let recorded_at = self.record(path).map_or(path, |entry| &entry.path);
        let mut copies = restore.plan.from.iter();
        let copy = copies.find_map(|from| from.dir(recorded_at));
        let mut new_mode = 0o777;
        let mut list = None;
        if let Some(copy) = &copy {
            // As with a file: never more than the copy permits.
            new_mode &= stat(copy).map_err(failed)?.mode;
            let found = SourceXattrs::new()
                .list_of(Attributed::At(format!("{}/.", own_path(copy)).as_bytes()));
            list = found.map_err(failed)?;
        }
        let (mut wanted, giving) = restore.recorded(self.record(path), None, new_mode);
        if !giving.preserve.xattrs {
            wanted = wanted.without_acl(list.as_deref());
        }
        let mut lost = Vec::new();
        let subject = Subject::open(dir.as_fd());
        meta::give(&subject, &wanted, &giving, parent.gives_acl, &mut lost);
        let shown = restore.shown(path);
        let lost = lost.into_iter();
        let lost = lost.map(|lost| Error::new(&shown[..], lost.op, lost.errno));
        Ok(lost
            .chain(distant_time(&shown, self.record(path)))
            .collect())
    }
}

/// The directory that is to hold a path or, where that is missing, the one above it.
fn nearest(restore: &Restore<'_>, path: &[u8]) -> Result<DestDir, Errno> {
    let top = restore.plan.top.fd.as_fd();
    let ways: Vec<&[u8]> = std::iter::once(&b""[..]).chain(above(path)).collect();
    for way in ways.into_iter().rev() {
        match DestDir::open(top, way) {
            Err(Errno::NOENT) => {}
            opened => return opened,
        }
    }
    Err(Errno::NOENT)
}

/// Checks that a stage could get the name of a path in its directory, which loses another name with
/// that: a stage in a directory that takes new names only could not even be removed.
pub(super) fn check_put(restore: &Restore<'_>, dir: &DestDir, path: &[u8]) -> Result<(), Error> {
    check_name(&dir.fd, split(path).1)
        .map_err(|fixed| Error::with_message(restore.shown(path), "rename", fixed.reason()))
}

/// The failure of a directory that has lost its name before it got what is recorded of it.
fn replaced(shown: Vec<u8>) -> Error {
    let text = "another program gave its name to another directory, which is left as it is";
    Error::with_message(shown, "open", text)
}

/// Restores everything but regular files. Entries that can be restored neither way are reported.
pub(super) fn restore_plain(restore: &Restore<'_>) {
    for (number, need) in restore.plan.needs.iter().enumerate() {
        if restore.is_over() {
            return;
        }
        if restore.is_settled(number) || restore.is_left(number) {
            continue;
        }
        let made = match need.entry.kind {
            Kind::File => continue,
            Kind::Dir => make_dir(restore, need),
            Kind::Symlink => match &need.entry.target {
                Some(target) if is_believed(restore, need, target) => {
                    make_link(restore, number, target)
                }
                Some(_) => {
                    restore.withhold(
                        number,
                        "its target is known by a manifest of others alone, whose metadata is not trusted",
                    );
                    continue;
                }
                None => {
                    restore.withhold(number, "no target is recorded");
                    continue;
                }
            },
            Kind::Fifo | Kind::Socket | Kind::Block | Kind::Char => {
                restore.withhold(number, "only files, directories and links are brought back");
                continue;
            }
        };
        match made {
            Ok(()) => restore.repaired(number, RepairSource::Record, None),
            Err(error) => restore.failed(number, &error),
        }
    }
}

/// True if a link's target is taken from the manifest: also if a copy has the same link.
fn is_believed(restore: &Restore<'_>, need: &Need, target: &[u8]) -> bool {
    let has_it = |from: &super::Backup| from.link(&need.recorded_at).as_deref() == Some(target);
    restore.plan.trusts || restore.plan.from.iter().any(has_it)
}

fn make_dir(restore: &Restore<'_>, need: &Need) -> Result<(), Error> {
    let made = match restore.plan.dry_run {
        true => restore
            .means
            .dirs
            .may_put(restore, &need.path)
            .map_err(NotOpened::from),
        false => restore.means.dirs.open(restore, &need.path).map(drop),
    };
    made.map_err(|not| not.error(restore.shown(&need.path), "mkdir"))
}

fn make_link(restore: &Restore<'_>, number: usize, target: &[u8]) -> Result<(), Error> {
    let need = &restore.plan.needs[number];
    let failed = |op: &'static str, errno: Errno| Error::new(restore.shown(&need.path), op, errno);
    let again = || {
        let text = "is there again: left as it is";
        Error::with_message(restore.shown(&need.path), "restore", text)
    };
    let (above, name) = split(&need.path);
    let there = dirfd::open_below(restore.plan.top.fd.as_fd(), above)
        .map_err(Errno::from)
        .and_then(|dir| stat_at(dir, name));
    match there {
        Err(Errno::NOENT) => {}
        Ok(_) => return Err(again()),
        Err(errno) => return Err(failed("open", errno)),
    }
    if restore.plan.dry_run {
        return restore.means.dirs.may_name(restore, &need.path, "symlink");
    }
    let (dir, stage) = restore.stage_of(&need.path)?;
    let (wanted, giving) = restore.recorded(Some(&need.entry), None, 0o777);
    let link = SpecialEntry {
        thing: Thing::Link(target),
        wanted: &wanted,
        giving: &giving,
    };
    let mut lost = Vec::new();
    link.make(&dir, &stage, &mut lost)
        .map_err(|not| match not {
            NotMade::System(_, errno) => failed("symlink", errno),
            NotMade::Swapped => swapped(restore.shown(&need.path)),
        })?;
    restore.lost(number, &mut lost);
    put_new(dir.fd.as_fd(), &stage, name).map_err(|why| {
        remove(dir.fd.as_fd(), &stage);
        match why {
            NotPut::System(op, errno) => failed(op, errno),
            _ => again(),
        }
    })
}
