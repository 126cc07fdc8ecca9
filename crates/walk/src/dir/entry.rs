//! Deciding about one directory entry: what it is, whether it is listed, walked or left out.

use std::ffi::CStr;

use rustix::io::Errno;

use super::{Reading, Worker, system};
use crate::fd::stat_at;
use crate::ignores::Subject;
use crate::listing::Tag;
use crate::tree::{Task, WalkRoot};
use crate::worker_output::{Found, MOST, Role};
use crate::{
    BasicStat, Entries, ErrorKind, FileKind, FileStat, FileStats, Hidden, Metadata, OwnFile,
    Symlinks,
};

/// An entry that may be one of those to leave out.
struct Candidate<'t> {
    task: &'t Task,
    reading: &'t Reading<'t>,
    name: &'t CStr,
    links: Symlinks,
}

impl Candidate<'_> {
    /// The way there; where a link leads is not asked.
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
        reading: &Reading<'_>,
        name: &CStr,
        ino: u64,
        kind: Option<FileKind>,
    ) -> Result<(), ErrorKind> {
        let options = self.context.options;
        let bytes = name.to_bytes();
        if bytes == b"." || bytes == b".." {
            return Ok(());
        }
        if options.hidden == Hidden::Skip && bytes[0] == b'.' {
            self.output.skipped.hidden += 1;
            return Ok(());
        }
        if reading.roots.is_some_and(|roots| roots.contains(bytes)) {
            self.output.skipped.repeated += 1;
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
        if self.is_filtered(reading, bytes, kind) {
            return Ok(());
        }
        let mut stat = None;
        if kind == FileKind::File || options.entries == Entries::All {
            match self.stat_if_needed(reading, name, ino, kind, known) {
                Ok(Some(found)) => {
                    let candidate = Candidate {
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
                        self.output.skipped.repeated += 1;
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
        let descends = kind == FileKind::Dir && self.descends(reading);
        let lists = kind == FileKind::File || options.entries == Entries::All;
        if !lists && !descends {
            return Ok(());
        }
        let at = self.output.push_name(tag, bytes) - reading.names;
        let offset = u32::try_from(at)
            .map_err(|_| ErrorKind::Refused("more than 4 GiB of names in one directory"))?;
        if self.found.len() + 2 > MOST {
            return Err(ErrorKind::Refused(
                "more than 2^30 entries in one directory",
            ));
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

    /// By name, path and kind; counts the reason. Leaves the entry's path in `self.path` if
    /// any pattern could look at it.
    fn is_filtered(&mut self, reading: &Reading<'_>, name: &[u8], kind: FileKind) -> bool {
        let options = self.context.options;
        let skipped = &mut self.output.skipped;
        let patterns = !options.exclude.is_empty() || !options.include.is_empty();
        if patterns || reading.ignores.is_some() {
            self.path.truncate(reading.prefix);
            self.path.extend_from_slice(name);
            let (excluded, subject) = match kind {
                FileKind::Dir => (
                    options.exclude.matches_directory(&self.path),
                    Subject::Directory,
                ),
                _ => (options.exclude.matches_file(&self.path), Subject::File),
            };
            if excluded {
                skipped.excluded += 1;
                return true;
            }
            let ignores = reading.ignores.as_ref();
            if ignores.is_some_and(|ignores| ignores.ignores(&self.path, subject)) {
                skipped.ignored += 1;
                return true;
            }
            if kind == FileKind::File
                && !options.include.is_empty()
                && !options.include.matches_file(&self.path)
            {
                skipped.not_included += 1;
                return true;
            }
        }
        if options.entries == Entries::Files {
            match kind {
                FileKind::File | FileKind::Dir => {}
                FileKind::Symlink => {
                    skipped.symlinks += 1;
                    return true;
                }
                FileKind::Fifo | FileKind::Socket | FileKind::Block | FileKind::Char => {
                    skipped.special += 1;
                    return true;
                }
            }
        }
        false
    }

    fn stat_if_needed(
        &self,
        reading: &Reading<'_>,
        name: &CStr,
        ino: u64,
        kind: FileKind,
        known: Option<FileStat>,
    ) -> Result<Option<FileStat>, ErrorKind> {
        let options = self.context.options;
        // Where directory entries do not carry the true inode number, it has to be looked up.
        let may_be_left_out = |left_out: &OwnFile| left_out.id().ino == ino || !reading.is_plain;
        let left = kind == FileKind::File && options.file_stats == FileStats::Left;
        let needed = options.metadata != Metadata::None && !left
            || kind == FileKind::File
                && (options.filters_by_size() || options.leave_out.iter().any(may_be_left_out))
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

    /// By size and identity; counts the reason.
    fn is_filtered_by_stat(
        &mut self,
        kind: FileKind,
        stat: &FileStat,
        candidate: &Candidate<'_>,
    ) -> bool {
        let options = self.context.options;
        if kind != FileKind::File {
            return false;
        }
        let is_left_out = |own: &OwnFile| {
            own.is(
                stat.id,
                || candidate.way(&self.context.walk_roots[candidate.task.walk_root as usize]),
                || candidate.state(),
            )
        };
        let left_out = options.leave_out.iter().any(is_left_out);
        let skipped = &mut self.output.skipped;
        let counter = if left_out {
            &mut skipped.left_out
        } else if stat.stamp.size < options.min_size {
            &mut skipped.too_small
        } else if options.max_size.is_some_and(|most| stat.stamp.size > most) {
            &mut skipped.too_large
        } else {
            return false;
        };
        *counter += 1;
        true
    }

    /// Whether to walk a subdirectory, whose path is in `self.path` if there are patterns.
    fn descends(&mut self, reading: &Reading<'_>) -> bool {
        let options = self.context.options;
        if options
            .max_depth
            .is_some_and(|most| reading.depth + 1 >= most)
        {
            self.output.skipped.too_deep += 1;
            return false;
        }
        if !options.exclude.is_empty() && options.exclude.matches_contents(&self.path) {
            self.output.skipped.excluded += 1;
            return false;
        }
        true
    }
}
