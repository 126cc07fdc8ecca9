//! A file system that runs out of space, for the tests of ENOSPC.

use std::ffi::CString;
use std::path::Path;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use tempfile::TempDir;

/// A small tmpfs, unmounted and removed on drop.
#[derive(Debug)]
pub struct FullDisk {
    dir: TempDir,
}

impl FullDisk {
    /// Returns its mount point.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for FullDisk {
    fn drop(&mut self) {
        // Detached even if busy: a mount left behind would outlive the test run.
        let _ = unmount(self.dir.path(), UnmountFlags::DETACH);
    }
}

/// Mounts a tmpfs that holds about `bytes` bytes (whole pages), so that writing more fails
/// with ENOSPC.
///
/// # Errors
/// The reason why this machine cannot: not root, or mounting is not allowed (containers).
pub fn full_disk(bytes: u64) -> Result<FullDisk, String> {
    if !crate::is_root() {
        return Err("a small tmpfs needs root".into());
    }
    let dir = TempDir::new().map_err(|e| format!("temporary directory: {e}"))?;
    let options = CString::new(format!("size={bytes},mode=1777")).map_err(|e| e.to_string())?;
    mount(
        "bc-testkit",
        dir.path(),
        "tmpfs",
        MountFlags::NOSUID | MountFlags::NODEV,
        Some(&*options),
    )
    .map_err(|e| format!("mount tmpfs: {e}"))?;
    Ok(FullDisk { dir })
}

#[cfg(test)]
mod tests {
    use super::full_disk;
    use std::fs;

    #[test]
    fn runs_out_of_space_and_goes_away() {
        let disk = match full_disk(64 << 10) {
            Ok(disk) => disk,
            Err(reason) => return crate::left_out(&reason),
        };
        let path = disk.path().to_path_buf();
        let error = fs::write(path.join("big"), vec![1; 1 << 20]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
        drop(disk);
        assert!(!path.exists());
    }
}
