//! Directories on the way: missing ones are made, and get their recorded metadata last; existing
//! ones get their times back, where these were as recorded.

use std::collections::{HashMap, HashSet};
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bc_fs::metadata::Subject;
use bc_manifest::integrity::{Entry, ROOT};
use bc_walk::FileStat;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, Timestamps};
use rustix::io::{Errno, retry_on_intr};

use super::Restore;
use super::needs::above;
use super::put::look;
use crate::beneath::{DestDir, own_path};
use crate::meta::{self, Wanted, fstat};
use crate::tree::parts;

/// Directories that files are put into.
pub(super) struct Dirs {
    records: HashMap<Vec<u8>, Entry>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Made directories in the order in which they were made: parents before children.
    made: Vec<Vec<u8>>,
    /// Times to put back, by path.
    times: HashMap<Vec<u8>, Option<Timestamps>>,
}

impl Dirs {
    pub(super) fn new(records: HashMap<Vec<u8>, Entry>) -> Dirs {
        Dirs {
            records,
            state: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, path: &[u8]) -> Option<&Entry> {
        self.records.get(if path.is_empty() { ROOT } else { path })
    }

    /// Opens a directory to put something into, and makes it if it is missing.
    pub(super) fn open(&self, restore: &Restore<'_>, path: &[u8]) -> Result<DestDir, Errno> {
        let top = restore.top.fd.as_fd();
        let mut state = self.lock();
        let dir = match DestDir::open(top, path) {
            Err(Errno::NOENT) => {
                for dir in above(path).chain([path]) {
                    self.make(restore, &mut state, dir)?;
                }
                DestDir::open(top, path)?
            }
            opened => opened?,
        };
        self.note(&mut state, path, &dir)?;
        Ok(dir)
    }

    fn make(&self, restore: &Restore<'_>, state: &mut State, path: &[u8]) -> Result<(), Errno> {
        let (parent, name) = parts(path);
        let parent_dir = DestDir::open(restore.top.fd.as_fd(), parent)?;
        match look(parent_dir.fd.as_fd(), name) {
            Err(Errno::NOENT) => {}
            found => return found.map(drop),
        }
        self.note(state, parent, &parent_dir)?;
        let recorded = self.record(path).and_then(|entry| entry.meta);
        let bits = recorded.filter(|_| restore.trusts);
        let mode = parent_dir.mode_of_new_dir(bits.map_or(0, |meta| meta.mode));
        match retry_on_intr(|| rustix::fs::mkdirat(&parent_dir.fd, name, mode)) {
            Ok(()) => state.made.push(path.to_vec()),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        Ok(())
    }

    /// Remembers the times of a directory before anything is put into it.
    fn note(&self, state: &mut State, path: &[u8], dir: &DestDir) -> Result<(), Errno> {
        if state.times.contains_key(path) {
            return Ok(());
        }
        let stat = fstat(&dir.fd)?;
        let now = FileStat::from(&stat).stamp.mtime_ns;
        let recorded = self.record(path).and_then(|entry| entry.meta);
        let fits = recorded.is_some_and(|meta| meta.mtime_ns == now);
        let times = fits.then(|| Wanted::new(&stat, Vec::new()).times().clone());
        state.times.insert(path.to_vec(), times);
        Ok(())
    }

    /// Checks whether a file could be put at a path, as far as possible without trying.
    pub(super) fn may_put(&self, restore: &Restore<'_>, path: &[u8]) -> Result<(), Errno> {
        let top = restore.top.fd.as_fd();
        let ways: Vec<&[u8]> = std::iter::once(&b""[..]).chain(above(path)).collect();
        for way in ways.into_iter().rev() {
            let dir = match DestDir::open(top, way) {
                Err(Errno::NOENT) => continue,
                opened => opened?,
            };
            let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
            return rustix::fs::accessat(&dir.fd, c".", access, AtFlags::EACCESS);
        }
        Err(Errno::NOENT)
    }

    /// Gives new directories their recorded metadata, and the others their times.
    pub(super) fn finish(&self, restore: &Restore<'_>) {
        let state = std::mem::take(&mut *self.lock());
        for path in state.made.iter().rev() {
            if let Err(errno) = self.finish_made(restore, path) {
                restore.incomplete(path, "open", errno);
            }
        }
        let made: HashSet<&Vec<u8>> = state.made.iter().collect();
        for (path, times) in &state.times {
            let Some(times) = times.as_ref().filter(|_| !made.contains(path)) else {
                continue;
            };
            let put_back = || {
                let dir = DestDir::open(restore.top.fd.as_fd(), path)?;
                rustix::fs::utimensat(CWD, own_path(&dir.fd), times, AtFlags::empty())
            };
            if let Err(errno) = put_back() {
                restore.incomplete(path, "utimens", errno);
            }
        }
    }

    fn finish_made(&self, restore: &Restore<'_>, path: &[u8]) -> Result<(), Errno> {
        let (parent, name) = parts(path);
        let parent = DestDir::open(restore.top.fd.as_fd(), parent)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = || rustix::fs::openat(&parent.fd, name, flags, Mode::empty());
        let dir = retry_on_intr(open)?;
        let (wanted, giving) = restore.recorded(self.record(path), None, 0o777);
        let mut lost = Vec::new();
        let subject = Subject::open(dir.as_fd());
        meta::give(&subject, &wanted, &giving, parent.gives_acl, &mut lost);
        restore.lost(path, &mut lost);
        Ok(())
    }
}
