//! Paths that a walk begins with: their kinds, and which of them are the same.

use std::collections::HashMap;
use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::sync::Arc;

use bc_fs::dirfd::{PLACE, open_through};
use bc_fs::mount::basic_traits;
use bc_fs::shortage::is_shortage;
use bc_pool::{Cancel, Cursor, Growth, WorkerBatches, WorkerPanic};
use rustix::fs::{CWD, fstat};
use rustix::io::Errno;

use crate::identity::{DirectoryMap, kernel_path_where_needed};
use crate::listing::PathPrefix;
use crate::named::{UNSEEN, regular_files, split};
use crate::open::{Ancestors, READ_DIR, is_long, stat_at};
use crate::shard::ROOT;
use crate::tree::{Listed, SharedTree, WalkRoot, WorkerOutput};
use crate::tuning::Tuning;
use crate::{
    Entries, Error, ErrorKind, FileKind, FileStat, Identity, Metadata, SkipReason, SkippedDetail,
    SkippedPath, Spellings, Symlinks, WalkOptions, Workers,
};

/// Number of root directories whose descriptors are kept open, so that a listing finds them again
/// whatever happens to their names; more could exhaust the descriptors.
const KEPT_OPEN: usize = 64;

/// Number of paths still to be looked at for which one more worker is started while workers wait
/// for the disk; each looks at the clock that often.
const WORTH_A_WORKER: usize = 16;

/// Treatment of the paths given.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Given {
    /// Walk the directories among them.
    Roots,
    /// List them and nothing else.
    Exactly,
}

/// A path that is listed itself.
#[derive(Debug)]
pub(crate) struct ListedFile<'p> {
    pub(crate) root: u32,
    /// Length of the path before the name: the directory with its slashes.
    pub(crate) prefix: usize,
    pub(crate) path: &'p [u8],
    pub(crate) seen: Sighting,
}

/// What is known of a named path.
#[derive(Debug)]
pub(crate) enum Sighting {
    /// A regular file, as its directory lists it, with its inode number.
    Listed(u64),
    /// It was looked at.
    Looked(Box<FileStat>),
}

impl Sighting {
    pub(crate) fn kind(&self) -> FileKind {
        match self {
            Sighting::Listed(_) => FileKind::File,
            Sighting::Looked(stat) => stat.kind(),
        }
    }

    pub(crate) fn ino(&self) -> u64 {
        match self {
            Sighting::Listed(ino) => *ino,
            Sighting::Looked(stat) => stat.id.ino,
        }
    }

    pub(crate) fn stat(&self) -> Option<&FileStat> {
        match self {
            Sighting::Listed(_) => None,
            Sighting::Looked(stat) => Some(stat),
        }
    }
}

/// The paths, sorted out.
#[derive(Debug, Default)]
pub(crate) struct Roots<'p> {
    pub(crate) prefixes: Vec<PathPrefix>,
    pub(crate) walk_roots: Vec<WalkRoot>,
    pub(crate) files: Vec<ListedFile<'p>>,
    pub(crate) listed: Listed,
    /// Errors, and paths that are left out.
    pub(crate) output: WorkerOutput,
}

/// Directory that contains files that are named.
#[derive(Clone)]
struct ParentDir {
    id: Identity,
    /// The kernel's path of it, if the identity is ambiguous.
    kernel_path: Option<Vec<u8>>,
}

/// Facts about one path.
struct Probe {
    seen: Sighting,
    /// The directory it is in, if that matters.
    parent: Option<ParentDir>,
}

pub(crate) fn resolve<'p>(
    given: Given,
    paths: &[&'p [u8]],
    options: &WalkOptions,
    workers: &dyn Fn() -> Workers,
    shared: &SharedTree,
    cancel: &Cancel,
    tuning: &Tuning,
) -> Result<Roots<'p>, WorkerPanic> {
    let probes = probe_all(given, paths, options, workers, cancel, tuning)?;
    let mut roots = Roots::default();
    let mut seen = DirectoryMap::default();
    for (root, (path, probe)) in paths.iter().copied().zip(probes).enumerate() {
        let result = match probe {
            Some(Ok(probe)) if probe.seen.kind() == FileKind::Dir && given == Given::Roots => {
                roots.add_directory(root as u32, path, shared, &mut seen, options)
            }
            Some(Ok(probe)) => roots.add_file(root as u32, path, probe, given, options),
            Some(Err(errno)) => Err(("stat", ErrorKind::System(errno.raw_os_error()))),
            // Cancelled.
            None => break,
        };
        if let Err((op, kind)) = result {
            roots.output.errors.push(Error::of_kind(path, op, kind));
        }
    }
    if given == Given::Roots || options.spellings != Spellings::AsNamed {
        roots.sort_files(options);
    }
    Ok(roots)
}

impl<'p> Roots<'p> {
    /// Puts the files in order by path, each once.
    fn sort_files(&mut self, options: &WalkOptions) {
        let named = self.files.len();
        self.files
            .sort_unstable_by(|a, b| a.path.cmp(b.path).then(a.root.cmp(&b.root)));
        let mut repeated = Vec::new();
        self.files.dedup_by(|again, first| {
            let same = again.path == first.path;
            if same && options.skipped == SkippedDetail::Paths {
                repeated.push(again.path.to_vec());
            }
            same
        });
        let reason = SkipReason::Repeated;
        let paths = repeated.into_iter();
        self.output
            .skipped_paths
            .extend(paths.map(|path| SkippedPath { path, reason }));
        self.output.skipped.repeated += (named - self.files.len()) as u64;
    }

    /// Counts that a root is left out, if there is a reason; returns whether there is.
    fn skips(&mut self, path: &[u8], reason: Option<SkipReason>, options: &WalkOptions) -> bool {
        let paths = reason.filter(|_| options.skipped == SkippedDetail::Paths);
        self.output
            .skipped_paths
            .extend(paths.map(|reason| SkippedPath {
                path: path.to_vec(),
                reason,
            }));
        self.output.skipped.count(reason)
    }

    fn add_directory(
        &mut self,
        root: u32,
        path: &[u8],
        shared: &SharedTree,
        seen: &mut DirectoryMap<()>,
        options: &WalkOptions,
    ) -> Result<(), (&'static str, ErrorKind)> {
        let failed = |errno: Errno| ("open", ErrorKind::System(errno.raw_os_error()));
        let fd = open_through(CWD, path, READ_DIR).map_err(failed)?;
        let id = FileStat::from(&fstat(&fd).map_err(failed)?).id;
        let traits = basic_traits(&fd).map_err(|refused| failed(refused.errno))?;
        let kernel_path = kernel_path_where_needed(&fd, &traits);
        if !seen.entry(id, kernel_path.as_deref()).1 {
            self.skips(path, Some(SkipReason::Repeated), options);
            return Ok(());
        }
        let mut printed = path.to_vec();
        if !printed.ends_with(b"/") {
            printed.push(b'/');
        }
        self.walk_roots.push(WalkRoot {
            prefix: self.prefixes.len() as u32,
            path: Vec::new(),
            ticket: shared.take_tickets(1),
            depth: 0,
            id,
            traits,
            kernel_path,
            ignores: None,
        });
        self.prefixes.push(PathPrefix {
            printed,
            path: path.to_vec(),
            root,
            fd: (self.prefixes.len() < KEPT_OPEN).then(|| Arc::new(fd)),
            id: Some(id),
        });
        Ok(())
    }

    /// Adds a file that was named.
    fn add_file(
        &mut self,
        root: u32,
        path: &'p [u8],
        probe: Probe,
        given: Given,
        options: &WalkOptions,
    ) -> Result<(), (&'static str, ErrorKind)> {
        let kind = probe.seen.kind();
        if options.entries == Entries::Files && kind != FileKind::File {
            return Err(match kind {
                FileKind::Dir => ("open", ErrorKind::System(Errno::ISDIR.raw_os_error())),
                _ => ("open", ErrorKind::NotRegular),
            });
        }
        let prefix = split(path);
        let name = &path[prefix..];
        let stat = probe.seen.stat();
        let reason = stat.and_then(|stat| filter(path, name, stat, given, options));
        if self.skips(path, reason, options) {
            return Ok(());
        }
        if let Some(ParentDir { id, kernel_path }) = &probe.parent
            && !self
                .listed
                .entry(*id, kernel_path.as_deref())
                .0
                .insert(name.to_vec())
            && options.spellings == Spellings::Once
        {
            self.skips(path, Some(SkipReason::Repeated), options);
            return Ok(());
        }
        // It belongs to the root directory's part, whichever that is.
        if options.shard.is_some_and(|shard| !shard.has_entry(ROOT)) {
            return Ok(());
        }
        self.files.push(ListedFile {
            root,
            prefix,
            path,
            seen: probe.seen,
        });
        Ok(())
    }
}

/// Returns the reason why a file that was named is left out. A hidden or ignored one is not: it has
/// been named. Patterns with a slash are matched against the path as it appears in a list, and
/// against the bare name of a root.
fn filter(
    path: &[u8],
    name: &[u8],
    stat: &FileStat,
    given: Given,
    options: &WalkOptions,
) -> Option<SkipReason> {
    if stat.kind() != FileKind::File {
        return None;
    }
    let matched = match given {
        Given::Roots => name,
        Given::Exactly => path.strip_prefix(b"./").unwrap_or(path),
    };
    let state = || {
        let ancestors = &mut Ancestors::default();
        let probe = probe(path, None, &Near::default(), Metadata::Basic, ancestors);
        Some(probe.ok()?.seen.stat()?.meta())
    };
    options
        .filter_identity(stat.id, || canonical(path), state)
        .or_else(|| options.filter_path(matched, FileKind::File, None))
        .or_else(|| options.filter_stamp(&stat.stamp))
}

/// True if it is enough to know of a regular file that it is one: nothing else is asked about the
/// files that were named, and none is left out.
fn kinds_suffice(given: Given, options: &WalkOptions) -> bool {
    given == Given::Exactly
        && options.metadata == Metadata::None
        && options.spellings != Spellings::Once
        && options.leave_out.is_empty()
        && !options.leaves_out()
}

/// Looks at all paths, in parallel where there are many. `None`: not reached, cancelled.
fn probe_all(
    given: Given,
    paths: &[&[u8]],
    options: &WalkOptions,
    workers: &dyn Fn() -> Workers,
    cancel: &Cancel,
    tuning: &Tuning,
) -> Result<Vec<Option<Result<Probe, Errno>>>, WorkerPanic> {
    let mut probes: Vec<_> = paths.iter().map(|_| None).collect();
    let mut left: Vec<u32> = (0..paths.len() as u32).collect();
    if kinds_suffice(given, options) {
        let inodes = regular_files(paths, workers, cancel, tuning)?;
        for (probe, ino) in probes.iter_mut().zip(&inodes) {
            let seen = Sighting::Listed(*ino);
            *probe = (*ino != UNSEEN).then_some(Ok(Probe { seen, parent: None }));
        }
        left.retain(|number| inodes[*number as usize] == UNSEEN);
    }
    // Two stats a path; about a thousand pay for the start of a thread.
    let workers = match left.len() / WORTH_A_WORKER {
        0 => Workers::from(1),
        most => workers().within(left.len() / 1000 + 1, most + 1),
    };
    let cursor = Cursor::new(left.len(), workers.usual());
    let remaining = || cursor.remaining();
    let growth = Growth::new(workers).left(&remaining, WORTH_A_WORKER);
    let growth = growth.metering(&tuning.metering);
    // To distinguish spellings, and for walks to pass over files that are listed beside them.
    let parents_matter =
        paths.len() > 1 && (given == Given::Roots || options.spellings == Spellings::Once);
    let parts = growth.run(|mut worker| {
        let mut part = Vec::new();
        let mut parents = HashMap::new();
        let mut ancestors = Ancestors::default();
        let mut near = Near::default();
        let mut batches = WorkerBatches::new(&mut worker);
        while let Some(batch) = batches.next(&cursor) {
            if cancel.is_cancelled() {
                break;
            }
            for place in batch {
                let index = left[place] as usize;
                let path = paths[index];
                let parent = parents_matter.then(|| {
                    let directory = &path[..split(path)];
                    parents
                        .entry(directory)
                        .or_insert_with(|| parent(directory, &mut ancestors))
                        .clone()
                });
                let next = left.get(place + 1).map(|next| paths[*next as usize]);
                near.move_on(path, next, &mut ancestors);
                let probe = probe(
                    path,
                    parent.flatten(),
                    &near,
                    options.stat_level(),
                    &mut ancestors,
                );
                part.push((index, probe));
            }
        }
        part
    })?;
    for (index, probe) in parts.into_iter().flatten() {
        probes[index] = Some(probe);
    }
    Ok(probes)
}

/// The directory of the path at hand, open where the next path has the same: names are looked up
/// from there, and not from the root of all each time.
#[derive(Default)]
struct Near<'p> {
    path: &'p [u8],
    fd: Option<Arc<OwnedFd>>,
}

impl<'p> Near<'p> {
    fn move_on(&mut self, path: &'p [u8], next: Option<&[u8]>, ancestors: &mut Ancestors) {
        let directory = &path[..split(path)];
        if directory == self.path {
            return;
        }
        let again = next.is_some_and(|next| next[..split(next)] == *directory);
        *self = Near {
            path: directory,
            // Its errors are ignored: looking up the whole path reports them.
            fd: again
                .then(|| open_directory(directory, ancestors).ok())
                .flatten(),
        };
    }
}

/// Looks at a path, following links.
fn probe(
    path: &[u8],
    parent: Option<ParentDir>,
    near: &Near<'_>,
    level: Metadata,
    ancestors: &mut Ancestors,
) -> Result<Probe, Errno> {
    // A closing slash asks for a directory and is not part of a name.
    let prefix = split(path);
    let name = CString::new(&path[prefix..]).map_err(|_| Errno::INVAL)?;
    let stat = if path.is_empty() {
        return Err(Errno::NOENT);
    } else if let Some(directory) = near.fd.as_ref().filter(|_| !name.is_empty()) {
        stat_at(directory.as_fd(), &name, Symlinks::Follow, level)?
    } else if name.is_empty() || path.len() >= 4096 || is_long(path) {
        let directory = open_directory(&path[..prefix], ancestors)?;
        match name.is_empty() {
            true => FileStat::from(&fstat(&directory)?),
            false => stat_at(directory.as_fd(), &name, Symlinks::Follow, level)?,
        }
    } else {
        let path = CString::new(path).map_err(|_| Errno::INVAL)?;
        stat_at(CWD, &path, Symlinks::Follow, level)?
    };
    let seen = Sighting::Looked(Box::new(stat));
    Ok(Probe { seen, parent })
}

fn parent(directory: &[u8], ancestors: &mut Ancestors) -> Option<ParentDir> {
    let path = if directory.is_empty() {
        b"."
    } else {
        directory
    };
    let fd = open_directory(path, ancestors).ok()?;
    let id = FileStat::from(&fstat(&fd).ok()?).id;
    let traits = basic_traits(&fd).ok()?;
    let kernel_path = kernel_path_where_needed(&fd, &traits);
    Some(ParentDir { id, kernel_path })
}

/// Opens a directory as a place, links followed.
fn open_directory(path: &[u8], ancestors: &mut Ancestors) -> Result<Arc<OwnedFd>, Errno> {
    if !is_long(path) {
        return open_through(CWD, path, PLACE).map(Arc::new);
    }
    let open = |from: Option<&Arc<OwnedFd>>, path: &[u8], _| {
        let from = from.map_or(CWD, |from| from.as_fd());
        open_through(from, path, PLACE)
    };
    let fd = match ancestors.open(path, open) {
        // Kept descriptors are no reason to fail for want of one.
        Err(errno) if is_shortage(&errno) && ancestors.clear() => {
            return open_through(CWD, path, PLACE).map(Arc::new);
        }
        opened => opened?,
    };
    ancestors.push(path, &fd);
    Ok(fd)
}

/// Returns the path without links, relative parts and doubled slashes.
fn canonical(path: &[u8]) -> Option<Vec<u8>> {
    let path = std::fs::canonicalize(OsStr::from_bytes(path)).ok()?;
    Some(path.into_os_string().into_vec())
}
