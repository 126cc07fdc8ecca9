//! Fields of an entry: one row of a table for each, with its names, its value and its comparison;
//! their values as differences show them, sets of them as they are named for `--ignore`, and the
//! rules of a comparison.

use std::fmt;
use std::str::FromStr;

use bc_fs::Escaped;
use bc_manifest::integrity::{Kind, Xattrs};
use bc_manifest::time;

use crate::entry_ref::{EntryRef, differ, is_same_ctime, is_same_mtime};

/// Columns of a row: the names, true if a restore from a backup brings the field back, its value,
/// and the comparison of two entries in it.
macro_rules! fields {
    ($(
        $(#[$doc:meta])*
        $field:ident {
            name: $name:literal, key: $key:literal, restored: $restored:literal,
            value: |$entry:ident| $value:expr,
            differs: |$old:pat_param, $new:pat_param| $differs:expr,
        }
    )*) => {
        /// A field of an entry beside its path.
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum Field {
            $($(#[$doc])* $field,)*
        }

        impl Field {
            /// All fields, in the order in which differences are reported.
            pub const ALL: [Field; [$($name),*].len()] = [$(Field::$field),*];

            /// Returns the field's name in reports: `mode`, `mtime`, `dir-size`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Field::$field => $name,)*
                }
            }

            /// Returns the key of the field in manifests and reports: `mtime_ns`, `size`.
            pub const fn key(self) -> &'static str {
                match self {
                    $(Field::$field => $key,)*
                }
            }

            /// True if a restore from a backup brings it back.
            pub const fn is_restored(self) -> bool {
                match self {
                    $(Field::$field => $restored,)*
                }
            }
        }

        impl EntryRef<'_> {
            /// Returns the value of `field`.
            pub(crate) fn value(&self, field: Field) -> Value {
                let value = match field {
                    $(Field::$field => {
                        let $entry = self;
                        $value
                    })*
                };
                value.unwrap_or(Value::None)
            }
        }

        /// Passes the fields that differ to `found`, in order: those that both sides know.
        pub(crate) fn each_difference(
            old: &EntryRef<'_>,
            new: &EntryRef<'_>,
            mut found: impl FnMut(Field),
        ) {
            $({
                let ($old, $new) = (old, new);
                if $differs {
                    found(Field::$field);
                }
            })*
        }
    };
}

fields! {
    /// File type. Always compared.
    Kind {
        name: "kind", key: "kind", restored: true,
        value: |entry| Some(Value::Kind(entry.kind)),
        differs: |old, new| old.kind != new.kind,
    }
    /// Bytes; of a link the length of its target.
    Size {
        name: "size", key: "size", restored: true,
        value: |entry| entry.size.map(Value::Number),
        differs: |old, new| differ(old.size, new.size),
    }
    /// Permission bits with the type bits above them.
    Mode {
        name: "mode", key: "mode", restored: true,
        value: |entry| entry.mode.map(Value::Mode),
        differs: |old, new| differ(old.mode, new.mode),
    }
    /// Owner.
    Uid {
        name: "uid", key: "uid", restored: true,
        value: |entry| entry.uid.map(|uid| Value::Number(uid.into())),
        differs: |old, new| differ(old.uid, new.uid),
    }
    /// Group.
    Gid {
        name: "gid", key: "gid", restored: true,
        value: |entry| entry.gid.map(|gid| Value::Number(gid.into())),
        differs: |old, new| differ(old.gid, new.gid),
    }
    /// Time of the last change of content, nanoseconds.
    Mtime {
        name: "mtime", key: "mtime_ns", restored: true,
        value: |entry| entry.mtime_ns.map(Value::Time),
        differs: |old, new| old.mtime_ns.is_some() && new.mtime_ns.is_some() && !is_same_mtime(old, new),
    }
    /// Time of the last change of the inode, nanoseconds.
    Ctime {
        name: "ctime", key: "ctime_ns", restored: false,
        value: |entry| entry.ctime_ns.map(Value::Time),
        differs: |old, new| old.ctime_ns.is_some() && new.ctime_ns.is_some() && !is_same_ctime(old, new),
    }
    /// Inode number.
    Ino {
        name: "ino", key: "ino", restored: false,
        value: |entry| entry.ino.map(Value::Number),
        differs: |old, new| differ(old.ino, new.ino),
    }
    /// Number of hard links.
    Nlink {
        name: "nlink", key: "nlink", restored: true,
        value: |entry| entry.nlink.map(Value::Number),
        differs: |old, new| differ(old.nlink, new.nlink),
    }
    /// Device of the root.
    Dev {
        name: "dev", key: "dev", restored: false,
        value: |entry| entry.dev.map(Value::Number),
        differs: |old, new| differ(old.dev, new.dev),
    }
    /// Device number of a device node.
    Rdev {
        name: "rdev", key: "rdev", restored: true,
        value: |entry| entry.rdev.map(Value::Number),
        differs: |old, new| differ(old.rdev, new.rdev),
    }
    /// Digest of a file's content.
    Digest {
        name: "digest", key: "digest", restored: true,
        value: |entry| entry.digest.map(|digest| Value::Digest(digest.to_vec())),
        differs: |old, new| differ(old.digest, new.digest),
    }
    /// Target of a symbolic link.
    Target {
        name: "target", key: "target", restored: true,
        value: |entry| entry.target.map(|target| Value::Bytes(target.to_vec())),
        differs: |old, new| differ(old.target, new.target),
    }
    /// Extended attributes, ACLs and capabilities among them.
    Xattrs {
        name: "xattrs", key: "xattrs", restored: true,
        value: |entry| entry.xattrs.map(|xattrs| Value::Xattrs(xattrs.clone())),
        differs: |old, new| differ(old.xattrs, new.xattrs),
    }
    /// Size of a directory, which depends on the file system; sets of fields have it apart from
    /// `Size`.
    DirSize {
        name: "dir-size", key: "size", restored: false,
        value: |entry| entry.size.map(Value::Number),
        differs: |_, _| false,
    }
    /// Number of links of a directory, which depends on the file system; sets of fields have it
    /// apart from `Nlink`.
    DirNlink {
        name: "dir-nlink", key: "nlink", restored: false,
        value: |entry| entry.nlink.map(Value::Number),
        differs: |_, _| false,
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of fields. Parsed from names with commas between them; the empty
/// text is the empty set.
#[derive(Clone, Copy, Default, Eq, PartialEq)]
pub struct Fields(u32);

impl Fields {
    /// No fields.
    pub const NONE: Fields = Fields(0);

    /// All fields.
    pub const ALL: Fields = Fields((1 << Field::ALL.len()) - 1);

    /// Fields that a restore from a backup cannot bring back: not compared unless fields to ignore
    /// are given explicitly.
    pub const NOT_RESTORED: Fields = {
        let mut fields = Fields::ALL;
        let mut nth = 0;
        while nth < Field::ALL.len() {
            if Field::ALL[nth].is_restored() {
                fields = fields.without(Field::ALL[nth]);
            }
            nth += 1;
        }
        fields
    };

    /// Returns this set with `field`.
    #[must_use]
    pub const fn with(self, field: Field) -> Fields {
        Fields(self.0 | 1 << field as u8)
    }

    /// Returns this set without `field`.
    #[must_use]
    pub const fn without(self, field: Field) -> Fields {
        Fields(self.0 & !(1 << field as u8))
    }

    /// True if `field` is in the set.
    pub const fn contains(self, field: Field) -> bool {
        self.0 & (1 << field as u8) != 0
    }

    /// Returns the fields, in order.
    pub fn iter(self) -> impl Iterator<Item = Field> {
        Field::ALL
            .into_iter()
            .filter(move |&field| self.contains(field))
    }
}

impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, field) in self.iter().enumerate() {
            if nth > 0 {
                f.write_str(",")?;
            }
            f.write_str(field.name())?;
        }
        Ok(())
    }
}

/// A name that is no field's.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnknownField(String);

impl fmt::Display for UnknownField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown field '{}'; fields are ", self.0)?;
        for (nth, field) in Field::ALL.iter().skip(1).enumerate() {
            if nth > 0 {
                f.write_str(", ")?;
            }
            f.write_str(field.name())?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownField {}

impl FromStr for Fields {
    type Err = UnknownField;

    fn from_str(text: &str) -> Result<Fields, UnknownField> {
        let mut fields = Fields::NONE;
        for name in text
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
        {
            let field = Field::ALL
                .into_iter()
                // The kind decides which other fields exist: it cannot be left out.
                .filter(|&field| field != Field::Kind)
                .find(|field| {
                    field.name() == name || (field.key() == name && name.ends_with("_ns"))
                })
                .ok_or_else(|| UnknownField(name.to_string()))?;
            fields = fields.with(field);
        }
        Ok(fields)
    }
}

/// Extent of a comparison of entries.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum CompareMode {
    /// Content and every field that is not ignored.
    #[default]
    Strict,
    /// Kind, digest and link target only.
    Content,
    /// Every field that is not ignored, without reading any content.
    Meta,
}

impl CompareMode {
    /// All variants.
    pub const ALL: [CompareMode; 3] =
        [CompareMode::Strict, CompareMode::Content, CompareMode::Meta];

    /// Returns `strict`, `content` or `meta`.
    pub const fn name(self) -> &'static str {
        match self {
            CompareMode::Strict => "strict",
            CompareMode::Content => "content",
            CompareMode::Meta => "meta",
        }
    }
}

/// Fields that count as a difference.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct CompareRules {
    /// The mode.
    pub mode: CompareMode,
    /// Fields left out of the comparison.
    pub ignore: Fields,
}

impl Default for CompareRules {
    fn default() -> CompareRules {
        CompareRules {
            mode: CompareMode::Strict,
            ignore: Fields::NOT_RESTORED,
        }
    }
}

impl CompareRules {
    /// Makes rules of a mode and the fields to ignore.
    pub const fn new(mode: CompareMode, ignore: Fields) -> CompareRules {
        CompareRules { mode, ignore }
    }

    /// True if a difference in `field` between two entries of this kind counts. `Size` and `Nlink`
    /// stand for `DirSize` and `DirNlink` too.
    pub fn compares(&self, field: Field, kind: Kind) -> bool {
        let field = match (field, kind) {
            (Field::Size, Kind::Dir) => Field::DirSize,
            (Field::Nlink, Kind::Dir) => Field::DirNlink,
            _ => field,
        };
        let content = matches!(field, Field::Kind | Field::Digest | Field::Target);
        match self.mode {
            CompareMode::Content if !content => false,
            CompareMode::Meta if field == Field::Digest => false,
            _ => !self.ignore.contains(field),
        }
    }
}

/// A value of a field.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// Not recorded, or not to be had.
    None,
    /// A plain number.
    Number(u64),
    /// Mode bits.
    Mode(u32),
    /// Nanoseconds since 1970.
    Time(i64),
    /// Kind of a file.
    Kind(Kind),
    /// A digest's raw bytes.
    Digest(Vec<u8>),
    /// A link's target.
    Bytes(Vec<u8>),
    /// Extended attributes by name.
    Xattrs(Xattrs),
}

impl fmt::Display for Value {
    /// Writes a short text for people, in one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::None => f.write_str("?"),
            Value::Number(number) => write!(f, "{number}"),
            Value::Mode(mode) => write!(f, "{:04o}", mode & 0o7777),
            Value::Time(at) => f.write_str(&time::describe(*at)),
            Value::Kind(kind) => f.write_str(kind.name()),
            Value::Digest(bytes) => bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
            Value::Bytes(bytes) => write!(f, "{}", Escaped(bytes)),
            Value::Xattrs(all) => write!(f, "{} attributes", all.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_unknown_ones_are_told() {
        for field in Field::ALL.into_iter().skip(1) {
            let set: Fields = field.name().parse().unwrap();
            assert_eq!(set, Fields::NONE.with(field));
            assert_eq!(set.to_string(), field.name());
        }
        let set: Fields = "mtime_ns, uid".parse().unwrap();
        assert_eq!(set, Fields::NONE.with(Field::Mtime).with(Field::Uid));
        assert_eq!("".parse(), Ok(Fields::NONE));
        let error = "mode,owner".parse::<Fields>().unwrap_err().to_string();
        assert!(
            error.contains("'owner'") && error.contains("dir-nlink"),
            "{error}"
        );
        assert!("kind".parse::<Fields>().is_err());
    }

    #[test]
    fn modes_limit_what_is_compared() {
        let strict = CompareRules::default();
        assert!(strict.compares(Field::Size, Kind::File));
        assert!(!strict.compares(Field::Size, Kind::Dir));
        assert!(!strict.compares(Field::Ctime, Kind::File));
        let explicit = CompareRules {
            mode: CompareMode::Strict,
            ignore: Fields::NONE,
        };
        assert!(explicit.compares(Field::Ctime, Kind::File));
        assert!(explicit.compares(Field::Nlink, Kind::Dir));
        let content = CompareRules {
            mode: CompareMode::Content,
            ..strict
        };
        assert!(content.compares(Field::Digest, Kind::File));
        assert!(content.compares(Field::Target, Kind::Symlink));
        assert!(!content.compares(Field::Mode, Kind::File));
        let meta = CompareRules {
            mode: CompareMode::Meta,
            ..strict
        };
        assert!(!meta.compares(Field::Digest, Kind::File));
        assert!(meta.compares(Field::Target, Kind::Symlink));
    }
}
