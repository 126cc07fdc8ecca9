//! Files that appear whole or not at all: written without a name where the
//! file system can (`O_TMPFILE`), else under a temporary one beside the target;
//! then fsync, rename, fsync of the directory.
//!
//! The file is locked (`flock`) as long as its writer lives, so the next run
//! can tell a temporary name that a killed one left behind and removes it.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;

/// A file being written that takes its target's place on [`commit`](Self::commit).
/// Dropped before that, it vanishes and the target stays as it was.
#[derive(Debug)]
pub struct AtomicFile {
    file: File,
    /// None while the file has no name at all.
    temporary: Option<PathBuf>,
    target: PathBuf,
}

/// A step of [`AtomicFile::commit`] that failed.
#[derive(Debug)]
pub struct Uncommitted {
    /// Which one.
    pub operation: &'static str,
    /// Why.
    pub error: io::Error,
}

impl Uncommitted {
    fn at(operation: &'static str) -> impl Fn(io::Error) -> Uncommitted {
        move |error| Uncommitted { operation, error }
    }
}

impl AtomicFile {
    /// Starts writing a file that will replace `target`, or create it. A link
    /// is followed: its target is what gets replaced, or created where the link
    /// leads to nothing yet. Mode and owner of an existing file are kept where
    /// permitted.
    ///
    /// # Errors
    /// Whatever looking the target up, or creating a file in its directory,
    /// fails with: a name that is too long or ends in a slash is refused here
    /// and not at the end of the work.
    pub fn create(target: &Path) -> io::Result<AtomicFile> {
        let target = resolve(target)?;
        let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        remove_abandoned(directory_of(&target), &prefix(name.as_bytes()));
        let new = match AtomicFile::nameless(&target) {
            Some(new) => new,
            None => AtomicFile::named(&target)?,
        };
        if let Ok(old) = std::fs::metadata(&new.target) {
            let _ = std::os::unix::fs::fchown(&new.file, Some(old.uid()), Some(old.gid()));
            let mode = old.permissions().mode() & 0o777;
            // Not every file system has modes.
            let _ = new
                .file
                .set_permissions(std::fs::Permissions::from_mode(mode));
        }
        Ok(new)
    }

    /// A file without a name, which a killed run cannot leave behind.
    fn nameless(target: &Path) -> Option<AtomicFile> {
        // Where it is given one from.
        if !Path::new("/proc/self/fd").exists() {
            return None;
        }
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        let directory = directory_of(target);
        let fd = rustix::fs::openat(CWD, directory, flags, Mode::from_raw_mode(0o666)).ok()?;
        let file = File::from(fd);
        // For the moment when it has a temporary one.
        let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
        Some(AtomicFile {
            file,
            temporary: None,
            target: target.to_owned(),
        })
    }

    fn named(target: &Path) -> io::Result<AtomicFile> {
        for temporary in temporaries(target) {
            let opened = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o666)
                .open(&temporary);
            let file = match opened {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            };
            // Between the open and the lock another run may have taken it for
            // abandoned: then its name is gone and the next attempt is due.
            let locked = match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => true,
                Err(Errno::WOULDBLOCK) => false,
                Err(_) => true, // no locks on this file system: nobody cleans up either
            };
            if locked && same_file(&file, &temporary) {
                return Ok(AtomicFile {
                    file,
                    temporary: Some(temporary),
                    target: target.to_owned(),
                });
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// The file to write to.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Makes the content durable and puts it in the target's place.
    ///
    /// # Errors
    /// Of fsync, link or rename; the target is then as it was. An error after
    /// the rename (of the directory's fsync) is reported as well.
    pub fn commit(mut self) -> Result<(), Uncommitted> {
        self.file.sync_all().map_err(Uncommitted::at("sync"))?;
        let temporary = match &self.temporary {
            Some(temporary) => temporary.clone(),
            None => self.link().map_err(Uncommitted::at("link"))?,
        };
        std::fs::rename(&temporary, &self.target).map_err(Uncommitted::at("rename"))?;
        self.temporary = None;
        // Who may write to a directory need not be allowed to read it, and
        // some file systems cannot sync one.
        if let Ok(directory) = File::open(directory_of(&self.target)) {
            match directory.sync_all() {
                Err(error) if error.raw_os_error() != Some(Errno::INVAL.raw_os_error()) => {
                    return Err(Uncommitted::at("sync directory")(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Gives the file a temporary name: a link never replaces anything, only a
    /// rename does.
    fn link(&mut self) -> io::Result<PathBuf> {
        let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        for temporary in temporaries(&self.target) {
            let follow = AtFlags::SYMLINK_FOLLOW;
            match rustix::fs::linkat(CWD, own.as_str(), CWD, &temporary, follow) {
                Ok(()) => {
                    self.temporary = Some(temporary.clone());
                    return Ok(temporary);
                }
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // Best effort: what stays is removed by the next run.
            let _ = std::fs::remove_file(temporary);
        }
    }
}

/// Removes what killed writers of `target` left under temporary names, as
/// [`AtomicFile::create`] does: for those who list the directory before they write.
pub fn remove_leftovers(target: &Path) {
    if let Ok(target) = resolve(target)
        && let Some(name) = target.file_name()
    {
        remove_abandoned(directory_of(&target), &prefix(name.as_bytes()));
    }
}

/// Locks an existing file against a second writer until the handle is dropped.
///
/// # Errors
/// `WouldBlock` if another process holds the lock or replaces the file right
/// now; otherwise whatever opening fails with.
pub fn lock(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Err(io::ErrorKind::WouldBlock.into()),
        Err(_) => {} // no locks on this file system
    }
    if same_file(&file, path) {
        Ok(file)
    } else {
        Err(io::ErrorKind::WouldBlock.into())
    }
}

/// The path that writing to `target` would create or replace: links followed,
/// of which the last may lead to nothing.
fn resolve(target: &Path) -> io::Result<PathBuf> {
    let mut path = target.to_path_buf();
    // As many links as the kernel follows.
    for _ in 0..40 {
        match std::fs::canonicalize(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            found => return found,
        }
        match std::fs::read_link(&path) {
            Ok(next) => path = directory_of(&path).join(next),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // A directory that is not there cannot be written as a file.
                return match path.as_os_str().as_bytes().last() {
                    Some(b'/') => Err(Errno::ISDIR.into()),
                    _ => Ok(path),
                };
            }
            Err(error) => return Err(error),
        }
    }
    Err(Errno::LOOP.into())
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Names beside `target` to try one after the other.
fn temporaries(target: &Path) -> impl Iterator<Item = PathBuf> {
    let prefix = prefix(target.file_name().unwrap_or_default().as_bytes());
    let directory = directory_of(target).to_owned();
    (0..10_000_u32).map(move |attempt| {
        let mut name = prefix.clone();
        name.push(format!("{}-{attempt}.tmp", std::process::id()));
        directory.join(name)
    })
}

/// Starts the names of all temporaries of one target. Of fixed length, so
/// that a name at the file system's limit has temporaries too.
fn prefix(name: &[u8]) -> OsString {
    // FNV-1a, for a name that stays the same from version to version.
    let hash = name.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!(".bc-{hash:016x}-").into()
}

/// Does `path` still name the open file?
fn same_file(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

/// Removes temporaries whose writers are gone.
fn remove_abandoned(directory: &Path, prefix: &OsString) {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.as_bytes();
        if !name.starts_with(prefix.as_bytes()) || !name.ends_with(b".tmp") {
            continue;
        }
        let path = entry.path();
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32)
            .open(&path);
        let Ok(file) = opened else { continue };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() && same_file(&file, &path)
        {
            let _ = std::fs::remove_file(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Both ways to begin, where the file system has both.
    fn all(target: &Path) -> Vec<AtomicFile> {
        let named = AtomicFile::named(target).unwrap();
        AtomicFile::nameless(target)
            .into_iter()
            .chain([named])
            .collect()
    }

    #[test]
    fn the_old_file_stays_until_commit() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("m.jsonl");
        std::fs::write(&target, "old").unwrap();
        let ways = all(&target).len();
        for way in 0..ways {
            let mut new = all(&target).swap_remove(way);
            new.file().write_all(b"new").unwrap();
            assert_eq!(std::fs::read(&target).unwrap(), b"old");
            if way == 0 && ways == 2 {
                // Killed while it has a name, it would stay.
                assert!(new.link().unwrap().exists());
            }
            drop(new);
            assert_eq!(names(dir.path()), ["m.jsonl"]);
        }
        for way in 0..ways {
            std::fs::write(&target, "old").unwrap();
            let new = all(&target).swap_remove(way);
            new.file().write_all(b"new").unwrap();
            new.commit().unwrap();
            assert_eq!(std::fs::read(&target).unwrap(), b"new");
            assert_eq!(names(dir.path()), ["m.jsonl"]);
        }
    }

    #[test]
    fn the_mode_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("m");
        std::fs::write(&target, "old").unwrap();
        std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o640)).unwrap();
        AtomicFile::create(&target).unwrap().commit().unwrap();
        let mode = std::fs::metadata(&target).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
    }

    #[test]
    fn only_what_dead_runs_left_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("m");
        let living = all(&target);
        let mut dead = prefix(b"m");
        dead.push("1-0.tmp");
        std::fs::write(dir.path().join(&dead), "half").unwrap();
        remove_leftovers(&target);
        assert!(!dir.path().join(&dead).exists());
        std::fs::write(dir.path().join(&dead), "half").unwrap();
        let mut foreign = prefix(b"other");
        foreign.push("1-0.tmp");
        std::fs::write(dir.path().join(&foreign), "").unwrap();
        let second = AtomicFile::create(&target).unwrap();
        let left = names(dir.path());
        assert!(!left.contains(&dead.into_string().unwrap()), "{left:?}");
        assert!(left.contains(&foreign.into_string().unwrap()));
        for file in living.iter().chain([&second]) {
            assert!(file.temporary.as_ref().is_none_or(|name| name.exists()));
        }
        drop(second);
        // They do not get into each other's way.
        for file in living {
            file.commit().unwrap();
        }
        assert_eq!(names(dir.path()).len(), 2);
    }

    #[test]
    fn a_target_that_cannot_be_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("m");
        let ways = all(&target).len();
        for way in 0..ways {
            let new = all(&target).swap_remove(way);
            std::fs::create_dir(&target).unwrap();
            let failed = new.commit().unwrap_err();
            assert_eq!(failed.operation, "rename");
            assert_eq!(names(dir.path()), ["m"]);
            std::fs::remove_dir(&target).unwrap();
        }
        assert!(AtomicFile::create(&dir.path().join("none/m")).is_err());
    }

    #[test]
    fn links_are_followed_and_long_names_work() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("x".repeat(255));
        std::fs::write(&real, "old").unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let new = AtomicFile::create(&link).unwrap();
        new.file().write_all(b"new").unwrap();
        new.commit().unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read(&real).unwrap(), b"new");
    }

    #[test]
    fn a_link_to_nothing_yet_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("other")).unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("other/new", &link).unwrap();
        AtomicFile::create(&link).unwrap().commit().unwrap();
        assert!(link.is_symlink());
        assert_eq!(names(&dir.path().join("other")), ["new"]);
        let lost = dir.path().join("lost");
        std::os::unix::fs::symlink("none/new", &lost).unwrap();
        assert!(AtomicFile::create(&lost).is_err());
        let round = dir.path().join("round");
        std::os::unix::fs::symlink("round", &round).unwrap();
        assert!(AtomicFile::create(&round).is_err());
        assert_eq!(names(dir.path()), ["link", "lost", "other", "round"]);
    }

    #[test]
    fn what_can_never_be_named_is_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let target = |name: &str| dir.path().join(name);
        std::fs::write(target("file"), "old").unwrap();
        for name in ["x".repeat(256), "new/".to_owned(), "file/".to_owned()] {
            assert!(AtomicFile::create(&target(&name)).is_err(), "{name}");
        }
        assert_eq!(names(dir.path()), ["file"]);
    }

    #[test]
    fn a_second_writer_is_turned_away() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("m");
        std::fs::write(&target, "old").unwrap();
        let held = lock(&target).unwrap();
        assert_eq!(lock(&target).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(held);
        lock(&target).unwrap();
    }
}
