//! Lists as hashdeep and md5deep write them: a first line `%%%% HASHDEEP-1.0`, a line with the
//! names of the columns (`%%%% size,md5,sha256,filename`), comments that begin with `##`, and a
//! line for each file, whose name extends to the end of the line, without escapes.

use std::borrow::Cow;
use std::io::BufRead;

use crate::algorithm::{Name, digest_len, intern};
use crate::error::{Error, ErrorKind};
use crate::lines::{self, Line};
use crate::reader::MAX_LINE;
use crate::record::Record;
use bc_digest::Digest;

/// True if a file that begins with these bytes begins like such a list.
pub fn begins(head: &[u8]) -> bool {
    head.starts_with(b"%%%% HASHDEEP")
}

/// Streaming reader; holds one line at a time. Never panics, whatever the input.
///
/// ```
/// use bc_manifest::hashdeep::HashdeepReader;
///
/// let text = b"%%%% HASHDEEP-1.0\n%%%% size,md5,filename\n## $ hashdeep -c md5 a\n\
///     0,d41d8cd98f00b204e9800998ecf8427e,/tmp/a,b\n";
/// let record = HashdeepReader::new(&text[..]).read()?.unwrap();
/// assert_eq!((record.path, record.size), (b"/tmp/a,b".to_vec(), Some(0)));
/// assert_eq!(record.digests[0].0.as_deref(), Some("md5"));
/// # Ok::<(), bc_manifest::Error>(())
/// ```
#[derive(Debug)]
pub struct HashdeepReader<R> {
    input: R,
    columns: Vec<Name>,
    line: u64,
    invoked_from: Option<Vec<u8>>,
    /// True if lines end with a carriage return.
    returns: bool,
    buffer: Vec<u8>,
}

impl<R: BufRead> HashdeepReader<R> {
    /// Reads nothing yet.
    pub fn new(input: R) -> HashdeepReader<R> {
        HashdeepReader {
            input,
            columns: Vec::new(),
            line: 0,
            invoked_from: None,
            returns: false,
            buffer: Vec::new(),
        }
    }

    /// Returns the names of the digests' columns, in their order; none before the first file's
    /// line.
    pub fn columns(&self) -> &[Name] {
        match self.columns.len() {
            0 => &[],
            count => &self.columns[1..count - 1],
        }
    }

    /// Returns the directory in which it was made, to which its paths are relative, from its
    /// comment `## Invoked from: DIR`; none before the first file's line.
    pub fn invoked_from(&self) -> Option<&[u8]> {
        self.invoked_from.as_deref()
    }

    /// Returns the line that was read last, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Reads the next file; `None` at the end. Digests of algorithms that are known by name have
    /// the length of these.
    ///
    /// # Errors
    /// If reading fails, or a line is malformed.
    pub fn read(&mut self) -> Result<Option<Record>, Error> {
        loop {
            let found = lines::read(&mut self.input, b'\n', MAX_LINE, &mut self.buffer);
            match found.map_err(|error| Error::io(self.line + 1, error))? {
                Line::End => return Ok(None),
                Line::TooLong => {
                    self.line += 1;
                    return Err(self.malformed("line too long"));
                }
                Line::Complete | Line::Unterminated => self.line += 1,
            }
            let line = std::mem::take(&mut self.buffer);
            // Where the first line ends with a carriage return every line does; where it does not,
            // they belong to the names.
            self.returns |= self.line == 1 && line.ends_with(b"\r");
            let text = line
                .strip_suffix(b"\r")
                .filter(|_| self.returns)
                .unwrap_or(&line);
            if let Some(dir) = text.strip_prefix(b"## Invoked from: ") {
                self.invoked_from.get_or_insert_with(|| dir.to_vec());
            }
            let found = match text.strip_prefix(b"%%%% ") {
                _ if self.line == 1 || text.starts_with(b"##") => Ok(None),
                Some(names) => self.take_columns(names).map(|()| None),
                None => self.record(text).map(Some),
            };
            self.buffer = line;
            if let Some(record) = found? {
                return Ok(Some(record));
            }
        }
    }

    fn take_columns(&mut self, names: &[u8]) -> Result<(), Error> {
        let name = |name: &[u8]| intern(&String::from_utf8_lossy(name));
        let columns: Vec<Name> = names.split(|byte| *byte == b',').map(name).collect();
        let (first, last) = (columns.first(), columns.last());
        if first != Some(&Cow::Borrowed("size")) || last != Some(&Cow::Borrowed("filename")) {
            return Err(self.malformed("not hashdeep's line of columns"));
        }
        self.columns = columns;
        Ok(())
    }

    fn record(&self, text: &[u8]) -> Result<Record, Error> {
        if self.columns.is_empty() {
            return Err(self.malformed("no line of columns before it"));
        }
        let bad = || self.malformed("not a line of hashdeep");
        let fields: Vec<&[u8]> = text
            .splitn(self.columns.len(), |byte| *byte == b',')
            .collect();
        if fields.len() < self.columns.len() {
            return Err(bad());
        }
        let size = std::str::from_utf8(fields[0]).ok();
        let size = size.and_then(|size| size.parse().ok()).ok_or_else(bad)?;
        let mut digests = Vec::with_capacity(self.columns.len() - 2);
        for (name, hex) in self.columns.iter().zip(&fields).skip(1) {
            if name == "filename" {
                break;
            }
            let digest = Digest::from_hex(hex).ok_or_else(bad)?;
            let len = digest_len(name);
            if len.is_some_and(|len| len != digest.as_bytes().len()) {
                return Err(bad());
            }
            digests.push((Some(name.clone()), digest));
        }
        Ok(Record {
            line: self.line,
            path: fields[self.columns.len() - 1].to_vec(),
            digests,
            size: Some(size),
            error: None,
        })
    }

    fn malformed(&self, why: &str) -> Error {
        Error::new(ErrorKind::Malformed, self.line, why)
    }
}

#[cfg(test)]
mod tests {
    use super::HashdeepReader;

    const HEAD: &str = "%%%% HASHDEEP-1.0\n%%%% size,md5,tiger,filename\n";
    const MD5: &str = "d41d8cd98f00b204e9800998ecf8427e";

    fn all(text: &str) -> Result<Vec<(Vec<u8>, usize)>, String> {
        let mut reader = HashdeepReader::new(text.as_bytes());
        let mut found = Vec::new();
        while let Some(record) = reader.read().map_err(|error| error.to_string())? {
            found.push((record.path, record.digests.len()));
        }
        Ok(found)
    }

    #[test]
    fn lines_and_what_is_wrong_with_them() {
        let good = format!("{HEAD}## x\r\n7,{MD5},{MD5}00000000,/a,b\n");
        assert_eq!(all(&good), Ok(vec![(b"/a,b".to_vec(), 2)]));
        let cut = good.trim_end();
        assert_eq!(all(cut), Ok(vec![(b"/a,b".to_vec(), 2)]));
        for (text, why) in [
            (
                format!("{HEAD}7,{MD5}00,00,/a\n"),
                "line 3: not a line of hashdeep",
            ),
            (
                format!("{HEAD}x,{MD5},00,/a\n"),
                "line 3: not a line of hashdeep",
            ),
            (
                format!("{HEAD}7,{MD5},00\n"),
                "line 3: not a line of hashdeep",
            ),
            (
                format!("%%%% H\n7,{MD5},00,/a\n"),
                "line 2: no line of columns before it",
            ),
            (
                "%%%% H\n%%%% md5,size\n".to_owned(),
                "line 2: not hashdeep's line of columns",
            ),
        ] {
            assert_eq!(all(&text), Err(why.to_owned()), "{text}");
        }
        assert_eq!(all(""), Ok(Vec::new()));
    }
}
