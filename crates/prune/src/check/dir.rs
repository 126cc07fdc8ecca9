//! Directories held open. A run comes back to one for every file in it, so the ones that it came to
//! last are kept: opening the way to them again for each file is a third of the system calls of a
//! small file's step.

use std::cell::{Cell, OnceCell, RefCell};
use std::ffi::CString;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::time::{Duration, Instant};

use bc_find::groups::FileRef;
use bc_fs::call;
use bc_fs::dirfd;
use bc_fs::dirfd::OpenDirs;
use bc_fs::meta::{self, FullStat};
use bc_fs::mount::BindMounts;
use bc_fs::path::{below, split};
use bc_pool::Cancel;
use bc_walk::Identity;

use crate::leftovers::claim::{Blocked, Claim};
use crate::skip::Skip;

/// An open directory, and its properties as far as they were asked for.
pub(crate) struct Dir {
    fd: OwnedFd,
    /// State when it was opened.
    facts: OnceCell<FullStat>,
    /// True if its names were found to be changeable through this descriptor's mount.
    pub(crate) is_writable: Cell<bool>,
    /// The lock under which this run has temporary names in it, once it had any.
    claim: RefCell<Option<Rc<Claim>>>,
}

impl Dir {
    pub(crate) fn new(fd: OwnedFd) -> Rc<Dir> {
        Rc::new(Dir {
            fd,
            facts: OnceCell::new(),
            is_writable: Cell::new(false),
            claim: RefCell::new(None),
        })
    }

    /// Returns its state, which is read once.
    pub(crate) fn facts(&self) -> call::Result<&FullStat> {
        if let Some(known) = self.facts.get() {
            return Ok(known);
        }
        let found = meta::stat_all(&self.fd)?;
        Ok(self.facts.get_or_init(|| found))
    }

    /// Returns the claim that an earlier step left here, or else a new one, which stays until it is
    /// [given up](Dir::unlock) or the directory is no longer held.
    pub(crate) fn claim(&self, blocked: &Blocked, cancel: &Cancel) -> Result<Rc<Claim>, Skip> {
        if let Some(claim) = &*self.claim.borrow() {
            return blocked.renew(claim).map(|()| Rc::clone(claim));
        }
        let claim = Rc::new(blocked.claim(self, cancel)?);
        self.claim.replace(Some(Rc::clone(&claim)));
        Ok(claim)
    }

    /// Gives up the claim: others may remove leftovers of killed runs here.
    pub(crate) fn unlock(&self) {
        drop(self.claim.take());
    }
}

impl Deref for Dir {
    type Target = OwnedFd;

    fn deref(&self) -> &OwnedFd {
        &self.fd
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The path of the root of `file` as it was given, the way from there to the directory that has the
/// file, and the file's name. Links are followed in the first and refused in the second. Where the
/// root is not all of the first components, the whole directory counts as named.
pub(crate) fn way(file: &FileRef) -> (&[u8], &[u8], &[u8]) {
    let (parent, name) = split(&file.path);
    let root = file.path.get(..file.root_len).unwrap_or_default();
    match below(parent, root) {
        Some(rest) => (root, rest, name),
        None => (parent, b"", name),
    }
}

/// Opens the directory that holds `file`: its root as given, no links below it.
pub(crate) fn open_parent(file: &FileRef) -> Result<(OwnedFd, CString), Skip> {
    let (root, below, name) = way(file);
    let name = dirfd::name(name)?;
    let root = dirfd::open_root(root)?;
    match below.is_empty() {
        true => Ok((root, name)),
        false => Ok((dirfd::open_below(&root, below)?, name)),
    }
}

/// Number of directories that are held besides the roots'. Duplicates come in the order of their
/// paths where they waste alike, so that the next one is most often in the same; where they do not,
/// no small number helps. A run may have as few as 64 descriptors.
const RECENT: usize = 4;

/// The directories that a run came to last.
pub(crate) struct Parents {
    /// Root of the last file, by the name that it was given, and the time when it was opened.
    root: Option<(Vec<u8>, CheckedAt, Rc<Dir>)>,
    /// By path, and length of the root in it.
    recent: OpenDirs<(Vec<u8>, usize), RecentDir>,
}

struct RecentDir {
    opened: CheckedAt,
    id: Identity,
    dir: Rc<Dir>,
}

impl Default for Parents {
    fn default() -> Parents {
        Parents {
            root: None,
            recent: OpenDirs::new(RECENT),
        }
    }
}

impl Parents {
    /// Returns the directory that holds `file`, its identity, and the file's name: as
    /// [`open_parent`], but from the directories that are held already.
    pub(crate) fn of(&mut self, file: &FileRef) -> Result<(Rc<Dir>, Identity, CString), Skip> {
        let (root, below, name) = way(file);
        let name = dirfd::name(name)?;
        let path = split(&file.path).0;
        let now = CheckedAt::now();
        self.recent.retain(|held| held.opened.is_fresh(now));
        let same = |(held, root_len): &(Vec<u8>, usize)| held == path && *root_len == root.len();
        if let Some(held) = self.recent.find(same) {
            return Ok((Rc::clone(&held.dir), held.id, name));
        }
        let dir = self.open(root, below, now)?;
        let id = dir.facts()?.stat.id;
        let held = RecentDir {
            opened: now,
            id,
            dir: Rc::clone(&dir),
        };
        self.recent.keep((path.to_vec(), root.len()), None, held);
        Ok((dir, id, name))
    }

    fn open(&mut self, root: &[u8], below: &[u8], now: CheckedAt) -> call::Result<Rc<Dir>> {
        let top = match &self.root {
            Some((path, opened, dir)) if path == root && opened.is_fresh(now) => Rc::clone(dir),
            _ => {
                let dir = Dir::new(dirfd::open_root(root)?);
                self.root = Some((root.to_vec(), now, Rc::clone(&dir)));
                dir
            }
        };
        match below.is_empty() {
            true => Ok(top),
            false => Ok(Dir::new(dirfd::open_below(&top, below)?)),
        }
    }

    /// Holds none of them any longer, as far as no file does.
    pub(crate) fn let_go(&mut self) {
        *self = Parents::default();
    }
}

/// Age up to which a result is still relied on: which directory a path leads to, and which metadata
/// a file has. Some hundred small files are processed meanwhile, so that a longer time wins
/// nothing, and one large file is compared as long; it is less than two ticks of the clock for file
/// times.
const RECHECK_AFTER: Duration = Duration::from_millis(20);

/// Time of a check or a change.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct CheckedAt(Instant);

impl CheckedAt {
    /// Returns the time; in tests that of a [clock](clock) that they set: where each call of a run
    /// fails in turn, the number of calls must not depend on the speed of the run.
    pub(crate) fn now() -> CheckedAt {
        #[cfg(not(test))]
        return CheckedAt(Instant::now());
        #[cfg(test)]
        return CheckedAt(clock::now());
    }

    pub(crate) fn since(self, earlier: CheckedAt) -> Duration {
        self.0.saturating_duration_since(earlier.0)
    }

    /// Returns true if a result of that time can still be relied on `now`.
    pub(crate) fn is_fresh(self, now: CheckedAt) -> bool {
        now.since(self) < RECHECK_AFTER
    }
}

/// The clock of each thread of the tests of this crate.
#[cfg(test)]
pub(crate) mod clock {
    use std::cell::Cell;
    use std::sync::OnceLock;
    use std::time::{Duration, Instant};

    static START: OnceLock<Instant> = OnceLock::new();

    thread_local! {
        static PASSED: Cell<Duration> = Cell::default();
        static STEP: Cell<Duration> = Cell::default();
    }

    pub(crate) fn now() -> Instant {
        pass(STEP.get());
        *START.get_or_init(Instant::now) + PASSED.get()
    }

    /// Lets time pass.
    pub(crate) fn pass(time: Duration) {
        PASSED.set(PASSED.get() + time);
    }

    /// Moves the clock on by this much at each reading. Initially it stands still.
    pub(crate) fn pass_each_time(time: Duration) {
        STEP.set(time);
    }
}

/// Places behind bind mounts, as they were when this was made.
#[derive(Debug)]
pub(crate) struct RealPlaces(BindMounts);

impl RealPlaces {
    pub(crate) fn read() -> RealPlaces {
        RealPlaces(BindMounts::read())
    }

    /// The path and a descriptor of the place where a directory is that is seen at `path`; `None`
    /// where that is its own, and where none of the others leads to it now.
    pub(crate) fn of(&self, dir: impl AsFd, path: &[u8]) -> Option<(Vec<u8>, OwnedFd)> {
        found(dir, self.0.places(path))
    }

    /// The same for undo, which is to find the owners that the run saw, and to change files there.
    pub(crate) fn to_undo_at(&self, dir: impl AsFd, path: &[u8]) -> Option<Vec<u8>> {
        found(dir, self.0.places_to_change(path)).map(|(place, _)| place)
    }

    /// The places for undo of what is mounted at or below directories for which this holds.
    pub(crate) fn mounted(&self, holds: impl Fn(&[u8]) -> bool) -> Vec<Vec<u8>> {
        let points = self.0.points().filter(|point| holds(point));
        let place = |point: &[u8]| {
            let seen = dirfd::open_root(b"/").and_then(|top| dirfd::open_below(top, point));
            self.to_undo_at(seen.ok()?, point)
        };
        points.filter_map(place).collect()
    }
}

/// The first of the places that leads to a directory.
fn found(dir: impl AsFd, places: Vec<Vec<u8>>) -> Option<(Vec<u8>, OwnedFd)> {
    if places.is_empty() {
        return None;
    }
    let id = meta::stat(dir).ok()?.id;
    places.into_iter().find_map(|place| {
        let opened = dirfd::open_root(b"/").and_then(|top| dirfd::open_below(top, &place));
        let opened = opened.ok()?;
        (meta::stat(&opened).ok()?.id == id).then_some((place, opened))
    })
}
