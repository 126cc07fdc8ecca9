//! Compressed manifests: what a name ending in `.zst` asks for. With the feature `zstd`.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};

/// The first bytes of a zstd frame (RFC 8878, section 3.1.1).
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The level used: the library's own default, about 500 MB/s.
const LEVEL: i32 = 3;

/// Compresses what is written to it; complete only after [`finish`](Compressor::finish).
pub struct Compressor<W: Write>(zstd::Encoder<'static, W>);

impl<W: Write> Compressor<W> {
    /// A frame with a checksum of its content.
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

/// Does a file that begins with these bytes begin like a zstd frame?
pub fn is_compressed(head: &[u8]) -> bool {
    head.starts_with(&MAGIC)
}

/// Decompresses `input` if it begins like a zstd frame, passes it through otherwise. Damaged
/// or cut-off frames, and anything after them that is no frame, are errors when read.
///
/// # Errors
/// If reading fails or the decompressor cannot be set up.
pub fn open<'a, R: Read + Send + 'a>(input: R) -> io::Result<Box<dyn BufRead + Send + 'a>> {
    let mut input = input;
    let mut head = Vec::with_capacity(MAGIC.len());
    input
        .by_ref()
        .take(MAGIC.len() as u64)
        .read_to_end(&mut head)?;
    let is_zstd = is_compressed(&head);
    let whole = BufReader::with_capacity(BUFFER, io::Cursor::new(head).chain(input));
    Ok(if is_zstd {
        Box::new(BufReader::with_capacity(
            BUFFER,
            zstd::Decoder::with_buffer(whole)?,
        ))
    } else {
        Box::new(whole)
    })
}

const BUFFER: usize = 128 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn compressed(bytes: &[u8]) -> Vec<u8> {
        let mut compressor = Compressor::new(Vec::new()).unwrap();
        compressor.write_all(bytes).unwrap();
        compressor.finish().unwrap()
    }

    fn all(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        open(bytes)?.read_to_end(&mut out)?;
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
