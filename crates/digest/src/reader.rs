//! Digests of one message from any reader, and of a file by its path.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use crate::{Algorithm, Digest, Hasher};

/// Bytes read at once: from here on more gains nothing (Zen 5, page cache).
const PIECE: usize = 128 << 10;

impl Write for Hasher {
    /// Appends all of it. Never fails.
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.update(data);
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the digest of all bytes from `reader` until its end. It needs no buffer of its own.
///
/// # Errors
/// Errors of reading; a call that was interrupted is made again.
///
/// ```
/// # use bc_digest::{Algorithm, hash_reader};
/// let digest = hash_reader(Algorithm::Md5, &b"abc"[..])?;
/// assert_eq!(digest.to_string(), "900150983cd24fb0d6963f7d28e17f72");
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn hash_reader(algorithm: Algorithm, mut reader: impl Read) -> io::Result<Digest> {
    let mut hasher = Hasher::new(algorithm);
    let mut piece = vec![0; PIECE];
    loop {
        match reader.read(&mut piece) {
            Ok(0) => return Ok(hasher.finalize()),
            Ok(count) => hasher.update(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns the digest of a file. Links are followed, and writes during the read are not noticed:
/// `bc_hash::HashOptions::run` notices them, and is faster for many files.
///
/// # Errors
/// Errors of opening and reading; the message has the path and the operation, the kind is the
/// system's.
///
/// ```no_run
/// # use bc_digest::{Algorithm, hash_file};
/// let digest = hash_file(Algorithm::Sha256, "disk.iso")?;
/// println!("{digest}");
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn hash_file(algorithm: Algorithm, path: impl AsRef<Path>) -> io::Result<Digest> {
    let path = path.as_ref();
    let failed = |operation: &'static str| {
        move |error: io::Error| {
            let text = format!("{}: {operation}: {error}", path.display());
            io::Error::new(error.kind(), text)
        }
    };
    let file = File::open(path).map_err(failed("open"))?;
    hash_reader(algorithm, file).map_err(failed("read"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash;

    /// Reader that returns its bytes in odd pieces, and is interrupted now and then.
    struct Halting<'a>(&'a [u8], usize);

    impl Read for Halting<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1 += 1;
            if self.1.is_multiple_of(3) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let most = (self.1 * 7919).min(buffer.len());
            self.0.read(&mut buffer[..most])
        }
    }

    #[test]
    fn pieces_interruptions_and_writes_make_no_difference() {
        let data: Vec<u8> = (0..3 * PIECE + 5).map(|i| (i * 31) as u8).collect();
        for &algorithm in Algorithm::ALL {
            let all = hash(algorithm, &data);
            assert_eq!(hash_reader(algorithm, Halting(&data, 0)).unwrap(), all);
            let mut hasher = Hasher::new(algorithm);
            io::copy(&mut Halting(&data, 0), &mut hasher).unwrap();
            assert_eq!(hasher.finalize(), all);
        }
    }

    #[test]
    fn errors_of_files_name_path_and_operation() {
        let error = hash_file(Algorithm::Md5, "src/none").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().starts_with("src/none: open: "), "{error}");
        let error = hash_file(Algorithm::Md5, "src").unwrap_err();
        assert!(error.to_string().starts_with("src: read: "), "{error}");
        let text = std::fs::read("src/lib.rs").unwrap();
        let digest = hash_file(Algorithm::Md5, "src/lib.rs").unwrap();
        assert_eq!(digest, hash(Algorithm::Md5, &text));
    }
}
