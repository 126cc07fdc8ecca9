//! Directories covered by mounts: the names that a directory had before something was mounted on it
//! are still on the disk, and out of sight.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bc_walk::{Error, Globs};

/// The kernel's list of mounts.
const TABLE: &str = "/proc/self/mountinfo";

/// Returns the mount points at or below `roots`, but those that `exclude` leaves out: absolute
/// paths, each once. A root that is itself where a mount begins covers nothing of its own.
///
/// # Errors
/// If the system's list of mounts cannot be read.
pub fn covered<'p>(
    roots: impl Iterator<Item = &'p [u8]>,
    exclude: &Globs,
) -> Result<Vec<Vec<u8>>, Error> {
    let table = std::fs::read(TABLE).map_err(|error| Error::new(TABLE, "open", error))?;
    let mounts = bc_fs::mount::entries_of(&table);
    let mut found = Vec::new();
    for root in roots {
        let Ok(real) = Path::new(OsStr::from_bytes(root)).canonicalize() else {
            continue;
        };
        for mount in &mounts {
            let point = Path::new(OsStr::from_bytes(&mount.point));
            let Ok(below) = point.strip_prefix(&real) else {
                continue;
            };
            let below = below.as_os_str().as_bytes();
            if !below.is_empty() && !is_excluded(below, exclude) {
                found.push(mount.point.clone());
            }
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// Returns true if a path or one above it is left out.
fn is_excluded(path: &[u8], exclude: &Globs) -> bool {
    let mut above = (0..path.len()).filter(|at| path[*at] == b'/');
    exclude.matches_file(path)
        || exclude.matches_directory(path)
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
            assert_eq!(is_excluded(path, &exclude), expected);
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
