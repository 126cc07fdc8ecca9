//! Walks of one part of the tree: which directories are in it, and how those of other parts are
//! passed by on the way to the directories below them.

use std::ffi::CStr;

use rustix::io::Errno;

use super::entry::{TOO_MANY, offset};
use super::{DirReading, Worker, system};
use crate::fd::stat_at;
use crate::listing::Tag;
use crate::shard::without_slash;
use crate::tree::Task;
use crate::worker_output::{Found, MOST, Role};
use crate::{ErrorKind, FileKind, Metadata, Shard, Symlinks};

impl Worker<'_> {
    /// True if the directory whose path is in `self.path` is in the part that is asked for.
    pub(super) fn is_asked_for(&self) -> bool {
        let has = |shard: Shard| shard.has_directory(without_slash(&self.path));
        self.context.options.shard.is_none_or(has)
    }

    /// Records that all is known of a subdirectory, or with an empty name of the directory itself,
    /// whose path is the first `prefix` bytes of `self.path`, if it is in the part of the tree that
    /// is asked for; returns whether it is.
    pub(super) fn settles(&mut self, prefix: usize, name: &[u8]) -> bool {
        let Some(shard) = self.context.options.shard else {
            return true;
        };
        self.path.truncate(prefix);
        self.path.extend_from_slice(name);
        let path = match name {
            b"" => without_slash(&self.path),
            _ => &self.path,
        };
        self.output.met.insert(path);
        let settles = shard.has_directory(path);
        if settles {
            self.output.settled.insert(path);
        }
        settles
    }

    /// Decides about one entry of a directory that is in another part of the tree than is asked
    /// for: only files below it can be asked for. The walk of that part reports what is left out.
    pub(super) fn pass_by(
        &mut self,
        task: &Task,
        reading: &DirReading<'_>,
        name: &CStr,
        ino: u64,
        kind: Option<FileKind>,
    ) -> Result<(), ErrorKind> {
        let options = self.context.options;
        let bytes = name.to_bytes();
        if bytes == b"." || bytes == b".." || options.filter_name(bytes).is_some() {
            return Ok(());
        }
        let (mut kind, mut role) = (kind, Role::Descend);
        let follows = options.symlinks == Symlinks::Follow;
        for links in [Symlinks::Skip, Symlinks::Follow] {
            let asks = match links {
                Symlinks::Skip => kind.is_none(),
                Symlinks::Follow => follows && kind == Some(FileKind::Symlink),
            };
            if !asks {
                continue;
            }
            match stat_at(reading.fd, name, links, Metadata::None) {
                Ok(stat) => kind = Some(stat.kind()),
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if links == Symlinks::Follow => {}
                // It may be a directory of which something is asked for.
                Err(errno) => {
                    self.fail(task, Some(bytes), "stat", system(errno));
                    return Ok(());
                }
            }
            if links == Symlinks::Follow {
                role = Role::Defer;
            }
        }
        if kind != Some(FileKind::Dir) {
            return Ok(());
        }
        if options.has_patterns() || reading.ignores.is_some() {
            self.path.truncate(reading.prefix);
            self.path.extend_from_slice(bytes);
            let ignores = reading.ignores.as_deref();
            let reason = options.filter_path(&self.path, FileKind::Dir, ignores);
            if reason.is_some() {
                return Ok(());
            }
        }
        if !self.descends(task, reading, bytes) {
            return Ok(());
        }
        let tag = match role {
            Role::Defer => Tag::following(FileKind::Dir),
            Role::Descend | Role::Entry => Tag::new(FileKind::Dir),
        };
        self.push(tag, reading, bytes, ino, role)?;
        self.push_columns(None);
        Ok(())
    }

    /// Stores the name, and the entry found under it in one role.
    fn push(
        &mut self,
        tag: Tag,
        reading: &DirReading<'_>,
        name: &[u8],
        ino: u64,
        role: Role,
    ) -> Result<(), ErrorKind> {
        let at = self.output.push_name(tag, name) - reading.names;
        let offset = offset(at)?;
        let nth = self.found.len();
        if nth + 2 > MOST {
            return Err(TOO_MANY);
        }
        self.found.push(Found::new(name, offset, ino, role, nth));
        Ok(())
    }
}
