//! `bc hash --format=csv`: RFC 4180 with the columns `path,size,<algorithm>…,error,path_b64`.
//!
//! Records end with CRLF and fields are quoted where the RFC asks for it; the reader also
//! takes a bare newline. `error` is `op: message`. A path that is not UTF-8 is lossy in
//! `path` and complete in `path_b64` as base64, which is empty for all others.
//!
//! Parsed here and not by `csv-core`, which reads `"a"b` as the path `ab` and `a"b` as it stands: what
//! is not written as the RFC says is refused, or a damaged line would name another file.

use std::fmt::Display;
use std::io::Write;

use bc_digest::{Digest, push_hex};

use crate::algorithm::{Name, digest_len, intern};
use crate::base64;
use crate::json::push_u64;
use crate::record::{Failure, Record};

/// Appends the header record.
pub fn write_header(out: &mut Vec<u8>, algorithms: &[&str]) {
    out.extend_from_slice(b"path,size");
    for name in algorithms {
        out.push(b',');
        push_field(out, name.as_bytes());
    }
    out.extend_from_slice(b",error,path_b64\r\n");
}

/// Appends the record of a file: its digests in the order of the header's algorithms.
pub fn write_file<'a>(
    out: &mut Vec<u8>,
    path: &[u8],
    size: u64,
    digests: impl IntoIterator<Item = &'a [u8]>,
) {
    push_path(out, path);
    out.push(b',');
    push_u64(out, size);
    for digest in digests {
        out.push(b',');
        push_hex(out, digest);
    }
    out.push(b',');
    push_twin(out, path);
}

/// Appends the record of a file without digests, with as many empty fields as the header has
/// algorithms.
pub fn write_error(
    out: &mut Vec<u8>,
    path: &[u8],
    size: Option<u64>,
    algorithms: usize,
    error: &Failure,
) {
    push_path(out, path);
    out.push(b',');
    if let Some(size) = size {
        push_u64(out, size);
    }
    out.extend(std::iter::repeat_n(b',', algorithms + 1));
    push_field(out, format!("{}: {}", error.op, error.message).as_bytes());
    push_twin(out, path);
}

/// Appends a record of another kind: fields that need no quotes, then `path` and `path_b64`.
pub fn write_record(out: &mut Vec<u8>, fields: &[&dyn Display], path: &[u8]) {
    for field in fields {
        // Writing to a Vec cannot fail.
        let _ = write!(out, "{field},");
    }
    push_path(out, path);
    push_twin(out, path);
}

fn push_path(out: &mut Vec<u8>, path: &[u8]) {
    push_field(out, String::from_utf8_lossy(path).as_bytes());
}

/// Appends the last field, the bytes in base64 where they are not UTF-8, and ends the record.
fn push_twin(out: &mut Vec<u8>, path: &[u8]) {
    out.push(b',');
    if std::str::from_utf8(path).is_err() {
        base64::encode(out, path);
    }
    out.extend_from_slice(b"\r\n");
}

fn push_field(out: &mut Vec<u8>, field: &[u8]) {
    if !field
        .iter()
        .any(|b| matches!(b, b'"' | b',' | b'\r' | b'\n'))
    {
        return out.extend_from_slice(field);
    }
    out.push(b'"');
    for &byte in field {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}

/// More columns than any header of ours has.
const MAX_COLUMNS: usize = 256;

/// Columns of the header, by which each record is parsed.
#[derive(Clone, Debug)]
pub(crate) struct Columns(Vec<Column>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Column {
    Path,
    PathB64,
    Size,
    Error,
    Digest(Name),
}

impl Columns {
    /// Returns the columns before the header is read: none.
    pub(crate) const fn empty() -> Columns {
        Columns(Vec::new())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if this is the header of such a file. It begins with the column `path` and has another.
    pub(crate) fn is_header(line: &[u8]) -> bool {
        line.starts_with(b"path,") || line.starts_with(b"\"path\",")
    }

    pub(crate) fn parse(record: &[u8]) -> Result<Columns, &'static str> {
        let mut columns: Vec<Column> = Vec::new();
        for field in split(record, MAX_COLUMNS)? {
            let name = String::from_utf8(field).map_err(|_| "column name is not UTF-8")?;
            let column = match &*name {
                "path" => Column::Path,
                "path_b64" => Column::PathB64,
                "size" => Column::Size,
                "error" => Column::Error,
                "" => return Err("column without a name"),
                name => Column::Digest(intern(name)),
            };
            if columns.contains(&column) {
                return Err("column repeated");
            }
            columns.push(column);
        }
        Ok(Columns(columns))
    }

    pub(crate) fn record(&self, record: &[u8], line: u64) -> Result<Record, &'static str> {
        let fields = split(record, self.0.len())?;
        if fields.len() != self.0.len() {
            return Err("wrong number of fields");
        }
        let mut out = Record {
            line,
            path: Vec::new(),
            digests: Vec::new(),
            size: None,
            error: None,
        };
        for (column, field) in self.0.iter().zip(fields) {
            match column {
                Column::Path if out.path.is_empty() => out.path = field,
                Column::PathB64 if !field.is_empty() => {
                    out.path = base64::decode(&field).ok_or("path_b64 is not base64")?;
                }
                Column::Size if !field.is_empty() => out.size = Some(number(&field)?),
                Column::Error if !field.is_empty() => out.error = Some(failure(&field)?),
                Column::Digest(name) if !field.is_empty() => {
                    let digest = Digest::from_hex(&field).ok_or("no digest")?;
                    if digest_len(name).is_some_and(|len| len != digest.as_bytes().len()) {
                        return Err("wrong length of digest");
                    }
                    out.digests.push((Some(name.clone()), digest));
                }
                _ => {}
            }
        }
        if out.path.contains(&0) {
            return Err("NUL in the path");
        }
        if out.digests.is_empty() && out.error.is_none() {
            return Err("neither digest nor error");
        }
        Ok(out)
    }
}

fn number(field: &[u8]) -> Result<u64, &'static str> {
    let digits = field.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(field).ok().filter(|_| digits);
    text.and_then(|text| text.parse().ok())
        .ok_or("size is not a number")
}

/// Parses `op: message`; the number is where the standard library's messages have it.
fn failure(field: &[u8]) -> Result<Failure, &'static str> {
    let text = std::str::from_utf8(field).map_err(|_| "error is not UTF-8")?;
    let (op, message) = text.split_once(": ").unwrap_or(("", text));
    let errno = message
        .rsplit_once("(os error ")
        .and_then(|(_, tail)| tail.strip_suffix(')'));
    let errno = errno.and_then(|number| number.parse().ok());
    Ok(Failure {
        op: op.into(),
        errno,
        message: message.into(),
    })
}

/// True if a quoted field is still open at the end, so that the record continues in the next line.
pub(crate) fn is_open(record: &[u8]) -> bool {
    record.iter().filter(|&&b| b == b'"').count() & 1 == 1
}

/// Splits a record, without its line end, into its fields: at most `max`, since a line of
/// nothing but commas would take many times its own length of memory.
fn split(record: &[u8], max: usize) -> Result<Vec<Vec<u8>>, &'static str> {
    let mut fields = Vec::new();
    let mut rest = record;
    loop {
        let mut field = Vec::new();
        if let Some(mut quoted) = rest.strip_prefix(b"\"") {
            loop {
                let end = quoted
                    .iter()
                    .position(|&b| b == b'"')
                    .ok_or("quote not closed")?;
                field.extend_from_slice(&quoted[..end]);
                quoted = &quoted[end + 1..];
                match quoted.strip_prefix(b"\"") {
                    Some(more) => {
                        field.push(b'"');
                        quoted = more;
                    }
                    None => break,
                }
            }
            rest = quoted;
        } else {
            let end = rest.iter().position(|&b| b == b',').unwrap_or(rest.len());
            if rest[..end].contains(&b'"') {
                return Err("quote inside a plain field");
            }
            field.extend_from_slice(&rest[..end]);
            rest = &rest[end..];
        }
        if fields.len() == max {
            return Err("too many fields");
        }
        fields.push(field);
        match rest {
            [] => return Ok(fields),
            [b',', more @ ..] => rest = more,
            _ => return Err("text after a quoted field"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_as_the_rfc_says() {
        let fields = |text: &str| {
            split(text.as_bytes(), 9).map(|f| {
                f.into_iter()
                    .map(|f| String::from_utf8(f).unwrap())
                    .collect::<Vec<_>>()
            })
        };
        assert_eq!(fields("a,,c").unwrap(), ["a", "", "c"]);
        assert_eq!(fields("\"a,\"\"b\"\"\r\n\",").unwrap(), ["a,\"b\"\r\n", ""]);
        assert_eq!(fields("").unwrap(), [""]);
        assert!(split(b",,,", 3).is_err());
        assert!(fields("a\"b").is_err() && fields("\"a\"b").is_err() && fields("\"a").is_err());
    }

    #[test]
    fn records_end_with_the_path_and_its_bytes() {
        let mut out = Vec::new();
        write_record(&mut out, &[&1, &"ab"], b"x,\"y\"");
        write_record(&mut out, &[], b"\xff");
        let text = "1,ab,\"x,\"\"y\"\"\",\r\n\u{fffd},/w==\r\n";
        assert_eq!(String::from_utf8_lossy(&out), text);
    }

    #[test]
    fn errors_keep_their_number() {
        let error = failure(b"open: Permission denied (os error 13)").unwrap();
        assert_eq!((error.op.as_str(), error.errno), ("open", Some(13)));
        assert_eq!(failure(b"changed").unwrap().message, "changed");
    }
}
