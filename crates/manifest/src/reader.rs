//! Reads a checksum manifest of any supported format, one record at a time.

use std::io::{self, BufRead, Chain, Cursor, Read};

use bc_digest::{Algorithm, Plain};

use crate::bsd;
use crate::csv::{self, Columns};
use crate::error::{Error, ErrorKind};
use crate::gnu::{self, ParsedLine, Style, TrimBlank};
use crate::jsonl;
use crate::lines::{self, Line};
use crate::record::{End, Item, Record};

/// A line (or CSV record) longer than this counts as malformed and is skipped unkept: 16 MiB,
/// several thousand times the longest path that Linux takes in one call.
pub const MAX_LINE: usize = 16 << 20;

/// Bytes of the input that are examined to find its line separator.
const HEAD: u64 = 64 << 10;

/// Separator of the lines of a GNU or BSD manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Separator {
    /// NUL if the first 64 KiB contain at least as many NULs as newlines, each before a byte that a
    /// record can begin with; newline otherwise.
    #[default]
    Auto,
    /// Newline, whatever the input looks like.
    Newline,
    /// NUL: no escapes, no CRLF; JSON and CSV are not looked for.
    Nul,
}

/// Options for reading.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Separator of lines.
    pub separator: Separator,
    /// Lengths in bytes that the digest of an untagged line may have. By default those of all
    /// [`Algorithm`]s that leave such lines; with one algorithm given, its own.
    pub lengths: Vec<usize>,
}

impl Default for Options {
    fn default() -> Self {
        let is_hex = |known: &&Algorithm| known.plain() == Plain::Hex;
        let all = Algorithm::ALL.iter().filter(is_hex);
        let mut lengths: Vec<usize> = all.map(|known| known.digest_len()).collect();
        lengths.sort_unstable();
        lengths.dedup();
        Options {
            separator: Separator::Auto,
            lengths,
        }
    }
}

impl Options {
    /// Sets the separator of lines.
    #[must_use]
    pub fn separator(mut self, separator: Separator) -> Options {
        self.separator = separator;
        self
    }

    /// Sets the lengths that the digest of an untagged line may have.
    #[must_use]
    pub fn lengths(mut self, lengths: Vec<usize>) -> Options {
        self.lengths = lengths;
        self
    }
}

/// Format that a file turns out to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// GNU and BSD-tagged lines, mixed as they come.
    Lines,
    /// JSON lines.
    Jsonl,
    /// CSV with a header.
    Csv,
}

/// Streaming reader; holds one line at a time. Never panics, whatever the input.
///
/// ```
/// use bc_manifest::{Item, Options, Reader};
///
/// let text = b"# made today\nd41d8cd98f00b204e9800998ecf8427e  empty\nXXH32 (a b) = 02cc5d05\n?\n";
/// let mut reader = Reader::new(&text[..], Options::default())?;
/// let mut paths = Vec::new();
/// while let Some(item) = reader.read()? {
///     match item {
///         Item::Record(record) => paths.push(record.path),
///         Item::Malformed { line, .. } => assert_eq!(line, 4),
///         _ => {}
///     }
/// }
/// assert_eq!(paths, [&b"empty"[..], b"a b"]);
/// # Ok::<(), bc_manifest::Error>(())
/// ```
#[derive(Debug)]
pub struct Reader<R> {
    input: Chain<Cursor<Vec<u8>>, R>,
    end: End,
    lengths: Vec<usize>,
    /// As far as known: `None` before the first significant line.
    format: Option<Format>,
    /// Columns of a CSV file, once its header is complete.
    columns: Columns,
    style: Style,
    line: u64,
    buffer: Vec<u8>,
}

impl<R: BufRead> Reader<R> {
    /// Looks at the beginning of `input` (up to 64 KiB) to find the separator.
    ///
    /// # Errors
    /// If reading fails.
    pub fn new(mut input: R, options: Options) -> Result<Self, Error> {
        let mut head = Vec::new();
        let end = match options.separator {
            Separator::Newline => End::Newline,
            Separator::Nul => End::Nul,
            Separator::Auto => {
                input
                    .by_ref()
                    .take(HEAD)
                    .read_to_end(&mut head)
                    .map_err(|e| Error::io(0, e))?;
                guess_end(&head)
            }
        };
        Ok(Reader {
            input: Cursor::new(head).chain(input),
            end,
            lengths: options.lengths,
            format: (end == End::Nul).then_some(Format::Lines),
            columns: Columns::empty(),
            style: Style::default(),
            line: 0,
            buffer: Vec::new(),
        })
    }

    /// Returns the format, as far as known: `None` before the first significant line.
    pub fn format(&self) -> Option<Format> {
        self.format
    }

    /// Returns the next item, `None` at the end.
    ///
    /// # Errors
    /// If reading fails, or a JSON header names a schema newer than [`jsonl::SCHEMA`].
    pub fn read(&mut self) -> Result<Option<Item>, Error> {
        loop {
            let found = lines::read(&mut self.input, self.end.byte(), MAX_LINE, &mut self.buffer);
            let found = found.map_err(|e| Error::io(self.line + 1, e))?;
            if found == Line::End {
                return Ok(None);
            }
            self.line += 1;
            if found == Line::TooLong {
                return Ok(Some(Item::Malformed {
                    line: self.line,
                    why: "line too long",
                }));
            }
            if let Some(item) = self.item()? {
                return Ok(Some(item));
            }
        }
    }

    /// Parses the line in the buffer; `None` if it is blank or a CSV header.
    fn item(&mut self) -> Result<Option<Item>, Error> {
        let number = self.line;
        if self.format.is_none() {
            self.detect();
        }
        let malformed = |why| Ok(Some(Item::Malformed { line: number, why }));
        match self.format {
            Some(Format::Csv) => self.csv_record().map_err(|e| Error::io(number, e)),
            Some(Format::Jsonl) => {
                let line = self.buffer.trim_ascii();
                if line.is_empty() {
                    return Ok(None);
                }
                match jsonl::parse(line, number) {
                    jsonl::Parsed::Item(item) => Ok(Some(item)),
                    jsonl::Parsed::Future(schema) => Err(Error::new(
                        ErrorKind::FutureSchema,
                        number,
                        format!(
                            "schema {schema} is newer than {}, the newest known here",
                            jsonl::SCHEMA
                        ),
                    )),
                }
            }
            None | Some(Format::Lines) => {
                let mut line = &self.buffer[..];
                // As GNU; `;` is what SFV files and their kin use.
                if matches!(line.first(), Some(b'#' | b';')) {
                    return Ok(Some(Item::Comment { line: number }));
                }
                if self.end == End::Newline {
                    line = line.strip_suffix(b"\r").unwrap_or(line);
                }
                if line.is_empty() {
                    return Ok(None);
                }
                match parse_line(line, &self.lengths, self.end, &mut self.style) {
                    Ok(parsed) => Ok(Some(Item::Record(Record {
                        line: number,
                        path: parsed.path,
                        digests: vec![(parsed.algorithm, parsed.digest)],
                        size: None,
                        error: None,
                    }))),
                    Err(why) => malformed(why),
                }
            }
        }
    }

    /// Settles the format on the first line that is neither blank nor a comment.
    fn detect(&mut self) {
        // A byte order mark is tolerated where text editors and spreadsheets put one.
        let text = self
            .buffer
            .strip_prefix(b"\xef\xbb\xbf")
            .unwrap_or(&self.buffer);
        let bom = self.buffer.len() - text.len();
        let format = match text.trim_ascii().first() {
            None | Some(b'#' | b';') => return,
            Some(b'{') => Format::Jsonl,
            Some(_) if Columns::is_header(text) => Format::Csv,
            Some(_) => Format::Lines,
        };
        if format != Format::Lines {
            self.buffer.drain(..bom);
        }
        self.format = Some(format);
    }

    /// Completes a record that spans lines, then parses it.
    fn csv_record(&mut self) -> io::Result<Option<Item>> {
        let number = self.line;
        let malformed = |why| Ok(Some(Item::Malformed { line: number, why }));
        let mut record = std::mem::take(&mut self.buffer);
        let mut more = Vec::new();
        let mut open = csv::is_open(&record);
        while open {
            record.push(b'\n');
            let room = MAX_LINE.saturating_sub(record.len());
            match lines::read(&mut self.input, b'\n', room, &mut more)? {
                Line::End => return malformed("quote not closed"),
                Line::TooLong => {
                    self.line += 1;
                    return malformed("line too long");
                }
                Line::Complete | Line::Unterminated => self.line += 1,
            }
            open ^= csv::is_open(&more);
            record.extend_from_slice(&more);
        }
        let body = record.strip_suffix(b"\r").unwrap_or(&record);
        let item = if body.is_empty() {
            None
        } else if self.columns.is_empty() {
            match Columns::parse(body) {
                Ok(parsed) => {
                    self.columns = parsed;
                    None
                }
                Err(why) => {
                    self.format = Some(Format::Lines);
                    Some(Item::Malformed { line: number, why })
                }
            }
        } else {
            Some(match self.columns.record(body, number) {
                Ok(record) => Item::Record(record),
                Err(why) => Item::Malformed { line: number, why },
            })
        };
        self.buffer = record;
        Ok(item)
    }
}

/// Parses one line without its end, in either the GNU or the BSD style: both may occur in one file.
fn parse_line(
    line: &[u8],
    lengths: &[usize],
    end: End,
    style: &mut Style,
) -> Result<ParsedLine, &'static str> {
    let mut rest = line.trim_ascii_start_blank();
    let escaped = rest.first() == Some(&b'\\');
    if escaped {
        if end == End::Nul {
            return Err("backslash before a digest in a NUL-separated manifest");
        }
        rest = &rest[1..];
    }
    let is_untagged = gnu::leading_digest(rest, lengths).is_some();
    let tagged = if is_untagged {
        None
    } else {
        bsd::parse(rest, escaped)
    };
    let parsed = match tagged {
        Some(parsed) => parsed?,
        None => gnu::parse(rest, escaped, lengths, style)?,
    };
    // A path cannot hold a NUL; GNU cuts it off there, which names another file.
    if end == End::Newline && parsed.path.contains(&0) {
        return Err("NUL in the path");
    }
    Ok(parsed)
}

/// Returns NUL if there are at least as many as newlines and each is followed by a byte that a
/// record can begin with (a digest, a tag, a backslash). Neither a path nor any other text format
/// holds NULs, so only damage or `-z` brings them; damage comes in runs or hits the middle of a
/// line.
fn guess_end(head: &[u8]) -> End {
    let nuls = head.iter().filter(|&&b| b == 0).count();
    let newlines = head.iter().filter(|&&b| b == b'\n').count();
    let begins = |pair: &[u8]| pair[0] != 0 || pair[1].is_ascii_alphanumeric() || pair[1] == b'\\';
    if nuls > 0 && nuls >= newlines && head.windows(2).all(begins) {
        End::Nul
    } else {
        End::Newline
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Item, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gnu::write_xxh3_line;

    fn path(line: &[u8], style: &mut Style) -> Result<Vec<u8>, &'static str> {
        parse_line(line, &[2], End::Newline, style).map(|parsed| parsed.path)
    }

    fn first(line: &[u8]) -> Result<Vec<u8>, &'static str> {
        path(line, &mut Style::Unknown)
    }

    #[test]
    fn what_gnu_accepts() {
        // Each tried with sha256sum 9.1 (and a longer digest).
        for (line, expected) in [
            (&b"abcd  a"[..], &b"a"[..]),
            (b"ABCD *a", b"a"),
            (b"abcd a", b"a"),
            (b"abcd\ta", b"a"),
            (b"abcd\t*a", b"a"),
            (b" \tabcd  a", b"a"),
            (b"abcd   ", b" "),
            (b"abcd  ", b" "),
            (b"abcd  a ", b"a "),
            (b"\\abcd  a\\nb\\\\c\\r", b"a\nb\\c\r"),
            (b"abcd  a\\n", b"a\\n"),
            (b"abcd **", b"*"),
        ] {
            assert_eq!(
                first(line).as_deref(),
                Ok(expected),
                "{}",
                line.escape_ascii()
            );
        }
    }

    #[test]
    fn what_gnu_refuses() {
        for line in [
            &b""[..],
            b" ",
            b"abcd",
            b"abcd ",
            b"abc  a",
            b"abcde  a",
            b"abcdef  a",
            b"ab  a",
            b"abcx  a",
            b"\\abcd  a\\",
            b"\\abcd  a\\x",
            b"\\\\abcd  a",
            b"-----BEGIN PGP",
            b"abcd-  a",
        ] {
            assert!(first(line).is_err(), "{}", line.escape_ascii());
        }
        assert!(first(b"abcd  a\0b").is_err());
    }

    #[test]
    fn each_mistake_has_its_reason() {
        for (line, why) in [
            (&b"nonsense"[..], "no digest"),
            (b"abc  a", "no digest"),
            (b"abcdef  a", "wrong length of digest"),
            (b"abcdx  a", "no blank after the digest"),
            (b"abcd", "no blank after the digest"),
            (b"abcd ", "no path"),
            (b"XXH3_abcd  a", "wrong length of digest"),
            (b"XXH3_0707070707070707", "no blank after the digest"),
            (b"NONE (a) = abcd", "unknown algorithm"),
        ] {
            assert_eq!(first(line), Err(why), "{}", line.escape_ascii());
        }
        // Digits behind another digest's length are a part of the path.
        assert_eq!(first(b"abcd ef01 a").as_deref(), Ok(&b"ef01 a"[..]));
    }

    #[test]
    fn the_two_untagged_styles_do_not_mix() {
        let mut style = Style::Unknown;
        assert!(path(b"abcd  a", &mut style).is_ok());
        assert!(path(b"abcd a", &mut style).is_err());
        let mut style = Style::Unknown;
        assert!(path(b"abcd a", &mut style).is_ok());
        assert_eq!(path(b"abcd  a", &mut style).as_deref(), Ok(&b" a"[..]));
        assert_eq!(path(b"abcd *a", &mut style).as_deref(), Ok(&b"*a"[..]));
    }

    #[test]
    fn xxh3_carries_its_name() {
        let mut out = Vec::new();
        write_xxh3_line(&mut out, &[7; 8], b"a", End::Newline);
        assert_eq!(out, b"XXH3_0707070707070707  a\n");
        let parsed = parse_line(
            &out[..out.len() - 1],
            &[2],
            End::Newline,
            &mut Style::Unknown,
        )
        .unwrap();
        assert_eq!(parsed.algorithm.as_deref(), Some("xxh3"));
    }
}
