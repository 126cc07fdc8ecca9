//! Decision about one directory entry: its kind, and whether it is listed, walked or left out.

use std::ffi::CStr;

use rustix::io::Errno;

use super::{DirReading, Worker, system};
use crate::fd::stat_at;
use crate::listing::Tag;
use crate::tree::{Task, WalkRoot};
use crate::worker_output::{Found, MOST, Role};
use crate::{
    BasicStat, Entries, ErrorKind, FileKind, FileStat, FileStats, Metadata, Repeats, SkipReason,
    Symlinks,
};

pub(super) const TOO_MANY: ErrorKind =
    ErrorKind::Refused("more than 2^30 entries in one directory");

/// Returns the offset of a name among the names of a directory, in 32 bits.
pub(super) fn offset(at: usize) -> Result<u32, ErrorKind> {
    u32::try_from(at).map_err(|_| ErrorKind::Refused("more than 4 GiB of names in one directory"))
}

/// An entry that may be one of those to leave out.
struct LeaveOutCandidate<'t> {
    task: &'t Task,
    reading: &'t DirReading<'t>,
    name: &'t CStr,
    links: Symlinks,
}

impl LeaveOutCandidate<'_> {
    /// Returns the way there; the target of a link is not asked for.
    fn way(&self, walk_root: &WalkRoot) -> Option<Vec<u8>> {
        match self.links {
            Symlinks::Skip => walk_root.way_to(&[&self.task.path, self.name.to_bytes()]),
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
        let mut known = None;
        let mut kind = match kind {
            Some(kind) => kind,
            None => match stat_at(reading.fd, name, Symlinks::Skip, options.metadata) {
                Ok(stat) => known.insert(stat).kind(),
                Err(errno) => {
                    self.fail(task, Some(bytes), "stat", system(errno));
                    return Ok(());
                }
            },
        };
        let mut tag = Tag::new(kind);
        let mut inner_role = Role::Descend;
        if kind == FileKind::Symlink && options.symlinks == Symlinks::Follow {
            match stat_at(reading.fd, name, Symlinks::Follow, options.metadata) {
                Ok(stat) => {
                    kind = known.insert(stat).kind();
                    tag = Tag::following(kind);
                    inner_role = Role::Defer;
                }
                // Broken: an entry like one that is not followed.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(errno) => {
                    self.fail(task, Some(bytes), "stat", system(errno));
                    return Ok(());
                }
            }
        }
        if self.is_filtered(task, reading, bytes, kind) {
            return Ok(());
        }
        let mut stat = None;
        if kind == FileKind::File || options.entries == Entries::All {
            match self.stat_if_needed(reading, name, ino, kind, known) {
                Ok(Some(found)) => {
                    let candidate = LeaveOutCandidate {
                        task,
                        reading,
                        name,
                        links: match inner_role {
                            Role::Defer => Symlinks::Follow,
                            Role::Descend | Role::Entry => Symlinks::Skip,
                        },
                    };
                    if self.is_filtered_by_stat(kind, &found, &candidate) {
                        return Ok(());
                    }
                    // Listed as a root of its own.
                    let walk_root = &self.context.walk_roots[task.walk_root as usize];
                    let way = || walk_root.way_to(&[&task.path, bytes]);
                    if inner_role == Role::Descend
                        && self.context.inner_roots.get(found.id, way).is_some()
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
        let at = self.output.push_name(tag, bytes) - reading.names;
        let offset = offset(at)?;
        if self.found.len() + 2 > MOST {
            return Err(TOO_MANY);
        }
        if lists {
            let ino = stat.as_ref().map_or(ino, |stat| stat.id.ino);
            let nth = self.found.len();
            self.found
                .push(Found::new(bytes, offset, ino, Role::Entry, nth));
            self.push_columns(stat.as_ref());
        }
        if descends {
            let nth = self.found.len();
            self.found
                .push(Found::new(bytes, offset, ino, inner_role, nth));
            self.push_columns(None);
        }
        Ok(())
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
        let stat = stat_at(reading.fd, name, Symlinks::Skip, options.metadata).map_err(system)?;
        if stat.kind() != kind {
            return Err(ErrorKind::Changed);
        }
        Ok(Some(stat))
    }

    /// Filters by identity and size; counts the reason.
    fn is_filtered_by_stat(
        &mut self,
        kind: FileKind,
        stat: &FileStat,
        candidate: &LeaveOutCandidate<'_>,
    ) -> bool {
        if kind != FileKind::File {
            return false;
        }
        let options = self.context.options;
        let walk_root = &self.context.walk_roots[candidate.task.walk_root as usize];
        let (way, state) = (|| candidate.way(walk_root), || candidate.state());
        let reason = options.filter_identity(stat.id, way, state);
        let reason = reason.or_else(|| options.filter_size(stat.stamp.size));
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
}
