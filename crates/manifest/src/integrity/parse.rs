//! Parsing of lines to entries. By hand rather than by serde's `flatten`, which would copy every
//! field once more to find the unknown ones.

use std::collections::BTreeMap;
use std::fmt;

use bc_digest::Digest;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde_json::{Map, Value};

use super::canonical::{self, Common};
use super::entry::{COPY_STAMP_LEN, ContentFault, Entry, Kind, Meta, Mounted, Xattrs, check_path};
use crate::base64;
use crate::error::ErrorKind;
use crate::json::{Text, untwin};
use crate::record::Failure;
use crate::time;

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Key {
    Type,
    Path,
    PathB64,
    Kind,
    Size,
    Mode,
    Uid,
    Gid,
    MtimeNs,
    CtimeNs,
    Ino,
    Nlink,
    Dev,
    Mount,
    MountRoot,
    FsUuid,
    Subvolid,
    Rdev,
    Digest,
    Target,
    TargetB64,
    Xattrs,
    XattrsB64,
    VerifiedAt,
    TriedRun,
    CopyStamp,
    TriedAt,
    Found,
    DamagedDigest,
    Unproven,
    Error,
    Unknown(String),
}

/// A line's fields before they are put together.
#[derive(Default)]
struct RawFields<'a> {
    r#type: Option<Text<'a>>,
    path: Option<Text<'a>>,
    path_b64: Option<Text<'a>>,
    kind: Option<Text<'a>>,
    size: Option<u64>,
    mode: Option<u32>,
    uid: Option<u32>,
    gid: Option<u32>,
    mtime_ns: Option<i64>,
    ctime_ns: Option<i64>,
    ino: Option<u64>,
    nlink: Option<u64>,
    dev: Option<u32>,
    mount: Option<Text<'a>>,
    mount_root: Option<Text<'a>>,
    fs_uuid: Option<Text<'a>>,
    subvolid: Option<u64>,
    rdev: Option<u64>,
    digest: Option<Text<'a>>,
    target: Option<Text<'a>>,
    target_b64: Option<Text<'a>>,
    xattrs: Option<Pairs>,
    xattrs_b64: Option<Pairs>,
    verified_at: Option<Text<'a>>,
    tried_run: Option<u32>,
    copy_stamp: Option<Text<'a>>,
    tried_at: Option<Text<'a>>,
    found: Option<Text<'a>>,
    damaged_digest: Option<Text<'a>>,
    unproven: Option<bool>,
    error: Option<Failure>,
    extra: Map<String, Value>,
}

impl<'de: 'a, 'a> Deserialize<'de> for RawFields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RawVisitor;
        impl<'de> Visitor<'de> for RawVisitor {
            type Value = RawFields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawFields<'de>, A::Error> {
                let mut raw = RawFields::default();
                while let Some(key) = map.next_key()? {
                    match key {
                        Key::Type => once(&mut raw.r#type, &mut map)?,
                        Key::Path => once(&mut raw.path, &mut map)?,
                        Key::PathB64 => once(&mut raw.path_b64, &mut map)?,
                        Key::Kind => once(&mut raw.kind, &mut map)?,
                        Key::Size => once(&mut raw.size, &mut map)?,
                        Key::Mode => once(&mut raw.mode, &mut map)?,
                        Key::Uid => once(&mut raw.uid, &mut map)?,
                        Key::Gid => once(&mut raw.gid, &mut map)?,
                        Key::MtimeNs => once(&mut raw.mtime_ns, &mut map)?,
                        Key::CtimeNs => once(&mut raw.ctime_ns, &mut map)?,
                        Key::Ino => once(&mut raw.ino, &mut map)?,
                        Key::Nlink => once(&mut raw.nlink, &mut map)?,
                        Key::Dev => once(&mut raw.dev, &mut map)?,
                        Key::Mount => once(&mut raw.mount, &mut map)?,
                        Key::MountRoot => once(&mut raw.mount_root, &mut map)?,
                        Key::FsUuid => once(&mut raw.fs_uuid, &mut map)?,
                        Key::Subvolid => once(&mut raw.subvolid, &mut map)?,
                        Key::Rdev => once(&mut raw.rdev, &mut map)?,
                        Key::Digest => once(&mut raw.digest, &mut map)?,
                        Key::Target => once(&mut raw.target, &mut map)?,
                        Key::TargetB64 => once(&mut raw.target_b64, &mut map)?,
                        Key::Xattrs => once(&mut raw.xattrs, &mut map)?,
                        Key::XattrsB64 => once(&mut raw.xattrs_b64, &mut map)?,
                        Key::VerifiedAt => once(&mut raw.verified_at, &mut map)?,
                        Key::TriedRun => once(&mut raw.tried_run, &mut map)?,
                        Key::CopyStamp => once(&mut raw.copy_stamp, &mut map)?,
                        Key::TriedAt => once(&mut raw.tried_at, &mut map)?,
                        Key::Found => once(&mut raw.found, &mut map)?,
                        Key::DamagedDigest => once(&mut raw.damaged_digest, &mut map)?,
                        Key::Unproven => once(&mut raw.unproven, &mut map)?,
                        Key::Error => once(&mut raw.error, &mut map)?,
                        Key::Unknown(key) => {
                            if raw.extra.insert(key, map.next_value()?).is_some() {
                                return Err(A::Error::custom("field repeated"));
                            }
                        }
                    }
                }
                Ok(raw)
            }
        }
        deserializer.deserialize_map(RawVisitor)
    }
}

fn once<'de, A, T>(slot: &mut Option<T>, map: &mut A) -> Result<(), A::Error>
where
    A: MapAccess<'de>,
    T: Deserialize<'de>,
{
    match slot.replace(map.next_value()?) {
        None => Ok(()),
        Some(_) => Err(A::Error::custom("field repeated")),
    }
}

/// An object of strings as pairs, each name once.
struct Pairs(BTreeMap<String, String>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor;
        impl<'de> Visitor<'de> for PairsVisitor {
            type Value = Pairs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of strings")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = BTreeMap::new();
                while let Some((name, value)) = map.next_entry()? {
                    if pairs.insert(name, value).is_some() {
                        return Err(A::Error::custom("name repeated"));
                    }
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(PairsVisitor)
    }
}

/// Kind of a line after the header.
#[expect(
    clippy::large_enum_variant,
    reason = "moved once; a box would be an allocation per line"
)]
pub(super) enum ParsedEntry {
    Entry(Entry),
    Trailer,
}

/// Reads the line that `text` begins with into `entry`, if it is whole there and as the writer
/// writes it, and checks all that can be checked of it alone. Digests must have `digest_len` bytes,
/// if that is known. Returns its length without the newline. `None`: it is written in another way,
/// or is no entry, or is malformed; [`parse`] finds out which.
pub(super) fn parse_usual(
    text: &[u8],
    digest_len: Option<usize>,
    common: &mut Common,
    entry: &mut Entry,
) -> Option<usize> {
    let len = canonical::parse_into(text, digest_len, common, entry)?;
    entry.check().is_ok().then_some(len)
}

/// Parses any line.
pub(super) fn parse(
    line: &[u8],
    digest_len: Option<usize>,
) -> Result<ParsedEntry, (ErrorKind, String)> {
    let parsed = parse_general(line, digest_len)?;
    if let ParsedEntry::Entry(entry) = &parsed {
        check_path(&entry.path).map_err(|why| (ErrorKind::UnsafePath, why.to_owned()))?;
        entry
            .check()
            .map_err(|why| (ErrorKind::Malformed, why.to_owned()))?;
    }
    Ok(parsed)
}

/// Parses a line with the fields in any order and any spelling that JSON permits.
pub(super) fn parse_general(
    line: &[u8],
    digest_len: Option<usize>,
) -> Result<ParsedEntry, (ErrorKind, String)> {
    let malformed = |why: &str| (ErrorKind::Malformed, why.to_owned());
    let raw: RawFields<'_> = serde_json::from_slice(line)
        .map_err(|e| (ErrorKind::Malformed, format!("not valid JSON: {e}")))?;
    match raw.r#type.as_ref().map(|text| &*text.0) {
        Some("entry") => {}
        Some("trailer") => return Ok(ParsedEntry::Trailer),
        Some(_) => return Err(malformed("unknown type of line")),
        None => return Err(malformed("no type")),
    }
    entry(raw, digest_len)
        .map(ParsedEntry::Entry)
        .map_err(malformed)
}

fn entry(raw: RawFields<'_>, digest_len: Option<usize>) -> Result<Entry, &'static str> {
    let path = raw.path.ok_or("no path")?.0;
    let path =
        untwin(path, raw.path_b64.as_ref().map(|t| &*t.0)).ok_or("path and path_b64 differ")?;
    let kind = raw
        .kind
        .and_then(|text| Kind::from_name(&text.0))
        .ok_or("unknown kind")?;
    let digest = raw
        .digest
        .map(|Text(hex)| digest(&hex, digest_len))
        .transpose()?;
    let target = match (raw.target, raw.target_b64) {
        (Some(Text(text)), twin) => {
            Some(untwin(text, twin.as_ref().map(|t| &*t.0)).ok_or("target and target_b64 differ")?)
        }
        (None, None) => None,
        (None, Some(_)) => return Err("target_b64 without target"),
    };
    let verified_at = raw
        .verified_at
        .map(|Text(text)| time::parse_rfc3339(&text).ok_or("verified_at is not a time"))
        .transpose()?;
    let tried_at = raw
        .tried_at
        .map(|Text(text)| time::parse_rfc3339(&text).ok_or("tried_at is not a time"))
        .transpose()?;
    let found = raw
        .found
        .map(|Text(text)| {
            ContentFault::from_name(&text).ok_or("found is neither damaged nor unreadable")
        })
        .transpose()?;
    let damaged_digest = raw
        .damaged_digest
        .map(|Text(hex)| self::digest(&hex, digest_len))
        .transpose()?;
    let copy_stamp = raw
        .copy_stamp
        .map(|Text(hex)| copy_stamp(&hex).ok_or("copy_stamp is not 32 hexadecimal digits"))
        .transpose()?;
    let mut size_alone = None;
    let meta = match (
        raw.size,
        raw.mode,
        raw.uid,
        raw.gid,
        raw.mtime_ns,
        raw.ctime_ns,
        raw.ino,
        raw.nlink,
    ) {
        (
            Some(size),
            Some(mode),
            Some(uid),
            Some(gid),
            Some(mtime_ns),
            Some(ctime_ns),
            Some(ino),
            Some(nlink),
        ) => Some(Meta {
            size,
            mode,
            uid,
            gid,
            mtime_ns,
            ctime_ns,
            ino,
            nlink,
        }),
        (size, None, None, None, None, None, None, None) => {
            size_alone = size;
            None
        }
        _ => return Err("some metadata missing"),
    };
    let xattrs = xattrs(raw.xattrs, raw.xattrs_b64)?;
    let text = |text: Option<Text<'_>>| text.map(|Text(text)| text.into_owned());
    let mount = match (raw.mount, raw.mount_root, raw.fs_uuid, raw.subvolid) {
        (Some(Text(source)), root, fs_uuid, subvolid) => Some(Box::new(Mounted {
            source: source.into_owned(),
            root: text(root),
            fs_uuid: text(fs_uuid),
            subvolid,
        })),
        (None, None, None, None) => None,
        _ => return Err("something of a mount without mount"),
    };
    let (dev, rdev, error, extra) = (raw.dev, raw.rdev, raw.error, raw.extra);
    Ok(Entry {
        path,
        kind,
        meta,
        size_alone,
        dev,
        mount,
        rdev,
        digest,
        target,
        xattrs,
        verified_at,
        tried_run: raw.tried_run,
        copy_stamp,
        tried_at,
        found,
        damaged_digest,
        unproven: raw.unproven.unwrap_or(false),
        error,
        extra,
    })
}

/// Parses a digest, in lower case only: there is one way to write it.
fn digest(hex: &str, len: Option<usize>) -> Result<Digest, &'static str> {
    let digest = Digest::from_lower_hex(hex.as_bytes()).ok_or("not a digest")?;
    if len.is_some_and(|len| len != digest.as_bytes().len()) {
        return Err("wrong length of digest");
    }
    Ok(digest)
}

fn copy_stamp(hex: &str) -> Option<[u8; COPY_STAMP_LEN]> {
    let bytes = Digest::from_lower_hex(hex.as_bytes())?;
    bytes.as_bytes().try_into().ok()
}

fn xattrs(plain: Option<Pairs>, encoded: Option<Pairs>) -> Result<Option<Xattrs>, &'static str> {
    if plain.is_none() && encoded.is_some() {
        return Err("xattrs_b64 without xattrs");
    }
    let Some(Pairs(plain)) = plain else {
        return Ok(None);
    };
    let wrong = "extended attribute is not base64";
    let mut out = Xattrs::new();
    for (name, value) in plain {
        out.insert(
            name.into_bytes(),
            base64::decode(value.as_bytes()).ok_or(wrong)?,
        );
    }
    for (name, value) in encoded.map(|pairs| pairs.0).unwrap_or_default() {
        let name = base64::decode(name.as_bytes()).ok_or(wrong)?;
        if std::str::from_utf8(&name).is_ok() {
            return Err("name of an extended attribute encoded without need");
        }
        out.insert(name, base64::decode(value.as_bytes()).ok_or(wrong)?);
    }
    Ok(Some(out))
}
