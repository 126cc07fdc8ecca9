//! Manifests: files that record the digest of each path.
//!
//! ```
//! use bc_manifest::{End, Item, Options, Reader, gnu};
//!
//! let mut text = Vec::new();
//! gnu::write_line(&mut text, &[0x11; 32], b"odd\nname", End::Newline);
//! let item = Reader::new(&text[..], Options::default())?.read()?;
//! let Some(Item::Record(record)) = item else { panic!() };
//! assert_eq!(record.path, b"odd\nname");
//! # Ok::<(), bc_manifest::Error>(())
//! ```
//!
//! - Checksum files in the formats of other tools, [`gnu`] (`sha256sum`) and [`bsd`] (tagged), and in our
//!   own, [`jsonl`] and CSV. [`Reader`] recognises the format and streams records of all of them.
//! - [`integrity`] manifests: sorted JSON lines with all metadata, and a trailer that reveals lost or
//!   altered lines.
//!
//! # Invariants
//! - Paths are raw bytes; any path is unchanged after writing and reading it.
//! - No input makes a reader panic or keep more than one line, of at most [`MAX_LINE`] bytes.
//! - Nothing here opens files, prints, or computes the digests of files.
#![forbid(unsafe_code)]
// The examples of the registry's page run, too.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod algorithm;
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub mod base64;
pub mod bsd;
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
#[cfg(feature = "zstd")]
pub mod compress;
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub mod csv;
mod error;
pub mod gnu;
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub mod hashdeep;
pub mod integrity;
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub mod json;
pub mod jsonl;
mod lines;
mod reader;
mod record;
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub mod time;

pub use algorithm::Name;
pub use bc_digest::Digest;
pub use error::{Error, ErrorKind};
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use json::ErrorRecord;
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use jsonl::{ListPart, ListPartEnd};
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use reader::MAX_LINE;
pub use reader::{Format, Options, Reader, Separator};
pub use record::{End, Failure, Item, Record};
/// JSON as serde_json has it: fields that this version does not know, kept as they are.
pub use serde_json::{Map, Value};
