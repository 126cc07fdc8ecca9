//! The result of a walk: entries in path order, in compact arrays; and two such as one, for work that
//! distinguishes files of one walk from those of another and reads both.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use bc_fs::dirfd::{PLACE, open_through};
use bc_fs::mount::Decompression;
use bc_fs::shortage::Shortage;
use bc_pool::LastRun;
use rustix::fs::{CWD, OFlags, fstat};
use rustix::io::Errno;

use crate::columns::{AttributeClass, Columns};
use crate::open::{MountCrossing, Opener};
use crate::{
    BasicStat, DirectorySet, Error, ErrorKind, FileKind, FileStat, Gap, Identity, Metadata,
    Skipped, SkippedPath, Symlinks,
};

/// A directory of a [`Listing`].
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct DirId(pub u32);

/// An entry of a [`Listing`]: its position in path order.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct EntryId(pub u32);

/// Entries in bytewise path order, over all roots, unless another was asked for
/// ([`Spellings::AsNamed`](crate::Spellings::AsNamed)); errors; and the counts and paths of entries
/// that were left out.
///
/// Memory: 16 bytes an entry, its name and 2 bytes more, and 28 for
/// [`Metadata`](crate::Metadata), if that is asked for, whether basic or full.
#[derive(Debug)]
pub struct Listing {
    pub(crate) entries: Vec<PackedEntry>,
    pub(crate) columns: Columns,
    /// Classes that the columns refer to, by number.
    pub(crate) classes: Vec<AttributeClass>,
    pub(crate) dirs: Vec<Dir>,
    /// The places where walks began.
    pub(crate) began: Vec<Began>,
    /// Names, each preceded by its tag and followed by a NUL.
    pub(crate) arenas: Vec<Vec<u8>>,
    pub(crate) prefixes: Vec<PathPrefix>,
    /// Entries that are roots themselves, with the root's index, in order of entries.
    pub(crate) listed: Vec<(EntryId, u32)>,
    /// Bytes of these, if there is nothing else.
    pub(crate) named_bytes: Option<u64>,
    pub(crate) errors: Vec<Error>,
    pub(crate) absent: Vec<Error>,
    pub(crate) skipped: Skipped,
    pub(crate) skipped_paths: Vec<SkippedPath>,
    pub(crate) settled: DirectorySet,
    pub(crate) met: DirectorySet,
    /// Mount points that were passed by, in order.
    pub(crate) passed_by: Vec<Vec<u8>>,
    /// Gaps by directory, in order.
    pub(crate) gaps: Vec<(DirId, Gap)>,
    pub(crate) directories: u64,
    pub(crate) symlinks: Symlinks,
    pub(crate) opener: Opener,
    /// Metadata that was asked for about regular files.
    pub(crate) file_metadata: Metadata,
    pub(crate) cancelled: bool,
    pub(crate) last_run: LastRun,
}

/// Facts kept about a directory where a walk began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Began {
    pub(crate) dev: u64,
    pub(crate) decompression: Decompression,
}

/// 16 bytes. The kind is in the tag before the name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackedEntry {
    /// Offset of the tag from the directory's first name.
    pub(crate) name: u32,
    pub(crate) dir: u32,
    pub(crate) ino: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Dir {
    /// [`NO_PARENT`] for the directory of a prefix.
    pub(crate) parent: u32,
    pub(crate) prefix: u32,
    /// Length of the path below the prefix with a slash after each component.
    pub(crate) path_len: u32,
    /// Arena of its entries' names.
    pub(crate) arena: u16,
    /// Arena, offset and length of its own name.
    pub(crate) name_arena: u16,
    pub(crate) name_len: u16,
    /// Number of the walk root that it belongs to, which gives the device; [`NO_WALK_ROOT`] where
    /// roots that are files only name it.
    pub(crate) walk_root: u32,
    pub(crate) name: u64,
    pub(crate) names: u64,
    pub(crate) ino: u64,
}

pub(crate) const NO_WALK_ROOT: u32 = u32::MAX;

pub(crate) const NO_PARENT: u32 = u32::MAX;

/// Beginning of paths: a root directory, or the directory part of roots that are files.
#[derive(Debug)]
pub(crate) struct PathPrefix {
    /// Printed beginning of its entries' paths: empty or ending in a slash.
    pub(crate) printed: Vec<u8>,
    /// Path to open it by.
    pub(crate) path: Vec<u8>,
    pub(crate) root: u32,
    /// Descriptor; kept open for the first few only.
    pub(crate) fd: Option<Arc<OwnedFd>>,
    pub(crate) id: Option<Identity>,
}

impl PathPrefix {
    /// Returns the directory, opened by these flags unless it is kept open.
    pub(crate) fn open(&self, flags: OFlags) -> Result<Arc<OwnedFd>, Errno> {
        match &self.fd {
            Some(fd) => Ok(Arc::clone(fd)),
            None => open_through(CWD, &self.path, flags).map(Arc::new),
        }
    }
}

/// The byte before a name: its kind, whether to follow a link of that name, and whether the options
/// leave a directory of that name unread.
#[derive(Clone, Copy)]
pub(crate) struct Tag(pub(crate) u8);

impl Tag {
    const FOLLOW: u8 = 0x80;
    const CLOSED: u8 = 0x40;

    pub(crate) fn new(kind: FileKind) -> Tag {
        Tag(kind as u8)
    }

    pub(crate) fn following(kind: FileKind) -> Tag {
        Tag(kind as u8 | Tag::FOLLOW)
    }

    pub(crate) fn closed(self) -> Tag {
        Tag(self.0 | Tag::CLOSED)
    }

    fn kind(self) -> FileKind {
        FileKind::from_code(self.0 & !(Tag::FOLLOW | Tag::CLOSED))
    }

    fn is_closed(self) -> bool {
        self.0 & Tag::CLOSED != 0
    }

    fn follow(self) -> bool {
        self.0 & Tag::FOLLOW != 0
    }
}

impl Listing {
    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the bytes of memory of entries, names and metadata.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub fn memory(&self) -> u64 {
        let names: usize = self.arenas.iter().map(Vec::capacity).sum();
        let entries = self.entries.capacity() * size_of::<PackedEntry>();
        let dirs = self.dirs.capacity() * size_of::<Dir>();
        let classes = self.classes.capacity() * size_of::<AttributeClass>();
        (names + entries + dirs + classes) as u64 + self.columns.memory()
    }

    /// True if there are no entries at all.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// True if an entry is of this listing, as far as its number shows: an id of a longer listing
    /// is not. Methods that take an id panic for one that is not.
    pub fn contains(&self, entry: EntryId) -> bool {
        (entry.0 as usize) < self.entries.len()
    }

    /// Returns the walk's experience with its number of workers, from which those that read the files
    /// may begin. Internal to bit-crafts, without a promise of stability.
    #[doc(hidden)]
    pub fn last_run(&self) -> &LastRun {
        &self.last_run
    }

    /// True if the walk was cancelled: then entries are missing, and no error lists them.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    /// Returns the metadata that the walk was asked for about regular files:
    /// [`None`](Metadata::None) also where that was [left](crate::FileStats::Left) to others.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub fn file_metadata(&self) -> Metadata {
        self.file_metadata
    }

    /// Returns all entries, in bytewise order of their paths.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = EntryId> + DoubleEndedIterator + use<> {
        (0..self.entries.len() as u32).map(EntryId)
    }

    /// Returns the name in its directory; `.` for a root directory itself.
    ///
    /// # Panics
    ///
    /// This and all other methods that take an id: if the id is not from this listing.
    pub fn name(&self, entry: EntryId) -> &CStr {
        let (arena, tag) = self.tag_at(entry);
        // The walk wrote the NUL.
        CStr::from_bytes_until_nul(&arena[tag + 1..]).unwrap_or_default()
    }

    /// Returns the [name](Listing::name) as bytes: less work, for loops. Looking for the end of each took
    /// 2 % of a verification by metadata, and takes half of that.
    #[inline]
    pub fn name_bytes(&self, entry: EntryId) -> &[u8] {
        let (arena, tag) = self.tag_at(entry);
        let name = &arena[tag + 1..];
        // The walk wrote the NUL.
        &name[..memchr::memchr(0, name).unwrap_or(0)]
    }

    /// Returns the directory that the name is in; for a root directory, itself.
    #[inline]
    pub fn dir(&self, entry: EntryId) -> DirId {
        DirId(self.entry(entry).dir)
    }

    /// Returns its kind, from the directory entry; for roots and followed links, the kind of the
    /// target.
    pub fn kind(&self, entry: EntryId) -> FileKind {
        let (arena, tag) = self.tag_at(entry);
        Tag(arena[tag]).kind()
    }

    /// Returns identity, stamp and link count, if the walk asked for metadata of such entries.
    pub fn meta(&self, entry: EntryId) -> Option<BasicStat> {
        let ino = self.entry(entry).ino;
        self.columns.meta(entry.0 as usize, ino, &self.classes)
    }

    /// Returns the size of [`meta`](Listing::meta) alone, in bytes: less work, for loops.
    pub fn size(&self, entry: EntryId) -> Option<u64> {
        self.columns.size(entry.0 as usize, &self.classes)
    }

    /// Returns the bytes of all files together where each of them was named, none found, and all were
    /// looked at, as few names always are, whatever metadata was asked for.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub fn named_bytes(&self) -> Option<u64> {
        self.named_bytes
    }

    /// Returns the file's device and inode number, where [`meta`](Listing::meta) has them.
    pub fn identity(&self, entry: EntryId) -> Option<Identity> {
        let ino = self.entry(entry).ino;
        let dev = self.columns.dev(entry.0 as usize, &self.classes)?;
        Some(Identity { dev, ino })
    }

    /// Returns all metadata, if the walk asked for full metadata of such entries.
    #[inline]
    pub fn stat(&self, entry: EntryId) -> Option<FileStat> {
        let ino = self.entry(entry).ino;
        self.columns.stat(entry.0 as usize, ino, &self.classes)
    }

    /// Returns the inode number from the directory entry: good for ordering, no proof of identity.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub fn inode_hint(&self, entry: EntryId) -> u64 {
        self.entry(entry).ino
    }

    /// Returns the root that the entry was found under: its index as given.
    pub fn root(&self, entry: EntryId) -> usize {
        let is_it = |(listed, _): &&(EntryId, u32)| *listed == entry;
        // Where all entries are roots themselves, each is at its own number.
        let listed = self.listed.get(entry.0 as usize).filter(is_it);
        let root = listed.copied().or_else(|| {
            let at = self
                .listed
                .binary_search_by_key(&entry, |(entry, _)| *entry);
            at.ok().map(|at| self.listed[at])
        });
        root.map_or_else(|| self.prefix(self.entry(entry).dir).root, |(_, root)| root) as usize
    }

    /// True if a link is to be followed when the entry is opened: it is a root, or links are
    /// followed.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub fn follow(&self, entry: EntryId) -> bool {
        let (arena, tag) = self.tag_at(entry);
        Tag(arena[tag]).follow()
    }

    /// True if the entry is a directory that the options leave unread: it is too deep, or all that
    /// could be in it is excluded.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub fn is_closed(&self, entry: EntryId) -> bool {
        let (arena, tag) = self.tag_at(entry);
        Tag(arena[tag]).is_closed()
    }

    /// Appends the path as it is printed: the root as given, a slash unless it ends in one,
    /// and the path below it.
    pub fn write_path(&self, entry: EntryId, out: &mut Vec<u8>) {
        let name = self.name_bytes(entry);
        let dir = self.entry(entry).dir;
        if name == b"." {
            out.extend_from_slice(&self.prefix(dir).path);
            return;
        }
        out.extend_from_slice(&self.prefix(dir).printed);
        self.write_below(dir, out);
        out.extend_from_slice(name);
    }

    /// Returns the path as it is printed.
    pub fn path(&self, entry: EntryId) -> Vec<u8> {
        let mut path = Vec::new();
        self.write_path(entry, &mut path);
        path
    }

    /// Appends the path below the root; the last name if the root is the file itself, `.` if
    /// the entry is the root directory.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub fn write_relative(&self, entry: EntryId, out: &mut Vec<u8>) {
        self.write_below(self.entry(entry).dir, out);
        out.extend_from_slice(self.name_bytes(entry));
    }

    /// Returns the number of directories that [`DirId`]s of this listing are below: ids are dense.
    pub fn dirs(&self) -> usize {
        self.dirs.len()
    }

    /// Returns the identity of a directory that the walk read; `None` for one that only the paths
    /// of roots that are files lead to: [`open_dir`](Listing::open_dir) finds that.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub fn dir_identity(&self, dir: DirId) -> Option<Identity> {
        let dir = &self.dirs[dir.0 as usize];
        let dev = self.began.get(dir.walk_root as usize)?.dev;
        Some(Identity { dev, ino: dir.ino })
    }

    /// Returns the devices that the walk came to, by the roots and mount points where it began, in
    /// the order in which it did: the same for every [part](crate::Shard) of a tree. One may be
    /// repeated.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub fn devices(&self) -> impl Iterator<Item = u64> + '_ {
        self.began.iter().map(|began| began.dev)
    }

    /// True if a mount, or a link that was followed, leads from the directory above to this one.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub fn is_mounted(&self, dir: DirId) -> bool {
        let walk_root = |dir: DirId| self.dirs[dir.0 as usize].walk_root;
        self.parent(dir)
            .is_some_and(|parent| walk_root(parent) != walk_root(dir))
    }

    /// Returns the directories of which not all is listed, in order: entries that filters left out,
    /// and entries that could not be read. Neither directories that were not entered at all, which
    /// are entries without a [`DirId`], nor kinds that were not to be listed make a gap.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub fn gaps(&self) -> &[(DirId, Gap)] {
        &self.gaps
    }

    /// Returns how the kernel decompresses the content of files in this directory.
    /// [`None`](Decompression::None) also where that is unknown: for a directory that only the
    /// paths of roots that are files lead to.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub fn decompression(&self, dir: DirId) -> Decompression {
        let began = self.began.get(self.dirs[dir.0 as usize].walk_root as usize);
        began.map_or(Decompression::None, |began| began.decompression)
    }

    /// True if it does so in all file systems that the walk entered.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub fn is_decompressed(&self) -> bool {
        !self.began.is_empty()
            && self
                .began
                .iter()
                .all(|began| began.decompression != Decompression::None)
    }

    /// Returns the descriptors that the listing holds open, by which
    /// [`open_dir`](Listing::open_dir) begins: those that threads with [tables](bc_pool::Tables) of
    /// their own have to keep of it.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let held = self.prefixes.iter();
        held.filter_map(|prefix| prefix.fd.as_ref().map(|fd| fd.as_fd()))
    }

    /// Opens a directory as a place to open its entries from (`O_PATH`), at any depth. No
    /// link is followed below the root, unless the walk followed links. For many directories
    /// there is [`DirFdCache`](crate::DirFdCache).
    ///
    /// # Errors
    ///
    /// With the directory's path, operation `open`; [`ErrorKind::Changed`] if the root is
    /// not the directory that was walked any more.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub fn open_dir(&self, dir: DirId) -> Result<OwnedFd, Error> {
        let failed = |errno| Error::new(self.dir_path(dir), "open", errno);
        let prefix = self.prefix(dir.0);
        let mut below = Vec::with_capacity(self.dirs[dir.0 as usize].path_len as usize);
        self.write_below(dir.0, &mut below);
        // The closing slash.
        below.pop();
        let opened;
        let from = match &prefix.fd {
            Some(fd) => fd.as_fd(),
            None => {
                opened = open_through(CWD, &prefix.path, PLACE).map_err(failed)?;
                self.check_prefix(dir, &opened)?;
                if below.is_empty() {
                    return Ok(opened);
                }
                opened.as_fd()
            }
        };
        self.open_below(from, &below).map_err(failed)
    }

    /// Verifies that the directory opened by the path of a prefix is the root that was walked.
    pub(crate) fn check_prefix(&self, dir: DirId, opened: &OwnedFd) -> Result<(), Error> {
        let Some(id) = self.prefix(dir.0).id else {
            return Ok(());
        };
        let path = || self.dir_path(dir);
        let now = fstat(opened).map_err(|errno| Error::new(path(), "open", errno))?;
        if FileStat::from(&now).id != id {
            return Err(Error::of_kind(path(), "open", ErrorKind::Changed));
        }
        Ok(())
    }

    /// Returns the count of descriptors that are lacking. Internal to bit-crafts.
    #[doc(hidden)]
    pub fn shortage(&self) -> &Shortage {
        &self.opener.shortage
    }

    /// Opens a directory of this listing from one above it, as a place.
    pub(crate) fn open_below(&self, from: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd, Errno> {
        self.opener
            .open_below(from, path, PLACE, self.symlinks, MountCrossing::Cross)
    }

    /// Returns the parent of a directory; `None` for a root, and for the directory of roots that
    /// are files. A parent has the lower id: ids are in the order in which a walk from the root
    /// down meets directories, each with all below it before the next one.
    pub fn parent(&self, dir: DirId) -> Option<DirId> {
        let parent = self.dirs[dir.0 as usize].parent;
        (parent != NO_PARENT).then_some(DirId(parent))
    }

    /// Returns a directory's name in its parent; empty where that is not known.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub fn dir_name(&self, dir: DirId) -> &[u8] {
        let dir = &self.dirs[dir.0 as usize];
        &self.arenas[usize::from(dir.name_arena)][dir.name as usize..][..usize::from(dir.name_len)]
    }

    /// Returns a directory's path as it would be printed, without a closing slash unless the root
    /// was given with one.
    pub fn dir_path(&self, dir: DirId) -> Vec<u8> {
        let prefix = self.prefix(dir.0);
        if self.dirs[dir.0 as usize].parent == NO_PARENT {
            return prefix.path.clone();
        }
        let mut path = prefix.printed.clone();
        self.write_below(dir.0, &mut path);
        path.pop();
        path
    }

    /// Returns the errors, ordered by path.
    pub fn errors(&self) -> &[Error] {
        &self.errors
    }

    /// Returns the counts of the entries that were left out.
    pub fn skipped(&self) -> &Skipped {
        &self.skipped
    }

    /// Returns each path that was left out, in path order; empty without
    /// [`SkippedDetail::Paths`](crate::SkippedDetail::Paths).
    pub fn skipped_paths(&self) -> &[SkippedPath] {
        &self.skipped_paths
    }

    /// Returns the directories of the [part](crate::Shard) of the tree that was asked for whose
    /// contents are known completely: they were read to the end, or the options say that they are
    /// not to be. Empty if all of the tree was asked for.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub fn settled(&self) -> DirectorySet {
        self.settled
    }

    /// Returns the directories of all parts that the walk came upon: whether they are known
    /// completely is for the walks of the other parts to report.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub fn met(&self) -> DirectorySet {
        self.met
    }

    /// True if a file system is mounted on the directory with this path below the root that the
    /// options leave out, or that is listed elsewhere. Known only if a [part](crate::Shard) of the
    /// tree was asked for.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub fn passes_by(&self, path: &[u8]) -> bool {
        let compare = |known: &Vec<u8>| known[..].cmp(path);
        self.passed_by.binary_search_by(compare).is_ok()
    }

    /// Returns the number of directories that were read.
    pub fn directories(&self) -> u64 {
        self.directories
    }

    #[inline]
    fn entry(&self, entry: EntryId) -> &PackedEntry {
        &self.entries[entry.0 as usize]
    }

    /// Returns the arena and the position of the entry's tag in it.
    #[inline]
    fn tag_at(&self, entry: EntryId) -> (&[u8], usize) {
        let entry = self.entry(entry);
        let dir = &self.dirs[entry.dir as usize];
        let position = dir.names as usize + entry.name as usize;
        (&self.arenas[usize::from(dir.arena)], position)
    }

    pub(crate) fn prefix(&self, dir: u32) -> &PathPrefix {
        &self.prefixes[self.dirs[dir as usize].prefix as usize]
    }

    /// Appends the path below the prefix, a slash after each component; filled from the end.
    fn write_below(&self, dir: u32, out: &mut Vec<u8>) {
        let mut dir = &self.dirs[dir as usize];
        let mut end = out.len() + dir.path_len as usize;
        out.resize(end, b'/');
        while dir.parent != NO_PARENT {
            let len = usize::from(dir.name_len);
            let start = dir.name as usize;
            let name = &self.arenas[usize::from(dir.name_arena)][start..start + len];
            end -= len + 1;
            out[end..end + len].copy_from_slice(name);
            dir = &self.dirs[dir.parent as usize];
        }
    }
}

impl Listing {
    /// Appends the entries of `other`, which keep their order and follow all that are here: the
    /// whole is in path order within each of the two alone. Files that both have found are listed
    /// twice. Directories have ids of their own, and the roots of `other` are counted on from
    /// `roots`, as many as this listing was made of. Errors, gaps and skipped paths stay in order
    /// by walk, and the counters are added up.
    ///
    /// Both have to come from walks with the same [`Metadata`](crate::Metadata) and the same
    /// [`Symlinks`](crate::Symlinks).
    ///
    /// # Panics
    /// If one has metadata and the other has none, or beyond 2^32 entries.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub fn append(&mut self, other: Listing, roots: usize) {
        let (entries, dirs) = (self.entries.len(), self.dirs.len() as u32);
        let other_entries = other.entries.len();
        assert!(
            self.entries.is_empty()
                || other.entries.is_empty()
                || self.columns.is_empty() == other.columns.is_empty(),
            "listings with and without metadata"
        );
        assert!(
            entries + other.entries.len() <= u32::MAX as usize,
            "more than 4294967295 entries"
        );
        let shift = Shift {
            dirs,
            prefixes: self.prefixes.len() as u32,
            arenas: self.arenas.len() as u16,
            walk_roots: self.began.len() as u32,
            roots: roots as u32,
        };
        self.entries
            .extend(other.entries.into_iter().map(|mut entry| {
                entry.dir += dirs;
                entry
            }));
        self.columns.append(other.columns, self.classes.len());
        self.classes.extend(other.classes);
        self.dirs
            .extend(other.dirs.into_iter().map(|dir| shift.dir(dir)));
        self.began.extend(other.began);
        self.arenas.extend(other.arenas);
        let prefixes = other.prefixes.into_iter();
        self.prefixes
            .extend(prefixes.map(|prefix| shift.prefix(prefix)));
        let listed = other.listed.into_iter();
        self.listed.extend(
            listed.map(|(EntryId(entry), root)| {
                (EntryId(entry + entries as u32), root + shift.roots)
            }),
        );
        self.named_bytes = None;
        self.errors.extend(other.errors);
        self.absent.extend(other.absent);
        let skipped: &Skipped = &other.skipped;
        self.skipped.add(skipped);
        self.skipped_paths.extend(other.skipped_paths);
        let gaps = other.gaps.into_iter();
        self.gaps
            .extend(gaps.map(|(DirId(dir), gap)| (DirId(dir + dirs), gap)));
        self.directories += other.directories;
        self.cancelled |= other.cancelled;
        self.file_metadata = match (entries, other_entries) {
            (0, _) => other.file_metadata,
            (_, 0) => self.file_metadata,
            _ => self.file_metadata.min(other.file_metadata),
        };
    }
}

/// Offsets that are added to the numbers in the appended listing.
struct Shift {
    dirs: u32,
    prefixes: u32,
    arenas: u16,
    walk_roots: u32,
    roots: u32,
}

impl Shift {
    fn dir(&self, mut dir: Dir) -> Dir {
        if dir.parent != NO_PARENT {
            dir.parent += self.dirs;
        }
        if dir.walk_root != NO_WALK_ROOT {
            dir.walk_root += self.walk_roots;
        }
        dir.prefix += self.prefixes;
        dir.arena += self.arenas;
        dir.name_arena += self.arenas;
        dir
    }

    fn prefix(&self, mut prefix: PathPrefix) -> PathPrefix {
        prefix.root += self.roots;
        prefix
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use bc_pool::Cancel;

    use crate::{Entries, Listing, Metadata, SkippedDetail, WalkOptions, walk};

    fn list(tree: &Path, roots: &[&str], entries: Entries) -> Listing {
        let roots: Vec<_> = roots
            .iter()
            .map(|root| tree.join(root).into_os_string())
            .collect();
        let options = WalkOptions {
            metadata: Metadata::Basic,
            entries,
            ..WalkOptions::default()
        };
        walk(&roots, &options, 2, &Cancel::new()).unwrap()
    }

    #[test]
    fn each_entry_is_what_it_was_alone() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path();
        for made in ["a/sub", "b/deep/er"] {
            fs::create_dir_all(tree.join(made)).unwrap();
        }
        for name in ["a/x", "a/sub/y", "b/z", "f", "g"] {
            fs::write(tree.join(name), name).unwrap();
        }
        std::os::unix::fs::symlink("z", tree.join("b/l")).unwrap();
        fs::hard_link(tree.join("a/x"), tree.join("b/deep/x")).unwrap();
        for (one, other) in [
            (&["a", "f"][..], &["b", "g"][..]),
            (&["a"], &["a", "b"]),
            (&[], &["b"]),
            (&["b", "f", "g"], &[]),
            (&["f"], &["g", "f"]),
        ] {
            let parts = || {
                let files = list(tree, other, Entries::Files);
                [list(tree, one, Entries::All), files]
            };
            let [mut joined, rest] = parts();
            joined.append(rest, one.len());
            let [first, second] = parts();
            let len = first.len() as u32;
            assert_eq!(joined.len(), first.len() + second.len());
            for id in joined.ids() {
                let (alone, own, roots) = match id.0.checked_sub(len) {
                    None => (&first, id, 0),
                    Some(at) => (&second, crate::EntryId(at), one.len()),
                };
                assert_eq!(joined.path(id), alone.path(own));
                assert_eq!(joined.meta(id), alone.meta(own));
                assert_eq!(joined.kind(id), alone.kind(own));
                assert_eq!(joined.root(id), alone.root(own) + roots);
                assert_eq!(joined.follow(id), alone.follow(own));
                let identity = |listing: &Listing, id| listing.dir_identity(listing.dir(id));
                assert_eq!(identity(&joined, id), identity(alone, own));
                assert!(joined.open_dir(joined.dir(id)).is_ok());
            }
            assert_eq!(
                joined.directories(),
                first.directories() + second.directories()
            );
        }
    }

    /// Checks that a listing's gaps and skipped paths remain when it becomes a part of another.
    #[test]
    fn what_is_missing_is_told_of_both() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path();
        for made in ["a/in", "b/in"] {
            fs::create_dir_all(tree.join(made)).unwrap();
            fs::write(tree.join(made).join("kept"), "x").unwrap();
            fs::write(tree.join(made).join("large"), "a lot of text").unwrap();
        }
        let list = |name: &str| {
            let options = WalkOptions {
                metadata: Metadata::Basic,
                max_size: Some(3),
                skipped: SkippedDetail::Paths,
                ..WalkOptions::default()
            };
            walk(&[tree.join(name)], &options, 2, &Cancel::new()).unwrap()
        };
        let gaps = |listing: &Listing| -> Vec<_> {
            let gaps = listing.gaps().iter();
            gaps.map(|(dir, gap)| (listing.dir_path(*dir), *gap))
                .collect()
        };
        let passed_over = |listing: &Listing| -> Vec<_> {
            let paths = listing.skipped_paths().iter();
            paths.map(|passed| passed.path.clone()).collect()
        };
        let mut joined = list("a");
        joined.append(list("b"), 1);
        assert_eq!(gaps(&joined), [gaps(&list("a")), gaps(&list("b"))].concat());
        assert_eq!(gaps(&joined).len(), 2);
        let both = [passed_over(&list("a")), passed_over(&list("b"))].concat();
        assert_eq!(passed_over(&joined), both);
        assert_eq!(both.len(), 2);
    }
}
