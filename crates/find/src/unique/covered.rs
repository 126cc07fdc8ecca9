//! Directories covered by mounts: the names that a directory had before something was mounted on it
//! are still on the disk, and out of sight.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bc_fs::dirfd;
use bc_fs::mount::{TABLE, entries_of};
use bc_walk::{Error, Globs};
use rustix::fs::{AtFlags, CWD, FileType, StatxFlags, statx};
use rustix::io::Errno;

/// Returns the mount points at or below `roots`, but those that `exclude` leaves out: absolute
/// paths, each once. A root that is itself where a mount begins covers nothing of its own.
///
/// # Errors
/// If the system does not tell what is mounted, or where a root is.
pub fn covered<'p>(
    roots: impl Iterator<Item = &'p [u8]>,
    exclude: &Globs,
) -> Result<Vec<Vec<u8>>, Error> {
    let table = std::fs::read(TABLE).map_err(|error| Error::new(TABLE, "open", error))?;
    let mounts = entries_of(&table);
    let mut found = Vec::new();
    for root in roots {
        let Some(real) = place(root)? else {
            continue;
        };
        for mount in &mounts {
            let point = Path::new(OsStr::from_bytes(&mount.point));
            let Ok(below) = point.strip_prefix(OsStr::from_bytes(&real)) else {
                continue;
            };
            let below = below.as_os_str().as_bytes();
            let is_dir = || is_directory(&mount.point);
            if !below.is_empty() && !is_excluded(below, is_dir, exclude) {
                found.push(mount.point.clone());
            }
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// Returns the place of a directory as the kernel knows it, which takes no right to search what is
/// above; `None` for a file, which has nothing below, and for what is not there.
fn place(root: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    let dir = match dirfd::open_root(root) {
        Ok(dir) => dir,
        Err(failed) if matches!(failed.errno, Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(failed) => return Err(Error::new(root, failed.op, failed.errno)),
    };
    match dirfd::real_path(&dir) {
        Some(path) => Ok(Some(path)),
        None => Err(Error::with_message(
            root,
            "find its place",
            "the system does not tell it",
        )),
    }
}

/// True if a directory is mounted there, as far as the system tells without asking a server.
fn is_directory(point: &[u8]) -> bool {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
    let found = statx(CWD, point, flags, StatxFlags::TYPE);
    found.is_ok_and(|found| FileType::from_raw_mode(found.stx_mode.into()).is_dir())
}

/// True if a path or one above it is left out.
fn is_excluded(path: &[u8], is_dir: impl Fn() -> bool, exclude: &Globs) -> bool {
    let mut above = (0..path.len()).filter(|at| path[*at] == b'/');
    exclude.matches_file(path)
        || exclude.matches_directory(path) && is_dir()
        || above.any(|at| {
            exclude.matches_directory(&path[..at]) || exclude.matches_contents(&path[..at])
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_excluded_is_not_missed() {
        let exclude = Globs::new(&[b"proc".to_vec(), b"mnt/**".to_vec()]).unwrap();
        for (path, expected) in [
            (&b"proc"[..], true),
            (b"proc/sys/fs", true),
            (b"mnt/a", true),
            (b"mnt", false),
            (b"srv/proc2", false),
        ] {
            assert_eq!(is_excluded(path, || true, &exclude), expected);
        }
        // A pattern of directories is none of a file that is mounted.
        let directories = Globs::new(&[b"f/".to_vec()]).unwrap();
        for is_dir in [true, false] {
            assert_eq!(is_excluded(b"f", || is_dir, &directories), is_dir);
        }
        let nowhere = covered([&b"/proc/self/nowhere"[..]].into_iter(), &exclude);
        assert!(nowhere.unwrap().is_empty());
    }

    #[test]
    fn mounts_below_a_root_are_found() {
        let found = covered([&b"/"[..]].into_iter(), &Globs::default());
        let mounts = bc_fs::mount::entries().unwrap();
        let below = mounts.iter().any(|mount| mount.point != b"/");
        assert_eq!(!found.unwrap().is_empty(), below);
    }
}
