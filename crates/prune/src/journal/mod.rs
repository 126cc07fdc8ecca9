//! The journal: one JSON line before each step with all that undo needs, one after it with its
//! outcome.
//!
//! Steps of different groups may be under way at a time: then their lines alternate, and each names
//! its step by number.
//!
//! A line is one `write`, so a killed process loses none. It is forced to the
//! disk once a second and at the end, not for every step: after a power cut
//! the last second's lines may be missing, which costs the metadata of those
//! names, never a content (that is the kept file's, made durable before).
//!
//! The first line of a run says which version wrote it and which directories the run acts in. Undo
//! acts on a journal only if no other user could have written it and every path in it lies in those
//! directories; journals of version 1, which did not record them, are taken by their owner alone.

mod read;
pub(crate) mod record;
mod roots;
mod trust;

use std::collections::HashSet;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bc_digest::Digest;
use bc_edit::metadata::FileMetadata;
use bc_edit::names::prune::Mark;
use bc_edit::{content, entry};
use bc_find::groups::FileGroup;
use bc_fs::PathError;
use bc_fs::call::point;
use bc_fs::dirfd;
use bc_fs::known::now_ns;
use bc_fs::path::sibling;
use bc_fs::place::Place;
use bc_manifest::json::JsonPath;
use bc_manifest::time::format_rfc3339;
use bc_pool::Cancel;
use bc_walk::FileKind;
use rustix::fs::OFlags;
use rustix::io::Errno;
use serde::Serialize;

use self::record::{Copied, CopyOrigin, End, Inode, MAGIC, Made, RunHeader, SCHEMA};
use self::roots::Bounds;
use self::trust::Locked;
use crate::check::dir::CheckedAt;
use crate::check::dir::Dir;
use crate::check::open_file::OpenFile;
use crate::options::RunMode;
use crate::skip::Skip;
use crate::step::Action;

pub(crate) use self::read::{Index, RecordedCopy, Steps, earlier_copies};
pub(crate) use self::record::{JournalStep, Recorded, TreeAction};

/// Interval at which the lines are forced to the disk.
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// Returns the error of a journal that is refused by us, not by the system.
fn refused(path: &Path, operation: &str, why: impl Into<String>) -> PathError {
    PathError::with_reason(path, operation, None, why)
}

/// A journal being written, locked against other runs.
///
/// Several threads may write to it at a time, each about steps of its own.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: Locked,
    bounds: Bounds,
    /// Steps started by this run.
    steps: AtomicU64,
    /// Devices whose volume is recorded already.
    devices: Mutex<HashSet<u64>>,
    written: Mutex<Written>,
}

/// Details of a step with a file, for the journal.
pub(crate) struct About<'a> {
    /// FileMetadata of the file and of the one that stays; read where it is not given.
    pub(crate) known: Option<&'a (FileMetadata, FileMetadata)>,
    pub(crate) digest: &'a Digest,
    /// Path that it is moved to.
    pub(crate) destination: Option<&'a [u8]>,
    /// Another name of it: the directory, the name in that and the whole path. One in the same
    /// directory is found without.
    pub(crate) other: Option<(&'a Rc<Dir>, &'a CStr, &'a [u8])>,
}

/// Part of a journal that was written.
#[derive(Debug)]
struct Written {
    /// Bytes of whole lines.
    length: u64,
    /// Time when they were last forced to the disk.
    synced: CheckedAt,
}

impl Journal {
    /// Opens or creates the journal at `path` and starts a run in it that acts
    /// on `groups`, and on no other directories than theirs. Refused is a file
    /// that is not a journal, that another user owns or may write, or that
    /// another run is writing.
    ///
    /// # Errors
    /// Names the path, the operation and the reason. Cancelled while it reads
    /// an existing journal, it says so.
    pub fn create(
        path: impl AsRef<Path>,
        action: &Action,
        groups: &[FileGroup],
        cancel: &Cancel,
    ) -> Result<Journal, PathError> {
        Journal::create_at(path.as_ref(), action, groups, cancel)
    }

    fn create_at(
        path: &Path,
        action: &Action,
        groups: &[FileGroup],
        cancel: &Cancel,
    ) -> Result<Journal, PathError> {
        let fail = |op: &'static str| move |error: io::Error| PathError::new(path, op, error);
        let file = open(path)?;
        let file = trust::lock(file, path, RunMode::Execute)?;
        let mut length = file.metadata().map_err(fail("stat"))?.len();
        if length > 0 {
            let Some(index) = read::indexed(&file, path, cancel)? else {
                return Err(refused(path, "read", "interrupted"));
            };
            if !index.is_ours {
                let why = "not surely a journal of bc dup, so it is not written over";
                return Err(refused(path, "read", why));
            }
            if index.complete < length {
                // Half a line of a run that was cut off: never to be completed.
                length = index.complete;
                content::truncate(&*file, length)
                    .map_err(|failed| fail("truncate")(failed.into()))?;
            }
        }
        let journal = Journal {
            path: path.to_owned(),
            file,
            bounds: Bounds::of(groups, action),
            steps: AtomicU64::new(0),
            devices: Mutex::default(),
            written: Mutex::new(Written {
                length,
                synced: CheckedAt::now(),
            }),
        };
        let mut roots: Vec<&Vec<u8>> = journal.bounds.roots.iter().collect();
        roots.sort();
        let header = RunHeader {
            journal: MAGIC.to_owned(),
            schema: SCHEMA,
            action: action.name().to_owned(),
            started_at: format_rfc3339(now_ns()),
            roots: roots.into_iter().map(|root| JsonPath::new(root)).collect(),
        };
        journal
            .line(&header)
            .and_then(|()| journal.file.sync_all())
            .and_then(|()| Ok(bc_fs::call::flush(journal.file.as_fd())?))
            .map_err(fail("write"))?;
        if let Some(parent) = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
            && let Ok(dir) = File::open(parent)
        {
            // Where directories cannot be synced there is nothing to do.
            let _ = dir.sync_all();
        }
        Ok(journal)
    }

    /// Returns true if the journal at `path` records a step that was done, or may have been: undo
    /// has work with it, or had. True as well where a line is damaged, and if cancelled.
    ///
    /// # Errors
    /// If it cannot be read, is none, or is written by another run; if another user owns it or may
    /// write it.
    pub fn records_changes(path: impl AsRef<Path>, cancel: &Cancel) -> Result<bool, PathError> {
        let steps = Steps::read(path.as_ref(), RunMode::DryRun, cancel)?;
        Ok(steps.is_none_or(|steps| {
            let mut all = steps.index.places.iter().enumerate();
            !steps.index.damaged.is_empty() || all.any(|(at, _)| !steps.never_was(at))
        }))
    }

    /// Returns the path of the journal.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn line(&self, value: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        let mut written = self.written();
        let done = point("journal")
            .map_err(io::Error::from)
            .and_then(|()| self.file.write_all_at(&line, written.length));
        match done {
            Ok(()) => {
                written.length += line.len() as u64;
                Ok(())
            }
            Err(error) => {
                // Not half a line.
                let _ = content::truncate(&*self.file, written.length);
                Err(error)
            }
        }
    }

    /// Nothing is done under the lock that could panic halfway.
    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a step with a file before it is done, and the one that stays.
    pub(crate) fn begin(
        &self,
        action: &'static str,
        target: &OpenFile,
        kept_file: &OpenFile,
        about: About<'_>,
    ) -> Result<u64, Skip> {
        let entry = self.entry(action, target, kept_file, about.known, about.destination)?;
        let other = about
            .other
            .filter(|(dir, _, _)| !Rc::ptr_eq(dir, &target.dir))
            .and_then(|(dir, name, given)| self.bounds.path_in(dir, name, given));
        self.write(&JournalStep {
            digest: about.digest.to_string(),
            other: other.map(|path| JsonPath::new(&path)),
            ..entry
        })
    }

    /// Records a step with a directory, or with a link that leads to `text`, before it is done, and
    /// the one that stays in its place.
    pub(crate) fn begin_tree(
        &self,
        action: TreeAction,
        target: &OpenFile,
        kept_file: &OpenFile,
        destination: Option<&[u8]>,
        text: Option<&[u8]>,
    ) -> Result<u64, Skip> {
        let entry = self.entry(action.name(), target, kept_file, None, destination)?;
        self.write(&JournalStep {
            text: text.map(JsonPath::new),
            ..entry
        })
    }

    /// The next step, by the paths that the journal may name.
    fn entry(
        &self,
        action: &str,
        target: &OpenFile,
        kept_file: &OpenFile,
        known: Option<&(FileMetadata, FileMetadata)>,
        destination: Option<&[u8]>,
    ) -> Result<JournalStep, Skip> {
        let target_path = self.bounds.path_of(target).ok_or(Skip::Changed)?;
        let keeper_path = match Rc::ptr_eq(&kept_file.dir, &target.dir) {
            true => sibling(&target_path, kept_file.name.as_bytes()),
            false => self
                .bounds
                .path_of(kept_file)
                .ok_or(Skip::KeptFileChanged)?,
        };
        let destination = destination
            .map(|to| self.bounds.destination_of(to).ok_or(Skip::Changed))
            .transpose()?;
        let volume = self.volume_of(target);
        let target = Recorded::with_flags(target, &target_path, known.map(|(own, _)| own))?;
        let kept_file = Recorded::new(kept_file, &keeper_path, known.map(|(_, kept)| kept))?;
        Ok(JournalStep {
            step: self.steps.fetch_add(1, Ordering::Relaxed) + 1,
            action: action.to_owned(),
            target,
            kept_file,
            digest: String::new(),
            destination: destination.map(|path| JsonPath::new(&path)),
            text: None,
            other: None,
            volume,
        })
    }

    /// Returns the volume that a target is on, if no step recorded it for that device.
    fn volume_of(&self, target: &OpenFile) -> Option<String> {
        let mut reported = self.devices.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = reported.insert(target.stat.id.dev);
        drop(reported);
        is_new.then(|| match target.stat.kind() {
            FileKind::Dir => bc_fs::volume::volume_at(dirfd::own_path(&*target.file)),
            _ => bc_fs::volume::volume_at(dirfd::own_path(&**target.dir)),
        })?
    }

    fn write(&self, entry: &JournalStep) -> Result<u64, Skip> {
        self.line(entry)
            .map_err(|error| self.unwritable("write", &error))?;
        let is_due = CheckedAt::now().since(self.written().synced) >= SYNC_EVERY;
        if is_due {
            self.sync()?;
        }
        Ok(entry.step)
    }

    /// Records the copy that is about to get the name of a step's destination: should the run be
    /// killed before the original is gone, the copy is known to be ours. On the disk before it is
    /// named. One that was found there is recorded as such. From the metadata that it was `made`
    /// with, undo knows the later changes.
    pub(crate) fn copied(
        &self,
        step: u64,
        copy: Mark,
        origin: CopyOrigin,
        made: &FileMetadata,
    ) -> Result<(), Skip> {
        let copied = Inode {
            dev: copy.id.dev,
            ino: copy.id.ino,
            born_ns: copy.born_ns,
        };
        let found = origin == CopyOrigin::Found;
        let line = Copied {
            step,
            copied,
            found,
            made: Some(Made::new(made)),
        };
        self.line(&line)
            .map_err(|error| self.unwritable("write", &error))?;
        self.sync()
    }

    /// Records how it went.
    pub(crate) fn end(&self, step: u64, result: &Result<(), Skip>) -> Result<(), Skip> {
        let end = End {
            step,
            done: match result {
                Ok(()) => true,
                Err(skip) => skip.took_effect(),
            },
            reason: result.as_ref().err().map(ToString::to_string),
        };
        self.line(&end)
            .map_err(|error| self.unwritable("write", &error))
    }

    /// The last of it is written and on the disk, as far as the file system says.
    pub(crate) fn complete(&self) -> Result<(), Skip> {
        self.sync()?;
        let flushed = bc_fs::call::flush(self.file.as_fd());
        flushed.map_err(|errno| self.unwritable("close", &errno.into()))
    }

    /// Forces the lines to the disk.
    pub(crate) fn sync(&self) -> Result<(), Skip> {
        self.written().synced = CheckedAt::now();
        let synced = rustix::fs::fdatasync(self.file.as_fd());
        synced.map_err(|errno| self.unwritable("sync", &errno.into()))
    }

    fn unwritable(&self, op: &'static str, error: &io::Error) -> Skip {
        let unknown = Errno::IO.raw_os_error();
        Skip::Journal {
            path: self.path.as_os_str().as_encoded_bytes().to_vec(),
            op,
            errno: error.raw_os_error().unwrap_or(unknown),
        }
    }
}

/// Returns the number of steps in the text of a journal, or the reason why it is refused.
#[cfg(test)]
pub(crate) fn steps_in(text: &[u8]) -> Result<usize, String> {
    match read::scan(text, &Cancel::new()) {
        Ok(index) => Ok(index.places.len()),
        Err(read::ReadEnd::Refused(message)) => Err(message),
        Err(read::ReadEnd::Io(error)) => Err(error.to_string()),
        Err(read::ReadEnd::Cancelled) => Err("cancelled".to_owned()),
    }
}

/// Opens the journal to be written, creating it if it does not exist, even through a link to a
/// missing file; not through another user's link in a directory where others may write.
fn open(path: &Path) -> Result<File, PathError> {
    let fail = |error: io::Error| PathError::new(path, "open", error);
    let place = Place::find(path).map_err(fail)?;
    match content::create(place.directory(), place.name(), 0o600).map(File::from) {
        Ok(file) => trust::check(&file, path).map(|()| file).inspect_err(|_| {
            // A file system without owners or modes: nothing of ours stays.
            let _ = entry::unlink(place.directory(), place.name());
        }),
        Err(failed) if failed.errno == Errno::EXIST => {
            let opened = place.open(place.name(), OFlags::RDWR | trust::FLAGS);
            let file = opened.map(File::from).map_err(fail)?;
            trust::check(&file, path)?;
            Ok(file)
        }
        Err(failed) => Err(fail(failed.into())),
    }
}
