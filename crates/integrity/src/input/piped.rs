//! A manifest that comes from a pipe, or is made only to be compared: kept until its end is known,
//! since it is read more than once and nothing may be done before its SHA-256 was found right.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bc_edit::content;
use bc_manifest::integrity::{Policy, Reader};
use bc_manifest::{MAX_LINE, compress};

use super::Source;

/// Bytes kept in memory; more of them go to a file without a name.
const KEPT: usize = 32 << 20;

/// Most bytes that are taken from a pipe.
const MOST: u64 = 16 << 30;

/// Most bytes where there is no place for a file.
const MOST_IN_MEMORY: u64 = 1 << 30;

/// Reads `input` to its end.
pub(super) fn read(input: impl Read) -> Result<Source, PipeError> {
    read_into(Kept::within(KEPT, MOST, MOST_IN_MEMORY), input)
}

/// Bytes of a manifest in memory; from a number on in a file without a name.
pub(crate) struct Kept {
    bytes: Vec<u8>,
    /// The file and the bytes in it.
    file: Option<(File, u64)>,
    in_memory: usize,
    most: u64,
    most_in_memory: u64,
}

impl Default for Kept {
    fn default() -> Kept {
        Kept::within(KEPT, MOST, MOST_IN_MEMORY)
    }
}

impl Kept {
    fn within(in_memory: usize, most: u64, most_in_memory: u64) -> Kept {
        Kept {
            bytes: Vec::new(),
            file: None,
            in_memory,
            most,
            most_in_memory,
        }
    }

    fn push(&mut self, piece: &[u8]) -> Result<(), PipeError> {
        self.bytes.extend_from_slice(piece);
        let spilled = self.file.as_ref().map_or(0, |(_, length)| *length);
        let limit = match self.file {
            Some(_) => self.most,
            None => self.most_in_memory,
        };
        if spilled + self.bytes.len() as u64 > limit {
            return Err(PipeError::TooLong(limit));
        }
        if self.bytes.len() >= self.in_memory {
            if self.file.is_none() {
                self.file = content::create_temporary().map(|file| (file.into(), 0));
            }
            if let Some((file, length)) = &mut self.file {
                file.write_all_at(&self.bytes, *length)?;
                *length += self.bytes.len() as u64;
                self.bytes.clear();
            }
        }
        Ok(())
    }

    pub(super) fn end(self) -> io::Result<Source> {
        let Some((file, length)) = self.file else {
            return Ok(Source::Memory(self.bytes.into()));
        };
        file.write_all_at(&self.bytes, length)?;
        Ok(Source::File(Arc::new(file)))
    }
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.push(bytes).map_err(|failed| match failed {
            PipeError::Io(error) => error,
            PipeError::TooLong(most) => {
                io::Error::other(format!("a manifest of over {} GiB", most >> 30))
            }
            PipeError::NotOne(error) => io::Error::other(error.to_string()),
        })?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reason for which a manifest could not be taken from a pipe.
#[derive(Debug)]
pub(super) enum PipeError {
    Io(io::Error),
    /// It is no manifest.
    NotOne(bc_manifest::Error),
    /// It is too long: more bytes than these.
    TooLong(u64),
}

impl From<io::Error> for PipeError {
    fn from(error: io::Error) -> PipeError {
        PipeError::Io(error)
    }
}

fn read_into(mut kept: Kept, mut input: impl Read) -> Result<Source, PipeError> {
    let step = kept.in_memory.clamp(1, 1 << 20) as u64;
    let mut piece = first_line(&mut input)?;
    loop {
        kept.push(&piece)?;
        piece.clear();
        if input.by_ref().take(step).read_to_end(&mut piece)? == 0 {
            return Ok(kept.end()?);
        }
    }
}

/// Reads up to the end of the first line and refuses input that is no manifest: its end may never
/// come.
fn first_line(input: &mut impl Read) -> Result<Vec<u8>, PipeError> {
    let mut bytes = Vec::new();
    while bytes.len() <= MAX_LINE && !bytes.contains(&b'\n') && !compress::is_compressed(&bytes) {
        // A pipe returns the bytes that are available.
        let mut chunk = [0; 64 << 10];
        match input.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(PipeError::Io(error)),
        }
    }
    if !compress::is_compressed(&bytes) {
        Reader::new(&bytes[..], Policy::Strict).map_err(PipeError::NotOne)?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bc_manifest::integrity::{Header, Writer};

    fn manifest() -> Vec<u8> {
        let writer = Writer::new(Vec::new(), &Header::new("sha256", "0")).unwrap();
        writer.finish().unwrap().0
    }

    fn content(source: Source) -> Vec<u8> {
        match source {
            Source::Memory(bytes) => bytes.to_vec(),
            Source::File(file) => {
                let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
                file.read_exact_at(&mut bytes, 0).unwrap();
                bytes
            }
        }
    }

    #[test]
    fn all_of_it_wherever_it_is_kept() {
        let bytes = [&manifest()[..], &b"x\n".repeat(1000)].concat();
        for kept in [1, 100, 1 << 20] {
            let kept = Kept::within(kept, 1 << 20, 1 << 20);
            let source = read_into(kept, &bytes[..]).unwrap();
            assert_eq!(content(source), bytes);
        }
    }

    #[test]
    fn endless_ones_are_refused() {
        let begun = || io::Cursor::new(manifest()).chain(io::repeat(b' '));
        for (kept, most) in [(100, 5000), (1 << 20, 5000)] {
            let failed = read_into(Kept::within(kept, most, most), begun()).unwrap_err();
            assert!(matches!(failed, PipeError::TooLong(5000)), "{failed:?}");
        }
        for other in [b'\0', b'\n', b'{'] {
            let failed = read(io::repeat(other)).unwrap_err();
            assert!(matches!(failed, PipeError::NotOne(_)), "{failed:?}");
        }
    }
}
