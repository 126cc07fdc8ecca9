//! `bc hash --format=jsonl`: a header, one object per file, a summary; one line each.
//!
//! A path that is not UTF-8 is written as base64 in `path_b64`, beside a lossy `path`. A list made by
//! one of several readers of a tree has in its header the number of the part and the job, in its
//! summary the figures needed to put the parts together.
//!
//! ```
//! use bc_manifest::jsonl::{self, Header, Summary};
//! use bc_manifest::{Failure, Item, Options, Reader};
//!
//! let header = Header {
//!     schema: 1,
//!     tool: "example".into(),
//!     version: "1.0".into(),
//!     algorithms: vec!["sha256".into()],
//!     extra: Default::default(),
//! };
//! let mut text = Vec::new();
//! jsonl::write_header(&mut text, &header);
//! jsonl::write_file(&mut text, b"a", 5, [("sha256", &[0x11; 32][..])]);
//! let failure = Failure { op: "open".into(), errno: Some(13), message: "permission denied".into() };
//! jsonl::write_error(&mut text, b"b", None, &failure);
//! let summary = Summary {
//!     files: 1,
//!     errors: 1,
//!     bytes: 5,
//!     wall_ns: 1_000,
//!     threads: 1,
//!     reader: "sync".into(),
//!     extra: Default::default(),
//! };
//! jsonl::write_summary(&mut text, &summary);
//! let mut reader = Reader::new(&text[..], Options::default())?;
//! assert_eq!(reader.read()?, Some(Item::Header(header)));
//! # Ok::<(), bc_manifest::Error>(())
//! ```

use std::fmt;

use bc_digest::{Digest, push_hex};
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::algorithm::{Name, digest_len, intern};
use crate::integrity::ShardHeader;
use crate::json::{Text, either_path, push_bytes, push_failure, push_field, push_key, push_str};
use crate::record::{Failure, Item, Record};

pub use crate::record::{Header, Summary};

/// The schema this version writes, and the newest it reads.
///
/// Internal to bit-crafts.
#[doc(hidden)]
pub const SCHEMA: u32 = 1;

/// Appends the header line.
pub fn write_header(out: &mut Vec<u8>, header: &Header) {
    write_typed(out, "header", header);
}

/// Appends the summary line.
pub fn write_summary(out: &mut Vec<u8>, summary: &Summary) {
    write_typed(out, "summary", summary);
}

fn write_typed<T: Serialize>(out: &mut Vec<u8>, kind: &str, value: &T) {
    #[derive(Serialize)]
    struct Typed<'a, T> {
        r#type: &'a str,
        #[serde(flatten)]
        value: &'a T,
    }
    // Strings, numbers and JSON values into a Vec: nothing in there can fail.
    let _ = serde_json::to_writer(
        &mut *out,
        &Typed {
            r#type: kind,
            value,
        },
    );
    out.push(b'\n');
}

/// Appends the line of a file with its digests by name.
pub fn write_file<'a>(
    out: &mut Vec<u8>,
    path: &[u8],
    size: u64,
    digests: impl IntoIterator<Item = (&'a str, &'a [u8])>,
) {
    out.extend_from_slice(b"{\"type\":\"file\"");
    push_bytes(out, "path", path);
    push_field(out, "size", size);
    push_digests(out, digests);
    out.extend_from_slice(b"}\n");
}

/// Counts of what lies below a directory.
///
/// Internal to bit-crafts.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct DirCounts {
    /// Files.
    pub files: u64,
    /// Their sizes together.
    pub bytes: u64,
    /// Entries that filters left out.
    pub filtered: u64,
}

/// Appends the line of a directory with its digests by name; none where it has no digest. Readers
/// of lists of files pass it over.
///
/// Internal to bit-crafts.
#[doc(hidden)]
pub fn write_dir<'a>(
    out: &mut Vec<u8>,
    path: &[u8],
    counts: DirCounts,
    digests: impl IntoIterator<Item = (&'a str, &'a [u8])>,
) {
    out.extend_from_slice(b"{\"type\":\"dir\"");
    push_bytes(out, "path", path);
    push_field(out, "files", counts.files);
    push_field(out, "bytes", counts.bytes);
    push_field(out, "filtered", counts.filtered);
    push_digests(out, digests);
    out.extend_from_slice(b"}\n");
}

fn push_digests<'a>(out: &mut Vec<u8>, digests: impl IntoIterator<Item = (&'a str, &'a [u8])>) {
    push_key(out, "digests");
    let mut separator = b'{';
    for (name, digest) in digests {
        out.push(separator);
        push_str(out, name);
        out.extend_from_slice(b":\"");
        push_hex(out, digest);
        out.push(b'"');
        separator = b',';
    }
    if separator == b'{' {
        out.push(b'{');
    }
    out.push(b'}');
}

/// Appends the line of a file that has no digest; its size only if known.
pub fn write_error(out: &mut Vec<u8>, path: &[u8], size: Option<u64>, error: &Failure) {
    out.extend_from_slice(b"{\"type\":\"file\"");
    push_bytes(out, "path", path);
    if let Some(size) = size {
        push_field(out, "size", size);
    }
    push_failure(out, error);
    out.extend_from_slice(b"}\n");
}

#[derive(Deserialize)]
struct LineType<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    schema: Option<u64>,
}

#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow)]
    path: Option<Text<'a>>,
    #[serde(borrow)]
    path_b64: Option<Text<'a>>,
    size: Option<u64>,
    #[serde(default)]
    digests: LineDigests,
    error: Option<Failure>,
}

/// Digests in the order of the line, which a map would lose.
#[derive(Default)]
struct LineDigests(Vec<(Option<Name>, Digest)>);

impl<'de> Deserialize<'de> for LineDigests {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct DigestsVisitor;
        impl<'de> Visitor<'de> for DigestsVisitor {
            type Value = LineDigests;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of hexadecimal digests")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LineDigests, A::Error> {
                use serde::de::Error;
                let mut digests: Vec<(Option<Name>, Digest)> = Vec::new();
                while let Some((Text(name), Text(hex))) = map.next_entry::<Text<'_>, Text<'_>>()? {
                    let digest = Digest::from_hex(hex.as_bytes())
                        .ok_or_else(|| A::Error::custom("not a digest"))?;
                    if digest_len(&name).is_some_and(|len| len != digest.as_bytes().len()) {
                        return Err(A::Error::custom("wrong length of digest"));
                    }
                    if digests
                        .iter()
                        .any(|(seen, _)| seen.as_deref() == Some(&*name))
                    {
                        return Err(A::Error::custom("algorithm repeated"));
                    }
                    digests.push((Some(intern(&name)), digest));
                }
                Ok(LineDigests(digests))
            }
        }
        deserializer.deserialize_map(DigestsVisitor)
    }
}

/// Content of a line.
pub(crate) enum Parsed {
    Item(Item),
    /// A header of a schema that is not ours.
    Future(u64),
}

/// Parses one line. Lines of unknown type are comments: a later version may add some.
pub(crate) fn parse(line: &[u8], number: u64) -> Parsed {
    let malformed = |why| Parsed::Item(Item::Malformed { line: number, why });
    let Ok(kind) = serde_json::from_slice::<LineType<'_>>(line) else {
        return malformed("not a JSON object with a type");
    };
    Parsed::Item(match &*kind.r#type.0 {
        "header" => {
            if let Some(schema) = kind.schema.filter(|&schema| schema > SCHEMA.into()) {
                return Parsed::Future(schema);
            }
            match serde_json::from_slice::<Header>(line) {
                Ok(mut header) => {
                    header.extra.remove("type");
                    Item::Header(header)
                }
                Err(_) => return malformed("not a valid header"),
            }
        }
        "file" => match serde_json::from_slice::<File<'_>>(line)
            .ok()
            .and_then(|f| record(f, number))
        {
            Some(record) => Item::Record(record),
            None => return malformed("not a valid file entry"),
        },
        "summary" => match serde_json::from_slice::<Summary>(line) {
            Ok(mut summary) => {
                summary.extra.remove("type");
                Item::Summary(summary)
            }
            Err(_) => return malformed("not a valid summary"),
        },
        _ => Item::Comment { line: number },
    })
}

/// Makes the record of a file, which needs a path, and a digest or an error: a missing digest must
/// not pass for one.
fn record(file: File<'_>, line: u64) -> Option<Record> {
    let twin = file.path_b64.as_ref().map(|twin| &*twin.0);
    let path = either_path(file.path.map(|path| path.0), twin)?;
    if path.contains(&0) || (file.digests.0.is_empty() && file.error.is_none()) {
        return None;
    }
    Some(Record {
        line,
        path,
        digests: file.digests.0,
        size: file.size,
        error: file.error,
    })
}

/// Key of both in header and summary.
const SHARD: &str = "shard";

/// Part that a list covers, and the work that it is a part of.
///
/// Internal to bit-crafts.
#[doc(hidden)]
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ListPart {
    /// Number of the part.
    pub shard: ShardHeader,
    /// Names and values of the options that decide which files are read and what is made of them.
    /// Parts of one work have the same.
    pub job: Vec<(String, String)>,
}

/// Sets of directories of a walk, each as how many they are and the sum of a hash of their paths.
///
/// Internal to bit-crafts.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ListPartEnd {
    /// Directories of the part that are known to their end.
    pub settled: (u64, u64),
    /// Directories of all parts that the walk came upon.
    pub met: (u64, u64),
}

impl ListPart {
    /// Returns the fields of a header beside its other keys.
    pub fn to_fields(&self) -> Map<String, Value> {
        let mut value = self.shard.to_value();
        value["job"] = json!(self.job);
        Map::from_iter([(SHARD.to_owned(), value)])
    }

    /// Reads the keys of a header that the format itself does not know; `None` if it is of no part.
    ///
    /// # Errors
    /// If it is of a part that this version does not know.
    pub fn of_fields(fields: &Map<String, Value>) -> Result<Option<ListPart>, &'static str> {
        let Some(value) = fields.get(SHARD) else {
            return Ok(None);
        };
        let shard = ShardHeader::of_value(value)?;
        let job = serde_json::from_value(value["job"].clone());
        let job = job.map_err(|_| "a part of a work that is told in a way unknown here")?;
        Ok(shard.map(|shard| ListPart { shard, job }))
    }
}

impl ListPartEnd {
    /// Returns the fields of a summary beside its other keys.
    pub fn to_fields(self) -> Map<String, Value> {
        let set = |(count, sum): (u64, u64)| json!({"directories": count, "sum": hex(sum)});
        let value = json!({"settled": set(self.settled), "met": set(self.met)});
        Map::from_iter([(SHARD.to_owned(), value)])
    }

    /// Reads the keys of a summary that the format itself does not know.
    pub fn of_fields(fields: &Map<String, Value>) -> Option<ListPartEnd> {
        let set = |key: &str| {
            let set = &fields.get(SHARD)?[key];
            let sum = u64::from_str_radix(set["sum"].as_str()?, 16).ok()?;
            Some((set["directories"].as_u64()?, sum))
        };
        Some(ListPartEnd {
            settled: set("settled")?,
            met: set("met")?,
        })
    }
}

fn hex(sum: u64) -> String {
    format!("{sum:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_are_read_as_they_are_written() {
        let part = ListPart {
            shard: ShardHeader { index: 2, of: 3 },
            job: vec![("root".to_owned(), "/srv".to_owned())],
        };
        assert_eq!(ListPart::of_fields(&part.to_fields()), Ok(Some(part)));
        assert_eq!(ListPart::of_fields(&Map::new()), Ok(None));
        let end = ListPartEnd {
            settled: (1, u64::MAX),
            met: (7, 0),
        };
        assert_eq!(ListPartEnd::of_fields(&end.to_fields()), Some(end));
        assert_eq!(ListPartEnd::of_fields(&Map::new()), None);
    }
}
