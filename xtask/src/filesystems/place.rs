//! One kind, made and mounted: the place of its tree, and its remounts.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use bc_testkit::remove_tree;

use super::kinds::{Fill, Kind};
use super::tools::{Lab, shell};
use super::tree;

/// A mounted kind with its tree laid.
pub(super) struct Place<'a> {
    pub(super) lab: &'a Lab,
    pub(super) kind: &'static Kind,
    /// The kind's own directory, on the file system of the scratch directory.
    pub(super) dir: PathBuf,
    mounted: bool,
    port: u16,
    /// Parts of the tree that the file system does not take.
    pub(super) left_out: Vec<String>,
}

impl<'a> Place<'a> {
    /// Makes, fills and mounts a kind.
    ///
    /// # Errors
    /// A message of the tools; the caller reports it as the reason why the kind was skipped.
    pub(super) fn new(lab: &'a Lab, kind: &'static Kind, lay: tree::Lay<'_>) -> Result<Place<'a>> {
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let mut place = Place {
            lab,
            kind,
            dir: lab.scratch.join(kind.name),
            mounted: false,
            port,
            left_out: Vec::new(),
        };
        place.make(lay)?;
        Ok(place)
    }

    /// Makes everything again, after a change to the tree that no later check may build upon.
    pub(super) fn again(&mut self, lay: tree::Lay<'_>) -> Result<()> {
        self.unmount()?;
        remove_tree(&self.dir)?;
        self.make(lay)
    }

    fn make(&mut self, lay: tree::Lay<'_>) -> Result<()> {
        for name in ["mnt", "base", "source"] {
            std::fs::create_dir_all(self.dir.join(name))?;
        }
        let kind = self.kind;
        if kind.base {
            self.sh("truncate -s 640M \"$W/base.image\"; mkfs.ext4 -q \"$W/base.image\"; mount -o loop \"$W/base.image\" \"$BASE\"")?;
        }
        self.sh(kind.prepare).context("making it")?;
        let filled = match kind.fill {
            Fill::Mount => None,
            Fill::Base(below) => Some(self.dir.join("base").join(below)),
            Fill::Image(_) => Some(self.dir.join("source")),
        };
        if let Some(dir) = &filled {
            self.left_out = lay(dir)?;
        }
        if let Fill::Image(seal) = kind.fill {
            self.sh(seal).context("making the image")?;
        }
        self.sh(kind.mount).context("mounting it")?;
        self.mounted = true;
        self.sh(kind.ready).context("preparing it")?;
        if filled.is_none() {
            self.left_out = lay(&self.mount_point())?;
        }
        self.sh(kind.filled).context("completing its tree")?;
        // The kernel's cache of files that were just written differs from what it reads afterwards.
        self.remount()
    }

    fn sh(&self, text: &str) -> Result<()> {
        let dir = |name: &str| self.dir.join(name);
        let variables = [
            ("W", self.dir.clone()),
            ("M", dir("mnt")),
            ("BASE", dir("base")),
            ("SOURCE", dir("source")),
            ("IMAGE", dir("image")),
            ("SECOND", dir("second.image")),
            ("PORT", PathBuf::from(self.port.to_string())),
        ];
        shell(text, &variables)
    }

    /// Returns the mount point.
    pub(super) fn mount_point(&self) -> PathBuf {
        self.dir.join("mnt")
    }

    /// Returns the path of the tree to look at.
    pub(super) fn tree(&self) -> PathBuf {
        self.mount_point().join(self.kind.tree)
    }

    /// Returns the path of a file of this run, beside the mount and not on it.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Returns true if nothing can be written through the mount.
    pub(super) fn read_only(&self) -> bool {
        let probe = self.mount_point().join("probe");
        let made = std::fs::write(&probe, "").and_then(|()| std::fs::remove_file(&probe));
        made.is_err()
    }

    /// Unmounts it, and the file system under it.
    pub(super) fn unmount(&mut self) -> Result<()> {
        if std::mem::take(&mut self.mounted) {
            self.patiently(self.kind.unmount)?;
            if self.kind.base {
                self.patiently("umount \"$BASE\"")?;
            }
        }
        Ok(())
    }

    /// Runs a command again and again for 5 seconds: a server that is still going down keeps its
    /// file system busy for a moment.
    fn patiently(&self, text: &str) -> Result<()> {
        let mut last = Ok(());
        for _ in 0..100 {
            last = self.sh(text);
            if last.is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        last.context("unmounting it")
    }

    /// Mounts it again.
    pub(super) fn mount(&mut self) -> Result<()> {
        if self.kind.base {
            self.sh("mount -o loop \"$W/base.image\" \"$BASE\"")?;
        }
        self.patiently(self.kind.mount)
            .context("mounting it again")?;
        self.mounted = true;
        Ok(())
    }

    /// Unmounts and mounts; where the files would be gone, nothing happens.
    pub(super) fn remount(&mut self) -> Result<()> {
        if self.kind.lasting {
            self.unmount()?;
            self.mount()?;
        }
        Ok(())
    }

    /// Remounts it so that inode numbers given at lookup are others: looks files up in another
    /// order than a walk.
    pub(super) fn renumber(&mut self) -> Result<()> {
        self.remount()?;
        let mut files = bc_testkit::reference::files(&self.tree())?;
        files.reverse();
        for path in files {
            use std::os::unix::ffi::OsStrExt;
            let path = self.tree().join(std::ffi::OsStr::from_bytes(&path));
            let _ = path.symlink_metadata()?;
        }
        Ok(())
    }

    /// Returns the bytes that are free, with everything written.
    pub(super) fn free(&self) -> Result<Free> {
        let mount = self.mount_point();
        let mut below = vec![mount.clone()];
        if self.kind.base {
            below.push(self.dir.join("base"));
        }
        // Twice: blocks that the first frees by committing are counted after the second.
        for _ in 0..2 {
            for path in &below {
                let dir = std::fs::File::open(path)?;
                rustix::fs::syncfs(&dir)?;
            }
        }
        let found = rustix::fs::statvfs(&mount)?;
        Ok(Free {
            bytes: found.f_bfree * found.f_frsize,
            block: found.f_frsize,
        })
    }

    /// Returns the images that its content lies in; some of them may not exist.
    pub(super) fn images(&self) -> Vec<PathBuf> {
        ["image", "base.image", "second.image"]
            .iter()
            .map(|name| self.dir.join(name))
            .filter(|path| path.exists())
            .collect()
    }

    /// Takes everything of this kind away.
    pub(super) fn close(mut self) -> Result<()> {
        self.unmount()?;
        clear(&self.dir)
    }
}

/// Unmounts the remains of a kind that could not be made, and removes its directory.
pub(super) fn clear(dir: &Path) -> Result<()> {
    let mounts = std::fs::read_to_string("/proc/self/mounts")?;
    let mut below: Vec<&str> = mounts
        .lines()
        .filter_map(|line| line.split(' ').nth(1))
        .filter(|path| Path::new(path).starts_with(dir))
        .collect();
    below.reverse();
    for path in below {
        rustix_unmount(Path::new(path))?;
    }
    remove_tree(dir).with_context(|| dir.display().to_string())
}

fn rustix_unmount(path: &Path) -> Result<()> {
    crate::sh::run(std::process::Command::new("umount").arg("-l").arg(path))
}

/// Figures of `statvfs`.
#[derive(Clone, Copy)]
pub(super) struct Free {
    pub(super) bytes: u64,
    pub(super) block: u64,
}
