//! One entry of the tree: its path, its place among the others, and its line.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use bc_digest::{Digest, push_hex};
use serde_json::{Map, Value};

use crate::json::{
    push_base64, push_bytes, push_extra, push_failure, push_field, push_i64, push_key, push_str,
};
use crate::record::Failure;
use crate::time;

/// The path of the root's own entry.
pub const ROOT: &[u8] = b".";

/// Returns the order of entries: the root first, then bytewise by the whole path.
pub fn path_order(a: &[u8], b: &[u8]) -> Ordering {
    (a != ROOT, a).cmp(&(b != ROOT, b))
}

/// Accepts a path that stays below the root and has one spelling only.
///
/// # Errors
/// Description of the mistake.
pub fn check_path(path: &[u8]) -> Result<(), &'static str> {
    if path == ROOT || is_plain(path) {
        return Ok(());
    }
    if path.first() == Some(&b'/') {
        return Err("absolute path");
    }
    if path.contains(&0) {
        return Err("NUL in the path");
    }
    for component in path.split(|&b| b == b'/') {
        match component {
            b"" => return Err("empty component in the path"),
            b"." | b".." => return Err("`.` or `..` in the path"),
            _ => {}
        }
    }
    Ok(())
}

/// True if nothing in this path needs a closer look. Most are like that, and without early exits
/// the loops are a few vector instructions.
fn is_plain(path: &[u8]) -> bool {
    let suspect = |&byte: &u8| byte == b'/' || byte == b'.';
    if path.first().is_none_or(suspect) || path.last() == Some(&b'/') {
        return false;
    }
    let zero = path.iter().fold(false, |any, &byte| any | (byte == 0));
    let pairs = path.iter().zip(&path[1..]);
    !pairs.fold(zero, |any, (&byte, next)| {
        any | ((byte == b'/') & suspect(next))
    })
}

/// Extended attributes: values by name, both raw bytes.
pub type Xattrs = BTreeMap<Vec<u8>, Vec<u8>>;

/// Bytes of [`Entry::copy_stamp`].
pub const COPY_STAMP_LEN: usize = 16;

/// Kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A block device.
    Block,
    /// A character device.
    Char,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 7] = [
        Kind::File,
        Kind::Dir,
        Kind::Symlink,
        Kind::Fifo,
        Kind::Socket,
        Kind::Block,
        Kind::Char,
    ];

    /// Returns its name in the manifest.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::File => "file",
            Kind::Dir => "dir",
            Kind::Symlink => "symlink",
            Kind::Fifo => "fifo",
            Kind::Socket => "socket",
            Kind::Block => "block",
            Kind::Char => "char",
        }
    }

    /// Returns the kind of this name.
    pub(crate) fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Metadata from `stat`; all of it or nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// Size in bytes.
    pub size: u64,
    /// `st_mode`, with the type bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Last modification, in nanoseconds since 1970; may be negative.
    pub mtime_ns: i64,
    /// Last change of the inode, in nanoseconds since 1970; may be negative.
    pub ctime_ns: i64,
    /// Inode number.
    pub ino: u64,
    /// Number of names.
    pub nlink: u64,
}

/// The fields of a line; any other is kept in [`Entry::extra`].
const FIELDS: &[&str] = &[
    "type",
    "path",
    "path_b64",
    "kind",
    "size",
    "mode",
    "uid",
    "gid",
    "mtime_ns",
    "ctime_ns",
    "ino",
    "nlink",
    "dev",
    "mount",
    "mount_root",
    "fs_uuid",
    "subvolid",
    "rdev",
    "digest",
    "target",
    "target_b64",
    "xattrs",
    "xattrs_b64",
    "verified_at",
    "tried_run",
    "copy_stamp",
    "tried_at",
    "found",
    "damaged_digest",
    "unproven",
    "error",
];

/// File system mounted on a directory or a file. Two are one if file system and root are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mounted {
    /// The mount's source as the kernel names it, empty where that is not known: `/dev/sda2`,
    /// `server:/export`, or a name of no meaning.
    pub source: String,
    /// Mounted part of the file system, as a path within it: `/` for all of it. `None` where the
    /// kernel does not report it; manifests of earlier versions do not have it.
    pub root: Option<String>,
    /// UUID of the file system.
    pub fs_uuid: Option<String>,
    /// Number of the subvolume, of Btrfs.
    pub subvolid: Option<u64>,
}

/// Key of an entry that an update kept though it could not see the file: since when, as the first
/// update that missed it says. Such a file is no copy of anything.
pub const UNSEEN_AT: &str = "unseen_at";

/// Fault that the last attempt at a file's content met in place of the recorded digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ContentFault {
    /// Other content behind the same size and mtime.
    Damaged,
    /// Unreadable content.
    Unreadable,
}

impl ContentFault {
    /// Returns its name in the manifest.
    pub const fn name(self) -> &'static str {
        match self {
            ContentFault::Damaged => "damaged",
            ContentFault::Unreadable => "unreadable",
        }
    }

    /// Returns the fault of this name.
    pub(crate) fn from_name(name: &str) -> Option<ContentFault> {
        [ContentFault::Damaged, ContentFault::Unreadable]
            .into_iter()
            .find(|found| found.name() == name)
    }
}

/// One entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Relative to the root, raw bytes; the root itself is `.`.
    pub path: Vec<u8>,
    /// Kind of the file.
    pub kind: Kind,
    /// Its metadata; `None` if they could not be read (there is an error then).
    pub meta: Option<Meta>,
    /// Size in bytes where that is all that is known of the metadata, as of a list of another tool
    /// that has sizes.
    pub size_alone: Option<u64>,
    /// The file system that the entry is on, as the index of its first appearance in the manifest
    /// (the root's is 0): numbers of devices change from boot to boot. `None` is the root's too,
    /// which is how it is written; earlier versions wrote 0.
    pub dev: Option<u32>,
    /// Mounted file system, if a file system, a part of one, or a single file is mounted here.
    pub mount: Option<Box<Mounted>>,
    /// The device that a block or character device stands for (`makedev` encoding).
    pub rdev: Option<u64>,
    /// The content's digest, of the header's algorithm; files only.
    pub digest: Option<Digest>,
    /// Target of a symbolic link, raw bytes.
    pub target: Option<Vec<u8>>,
    /// Extended attributes by raw name, if they were asked for.
    pub xattrs: Option<Xattrs>,
    /// Time when the content was last read and found to have the digest, in nanoseconds since 1970.
    pub verified_at: Option<i64>,
    /// Run that tried the content last, with any result: updates of a manifest are counted from 1,
    /// since a clock may be wrong. `None` if none did, or an earlier version.
    pub tried_run: Option<u32>,
    /// Stamp of a file that a copy has made: the state that the copy found at both ends, in a form
    /// that only a later copy can interpret. While the ends still have it, the file is not copied
    /// again.
    pub copy_stamp: Option<[u8; COPY_STAMP_LEN]>,
    /// Time when the content was last tried without finding the digest, in nanoseconds since 1970;
    /// absent as soon as it is found again.
    pub tried_at: Option<i64>,
    /// Result of that attempt.
    pub found: Option<ContentFault>,
    /// Digest of the content that was found in place of the recorded one: it stays damaged under
    /// any name and time. Earlier versions did not record it.
    pub damaged_digest: Option<Digest>,
    /// True if nothing proves that the file is the one that the digest was recorded of: inode
    /// number, size and mtime fit, and it may be a new file all the same.
    pub unproven: bool,
    /// Part that could not be read, and why.
    pub error: Option<Failure>,
    /// Fields that this version does not know, kept as they are.
    pub extra: Map<String, Value>,
}

impl Entry {
    /// Makes an entry with nothing but path and kind.
    pub fn new(path: Vec<u8>, kind: Kind) -> Entry {
        Entry {
            path,
            kind,
            meta: None,
            size_alone: None,
            dev: None,
            mount: None,
            rdev: None,
            digest: None,
            target: None,
            xattrs: None,
            verified_at: None,
            tried_run: None,
            copy_stamp: None,
            tried_at: None,
            found: None,
            damaged_digest: None,
            unproven: false,
            error: None,
            extra: Map::new(),
        }
    }

    /// Returns the size in bytes, if it is known.
    pub fn size(&self) -> Option<u64> {
        self.meta.map(|meta| meta.size).or(self.size_alone)
    }

    /// Checks the format's rules for an entry besides its path, for writer and reader alike.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        let failed = self.error.is_some();
        if self.meta.is_none() && !failed {
            return Err("entry without metadata or error");
        }
        if (self.kind == Kind::File) != self.digest.is_some()
            && !(self.kind == Kind::File && failed)
        {
            return Err(match self.kind {
                Kind::File => "file without digest or error",
                _ => "digest of what is not a file",
            });
        }
        if self.extra.keys().any(|key| FIELDS.contains(&key.as_str())) {
            return Err("extra field with the name of a known one");
        }
        match (self.kind, &self.target) {
            (Kind::Symlink, None) if !failed => Err("symbolic link without target or error"),
            (Kind::Symlink, Some(target)) if target.contains(&0) => Err("NUL in the target"),
            (Kind::Symlink, _) | (_, None) => Ok(()),
            (_, Some(_)) => Err("target of what is not a symbolic link"),
        }
    }

    /// Appends the entry's line.
    pub(super) fn write_line(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"type\":\"entry\"");
        push_bytes(out, "path", &self.path);
        out.extend_from_slice(b",\"kind\":\"");
        out.extend_from_slice(self.kind.name().as_bytes());
        out.push(b'"');
        if let Some(meta) = &self.meta {
            push_field(out, "size", meta.size);
            push_field(out, "mode", meta.mode.into());
            push_field(out, "uid", meta.uid.into());
            push_field(out, "gid", meta.gid.into());
            push_key(out, "mtime_ns");
            push_i64(out, meta.mtime_ns);
            push_key(out, "ctime_ns");
            push_i64(out, meta.ctime_ns);
            push_field(out, "ino", meta.ino);
            push_field(out, "nlink", meta.nlink);
        } else if let Some(size) = self.size_alone {
            push_field(out, "size", size);
        }
        if let Some(dev) = self.dev {
            push_field(out, "dev", dev.into());
        }
        if let Some(mount) = &self.mount {
            mount.write(out);
        }
        if let Some(rdev) = self.rdev {
            push_field(out, "rdev", rdev);
        }
        if let Some(digest) = &self.digest {
            out.extend_from_slice(b",\"digest\":\"");
            push_hex(out, digest.as_bytes());
            out.push(b'"');
        }
        if let Some(target) = &self.target {
            push_bytes(out, "target", target);
        }
        if let Some(xattrs) = &self.xattrs {
            push_xattrs(out, xattrs);
        }
        let push_time = |out: &mut Vec<u8>, key, time: Option<i64>| {
            if let Some(time) = time {
                push_key(out, key);
                push_str(out, &time::format_rfc3339(time));
            }
        };
        push_time(out, "verified_at", self.verified_at);
        if let Some(run) = self.tried_run {
            push_field(out, "tried_run", run.into());
        }
        if let Some(stamp) = &self.copy_stamp {
            out.extend_from_slice(b",\"copy_stamp\":\"");
            push_hex(out, stamp);
            out.push(b'"');
        }
        push_time(out, "tried_at", self.tried_at);
        if let Some(found) = self.found {
            push_key(out, "found");
            push_str(out, found.name());
        }
        if let Some(digest) = &self.damaged_digest {
            out.extend_from_slice(b",\"damaged_digest\":\"");
            push_hex(out, digest.as_bytes());
            out.push(b'"');
        }
        if self.unproven {
            out.extend_from_slice(b",\"unproven\":true");
        }
        if let Some(error) = &self.error {
            push_failure(out, error);
        }
        push_extra(out, &self.extra);
        out.extend_from_slice(b"}\n");
    }
}

impl Mounted {
    fn write(&self, out: &mut Vec<u8>) {
        for (key, text) in [
            ("mount", Some(&self.source)),
            ("mount_root", self.root.as_ref()),
            ("fs_uuid", self.fs_uuid.as_ref()),
        ] {
            if let Some(text) = text {
                push_key(out, key);
                push_str(out, text);
            }
        }
        if let Some(id) = self.subvolid {
            push_field(out, "subvolid", id);
        }
    }
}

/// Writes extended attributes; names that are not UTF-8 go to a second object, `xattrs_b64`, with
/// encoded names.
fn push_xattrs(out: &mut Vec<u8>, xattrs: &Xattrs) {
    push_key(out, "xattrs");
    let mut separator = b'{';
    for (name, value) in xattrs {
        if let Ok(name) = std::str::from_utf8(name) {
            out.push(separator);
            push_str(out, name);
            out.push(b':');
            push_base64(out, value);
            separator = b',';
        }
    }
    out.extend_from_slice(if separator == b'{' { b"{}" } else { b"}" });
    let mut separator = b'{';
    for (name, value) in xattrs
        .iter()
        .filter(|(name, _)| std::str::from_utf8(name).is_err())
    {
        if separator == b'{' {
            push_key(out, "xattrs_b64");
        }
        out.push(separator);
        push_base64(out, name);
        out.push(b':');
        push_base64(out, value);
        separator = b',';
    }
    if separator == b',' {
        out.push(b'}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_comes_first() {
        let mut paths = [
            &b"a/b"[..],
            b"a-",
            b".",
            b"a",
            b"-",
            b"a.b",
            b"\xff",
            b"...",
            b"A",
        ];
        paths.sort_by(|a, b| path_order(a, b));
        assert_eq!(
            paths,
            [
                &b"."[..],
                b"-",
                b"...",
                b"A",
                b"a",
                b"a-",
                b"a.b",
                b"a/b",
                b"\xff"
            ]
        );
    }

    #[test]
    fn refuses_what_leaves_the_root() {
        for bad in [
            &b""[..],
            b"/",
            b"/a",
            b"..",
            b"a/..",
            b"../a",
            b"a/../b",
            b"./a",
            b"a/.",
            b"a//b",
            b"a/",
            b"a\0",
        ] {
            assert!(check_path(bad).is_err(), "{}", bad.escape_ascii());
        }
        for good in [&b"."[..], b"a", b"...", b"..a/.b", b"a\\b", b"\xff\n"] {
            assert!(check_path(good).is_ok(), "{}", good.escape_ascii());
        }
    }
}
