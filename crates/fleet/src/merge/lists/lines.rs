//! The lines of one list, each with its place in the order of all.

use std::io::{self, BufRead, Read};

use bc_manifest::json::either_path;
use bc_manifest::jsonl::Summary;
use bc_manifest::{Failure, MAX_LINE};
use bc_walk::job::Error;
use serde::Deserialize;

use bc_integrity::{LineInput, ManifestFile};

/// Kinds of lines, in their order.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum LineKind {
    File,
    Error,
}

/// Sort key of a line.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct LineKey {
    pub(super) kind: LineKind,
    pub(super) path: Vec<u8>,
    operation: String,
}

/// A list and its current line.
pub(super) struct ListLines<'a> {
    file: &'a ManifestFile,
    input: LineInput,
    pub(super) line: Vec<u8>,
    pub(super) key: LineKey,
    /// Why that could not be read, of a line of an error.
    reason: (Option<i32>, String),
    /// Files with digests so far.
    pub(super) files: u64,
    /// Errors so far.
    pub(super) errors: u64,
    /// Summary, at the end.
    pub(super) summary: Option<Summary>,
}

/// Fields of a line that determine its place.
#[derive(Deserialize)]
struct Fields {
    r#type: String,
    path: Option<String>,
    path_b64: Option<String>,
    operation: Option<String>,
    errno: Option<i32>,
    reason: Option<String>,
    error: Option<serde::de::IgnoredAny>,
}

impl<'a> ListLines<'a> {
    /// Opens a list at its first line behind the header.
    pub(super) fn open(file: &'a ManifestFile) -> Result<ListLines<'a>, Error> {
        let mut lines = ListLines {
            file,
            input: file.lines()?,
            line: Vec::new(),
            key: LineKey {
                kind: LineKind::File,
                path: Vec::new(),
                operation: String::new(),
            },
            reason: (None, String::new()),
            files: 0,
            errors: 0,
            summary: None,
        };
        lines.read()?;
        lines.advance()?;
        Ok(lines)
    }

    /// What a line of an error says of its path.
    pub(super) fn failure(&self) -> Failure {
        let (errno, message) = self.reason.clone();
        Failure {
            op: self.key.operation.clone(),
            errno,
            message,
        }
    }

    fn read(&mut self) -> Result<(), Error> {
        let read = read_line(&mut self.input, &mut self.line);
        read.map_err(|error| self.file.unreadable(&error))
    }

    /// Advances to the next line, or to the summary, behind which there is nothing.
    pub(super) fn advance(&mut self) -> Result<(), Error> {
        self.read()?;
        let list = self.file;
        if self.line.last() != Some(&b'\n') {
            return Err(list.bad("truncated: no summary at the end"));
        }
        let odd = || list.bad("has a line that is of no list");
        let fields: Fields = serde_json::from_slice(&self.line).map_err(|_| odd())?;
        let kind = match &*fields.r#type {
            "file" => LineKind::File,
            "error" => LineKind::Error,
            "summary" => {
                let summary = serde_json::from_slice::<Summary>(&self.line);
                let mut summary = summary.map_err(|_| odd())?;
                summary.extra.remove("type");
                self.summary = Some(summary);
                self.read()?;
                return match self.line.is_empty() {
                    true => Ok(()),
                    false => Err(list.bad("data after the summary")),
                };
            }
            _ => return Err(odd()),
        };
        let path = either_path(fields.path, fields.path_b64.as_deref()).ok_or_else(odd)?;
        self.files += u64::from(kind == LineKind::File && fields.error.is_none());
        self.errors += u64::from(kind == LineKind::Error);
        let key = LineKey {
            kind,
            path,
            operation: fields.operation.unwrap_or_default(),
        };
        if key < self.key {
            let path = bc_fs::escape(&key.path);
            return Err(list.bad(format!("'{path}' is out of order")));
        }
        self.key = key;
        self.reason = (fields.errno, fields.reason.unwrap_or_default());
        Ok(())
    }
}

/// Reads the next line with its newline; empty at the end. A line that is cut off, or too long for
/// a list, has none.
pub(super) fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<()> {
    line.clear();
    input
        .by_ref()
        .take(MAX_LINE as u64)
        .read_until(b'\n', line)?;
    Ok(())
}
