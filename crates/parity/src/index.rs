//! The index of a parity directory: a line for each volume, for people and for what no header can
//! say, which is since when content is gone. If it is lost, it is made again from the headers, and
//! what is gone counts as gone since then.

use std::collections::HashMap;
use std::io::{self, BufRead, Read, Write};
use std::path::Path;

use bc_digest::push_hex;
use bc_fs::dirfd::{self, Access};
use bc_integrity::ManifestFile;
use bc_manifest::time::format_rfc3339;
use bc_walk::job::Error;
use serde::{Deserialize, Serialize};

use crate::file::{DirUse, INDEX, ParityDir};

/// Longest index that is read.
const MOST: u64 = 1 << 30;

/// Line of a volume.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct IndexLine {
    /// Number of the volume.
    pub volume: u64,
    /// Bytes of its contents.
    pub bytes: u64,
    /// Data blocks.
    pub blocks: u64,
    /// Parity blocks.
    pub parity: u64,
    /// Data blocks with content that the manifest no longer lists.
    pub stale: u64,
    /// Time when it was written.
    pub written_at: String,
    /// SHA-256 in the trailer of the manifest that the stale blocks were counted by.
    pub manifest: String,
    /// Content that is gone: numbers of pieces of the header, each with the second since when.
    pub removed: Vec<(u32, i64)>,
}

impl IndexLine {
    /// Returns the time in the form of the index.
    pub(crate) fn time(ns: i64) -> String {
        format_rfc3339(ns)
    }

    /// Returns the digest of a trailer in the form of the index.
    pub(crate) fn trailer(sha256: &[u8; 32]) -> String {
        let mut hex = Vec::new();
        push_hex(&mut hex, sha256);
        String::from_utf8(hex).unwrap_or_default()
    }
}

/// True if the index of a directory was written for another manifest than this, or is lost.
///
/// # Errors
/// If the manifest cannot be read.
pub fn is_stale(dir: &Path, manifest: &ManifestFile) -> Result<bool, Error> {
    let Some(dir) = ParityDir::open(dir, DirUse::Read)? else {
        return Ok(false);
    };
    let mut lines = manifest.lines()?;
    let failed = |error: io::Error| manifest.unreadable(&error);
    // Only the last line is asked for, which has the trailer.
    let mut last = Vec::new();
    loop {
        let chunk = lines.fill_buf().map_err(failed)?;
        let len = chunk.len();
        let Some(end) = chunk.len().checked_sub(1) else {
            break;
        };
        match chunk[..end].iter().rposition(|byte| *byte == b'\n') {
            Some(newline) => last = chunk[newline + 1..].to_vec(),
            None => {
                if last.last() == Some(&b'\n') {
                    last.clear();
                }
                last.extend_from_slice(chunk);
            }
        }
        lines.consume(len);
    }
    let trailer: Option<TrailerLine> = serde_json::from_slice(&last).ok();
    let index = read(&dir);
    let is_of_it = |line: &IndexLine| {
        trailer
            .as_ref()
            .is_some_and(|trailer| trailer.sha256 == line.manifest)
    };
    Ok(index.is_empty() && !dir.volumes()?.is_empty() || !index.values().all(is_of_it))
}

/// What is asked of a trailer.
#[derive(Deserialize)]
struct TrailerLine {
    sha256: String,
}

/// Reads the index; empty if there is none, or it is damaged.
pub(crate) fn read(dir: &ParityDir) -> HashMap<u64, IndexLine> {
    let opened = dirfd::name(INDEX.as_bytes())
        .and_then(|name| dirfd::open_file(dir.fd(), &name, Access::Read));
    let Ok(file) = opened else {
        return HashMap::new();
    };
    let mut text = String::new();
    let read = std::fs::File::from(file)
        .take(MOST)
        .read_to_string(&mut text);
    if read.is_err() {
        return HashMap::new();
    }
    let lines = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    lines.map(|line: IndexLine| (line.volume, line)).collect()
}

/// Writes the index.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn write(dir: &ParityDir, lines: &[IndexLine]) -> Result<(), Error> {
    let path = dir.path().join(INDEX);
    let mut text = Vec::new();
    for line in lines {
        serde_json::to_writer(&mut text, line)
            .map_err(|error| Error::io(&path, "write", &error.into()))?;
        text.push(b'\n');
    }
    let file = dir.create(INDEX)?;
    file.file()
        .write_all(&text)
        .map_err(|error| Error::io(&path, "write", &error))?;
    dir.commit(INDEX, file)
}
