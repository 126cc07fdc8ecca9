//! Compressed manifests: those whose names end in `.zst`. With the feature `zstd`.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};

/// The first bytes of a zstd frame (RFC 8878, section 3.1.1).
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The level used: the library's own default, about 500 MB/s.
const LEVEL: i32 = 3;

/// Writer that compresses; complete only after [`finish`](Compressor::finish).
pub struct Compressor<W: Write>(zstd::Encoder<'static, W>);

impl<W: Write> Compressor<W> {
    /// Begins a frame with a checksum of its content.
    ///
    /// # Errors
    /// If the compressor cannot be set up.
    pub fn new(output: W) -> io::Result<Self> {
        let mut encoder = zstd::Encoder::new(output, LEVEL)?;
        encoder.include_checksum(true)?;
        Ok(Compressor(encoder))
    }

    /// Ends the frame and gives back the output.
    ///
    /// # Errors
    /// If writing fails.
    pub fn finish(self) -> io::Result<W> {
        self.0.finish()
    }
}

impl<W: Write> Write for Compressor<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl<W: Write> fmt::Debug for Compressor<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Compressor")
    }
}

/// True if a file that begins with these bytes begins like a zstd frame.
pub fn is_compressed(head: &[u8]) -> bool {
    head.starts_with(&MAGIC)
}

/// Decompresses `input` if it begins like a zstd frame, passes it through otherwise. Damaged
/// or cut-off frames, and anything after them that is no frame, are errors when read.
///
/// # Errors
/// If reading fails or the decompressor cannot be set up.
pub fn decompress<'a, R: Read + Send + 'a>(input: R) -> io::Result<Box<dyn BufRead + Send + 'a>> {
    // Read in whole buffers from the very beginning: the kernel copies pages to where it starts
    // them more than twice as fast as to four bytes beside.
    let mut whole = BufReader::with_capacity(BUFFER, input);
    let head = loop {
        match whole.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            found => break found?,
        }
    };
    if head.len() >= MAGIC.len() || head.is_empty() {
        let is_zstd = is_compressed(head);
        return unpacked(whole, is_zstd);
    }
    // A pipe may give less.
    let mut head = Vec::with_capacity(MAGIC.len());
    let wanted = MAGIC.len() as u64;
    whole.by_ref().take(wanted).read_to_end(&mut head)?;
    let is_zstd = is_compressed(&head);
    unpacked(io::Cursor::new(head).chain(whole), is_zstd)
}

fn unpacked<'a>(
    input: impl BufRead + Send + 'a,
    is_zstd: bool,
) -> io::Result<Box<dyn BufRead + Send + 'a>> {
    Ok(match is_zstd {
        true => Box::new(BufReader::with_capacity(
            BUFFER,
            zstd::Decoder::with_buffer(input)?,
        )),
        false => Box::new(input),
    })
}

const BUFFER: usize = 128 << 10;

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use proptest::prelude::*;

    fn compressed(bytes: &[u8]) -> Vec<u8> {
        let mut compressor = Compressor::new(Vec::new()).unwrap();
        compressor.write_all(bytes).unwrap();
        compressor.finish().unwrap()
    }

    fn all(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        decompress(bytes)?.read_to_end(&mut out)?;
        Ok(out)
    }

    #[test]
    fn damage_is_an_error() {
        let frame = compressed(b"some lines of a manifest, some lines of a manifest");
        for len in 4..frame.len() {
            assert!(all(&frame[..len]).is_err(), "cut at {len}");
        }
        let mut flipped = frame.clone();
        *flipped.last_mut().unwrap() ^= 1;
        assert!(all(&flipped).is_err());
        assert!(all(&[&frame[..], b"junk after the frame"].concat()).is_err());
    }

    /// Reader that returns at most so many bytes at once, is interrupted before each, and notes the
    /// offset of each call.
    struct Steps<'a> {
        bytes: &'a [u8],
        step: usize,
        interrupted: bool,
        offset: usize,
        offsets: &'a Mutex<Vec<usize>>,
    }

    impl Read for Steps<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.interrupted = !self.interrupted;
            if self.interrupted {
                return Err(io::ErrorKind::Interrupted.into());
            }
            self.offsets.lock().unwrap().push(self.offset);
            let len = buffer.len().min(self.step).min(self.bytes.len());
            let count = (&self.bytes[..len]).read(buffer)?;
            self.bytes = &self.bytes[count..];
            self.offset += count;
            Ok(count)
        }
    }

    /// Returns the bytes that `open` gives, and the offsets at which the input was read.
    fn in_steps(bytes: &[u8], step: usize) -> (Vec<u8>, Vec<usize>) {
        let offsets = Mutex::new(Vec::new());
        let input = Steps {
            bytes,
            step,
            interrupted: false,
            offset: 0,
            offsets: &offsets,
        };
        let (mut out, mut opened) = (Vec::new(), decompress(input).unwrap());
        loop {
            let len = match opened.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                found => {
                    let found = found.unwrap();
                    out.extend_from_slice(found);
                    found.len()
                }
            };
            if len == 0 {
                break;
            }
            opened.consume(len);
        }
        let offsets = std::mem::take(&mut *offsets.lock().unwrap());
        (out, offsets)
    }

    #[test]
    fn however_little_comes_at_once() {
        let text = b"{\"type\":\"header\"}\n";
        for bytes in [&text[..], b"", b"a", b"abc", &MAGIC[..3]] {
            for step in 1..6 {
                assert_eq!(in_steps(bytes, step).0, bytes, "{step}");
                if !bytes.is_empty() {
                    assert_eq!(in_steps(&compressed(bytes), step).0, bytes, "{step}");
                }
            }
        }
    }

    #[test]
    fn pages_are_read_from_where_they_start() {
        let text = vec![b'x'; 3 * BUFFER + 5];
        let (out, offsets) = in_steps(&text, usize::MAX);
        assert_eq!(out, text);
        let begun = offsets.iter().filter(|&&at| at < text.len());
        assert!(begun.clone().count() == 4 && begun.clone().all(|at| at % BUFFER == 0));
    }

    proptest! {
        #[test]
        fn round_trip_and_pass_through(bytes: Vec<u8>) {
            prop_assert_eq!(all(&compressed(&bytes)).unwrap(), &bytes[..]);
            if !bytes.starts_with(&MAGIC) {
                prop_assert_eq!(all(&bytes).unwrap(), bytes);
            }
        }
    }
}
