//! An entry of either side, borrowed, and the judgement over two of them.

use bc_manifest::Failure;
use bc_manifest::integrity::{Entry, Kind, Xattrs};
use bc_manifest::time::is_beyond;

use crate::change::{Class, Ctime, Difference, Value};
use crate::fields::{CompareRules, Field};

/// What is known about one path; `None` where it is not known. Fields that
/// either side does not know are not compared.
#[derive(Clone, Copy, Debug)]
pub struct EntryRef<'a> {
    /// File type.
    pub kind: Kind,
    /// Bytes.
    pub size: Option<u64>,
    /// Mode with type bits.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Nanoseconds since 1970.
    pub mtime_ns: Option<i64>,
    /// Nanoseconds since 1970.
    pub ctime_ns: Option<i64>,
    /// Inode number.
    pub ino: Option<u64>,
    /// Hard links.
    pub nlink: Option<u64>,
    /// Device; known of the root only.
    pub dev: Option<u64>,
    /// Device that the entry is on, of what is there; not compared, since it changes from boot to
    /// boot.
    pub device: Option<u64>,
    /// Device number of a device node.
    pub rdev: Option<u64>,
    /// Digest of a file.
    pub digest: Option<&'a [u8]>,
    /// Target of a link.
    pub target: Option<&'a [u8]>,
    /// Extended attributes; `None` if they were not asked for.
    pub xattrs: Option<&'a Xattrs>,
    /// Why something of this entry is missing.
    pub error: Option<&'a Failure>,
}

/// The operation that an imported entry's error names: nothing failed, there
/// is just no metadata to be had from another tool's file.
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
        }
    }
}

impl EntryRef<'_> {
    /// An entry of which only the kind is known.
    pub const fn new(kind: Kind) -> EntryRef<'static> {
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
        }
    }

    /// The value of `field`.
    pub fn value(&self, field: Field) -> Value {
        let number = |value: Option<u64>| value.map_or(Value::None, Value::Number);
        match field {
            Field::Kind => Value::Kind(self.kind),
            Field::Size | Field::DirSize => number(self.size),
            Field::Mode => self.mode.map_or(Value::None, Value::Mode),
            Field::Uid => number(self.uid.map(u64::from)),
            Field::Gid => number(self.gid.map(u64::from)),
            Field::Mtime => self.mtime_ns.map_or(Value::None, Value::Time),
            Field::Ctime => self.ctime_ns.map_or(Value::None, Value::Time),
            Field::Ino => number(self.ino),
            Field::Nlink | Field::DirNlink => number(self.nlink),
            Field::Dev => number(self.dev),
            Field::Rdev => number(self.rdev),
            Field::Digest => self
                .digest
                .map_or(Value::None, |d| Value::Digest(d.to_vec())),
            Field::Target => self
                .target
                .map_or(Value::None, |t| Value::Bytes(t.to_vec())),
            Field::Xattrs => self
                .xattrs
                .map_or(Value::None, |x| Value::Xattrs(x.clone())),
        }
    }
}

/// Do both sides know the value, and is it another one?
fn differ<T: PartialEq>(old: Option<T>, new: Option<T>) -> bool {
    matches!((old, new), (Some(old), Some(new)) if old != new)
}

/// Is the mtime known to be the same? Times that cannot be held all look alike: there the ctime,
/// which every change of an mtime moves, has to say so.
pub(crate) fn is_same_mtime(old: &EntryRef<'_>, new: &EntryRef<'_>) -> bool {
    matches!((old.mtime_ns, new.mtime_ns), (Some(was), Some(is)) if was == is
        && (!is_beyond(is) || is_same_ctime(old, new)))
}

/// The same of the ctime, for which nothing else can speak.
pub(crate) fn is_same_ctime(old: &EntryRef<'_>, new: &EntryRef<'_>) -> bool {
    matches!((old.ctime_ns, new.ctime_ns), (Some(was), Some(is)) if was == is && !is_beyond(is))
}

/// The fields that differ and count, the digest and the target included.
fn fields_that_differ(
    old: &EntryRef<'_>,
    new: &EntryRef<'_>,
    rules: CompareRules,
    mut found: impl FnMut(Field),
) {
    let kind = new.kind;
    let mut check = |field, differs: bool| {
        if differs && rules.compares(field, kind) {
            found(field);
        }
    };
    check(Field::Kind, old.kind != new.kind);
    check(Field::Size, differ(old.size, new.size));
    check(Field::Mode, differ(old.mode, new.mode));
    check(Field::Uid, differ(old.uid, new.uid));
    check(Field::Gid, differ(old.gid, new.gid));
    check(
        Field::Mtime,
        old.mtime_ns.is_some() && new.mtime_ns.is_some() && !is_same_mtime(old, new),
    );
    check(
        Field::Ctime,
        old.ctime_ns.is_some() && new.ctime_ns.is_some() && !is_same_ctime(old, new),
    );
    check(Field::Ino, differ(old.ino, new.ino));
    check(Field::Nlink, differ(old.nlink, new.nlink));
    check(Field::Dev, differ(old.dev, new.dev));
    check(Field::Rdev, differ(old.rdev, new.rdev));
    check(Field::Digest, differ(old.digest, new.digest));
    check(Field::Target, differ(old.target, new.target));
    check(Field::Xattrs, differ(old.xattrs, new.xattrs));
}

/// What two entries of one path are to each other. Never `Added`, `Removed`
/// or `Moved`.
pub fn judge(old: &EntryRef<'_>, new: &EntryRef<'_>, rules: CompareRules) -> Class {
    // Not even the kind is certain of what could not be stat'ed.
    let unknown = |side: &EntryRef<'_>| side.mode.is_none() && side.error.is_some();
    if unknown(old) || unknown(new) {
        return Class::Unreadable;
    }
    if old.kind != new.kind {
        return Class::Replaced;
    }
    match new.kind {
        Kind::File if rules.compares(Field::Digest, Kind::File) => match (old.digest, new.digest) {
            (Some(old_digest), Some(new_digest)) if old_digest != new_digest => {
                let same = |old: Option<_>, new: Option<_>| old.is_some() && old == new;
                let untouched = same(old.size, new.size) && is_same_mtime(old, new);
                return if untouched {
                    Class::Damaged
                } else {
                    Class::Modified
                };
            }
            (Some(_), Some(_)) => {}
            _ => return Class::Unreadable,
        },
        // Nothing was read, but this much is certain.
        Kind::File if differ(old.size, new.size) && rules.compares(Field::Size, Kind::File) => {
            return Class::Modified;
        }
        Kind::Symlink if rules.compares(Field::Target, Kind::Symlink) => {
            match (old.target, new.target) {
                (Some(old_target), Some(new_target)) if old_target != new_target => {
                    return Class::Modified;
                }
                (Some(_), Some(_)) => {}
                _ => return Class::Unreadable,
            }
        }
        // A directory that cannot be listed, attributes that cannot be read.
        // A file's reading error means nothing where no content is compared.
        Kind::File => {}
        _ if old.error.is_some() || new.error.is_some() => return Class::Unreadable,
        _ => {}
    }
    if new.kind == Kind::File && (attributes_failed(old) || attributes_failed(new)) {
        return Class::Unreadable;
    }
    let mut any = false;
    fields_that_differ(old, new, rules, |_| any = true);
    if any { Class::Meta } else { Class::Ok }
}

/// Of content that differs: does nothing tell an edit from damage? So it is with what was imported
/// from files that hold neither size nor time, and with times that cannot be held.
pub(crate) fn is_undecided(old: &EntryRef<'_>, new: &EntryRef<'_>) -> bool {
    // A size alone does not tell an edit from a file that was cut off.
    let no_edit_seen = !differ(old.mtime_ns, new.mtime_ns)
        && (!differ(old.size, new.size) || old.mtime_ns.is_none());
    let incomplete = [old, new]
        .iter()
        .any(|side| side.size.is_none() || side.mtime_ns.is_none_or(is_beyond));
    old.kind == new.kind && differ(old.digest, new.digest) && no_edit_seen && incomplete
}

/// What is said of it.
pub(crate) const UNDECIDED: &str = "content differs; nothing recorded tells an edit from damage";

/// A file that was read to its end and has an error all the same: its extended
/// attributes could not be read.
fn attributes_failed(file: &EntryRef<'_>) -> bool {
    file.digest.is_some() && file.error.is_some()
}

/// The fields behind [`judge`]'s answer, with their values.
pub fn differences(old: &EntryRef<'_>, new: &EntryRef<'_>, rules: CompareRules) -> Vec<Difference> {
    let mut all = Vec::new();
    fields_that_differ(old, new, rules, |field| {
        all.push(Difference {
            field,
            old: old.value(field),
            new: new.value(field),
        });
    });
    all
}

/// Which side lacks what the other has, as a reason.
pub(crate) fn reason(old: &EntryRef<'_>, new: &EntryRef<'_>) -> String {
    match (new.error, old.error) {
        (Some(error), _) => describe(error),
        (None, Some(error)) => format!("no content recorded: {}", describe(error)),
        (None, None) if old.digest.is_none() && old.target.is_none() => {
            "no content recorded".to_string()
        }
        (None, None) => "not read".to_string(),
    }
}

/// As messages have it: `operation: reason`.
pub(crate) fn describe(error: &Failure) -> String {
    format!("{}: {}", error.op, error.message)
}

/// What the ctimes of a damaged file say.
pub(crate) fn ctime_hint(old: &EntryRef<'_>, new: &EntryRef<'_>) -> Ctime {
    match (old.ctime_ns, new.ctime_ns) {
        (Some(_), Some(_)) if is_same_ctime(old, new) => Ctime::Same,
        (Some(was), Some(is)) if was != is => Ctime::Other,
        _ => Ctime::Unknown,
    }
}

#[cfg(test)]
mod tests;
