//! Manifests as the applet reads them: any format, a line at a time, digests
//! with their algorithms.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Cursor};

use bc_hash::FileDigests;
use bc_hash::lines::{self, Hint};
use bc_manifest::{Item, Reader, Separator, gnu};
use bc_pool::Cancel;
use serde_json::Value;

use crate::files::input::Input;
use crate::report::diagnostic::Diagnostic;

/// The lines of one manifest; errors are fragments such as `read: Is a directory`.
pub struct ManifestLines {
    source: LineSource,
    /// True if a JSON list has begun, and its summary is still to come.
    open: bool,
}

enum LineSource {
    Reader(Box<Reader<BufReader<Input>>>),
    /// Files of a JSON document, which is read whole.
    Document(std::vec::IntoIter<Value>),
    /// No more lines, after an error.
    Ended,
}

/// One line, as far as it matters here.
pub enum RawLine {
    Record(bc_manifest::Record),
    Malformed(u64),
    /// A JSON list ends before its summary: the rest is unknown.
    CutShort,
    Other,
}

/// Meaning of a line.
pub enum LineMeaning {
    /// A path and its digests.
    Wanted(FileDigests),
    /// A path and one digest, whose length alone determines the algorithm.
    Guessed(FileDigests),
    /// A comment, a header.
    Nothing,
    /// A file that had no digest, and why: nothing is known of its content.
    Unread(Vec<u8>, String),
    /// The list is not whole.
    CutShort,
    /// An improperly formatted line, by number.
    Improper(u64),
}

/// Opens a manifest; `-` is standard input.
pub fn open(name: &OsStr, zero: bool, cancel: &Cancel) -> Result<ManifestLines, Diagnostic> {
    let shown = bc_fs::escape(name.as_encoded_bytes()).into_owned();
    let input = Input::open(name, cancel)?;
    let mut input = BufReader::with_capacity(256 << 10, input);
    if !zero {
        let head = input
            .fill_buf()
            .map_err(|error| Diagnostic::failed(name, "read", &error))?;
        // A JSON document opens with a line of its own; JSON lines never do.
        if head.starts_with(b"{\n") || head.starts_with(b"{\r\n") {
            return document(input).map_err(|text| format!("{shown}: {text}").into());
        }
        if let Some(advice) = super::foreign::advice(head, name) {
            return Err(format!("{shown}: {advice}").into());
        }
    }
    let options = bc_manifest::Options::default().separator(if zero {
        Separator::Nul
    } else {
        Separator::Auto
    });
    let reader =
        Reader::new(input, options).map_err(|error| format!("{shown}: {}", reason(&error)))?;
    Ok(ManifestLines::of(LineSource::Reader(Box::new(reader))))
}

fn document(mut input: BufReader<Input>) -> Result<ManifestLines, String> {
    let text =
        crate::files::input::read_whole(&mut input).map_err(|error| format!("read: {error}"))?;
    let mut value: Value =
        serde_json::from_slice(&text).map_err(|error| format!("JSON: {error}"))?;
    if value["schema"].as_u64().is_none_or(|schema| schema > 1) {
        return Err("JSON: not a manifest of a known schema".to_owned());
    }
    match value["files"].take() {
        Value::Array(files) => Ok(ManifestLines::of(LineSource::Document(files.into_iter()))),
        _ => Err("JSON: not a manifest: no list of files".to_owned()),
    }
}

fn reason(error: &bc_manifest::Error) -> String {
    match error.io_error() {
        Some(io) => format!("read: {io}"),
        None => error.to_string(),
    }
}

impl ManifestLines {
    fn of(source: LineSource) -> ManifestLines {
        ManifestLines {
            source,
            open: false,
        }
    }
}

impl Iterator for ManifestLines {
    type Item = Result<RawLine, String>;

    fn next(&mut self) -> Option<Result<RawLine, String>> {
        match &mut self.source {
            LineSource::Ended => None,
            LineSource::Reader(reader) => match reader.read() {
                // Lists may follow one another.
                Ok(Some(Item::Header(_))) => {
                    Some(Ok(match std::mem::replace(&mut self.open, true) {
                        true => RawLine::CutShort,
                        false => RawLine::Other,
                    }))
                }
                Ok(Some(Item::Summary(_))) => {
                    self.open = false;
                    Some(Ok(RawLine::Other))
                }
                Ok(Some(Item::Record(record))) => Some(Ok(RawLine::Record(record))),
                Ok(Some(Item::Malformed { line, .. })) => Some(Ok(RawLine::Malformed(line))),
                Ok(Some(_)) => Some(Ok(RawLine::Other)),
                Ok(None) => std::mem::take(&mut self.open).then_some(Ok(RawLine::CutShort)),
                Err(error) => {
                    let text = reason(&error);
                    self.source = LineSource::Ended;
                    Some(Err(text))
                }
            },
            LineSource::Document(files) => {
                // Each of its files equals a JSON line.
                let line = files.next()?.to_string();
                let reader = Reader::new(Cursor::new(line), bc_manifest::Options::default());
                Some(match reader.and_then(|mut reader| reader.read()) {
                    Ok(Some(Item::Record(record))) => Ok(RawLine::Record(record)),
                    Ok(_) => Ok(RawLine::Malformed(0)),
                    Err(error) => Err(reason(&error)),
                })
            }
        }
    }
}

/// Gives each digest its algorithm.
pub fn resolve(raw: RawLine, hint: Hint) -> LineMeaning {
    let record = match raw {
        RawLine::Record(record) => record,
        RawLine::Malformed(line) => return LineMeaning::Improper(line),
        RawLine::CutShort => return LineMeaning::CutShort,
        RawLine::Other => return LineMeaning::Nothing,
    };
    match lines::resolve(record, hint) {
        lines::Line::Wanted(wanted) => LineMeaning::Wanted(wanted),
        lines::Line::Guessed(wanted) => LineMeaning::Guessed(wanted),
        lines::Line::Unread(path, error) => {
            LineMeaning::Unread(path, format!("{}: {}", error.op, error.message))
        }
        lines::Line::Improper(line) => LineMeaning::Improper(line),
    }
}

/// Returns the message that a list is not whole.
pub fn cut_short(name: &str) -> String {
    format!("{name}: cut short: the summary that ends it is missing, and perhaps files before it")
}

/// Returns the message that a list has no digest of a file.
pub fn unread(name: &str, path: &[u8], reason: &str) -> String {
    let (path, reason) = (bc_fs::escape(path), bc_fs::escape(reason.as_bytes()));
    format!("{name}: no digest of {path}: when it was listed: {reason}")
}

/// Appends a name to a line of output as GNU's `-c` does: names that would
/// break the line are escaped, with a backslash before them to say so.
pub fn push_name(line: &mut Vec<u8>, path: &[u8]) {
    if path.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
        line.push(b'\\');
        gnu::escape_path(line, path);
    } else {
        line.extend_from_slice(path);
    }
}
