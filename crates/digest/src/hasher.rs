//! One message with the best single-stream kernel: in pieces, at once, from any reader, from a file.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use xxhash_rust::xxh32::Xxh32;
use xxhash_rust::xxh64::Xxh64;

#[cfg(feature = "algorithms")]
use crate::blocks::BlockHasher;
use crate::digest::Digest;
use crate::sums::RunningSum;
use crate::xxh3::{self, Xxh3};
use crate::{Algorithm, CpuFeatures};

/// A message that arrives in pieces: by [`update`](Hasher::update), or as an
/// [`io::Write`](std::io::Write) that never fails.
///
/// ```
/// # use bc_digest::{Algorithm, Hasher};
/// let mut hasher = Hasher::new(Algorithm::Xxh128);
/// hasher.update(b"a");
/// hasher.update(b"bc");
/// assert_eq!(hasher.finalize().to_string(), "06b05ab6733a618578af5f94892f3950");
/// ```
#[derive(Clone)]
pub struct Hasher {
    algorithm: Algorithm,
    state: HasherState,
}

#[derive(Clone)]
enum HasherState {
    #[cfg(feature = "algorithms")]
    Blocks(BlockHasher),
    Blake3(Box<blake3::Hasher>),
    Xxh32(Xxh32),
    Xxh64(Xxh64),
    /// Both lengths differ only at the end.
    Xxh3(Box<Xxh3>),
    Crc32c(u32),
    Sum(RunningSum),
}

impl Hasher {
    /// Makes a hasher that has seen nothing.
    pub fn new(algorithm: Algorithm) -> Hasher {
        Hasher::with_cpu(algorithm, CpuFeatures::detect())
    }

    /// Makes a hasher of BLAKE2b with a digest of so many bytes, as `b2sum -l` computes it.
    ///
    /// # Panics
    ///
    /// If they are not 1 to 64.
    #[cfg(feature = "algorithms")]
    pub fn blake2b(bytes: usize) -> Hasher {
        Hasher {
            algorithm: Algorithm::Blake2b,
            state: HasherState::Blocks(BlockHasher::blake2b(bytes)),
        }
    }

    /// Makes a hasher that has seen nothing. `cpu` is [`CpuFeatures::detect`] but in tests,
    /// benchmarks, and where the user forbids some of it.
    pub fn with_cpu(algorithm: Algorithm, k: CpuFeatures) -> Hasher {
        let state = match algorithm {
            Algorithm::Blake3 => HasherState::Blake3(Box::default()),
            Algorithm::Xxh32 => HasherState::Xxh32(Xxh32::new(0)),
            Algorithm::Xxh64 => HasherState::Xxh64(Xxh64::new(0)),
            Algorithm::Xxh3 | Algorithm::Xxh128 => HasherState::Xxh3(Box::new(Xxh3::new(k))),
            Algorithm::Crc32c => HasherState::Crc32c(0),
            Algorithm::Crc | Algorithm::Crc32b | Algorithm::Bsd | Algorithm::Sysv => {
                HasherState::Sum(
                    RunningSum::new(algorithm, k).expect("one of the sums listed there"),
                )
            }
            #[cfg(feature = "algorithms")]
            other => HasherState::Blocks(BlockHasher::new(other, k)),
        };
        Hasher { algorithm, state }
    }

    /// Returns the algorithm that it computes.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Appends a piece, of any length.
    pub fn update(&mut self, data: &[u8]) {
        match &mut self.state {
            #[cfg(feature = "algorithms")]
            HasherState::Blocks(s) => s.update(data),
            HasherState::Blake3(s) => {
                s.update(data);
            }
            HasherState::Xxh32(s) => s.update(data),
            HasherState::Xxh64(s) => s.update(data),
            HasherState::Xxh3(s) => s.update(data),
            HasherState::Crc32c(crc) => *crc = crc32c::crc32c_append(*crc, data),
            HasherState::Sum(sum) => sum.update(data),
        }
    }

    /// Returns the digest of the bytes appended so far; more may follow.
    pub fn finalize(&self) -> Digest {
        match &self.state {
            #[cfg(feature = "algorithms")]
            HasherState::Blocks(s) => s.finalize(self.algorithm),
            HasherState::Blake3(s) => Digest::new(s.finalize().as_bytes()),
            HasherState::Xxh32(s) => Digest::new(&s.digest().to_be_bytes()),
            HasherState::Xxh64(s) => Digest::new(&s.digest().to_be_bytes()),
            HasherState::Xxh3(s) if self.algorithm == Algorithm::Xxh3 => {
                Digest::new(&s.digest64().to_be_bytes())
            }
            HasherState::Xxh3(s) => Digest::new(&s.digest128().to_be_bytes()),
            HasherState::Crc32c(crc) => Digest::new(&crc.to_be_bytes()),
            HasherState::Sum(sum) => sum.finalize(),
        }
    }

    /// Forgets everything appended, to start another message.
    pub fn reset(&mut self) {
        match &mut self.state {
            #[cfg(feature = "algorithms")]
            HasherState::Blocks(s) => s.reset(self.algorithm),
            HasherState::Blake3(s) => {
                s.reset();
            }
            HasherState::Xxh32(s) => s.reset(0),
            HasherState::Xxh64(s) => s.reset(0),
            HasherState::Xxh3(s) => s.reset(),
            HasherState::Crc32c(crc) => *crc = 0,
            HasherState::Sum(sum) => sum.reset(),
        }
    }
}

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

impl std::fmt::Debug for Hasher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hasher")
            .field("algorithm", &self.algorithm)
            .finish_non_exhaustive()
    }
}

/// Returns the digest of one message.
// Inlined always, so that a caller who names the algorithm pays neither for the choice nor for the
// zeros behind a short digest: together they cost more than XXH3 of sixteen bytes does.
#[inline(always)]
pub fn hash(algorithm: Algorithm, data: &[u8]) -> Digest {
    hash_with(algorithm, CpuFeatures::detect(), data)
}

/// Hashes like [`hash`], without the detour over a streaming state.
#[inline(always)]
pub(crate) fn hash_with(algorithm: Algorithm, cpu: CpuFeatures, data: &[u8]) -> Digest {
    match algorithm {
        Algorithm::Blake3 => Digest::new(blake3::hash(data).as_bytes()),
        Algorithm::Xxh32 => Digest::new(&xxhash_rust::xxh32::xxh32(data, 0).to_be_bytes()),
        Algorithm::Xxh64 => Digest::new(&xxhash_rust::xxh64::xxh64(data, 0).to_be_bytes()),
        Algorithm::Xxh3 => Digest::new(&xxh3::xxh3_64(cpu, data).to_be_bytes()),
        Algorithm::Xxh128 => Digest::new(&xxh3::xxh3_128(cpu, data).to_be_bytes()),
        Algorithm::Crc32c => Digest::new(&crc32c::crc32c(data).to_be_bytes()),
        _ => hash_blocks(algorithm, cpu, data),
    }
}

/// Hashes with a function that takes blocks or bytes and has a state to begin with.
fn hash_blocks(algorithm: Algorithm, cpu: CpuFeatures, data: &[u8]) -> Digest {
    #[cfg(feature = "algorithms")]
    if let Some(digest) = BlockHasher::whole(algorithm, cpu, data) {
        return digest;
    }
    let mut hasher = Hasher::with_cpu(algorithm, cpu);
    hasher.update(data);
    hasher.finalize()
}

/// Bytes read at once: from here on more gains nothing (Zen 5, page cache).
const PIECE: usize = 128 << 10;

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

#[cfg(all(test, feature = "algorithms"))]
mod tests {
    use super::*;

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
