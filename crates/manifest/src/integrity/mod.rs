//! Integrity manifests: a header, one line per entry of a tree, and a trailer with counts
//! and the SHA-256 of all bytes before it. JSON lines of one flat schema
//! (`schema/integrity-v1.schema.json`).
//!
//! - Entries are sorted strictly by [`path_order`]: the root `.` first, then bytewise.
//! - Paths are relative, without empty, `.` or `..` components; they and link targets are raw
//!   bytes, with a `_b64` twin where they are not UTF-8.
//! - A file has a digest, or an error with the reason why not.
//! - The SHA-256 finds accidents, not attackers: a program that can rewrite the lines can rewrite
//!   the trailer. Sign the file where that matters.
//! - [`Reader`] yields entries before it has seen the trailer. A program that must not act on a
//!   damaged manifest reads it to the end first ([`validate`]).
//!
//! ```
//! use bc_manifest::integrity::{Entry, Header, Kind, Policy, Reader, Writer};
//! use bc_manifest::Digest;
//!
//! let mut writer = Writer::new(Vec::new(), &Header::new("sha256", "0.1.0"))?;
//! let mut entry = Entry::new(b"a/b".to_vec(), Kind::File);
//! entry.meta = Some(Default::default());
//! entry.digest = Digest::from_slice(&[7; 32]);
//! writer.write(&entry)?;
//! let (bytes, trailer) = writer.finish()?;
//! assert_eq!(trailer.files, 1);
//!
//! let mut reader = Reader::new(&bytes[..], Policy::Strict)?;
//! assert_eq!(reader.read()?, Some(entry));
//! assert_eq!(reader.read()?, None); // and so the trailer was right
//! # Ok::<(), bc_manifest::Error>(())
//! ```

mod canonical;
mod entry;
mod header;
mod matcher;
mod parse;
mod reader;
mod swar;
mod writer;

/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use entry::{COPY_STAMP_LEN, ROOT, UNSEEN_AT, check_path};
pub use entry::{ContentFault, Entry, Kind, Meta, Mounted, Xattrs, path_order};
pub use header::{Header, Trailer};
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use header::{Scope, ShardHeader, ShardTrailer};
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use matcher::{Expected, Match, Matcher};
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use reader::{Passed, check_seal, read_seal};
pub use reader::{Policy, Reader, validate};
pub use writer::Writer;

/// The schema this version writes, and the only one it reads.
pub(crate) const SCHEMA: u32 = 1;
