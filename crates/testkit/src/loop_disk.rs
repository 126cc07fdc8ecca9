//! A disk of its own in an image file, whose power can be cut.

use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_change, unmount};
use rustix::thread::UnshareFlags;
use tempfile::TempDir;

use crate::tool;

/// Program that calls `FS_IOC_SHUTDOWN` where `xfs_io` is not installed: 0x8004587d is `_IOR('X',
/// 125, __u32)`, and 2 is `GOING_FLAGS_NOLOGFLUSH`.
const SHUTDOWN: &str = "\
import fcntl, os, struct, sys
fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587D, struct.pack('I', 2))
";

/// A file system in an image, mounted by a loop device; unmounted and removed on drop.
#[derive(Debug)]
pub struct LoopDisk {
    dir: TempDir,
    mount: PathBuf,
    kind: String,
    options: String,
}

/// Makes a file system of this kind (`ext4`, `xfs`, `vfat`) in an image of so many bytes, sparse,
/// and mounts it where the calling thread and the programs that it starts from then on can see it,
/// and no others.
///
/// # Errors
/// The reason why this machine cannot: not root, no such tool, kernel without it or without loop
/// devices.
pub fn loop_disk(kind: &str, bytes: u64) -> Result<LoopDisk, String> {
    loop_disk_with(kind, bytes, "loop")
}

/// Makes such a disk, mounted with these options of `mount(8)`, `loop` among them.
///
/// # Errors
/// As [`loop_disk`].
pub fn loop_disk_with(kind: &str, bytes: u64, options: &str) -> Result<LoopDisk, String> {
    if !crate::is_root() {
        return Err(format!("mounting {kind} needs root"));
    }
    let mkfs = format!("mkfs.{kind}");
    if let Some(missing) = [&mkfs[..], "mount"]
        .iter()
        .find(|name| tool(name).is_none())
    {
        return Err(format!("{missing} is not installed"));
    }
    apart()?;
    let dir = TempDir::new().map_err(|e| format!("temporary directory: {e}"))?;
    let mount = dir.path().join("disk");
    std::fs::create_dir(&mount).map_err(|e| format!("mkdir: {e}"))?;
    let disk = LoopDisk {
        dir,
        mount,
        kind: kind.to_owned(),
        options: options.to_owned(),
    };
    let image = std::fs::File::create(disk.image()).map_err(|e| format!("image: {e}"))?;
    image.set_len(bytes).map_err(|e| format!("image: {e}"))?;
    done(Command::new(mkfs).arg(disk.image()))?;
    disk.mount()?;
    Ok(disk)
}

impl LoopDisk {
    /// Returns its mount point.
    pub fn path(&self) -> &Path {
        &self.mount
    }

    fn image(&self) -> PathBuf {
        self.dir.path().join("image")
    }

    fn mount(&self) -> Result<(), String> {
        let mut command = Command::new("mount");
        command.args(["-t", &self.kind, "-o", &self.options]);
        done(command.arg(self.image()).arg(&self.mount))
    }

    /// Ends all writing at once, as a power cut does: data not yet on the disk are lost, the file
    /// system's own journal included.
    ///
    /// # Errors
    /// The reason why it cannot be done here.
    pub fn cut(&self) -> Result<(), String> {
        if tool("xfs_io").is_some() {
            return done(
                Command::new("xfs_io")
                    .args(["-x", "-c", "shutdown"])
                    .arg(&self.mount),
            );
        }
        if tool("python3").is_some() {
            return done(
                Command::new("python3")
                    .args(["-c", SHUTDOWN])
                    .arg(&self.mount),
            );
        }
        Err("neither xfs_io nor python3 is installed, to cut the power with".to_owned())
    }

    /// Mounts it again, as after a start.
    ///
    /// # Errors
    /// Message of `umount` or `mount`.
    pub fn mount_again(&self) -> Result<(), String> {
        /// Number of attempts: another test that starts a program at this very moment inherits the
        /// files that are open in this process for as long as that takes.
        const TRIES: u32 = 100;
        for _ in 1..TRIES {
            match done(Command::new("umount").arg(&self.mount)) {
                Err(text) if text.contains("busy") => {
                    std::thread::sleep(std::time::Duration::from_millis(20));
                }
                unmounted => {
                    unmounted?;
                    return self.mount();
                }
            }
        }
        done(Command::new("umount").arg(&self.mount))?;
        self.mount()
    }
}

/// Moves the calling thread, and the programs that it starts, to mounts of its own. In a copy that
/// another test makes of all mounts meanwhile, a file system that was shut down would live on, and
/// be found again by `mount`.
pub(crate) fn apart() -> Result<(), String> {
    #[expect(
        deprecated,
        reason = "it would be unsafe for descriptor tables, not for mounts"
    )]
    let apart = rustix::thread::unshare(UnshareFlags::NEWNS);
    let flags = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    apart
        .and_then(|()| mount_change("/", flags))
        .map_err(|e| format!("mounts of its own: {e}"))
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        // Detached even if busy: a mount left behind would outlive the test run.
        let _ = unmount(&self.mount, UnmountFlags::DETACH);
    }
}

fn done(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|e| format!("{program}: {e}"))?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let text = String::from_utf8_lossy(&output.stderr);
            Err(format!("{program}: {}", text.trim()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::loop_disk;

    #[test]
    fn what_was_not_synced_is_lost() {
        let disk = match loop_disk("ext4", 32 << 20) {
            Ok(disk) => disk,
            Err(reason) => return crate::left_out(&reason),
        };
        let (kept, lost) = (disk.path().join("kept"), disk.path().join("lost"));
        std::fs::write(&kept, "kept").unwrap();
        rustix::fs::syncfs(std::fs::File::open(&kept).unwrap()).unwrap();
        std::fs::write(&lost, "lost").unwrap();
        if let Err(reason) = disk.cut() {
            return crate::left_out(&reason);
        }
        assert!(std::fs::write(disk.path().join("third"), "x").is_err());
        disk.mount_again().unwrap();
        assert_eq!(std::fs::read(&kept).unwrap(), b"kept");
        assert!(!lost.exists());
        let path = disk.path().to_owned();
        drop(disk);
        assert!(!path.exists());
    }
}
