//! The first and the last line, and what they say of the part of a tree that a manifest is about.

use bc_digest::{Digest, push_hex};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use super::SCHEMA;
use super::entry::{Entry, Kind, ROOT, check_path};
use crate::error::{Error, ErrorKind};
use crate::json::{push_bytes, push_extra, push_field, push_key, push_str, push_u64, untwin};

/// Properties that a manifest records about itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// Program that wrote it: `bc integrity`.
    pub tool: String,
    /// The writer's version.
    pub version: String,
    /// Name of the digest algorithm, e.g. `sha256`.
    pub algorithm: String,
    /// Time when the walk began, RFC 3339 in UTC.
    pub created_at: Option<String>,
    /// The host's name.
    pub host: Option<String>,
    /// The machine's id, as `/etc/machine-id` has it: two hosts may share a name.
    pub machine: Option<String>,
    /// The root's absolute path without links, raw bytes. Manifests of earlier versions have it
    /// as it was given.
    pub root: Option<Vec<u8>>,
    /// Device number of the root.
    pub root_dev: Option<u64>,
    /// UUID of the root's file system.
    pub fs_uuid: Option<String>,
    /// Source of the mount that the root is on, as the kernel names it: `/dev/sda2`,
    /// `server:/export`.
    pub mount_source: Option<String>,
    /// Part of the file system that this mount shows, as a path within it: `/` for all of it. Only
    /// manifests that have it list single files that are mounted.
    pub mount_root: Option<String>,
    /// Paths below the root that were asked for; null for all. Its form is defined by the writer.
    pub scope: Value,
    /// Part of a tree that several readers read together; null for all of it.
    pub shard: Value,
    /// Every option that decides which entries there are.
    pub options: Map<String, Value>,
    /// Fields that this version does not know, kept as they are.
    pub extra: Map<String, Value>,
}

/// The counts at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trailer {
    /// All entries.
    pub entries: u64,
    /// Entries of kind file.
    pub files: u64,
    /// Entries of kind directory.
    pub dirs: u64,
    /// Sum of the sizes of the entries of kind file, in bytes.
    pub bytes: u64,
    /// Entries with an error.
    pub errors: u64,
    /// SHA-256 of all bytes before the trailer's line.
    pub sha256: [u8; 32],
}

#[derive(Deserialize)]
struct RawHeader {
    /// Keys that were examined before.
    #[serde(rename = "type")]
    _type: IgnoredAny,
    #[serde(rename = "schema")]
    _schema: IgnoredAny,
    tool: String,
    version: String,
    algorithm: String,
    #[serde(default)]
    created_at: Option<String>,
    #[serde(default)]
    host: Option<String>,
    #[serde(default)]
    root: Option<String>,
    #[serde(default)]
    root_b64: Option<String>,
    #[serde(default)]
    root_dev: Option<u64>,
    #[serde(default)]
    machine: Option<String>,
    #[serde(default)]
    fs_uuid: Option<String>,
    #[serde(default)]
    mount_source: Option<String>,
    #[serde(default)]
    mount_root: Option<String>,
    #[serde(default)]
    scope: Value,
    #[serde(default)]
    shard: Value,
    #[serde(default)]
    options: Map<String, Value>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

impl Header {
    /// Makes a header with the fields that every manifest needs; the others empty.
    pub fn new(algorithm: &str, version: &str) -> Header {
        Header {
            tool: "bc integrity".to_owned(),
            version: version.to_owned(),
            algorithm: algorithm.to_owned(),
            created_at: None,
            host: None,
            machine: None,
            root: None,
            root_dev: None,
            fs_uuid: None,
            mount_source: None,
            mount_root: None,
            scope: Value::Null,
            shard: Value::Null,
            options: Map::new(),
            extra: Map::new(),
        }
    }

    pub(super) fn check(&self) -> Result<(), &'static str> {
        const FIELDS: &[&str] = &[
            "type",
            "schema",
            "tool",
            "version",
            "algorithm",
            "created_at",
            "host",
            "machine",
            "root",
            "root_b64",
            "root_dev",
            "fs_uuid",
            "mount_source",
            "mount_root",
            "scope",
            "shard",
            "options",
        ];
        match self.extra.keys().any(|key| FIELDS.contains(&key.as_str())) {
            true => Err("extra field with the name of a known one"),
            false => Ok(()),
        }
    }

    pub(super) fn write_line(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"type\":\"header\",\"schema\":");
        push_u64(out, SCHEMA.into());
        for (key, text) in [
            ("tool", Some(&self.tool)),
            ("version", Some(&self.version)),
            ("algorithm", Some(&self.algorithm)),
            ("created_at", self.created_at.as_ref()),
            ("host", self.host.as_ref()),
        ] {
            if let Some(text) = text {
                push_key(out, key);
                push_str(out, text);
            }
        }
        push_nullable(out, "machine", self.machine.as_deref());
        if let Some(root) = &self.root {
            push_bytes(out, "root", root);
        }
        if let Some(dev) = self.root_dev {
            push_field(out, "root_dev", dev);
        }
        push_nullable(out, "fs_uuid", self.fs_uuid.as_deref());
        push_nullable(out, "mount_source", self.mount_source.as_deref());
        if let Some(root) = &self.mount_root {
            push_key(out, "mount_root");
            push_str(out, root);
        }
        for (key, value) in [("scope", &self.scope), ("shard", &self.shard)] {
            push_key(out, key);
            // JSON values into a Vec: cannot fail.
            let _ = serde_json::to_writer(&mut *out, value);
        }
        push_key(out, "options");
        push_value(out, &self.options);
        push_extra(out, &self.extra);
        out.extend_from_slice(b"}\n");
    }

    /// Parses the first line, without its newline.
    pub(super) fn parse(line: &[u8]) -> Result<Header, Error> {
        // The schema is looked at first and alone: a later one may differ in all the rest.
        #[derive(Deserialize)]
        struct First {
            r#type: String,
            schema: u64,
        }
        let refuse = |what: String| Error::new(ErrorKind::NotAManifest, 1, what);
        let first: First = serde_json::from_slice(line)
            .map_err(|_| refuse("not an integrity manifest: no header".into()))?;
        if first.r#type != "header" {
            return Err(refuse("not an integrity manifest: no header".into()));
        }
        if first.schema != u64::from(SCHEMA) {
            let kind = match first.schema {
                0 => ErrorKind::NotAManifest,
                _ => ErrorKind::FutureSchema,
            };
            return Err(Error::new(
                kind,
                1,
                format!("schema {} is not known here, only {SCHEMA}", first.schema),
            ));
        }
        let raw: RawHeader =
            serde_json::from_slice(line).map_err(|e| refuse(format!("not a valid header: {e}")))?;
        let root = match (raw.root, raw.root_b64) {
            (Some(text), twin) => Some(
                untwin(text, twin.as_deref())
                    .ok_or_else(|| refuse("root and root_b64 differ".into()))?,
            ),
            (None, None) => None,
            (None, Some(_)) => return Err(refuse("root_b64 without root".into())),
        };
        Ok(Header {
            tool: raw.tool,
            version: raw.version,
            algorithm: raw.algorithm,
            created_at: raw.created_at,
            host: raw.host,
            machine: raw.machine,
            root,
            root_dev: raw.root_dev,
            fs_uuid: raw.fs_uuid,
            mount_source: raw.mount_source,
            mount_root: raw.mount_root,
            scope: raw.scope,
            shard: raw.shard,
            options: raw.options,
            extra: raw.extra,
        })
    }
}

impl Trailer {
    /// Beginning of its line.
    pub(super) const START: &[u8] = b"{\"type\":\"trailer\"";

    /// Writes the line in its only form: the reader compares the bytes, since nothing else guards
    /// them.
    pub(super) fn write_line(&self, out: &mut Vec<u8>, extra: &Map<String, Value>) {
        out.extend_from_slice(Trailer::START);
        push_field(out, "entries", self.entries);
        push_field(out, "files", self.files);
        push_field(out, "dirs", self.dirs);
        push_field(out, "bytes", self.bytes);
        push_field(out, "errors", self.errors);
        out.extend_from_slice(b",\"sha256\":\"");
        push_hex(out, &self.sha256);
        out.push(b'"');
        push_extra(out, extra);
        out.extend_from_slice(b"}\n");
    }

    /// True if `line`, without its newline, is the one that [`write_line`](Self::write_line)
    /// writes. Keys that a later version adds may follow.
    pub(super) fn is_written_as(&self, line: &[u8]) -> bool {
        let mut known = Vec::new();
        self.write_line(&mut known, &Map::new());
        // Without the brace and the newline.
        let known = &known[..known.len() - 2];
        match line.strip_prefix(known) {
            Some(b"}") => true,
            Some([b',', .., b'}']) => serde_json::from_slice::<Map<String, Value>>(line).is_ok(),
            _ => false,
        }
    }

    /// Returns the keys of a trailer's line that this format does not know.
    pub(super) fn extra(line: &[u8]) -> Map<String, Value> {
        const FIELDS: [&str; 7] = [
            "type", "entries", "files", "dirs", "bytes", "errors", "sha256",
        ];
        let fields: Map<String, Value> = serde_json::from_slice(line).unwrap_or_default();
        let is_known = |key: &str| FIELDS.contains(&key);
        fields
            .into_iter()
            .filter(|(key, _)| !is_known(key))
            .collect()
    }

    pub(super) fn count(&mut self, entry: &Entry) {
        self.entries += 1;
        match entry.kind {
            Kind::File => {
                self.files += 1;
                self.bytes = self.bytes.saturating_add(entry.size().unwrap_or(0));
            }
            Kind::Dir => self.dirs += 1,
            _ => {}
        }
        self.errors += u64::from(entry.error.is_some());
    }

    pub(super) fn parse(line: &[u8]) -> Option<Trailer> {
        #[derive(Deserialize)]
        struct Raw {
            r#type: String,
            entries: u64,
            files: u64,
            dirs: u64,
            bytes: u64,
            errors: u64,
            sha256: String,
        }
        let raw: Raw = serde_json::from_slice(line).ok()?;
        let sha256 = Digest::from_hex(raw.sha256.as_bytes())?
            .as_bytes()
            .try_into()
            .ok()?;
        (raw.r#type == "trailer").then_some(Trailer {
            entries: raw.entries,
            files: raw.files,
            dirs: raw.dirs,
            bytes: raw.bytes,
            errors: raw.errors,
            sha256,
        })
    }
}

/// Writes a key with a text or null: every header has these keys, so that a reader that infers a
/// schema finds them.
fn push_nullable(out: &mut Vec<u8>, key: &str, text: Option<&str>) {
    push_key(out, key);
    match text {
        Some(text) => push_str(out, text),
        None => out.extend_from_slice(b"null"),
    }
}

fn push_value(out: &mut Vec<u8>, value: &Map<String, Value>) {
    // JSON values into a Vec: cannot fail.
    let _ = serde_json::to_writer(out, value);
}

/// Paths below the root, with everything that is below them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Sorted, and none twice.
    paths: Vec<Vec<u8>>,
}

impl Scope {
    /// Makes a scope of these paths, in any order.
    pub fn of(mut paths: Vec<Vec<u8>>) -> Scope {
        paths.sort_unstable();
        paths.dedup();
        Scope { paths }
    }

    /// True if a path is one of them or below one.
    pub fn holds(&self, path: &[u8]) -> bool {
        let has = |path: &[u8]| self.paths.binary_search_by(|own| own[..].cmp(path)).is_ok();
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        has(path) || slashes.into_iter().any(|(at, _)| has(&path[..at]))
    }

    /// Returns the paths, in order.
    pub fn paths(&self) -> &[Vec<u8>] {
        &self.paths
    }

    /// Returns the header's form: a list of paths, those that are not UTF-8 as objects with their
    /// bytes in hexadecimal digits.
    pub fn to_json(&self) -> Value {
        let path = |path: &Vec<u8>| match std::str::from_utf8(path) {
            Ok(text) => json!(text),
            Err(_) => {
                let mut hex = Vec::new();
                push_hex(&mut hex, path);
                json!({ "hex": String::from_utf8_lossy(&hex) })
            }
        };
        Value::Array(self.paths.iter().map(path).collect())
    }

    /// Reads the form that [`to_json`](Self::to_json) returns; `None` for anything else, and for
    /// paths that do not stay below the root.
    pub fn from_json(value: &Value) -> Option<Scope> {
        let path = |value: &Value| match value {
            Value::String(text) => Some(text.clone().into_bytes()),
            value => unhex(value.as_object()?.get("hex")?.as_str()?),
        };
        let paths: Option<Vec<Vec<u8>>> = value.as_array()?.iter().map(path).collect();
        let paths = paths?;
        let sound = |path: &Vec<u8>| path != ROOT && check_path(path).is_ok();
        paths.iter().all(sound).then(|| Scope::of(paths))
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8);
    rest.is_empty()
        .then(|| pairs.iter().map(byte).collect())
        .flatten()
}

/// Key of both in header and trailer.
const SHARD: &str = "shard";

/// Hash by which directories are assigned to parts.
const HASH: &str = "xxh64";

/// Part of a tree that a manifest covers, as recorded in its header.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ShardHeader {
    /// Number, from 1 to `of`.
    pub index: u32,
    /// Number of parts.
    pub of: u32,
}

impl ShardHeader {
    /// Returns the form of [`Header::shard`]: `{"index":2,"of":7,"hash":"xxh64"}`.
    pub fn to_value(self) -> Value {
        json!({"index": self.index, "of": self.of, "hash": HASH})
    }

    /// Reads the header: `None` if it is of no part of a tree.
    ///
    /// # Errors
    /// If it is of a part that this version does not know.
    pub fn of_header(header: &Header) -> Result<Option<ShardHeader>, &'static str> {
        ShardHeader::of_value(&header.shard)
    }

    /// Reads the value alone.
    pub(crate) fn of_value(value: &Value) -> Result<Option<ShardHeader>, &'static str> {
        if value.is_null() {
            return Ok(None);
        }
        let number = |key: &str| value[key].as_u64()?.try_into().ok();
        let (index, of) = (number("index"), number("of"));
        match index.zip(of).filter(|_| value["hash"] == HASH) {
            Some((index, of)) if 1 <= index && index <= of => Ok(Some(ShardHeader { index, of })),
            _ => Err("a part of a tree that is chosen in a way unknown here"),
        }
    }
}

/// Fields of the trailer of a part of a tree besides its counts.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ShardTrailer {
    /// Number of directories of this part that are known to their end.
    pub directories: u64,
    /// The sum of a hash of their paths.
    pub sum: u64,
    /// Numbers of the devices of the entries by the index that entries have, the root's first.
    pub devices: Vec<u64>,
    /// Number of these, from the first on, that are devices of directories, which every part knows
    /// and numbers alike.
    pub shared_devices: u64,
    /// Inode number of the tree's root: all parts are of one directory. Earlier versions do not
    /// record it.
    pub root_ino: Option<u64>,
}

impl ShardTrailer {
    /// Returns the fields to write behind the other keys of the trailer.
    pub fn to_fields(&self) -> Map<String, Value> {
        let value = json!({
            "directories": self.directories,
            "sum": format!("{:016x}", self.sum),
            "devices": self.devices,
            "shared_devices": self.shared_devices,
            "root_ino": self.root_ino,
        });
        Map::from_iter([(SHARD.to_owned(), value)])
    }

    /// Reads the keys of a trailer that the format itself does not know.
    pub fn of_fields(fields: &Map<String, Value>) -> Option<ShardTrailer> {
        let value = fields.get(SHARD)?;
        let sum = value["sum"].as_str().filter(|text| text.len() == 16)?;
        let devices = value["devices"].as_array()?.iter().map(Value::as_u64);
        Some(ShardTrailer {
            directories: value["directories"].as_u64()?,
            sum: u64::from_str_radix(sum, 16).ok()?,
            devices: devices.collect::<Option<_>>()?,
            shared_devices: value["shared_devices"].as_u64()?,
            root_ino: value["root_ino"].as_u64(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_about_what_is_below_its_paths() {
        let scope = Scope::of(vec![b"b/c".to_vec(), b"a".to_vec(), b"\xff".to_vec()]);
        for path in [&b"a"[..], b"a/x", b"a/x/y", b"b/c", b"b/c/d", b"\xff/z"] {
            assert!(scope.holds(path), "{path:?}");
        }
        for path in [&b"."[..], b"b", b"a-", b"ab", b"b/cd", b"c"] {
            assert!(!scope.holds(path), "{path:?}");
        }
        assert_eq!(Scope::from_json(&scope.to_json()), Some(scope));
    }

    #[test]
    fn what_leaves_the_root_is_no_scope() {
        for value in [
            json!(["../x"]),
            json!(["/x"]),
            json!(["."]),
            json!([{ "hex": "2e2" }]),
            json!([{ "hex": "2e2e" }]),
            json!([1]),
            json!("a"),
        ] {
            assert_eq!(Scope::from_json(&value), None, "{value}");
        }
    }

    #[test]
    fn both_are_read_as_they_are_written() {
        let mut header = Header::new("sha256", "0");
        assert_eq!(ShardHeader::of_header(&header), Ok(None));
        let part = ShardHeader { index: 3, of: 7 };
        header.shard = part.to_value();
        assert_eq!(ShardHeader::of_header(&header), Ok(Some(part)));
        for odd in [
            json!({"index": 0, "of": 7, "hash": "xxh64"}),
            json!({"index": 8, "of": 7, "hash": "xxh64"}),
            json!({"index": 3, "of": 7, "hash": "md5"}),
            json!({"index": 3, "of": 7}),
            json!("3/7"),
        ] {
            header.shard = odd;
            assert!(ShardHeader::of_header(&header).is_err());
        }
        let trailer = ShardTrailer {
            directories: 5,
            sum: u64::MAX - 1,
            devices: vec![66_305, 40],
            shared_devices: 1,
            root_ino: Some(2),
        };
        assert_eq!(ShardTrailer::of_fields(&trailer.to_fields()), Some(trailer));
        assert_eq!(ShardTrailer::of_fields(&Map::new()), None);
    }
}
