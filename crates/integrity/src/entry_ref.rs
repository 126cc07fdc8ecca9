//! An entry of either side, borrowed.

use bc_manifest::Failure;
use bc_manifest::integrity::{ContentFault, Entry, Kind, Meta, Xattrs};
use bc_manifest::time::is_beyond;
use bc_walk::{FileKind, FileStat};

/// Known fields of one path; `None` where a field is not known. Fields that either side does not
/// know are not compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryRef<'a> {
    /// File type.
    pub kind: Kind,
    /// Size in bytes.
    pub size: Option<u64>,
    /// Mode with type bits.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Modification time in nanoseconds since 1970.
    pub mtime_ns: Option<i64>,
    /// Change time in nanoseconds since 1970.
    pub ctime_ns: Option<i64>,
    /// Inode number.
    pub ino: Option<u64>,
    /// Number of hard links.
    pub nlink: Option<u64>,
    /// Device as recorded, known only for the root.
    pub dev: Option<u64>,
    /// Device that an entry of the tree is on; not compared, since it changes from boot to boot.
    pub device: Option<u64>,
    /// Device number of a device node.
    pub rdev: Option<u64>,
    /// Digest of a file.
    pub digest: Option<&'a [u8]>,
    /// Target of a link.
    pub target: Option<&'a [u8]>,
    /// Extended attributes; `None` if they were not asked for.
    pub xattrs: Option<&'a Xattrs>,
    /// Reason for which a part of this entry is missing.
    pub error: Option<&'a Failure>,
    /// Digest of the content that was found in place of the recorded one.
    pub damaged: Option<&'a [u8]>,
    /// True if it was found damaged by an earlier version, which did not record the content.
    pub damage_unknown: bool,
    /// True if nothing proves that the file is the one that the digest was recorded of.
    pub unproven: bool,
    /// It may have been written to since it was recorded without its times saying so.
    pub unsteady: bool,
}

/// Operation in an imported entry's error: nothing failed, another tool's file just contains no
/// metadata.
pub(crate) const IMPORTED: &str = "import";

impl<'a> From<&'a Entry> for EntryRef<'a> {
    fn from(entry: &'a Entry) -> EntryRef<'a> {
        let meta = entry.meta.as_ref();
        EntryRef {
            kind: entry.kind,
            size: entry.size(),
            mode: meta.map(|meta| meta.mode),
            uid: meta.map(|meta| meta.uid),
            gid: meta.map(|meta| meta.gid),
            mtime_ns: meta.map(|meta| meta.mtime_ns),
            ctime_ns: meta.map(|meta| meta.ctime_ns),
            ino: meta.map(|meta| meta.ino),
            nlink: meta.map(|meta| meta.nlink),
            dev: None,
            device: None,
            rdev: entry.rdev,
            digest: entry.digest.as_ref().map(|digest| digest.as_bytes()),
            target: entry.target.as_deref(),
            xattrs: entry.xattrs.as_ref(),
            error: entry.error.as_ref().filter(|error| error.op != IMPORTED),
            damaged: entry
                .damaged_digest
                .as_ref()
                .map(|digest| digest.as_bytes()),
            damage_unknown: entry.found == Some(ContentFault::Damaged)
                && entry.damaged_digest.is_none(),
            unproven: entry.unproven,
            unsteady: false,
        }
    }
}

/// Fields that `stat` returns for an entry of the tree.
impl From<&FileStat> for EntryRef<'static> {
    fn from(stat: &FileStat) -> EntryRef<'static> {
        let kind = kind_of(stat.kind());
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
}

impl EntryRef<'_> {
    /// Returns an entry of which only the kind is known.
    pub(crate) const fn new(kind: Kind) -> EntryRef<'static> {
        EntryRef {
            kind,
            size: None,
            mode: None,
            uid: None,
            gid: None,
            mtime_ns: None,
            ctime_ns: None,
            ino: None,
            nlink: None,
            dev: None,
            device: None,
            rdev: None,
            digest: None,
            target: None,
            xattrs: None,
            error: None,
            damaged: None,
            damage_unknown: false,
            unproven: false,
            unsteady: false,
        }
    }
}

/// Returns the manifest's kind for the walk's.
pub const fn kind_of(kind: FileKind) -> Kind {
    match kind {
        FileKind::File => Kind::File,
        FileKind::Dir => Kind::Dir,
        FileKind::Symlink => Kind::Symlink,
        FileKind::Fifo => Kind::Fifo,
        FileKind::Socket => Kind::Socket,
        FileKind::Block => Kind::Block,
        FileKind::Char => Kind::Char,
    }
}

/// True if both sides know the value, and the values differ.
pub(crate) fn differ<T: PartialEq>(old: Option<T>, new: Option<T>) -> bool {
    matches!((old, new), (Some(old), Some(new)) if old != new)
}

/// True if the mtime is known to be the same. Times out of range all look alike: there the ctime,
/// which every change of an mtime moves, has to be the same.
pub(crate) fn is_same_mtime(old: &EntryRef<'_>, new: &EntryRef<'_>) -> bool {
    matches!((old.mtime_ns, new.mtime_ns), (Some(was), Some(is)) if was == is
        && (!is_beyond(is) || is_same_ctime(old, new)))
}

/// True if the ctime is known to be the same, which no other field can show.
pub(crate) fn is_same_ctime(old: &EntryRef<'_>, new: &EntryRef<'_>) -> bool {
    matches!((old.ctime_ns, new.ctime_ns), (Some(was), Some(is)) if was == is && !is_beyond(is))
}

/// Returns the manifest's metadata of a file in this state.
#[inline]
pub fn meta_of(stat: &FileStat) -> Meta {
    Meta {
        size: stat.stamp.size,
        mode: stat.mode,
        uid: stat.uid,
        gid: stat.gid,
        mtime_ns: stat.stamp.mtime_ns,
        ctime_ns: stat.stamp.ctime_ns,
        ino: stat.id.ino,
        nlink: stat.nlink,
    }
}
