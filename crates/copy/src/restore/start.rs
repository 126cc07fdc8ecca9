//! Preparation of a repair: the tree is held open, and verified with all its guards.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use bc_fs::dirfd;
use bc_fs::mount::{MountEntry, TABLE, entries};
use bc_integrity::compare::{Detail, Renames};
use bc_integrity::fields::{CompareMode, CompareRules, Fields};
use bc_integrity::{
    Job, MissingMounts, Reading, RootCheck, Trust, Verified, VerifyOptions, Work, verify,
};
use bc_walk::job::{Error, ErrorKind, Setting};
use bc_walk::{FileKind, FileStat, OwnFile};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, CWD};
use rustix::io::Errno;

use super::needs::Collector;
use super::options::RestoreOptions;
use crate::destination::dir_and_name;
use crate::error::{error_at, system_error, usage_at};
use crate::meta::stat;

/// The tree, or the directory of the file that is all of it.
pub(super) struct RestoreRoot {
    pub(super) fd: OwnedFd,
    pub(super) path: Vec<u8>,
    mounts: Option<MountsBelow>,
}

/// Mounts at and below the root before it was verified.
struct MountsBelow {
    /// The kernel's table, which reports when it changes.
    table: File,
    root: PathBuf,
    then: Vec<MountEntry>,
    changed: AtomicBool,
}

impl MountsBelow {
    /// Reads the mounts; `None` without `/proc`.
    fn read(root: &[u8]) -> Option<MountsBelow> {
        let root = Path::new(OsStr::from_bytes(if root.is_empty() { b"." } else { root }));
        let mut mounts = MountsBelow {
            // It reports changes from here on.
            table: File::open(TABLE).ok()?,
            root: root.canonicalize().ok()?,
            then: Vec::new(),
            changed: AtomicBool::new(false),
        };
        mounts.then = mounts.now()?;
        Some(mounts)
    }

    fn now(&self) -> Option<Vec<MountEntry>> {
        let mut all = entries()?;
        let is_below =
            |mount: &MountEntry| Path::new(OsStr::from_bytes(&mount.point)).starts_with(&self.root);
        all.retain(is_below);
        // One that is made read-only leads where it did.
        all.iter_mut().for_each(|mount| mount.read_only = false);
        Some(all)
    }

    /// True if the mounts have changed. Called by one thread at a time: a change is reported once.
    fn have_changed(&self) -> bool {
        let table = &mut [PollFd::new(&self.table, PollFlags::PRI)];
        let asked = poll(table, Some(&Timespec::default()));
        if asked.is_err() || !table[0].revents().is_empty() {
            let same = self.now().is_some_and(|now| self.are_as_they_were(&now));
            self.changed.store(!same, Relaxed);
        }
        self.changed.load(Relaxed)
    }

    /// True if the mounts are the same. A mount that an automount makes at its first use is no
    /// change.
    fn are_as_they_were(&self, now: &[MountEntry]) -> bool {
        let automounts: HashSet<&[u8]> = self
            .then
            .iter()
            .chain(now)
            .filter(|mount| mount.kind == b"autofs")
            .map(|mount| &mount.point[..])
            .collect();
        let counts = |mount: &&MountEntry| !automounts.contains(&mount.point[..]);
        let then = self.then.iter().filter(counts);
        then.eq(now.iter().filter(counts))
    }
}

impl RestoreRoot {
    pub(super) fn open(root: &[u8]) -> Result<RestoreRoot, Error> {
        let failed = |op| move |errno: Errno| system_error(root, op, errno);
        let stat = rustix::fs::statat(CWD, root, AtFlags::empty());
        let stat = FileStat::from(&stat.map_err(failed("stat"))?);
        let path = match stat.kind() {
            FileKind::Dir => root,
            _ => dir_and_name(root).0,
        };
        let mounts = MountsBelow::read(path);
        let fd = dirfd::open_root(path)
            .map_err(Errno::from)
            .map_err(failed("open"))?;
        let path = path.to_vec();
        Ok(RestoreRoot { fd, path, mounts })
    }

    /// True if something was mounted or unmounted at or below it since it was opened: what verify
    /// saw there may lie below another path by now, or below none. Asked by one thread at a time.
    pub(super) fn is_mounted_otherwise(&self) -> bool {
        self.mounts.as_ref().is_some_and(MountsBelow::have_changed)
    }

    /// Refuses the root if another file system was mounted over it since it was opened.
    pub(super) fn refuse_another(&self) -> Result<(), Error> {
        let failed = |op| move |errno: Errno| system_error(&self.path, op, errno);
        let again = dirfd::open_root(&self.path)
            .map_err(Errno::from)
            .map_err(failed("open"))?;
        let id = |fd: &OwnedFd| stat(fd).map(|stat| stat.id);
        match id(&again).map_err(failed("stat"))? == id(&self.fd).map_err(failed("stat"))? {
            true if self.is_mounted_otherwise() => Err(usage_at(
                &self.path,
                "something was mounted or unmounted there while it was verified",
            )),
            true => Ok(()),
            false => Err(usage_at(
                &self.path,
                "is another directory than it was when it was verified",
            )),
        }
    }
}

/// Refuses a tree that has nothing of what is recorded: it is another one, or its disk is not
/// mounted, and it would be filled with foreign files. A user who has lost all of it has to confirm
/// that.
pub(super) fn refuse_another_tree(
    options: &RestoreOptions<'_>,
    collected: &Collector<'_>,
) -> Result<(), Error> {
    if options.root_check == RootCheck::Forced || !collected.lost_all(options.manifest)? {
        return Ok(());
    }
    let message = "nothing of what the manifest lists is found there: another directory, or not \
                   mounted?";
    let root = options.root.as_bytes();
    let error = error_at(ErrorKind::Refused, root, message);
    Err(error.unless(Some(Setting::Force)))
}

/// Verifies the tree, and remembers how it was read.
pub(super) fn look(
    options: &RestoreOptions<'_>,
    work: &Work<'_>,
    own: Option<OwnFile>,
    collected: &mut Collector<'_>,
) -> Result<(Verified, Reading), Error> {
    let leave_out: Vec<OwnFile> = options.leave_out.iter().cloned().chain(own).collect();
    let what = VerifyOptions::new(options.root, options.manifest)
        // All fields, so that the present state is known: the file may be gone or changed when its
        // turn comes.
        .rules(CompareRules::new(CompareMode::Strict, Fields::NONE))
        .detail(Detail::Changes)
        // What moved along with its directory is not lost.
        .renames(Renames::Directories)
        .trust(Trust::Checked)
        .root_check(options.root_check)
        // It would be filled with foreign files.
        .missing_mounts(MissingMounts::Refuse)
        .leave_out(&leave_out);
    let asked: Mutex<Option<Reading>> = Mutex::new(None);
    let reading = |job: Job| -> Result<Reading, String> {
        let reading = (work.reading)(job)?;
        if let Ok(mut asked) = asked.lock() {
            *asked = Some(reading.clone());
        }
        Ok(reading)
    };
    let own = Work::new(work.walk_workers, &reading, work.cancel, work.progress)
        .cpu(work.cpu)
        .shows_bytes(work.shows_bytes)
        .observer(work.observer);
    let verified = verify(&what, &own, &mut |change| {
        if work.cancel.is_cancelled() {
            return Err(std::io::Error::other("cancelled"));
        }
        collected.take(change);
        Ok(())
    })?;
    let reading = asked
        .into_inner()
        .ok()
        .flatten()
        .unwrap_or_else(|| Reading::new(1));
    Ok((verified, reading))
}
