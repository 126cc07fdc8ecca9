//! The tree as it is now: the walk's listing seen as sorted entries with paths
//! relative to the root, each with what the walk could not find out about it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use bc_manifest::Failure;
use bc_manifest::integrity::{Kind, Mounted, ROOT, path_order};
use bc_walk::{EntryId, FileStat, FileStats, Identity, Listing, OwnFile, Symlinks};

use crate::entry_ref::EntryRef;
use crate::error::{Error, ErrorKind};
use crate::mounts::{Mount, Mounts};
use crate::options::{TreeOptions, Work};

/// What a symbolic link has to do with an entry, where links are followed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Link {
    /// Nothing, or links are not followed.
    No,
    /// The entry is what the link leads to.
    Followed,
    /// The link leads nowhere, and is the entry itself.
    Broken,
}

/// A walked tree.
pub(crate) struct Tree {
    pub(crate) listing: Listing,
    /// The root's absolute path without links, where it has one.
    pub(crate) real: Option<PathBuf>,
    /// All mounts after the walk; `None` where the kernel does not list them.
    pub(crate) mounts: Option<Mounts>,
    /// Whether symbolic links were followed.
    symlinks: Symlinks,
    /// Files that were left out of the walk, of which nothing is said.
    left_out: Vec<OwnFile>,
    /// Files that are mounted, and directories where a file system is: those below which there
    /// is anything listed, since nothing else can be missed.
    mounted: BTreeMap<EntryId, Found>,
    /// Those below which there is nothing.
    empty_mounts: BTreeMap<EntryId, Found>,
    /// Entries whose directory could not be read, and why.
    failures: BTreeMap<EntryId, Failure>,
    /// Paths that the walk met and could not even stat.
    unlisted: Vec<Unlisted>,
    /// What may be a directory and could not be read, each with a closing
    /// slash: everything below is unknown.
    unread_dirs: Vec<(Vec<u8>, Failure)>,
}

/// What is mounted somewhere, and which file or directory that is, if it is known.
struct Found {
    mounted: Mounted,
    identity: Option<Identity>,
}

/// A path of which nothing is known but that it is there.
pub(crate) struct Unlisted {
    pub(crate) path: Vec<u8>,
    pub(crate) failure: Failure,
    /// The entry it comes before.
    before: u32,
}

/// One path of the tree, in path order.
#[derive(Clone, Copy)]
pub(crate) enum Item<'a> {
    Entry(EntryId),
    Unlisted(&'a Unlisted),
}

impl Tree {
    /// Walks `root`, leaving out the files in `leave_out`.
    pub(crate) fn walk(
        root: &OsStr,
        options: &TreeOptions,
        file_stats: FileStats,
        leave_out: &[OwnFile],
        work: &Work<'_>,
    ) -> Result<Tree, Error> {
        let mut walk = options.to_walk()?;
        walk.file_stats = file_stats;
        walk.leave_out = leave_out.to_vec();
        let listing = bc_walk::walk(&[root.to_owned()], &walk, work.walk_workers, work.cancel)?;
        if work.cancel.is_cancelled() {
            return Err(Error::new(ErrorKind::Cancelled, "cancelled"));
        }
        if let (true, [error, ..]) = (listing.is_empty(), listing.errors()) {
            let message = format!("{}: {}", error.op(), error.message());
            return Err(Error::at(ErrorKind::Refused, error.path(), message));
        }
        let mut tree = Tree {
            failures: BTreeMap::new(),
            unlisted: Vec::new(),
            unread_dirs: Vec::new(),
            listing,
            real: std::fs::canonicalize(root).ok(),
            mounts: Mounts::read(),
            symlinks: options.symlinks,
            left_out: leave_out.to_vec(),
            mounted: BTreeMap::new(),
            empty_mounts: BTreeMap::new(),
        };
        tree.place_errors(root.as_bytes());
        tree.place_mounts();
        Ok(tree)
    }

    /// Finds the mount points of the listing. The mounts were asked for after the walk, so that
    /// those that the walk itself brought about are among them.
    fn place_mounts(&mut self) {
        if let (Some(real), Some(mounts)) = (&self.real, &self.mounts) {
            let mut found = Vec::new();
            for (path, mount) in mounts.below(real) {
                let at = self.mounted_at(path, mount);
                found.extend(at.map(|(id, mounted)| (id, path.to_vec(), mounted)));
            }
            self.place(found);
        }
        // Paths through links are not those that the kernel lists: there the number of the mount
        // tells, or another device.
        if self.symlinks == Symlinks::Follow {
            self.place_links();
        }
        if self.symlinks == Symlinks::Follow || self.mounts.is_none() {
            self.place_other_devices();
        }
    }

    /// Takes down what is mounted at entries, given with their paths.
    fn place(&mut self, all: Vec<(EntryId, Vec<u8>, Found)>) {
        for (id, path, found) in all {
            let kind = self.listing.kind(id);
            let empty =
                kind == bc_walk::FileKind::Dir && self.directory_with_entries(&path).is_none();
            let place = match empty {
                false => &mut self.mounted,
                true => &mut self.empty_mounts,
            };
            place.insert(id, found);
        }
    }

    /// Finds the links that lead to another mount than they lie on: what they lead to is missing
    /// while that is not mounted, be it a directory or a file.
    fn place_links(&mut self) {
        let (Some(real), Some(mounts)) = (&self.real, &self.mounts) else {
            return;
        };
        let mut found = Vec::new();
        let mut known = BTreeMap::new();
        for id in self.listing.ids().filter(|id| self.is_followed(*id)) {
            let mut path = Vec::new();
            self.listing.write_relative(id, &mut path);
            let at = real.join(OsStr::from_bytes(&path));
            let Some((identity, mount)) = mounts.led_to(&at) else {
                continue;
            };
            let mounted = known
                .entry(mount.id)
                .or_insert_with(|| mount.recorded(mount.uuid(identity.dev)));
            let identity = Some(identity);
            let mounted = mounted.clone();
            found.push((id, path, Found { mounted, identity }));
        }
        self.place(found);
    }

    /// Is the entry a file or a directory that a followed link below the root leads to?
    fn is_followed(&self, id: EntryId) -> bool {
        let listing = &self.listing;
        let plain = matches!(
            listing.kind(id),
            bc_walk::FileKind::Dir | bc_walk::FileKind::File
        );
        plain && listing.follow(id) && listing.name(id).to_bytes() != ROOT
    }

    /// What a link has to do with an entry that was found to be of this kind.
    pub(crate) fn link(&self, id: EntryId, kind: Kind) -> Link {
        match (self.symlinks, kind) {
            (Symlinks::Skip, _) => Link::No,
            (Symlinks::Follow, Kind::Symlink) => Link::Broken,
            (Symlinks::Follow, _) if self.is_followed(id) => Link::Followed,
            (Symlinks::Follow, _) => Link::No,
        }
    }

    /// The entry that is `mount`, which the kernel lists at `path`.
    fn mounted_at(&self, path: &[u8], mount: &Mount) -> Option<(EntryId, Found)> {
        let id = self.find(path)?;
        // Files were perhaps not looked at; what they are is compared when they are.
        let identity = mount.is_seen_as(self.listing.identity(id))?;
        let plain = matches!(
            self.listing.kind(id),
            bc_walk::FileKind::Dir | bc_walk::FileKind::File
        );
        let uuid = plain.then(|| mount.uuid(identity.dev));
        let found = Found {
            mounted: mount.recorded(uuid.flatten()),
            identity: Some(identity),
        };
        Some((id, found))
    }

    fn place_other_devices(&mut self) {
        let mut path = Vec::new();
        for id in self.listing.ids() {
            let Some(found) = self.listing.identity(id) else {
                continue;
            };
            if self.listing.kind(id) != bc_walk::FileKind::Dir {
                continue;
            }
            let above = self.listing.dir_identity(self.listing.dir(id));
            if above.is_none_or(|above| above.dev == found.dev) {
                continue;
            }
            path.clear();
            self.listing.write_relative(id, &mut path);
            if self.directory_with_entries(&path).is_some() {
                let unknown = || Found {
                    mounted: Mounted::default(),
                    identity: None,
                };
                self.mounted.entry(id).or_insert_with(unknown);
            }
        }
    }

    /// The entry of a path, if it is a directory and anything below it is listed.
    fn directory_with_entries(&self, path: &[u8]) -> Option<EntryId> {
        let id = self.find(path)?;
        let below = [path, b"/"].concat();
        let lists = self.listing.kind(id) == bc_walk::FileKind::Dir
            && self.first_from(&below).1.starts_with(&below);
        lists.then_some(id)
    }

    /// The entry of a path.
    pub(crate) fn find(&self, path: &[u8]) -> Option<EntryId> {
        let (id, found) = self.first_from(path);
        (found == path).then_some(id)
    }

    /// The entry of a path, or the first behind it where there is none.
    pub(crate) fn place_of(&self, path: &[u8]) -> Result<u32, u32> {
        let (EntryId(id), found) = self.first_from(path);
        if found == path { Ok(id) } else { Err(id) }
    }

    /// Entries of which more is known than what `stat` says, and those beside which something is of
    /// which less is: the root, mount points, what could not be read. In order.
    pub(crate) fn apart(&self) -> Vec<u32> {
        let mounts = self.mounted.keys().chain(self.empty_mounts.keys());
        let known = mounts.chain(self.failures.keys()).map(|id| id.0);
        let root = self.root().map(|_| 0);
        // What lies behind the last one comes with it.
        let last = (self.listing.len() as u32).saturating_sub(1);
        let unlisted = self.unlisted.iter().map(|entry| entry.before.min(last));
        let mut all: Vec<u32> = known.chain(root).chain(unlisted).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The first entry that does not come before `path`, and its path, which is empty behind the
    /// last one.
    fn first_from(&self, path: &[u8]) -> (EntryId, Vec<u8>) {
        let mut at = Vec::new();
        let id = partition_point(self.listing.len(), |id| {
            at.clear();
            self.listing.write_relative(id, &mut at);
            path_order(&at, path).is_lt()
        });
        at.clear();
        if (id as usize) < self.listing.len() {
            self.listing.write_relative(EntryId(id), &mut at);
        }
        (EntryId(id), at)
    }

    /// What is mounted on an entry.
    pub(crate) fn mount(&self, id: EntryId) -> Option<&Mounted> {
        self.mounted.get(&id).map(|found| &found.mounted)
    }

    /// The same of an entry that was found to be `now` when it was looked at last.
    pub(crate) fn mount_of(&self, id: EntryId, now: &EntryRef<'_>) -> Option<&Mounted> {
        let found = self.mounted.get(&id)?;
        let now = now.device.zip(now.ino);
        let same = found
            .identity
            .is_none_or(|then| now.is_none_or(|now| now == (then.dev, then.ino)));
        same.then_some(&found.mounted)
    }

    /// What is mounted on a file or a directory, be it empty.
    pub(crate) fn any_mount(&self, id: EntryId) -> Option<&Mounted> {
        let empty = || self.empty_mounts.get(&id).map(|found| &found.mounted);
        self.mount(id).or_else(empty)
    }

    fn place_errors(&mut self, root: &[u8]) {
        let mut path = Vec::new();
        for error in self.listing.errors() {
            let relative = relative(error.path(), root);
            let at = partition_point(self.listing.len(), |id| {
                path.clear();
                self.listing.write_relative(id, &mut path);
                path_order(&path, relative).is_lt()
            });
            path.clear();
            if (at as usize) < self.listing.len() {
                self.listing.write_relative(EntryId(at), &mut path);
            }
            let failure = failure(error);
            let mut below = relative.to_vec();
            below.push(b'/');
            self.unread_dirs.push((below, failure.clone()));
            if path == relative {
                self.failures.entry(EntryId(at)).or_insert(failure);
            } else if self
                .unlisted
                .last()
                .is_none_or(|last| last.path != relative)
            {
                self.unlisted.push(Unlisted {
                    path: relative.to_vec(),
                    failure,
                    before: at,
                });
            }
        }
        self.unlisted.sort_by(|a, b| path_order(&a.path, &b.path));
        self.unlisted.dedup_by(|a, b| a.path == b.path);
        self.unread_dirs.sort_by(|a, b| a.0.cmp(&b.0));
    }

    /// The paths of a range of entries, unlisted ones before each included; those
    /// behind the last entry of all come with the range that ends there.
    pub(crate) fn items_of(&self, range: std::ops::Range<u32>) -> impl Iterator<Item = Item<'_>> {
        let from = self
            .unlisted
            .partition_point(|unlisted| unlisted.before < range.start);
        let end = range.end;
        let is_last = end as usize == self.listing.len();
        let mut unlisted = self.unlisted[from..].iter().peekable();
        let mut ids = range.peekable();
        std::iter::from_fn(move || {
            let next = ids.peek().copied();
            let due = |unlisted: &&Unlisted| match next {
                Some(id) => unlisted.before <= id,
                None => is_last,
            };
            match unlisted.next_if(due) {
                Some(unlisted) => Some(Item::Unlisted(unlisted)),
                None => ids.next().map(|id| Item::Entry(EntryId(id))),
            }
        })
    }

    /// What the walk knows of an entry; `stat` is the newer one of the
    /// descriptor that was read, if it differs.
    pub(crate) fn view(&self, id: EntryId, stat: Option<&FileStat>) -> EntryRef<'_> {
        let walked;
        let stat = match stat {
            Some(stat) => stat,
            None => match self.listing.stat(id) {
                Some(stat) => {
                    walked = stat;
                    &walked
                }
                None => return EntryRef::new(kind(self.listing.kind(id))),
            },
        };
        let mut view = EntryRef {
            error: self.failures.get(&id),
            ..stat_view(stat)
        };
        if view.kind == Kind::Dir && self.listing.name(id).to_bytes() == ROOT {
            view.dev = Some(stat.id.dev);
        }
        view
    }

    /// Is the file at a path that is not in the listing one of those left out: what is written to?
    pub(crate) fn is_left_out(&self, path: &[u8]) -> bool {
        // Nearly always there is none.
        if self.listing.skipped().left_out == 0 {
            return false;
        }
        let is_own = |path: &Path| self.left_out.iter().any(|own| own.is_at(path));
        let real = self.real.as_ref();
        real.is_some_and(|real| is_own(&real.join(OsStr::from_bytes(path))))
    }

    /// Why nothing can be said about a path that is not in the listing: the
    /// directory above it that could not be read.
    pub(crate) fn why_unseen(&self, path: &[u8]) -> Option<(&Failure, &[u8])> {
        let above = |(below, _): &&(Vec<u8>, Failure)| below == b"./" || path.starts_with(below);
        let (below, failure) = self.unread_dirs.iter().find(above)?;
        Some((failure, &below[..below.len() - 1]))
    }

    /// The root's own stat, if the root is a directory.
    pub(crate) fn root(&self) -> Option<FileStat> {
        let first = EntryId(0);
        let is_root = !self.listing.is_empty() && self.listing.name(first).to_bytes() == ROOT;
        if is_root {
            self.listing.stat(first)
        } else {
            None
        }
    }

    /// Is the root a directory? Where only files are listed, it is not listed itself.
    pub(crate) fn is_directory(&self) -> bool {
        self.root().is_some() || self.real.as_ref().is_some_and(|real| real.is_dir())
    }

    /// The device that the root is on, be it listed or not.
    pub(crate) fn root_dev(&self) -> Option<u64> {
        use std::os::unix::fs::MetadataExt;
        let listed = self.root().map(|stat| stat.id.dev);
        let real = self.real.as_deref();
        listed.or_else(|| real.and_then(|real| Some(real.metadata().ok()?.dev())))
    }

    /// Is there nothing but the root itself?
    pub(crate) fn is_empty(&self) -> bool {
        let entries = self.listing.len() - usize::from(self.root().is_some());
        entries == 0 && self.unlisted.is_empty() && self.failures.is_empty()
    }
}

/// The view of what `stat` says.
pub(crate) fn stat_view(stat: &FileStat) -> EntryRef<'static> {
    let kind = kind(stat.kind());
    EntryRef {
        size: Some(stat.stamp.size),
        mode: Some(stat.mode),
        uid: Some(stat.uid),
        gid: Some(stat.gid),
        mtime_ns: Some(stat.stamp.mtime_ns),
        ctime_ns: Some(stat.stamp.ctime_ns),
        ino: Some(stat.id.ino),
        nlink: Some(stat.nlink),
        device: Some(stat.id.dev),
        rdev: matches!(kind, Kind::Block | Kind::Char).then_some(stat.rdev),
        ..EntryRef::new(kind)
    }
}

/// The walk's kind as the manifest's.
pub(crate) const fn kind(kind: bc_walk::FileKind) -> Kind {
    match kind {
        bc_walk::FileKind::File => Kind::File,
        bc_walk::FileKind::Dir => Kind::Dir,
        bc_walk::FileKind::Symlink => Kind::Symlink,
        bc_walk::FileKind::Fifo => Kind::Fifo,
        bc_walk::FileKind::Socket => Kind::Socket,
        bc_walk::FileKind::Block => Kind::Block,
        bc_walk::FileKind::Char => Kind::Char,
    }
}

/// An error as a manifest keeps it.
pub(crate) fn failure(error: &bc_walk::Error) -> Failure {
    Failure {
        op: error.op().to_string(),
        errno: error.errno(),
        message: error.message(),
    }
}

/// A printed path below the printed root.
fn relative<'a>(path: &'a [u8], root: &[u8]) -> &'a [u8] {
    match path.strip_prefix(root) {
        Some(rest) => match rest.strip_prefix(b"/").unwrap_or(rest) {
            b"" => ROOT,
            rest => rest,
        },
        None => path,
    }
}

/// The first id below `len` for which `before` is false.
fn partition_point(len: usize, mut before: impl FnMut(EntryId) -> bool) -> u32 {
    let (mut low, mut high) = (0, len as u32);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(EntryId(middle)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
