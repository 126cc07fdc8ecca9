//! Lines of checksums for `b3sum -c` and `xxhsum -c`, read by the reader of `bc hash check`.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::ffi::OsStrExt;

use bc_digest::{Algorithm, Digest};
use bc_manifest::{Item, Options, Reader, Separator};

use super::family::Sum;
use super::order::FileJob;
use super::stdio;

/// Jobs from a file of lines.
#[derive(Debug, Default)]
pub struct Listed {
    /// The files, in the order of the lines.
    pub jobs: Vec<FileJob>,
    /// The digest that each should have, and the line's number.
    pub expected: Vec<(Digest, u64)>,
    /// Improper lines: how many files come before each, and its number.
    pub improper: Vec<(usize, u64)>,
}

/// Meaning of a NUL in a line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Nul {
    /// It stays in the name, where no proper line has one.
    Kept,
    /// The line's end, as in C.
    Ends,
}

/// Reader that leaves out the text after a NUL in a line.
struct UpToNul<R> {
    input: R,
    is_over: bool,
}

impl<R: Read> Read for UpToNul<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.input.read(buffer)?;
            let mut kept = 0;
            for at in 0..count {
                let byte = buffer[at];
                self.is_over = byte != b'\n' && (self.is_over || byte == 0);
                if !self.is_over {
                    buffer[kept] = byte;
                    kept += 1;
                }
            }
            if kept > 0 || count == 0 {
                return Ok(kept);
            }
        }
    }
}

/// Reads all lines of a file, or of standard input. `plain` says which algorithm an untagged
/// digest of so many bytes is of, `tagged` which tags are taken.
pub fn read(
    path: &[u8],
    nul: Nul,
    plain: fn(usize) -> Option<Algorithm>,
    tagged: fn(Algorithm) -> bool,
) -> io::Result<Listed> {
    let file = match path {
        b"-" => stdio::stdin()?,
        _ => File::open(OsStr::from_bytes(path))?,
    };
    let options = Options::default()
        .separator(Separator::Newline)
        .lengths((1..=64).filter(|bytes| plain(*bytes).is_some()).collect());
    let failed = |error: bc_manifest::Error| match error.io_error() {
        Some(error) => error
            .raw_os_error()
            .map_or(error.kind().into(), io::Error::from_raw_os_error),
        None => io::Error::other(error.to_string()),
    };
    let file: Box<dyn Read> = match nul {
        Nul::Kept => Box::new(file),
        Nul::Ends => Box::new(UpToNul {
            input: file,
            is_over: false,
        }),
    };
    let mut reader = Reader::new(BufReader::new(file), options).map_err(failed)?;
    let mut listed = Listed::default();
    while let Some(item) = reader.read().map_err(failed)? {
        let (line, record) = match item {
            Item::Record(record) => (record.line, Some(record)),
            Item::Malformed { line, .. } => (line, None),
            _ => continue,
        };
        let wanted = record.and_then(|record| {
            let (name, digest) = record.digests.first()?;
            let digest = *digest;
            let algorithm = match name {
                Some(name) => name.parse().ok().filter(|named| tagged(*named))?,
                None => plain(digest.as_bytes().len())?,
            };
            Some((record.path, algorithm, digest))
        });
        match wanted {
            Some((path, algorithm, digest)) => {
                let sum = Sum::Of(algorithm);
                listed.jobs.push(FileJob { path, sum });
                listed.expected.push((digest, line));
            }
            None => listed.improper.push((listed.jobs.len(), line)),
        }
    }
    Ok(listed)
}
