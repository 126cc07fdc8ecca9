//! Reads an integrity manifest as a stream and checks everything on the way; or checks the
//! trailer's SHA-256 alone, without taking the lines apart.

use std::cmp::Ordering;
use std::io::{self, BufRead};

use bc_digest::{Algorithm, Digest, Hasher};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::canonical::Common;
use super::entry::{Entry, Kind, path_order};
use super::header::{Header, Trailer};
use super::parse::{ParsedEntry, parse, parse_usual};
use crate::algorithm::digest_len;
use crate::error::{Error, ErrorKind};
use crate::lines::{self, Line};
use crate::reader::MAX_LINE;

/// Bytes collected before they are digested.
const CHUNK: usize = 64 << 10;

/// Problems kept in words under [`Policy::Force`]; further ones are only counted.
const PROBLEMS_KEPT: usize = 100;

/// Treatment of a damaged manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Refuse it at the first problem.
    Strict,
    /// Continue: entries that are malformed, unsafe or out of order are left out, and a trailer
    /// that is missing or does not match is ignored; all of it is noted in [`Reader::problems`].
    /// Entries that are yielded keep all promises about order and paths. A missing header or
    /// unknown schema is refused all the same.
    Force,
}

/// Streaming reader; holds one line at a time. Never panics, whatever the input.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    policy: Policy,
    header: Header,
    sha256: Option<Sha256>,
    proven: bool,
    counts: Trailer,
    last: Option<Vec<u8>>,
    digest_len: Option<usize>,
    line: u64,
    buffer: Vec<u8>,
    common: Common,
    pending: Vec<u8>,
    state: StreamState,
    problems: Vec<Error>,
    problem_count: u64,
}

/// Lines that another parser has taken from the input, every one of them an entry in its place.
#[derive(Clone, Copy, Debug)]
pub struct Passed<'a> {
    /// Path of the first.
    pub first: &'a [u8],
    /// Path of the last.
    pub last: &'a [u8],
    /// Entries, which is as many lines; at least one.
    pub entries: u64,
    /// Entries of kind file.
    pub files: u64,
    /// Entries of kind directory.
    pub dirs: u64,
    /// Sum of the sizes of those of kind file, in bytes.
    pub bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamState {
    Entries,
    Done,
    /// Refused: nothing more comes.
    Failed,
}

impl<R: BufRead> Reader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// If there is none, its schema is unknown, or reading fails.
    pub fn new(mut input: R, policy: Policy) -> Result<Self, Error> {
        let mut buffer = Vec::new();
        let found = lines::read_first(&mut input, MAX_LINE, &mut buffer);
        if found.map_err(|e| Error::io(1, e))?.is_none() {
            return Err(match buffer.is_empty() {
                true => Error::new(ErrorKind::NotAManifest, 0, "empty file"),
                false => Error::new(
                    ErrorKind::NotAManifest,
                    1,
                    "not an integrity manifest: no header",
                ),
            });
        }
        let header = Header::parse(&buffer)?;
        let mut sha256 = Sha256::new();
        buffer.push(b'\n');
        sha256.update(&buffer);
        Ok(Reader {
            input,
            policy,
            digest_len: digest_len(&header.algorithm),
            header,
            sha256: Some(sha256),
            proven: false,
            counts: Trailer::default(),
            last: None,
            line: 1,
            buffer,
            common: Common::default(),
            pending: Vec::with_capacity(CHUNK + 4096),
            state: StreamState::Entries,
            problems: Vec::new(),
            problem_count: 0,
        })
    }

    /// Takes the trailer's SHA-256 at its word, since the caller has compared it with the
    /// bytes already. Everything else is checked as ever.
    #[must_use]
    pub fn proven(mut self) -> Self {
        self.proven = true;
        self
    }

    /// Returns the input: to continue behind lines that are [passed over](Reader::pass_over), and
    /// nowhere else.
    pub fn get_mut(&mut self) -> &mut R {
        &mut self.input
    }

    /// Counts lines that another parser has taken from the input and checked one by one, such as a
    /// [`Matcher`](super::Matcher), and in order. Only a [proven](Reader::proven) reader can: the
    /// others digest the lines that they read.
    ///
    /// # Errors
    /// If the first does not come after all before; as for [`read`](Reader::read) nothing more
    /// comes then. The policy is not asked.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub fn pass_over(&mut self, passed: &Passed<'_>) -> Result<(), Error> {
        debug_assert!(self.proven && self.state == StreamState::Entries);
        let why = match self
            .last
            .as_deref()
            .map(|last| path_order(last, passed.first))
        {
            None | Some(Ordering::Less) => None,
            Some(Ordering::Equal) => Some("path repeated"),
            Some(Ordering::Greater) => Some("path out of order"),
        };
        if let Some(why) = why {
            self.state = StreamState::Failed;
            return Err(Error::new(ErrorKind::Unsorted, self.line + 1, why));
        }
        let last = self.last.get_or_insert_default();
        last.clear();
        last.extend_from_slice(passed.last);
        self.line += passed.entries;
        self.counts.entries += passed.entries;
        self.counts.files += passed.files;
        self.counts.dirs += passed.dirs;
        self.counts.bytes = self.counts.bytes.saturating_add(passed.bytes);
        Ok(())
    }

    /// Returns the manifest's header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the trailer, computed from the lines read so far; complete and compared with the
    /// manifest's own once [`read`](Reader::read) has returned `None`.
    pub fn counts(&self) -> &Trailer {
        &self.counts
    }

    /// Returns the problems ignored under [`Policy::Force`]: the first hundred, in words.
    pub fn problems(&self) -> &[Error] {
        &self.problems
    }

    /// Returns the number of problems that were ignored.
    pub fn problem_count(&self) -> u64 {
        self.problem_count
    }

    /// Returns the next entry; `None` once the trailer has been read and verified.
    ///
    /// # Errors
    /// The first problem, after which nothing more comes; under [`Policy::Force`] only a
    /// failure to read.
    pub fn read(&mut self) -> Result<Option<Entry>, Error> {
        let mut entry = Entry::new(Vec::new(), Kind::File);
        Ok(self.read_into(&mut entry)?.then_some(entry))
    }

    /// Reads like [`read`](Reader::read), into an entry whose memory is used again; `false` at the
    /// end. After that, and after an error, the entry is invalid.
    ///
    /// # Errors
    /// Errors of [`read`](Reader::read).
    pub fn read_into(&mut self, entry: &mut Entry) -> Result<bool, Error> {
        if self.state != StreamState::Entries {
            return Ok(false);
        }
        let result = self.next_entry(entry);
        match result {
            Ok(true) => {}
            Ok(false) => self.state = StreamState::Done,
            Err(_) => self.state = StreamState::Failed,
        }
        result
    }

    fn next_entry(&mut self, entry: &mut Entry) -> Result<bool, Error> {
        loop {
            if self.usual_line(entry)? {
                self.counts.count(entry);
                if self.in_order(&entry.path)? {
                    return Ok(true);
                }
                continue;
            }
            let found = lines::read(&mut self.input, b'\n', MAX_LINE, &mut self.buffer);
            self.line += 1;
            match found.map_err(|e| Error::io(self.line, e))? {
                Line::Complete => {}
                Line::End | Line::Unterminated => {
                    self.problem(
                        ErrorKind::Truncated,
                        "truncated: no complete trailer".into(),
                    )?;
                    return Ok(false);
                }
                Line::TooLong => {
                    // Its bytes are gone, so the digest can no longer match.
                    self.sha256 = None;
                    self.problem(ErrorKind::Malformed, "line too long".into())?;
                    continue;
                }
            }
            if self.usual_line_in_two(entry) {
                self.digest_line();
                self.counts.count(entry);
                if self.in_order(&entry.path)? {
                    return Ok(true);
                }
                continue;
            }
            match parse(&self.buffer, self.digest_len) {
                Ok(ParsedEntry::Entry(found)) => {
                    *entry = found;
                    self.digest_line();
                    self.counts.count(entry);
                    if self.in_order(&entry.path)? {
                        return Ok(true);
                    }
                }
                Ok(ParsedEntry::Trailer) => {
                    self.finish()?;
                    return Ok(false);
                }
                Err((kind, why)) => {
                    self.problem(kind, why)?;
                    self.digest_line();
                }
            }
        }
    }

    /// Takes a usual line directly from the input's buffer, if it is whole there. `false`: nothing
    /// was taken.
    fn usual_line(&mut self, entry: &mut Entry) -> Result<bool, Error> {
        let lines = match self.input.fill_buf() {
            Ok(lines) => lines,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(false),
            Err(error) => return Err(Error::io(self.line + 1, error)),
        };
        let parsed = parse_usual(lines, self.digest_len, &mut self.common, entry);
        let Some(end) = parsed.filter(|&end| end <= MAX_LINE) else {
            return Ok(false);
        };
        if !self.proven {
            self.pending.extend_from_slice(&lines[..=end]);
        }
        self.input.consume(end + 1);
        self.line += 1;
        if self.pending.len() >= CHUNK {
            self.digest_pending();
        }
        Ok(true)
    }

    /// Takes a usual line from the line buffer: it was cut in two by the end of the input's.
    fn usual_line_in_two(&mut self, entry: &mut Entry) -> bool {
        self.buffer.push(b'\n');
        let parsed = parse_usual(&self.buffer, self.digest_len, &mut self.common, entry);
        self.buffer.pop();
        parsed.is_some()
    }

    /// Collects the line for the digest, which is faster in larger pieces.
    fn digest_line(&mut self) {
        if self.proven {
            return;
        }
        self.pending.extend_from_slice(&self.buffer);
        self.pending.push(b'\n');
        if self.pending.len() >= CHUNK {
            self.digest_pending();
        }
    }

    fn digest_pending(&mut self) {
        if let Some(sha256) = &mut self.sha256 {
            sha256.update(&self.pending);
        }
        self.pending.clear();
    }

    fn in_order(&mut self, path: &[u8]) -> Result<bool, Error> {
        match self.last.as_deref().map(|last| path_order(last, path)) {
            None => self.last = Some(path.to_vec()),
            Some(Ordering::Less) => {
                if let Some(last) = &mut self.last {
                    last.clear();
                    last.extend_from_slice(path);
                }
            }
            Some(Ordering::Equal) => {
                self.problem(ErrorKind::Unsorted, "path repeated".into())?;
                return Ok(false);
            }
            Some(Ordering::Greater) => {
                self.problem(ErrorKind::Unsorted, "path out of order".into())?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Ends the manifest at the trailer in the buffer: compares it and makes sure that it is the
    /// last line.
    fn finish(&mut self) -> Result<(), Error> {
        self.digest_pending();
        let complete = self.sha256.is_some();
        self.counts.sha256 = self
            .sha256
            .take()
            .map(|sha256| sha256.finalize().into())
            .unwrap_or_default();
        if let (true, Some(trailer)) = (self.proven, Trailer::parse(&self.buffer)) {
            self.counts.sha256 = trailer.sha256;
        }
        if !self.counts.is_written_as(&self.buffer) || !complete {
            let why = match Trailer::parse(&self.buffer) {
                None => "not a valid trailer".to_owned(),
                Some(trailer) if trailer.sha256 != self.counts.sha256 => {
                    "altered: the SHA-256 in the trailer does not match".to_owned()
                }
                Some(trailer) if trailer != self.counts => {
                    "altered: the counts in the trailer do not match".to_owned()
                }
                Some(_) => "altered: the trailer is not written as it should be".to_owned(),
            };
            self.problem(ErrorKind::Altered, why)?;
        }
        let rest = self
            .input
            .fill_buf()
            .map_err(|e| Error::io(self.line + 1, e))?;
        if !rest.is_empty() {
            self.line += 1;
            self.problem(ErrorKind::TrailingData, "data after the trailer".into())?;
        }
        Ok(())
    }

    /// Notes a problem, or refuses because of it.
    fn problem(&mut self, kind: ErrorKind, why: String) -> Result<(), Error> {
        let error = Error::new(kind, self.line, why);
        if self.policy == Policy::Strict {
            return Err(error);
        }
        self.problem_count += 1;
        if self.problems.len() < PROBLEMS_KEPT {
            self.problems.push(error);
        }
        Ok(())
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Entry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

/// Reads a manifest to its end, strictly, and returns its trailer.
///
/// ```
/// use bc_manifest::integrity::{Entry, Header, Kind, Meta, Writer, path_order, validate};
///
/// let dir = |path: &[u8]| Entry {
///     meta: Some(Meta::default()),
///     ..Entry::new(path.to_vec(), Kind::Dir)
/// };
/// let mut entries = vec![dir(b"a"), dir(b".")];
/// entries.sort_by(|a, b| path_order(&a.path, &b.path));
/// let mut writer = Writer::new(Vec::new(), &Header::new("sha256", "1.0"))?;
/// for entry in &entries {
///     writer.write(entry)?;
/// }
/// let (text, _) = writer.finish()?;
/// assert_eq!(validate(&text[..])?.dirs, 2);
/// // A manifest that lacks a byte proves nothing.
/// assert!(validate(&text[..text.len() - 2]).is_err());
/// # Ok::<(), bc_manifest::Error>(())
/// ```
///
/// # Errors
/// The first problem.
pub fn validate<R: BufRead>(input: R) -> Result<Trailer, Error> {
    let mut reader = Reader::new(input, Policy::Strict)?;
    while reader.read()?.is_some() {}
    Ok(reader.counts)
}

/// Reads a manifest to its end as [`check_seal`] does, and returns the keys of its trailer that the
/// format itself does not know.
///
/// # Errors
/// Errors of [`check_seal`].
pub fn read_seal(input: impl BufRead) -> Result<Map<String, Value>, Error> {
    let line = checked_trailer(input)?;
    Ok(Trailer::extra(&line))
}

/// Reads a manifest to its end and compares the SHA-256 in its trailer with the lines before it:
/// this finds cut off and changed lines. The lines themselves are not looked at. Returns the trailer.
///
/// # Errors
/// If there is no complete trailer at the end, it does not fit, or reading fails.
pub fn check_seal(input: impl BufRead) -> Result<Trailer, Error> {
    let line = checked_trailer(input)?;
    Ok(Trailer::parse(&line).unwrap_or_default())
}

/// Returns the trailer's line, verified.
fn checked_trailer(mut input: impl BufRead) -> Result<Vec<u8>, Error> {
    let mut hasher = Hasher::new(Algorithm::Sha256);
    // The last line so far: it may be the trailer, which is not hashed.
    let mut held: Vec<u8> = Vec::new();
    loop {
        let chunk = match input.fill_buf() {
            Ok([]) => break,
            Ok(chunk) => chunk,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Error::io(0, error)),
        };
        let len = chunk.len();
        match chunk[..len - 1].iter().rposition(|&byte| byte == b'\n') {
            Some(newline) => {
                hasher.update(&held);
                hasher.update(&chunk[..=newline]);
                held.clear();
                held.extend_from_slice(&chunk[newline + 1..]);
            }
            None => {
                if held.last() == Some(&b'\n') || held.len() > MAX_LINE {
                    hasher.update(&held);
                    held.clear();
                }
                held.extend_from_slice(chunk);
            }
        }
        input.consume(len);
    }
    let line = held.strip_suffix(b"\n");
    let Some(line) = line.filter(|line| line.starts_with(Trailer::START)) else {
        let why = "truncated: no complete trailer";
        return Err(Error::new(ErrorKind::Truncated, 0, why));
    };
    // Keys of a later version may follow, so it is looked for by name.
    let sha256 = Trailer::parse(line).map(|trailer| Digest::new(&trailer.sha256));
    if sha256 != Some(hasher.finalize()) {
        let why = "altered: the SHA-256 in the trailer does not match";
        return Err(Error::new(ErrorKind::Altered, 0, why));
    }
    held.pop();
    Ok(held)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::integrity::{Header, Writer};

    #[test]
    fn only_a_whole_one_passes_however_it_comes() {
        let writer = Writer::new(Vec::new(), &Header::new("sha256", "0")).unwrap();
        let (sealed, _) = writer.finish().unwrap();
        let check = |bytes: &[u8]| {
            let found = check_seal(bytes).map(drop).map_err(|error| error.kind());
            for capacity in [1, 7, 64] {
                let input = io::BufReader::with_capacity(capacity, bytes);
                let whole = check_seal(input).map(drop);
                assert_eq!(whole.map_err(|error| error.kind()), found);
            }
            found
        };
        assert_eq!(check(&sealed), Ok(()));
        for len in 0..sealed.len() {
            assert_eq!(check(&sealed[..len]), Err(ErrorKind::Truncated), "{len}");
        }
        let trailer = sealed[..sealed.len() - 1].iter().rposition(|b| *b == b'\n');
        for at in 0..=trailer.unwrap() {
            let mut altered = sealed.clone();
            altered[at] ^= 1;
            // An altered byte that becomes a newline makes two lines of one.
            assert!(check(&altered).is_err(), "{at}");
        }
        let more = [&sealed[..], b"x\n"].concat();
        assert_eq!(check(&more), Err(ErrorKind::Truncated));
    }
}
