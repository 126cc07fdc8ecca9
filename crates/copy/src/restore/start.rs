//! Preparation of a repair: the tree is held open, and verified with all its guards.

use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::Mutex;

use bc_integrity::compare::Detail;
use bc_integrity::fields::{CompareMode, CompareRules, Fields};
use bc_integrity::{
    Job, MissingMounts, Reading, RootCheck, Setting, Trust, Verified, VerifyOptions, Work, verify,
};
use bc_walk::{FileKind, FileStat, OwnFile};
use rustix::fs::{AtFlags, CWD};
use rustix::io::Errno;

use super::needs::Collector;
use super::options::{RestoreError, RestoreOptions};
use crate::beneath::open_named;
use crate::error::{Error, ErrorKind};
use crate::meta::fstat;
use crate::target::split;

/// The tree, or the directory of the file that is all of it.
pub(super) struct Top {
    pub(super) fd: OwnedFd,
    pub(super) path: Vec<u8>,
}

impl Top {
    pub(super) fn open(root: &[u8]) -> Result<Top, Error> {
        let failed = |op| move |errno: Errno| Error::system(root, op, errno);
        let stat = rustix::fs::statat(CWD, root, AtFlags::empty());
        let stat = FileStat::from(&stat.map_err(failed("stat"))?);
        let path = match stat.kind() {
            FileKind::Dir => root,
            _ => split(root).0,
        };
        let fd = open_named(path).map_err(failed("open"))?;
        let path = path.to_vec();
        Ok(Top { fd, path })
    }

    /// Refuses the root if another file system was mounted over it since it was opened.
    pub(super) fn refuse_another(&self) -> Result<(), Error> {
        let failed = |op| move |errno: Errno| Error::system(&self.path, op, errno);
        let again = open_named(&self.path).map_err(failed("open"))?;
        let id = |fd: &OwnedFd| fstat(fd).map(|stat| FileStat::from(&stat).id);
        match id(&again).map_err(failed("stat"))? == id(&self.fd).map_err(failed("stat"))? {
            true => Ok(()),
            false => Err(Error::usage_at(
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
) -> Result<(), RestoreError> {
    if options.root_check == RootCheck::Forced || !collected.lost_all(options.manifest)? {
        return Ok(());
    }
    let message = "nothing of what the manifest lists is found there: another directory, or not \
                   mounted?";
    let root = options.root.as_bytes();
    let error = Error::at(ErrorKind::Refused, root, message);
    Err(error.unless(Setting::Force).into())
}

/// Verifies the tree, and remembers how it was read.
pub(super) fn look(
    options: &RestoreOptions<'_>,
    work: &Work<'_>,
    own: Option<OwnFile>,
    collected: &mut Collector<'_>,
) -> Result<(Verified, Reading), bc_integrity::Error> {
    let leave_out: Vec<OwnFile> = options.leave_out.iter().cloned().chain(own).collect();
    let what = VerifyOptions::new(options.root, options.manifest)
        // All fields, so that the present state is known: the file may be gone or changed when its
        // turn comes.
        .rules(CompareRules::new(CompareMode::Strict, Fields::NONE))
        .detail(Detail::Changes)
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
