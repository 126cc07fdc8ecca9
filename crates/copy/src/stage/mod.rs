//! Stages: files that a copy is made in before it gets its name.
//!
//! A stage has a name that no other process can know, made of the job's random number, of the
//! directory and of the name that the copy will have: a resumed run finds it again, and no other
//! run's stage is ever taken for it.

pub(crate) mod complete;
pub(crate) mod named;
pub(crate) mod publish;
pub(crate) mod put;

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use bc_digest::{Algorithm, hash};
use bc_edit::journal::{FLAGS, check};
use bc_edit::made::{self, Thing};
use bc_edit::metadata::{FileMetadata, Subject};
use bc_edit::names::{self, Temporary};
use bc_edit::{content, entry};
use bc_fs::call::FailedCall;
use bc_fs::known::file_clock;
use bc_walk::{Error, FileKind, FileStat, Stamp};
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use crate::meta::{self, Giving, LostMeta, stat_at};
use crate::place::DestDir;

/// True if that is the name of a stage: a name in a journal is checked before it is used as one.
pub(crate) fn is_stage(name: &[u8]) -> bool {
    names::temporary(name) == Some(Temporary::Stage)
}

/// Random number that distinguishes the stages of a job from all others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobId(pub(crate) [u8; 16]);

impl JobId {
    /// Returns the name of the stage for `target`, a path below the top that ends in `dir`. A stage
    /// that can be resumed from belongs to one state of one source. Where two paths lead to one
    /// name, because a directory is mounted twice or case does not count, each has a stage of its
    /// own.
    pub(crate) fn stage(&self, dir: &DestDir, target: &[u8], version: Option<&FileStat>) -> String {
        let mut key = Vec::with_capacity(96 + target.len());
        key.extend_from_slice(&self.0);
        let mut number = |number: u64| key.extend_from_slice(&number.to_le_bytes());
        // Numbers of devices change from boot to boot.
        number(dir.id.ino);
        if let Some(FileStat { id, stamp, .. }) = version {
            let Stamp {
                size,
                mtime_ns,
                ctime_ns,
            } = *stamp;
            for part in [id.ino, size, mtime_ns as u64, ctime_ns as u64] {
                number(part);
            }
        }
        key.extend_from_slice(target);
        let digest = hash(Algorithm::Blake3, &key);
        let mut start = [0; 8];
        start.copy_from_slice(&digest.as_bytes()[..8]);
        names::stage(start)
    }
}

/// True if a path ends in a name that stages have.
pub(crate) fn is_named_so(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    is_stage(name)
}

/// Content of a stage when it was opened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum StageContent {
    /// It is new.
    New,
    /// Something: an earlier run made it.
    Something,
}

/// An open stage.
pub(crate) struct Stage {
    pub(crate) file: File,
    /// Empty if it has none.
    pub(crate) name: String,
    pub(crate) before: StageContent,
    /// The permission bits that it was made with, if they are those of the copy.
    pub(crate) made_with: Option<u32>,
}

/// Reason for which there is no stage.
#[derive(Debug)]
pub(crate) enum NoStage {
    /// The system refuses it.
    System(Errno),
    /// The file with its name is not ours; with the reason.
    Foreign(String),
}

impl From<Errno> for NoStage {
    fn from(errno: Errno) -> NoStage {
        NoStage::System(errno)
    }
}

/// Use of the content that an earlier run has put into a stage.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StageUse<'a> {
    /// None: the stage is made again.
    Fresh,
    /// None, and the stage is made with these permission bits, which are those of the copy.
    FreshWith(u32),
    /// Kept, unless a user can have written to it who may not write to a copy of this source.
    Kept(&'a FileStat),
}

/// Opens the stage of that name, or makes it.
pub(crate) fn open(dir: &DestDir, name: String, content: StageUse<'_>) -> Result<Stage, NoStage> {
    let made_with = match content {
        StageUse::FreshWith(mode) => Some(mode),
        StageUse::Fresh | StageUse::Kept(_) => None,
    };
    match create(dir, &name, made_with) {
        Err(Errno::EXIST) => {}
        made => {
            return Ok(Stage {
                file: made?,
                name,
                before: StageContent::New,
                made_with,
            });
        }
    }
    refuse_foreign(dir.fd.as_fd(), &name)?;
    if let StageUse::Kept(source) = content
        && let Some(file) = kept(dir, &name, source)
    {
        return Ok(Stage {
            file,
            name,
            before: StageContent::Something,
            made_with: None,
        });
    }
    // A killed run may have given it owner and mode of its source already.
    remove(dir.fd.as_fd(), &name);
    Ok(Stage {
        file: create(dir, &name, made_with)?,
        name,
        before: StageContent::New,
        made_with,
    })
}

fn create(dir: &DestDir, name: &str, mode: Option<u32>) -> Result<File, Errno> {
    let created = content::create(&dir.fd, name, mode.unwrap_or(0o600));
    Ok(created.map(File::from)?)
}

/// Refuses a file with the name of a stage unless it can be a stage that this user made.
pub(crate) fn refuse_foreign(dir: BorrowedFd<'_>, name: &str) -> Result<(), NoStage> {
    let stat = stat_at(dir, name)?;
    let foreign = |why: &str| Err(NoStage::Foreign(why.to_owned()));
    let own = rustix::process::geteuid();
    match stat.kind() {
        FileKind::Dir => foreign("a directory"),
        _ if stat.nlink != 1 => foreign("has several names"),
        // Root gives stages away before they have their names.
        _ if stat.uid != own.as_raw() && !own.is_root() => foreign("belongs to another user"),
        _ => Ok(()),
    }
}

/// Opens an earlier run's stage, if no other user can have written to it.
fn kept(dir: &DestDir, name: &str, source: &FileStat) -> Option<File> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | FLAGS;
    let opened = retry_on_intr(|| rustix::fs::openat(&dir.fd, name, flags, Mode::empty()));
    let file = File::from(opened.ok()?);
    let meta = file.metadata().ok()?;
    let ours = check(&file).is_ok_and(|ours| ours.is_ok());
    if !ours {
        // A run that was killed just before the renaming had given it owner and mode of its source:
        // users who may write to it then may write to the copy, too.
        let (own, uid) = (rustix::process::geteuid(), meta.uid());
        let others = meta.mode() & 0o022 & !source.mode;
        let is_given = (uid == own.as_raw() || uid == source.uid) && others == 0;
        if !meta.is_file() || !is_given {
            return None;
        }
        // Until it has its name it is ours.
        let subject = Subject::open(file.as_fd());
        let group = rustix::process::getegid();
        subject.chown(Some(own), Some(group)).ok()?;
        subject.chmod(Mode::from_raw_mode(0o600)).ok()?;
    }
    (meta.nlink() == 1).then_some(file)
}

impl Stage {
    /// Makes a stage that no name leads to: it is gone when it is closed.
    pub(crate) fn unnamed(file: File, mode: u32) -> Stage {
        Stage {
            file,
            name: String::new(),
            before: StageContent::New,
            made_with: Some(mode),
        }
    }

    pub(crate) fn is_unnamed(&self) -> bool {
        self.name.is_empty()
    }

    /// Closes the stage, and returns its name. If the file system reports only then that bytes
    /// could not be stored, the stage is removed: it is no copy of anything.
    pub(crate) fn close(self, dir: &DestDir) -> Result<String, Errno> {
        let closed = bc_fs::call::close(self.file);
        if closed.is_err() && !self.name.is_empty() {
            remove(dir.fd.as_fd(), &self.name);
        }
        closed.map(|()| self.name)
    }

    /// Removes the stage: no run can resume from it.
    pub(crate) fn remove(self, dir: &DestDir) {
        if self.is_unnamed() {
            return;
        }
        remove(dir.fd.as_fd(), &self.name);
    }
}

/// Order to make a file of a stage that has its bytes, for a copy or a restore.
pub(crate) struct FileOrder<'a> {
    /// The directory of the stage, and of the file.
    pub(crate) dir: &'a DestDir,
    pub(crate) wanted: &'a FileMetadata,
    pub(crate) giving: &'a Giving,
    /// True if it is forced to the disk before it has its name.
    pub(crate) is_durable: bool,
}

/// A stage that is complete and waits for its name.
pub(crate) struct CompleteStage {
    /// Name of the stage; empty if it has none.
    pub(crate) name: String,
    /// A stage without a name: it is open. The others are closed.
    pub(crate) unnamed: Option<File>,
    pub(crate) stat: FileStat,
}

impl CompleteStage {
    /// Removes the stage: it gets no name.
    pub(crate) fn remove(self, dir: &DestDir) {
        if self.unnamed.is_none() {
            remove(dir.fd.as_fd(), &self.name);
        }
    }
}

impl Stage {
    /// Gives the stage its metadata and closes it, or removes it; `lost` gets the metadata that it
    /// could not be given.
    pub(crate) fn complete(
        self,
        order: &FileOrder<'_>,
        lost: &mut Vec<LostMeta>,
    ) -> Result<CompleteStage, FailedCall> {
        let failed = |op| move |errno| FailedCall { op, errno };
        let given = self.give(order, lost).map_err(failed("stat"));
        let synced = given.and_then(|stat| match order.is_durable {
            true => content::sync(&self.file).map(|()| stat),
            false => Ok(stat),
        });
        let stat = match synced {
            Ok(stat) => stat,
            Err(failed) => {
                self.remove(order.dir);
                return Err(failed);
            }
        };
        let (name, unnamed) = match self.is_unnamed() {
            true => (self.name, Some(self.file)),
            false => (self.close(order.dir).map_err(failed("close"))?, None),
        };
        Ok(CompleteStage {
            name,
            unnamed,
            stat,
        })
    }

    /// Gives the stage its metadata, and returns its `stat` afterwards.
    fn give(&self, order: &FileOrder<'_>, lost: &mut Vec<LostMeta>) -> Result<FileStat, Errno> {
        let file = Subject::open(self.file.as_fd());
        if self.made_with.is_some() {
            meta::give_rest(&file, order.wanted, order.giving, lost);
            let stat = meta::stat(&self.file)?;
            // Some file systems choose the owner, or the mode.
            if order.wanted.has_owner_and_mode(&stat) {
                return Ok(stat);
            }
            lost.clear();
        }
        let inherits = order.dir.gives_acl;
        meta::give(&file, order.wanted, order.giving, inherits, lost);
        meta::stat(&self.file)
    }
}

/// Removes a stage by its name.
pub(crate) fn remove(dir: BorrowedFd<'_>, name: &str) {
    let _ = entry::unlink(dir, name);
}

/// Reason for which there is no link or node under the name of a stage.
pub(crate) enum NotMade {
    /// The system refuses: the operation and the reason.
    System(&'static str, Errno),
    /// Another program gave the name to another file meanwhile.
    Swapped,
}

/// A link or node to be made, and its metadata.
pub(crate) struct SpecialEntry<'a> {
    pub(crate) thing: Thing<'a>,
    pub(crate) wanted: &'a FileMetadata,
    pub(crate) giving: &'a Giving,
}

impl SpecialEntry<'_> {
    /// Makes it under the name of a stage; `lost` gets the metadata that it could not be given.
    pub(crate) fn make(
        &self,
        dir: &DestDir,
        name: &str,
        lost: &mut Vec<LostMeta>,
    ) -> Result<(), NotMade> {
        let held = self.hold(dir.fd.as_fd(), name)?;
        let subject = match self.thing {
            Thing::Link(_) => Subject::link(held.as_fd()),
            Thing::Node(..) => Subject::place(held.as_fd()),
        };
        meta::give(&subject, self.wanted, self.giving, dir.gives_acl, lost);
        Ok(())
    }

    fn hold(&self, dir: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, NotMade> {
        let refused = |errno| NotMade::System("create", errno);
        let since = file_clock();
        match made::make(dir, name, self.thing).map_err(Errno::from) {
            Err(Errno::EXIST) => match refuse_foreign(dir, name) {
                Ok(()) => {
                    remove(dir, name);
                    made::make(dir, name, self.thing).map_err(|failed| refused(failed.errno))?;
                }
                Err(NoStage::System(errno)) => return Err(refused(errno)),
                Err(NoStage::Foreign(_)) => return Err(refused(Errno::EXIST)),
            },
            made => made.map_err(refused)?,
        }
        let held = made::hold(dir, name, self.thing, since);
        let held = held.map_err(|errno| NotMade::System("open", errno))?;
        held.ok_or(NotMade::Swapped)
    }
}

/// Returns the failure of a file that lost its name before it got all its metadata.
pub(crate) fn swapped(path: Vec<u8>) -> Error {
    let text = "another program gave its temporary name to another file, which is left as it is";
    Error::with_message(path, "create", text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ground() -> (tempfile::TempDir, DestDir) {
        let dir = tempfile::tempdir().unwrap();
        let fd = bc_fs::dirfd::open_root(dir.path().as_os_str().as_encoded_bytes()).unwrap();
        (dir, DestDir::of(fd).unwrap())
    }

    #[test]
    fn names_are_short_and_each_its_own() {
        let (_dir, dest) = ground();
        let job = JobId([7; 16]);
        let long = vec![b'x'; 255];
        let stage = job.stage(&dest, &long, None);
        assert_ne!(stage, job.stage(&dest, b"x", None));
        assert!(is_named_so(stage.as_bytes()) && is_named_so(format!("d/{stage}").as_bytes()));
        assert!(!is_named_so(format!("{stage}x").as_bytes()) && !is_named_so(b""));
        assert_ne!(stage, JobId([8; 16]).stage(&dest, &long, None));
        assert_eq!(stage, job.stage(&dest, &long, None));
    }

    fn source() -> FileStat {
        let zero = Stamp {
            size: 0,
            mtime_ns: 0,
            ctime_ns: 0,
        };
        FileStat {
            id: bc_walk::Identity { dev: 1, ino: 1 },
            stamp: zero,
            mode: 0o100_664,
            uid: 12,
            gid: 34,
            nlink: 1,
            rdev: 0,
            blocks: 0,
        }
    }

    /// A killed run may have given a stage its source's metadata.
    #[test]
    fn a_stage_that_was_given_away_is_kept_unless_others_may_write_to_it() {
        use std::os::unix::fs::PermissionsExt;
        let (dir, dest) = ground();
        let source = source();
        let path = dir.path().join("stage");
        let mut owners = vec![None];
        if rustix::process::geteuid().is_root() {
            owners.extend([Some(12), Some(13)]);
        }
        for owner in owners {
            for (mode, expected) in [(0o664, true), (0o600, true), (0o666, false)] {
                let _ = std::fs::remove_file(&path);
                std::fs::write(&path, "begun").unwrap();
                std::os::unix::fs::chown(&path, owner, None).unwrap();
                std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
                let opened = open(&dest, "stage".to_owned(), StageUse::Kept(&source)).unwrap();
                let expected = expected && owner != Some(13);
                let is_kept = opened.before == StageContent::Something;
                assert_eq!(is_kept, expected, "{owner:?} {mode:o}");
                let meta = path.metadata().unwrap();
                assert_eq!(meta.mode() & 0o777, 0o600);
                assert_eq!(meta.uid(), rustix::process::geteuid().as_raw());
            }
        }
    }

    #[test]
    fn what_is_not_ours_is_left_alone() {
        let (dir, dest) = ground();
        let source = source();
        let name = || "stage".to_owned();
        let open = |content| open(&dest, name(), content);
        std::fs::write(dir.path().join("victim"), "kept").unwrap();
        std::fs::hard_link(dir.path().join("victim"), dir.path().join("stage")).unwrap();
        assert!(matches!(
            open(StageUse::Kept(&source)),
            Err(NoStage::Foreign(_))
        ));
        std::fs::remove_file(dir.path().join("stage")).unwrap();
        std::fs::create_dir(dir.path().join("stage")).unwrap();
        assert!(matches!(
            open(StageUse::Kept(&source)),
            Err(NoStage::Foreign(_))
        ));
        assert_eq!(std::fs::read(dir.path().join("victim")).unwrap(), b"kept");
        std::fs::remove_dir(dir.path().join("stage")).unwrap();
        // A link is replaced, and not followed.
        std::os::unix::fs::symlink("victim", dir.path().join("stage")).unwrap();
        assert_eq!(
            open(StageUse::Kept(&source)).unwrap().before,
            StageContent::New
        );
        assert_eq!(std::fs::read(dir.path().join("victim")).unwrap(), b"kept");
        assert_eq!(
            open(StageUse::Kept(&source)).unwrap().before,
            StageContent::Something
        );
        assert_eq!(open(StageUse::Fresh).unwrap().before, StageContent::New);
    }
}
