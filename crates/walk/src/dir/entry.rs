//! Decision about one directory entry: its kind, and whether it is listed, walked or left out. Where
//! one part of the tree is asked for, directories of other parts are passed by on the way to those
//! below them.

use std::ffi::CStr;

use rustix::io::Errno;

use super::{DirReading, Worker, system};
use crate::listing::Tag;
use crate::open::stat_at;
use crate::shard::without_slash;
use crate::tree::{FoundEntry, MOST, Role, Task, WalkRoot};
use crate::{
    BasicStat, Entries, ErrorKind, FileKind, FileStat, FileStats, Metadata, Repeats, Shard,
    SkipReason, Symlinks,
};

/// Kind of an entry, found out as far as the directory does not list it.
struct EntryKind {
    /// The target's, if a link is followed.
    kind: FileKind,
    tag: Tag,
    /// Role of a subdirectory: behind a link it is put off.
    role: Role,
    /// Metadata, if the entry had to be looked at.
    stat: Option<FileStat>,
}

/// An entry that may be one of those to leave out.
struct LeaveOutCandidate<'t> {
    task: &'t Task,
    reading: &'t DirReading<'t>,
    name: &'t CStr,
    links: Symlinks,
}

impl LeaveOutCandidate<'_> {
    /// Returns the kernel's path; that of the target of a link is not asked for.
    fn kernel_path(&self, walk_root: &WalkRoot) -> Option<Vec<u8>> {
        match self.links {
            Symlinks::Skip => walk_root.kernel_path_to(&[&self.task.path, self.name.to_bytes()]),
            Symlinks::Follow => None,
        }
    }

    fn state(&self) -> Option<BasicStat> {
        let stat = stat_at(self.reading.fd, self.name, self.links, Metadata::Basic);
        Some(stat.ok()?.meta())
    }
}

impl Worker<'_> {
    /// Decides about one entry. An error ends the reading of the directory.
    pub(super) fn consider(
        &mut self,
        task: &Task,
        reading: &DirReading<'_>,
        name: &CStr,
        ino: u64,
        kind: Option<FileKind>,
    ) -> Result<(), ErrorKind> {
        let options = self.context.options;
        let bytes = name.to_bytes();
        if bytes == b"." || bytes == b".." {
            return Ok(());
        }
        if self.skips(task, Some(bytes), options.filter_name(bytes)) {
            return Ok(());
        }
        let is_root = reading.roots.is_some_and(|roots| roots.contains(bytes));
        if is_root && options.repeats == Repeats::Skip {
            self.skips(task, Some(bytes), Some(SkipReason::Repeated));
            return Ok(());
        }
        let looked = self.look(task, reading, name, kind, options.stat_level());
        let Some(looked) = looked else {
            return Ok(());
        };
        let EntryKind { kind, mut tag, .. } = looked;
        if self.is_filtered(task, reading, bytes, kind) {
            return Ok(());
        }
        let mut stat = None;
        if kind == FileKind::File || options.entries == Entries::All {
            match self.stat_if_needed(reading, name, ino, kind, looked.stat) {
                Ok(Some(found)) => {
                    let candidate = LeaveOutCandidate {
                        task,
                        reading,
                        name,
                        links: match looked.role {
                            Role::Defer => Symlinks::Follow,
                            Role::Descend | Role::Entry => Symlinks::Skip,
                        },
                    };
                    if self.is_filtered_by_stat(kind, &found, &candidate) {
                        return Ok(());
                    }
                    // Listed as a root of its own.
                    let walk_root = &self.context.walk_roots[task.walk_root as usize];
                    let kernel_path = || walk_root.kernel_path_to(&[&task.path, bytes]);
                    if looked.role == Role::Descend
                        && self
                            .context
                            .inner_roots
                            .get(found.id, kernel_path)
                            .is_some()
                    {
                        self.skips(task, Some(bytes), Some(SkipReason::Repeated));
                        return Ok(());
                    }
                    stat = Some(found);
                }
                Ok(None) => {}
                Err(reason) => {
                    self.fail(task, Some(bytes), "stat", reason);
                    return Ok(());
                }
            }
        }
        let descends = kind == FileKind::Dir && self.descends(task, reading, bytes);
        let lists = kind == FileKind::File || options.entries == Entries::All;
        if !lists && !descends {
            return Ok(());
        }
        if kind == FileKind::Dir && !descends {
            tag = tag.closed();
        }
        let offset = self.push_name(tag, reading, bytes)?;
        if lists {
            let ino = stat.as_ref().map_or(ino, |stat| stat.id.ino);
            self.push_found(bytes, offset, ino, Role::Entry);
            self.push_columns(stat.as_ref());
        }
        if descends {
            self.push_found(bytes, offset, ino, looked.role);
            self.push_columns(None);
        }
        Ok(())
    }

    /// Finds out the kind of an entry, which is `listed` if the directory says so; follows a link
    /// if the options do, unless it is broken. `None`: that failed, and is reported.
    #[inline]
    fn look(
        &mut self,
        task: &Task,
        reading: &DirReading<'_>,
        name: &CStr,
        listed: Option<FileKind>,
        level: Metadata,
    ) -> Option<EntryKind> {
        let mut stat = None;
        let kind = match listed {
            Some(kind) => kind,
            None => match stat_at(reading.fd, name, Symlinks::Skip, level) {
                Ok(found) => stat.insert(found).kind(),
                Err(errno) => {
                    self.fail(task, Some(name.to_bytes()), "stat", system(errno));
                    return None;
                }
            },
        };
        if kind == FileKind::Symlink && self.context.options.symlinks == Symlinks::Follow {
            match stat_at(reading.fd, name, Symlinks::Follow, level) {
                Ok(found) => {
                    return Some(EntryKind {
                        kind: found.kind(),
                        tag: Tag::following(found.kind()),
                        role: Role::Defer,
                        stat: Some(found),
                    });
                }
                // Broken: an entry like one that is not followed.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(errno) => {
                    self.fail(task, Some(name.to_bytes()), "stat", system(errno));
                    return None;
                }
            }
        }
        Some(EntryKind {
            kind,
            tag: Tag::new(kind),
            role: Role::Descend,
            stat,
        })
    }

    /// Stores a name for one or two entries; returns its offset among the names of its directory.
    fn push_name(
        &mut self,
        tag: Tag,
        reading: &DirReading<'_>,
        name: &[u8],
    ) -> Result<u32, ErrorKind> {
        let at = self.output.push_name(tag, name) - reading.names;
        let too_long = "more than 4 GiB of names in one directory";
        let offset = u32::try_from(at).map_err(|_| ErrorKind::Refused(too_long))?;
        if self.found.len() + 2 > MOST {
            let too_many = "more than 2^30 entries in one directory";
            return Err(ErrorKind::Refused(too_many));
        }
        Ok(offset)
    }

    /// Adds what was found under a stored name, in one role.
    fn push_found(&mut self, name: &[u8], offset: u32, ino: u64, role: Role) {
        let nth = self.found.len();
        self.found
            .push(FoundEntry::new(name, offset, ino, role, nth));
    }

    /// Filters by path and kind; counts the reason. Leaves the entry's path in `self.path` if any
    /// pattern could look at it.
    fn is_filtered(
        &mut self,
        task: &Task,
        reading: &DirReading<'_>,
        name: &[u8],
        kind: FileKind,
    ) -> bool {
        let options = self.context.options;
        let mut reason = None;
        if options.has_patterns() || reading.ignores.is_some() {
            self.path.truncate(reading.prefix);
            self.path.extend_from_slice(name);
            reason = options.filter_path(&self.path, kind, reading.ignores.as_deref());
        }
        let reason = reason.or_else(|| options.filter_kind(kind));
        self.skips(task, Some(name), reason)
    }

    fn stat_if_needed(
        &self,
        reading: &DirReading<'_>,
        name: &CStr,
        ino: u64,
        kind: FileKind,
        known: Option<FileStat>,
    ) -> Result<Option<FileStat>, ErrorKind> {
        let options = self.context.options;
        // Where directory entries do not carry the true inode number, it has to be looked up.
        let known_ino = reading.is_plain.then_some(ino);
        let left = kind == FileKind::File && options.file_stats == FileStats::Left;
        let needed = options.metadata != Metadata::None && !left
            || kind == FileKind::File && options.filters_by_stat(known_ino)
            || kind == FileKind::Dir && !self.context.inner_roots.is_empty();
        if known.is_some() || !needed {
            return Ok(known);
        }
        let stat =
            stat_at(reading.fd, name, Symlinks::Skip, options.stat_level()).map_err(system)?;
        if stat.kind() != kind {
            return Err(ErrorKind::Changed);
        }
        Ok(Some(stat))
    }

    /// Filters files by identity, size and time, directories by identity; counts the reason.
    fn is_filtered_by_stat(
        &mut self,
        kind: FileKind,
        stat: &FileStat,
        candidate: &LeaveOutCandidate<'_>,
    ) -> bool {
        if !matches!(kind, FileKind::File | FileKind::Dir) {
            return false;
        }
        let options = self.context.options;
        let walk_root = &self.context.walk_roots[candidate.task.walk_root as usize];
        let (kernel_path, state) = (|| candidate.kernel_path(walk_root), || candidate.state());
        let reason = options.filter_identity(stat.id, kernel_path, state);
        let by_stamp = || options.filter_stamp(&stat.stamp);
        let reason = match kind {
            FileKind::File => reason.or_else(by_stamp),
            _ => reason,
        };
        self.skips(candidate.task, Some(candidate.name.to_bytes()), reason)
    }

    /// True if the walk is to descend into a subdirectory, whose path is in `self.path` if there
    /// are patterns.
    pub(super) fn descends(&mut self, task: &Task, reading: &DirReading<'_>, name: &[u8]) -> bool {
        let options = self.context.options;
        let reason = options.filter_depth(reading.depth + 1);
        let reason = reason.or_else(|| options.filter_contents(&self.path));
        if reason.is_some() {
            self.settles(reading.prefix, name);
        }
        // Entries of another part are counted there.
        let reason_here = reason.filter(|_| reading.is_asked_for);
        self.skips(task, Some(name), reason_here);
        reason.is_none()
    }

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
        // Where that fails, it may be a directory of which something is asked for.
        let looked = self.look(task, reading, name, kind, Metadata::None);
        let Some(looked) = looked.filter(|looked| looked.kind == FileKind::Dir) else {
            return Ok(());
        };
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
        let offset = self.push_name(looked.tag, reading, bytes)?;
        self.push_found(bytes, offset, ino, looked.role);
        self.push_columns(None);
        Ok(())
    }
}
