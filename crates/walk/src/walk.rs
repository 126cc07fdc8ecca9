//! The walk as a whole: roots, then the trees behind mount points and links, then order.

use std::cell::{Cell, LazyCell};
use std::collections::{BTreeMap, HashSet};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Instant;

use bc_fs::dirfd::PLACE;
use bc_fs::mount::{Traits, basic_traits};
use bc_pool::{Cancel, Growth, LastRun, WorkQueue, WorkerPanic, run};
use rustix::fs::fstat;
use rustix::io::Errno;

use crate::absent::Declined;
use crate::dir::Worker;
use crate::identity::{DirectoryMap, kernel_path_where_needed};
use crate::listing::PathPrefix;
use crate::merge::{Parts, merge};
use crate::open::{KeptDirs, MountCrossing, Opener};
use crate::roots::{Given, Roots, resolve};
use crate::tree::{
    Context, Listed, Pending, SharedTree, Task, WalkRoot, WorkerOutput, take_declined,
};
use crate::tuning::Tuning;
use crate::{
    Entries, Error, FileStat, Identity, Listing, Metadata, OwnFile, Repeats, SkipReason,
    SkippedDetail, SkippedPath, Symlinks, WalkOptions, Workers,
};

/// Directories waiting in the shared queue; the rest waits with the worker that found it.
const QUEUE: usize = 64;

/// Lists the files below the roots: directories are walked, any other root is listed itself.
///
/// - Paths are printed with the root as given: `d` gives `d/x`, `d/` too, `.` gives `./x`.
/// - A root that is a symbolic link is followed. A root that cannot be reached, or is neither
///   a directory nor a regular file, is an error in the listing; the others are walked.
/// - Each directory is visited once, each file once per name. A directory is recognised by its
///   number, and where a view passes on the numbers of several file systems, by the path
///   within the mount. Where roots overlap, files below the inner one count as that one's; of
///   repeated roots the first counts; of several places where the same directory is mounted, the one that comes first
///   in path order.
/// - Filters apply to roots that are files as well, but they are never hidden or ignored.
///
/// `workers` is the number of threads that may be used, the caller's being one of them: a number
/// that is never exceeded, or [`Workers::adaptive`]. Others start only when the tree turns out to
/// be large enough. The result does not depend on it. When `cancel` is set the walk ends early and
/// the listing is incomplete, and [reports that](Listing::is_cancelled).
///
/// # Errors
///
/// Only if a worker panics. Failures of the system are in [`Listing::errors`].
///
/// # Panics
///
/// Beyond 2^32 entries: some 100 GB of memory.
pub fn walk(
    roots: &[impl AsRef<Path>],
    options: &WalkOptions,
    workers: impl Into<Workers>,
    cancel: &Cancel,
) -> Result<Listing, WorkerPanic> {
    let workers = workers.into();
    walk_with(roots, options, || workers, cancel.into())
}

/// Controls of a walk in progress: the flag that ends it early, and a count for its caller to watch.
#[derive(Clone, Copy, Debug)]
pub struct WalkControls<'c> {
    cancel: &'c Cancel,
    found: Option<&'c AtomicU64>,
}

impl<'c> WalkControls<'c> {
    /// Counts entries in `found` as they are found, a directory or some thousands of its entries at
    /// a time. The listing has the true number.
    #[must_use]
    pub(crate) fn counting(self, found: &'c AtomicU64) -> WalkControls<'c> {
        let found = Some(found);
        WalkControls { found, ..self }
    }
}

impl<'c> From<&'c Cancel> for WalkControls<'c> {
    fn from(cancel: &'c Cancel) -> WalkControls<'c> {
        let found = None;
        WalkControls { cancel, found }
    }
}

/// Walks as [`walk`] does where it costs something to know how many threads may be used: `workers`
/// is asked only if there is a directory to walk, or very many roots.
///
/// # Errors
///
/// Only if a worker panics.
pub fn walk_with<'p>(
    roots: &'p [impl AsRef<Path>],
    options: &WalkOptions,
    workers: impl FnOnce() -> Workers,
    controls: WalkControls<'_>,
) -> Result<Listing, WorkerPanic> {
    let bytes = |root: &'p Path| root.as_os_str().as_bytes();
    let paths: Vec<&[u8]> = roots.iter().map(|root| bytes(root.as_ref())).collect();
    let (tuning, opener) = (Tuning::default(), Opener::new());
    list_with(
        Given::Roots,
        &paths,
        options,
        workers,
        controls,
        &tuning,
        opener,
    )
}

/// Lists exactly these paths, without walking: links are followed, directories are errors
/// unless all [`Entries`](crate::Entries) are asked for, and a file given twice is listed
/// once, or under each of its [`Spellings`](crate::Spellings). Order, filters and errors are as for [`walk`].
///
/// Where neither [`Metadata`](crate::Metadata) nor filters are asked for, and spellings are not told
/// apart, directories with several of the files are read, and regular files that they list are not
/// looked at.
///
/// # Errors
///
/// Only if a worker panics.
///
/// ```
/// use bc_pool::Cancel;
/// use bc_walk::{WalkOptions, list_files};
///
/// let paths = ["src/lib.rs", "Cargo.toml", "none"];
/// let listing = list_files(&paths, &WalkOptions::default(), 1, &Cancel::new())?;
/// let paths: Vec<_> = listing.ids().map(|id| listing.path(id)).collect();
/// assert_eq!(paths, [&b"Cargo.toml"[..], b"src/lib.rs"]);
/// assert_eq!(listing.errors()[0].path(), b"none");
/// # Ok::<(), bc_pool::WorkerPanic>(())
/// ```
pub fn list_files(
    paths: &[impl AsRef<[u8]>],
    options: &WalkOptions,
    workers: impl Into<Workers>,
    cancel: &Cancel,
) -> Result<Listing, WorkerPanic> {
    let (workers, tuning) = (workers.into(), Tuning::default());
    list(Given::Exactly, paths, options, workers, cancel, &tuning)
}

/// True if a walk of `roots` without any filter comes upon a file: under its own name, a hard link,
/// a bind mount, or a link that is followed. For programs that are about to replace the file.
///
/// # Errors
/// If a worker panics.
pub fn is_among(
    roots: &[impl AsRef<Path>],
    file: &OwnFile,
    symlinks: Symlinks,
    workers: impl Into<Workers>,
    cancel: &Cancel,
) -> Result<bool, WorkerPanic> {
    let options = WalkOptions::default()
        .symlinks(symlinks)
        .metadata(Metadata::None)
        .leave_out(vec![file.clone()]);
    let listing = walk(roots, &options, workers, cancel)?;
    Ok(listing.skipped().left_out > 0)
}

pub(crate) fn list(
    given: Given,
    paths: &[impl AsRef<[u8]>],
    options: &WalkOptions,
    workers: Workers,
    cancel: &Cancel,
    tuning: &Tuning,
) -> Result<Listing, WorkerPanic> {
    let (paths, opener) = (as_bytes(paths), Opener::new());
    let controls = cancel.into();
    list_with(given, &paths, options, || workers, controls, tuning, opener)
}

fn as_bytes(paths: &[impl AsRef<[u8]>]) -> Vec<&[u8]> {
    paths.iter().map(AsRef::as_ref).collect()
}

/// A walk in progress.
struct Walk<'w> {
    options: &'w WalkOptions,
    workers: Workers,
    controls: WalkControls<'w>,
    tuning: &'w Tuning,
    opener: Opener,
    prefixes: Vec<PathPrefix>,
    walk_roots: Vec<WalkRoot>,
    walk_root_map: DirectoryMap<()>,
    inner_roots: DirectoryMap<()>,
    listed: Listed,
    watched: HashSet<u64>,
    shared: SharedTree,
    /// One for each worker that ever ran; the first has what the walk itself finds, too.
    outputs: Vec<Mutex<WorkerOutput>>,
    last_run: LastRun,
    passed_by: Vec<Vec<u8>>,
}

pub(crate) fn list_with(
    given: Given,
    paths: &[&[u8]],
    options: &WalkOptions,
    workers: impl FnOnce() -> Workers,
    controls: WalkControls<'_>,
    tuning: &Tuning,
    opener: Opener,
) -> Result<Listing, WorkerPanic> {
    let cancel = controls.cancel;
    let shared = SharedTree::default();
    let workers = LazyCell::new(workers);
    let ask = || *workers;
    let roots = resolve(given, paths, options, &ask, &shared, cancel, tuning)?;
    let Roots {
        prefixes,
        walk_roots,
        files,
        listed,
        output,
    } = roots;
    let mut inner_roots = DirectoryMap::default();
    let skips = options.entries == Entries::All && options.repeats == Repeats::Skip;
    if skips && walk_roots.len() > 1 {
        for walk_root in &walk_roots {
            inner_roots.entry(walk_root.id, walk_root.kernel_path.as_deref());
        }
    }
    let workers = match walk_roots[..] {
        [] => Workers::from(1),
        _ => ask(),
    };
    let mut walk = Walk {
        options,
        workers,
        controls,
        tuning,
        opener,
        prefixes,
        walk_roots,
        walk_root_map: DirectoryMap::default(),
        inner_roots,
        listed,
        watched: HashSet::new(),
        shared,
        outputs: vec![Mutex::new(output)],
        last_run: LastRun::default(),
        passed_by: Vec::new(),
    };
    let mut pending = walk.batch(0)?;
    let mut visited = Visited::default();
    while let Some((_, next)) = pending.pop_first() {
        if cancel.is_cancelled() {
            break;
        }
        if walk.enter(next, &mut visited) {
            let first = walk.walk_roots.len() - 1;
            pending.extend(walk.batch(first)?);
        }
    }
    let mut outputs: Vec<WorkerOutput> = walk.outputs.into_iter().map(into_inner).collect();
    let declined = take_declined(&mut outputs);
    let mut listing = merge(Parts {
        options,
        cancelled: cancel.is_cancelled(),
        last_run: walk.last_run,
        opener: walk.opener,
        prefixes: walk.prefixes,
        walk_roots: walk.walk_roots,
        files,
        shared: walk.shared,
        outputs,
        passed_by: walk.passed_by,
    });
    listing.find_absent(options, declined);
    Ok(listing)
}

/// A directory that may be walked.
struct WalkableDir {
    id: Identity,
    traits: Traits,
    /// The kernel's path of it, where numbers do not distinguish directories.
    kernel_path: Option<Vec<u8>>,
}

impl Walk<'_> {
    /// Walks from the walk roots that are new, and returns the directories that were put off, by
    /// printed path.
    fn batch(&mut self, first: usize) -> Result<BTreeMap<(Vec<u8>, u32), Pending>, WorkerPanic> {
        self.watch();
        let context = Context {
            options: self.options,
            cancel: self.controls.cancel,
            counted: self.controls.found,
            opener: &self.opener,
            kept: &KeptDirs::default(),
            prefixes: &self.prefixes,
            walk_roots: &self.walk_roots,
            walk_root_map: &self.walk_root_map,
            inner_roots: &self.inner_roots,
            listed: &self.listed,
            watched: &self.watched,
            shared: &self.shared,
        };
        let left = run(1, |_| {
            let tasks = (first..self.walk_roots.len())
                .rev()
                .map(|walk_root| first_task(&self.walk_roots[walk_root], walk_root as u32))
                .collect();
            let output = &mut lock(&self.outputs[0]);
            walk_alone(&context, output, tasks, self.workers, self.tuning)
        })?;
        let tasks: Vec<Task> = left.into_iter().flatten().collect();
        if !tasks.is_empty() && !self.controls.cancel.is_cancelled() {
            let before = self.outputs.len();
            // The second half is for those that join in the place of others that have ended.
            let most = 2 * self.workers.most();
            self.outputs.resize_with(most, Mutex::default);
            let growth = Growth::new(self.workers).metering(&self.tuning.metering);
            let growth = growth.after(&self.last_run);
            let ran = walk_together(&context, &self.outputs, tasks, growth)?;
            self.outputs.truncate(ran.max(before));
        }
        let mut pending = BTreeMap::new();
        for output in &self.outputs {
            for next in std::mem::take(&mut lock(output).pending) {
                let mut path = self.prefixes[next.prefix as usize].printed.clone();
                path.extend_from_slice(&next.path);
                pending.insert((path, next.prefix), next);
            }
        }
        Ok(pending)
    }

    /// Updates the sets of directories that have to be looked at twice.
    fn watch(&mut self) {
        for walk_root in &self.walk_roots {
            self.walk_root_map
                .entry(walk_root.id, walk_root.kernel_path.as_deref());
        }
        // A single walk root cannot be met on the way down from itself, but through a mount point,
        // which is looked at anyway.
        if self.walk_roots.len() > 1 {
            self.watched.extend(self.walk_root_map.inodes());
        }
        self.watched.extend(self.listed.inodes());
    }

    /// Decides whether to enter a directory that was put off: adds a walk root, or counts why not.
    fn enter(&mut self, next: Pending, visited: &mut Visited) -> bool {
        let prefix = &self.prefixes[next.prefix as usize];
        let looked = self.look(prefix, &next.path);
        let WalkableDir {
            id,
            traits,
            kernel_path,
        } = match looked {
            Ok(dir) => dir,
            Err(errno) => {
                let path = [&prefix.printed[..], &next.path].concat();
                lock(&self.outputs[0])
                    .errors
                    .push(Error::new(path, "open", errno));
                return false;
            }
        };
        let root_dev = prefix.id.map(|id| id.dev);
        let mut reason = self.options.filter_file_system(id.dev, root_dev, &traits);
        if reason.is_none()
            && visited.contains(id, kernel_path.as_deref(), &self.walk_roots, &self.outputs)
        {
            reason = Some(SkipReason::Repeated);
        }
        let mut output = lock(&self.outputs[0]);
        if let (Some(_), Some(shard)) = (reason, self.options.shard) {
            output.met.insert(&next.path);
            self.passed_by.push(next.path.clone());
            if !shard.has_directory(&next.path) {
                return false;
            }
            output.settled.insert(&next.path);
        }
        if let Some(reason) = reason {
            let declined = Declined::find(self.options, next.prefix, &next.path, reason);
            output.declined.extend(declined);
            if self.options.skipped == SkippedDetail::Paths {
                let path = [&prefix.printed[..], &next.path].concat();
                output.skipped_paths.push(SkippedPath { path, reason });
            }
        }
        if output.skipped.count(reason) {
            false
        } else {
            self.walk_roots.push(WalkRoot {
                prefix: next.prefix,
                path: next.path,
                ticket: next.ticket,
                depth: next.depth,
                id,
                traits,
                kernel_path,
                ignores: next.ignores,
            });
            true
        }
    }

    /// Looks at a directory.
    fn look(&self, prefix: &PathPrefix, path: &[u8]) -> Result<WalkableDir, Errno> {
        let prefix_fd = prefix.open(PLACE)?;
        let symlinks = self.options.symlinks;
        let fd = self.opener.open_below(
            prefix_fd.as_fd(),
            path,
            PLACE,
            symlinks,
            MountCrossing::Cross,
        )?;
        let traits = basic_traits(&fd)?;
        let kernel_path = kernel_path_where_needed(&fd, &traits);
        let id = FileStat::from(&fstat(&fd)?).id;
        Ok(WalkableDir {
            id,
            traits,
            kernel_path,
        })
    }
}

/// Walks on this thread, until all is done or others are needed; returns the remaining tasks.
fn walk_alone(
    context: &Context<'_>,
    output: &mut WorkerOutput,
    mut tasks: Vec<Task>,
    workers: Workers,
    tuning: &Tuning,
) -> Vec<Task> {
    let started = Instant::now();
    let limit = (workers.usual() > 1).then_some(tuning.alone);
    // Where one is the usual number, only waiting is a reason to share the work out.
    let waited = Cell::new(false);
    let spawn = || !waited.replace(true);
    let growth = match limit {
        Some(_) => Growth::new(1),
        None => Growth::new(workers).left(&|| 1, 1),
    };
    let growth = growth.metering(&tuning.metering);
    let mut worker = Worker::new(context, output, growth.alone(&spawn));
    let is_over = || waited.get() || limit.is_some_and(|limit| started.elapsed() >= limit);
    while !context.cancel.is_cancelled() && !is_over() {
        let Some(task) = tasks.pop() else {
            break;
        };
        worker.process(&task, |child| tasks.push(child));
    }
    tasks
}

/// Walks on several threads until all is done; returns how many of the first `outputs` they have
/// used.
fn walk_together(
    context: &Context<'_>,
    outputs: &[Mutex<WorkerOutput>],
    tasks: Vec<Task>,
    growth: Growth<'_>,
) -> Result<usize, WorkerPanic> {
    let queue = WorkQueue::new(QUEUE);
    tasks.into_iter().for_each(|task| queue.push(task));
    let waiting = || queue.waiting();
    let used = growth.left(&waiting, 1).run(|handle| {
        let (at, mut output) = output_of(outputs, handle.number());
        let mut worker = Worker::new(context, &mut output, handle);
        queue.work(context.cancel, |task, local| {
            worker.process(&task, |child| local.push(child));
            if worker.ends() {
                local.end();
            }
        });
        at + 1
    })?;
    Ok(used.into_iter().max().unwrap_or(0))
}

/// Returns the output of the worker with that number: its own, or in the second half, which is for those
/// that are started in the place of others, the first that none has.
fn output_of(
    outputs: &[Mutex<WorkerOutput>],
    number: usize,
) -> (usize, MutexGuard<'_, WorkerOutput>) {
    let later = outputs.len() / 2;
    if number < later {
        return (number, lock(&outputs[number]));
    }
    let free = (later..outputs.len()).find_map(|at| match outputs[at].try_lock() {
        Ok(output) => Some((at, output)),
        Err(TryLockError::Poisoned(poisoned)) => Some((at, poisoned.into_inner())),
        Err(TryLockError::WouldBlock) => None,
    });
    free.unwrap_or_else(|| (later, lock(&outputs[later])))
}

fn first_task(walk_root: &WalkRoot, index: u32) -> Task {
    Task {
        walk_root: index,
        fd: None,
        path: Vec::new(),
        ticket: walk_root.ticket,
        depth: walk_root.depth,
        ino: walk_root.id.ino,
        ignores: walk_root.ignores.clone(),
    }
}

/// Set of the directories that have been read; built only when something asks.
#[derive(Default)]
struct Visited {
    ids: HashSet<Identity>,
    /// Number, per output, of its directories that are in the set.
    known: Vec<usize>,
}

impl Visited {
    fn contains(
        &mut self,
        id: Identity,
        kernel_path: Option<&[u8]>,
        walk_roots: &[WalkRoot],
        outputs: &[Mutex<WorkerOutput>],
    ) -> bool {
        // On a device that no walk has touched yet, nothing has been visited.
        if walk_roots
            .iter()
            .all(|walk_root| walk_root.id.dev != id.dev)
        {
            return false;
        }
        // Where numbers are ambiguous. Without links, a directory that was put off begins a mount,
        // which no walk enters but from a walk root.
        if let Some(kernel_path) = kernel_path {
            return walk_roots
                .iter()
                .any(|walk_root| walk_root.kernel_path.as_deref() == Some(kernel_path))
                || outputs
                    .iter()
                    .any(|output| lock(output).kernel_paths.contains(kernel_path));
        }
        self.known.resize(outputs.len(), 0);
        for (output, known) in outputs.iter().zip(&mut self.known) {
            let output = lock(output);
            for dir in &output.dirs[*known..] {
                self.ids.insert(Identity {
                    dev: walk_roots[dir.walk_root as usize].id.dev,
                    ino: dir.ino,
                });
            }
            *known = output.dirs.len();
        }
        self.ids.contains(&id)
    }
}

fn lock(output: &Mutex<WorkerOutput>) -> MutexGuard<'_, WorkerOutput> {
    output.lock().unwrap_or_else(PoisonError::into_inner)
}

fn into_inner(output: Mutex<WorkerOutput>) -> WorkerOutput {
    output.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
