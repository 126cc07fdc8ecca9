//! Files that appear whole or not at all: a temporary beside the target,
//! fsync, rename, fsync of the directory.
//!
//! The temporary is locked (`flock`) as long as its writer lives, so the next
//! run can tell what a killed one left behind and removes it.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// A file being written that takes its target's place on [`commit`](Self::commit).
/// Dropped before that, it vanishes and the target stays as it was.
#[derive(Debug)]
pub struct AtomicFile {
    file: File,
    temporary: PathBuf,
    target: PathBuf,
    committed: bool,
}

impl AtomicFile {
    /// Starts writing a file that will replace `target`, or create it. A link
    /// is followed: its target is what gets replaced. Mode and owner of an
    /// existing file are kept where permitted.
    ///
    /// # Errors
    /// Whatever creating a file in the target's directory fails with.
    pub fn create(target: &Path) -> io::Result<AtomicFile> {
        let target = std::fs::canonicalize(target).unwrap_or_else(|_| target.to_path_buf());
        let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let directory = directory_of(&target);
        let prefix = prefix(name.as_bytes());
        remove_abandoned(directory, &prefix);
        for attempt in 0..10_000_u32 {
            let mut temporary = prefix.clone();
            temporary.push(format!("{}-{attempt}.tmp", std::process::id()));
            let temporary = directory.join(temporary);
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
                Err(rustix::io::Errno::WOULDBLOCK) => false,
                Err(_) => true, // no locks on this file system: nobody cleans up either
            };
            if locked && same_file(&file, &temporary) {
                if let Ok(old) = std::fs::metadata(&target) {
                    let _ = std::os::unix::fs::fchown(&file, Some(old.uid()), Some(old.gid()));
                    let mode = old.permissions().mode() & 0o777;
                    file.set_permissions(std::fs::Permissions::from_mode(mode))?;
                }
                return Ok(AtomicFile {
                    file,
                    temporary,
                    target,
                    committed: false,
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
    /// Of fsync or rename; the target is then as it was. An error after the
    /// rename (of the directory's fsync) is reported as well.
    pub fn commit(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        std::fs::rename(&self.temporary, &self.target)?;
        self.committed = true;
        File::open(directory_of(&self.target))?.sync_all()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if !self.committed {
            // Best effort: what stays is removed by the next run.
            let _ = std::fs::remove_file(&self.temporary);
        }
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
        Err(rustix::io::Errno::WOULDBLOCK) => return Err(io::ErrorKind::WouldBlock.into()),
        Err(_) => {} // no locks on this file system
    }
    if same_file(&file, path) {
        Ok(file)
    } else {
        Err(io::ErrorKind::WouldBlock.into())
    }
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
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
            .custom_flags(
                (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits() as i32,
            )
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

    #[test]
    fn the_old_file_stays_until_commit() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("m.jsonl");
        std::fs::write(&target, "old").unwrap();
        std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o640)).unwrap();
        let new = AtomicFile::create(&target).unwrap();
        new.file().write_all(b"new").unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"old");
        drop(new);
        assert_eq!(names(dir.path()), ["m.jsonl"]);
        let new = AtomicFile::create(&target).unwrap();
        new.file().write_all(b"new").unwrap();
        new.commit().unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"new");
        assert_eq!(
            std::fs::metadata(&target).unwrap().permissions().mode() & 0o777,
            0o640
        );
        assert_eq!(names(dir.path()), ["m.jsonl"]);
    }

    #[test]
    fn only_what_dead_runs_left_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("m");
        let living = AtomicFile::create(&target).unwrap();
        let mut dead = prefix(b"m");
        dead.push("1-0.tmp");
        std::fs::write(dir.path().join(&dead), "half").unwrap();
        let mut foreign = prefix(b"other");
        foreign.push("1-0.tmp");
        std::fs::write(dir.path().join(&foreign), "").unwrap();
        let second = AtomicFile::create(&target).unwrap();
        let left = names(dir.path());
        assert!(!left.contains(&dead.into_string().unwrap()), "{left:?}");
        assert!(left.contains(&foreign.into_string().unwrap()));
        assert!(living.temporary.exists() && second.temporary.exists());
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
