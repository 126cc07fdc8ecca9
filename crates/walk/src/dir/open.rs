//! Opening a directory that is to be read, from the nearest one above it that is still open.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use bc_fs::dirfd::{PLACE, open_through};
use bc_fs::mount::Answer;
use rustix::fs::{CWD, OFlags, fstat};
use rustix::io::Errno;

use super::{Worker, system};
use crate::ancestors::{AncestorFds, Reach};
use crate::fd::{MountCrossing, READ_DIR};
use crate::tree::Task;
use crate::{ErrorKind, FileStat, SkipReason, Symlinks};

impl Worker<'_> {
    /// Opens the directory, with its stat if that was needed. `None`: it is not to be read
    /// now, and that is accounted for.
    #[allow(clippy::type_complexity)]
    pub(super) fn open(
        &mut self,
        task: &Task,
    ) -> Result<Option<(Arc<OwnedFd>, Option<FileStat>)>, ErrorKind> {
        let context = self.context;
        let walk_root = &context.walk_roots[task.walk_root as usize];
        let Some(root_fd) = &task.fd else {
            let fd = self.open_waiting(|worker, _| worker.open_walk_root(task));
            let fd = fd.map_err(system)?;
            let stat = FileStat::from(&fstat(&fd).map_err(system)?);
            if stat.id != walk_root.id {
                return Err(ErrorKind::Changed);
            }
            return Ok(Some((fd, Some(stat))));
        };
        let walk_root_of_kept = std::mem::replace(&mut self.kept_of, task.walk_root);
        let opened = self.open_waiting(|worker, kept| {
            if walk_root_of_kept != task.walk_root {
                kept.clear();
            }
            let fd = worker.open_below(root_fd, task, kept)?;
            if context.opener.shortage.is_short() {
                kept.clear();
            }
            kept.push(&task.path, &fd);
            Ok(fd)
        });
        let fd = match opened {
            Err(Errno::XDEV) => {
                self.defer_mount(task);
                return Ok(None);
            }
            opened => opened.map_err(system)?,
        };
        let notices_mounts = context.opener.notices_mounts();
        let is_plain = walk_root.traits.plain == Answer::Yes;
        if notices_mounts && is_plain && !context.watched.contains(&task.ino) {
            return Ok(Some((fd, None)));
        }
        let stat = FileStat::from(&fstat(&fd).map_err(system)?);
        // Behind a mount point that `openat2` could not notice, the entry's inode number is
        // that of the directory underneath.
        let is_mount = !notices_mounts && is_plain && stat.id.ino != task.ino;
        if stat.id.dev != walk_root.id.dev || is_mount {
            self.defer_mount(task);
            return Ok(None);
        }
        let way = || walk_root.way_to(&[&task.path]);
        if context.walk_root_places.get(stat.id, way).is_some() {
            if self.settles(self.path.len(), b"") {
                self.skips(task, None, Some(SkipReason::Repeated));
            }
            return Ok(None);
        }
        Ok(Some((fd, Some(stat))))
    }

    /// Opens a directory from the kept ones, and waits for a descriptor where there is none left.
    fn open_waiting(
        &self,
        open: impl Fn(&Self, &mut AncestorFds<Arc<OwnedFd>>) -> Result<Arc<OwnedFd>, Errno>,
    ) -> Result<Arc<OwnedFd>, Errno> {
        let (shortage, cancel) = (&self.context.opener.shortage, self.context.cancel);
        self.kept.open(shortage, cancel, |kept| open(self, kept))
    }

    fn open_below(
        &self,
        root_fd: &OwnedFd,
        task: &Task,
        kept: &mut AncestorFds<Arc<OwnedFd>>,
    ) -> Result<Arc<OwnedFd>, Errno> {
        kept.open(&task.path, |from, rest, reach| {
            let from = from.map_or(root_fd, |from| from);
            let flags = match reach {
                Reach::Way => PLACE,
                Reach::End => READ_DIR,
            };
            self.open_from(from, rest, flags)
        })
    }

    fn open_from(&self, from: &OwnedFd, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let opener = self.context.opener;
        opener.open_below(
            from.as_fd(),
            path,
            flags,
            Symlinks::Skip,
            MountCrossing::Refuse,
        )
    }

    fn open_walk_root(&self, task: &Task) -> Result<Arc<OwnedFd>, Errno> {
        let walk_root = &self.context.walk_roots[task.walk_root as usize];
        let prefix = &self.context.prefixes[walk_root.prefix as usize];
        let prefix_fd = match &prefix.fd {
            Some(fd) => Arc::clone(fd),
            None => Arc::new(open_through(CWD, &prefix.path, READ_DIR)?),
        };
        if walk_root.path.is_empty() {
            return Ok(prefix_fd);
        }
        let symlinks = self.context.options.symlinks;
        let opener = self.context.opener;
        opener
            .open_below(
                prefix_fd.as_fd(),
                &walk_root.path,
                READ_DIR,
                symlinks,
                MountCrossing::Cross,
            )
            .map(Arc::new)
    }
}
