//! Values of fields, as differences show them.

use bc_manifest::integrity::{Kind, Xattrs};

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
