//! Reads a checksum manifest of any supported format, one record at a time.

use std::io::{self, BufRead, Chain, Cursor, Read};

use bc_digest::{Algorithm, Plain};

use crate::csv::{self, Columns};
use crate::error::{Error, ErrorKind};
use crate::gnu::Style;
use crate::jsonl;
use crate::line;
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

/// The formats that a file can turn out to have.
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
    state: State,
    style: Style,
    line: u64,
    buffer: Vec<u8>,
}

#[derive(Debug)]
enum State {
    /// Start of the file: no significant line seen yet.
    Start,
    Lines,
    Jsonl,
    Csv(Columns),
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
            state: if end == End::Nul {
                State::Lines
            } else {
                State::Start
            },
            style: Style::default(),
            line: 0,
            buffer: Vec::new(),
        })
    }

    /// Returns the format, as far as known: `None` before the first significant line.
    pub fn format(&self) -> Option<Format> {
        match self.state {
            State::Start => None,
            State::Lines => Some(Format::Lines),
            State::Jsonl => Some(Format::Jsonl),
            State::Csv(_) => Some(Format::Csv),
        }
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
        if matches!(self.state, State::Start) {
            self.detect();
        }
        let malformed = |why| Ok(Some(Item::Malformed { line: number, why }));
        match &self.state {
            State::Csv(_) => self.csv_record().map_err(|e| Error::io(number, e)),
            State::Jsonl => {
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
            State::Start | State::Lines => {
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
                match line::parse(line, &self.lengths, self.end, &mut self.style) {
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
        match text.trim_ascii().first() {
            None | Some(b'#' | b';') => return,
            Some(b'{') => self.state = State::Jsonl,
            Some(_) if Columns::is_header(text) => {
                // Replaced as soon as the header is complete.
                self.state = State::Csv(Columns::empty());
            }
            Some(_) => self.state = State::Lines,
        }
        if self.state_is_structured() {
            self.buffer.drain(..bom);
        }
    }

    fn state_is_structured(&self) -> bool {
        matches!(self.state, State::Jsonl | State::Csv(_))
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
        let State::Csv(columns) = &mut self.state else {
            return Ok(None);
        };
        let item = if body.is_empty() {
            None
        } else if columns.is_empty() {
            match Columns::parse(body) {
                Ok(parsed) => {
                    *columns = parsed;
                    None
                }
                Err(why) => {
                    self.state = State::Lines;
                    Some(Item::Malformed { line: number, why })
                }
            }
        } else {
            Some(match columns.record(body, number) {
                Ok(record) => Item::Record(record),
                Err(why) => Item::Malformed { line: number, why },
            })
        };
        self.buffer = record;
        Ok(item)
    }
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
