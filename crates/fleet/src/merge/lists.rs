//! Lists of digests, JSON lines of `bc hash` over parts of a tree, put together as the list of the
//! whole. Lines are taken as they are; in memory there is one of each list.

use std::io::{self, BufRead, Read, Write};

use bc_integrity::{LineInput, ManifestFile, write_failed};
use bc_manifest::json::either_path;
use bc_manifest::jsonl::{Header, Summary, write_header, write_summary};
use bc_manifest::{Failure, ListPart, ListPartEnd, MAX_LINE};
use bc_pool::Cancel;
use bc_walk::job::Error;
use serde::Deserialize;

use super::parts::{PartInputs, not_a_part};
use super::{MOST_UNREAD, stop_if};

/// A list of a part of a tree.
#[derive(Debug)]
pub struct ListFile<'a> {
    file: &'a ManifestFile,
    header: Header,
    part: ListPart,
}

/// Result of putting lists together.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MergedLists {
    /// Files with digests.
    pub files: u64,
    /// Files and directories that could not be read.
    pub errors: u64,
    /// Bytes hashed.
    pub bytes: u64,
    /// Paths that could not be read when the lists were made, with the reasons; of very many the first.
    pub unread: Vec<(Vec<u8>, Failure)>,
}

impl<'a> ListFile<'a> {
    /// Reads a file as a list, if it is one.
    ///
    /// # Errors
    /// Fails if the list is of no part of a tree, or of an unknown one, or if reading fails.
    pub fn of(file: &'a ManifestFile) -> Result<Option<ListFile<'a>>, Error> {
        let mut line = Vec::new();
        read_line(&mut file.lines()?, &mut line).map_err(|error| file.unreadable(&error))?;
        let header = match serde_json::from_slice::<Header>(&line) {
            Ok(header) if header.tool == "bc hash" => header,
            _ => return Ok(None),
        };
        let part = ListPart::of_fields(&header.extra);
        let part = part.map_err(|why| file.bad(format!("is of {why}")))?;
        let part = part.ok_or_else(|| not_a_part(file))?;
        Ok(Some(ListFile { file, header, part }))
    }

    fn bad(&self, why: impl Into<String>) -> Error {
        self.file.bad(why)
    }

    fn name(&self) -> std::borrow::Cow<'_, str> {
        bc_fs::escape(self.file.name())
    }
}

/// Puts the lists of all parts of a tree together and writes the list of the whole to `out`. It is
/// what one run would have written, but for the summary's time, threads and reader.
///
/// Errors are found on the way: after one, the output must not be used.
///
/// # Errors
/// Fails if reading or writing fails; if a part is missing or comes twice, or is of another tree,
/// options or algorithms; if a list was cut off or is out of order; if directories are unknown to
/// the part they belong to; if the run is cancelled.
pub fn merge_lists(
    lists: &[ListFile<'_>],
    cancel: &Cancel,
    out: &mut dyn Write,
) -> Result<MergedLists, Error> {
    belong_together(lists)?;
    let mut header = lists[0].header.clone();
    header.extra.remove("shard");
    header.extra.remove("type");
    let mut text = Vec::new();
    write_header(&mut text, &header);
    let mut heads = Vec::with_capacity(lists.len());
    for list in lists {
        heads.push(ListLines::open(list.file)?);
    }
    let mut merged = MergedLists {
        files: 0,
        errors: 0,
        bytes: 0,
        unread: Vec::new(),
    };
    let mut last: Option<(usize, LineKey, Vec<u8>)> = None;
    while let Some(nth) = first_of(&heads) {
        stop_if(cancel)?;
        let head = &heads[nth];
        let is_again = last.as_ref().filter(|(_, key, _)| *key == head.key);
        match (head.key.kind, is_again) {
            // An unreadable directory is reported by every part.
            (LineKind::Error, Some((_, _, line))) if *line == head.line => {}
            (LineKind::File, Some((other, ..))) if *other != nth => {
                let path = bc_fs::escape(&head.key.path);
                let other = lists[*other].name();
                return Err(lists[nth].bad(format!("'{path}' is in {other}, too")));
            }
            (kind, _) => {
                if kind == LineKind::Error {
                    merged.errors += 1;
                    if merged.unread.len() < MOST_UNREAD {
                        merged.unread.push((head.key.path.clone(), head.failure()));
                    }
                }
                text.extend_from_slice(&head.line);
                last = Some((nth, head.key.clone(), head.line.clone()));
            }
        }
        if text.len() >= 64 << 10 {
            out.write_all(&text).map_err(|error| write_failed(&error))?;
            text.clear();
        }
        heads[nth].advance()?;
    }
    let summary = summary_of(lists, &heads, &mut merged)?;
    write_summary(&mut text, &summary);
    out.write_all(&text).map_err(|error| write_failed(&error))?;
    Ok(merged)
}

/// Checks that these are all parts of one work, each once.
fn belong_together(lists: &[ListFile<'_>]) -> Result<(), Error> {
    let Some(first) = lists.first() else {
        return Err(Error::usage("no lists"));
    };
    let mut places = PartInputs::of(first.part.shard.of);
    for (nth, list) in lists.iter().enumerate() {
        let unlike = || first.name();
        if list.part.shard.of != first.part.shard.of {
            let of = list.part.shard.of;
            return Err(list.bad(format!("is one of {of} parts, unlike {}", unlike())));
        }
        if list.header.algorithms != first.header.algorithms {
            let names = list.header.algorithms.join(", ");
            let names = bc_fs::escape(names.as_bytes());
            return Err(list.bad(format!("has {names} digests, unlike {}", unlike())));
        }
        if list.part.job != first.part.job {
            let text = "is of other files, or was made with other options, unlike";
            return Err(list.bad(format!("{text} {}", unlike())));
        }
        let index = list.part.shard.index;
        if let Some(other) = places.put(index, nth) {
            let text = format!(
                "is part {index}/{} again, as {}",
                first.part.shard.of,
                lists[other].name()
            );
            return Err(list.bad(text));
        }
    }
    places.complete().map(drop)
}

/// Returns the summary of the whole, if every list is whole and knows its directories.
fn summary_of(
    lists: &[ListFile<'_>],
    heads: &[ListLines<'_>],
    merged: &mut MergedLists,
) -> Result<Summary, Error> {
    let mut whole: Option<Summary> = None;
    let mut settled = (0_u64, 0_u64);
    for (list, head) in lists.iter().zip(heads) {
        let cut = || list.bad("truncated: no summary at the end");
        let summary = head.summary.as_ref().ok_or_else(cut)?;
        if (summary.files, summary.errors) != (head.files, head.errors) {
            return Err(list.bad("altered: the counts in the summary do not match"));
        }
        let end = end_of(list, summary)?;
        settled = (
            settled.0 + end.settled.0,
            settled.1.wrapping_add(end.settled.1),
        );
        match &mut whole {
            None => whole = Some(summary.clone()),
            Some(whole) => {
                whole.files += summary.files;
                whole.bytes = whole.bytes.saturating_add(summary.bytes);
                whole.wall_ns = whole.wall_ns.max(summary.wall_ns);
                whole.threads += summary.threads;
            }
        }
    }
    for (list, head) in lists.iter().zip(heads) {
        if let Some(summary) = &head.summary
            && end_of(list, summary)?.met != settled
        {
            let text = "came upon other directories than all parts together have read: the tree \
                        changed meanwhile, or could not be read";
            return Err(list.bad(text));
        }
    }
    let mut whole = whole.ok_or_else(|| Error::usage("no lists"))?;
    whole.errors = merged.errors;
    whole.extra.clear();
    (merged.files, merged.bytes) = (whole.files, whole.bytes);
    Ok(whole)
}

fn end_of(list: &ListFile<'_>, summary: &Summary) -> Result<ListPartEnd, Error> {
    let why = "its summary does not say which directories it knows";
    ListPartEnd::of_fields(&summary.extra).ok_or_else(|| list.bad(why))
}

/// Returns the list whose line comes first.
fn first_of(heads: &[ListLines<'_>]) -> Option<usize> {
    let left = heads
        .iter()
        .enumerate()
        .filter(|(_, head)| head.summary.is_none());
    left.min_by(|(_, a), (_, b)| a.key.cmp(&b.key))
        .map(|(nth, _)| nth)
}

/// Kinds of lines, in their order.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum LineKind {
    File,
    Error,
}

/// Sort key of a line.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct LineKey {
    kind: LineKind,
    path: Vec<u8>,
    operation: String,
}

/// A list and its current line.
struct ListLines<'a> {
    file: &'a ManifestFile,
    input: LineInput,
    line: Vec<u8>,
    key: LineKey,
    /// Reason for which that could not be read, of a line of an error.
    reason: (Option<i32>, String),
    /// Files with digests so far.
    files: u64,
    /// Errors so far.
    errors: u64,
    /// Summary, at the end.
    summary: Option<Summary>,
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
    fn open(file: &'a ManifestFile) -> Result<ListLines<'a>, Error> {
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

    /// Failure that a line of an error has for its path.
    fn failure(&self) -> Failure {
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
    fn advance(&mut self) -> Result<(), Error> {
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
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<()> {
    line.clear();
    input
        .by_ref()
        .take(MAX_LINE as u64)
        .read_until(b'\n', line)?;
    Ok(())
}
