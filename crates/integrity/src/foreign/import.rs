//! `import`: a manifest from the file of another tool. It contains digests and paths, nothing else,
//! and notes that in each entry; an update fills in the rest for files that prove unchanged.

use std::io::{BufRead, Write};

use bc_digest::{Algorithm, Digest};
use bc_manifest::integrity::{Entry, Header, Kind, Trailer, Writer, check_path, path_order};
use bc_manifest::time::format_rfc3339;
use bc_manifest::{Failure, Item, Options, Reader, hashdeep};
use bc_walk::Entries;
use bc_walk::job::{Error, ErrorKind, path_of};

use crate::entry_ref::IMPORTED;
use crate::error::manifest_write_failed;
use crate::options::TreeOptions;

/// Options of an import.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ImportOptions<'a> {
    /// The file's name, for messages.
    pub name: &'a [u8],
    /// Algorithm of the digests, or the one of several to take. By default the one that the lines
    /// name, or that the digests' length stands for.
    pub algorithm: Option<Algorithm>,
    /// Directory that is taken off the front of paths, by whole components; a path outside of it is
    /// an error, and so is one that is not relative then.
    pub strip_prefix: &'a [u8],
    /// Time for the header, in nanoseconds since 1970.
    pub created_at: i64,
    /// Bytes of memory that the lines may take; `None` for any number.
    pub most_memory: Option<u64>,
}

impl<'a> ImportOptions<'a> {
    /// Makes options for a file of this name, at this time in nanoseconds since 1970.
    pub fn new(name: &'a [u8], created_at: i64) -> ImportOptions<'a> {
        ImportOptions {
            name,
            algorithm: None,
            strip_prefix: b"",
            created_at,
            most_memory: None,
        }
    }
}

bc_fs::setters! {
    ImportOptions<'a>:
    algorithm: Option<Algorithm>,
    strip_prefix: &'a [u8],
    most_memory: Option<u64>,
}

/// Reads a GNU, BSD-tagged or hashdeep file (recognised by its content) and writes a manifest to
/// `out`; returns `out` flushed. Holds all paths and digests in two arrays: such files are not
/// sorted.
///
/// # Errors
/// Fails on a line that cannot be parsed, a path that leaves the root, two digests for one path, an
/// algorithm that cannot be determined, lines that take more memory than they may, a failed read or
/// write.
pub fn import<W: Write>(
    what: &ImportOptions<'_>,
    mut input: impl BufRead,
    out: W,
) -> Result<(W, Trailer), Error> {
    let failed = |error: std::io::Error| Error::io(&path_of(what.name), "read", &error);
    let is_hashdeep = hashdeep::begins(input.fill_buf().map_err(failed)?);
    let (algorithm, mut lines) = match is_hashdeep {
        true => columns(what, input)?,
        false => checksums(what, input)?,
    };
    if let Some((needed, most)) = lines.needed_beyond().zip(what.most_memory) {
        let text = format!(
            "memory budget: {most} bytes are too few for its lines; at least {needed} are needed"
        );
        return Err(Error::at(ErrorKind::Refused, &path_of(what.name), text));
    }
    lines.sort();
    if let Some(twice) = lines.path_of_two() {
        let path = bc_fs::escape(twice);
        return Err(bad(
            what,
            format!("two different digests or sizes for {path}"),
        ));
    }
    let mut header = Header::new(algorithm.name(), env!("CARGO_PKG_VERSION"));
    header.created_at = Some(format_rfc3339(what.created_at));
    header.options = TreeOptions {
        entries: Entries::Files,
        ..TreeOptions::default()
    }
    .to_json();
    let mut writer = Writer::new(out, &header).map_err(manifest_write_failed)?;
    for PackedLine { path, digest, size } in lines.iter() {
        let mut entry = Entry::new(path.to_vec(), Kind::File);
        (entry.digest, entry.size_alone) = (Digest::from_slice(digest), size);
        let message = match size {
            Some(_) => "the imported file holds no metadata but sizes",
            None => "the imported file holds no metadata",
        };
        entry.error = Some(Failure {
            op: IMPORTED.to_string(),
            errno: None,
            message: message.to_string(),
        });
        writer.write(&entry).map_err(manifest_write_failed)?;
    }
    writer.finish().map_err(manifest_write_failed)
}

fn bad(what: &ImportOptions<'_>, message: impl Into<String>) -> Error {
    Error::at(ErrorKind::Manifest, &path_of(what.name), message)
}

fn at_line(what: &ImportOptions<'_>, line: u64, message: &str) -> Error {
    bad(what, format!("line {line}: {message}"))
}

/// Returns a path as an entry has it.
fn path<'p>(what: &ImportOptions<'_>, line: u64, path: &'p [u8]) -> Result<&'p [u8], Error> {
    let refused = |why: &str| {
        let path = bc_fs::escape(path);
        at_line(what, line, &format!("{why}: {path}"))
    };
    let stripped = match what.strip_prefix {
        b"" => path,
        prefix => strip(path, prefix).ok_or_else(|| {
            let prefix = bc_fs::escape(prefix);
            refused(&format!("not below the prefix {prefix}"))
        })?,
    };
    let mut stripped = stripped;
    while let Some(rest) = stripped.strip_prefix(b"./") {
        stripped = rest;
    }
    if matches!(stripped, b"" | b".") {
        return Err(refused("not the path of a file"));
    }
    check_path(stripped).map_err(|why| match what.strip_prefix {
        b"" => refused(&format!("{why}; give the prefix to strip")),
        _ => refused(why),
    })?;
    Ok(stripped)
}

/// Returns the part of `path` below `prefix`, component by component: both absolute, or both
/// relative.
fn strip<'a>(path: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    if path.starts_with(b"/") != prefix.starts_with(b"/") {
        return None;
    }
    let mut rest = meaningful(path);
    let mut prefix = meaningful(prefix);
    while !prefix.is_empty() {
        let (wanted, next) = component(prefix);
        let (found, below) = component(rest);
        if found != wanted {
            return None;
        }
        (prefix, rest) = (meaningful(next), meaningful(below));
    }
    Some(rest)
}

/// Splits a path into its first component and the rest.
fn component(path: &[u8]) -> (&[u8], &[u8]) {
    let end = path.iter().position(|&byte| byte == b'/');
    path.split_at(end.unwrap_or(path.len()))
}

/// Strips leading slashes and dots that lead nowhere.
fn meaningful(mut path: &[u8]) -> &[u8] {
    loop {
        path = match path {
            [b'/', rest @ ..] | [b'.', b'/', rest @ ..] => rest,
            b"." => b"",
            _ => return path,
        };
    }
}

fn checksums(
    what: &ImportOptions<'_>,
    input: impl BufRead,
) -> Result<(Algorithm, PackedLines), Error> {
    let mut options = Options::default();
    if let Some(algorithm) = what.algorithm {
        options.lengths = vec![algorithm.digest_len()];
    }
    let mut algorithm = what.algorithm;
    let mut lines = PackedLines::within(what.most_memory);
    let mut reader = Reader::new(input, options).map_err(|error| bad(what, error.to_string()))?;
    while let Some(item) = reader
        .read()
        .map_err(|error| bad(what, error.to_string()))?
    {
        let record = match item {
            Item::Record(record) => record,
            Item::Malformed { line, why } => return Err(at_line(what, line, why)),
            _ => continue,
        };
        let Some(digest) = pick(&record.digests, &mut algorithm) else {
            // A line with the digest of another algorithm than the one asked for.
            if what.algorithm.is_some() && record.digests.iter().all(|(name, _)| name.is_some()) {
                continue;
            }
            let why = "which algorithm? name it, or keep to one";
            return Err(at_line(what, record.line, why));
        };
        lines.push(path(what, record.line, &record.path)?, &digest, None);
    }
    match (algorithm, lines.is_empty()) {
        (Some(algorithm), false) => Ok((algorithm, lines)),
        _ => Err(bad(what, "no digest lines")),
    }
}

/// Returns the digest of the algorithm, which the first line determines if the caller did not.
fn pick(
    digests: &[(Option<bc_manifest::Name>, Digest)],
    algorithm: &mut Option<Algorithm>,
) -> Option<Digest> {
    for (name, digest) in digests {
        let named: Option<Algorithm> = match name {
            Some(name) => name.parse().ok(),
            None => match *algorithm {
                Some(algorithm) => Some(algorithm),
                None => by_length(digest.as_bytes().len()),
            },
        };
        let Some(named) = named else { continue };
        if named.digest_len() == digest.as_bytes().len() && *algorithm.get_or_insert(named) == named
        {
            return Some(*digest);
        }
    }
    None
}

/// Returns the algorithm whose digests coreutils' checksum tools write without a tag, by their
/// length.
fn by_length(bytes: usize) -> Option<Algorithm> {
    Some(match bytes {
        16 => Algorithm::Md5,
        20 => Algorithm::Sha1,
        28 => Algorithm::Sha224,
        32 => Algorithm::Sha256,
        48 => Algorithm::Sha384,
        64 => Algorithm::Sha512,
        _ => return None,
    })
}

/// Reads the strongest wanted digest of each line.
fn columns(
    what: &ImportOptions<'_>,
    input: impl BufRead,
) -> Result<(Algorithm, PackedLines), Error> {
    let mut lines = PackedLines::within(what.most_memory);
    let mut reader = hashdeep::HashdeepReader::new(input);
    let refused = |error: &bc_manifest::Error| match error.io_error() {
        Some(error) => Error::io(&path_of(what.name), "read", error),
        None => bad(what, error.to_string()),
    };
    let unknown = |line: u64| at_line(what, line, "no column of a known algorithm");
    while let Some(record) = reader.read().map_err(|error| refused(&error))? {
        let column = strongest(reader.columns(), what.algorithm);
        let (at, _) = column.ok_or_else(|| unknown(record.line))?;
        let digest = &record.digests[at].1;
        lines.push(path(what, record.line, &record.path)?, digest, record.size);
    }
    match strongest(reader.columns(), what.algorithm) {
        Some((_, algorithm)) if !lines.is_empty() => Ok((algorithm, lines)),
        None if !reader.columns().is_empty() => Err(unknown(reader.line())),
        _ => Err(bad(what, "no digest lines")),
    }
}

/// Returns the column to take and its algorithm.
fn strongest(
    columns: &[bc_manifest::Name],
    wanted: Option<Algorithm>,
) -> Option<(usize, Algorithm)> {
    let known = |name: &str| columns.iter().position(|column| column == name);
    ["sha256", "sha1", "md5"]
        .into_iter()
        .filter(|name| wanted.is_none_or(|wanted| wanted.name() == *name))
        .find_map(|name| Some((known(name)?, name.parse().ok()?)))
}

/// One line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct PackedLine<'a> {
    pub(super) path: &'a [u8],
    pub(super) digest: &'a [u8],
    /// Size in bytes, if the file contains it.
    pub(super) size: Option<u64>,
}

/// Lines, as far as they fit in the memory that they may take.
#[derive(Default)]
pub(super) struct PackedLines {
    /// Bytes that they may take; `None` for any number.
    most: Option<u64>,
    /// Bytes that all lines take, also those that did not fit.
    needed: u64,
    /// For each line the length of its path in 4 bytes, that of its digest in one, with [`SIZED`]
    /// if it has a size, which is in 8 bytes; then path and digest.
    packed: Vec<u8>,
    /// Offset at which each line begins.
    starts: Vec<u64>,
}

const SIZED: u8 = 0x80;

/// Bytes before the path.
const HEAD: usize = 13;

/// Bytes of a line beside path and digest, in both arrays.
const LINE: usize = HEAD + size_of::<u64>();

impl PackedLines {
    /// Makes an empty list that may take `most` bytes.
    pub(super) fn within(most: Option<u64>) -> PackedLines {
        PackedLines {
            most,
            ..PackedLines::default()
        }
    }

    /// Returns the bytes that the lines need, if they may not take as many: then there are none.
    pub(super) fn needed_beyond(&self) -> Option<u64> {
        self.most
            .filter(|most| self.needed > *most)
            .map(|_| self.needed)
    }

    /// Adds a line. Paths are shorter than 4 GiB: lines are.
    pub(super) fn push(&mut self, path: &[u8], digest: &Digest, size: Option<u64>) {
        let digest = digest.as_bytes();
        self.needed += (2 * (LINE + path.len() + digest.len())) as u64;
        if self.needed_beyond().is_some() {
            (self.packed, self.starts) = Default::default();
            return;
        }
        self.starts.push(self.packed.len() as u64);
        self.packed
            .extend_from_slice(&(path.len() as u32).to_le_bytes());
        // At most 64.
        let sized = if size.is_some() { SIZED } else { 0 };
        self.packed.push(digest.len() as u8 | sized);
        self.packed
            .extend_from_slice(&size.unwrap_or(0).to_le_bytes());
        self.packed.extend_from_slice(path);
        self.packed.extend_from_slice(digest);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.needed == 0
    }

    fn at(packed: &[u8], start: u64) -> PackedLine<'_> {
        let line = &packed[start as usize..];
        let (mut len, mut size) = ([0; 4], [0; 8]);
        len.copy_from_slice(&line[..4]);
        size.copy_from_slice(&line[5..HEAD]);
        let (path, rest) = line[HEAD..].split_at(u32::from_le_bytes(len) as usize);
        PackedLine {
            path,
            digest: &rest[..usize::from(line[4] & !SIZED)],
            size: (line[4] & SIZED != 0).then(|| u64::from_le_bytes(size)),
        }
    }

    /// Sorts the lines by path, each line once.
    pub(super) fn sort(&mut self) {
        let packed = &self.packed;
        let line = |start: &u64| PackedLines::at(packed, *start);
        self.starts.sort_unstable_by(|a, b| {
            let (a, b) = (line(a), line(b));
            let rest = || (a.digest, a.size).cmp(&(b.digest, b.size));
            path_order(a.path, b.path).then_with(rest)
        });
        self.starts.dedup_by(|a, b| line(a) == line(b));
    }

    /// Returns a path that two lines have, once they are in order.
    pub(super) fn path_of_two(&self) -> Option<&[u8]> {
        let mut neighbours = self.iter().zip(self.iter().skip(1));
        let twice = neighbours.find(|(line, next)| line.path == next.path);
        twice.map(|(line, _)| line.path)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = PackedLine<'_>> {
        let line = |start: &u64| PackedLines::at(&self.packed, *start);
        self.starts.iter().map(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_order_and_each_once() {
        let digest = |byte| Digest::from_slice(&[byte; 32]).unwrap();
        let all = [
            (&b"b"[..], digest(1), None),
            (b"a/\xff", digest(2), Some(0)),
            (b"b", digest(1), None),
            (b".", digest(3), Some(u64::MAX)),
            (b"a", Digest::from_slice(&[4; 64]).unwrap(), Some(7)),
        ];
        let mut lines = PackedLines::default();
        assert!(lines.is_empty());
        for (path, digest, size) in &all {
            lines.push(path, digest, *size);
        }
        lines.sort();
        let found: Vec<PackedLine<'_>> = lines.iter().collect();
        let expected = [3, 4, 1, 0].map(|at: usize| PackedLine {
            path: all[at].0,
            digest: all[at].1.as_bytes(),
            size: all[at].2,
        });
        assert_eq!(found, expected);
        assert_eq!(lines.path_of_two(), None);
        lines.push(b"a", &digest(4), None);
        lines.sort();
        assert_eq!(lines.path_of_two(), Some(&b"a"[..]));
    }
}
