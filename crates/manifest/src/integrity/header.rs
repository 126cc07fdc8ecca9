//! The first and the last line.

use bc_digest::Digest;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::SCHEMA;
use crate::error::{Error, ErrorKind};
use crate::json::{push_bytes, push_field, push_key, push_str, push_u64, untwin};

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
        bc_digest::push_hex(out, &self.sha256);
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

pub(super) fn push_value(out: &mut Vec<u8>, value: &Map<String, Value>) {
    // JSON values into a Vec: cannot fail.
    let _ = serde_json::to_writer(out, value);
}

/// Appends `,"key":value` for each field.
pub(super) fn push_extra(out: &mut Vec<u8>, extra: &Map<String, Value>) {
    for (key, value) in extra {
        out.push(b',');
        push_str(out, key);
        out.push(b':');
        let _ = serde_json::to_writer(&mut *out, value);
    }
}
