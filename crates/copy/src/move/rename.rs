//! The part of a move that renames: whole sources where their names are free, else entry by entry in
//! directories that are on both sides. Nothing is ever renamed over anything. What cannot be renamed
//! into another file system, or meets a name that is taken, is left to the copy: only a rename
//! itself tells which file systems are one (subvolumes, second mounts, layers, quotas of projects
//! are not), never numbers of devices.

use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::Ordering::Relaxed;

use bc_edit::metadata::{set_times_at, times_of};
use bc_edit::names::{Temporary, temporary};
use bc_edit::{content, entry};
use bc_fs::Escaped;
use bc_fs::call::{FailedCall, call};
use bc_fs::caller::{FixedName, check_name};
use bc_fs::dirfd;
use bc_fs::known::now_ns;
use bc_fs::mount::mount_number;
use bc_pool::Cancel;
use bc_walk::job::Error;
use bc_walk::{FileKind, Identity};
use rustix::fs::RawDir;
use rustix::io::Errno;

use crate::destination::{Source, Top, dir_and_name};
use crate::error::system_error;
use crate::event::{CopyProgress, Event, Observer};
use crate::meta::{fstat, stat, stat_at};
use crate::options::{CopyOptions, ManifestPlace};
use crate::resume::journal::Log;
use crate::resume::orphans::is_old;
use crate::resume::record;
use crate::sources::shown_below;

/// Sources that are left to the copy, and their names below the top.
#[derive(Default)]
pub(super) struct NotRenamed {
    pub(super) sources: Vec<Source>,
    pub(super) names: Vec<Vec<u8>>,
}

/// Fate of one entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum RenameFate {
    Renamed,
    /// It is a directory on both sides.
    Merges,
    /// It is for the copy, which decides about names that are taken.
    IsCopied,
}

/// An entry, and the name that it is to have.
struct RenamedEntry<'e> {
    from: &'e OwnedFd,
    name: &'e [u8],
    to: &'e OwnedFd,
    new_name: &'e [u8],
}

/// Renames what can be renamed.
pub(super) struct Renamer<'a> {
    options: &'a CopyOptions,
    top: &'a Top,
    cancel: &'a Cancel,
    progress: &'a CopyProgress,
    observer: &'a Observer<'a>,
    pub(super) renamed: u64,
    pub(super) failed: u64,
    /// Entries of the source at hand that were refused: a pass that ended early, for want of a journal,
    /// has reported and counted them, and the next one does not try them again.
    pub(super) refused: HashSet<Vec<u8>>,
    /// Entries that stay because others were refused.
    pub(super) kept: u64,
    /// Entries of the source at hand that are left to the copy.
    waiting: u64,
    /// True if an entry can only be given its new name by a link, and there is no journal yet that
    /// says so.
    pub(super) needs_journal: bool,
    /// True if any entry is to go to another file system.
    pub(super) crosses: bool,
    /// Targets that a dry run foresees to be renamed, in directories that are merged.
    pub(super) foreseen: HashSet<Vec<u8>>,
}

impl<'a> Renamer<'a> {
    pub(super) fn new(
        options: &'a CopyOptions,
        top: &'a Top,
        cancel: &'a Cancel,
        progress: &'a CopyProgress,
        observer: &'a Observer<'a>,
    ) -> Renamer<'a> {
        Renamer {
            options,
            top,
            cancel,
            progress,
            observer,
            renamed: 0,
            failed: 0,
            refused: HashSet::new(),
            kept: 0,
            waiting: 0,
            needs_journal: false,
            crosses: false,
            foreseen: HashSet::new(),
        }
    }

    /// Renames what it can of all sources, and returns those of which something is left. `log`: the
    /// journal; `None` before it is looked for: nothing is renamed then that needs one.
    pub(super) fn go(
        &mut self,
        sources: Vec<Source>,
        log: Option<&Log>,
    ) -> Result<NotRenamed, Error> {
        let mut rest = NotRenamed::default();
        let names = self.top.names.clone();
        for (source, name) in sources.into_iter().zip(names) {
            if self.cancel.is_cancelled() || !self.source(&source, &name, log)? {
                rest.sources.push(source);
                rest.names.push(name);
            }
            if !self.needs_journal {
                self.refused.clear();
            }
        }
        Ok(rest)
    }

    /// Returns true if nothing of a source is left to the copy.
    fn source(&mut self, source: &Source, name: &[u8], log: Option<&Log>) -> Result<bool, Error> {
        let path = source.path.as_bytes();
        let (dir, own_name) = dir_and_name(path);
        let own_name = own_name.unwrap_or_default();
        let from = match dirfd::open_root(dir) {
            Ok(from) => from,
            Err(failed) => {
                // Others may have been renamed by now.
                self.fail(path.to_vec(), failed);
                return Ok(true);
            }
        };
        let is_listed = matches!(self.options.manifest, ManifestPlace::File(_));
        if self.options.walk.leaves_out() || is_listed {
            // What is left out stays, and what is to be in a manifest is read, so that no directory
            // goes as a whole.
            self.crosses |= !is_one_mount(&from, &self.top.fd);
            return Ok(false);
        }
        let fate = match name.is_empty() {
            // Its content goes into the top itself.
            true => Ok(RenameFate::Merges),
            false => {
                self.announce(source, log);
                let top = self.top;
                let entry = RenamedEntry {
                    from: &from,
                    name: own_name,
                    to: &top.fd,
                    new_name: name,
                };
                self.rename(&entry, name, log)
            }
        };
        match fate {
            Ok(RenameFate::Renamed) => {
                self.done(name);
                if !self.options.dry_run {
                    self.sync(path, [&self.top.fd, &from]);
                }
                Ok(true)
            }
            Ok(RenameFate::IsCopied) => Ok(false),
            Ok(RenameFate::Merges) => {
                let failed_before = self.failed;
                let was_refused = !self.refused.is_empty();
                self.waiting = 0;
                self.merge(&from, own_name, path, name, log)?;
                // What a rename is refused is not copied instead: its source could not go. Entries that
                // were not looked at yet, for want of a journal, may go.
                let is_refused =
                    (was_refused || self.failed > failed_before) && !self.needs_journal;
                if is_refused {
                    self.kept += self.waiting;
                    let text = format!(
                        "{}: what could not be renamed, and what has a name that is taken, stays \
                         until the errors are seen to",
                        Escaped(path)
                    );
                    (self.observer)(Event::Warning(&text));
                }
                Ok(is_refused)
            }
            Err(failed) => {
                self.fail(path.to_vec(), failed);
                Ok(true)
            }
        }
    }

    /// Records a source that may be gone when another run looks for it.
    fn announce(&self, source: &Source, log: Option<&Log>) {
        let Some(log) = log.filter(|log| log.is_kept()) else {
            return;
        };
        let mut piece = Vec::new();
        record::push_renamed(&mut piece, source.number as u64, source.stat.id);
        // Without a record a later run takes the source for one that is missing.
        let _ = log.append(&mut piece);
    }

    /// Renames the entries of a source that is a directory on both sides.
    fn merge(
        &mut self,
        from: &OwnedFd,
        own_name: &[u8],
        path: &[u8],
        name: &[u8],
        log: Option<&Log>,
    ) -> Result<(), Error> {
        let failed = |failed: FailedCall| system_error(path, failed.op, failed);
        let source = dirfd::open_below(from, own_name).map_err(failed)?;
        let target = dirfd::open_below(&self.top.fd, name).map_err(failed)?;
        let mut pending = vec![Vec::new()];
        while let Some(below) = pending.pop() {
            if self.cancel.is_cancelled() || self.needs_journal {
                break;
            }
            let shown = shown_below(path, &below);
            if self.refused.contains(&shown) {
                continue;
            }
            let opened = dirfd::open_below(&source, &below)
                .and_then(|from| Ok((from, dirfd::open_below(&target, &below)?)));
            let (from, to) = match opened {
                Ok(opened) => opened,
                Err(failed) => {
                    self.fail(shown, failed);
                    continue;
                }
            };
            let merged = self.merge_one(&from, &to, &shown, &shown_below(name, &below), log);
            match merged {
                Ok(further) => {
                    pending.extend(further.into_iter().map(|one| shown_below(&below, &one)))
                }
                Err(failed) => self.fail(shown, failed),
            }
        }
        Ok(())
    }

    /// Renames the entries of one directory; returns the names of those that are directories on both
    /// sides.
    fn merge_one(
        &mut self,
        from: &OwnedFd,
        to: &OwnedFd,
        path: &[u8],
        target: &[u8],
        log: Option<&Log>,
    ) -> Result<Vec<Vec<u8>>, FailedCall> {
        let before = fstat(from).map_err(|errno| FailedCall { op: "stat", errno })?;
        let mut further = Vec::new();
        let mut renamed = false;
        for name in names(from)? {
            if self.cancel.is_cancelled() || self.needs_journal {
                break;
            }
            if !self.refused.is_empty()
                && self.refused.contains(&shown_below(path, name.as_bytes()))
            {
                continue;
            }
            let new = shown_below(target, name.as_bytes());
            let fate = match is_at_work(from, &name) {
                true => Err(FailedCall {
                    op: "rename",
                    errno: Errno::BUSY,
                }),
                false => {
                    let entry = RenamedEntry {
                        from,
                        name: name.as_bytes(),
                        to,
                        new_name: name.as_bytes(),
                    };
                    self.rename(&entry, &new, log)
                }
            };
            match fate {
                Ok(RenameFate::Renamed) => {
                    renamed = true;
                    self.done(&new);
                    if self.options.dry_run {
                        self.foreseen.insert(new);
                    }
                }
                Ok(RenameFate::Merges) => further.push(name.into_bytes()),
                Ok(RenameFate::IsCopied) => self.waiting += 1,
                Err(failed) => self.fail(shown_below(path, name.as_bytes()), failed),
            }
        }
        if renamed && !self.options.dry_run {
            self.sync(path, [to, from]);
            // The directory itself is still to be taken over, with the time that it had.
            let _ = set_times_at(from, c".", &times_of(&before));
        }
        Ok(further)
    }

    /// Renames one entry; `target` is its path below the top then.
    fn rename(
        &mut self,
        entry: &RenamedEntry<'_>,
        target: &[u8],
        log: Option<&Log>,
    ) -> Result<RenameFate, FailedCall> {
        let RenamedEntry {
            from,
            name,
            to,
            new_name,
        } = *entry;
        let renamed = match self.options.dry_run {
            true => foreseen(entry),
            false => {
                let needs_journal = &mut self.needs_journal;
                entry::rename_or_link(from, name, to, new_name, || {
                    let recorded = record_link(entry, target, log);
                    *needs_journal = recorded.is_err_and(|failed| failed.errno == Errno::AGAIN);
                    recorded
                })
            }
        };
        match renamed {
            Ok(()) => Ok(RenameFate::Renamed),
            Err(_) if self.needs_journal => Ok(RenameFate::IsCopied),
            Err(failed) if failed.errno == Errno::XDEV => {
                self.crosses = true;
                Ok(RenameFate::IsCopied)
            }
            Err(failed) if failed.errno == Errno::EXIST => {
                let dir = |dir: &OwnedFd, name: &[u8]| -> Option<Identity> {
                    let there = stat_at(dir, name).ok()?;
                    (there.kind() == FileKind::Dir).then_some(there.id)
                };
                Ok(match (dir(from, name), dir(to, new_name)) {
                    (Some(one), Some(other)) if one != other => RenameFate::Merges,
                    _ => RenameFate::IsCopied,
                })
            }
            Err(failed) => Err(failed),
        }
    }

    /// Forces what was renamed from one directory to another to the disk. It is renamed in any case,
    /// so that a failure is a warning. `path`: what was renamed, or was in it.
    fn sync(&self, path: &[u8], dirs: [&OwnedFd; 2]) {
        let one = |dir: &OwnedFd, other: &OwnedFd| match content::sync_dir(dir) {
            // It may be written to and not read: their file system is one.
            Err(failed) if matches!(failed.errno, Errno::ACCESS | Errno::PERM) => {
                let other = dirfd::relist(other).map_err(|_| failed)?;
                call("syncfs", || rustix::fs::syncfs(&other))
            }
            synced => synced,
        };
        let [to, from] = dirs;
        if let Err(failed) = one(to, from).and_then(|()| one(from, to)) {
            let text = format!(
                "{}: renamed, but not forced to the disk: {failed}",
                Escaped(path)
            );
            (self.observer)(Event::Warning(&text));
        }
    }

    fn done(&mut self, target: &[u8]) {
        self.renamed += 1;
        self.progress.files.fetch_add(1, Relaxed);
        let shown = shown_below(&self.top.path, target);
        (self.observer)(Event::Copied(&shown));
    }

    fn fail(&mut self, path: Vec<u8>, failed: FailedCall) {
        self.failed += 1;
        let error = bc_walk::Error::new(path.clone(), failed.op, failed);
        (self.observer)(Event::Failed(&error));
        self.refused.insert(path);
    }
}

/// Records that a source is about to have a second name, which it would keep if the run were killed
/// before the first one goes. A directory has no second name, and one that is taken is none of the
/// move's.
fn record_link(
    entry: &RenamedEntry<'_>,
    target: &[u8],
    log: Option<&Log>,
) -> Result<(), FailedCall> {
    let failed = |errno| FailedCall {
        op: "rename",
        errno,
    };
    if stat_at(entry.from, entry.name).is_ok_and(|own| own.kind() == FileKind::Dir) {
        return Ok(());
    }
    match (stat_at(entry.to, entry.new_name), log) {
        (Err(Errno::NOENT), Some(log)) => {
            let mut piece = Vec::new();
            record::push_begun(&mut piece, target);
            // Without a record the next run does not take the two names for its own work.
            let _ = log.append(&mut piece);
            Ok(())
        }
        (Err(Errno::NOENT), None) => Err(failed(Errno::AGAIN)),
        (Ok(_), _) => Err(failed(Errno::EXIST)),
        (Err(errno), _) => Err(failed(errno)),
    }
}

/// Returns what a rename would, as far as that can be known without one.
fn foreseen(entry: &RenamedEntry<'_>) -> Result<(), FailedCall> {
    let failed = |errno| {
        Err(FailedCall {
            op: "rename",
            errno,
        })
    };
    if !is_one_mount(entry.from, entry.to) {
        return failed(Errno::XDEV);
    }
    match stat_at(entry.to, entry.new_name) {
        Ok(_) => failed(Errno::EXIST),
        Err(Errno::NOENT) => {
            dirfd::may_change(entry.from)?;
            dirfd::may_change(entry.to)?;
            check_name(entry.from, entry.name).map_err(FixedName::failed)
        }
        Err(errno) => Err(FailedCall { op: "stat", errno }),
    }
}

/// True if two directories are seen through the same mount, of the same device: an entry of one can
/// most likely be renamed into the other.
pub(super) fn is_one_mount(one: &OwnedFd, other: &OwnedFd) -> bool {
    let dev = |dir: &OwnedFd| stat(dir).map(|stat| stat.id.dev).ok();
    mount_number(one) == mount_number(other) && dev(one) == dev(other)
}

/// True for the temporary name of a copy or move that may be at work: such a file is young, or
/// written to. It is not to lose its name to this move.
fn is_at_work(dir: &OwnedFd, name: &CStr) -> bool {
    let known = temporary(name.to_bytes());
    if !matches!(known, Some(Temporary::Stage | Temporary::Aside)) {
        return false;
    }
    let there = stat_at(dir, name);
    !there.is_ok_and(|there| is_old(0, there.stamp.ctime_ns, now_ns()))
}

/// Bytes of names that are read at once.
const PIECE: usize = 32 << 10;

/// Returns the names in a directory, in order.
fn names(dir: impl AsFd) -> Result<Vec<CString>, FailedCall> {
    let listed = dirfd::relist(dir)?;
    let mut piece = vec![MaybeUninit::uninit(); PIECE];
    let mut entries = RawDir::new(&listed, &mut piece);
    let mut names = Vec::new();
    while let Some(entry) = entries.next() {
        let failed = |errno| FailedCall {
            op: "read directory",
            errno,
        };
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        if !matches!(name.to_bytes(), b"." | b"..") {
            names.push(name.to_owned());
        }
    }
    names.sort_unstable();
    Ok(names)
}
