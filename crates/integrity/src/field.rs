//! Fields of an entry: one row of a table for each, with its names, its value and its comparison.

use std::fmt;

use crate::entry_ref::{EntryRef, differ, is_same_ctime, is_same_mtime};
use crate::value::Value;

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
            pub(crate) const fn is_restored(self) -> bool {
                match self {
                    $(Field::$field => $restored,)*
                }
            }
        }

        impl EntryRef<'_> {
            /// Returns the value of `field`.
            pub fn value(&self, field: Field) -> Value {
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
