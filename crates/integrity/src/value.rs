//! Values of fields, as differences show them.

use std::fmt;

use bc_fs::Escaped;
use bc_manifest::integrity::{Kind, Xattrs};
use bc_manifest::time;

/// A value of a field.
#[derive(Clone, Debug, Eq, PartialEq)]
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
