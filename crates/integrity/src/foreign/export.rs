//! `export`: a manifest in the format of another tool.

use std::io::Write;

use bc_fs::PathError;
use bc_manifest::integrity::{Entry, Kind, ROOT};
use bc_manifest::time::is_beyond;
use bc_manifest::{End, gnu};
use bc_walk::Entries;
use bc_walk::job::{Error, ErrorKind, path_of};

use crate::error::write_failed;
use crate::input::stream::Prefetch;
use crate::input::{ManifestFile, Trust};
use crate::place::tree_options;

/// Formats of other tools.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Foreign {
    /// `sha256sum -c` and its kin, in the root.
    Gnu,
    /// `hashdeep -r -l -a -k FILE .`, in the root.
    Hashdeep,
    /// `mtree -p ROOT -f FILE` (that of NetBSD).
    Mtree,
}

impl Foreign {
    /// All variants.
    pub const ALL: [Foreign; 3] = [Foreign::Gnu, Foreign::Hashdeep, Foreign::Mtree];

    /// Returns `gnu`, `hashdeep` or `mtree`.
    pub const fn name(self) -> &'static str {
        match self {
            Foreign::Gnu => "gnu",
            Foreign::Hashdeep => "hashdeep",
            Foreign::Mtree => "mtree",
        }
    }
}

/// Result of an export.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Exported {
    /// Lines for entries.
    pub entries: u64,
    /// Files without a digest: left out where the format has nothing else.
    pub without_digest: u64,
    /// Files whose path or fields cannot be written in the format.
    pub inexpressible: u64,
    /// Parts of a damaged manifest that were skipped.
    pub problems: Vec<PathError>,
}

/// Writes a manifest in another tool's format; returns `out` unflushed. Paths that cannot be
/// written in the format go to `inexpressible`. Holds one entry at a time.
///
/// # Errors
/// Fails if the manifest is damaged, if the tool does not know the algorithm, or if a write fails.
pub fn export<W: Write>(
    manifest: &ManifestFile,
    format: Foreign,
    trust: Trust,
    mut out: W,
    inexpressible: &mut dyn FnMut(&[u8]),
) -> Result<(W, Exported), Error> {
    let mut entries = manifest.stream(trust, Prefetch::Off)?;
    let header = entries.header();
    let algorithm = header.algorithm.clone();
    let known: &[&str] = match format {
        Foreign::Gnu => &[],
        Foreign::Hashdeep => &["md5", "sha1", "sha256"],
        Foreign::Mtree => &["md5", "sha1", "sha256", "sha384", "sha512"],
    };
    if !known.is_empty() && !known.contains(&algorithm.as_str()) {
        let message = format!("the format has no {algorithm}, only {}", known.join(", "));
        return Err(Error::at(
            ErrorKind::Usage,
            &path_of(manifest.name()),
            message,
        ));
    }
    let parents = match tree_options(header, trust)?.entries {
        Entries::Files => Parents::Missing,
        Entries::All => Parents::Listed,
    };
    let mut writer = ExportLines {
        algorithm,
        parents,
        last_dir: Vec::new(),
        done: Exported::default(),
    };
    let mut line = Vec::new();
    writer.begin(format, &mut line);
    loop {
        out.write_all(&line).map_err(|error| write_failed(&error))?;
        line.clear();
        match entries.take()? {
            Some(entry) => {
                if writer.entry(format, entry, &mut line) == Completeness::No {
                    inexpressible(&entry.path);
                }
            }
            None => break,
        }
    }
    writer.done.problems = manifest.skipped(entries.problems());
    Ok((out, writer.done))
}

/// Presence of directories in the manifest.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Parents {
    Listed,
    Missing,
}

/// Completeness of an entry's lines.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Completeness {
    Yes,
    No,
}

struct ExportLines {
    algorithm: String,
    parents: Parents,
    /// With a closing slash; empty for the root.
    last_dir: Vec<u8>,
    done: Exported,
}

impl ExportLines {
    fn begin(&self, format: Foreign, line: &mut Vec<u8>) {
        match format {
            Foreign::Gnu => {}
            Foreign::Hashdeep => {
                line.extend_from_slice(b"%%%% HASHDEEP-1.0\n%%%% size,");
                line.extend_from_slice(self.algorithm.as_bytes());
                line.extend_from_slice(b",filename\n");
            }
            Foreign::Mtree => {
                line.extend_from_slice(b"#mtree\n");
                if self.parents == Parents::Missing {
                    line.extend_from_slice(b". type=dir\n");
                }
            }
        }
    }

    fn entry(&mut self, format: Foreign, entry: &Entry, line: &mut Vec<u8>) -> Completeness {
        if entry.kind == Kind::File && entry.digest.is_none() {
            self.done.without_digest += 1;
        }
        match (format, &entry.digest) {
            (Foreign::Mtree, _) => self.mtree(entry, line),
            (_, None) => return Completeness::Yes,
            (Foreign::Gnu, Some(digest)) => {
                // A bare dash would be read as standard input.
                let path = if entry.path == b"-" {
                    b"./-"
                } else {
                    &entry.path[..]
                };
                gnu::write_line(line, digest.as_bytes(), path, End::Newline);
            }
            (Foreign::Hashdeep, Some(digest)) => {
                // It ends paths at the newline, with or without a carriage return before it, and
                // knows no escapes.
                let breaks = entry.path.contains(&b'\n') || entry.path.ends_with(b"\r");
                let (Some(size), false) = (entry.size(), breaks) else {
                    self.done.inexpressible += 1;
                    return Completeness::No;
                };
                line.extend_from_slice(format!("{size},{digest},./").as_bytes());
                line.extend_from_slice(&entry.path);
                line.push(b'\n');
            }
        }
        self.done.entries += 1;
        Completeness::Yes
    }

    /// Full paths with octal escapes, which mtree undoes before it looks for
    /// wildcards. Sizes and links of directories belong to the file system.
    fn mtree(&mut self, entry: &Entry, line: &mut Vec<u8>) {
        if self.parents == Parents::Missing {
            self.declare_parents(&entry.path, line);
        }
        mtree_path(line, &entry.path);
        let mut word = |key: &str, value: &str| {
            line.push(b' ');
            line.extend_from_slice(key.as_bytes());
            line.push(b'=');
            line.extend_from_slice(value.as_bytes());
        };
        let is_link = entry.kind == Kind::Symlink;
        word("type", if is_link { "link" } else { entry.kind.name() });
        if let (Kind::File, Some(size)) = (entry.kind, entry.size()) {
            word("size", &size.to_string());
        }
        if let Some(meta) = &entry.meta {
            word("uid", &meta.uid.to_string());
            word("gid", &meta.gid.to_string());
            word("mode", &format!("{:04o}", meta.mode & 0o7777));
            if entry.kind != Kind::Dir {
                word("nlink", &meta.nlink.to_string());
            }
            // The stand-in for a time that no manifest can hold is not the file's.
            if !is_beyond(meta.mtime_ns) {
                let (seconds, fraction) = (
                    meta.mtime_ns.div_euclid(1_000_000_000),
                    meta.mtime_ns.rem_euclid(1_000_000_000),
                );
                word("time", &format!("{seconds}.{fraction:09}"));
            }
        }
        if let Some(target) = &entry.target {
            let mut escaped = Vec::new();
            octal(&mut escaped, target);
            // Only ASCII comes out.
            word("link", &String::from_utf8_lossy(&escaped));
        }
        if let Some(digest) = &entry.digest {
            word(&self.algorithm, &digest.to_string());
        }
        line.push(b'\n');
    }

    /// mtree wants every directory above a path declared. More than once is
    /// fine, so only the one before is remembered.
    fn declare_parents(&mut self, path: &[u8], line: &mut Vec<u8>) {
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        for (slash, _) in slashes {
            if !self.last_dir.starts_with(&path[..=slash]) {
                mtree_path(line, &path[..slash]);
                line.extend_from_slice(b" type=dir\n");
            }
        }
        let end = path
            .iter()
            .rposition(|&byte| byte == b'/')
            .map_or(0, |slash| slash + 1);
        self.last_dir.clear();
        self.last_dir.extend_from_slice(&path[..end]);
    }
}

fn mtree_path(line: &mut Vec<u8>, path: &[u8]) {
    if path != ROOT {
        line.extend_from_slice(b"./");
    }
    octal(line, path);
}

/// Escapes bytes as vis(3) does with octal digits, for everything that could have a meaning.
fn octal(out: &mut Vec<u8>, bytes: &[u8]) {
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"/._-+,:@%".contains(&byte) {
            out.push(byte);
        } else {
            out.extend_from_slice(format!("\\{byte:03o}").as_bytes());
        }
    }
}
