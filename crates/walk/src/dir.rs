//! One directory of a walk, opened from the nearest one above it that is still open, and read: the
//! inner loop.

mod entry;

use std::collections::HashSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bc_fs::dirfd::PLACE;
use bc_fs::mount::Answer;
use bc_pool::{Waiting, WorkerHandle};
use rustix::fs::{OFlags, RawDir, fstat};
use rustix::io::Errno;

use crate::absent::Declined;
use crate::columns::{AttributeClass, Recent};
use crate::ignores::Ignores;
use crate::listing::Tag;
use crate::open::{Ancestors, MountCrossing, OwnDirs, READ_DIR, Reach};
use crate::tree::{
    Context, DirRecord, FoundEntry, Item, NO_CHILD, Pending, Role, Task, WorkerOutput, sort,
};
use crate::{
    Entries, Error, ErrorKind, FileKind, FileStat, Gap, IgnoreFiles, Metadata, SkipReason,
    SkippedDetail, SkippedPath, Symlinks,
};

/// Bytes that one `getdents64` call fills at most. Only pages that the kernel writes are ever
/// touched, so a small tree pays for a page.
pub(crate) const BUFFER: usize = 64 << 10;

/// Number of entries of a directory for which room is kept for the next one. More is given back:
/// one huge directory would hold 24 bytes an entry until the walk ends.
const KEPT: usize = 64 << 10;

/// The cancel flag and the clock are looked at after this many entries, in directories with
/// more.
const LOOK_EVERY: usize = 4096;

/// Entries of a worker's first directory after which it looks at the clock, so that others join soon
/// where each entry waits.
const EARLY_LOOKS: [usize; 2] = [4, 16];

/// Requests to a server to open and read a directory, each of which takes about as long as the `stat`
/// of an entry: the measure of work.
const REQUESTS: u64 = 3;

/// One worker's tools. Nothing matters from one directory to the next but the output.
pub(crate) struct Worker<'w> {
    context: &'w Context<'w>,
    output: &'w mut WorkerOutput,
    handle: WorkerHandle<'w>,
    buffer: Vec<u8>,
    found: Vec<FoundEntry>,
    /// Number of them that the caller's count contains.
    counted: usize,
    /// Buffer for putting rows of metadata in order.
    scratch: Vec<u64>,
    /// The directory's path below the root with a closing slash, then a name of it.
    path: Vec<u8>,
    classes: Recent,
    /// Directories above, of the walk root of that number.
    kept: OwnDirs<'w>,
    kept_of: u32,
    /// True until a first directory is read.
    is_new: bool,
}

/// The directory being read.
struct DirReading<'t> {
    fd: BorrowedFd<'t>,
    depth: u32,
    /// Length of its path below the root with a closing slash.
    prefix: usize,
    /// Offset of this directory's names in the output.
    names: usize,
    /// True if directory entries carry true inode numbers.
    is_plain: bool,
    /// True if they carry true kinds.
    lists_kinds: bool,
    /// Names of this directory that are roots themselves.
    roots: Option<&'t HashSet<Vec<u8>>>,
    ignores: Option<Arc<Ignores>>,
    /// True if it is in the part of the tree that is asked for.
    is_asked_for: bool,
}

impl<'w> Worker<'w> {
    pub(crate) fn new(
        context: &'w Context<'w>,
        output: &'w mut WorkerOutput,
        handle: WorkerHandle<'w>,
    ) -> Worker<'w> {
        Worker {
            context,
            output,
            handle,
            buffer: Vec::with_capacity(BUFFER),
            found: Vec::new(),
            counted: 0,
            scratch: Vec::new(),
            path: Vec::new(),
            classes: Recent::default(),
            kept: context.kept.join(),
            kept_of: 0,
            is_new: true,
        }
    }

    /// Reads one directory; gives its subdirectories to `push`, the last one first.
    pub(crate) fn process(&mut self, task: &Task, push: impl FnMut(Task)) {
        self.handle.waiting(Waiting::Begins);
        self.handle.count(REQUESTS);
        self.set_path(task);
        match self.open(task) {
            Ok(Some((fd, stat))) => self.read(task, &fd, stat.as_ref(), push),
            Ok(None) => {}
            Err(kind) => self.fail(task, None, "open", kind),
        }
    }

    /// True if the worker is to end: see [`WorkerHandle::ends`].
    pub(crate) fn ends(&mut self) -> bool {
        self.handle.ends()
    }

    /// Opens the directory, with its stat if that was needed. `None`: it is not to be read
    /// now, and that is accounted for.
    #[allow(clippy::type_complexity)]
    fn open(&mut self, task: &Task) -> Result<Option<(Arc<OwnedFd>, Option<FileStat>)>, ErrorKind> {
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
        let kernel_path = || walk_root.kernel_path_to(&[&task.path]);
        if context.walk_root_map.get(stat.id, kernel_path).is_some() {
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
        open: impl Fn(&Self, &mut Ancestors) -> Result<Arc<OwnedFd>, Errno>,
    ) -> Result<Arc<OwnedFd>, Errno> {
        let (shortage, cancel) = (&self.context.opener.shortage, self.context.cancel);
        self.kept.open(shortage, cancel, |kept| open(self, kept))
    }

    fn open_below(
        &self,
        root_fd: &OwnedFd,
        task: &Task,
        kept: &mut Ancestors,
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
        let prefix_fd = prefix.open(READ_DIR)?;
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

    /// Puts off a mount point or something like it: whether and when to enter it is decided later.
    fn defer_mount(&mut self, task: &Task) {
        self.output.pending.push(Pending {
            prefix: self.context.walk_roots[task.walk_root as usize].prefix,
            path: self.path[..self.path.len() - 1].to_vec(),
            ticket: task.ticket,
            depth: task.depth,
            ignores: task.ignores.clone(),
        });
    }

    fn read(
        &mut self,
        task: &Task,
        fd: &Arc<OwnedFd>,
        stat: Option<&FileStat>,
        push: impl FnMut(Task),
    ) {
        let options = self.context.options;
        let walk_root = &self.context.walk_roots[task.walk_root as usize];
        let mut reading = DirReading {
            fd: fd.as_fd(),
            depth: task.depth,
            prefix: self.path.len(),
            names: self.output.names.len(),
            is_plain: walk_root.traits.plain == Answer::Yes,
            lists_kinds: walk_root.traits.lists_kinds(),
            roots: stat.and_then(|stat| {
                let kernel_path = || walk_root.kernel_path_to(&[&task.path]);
                self.context.listed.get(stat.id, kernel_path)
            }),
            ignores: task.ignores.clone(),
            is_asked_for: self.is_asked_for(),
        };
        let (filtered, failures) = (self.output.skipped.filtered(), self.output.errors.len());
        if options.ignore_files == IgnoreFiles::Honour {
            let (above, prefix) = (reading.ignores, reading.prefix);
            let fail = |(name, kind): (&str, _)| {
                self.fail(task, Some(name.as_bytes()), "read", kind);
            };
            reading.ignores = Some(Ignores::load(above, reading.fd, prefix, fail));
        }
        let start = self.output.items.len();
        if options.entries == Entries::All && task.fd.is_none() && walk_root.path.is_empty() {
            self.list_root(stat);
        }
        let is_whole = self.skips(task, None, options.filter_depth(task.depth))
            || self.read_entries(task, &reading);
        if is_whole {
            self.settles(reading.prefix, b"");
        }
        let gap = Gap {
            filtered: self.output.skipped.filtered() - filtered,
            failed: self.output.errors.len() > failures,
        };
        if gap != Gap::default() {
            self.output.gaps.push((task.ticket, gap));
        }
        self.count_entries();
        sort(&mut self.found, &self.output.names[reading.names..]);
        let children = self.store();
        let first_child = self.context.shared.take_tickets(children);
        self.output.dirs.push(DirRecord {
            ticket: task.ticket,
            first_child,
            walk_root: task.walk_root,
            ino: stat.map_or(task.ino, |stat| stat.id.ino),
            start: start as u64,
            end: self.output.items.len() as u64,
            names: reading.names as u64,
        });
        if options.symlinks == Symlinks::Follow {
            self.output
                .kernel_paths
                .extend(walk_root.kernel_path_to(&[&task.path]));
        }
        // Of those that wait none is this one's, which takes one that it hands out.
        self.handle.waiting(Waiting::GoesOn);
        self.hand_out(task, fd, &reading, first_child + children as u32, push);
        self.found.clear();
        self.counted = 0;
        if self.found.capacity() > KEPT {
            self.found = Vec::new();
        }
    }

    /// Lists the root directory itself, `.`, before everything in it.
    fn list_root(&mut self, stat: Option<&FileStat>) {
        self.output.push_name(Tag::following(FileKind::Dir), b".");
        self.output.items.push(Item {
            name: 0,
            child: NO_CHILD,
            ino: stat.map_or(0, |stat| stat.id.ino),
        });
        self.push_columns(stat);
    }

    /// Reads all names; returns whether that is all of them.
    fn read_entries(&mut self, task: &Task, reading: &DirReading<'_>) -> bool {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut entries = RawDir::new(reading.fd, buffer.spare_capacity_mut());
        let mut count = 0_usize;
        let mut is_whole = true;
        let asked = u64::from(self.context.options.metadata != Metadata::None);
        while let Some(entry) = entries.next() {
            let result = match entry {
                Ok(entry) => {
                    let kind = FileKind::from_type(entry.file_type());
                    // A view that resolves links may say of their names that they are links.
                    let kind = kind.filter(|kind| {
                        reading.is_plain || reading.lists_kinds && *kind != FileKind::Symlink
                    });
                    let (name, ino) = (entry.file_name(), entry.ino());
                    match reading.is_asked_for {
                        true => self.consider(task, reading, name, ino, kind),
                        false => self.pass_by(task, reading, name, ino, kind),
                    }
                }
                Err(Errno::INTR) => Ok(()),
                Err(errno) => Err(system(errno)),
            };
            if let Err(kind) = result {
                self.fail(task, None, "read directory", kind);
                is_whole = false;
                break;
            }
            count += 1;
            self.handle.count(asked);
            let is_early = self.is_new && EARLY_LOOKS.contains(&count);
            if count.is_multiple_of(LOOK_EVERY) || is_early || self.handle.is_slow() {
                if self.context.cancel.is_cancelled() {
                    is_whole = false;
                    break;
                }
                if count.is_multiple_of(LOOK_EVERY) {
                    self.count_entries();
                }
                self.handle.waiting(Waiting::GoesOn);
            }
        }
        self.is_new = false;
        self.buffer = buffer;
        is_whole
    }

    /// Adds the entries found since the last call to the count that the caller watches. Every
    /// directory takes tickets from a counter of all workers as well, so one more costs nothing.
    fn count_entries(&mut self) {
        let Some(counted) = self.context.counted else {
            return;
        };
        let new = self.found[self.counted..].iter();
        let new = new.filter(|found| found.role() == Role::Entry).count();
        counted.fetch_add(new as u64, Relaxed);
        self.counted = self.found.len();
    }

    /// Moves the entries found, now in order, into the output; returns the number of children.
    fn store(&mut self) -> usize {
        if self.context.options.metadata != Metadata::None {
            let order = self.found.iter().map(FoundEntry::nth);
            self.output.columns.arrange(order, &mut self.scratch);
            if self.scratch.capacity() > KEPT {
                self.scratch = Vec::new();
            }
        }
        let mut children = 0_u32;
        for entry in &self.found {
            let child = match entry.role() {
                Role::Entry => NO_CHILD,
                Role::Descend | Role::Defer => {
                    children += 1;
                    children - 1
                }
            };
            self.output.items.push(Item {
                name: entry.name,
                child,
                ino: entry.ino,
            });
        }
        children as usize
    }

    /// Adds the metadata of the entry that was found last, if any is asked for.
    #[inline]
    fn push_columns(&mut self, stat: Option<&FileStat>) {
        let level = self.context.options.metadata;
        let columns = &mut self.output.columns;
        match stat {
            _ if level == Metadata::None => {}
            None => columns.push_blank(),
            Some(stat) => {
                let class = AttributeClass::of(level, stat);
                let shared = self.context.shared;
                let number = self.classes.number(&class, || shared.class_number(class));
                columns.push(stat, &class, number);
            }
        }
    }

    /// Hands the subdirectories out, the last one first: a worker that takes the latest first walks
    /// in path order. `ticket` is the one after the last child's.
    fn hand_out(
        &mut self,
        task: &Task,
        fd: &Arc<OwnedFd>,
        reading: &DirReading<'_>,
        mut ticket: u32,
        mut push: impl FnMut(Task),
    ) {
        let walk_root = &self.context.walk_roots[task.walk_root as usize];
        let root_fd = task.fd.as_ref().unwrap_or(fd);
        for found in self.found.iter().rev() {
            let role = found.role();
            if role == Role::Entry {
                continue;
            }
            let name = found.name_in(&self.output.names[reading.names..]);
            let depth = task.depth + 1;
            let ignores = reading.ignores.clone();
            match role {
                Role::Entry => {}
                Role::Descend => {
                    ticket -= 1;
                    let mut path = Vec::with_capacity(task.path.len() + 1 + name.len());
                    if !task.path.is_empty() {
                        path.extend_from_slice(&task.path);
                        path.push(b'/');
                    }
                    path.extend_from_slice(name);
                    push(Task {
                        walk_root: task.walk_root,
                        fd: Some(Arc::clone(root_fd)),
                        path,
                        ticket,
                        depth,
                        ino: found.ino,
                        ignores,
                    });
                }
                Role::Defer => {
                    ticket -= 1;
                    self.path.truncate(reading.prefix);
                    self.path.extend_from_slice(name);
                    self.output.pending.push(Pending {
                        prefix: walk_root.prefix,
                        path: self.path.clone(),
                        ticket,
                        depth,
                        ignores,
                    });
                }
            }
        }
    }

    /// Sets `self.path` to the directory's path below the root with a closing slash, empty
    /// for the root.
    fn set_path(&mut self, task: &Task) {
        self.path.clear();
        for part in [
            &self.context.walk_roots[task.walk_root as usize].path,
            &task.path,
        ] {
            if !part.is_empty() {
                self.path.extend_from_slice(part);
                self.path.push(b'/');
            }
        }
    }

    /// Records a failure of the directory, or of one name in it.
    fn fail(&mut self, task: &Task, name: Option<&[u8]>, op: &'static str, kind: ErrorKind) {
        let path = self.printed(task, name);
        self.output.errors.push(Error::of_kind(path, op, kind));
    }

    /// Counts that the directory, or one name in it, is left out, if there is a reason; returns
    /// whether there is.
    #[inline]
    fn skips(&mut self, task: &Task, name: Option<&[u8]>, reason: Option<SkipReason>) -> bool {
        let skips = self.output.skipped.count(reason);
        let options = self.context.options;
        if let Some(reason) = reason
            && (options.skipped == SkippedDetail::Paths || Declined::may_be(options, reason))
        {
            self.report_skipped(task, name, reason);
        }
        skips
    }

    /// Records the path of an entry that is left out, as far as it is asked for.
    fn report_skipped(&mut self, task: &Task, name: Option<&[u8]>, reason: SkipReason) {
        let (context, path) = (self.context, self.printed(task, name));
        let options = context.options;
        let prefix = context.walk_roots[task.walk_root as usize].prefix;
        let from = context.prefixes[prefix as usize].printed.len();
        let below = path.get(from..).unwrap_or_default();
        let declined = Declined::find(options, prefix, below, reason);
        self.output.declined.extend(declined);
        if options.skipped == SkippedDetail::Paths {
            self.output.skipped_paths.push(SkippedPath { path, reason });
        }
    }

    /// Returns the path of the directory, or of one name in it, as in a listing.
    fn printed(&self, task: &Task, name: Option<&[u8]>) -> Vec<u8> {
        let walk_root = &self.context.walk_roots[task.walk_root as usize];
        let prefix = &self.context.prefixes[walk_root.prefix as usize];
        let mut path = prefix.printed.clone();
        for part in [&walk_root.path, &task.path] {
            if !part.is_empty() {
                path.extend_from_slice(part);
                path.push(b'/');
            }
        }
        match name {
            Some(name) => path.extend_from_slice(name),
            None if path.len() == prefix.printed.len() => path.clone_from(&prefix.path),
            None => path.truncate(path.len() - 1),
        }
        path
    }
}

fn system(errno: Errno) -> ErrorKind {
    ErrorKind::System(errno.raw_os_error())
}
