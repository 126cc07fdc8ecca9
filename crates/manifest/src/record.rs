//! Content of a line of a checksum manifest, whatever its format.

use bc_digest::Digest;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::algorithm::Name;

/// Reason why a file has no digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The operation that failed, e.g. `open`.
    pub op: String,
    /// The system's error number, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errno: Option<i32>,
    /// The reason in words.
    pub message: String,
}

/// One file of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The line it begins in, from 1.
    pub line: u64,
    /// The path in raw bytes, with all escapes undone; as GNU, possibly empty.
    pub path: Vec<u8>,
    /// Digests, with the algorithm's name where the line has it.
    pub digests: Vec<(Option<Name>, Digest)>,
    /// The size in bytes, in formats that have one.
    pub size: Option<u64>,
    /// Reason why there is no digest, in formats that record it.
    pub error: Option<Failure>,
}

/// The first line of a JSON lines manifest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Version of the format, [`SCHEMA`](crate::jsonl::SCHEMA).
    pub schema: u32,
    /// Program that wrote it, `bc hash`.
    pub tool: String,
    /// The writer's version.
    pub version: String,
    /// Names of the algorithms, in the order of the digests.
    pub algorithms: Vec<String>,
    /// Other fields, kept as they are.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The last line of a JSON lines manifest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Files with digests.
    pub files: u64,
    /// Files without, because of an error.
    pub errors: u64,
    /// Bytes hashed.
    pub bytes: u64,
    /// Wall time in nanoseconds.
    pub wall_ns: u64,
    /// Worker threads.
    pub threads: u64,
    /// The reader used: `sync` or `uring`.
    pub reader: String,
    /// Other fields, kept as they are.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Item that a [`Reader`](crate::Reader) yields. Blank lines are skipped.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Item {
    /// A file.
    Record(Record),
    /// A malformed line.
    Malformed {
        /// The line it begins in, from 1.
        line: u64,
        /// Description of the mistake, as a fragment that fits after a colon.
        why: &'static str,
    },
    /// A comment, or a JSON line of a type that holds no file.
    Comment {
        /// Its line, from 1.
        line: u64,
    },
    /// The header of a JSON lines manifest.
    Header(Header),
    /// The summary of a JSON lines manifest.
    Summary(Summary),
}

/// End of a line of the GNU or BSD style.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum End {
    /// Newline; newlines, carriage returns and backslashes in the path are escaped.
    #[default]
    Newline,
    /// NUL; nothing is escaped.
    Nul,
}

impl End {
    /// Returns the byte.
    pub const fn byte(self) -> u8 {
        match self {
            End::Newline => b'\n',
            End::Nul => 0,
        }
    }
}
