//! Removes any tree, however hostile: deeper than PATH_MAX, directories without permissions.

use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, chmodat, openat, statat, unlinkat};

/// Removes `path` and everything below it; a missing `path` is fine. Symbolic links are
/// removed, never followed. Uses two descriptors and no recursion, so depth does not matter;
/// directories without permissions are given them first (their owner may).
///
/// # Errors
/// The first thing that could not be removed.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    let stat = match statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
        Err(rustix::io::Errno::NOENT) => return Ok(()),
        other => other?,
    };
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return Ok(unlinkat(CWD, path, AtFlags::empty())?);
    }
    chmodat(CWD, path, Mode::RWXU, AtFlags::empty())?;
    let mut here = openat(CWD, path, directory(), Mode::empty())?;
    // Per level: the name that led there, and the subdirectories still to do.
    let mut levels = vec![(CString::default(), empty_files(&here)?)];
    while let Some((_, pending)) = levels.last_mut() {
        if let Some(name) = pending.pop() {
            chmodat(&here, &name, Mode::RWXU, AtFlags::empty())?;
            here = openat(&here, &name, directory(), Mode::empty())?;
            let below = empty_files(&here)?;
            levels.push((name, below));
        } else if let Some((name, _)) = levels.pop()
            && !levels.is_empty()
        {
            here = openat(&here, c"..", directory(), Mode::empty())?;
            unlinkat(&here, &name, AtFlags::REMOVEDIR)?;
        }
    }
    Ok(unlinkat(CWD, path, AtFlags::REMOVEDIR)?)
}

fn directory() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

/// Unlinks all that is not a directory and returns the names of the directories.
fn empty_files(dir: &OwnedFd) -> io::Result<Vec<CString>> {
    let mut below = Vec::new();
    let mut files = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => {
                FileType::from_raw_mode(statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode)
            }
            known => known,
        };
        match kind {
            FileType::Directory => below.push(name.to_owned()),
            _ => files.push(name.to_owned()),
        }
    }
    for name in files {
        unlinkat(dir, &name, AtFlags::empty())?;
    }
    Ok(below)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::mkdirat;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn removes_depth_beyond_any_limit() {
        let temp = tempfile::TempDir::new().unwrap();
        let top = temp.path().join("top");
        fs::create_dir(&top).unwrap();
        let mut here = openat(CWD, &top, directory(), Mode::empty()).unwrap();
        for _ in 0..3000 {
            mkdirat(&here, c"ddd", Mode::RWXU).unwrap();
            here = openat(&here, c"ddd", directory(), Mode::empty()).unwrap();
        }
        drop(here);
        remove_tree(&top).unwrap();
        assert!(!top.exists());
    }

    #[test]
    fn removes_locked_directories_and_spares_link_targets() {
        let temp = tempfile::TempDir::new().unwrap();
        let top = temp.path().join("top");
        let kept = temp.path().join("kept");
        fs::create_dir_all(top.join("locked/inner")).unwrap();
        fs::write(&kept, "kept").unwrap();
        fs::write(top.join("locked/inner/f"), "x").unwrap();
        symlink(&kept, top.join("link")).unwrap();
        fs::set_permissions(top.join("locked"), fs::Permissions::from_mode(0o000)).unwrap();
        remove_tree(&top).unwrap();
        remove_tree(&top).unwrap();
        assert!(!top.exists());
        assert_eq!(fs::read(&kept).unwrap(), b"kept");
    }
}
