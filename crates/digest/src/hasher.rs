//! One message with the best single-stream kernel: in pieces, at once, from any reader, from a file.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use blake2::Blake2bVarCore;
use blake2::digest::block_api::{Buffer, UpdateCore, VariableOutputCore};
use xxhash_rust::xxh32::Xxh32;
use xxhash_rust::xxh64::Xxh64;

use crate::digest::Digest;
use crate::lanes::family::{self, Md5, Sha1, Sha256, Sha512};
use crate::lanes::message::MessageStream;
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
    /// Bytes of the digest.
    len: usize,
    state: HasherState,
}

#[derive(Clone)]
enum HasherState {
    Md5(Box<MessageStream<Md5>>),
    Sha1(Box<MessageStream<Sha1>>),
    Sha256(Box<MessageStream<Sha256>>),
    Sha512(Box<MessageStream<Sha512>>),
    Blake2b(Box<Blake2bStream>),
    Blake3(Box<blake3::Hasher>),
    Xxh32(Xxh32),
    Xxh64(Xxh64),
    /// Both lengths differ only at the end.
    Xxh3(Box<Xxh3>),
    Crc32c(u32),
    Sum(RunningSum),
    RustCrypto(Box<RustCrypto>),
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
    pub fn blake2b(bytes: usize) -> Hasher {
        Hasher {
            algorithm: Algorithm::Blake2b,
            len: bytes,
            state: HasherState::Blake2b(Box::new(Blake2bStream::new(bytes))),
        }
    }

    /// Makes a hasher that has seen nothing. `cpu` is [`CpuFeatures::detect`] but in tests,
    /// benchmarks, and where the user forbids some of it.
    pub fn with_cpu(algorithm: Algorithm, k: CpuFeatures) -> Hasher {
        let state = match algorithm {
            Algorithm::Md5 => HasherState::Md5(Box::new(MessageStream::new(&family::MD5_IV, k))),
            Algorithm::Sha1 => HasherState::Sha1(Box::new(MessageStream::new(&family::SHA1_IV, k))),
            Algorithm::Sha224 | Algorithm::Sha256 => HasherState::Sha256(Box::new(
                MessageStream::new(&family::sha256_iv(algorithm), k),
            )),
            Algorithm::Sha384 | Algorithm::Sha512 | Algorithm::Sha512_256 => HasherState::Sha512(
                Box::new(MessageStream::new(&family::sha512_iv(algorithm), k)),
            ),
            Algorithm::Blake2b | Algorithm::Blake2b256 => {
                HasherState::Blake2b(Box::new(Blake2bStream::new(algorithm.digest_len())))
            }
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
            other => {
                let function = RustCrypto::new(other).expect("one of the functions listed there");
                HasherState::RustCrypto(Box::new(function))
            }
        };
        Hasher {
            algorithm,
            len: algorithm.digest_len(),
            state,
        }
    }

    /// Returns the algorithm that it computes.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Appends a piece, of any length.
    pub fn update(&mut self, data: &[u8]) {
        match &mut self.state {
            HasherState::Md5(s) => s.update(data),
            HasherState::Sha1(s) => s.update(data),
            HasherState::Sha256(s) => s.update(data),
            HasherState::Sha512(s) => s.update(data),
            HasherState::Blake2b(s) => s.update(data),
            HasherState::Blake3(s) => {
                s.update(data);
            }
            HasherState::Xxh32(s) => s.update(data),
            HasherState::Xxh64(s) => s.update(data),
            HasherState::Xxh3(s) => s.update(data),
            HasherState::Crc32c(crc) => *crc = crc32c::crc32c_append(*crc, data),
            HasherState::Sum(sum) => sum.update(data),
            HasherState::RustCrypto(function) => function.update(data),
        }
    }

    /// Returns the digest of the bytes appended so far; more may follow.
    pub fn finalize(&self) -> Digest {
        let truncate = |bytes| Digest::truncated(bytes, self.len);
        match &self.state {
            HasherState::Md5(s) => truncate(s.finalize()),
            HasherState::Sha1(s) => truncate(s.finalize()),
            HasherState::Sha256(s) => truncate(s.finalize()),
            HasherState::Sha512(s) => truncate(s.finalize()),
            HasherState::Blake2b(s) => truncate(s.finalize()),
            HasherState::Blake3(s) => Digest::new(s.finalize().as_bytes()),
            HasherState::Xxh32(s) => Digest::new(&s.digest().to_be_bytes()),
            HasherState::Xxh64(s) => Digest::new(&s.digest().to_be_bytes()),
            HasherState::Xxh3(s) if self.algorithm == Algorithm::Xxh3 => {
                Digest::new(&s.digest64().to_be_bytes())
            }
            HasherState::Xxh3(s) => Digest::new(&s.digest128().to_be_bytes()),
            HasherState::Crc32c(crc) => Digest::new(&crc.to_be_bytes()),
            HasherState::Sum(sum) => sum.finalize(),
            HasherState::RustCrypto(function) => function.finalize(),
        }
    }

    /// Forgets everything appended, to start another message.
    pub fn reset(&mut self) {
        match &mut self.state {
            HasherState::Md5(s) => s.reset(&family::MD5_IV),
            HasherState::Sha1(s) => s.reset(&family::SHA1_IV),
            HasherState::Sha256(s) => s.reset(&family::sha256_iv(self.algorithm)),
            HasherState::Sha512(s) => s.reset(&family::sha512_iv(self.algorithm)),
            HasherState::Blake2b(s) => **s = Blake2bStream::new(self.len),
            HasherState::Blake3(s) => {
                s.reset();
            }
            HasherState::Xxh32(s) => s.reset(0),
            HasherState::Xxh64(s) => s.reset(0),
            HasherState::Xxh3(s) => s.reset(),
            HasherState::Crc32c(crc) => *crc = 0,
            HasherState::Sum(sum) => sum.reset(),
            HasherState::RustCrypto(function) => function.reset(),
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
    let bytes = match algorithm {
        Algorithm::Md5 => MessageStream::<Md5>::whole(&family::MD5_IV, cpu, data),
        Algorithm::Sha1 => MessageStream::<Sha1>::whole(&family::SHA1_IV, cpu, data),
        Algorithm::Sha224 | Algorithm::Sha256 => {
            MessageStream::<Sha256>::whole(&family::sha256_iv(algorithm), cpu, data)
        }
        Algorithm::Sha384 | Algorithm::Sha512 | Algorithm::Sha512_256 => {
            MessageStream::<Sha512>::whole(&family::sha512_iv(algorithm), cpu, data)
        }
        Algorithm::Blake2b | Algorithm::Blake2b256 => {
            let mut stream = Blake2bStream::new(algorithm.digest_len());
            stream.update(data);
            stream.finish()
        }
        other => {
            if let Some(digest) = RustCrypto::whole(other, data) {
                return digest;
            }
            let mut hasher = Hasher::with_cpu(other, cpu);
            hasher.update(data);
            return hasher.finalize();
        }
    };
    Digest::truncated(bytes, algorithm.digest_len())
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

/// A message on its way through BLAKE2b, whose digest may have any length, as `b2sum -l` has it.
#[derive(Clone)]
struct Blake2bStream {
    core: Blake2bVarCore,
    buffer: Buffer<Blake2bVarCore>,
}

impl Blake2bStream {
    fn new(bytes: usize) -> Blake2bStream {
        assert!((1..=64).contains(&bytes), "BLAKE2b of {bytes} bytes");
        Blake2bStream {
            core: Blake2bVarCore::new(bytes).expect("a length of BLAKE2b"),
            buffer: Buffer::<Blake2bVarCore>::default(),
        }
    }

    fn update(&mut self, data: &[u8]) {
        let Blake2bStream { core, buffer } = self;
        buffer.digest_blocks(data, |blocks| core.update_blocks(blocks));
    }

    /// Returns the digest's bytes, before truncation.
    fn finalize(&self) -> [u8; 64] {
        self.clone().finish()
    }

    fn finish(mut self) -> [u8; 64] {
        let mut bytes = Default::default();
        self.core
            .finalize_variable_core(&mut self.buffer, &mut bytes);
        bytes.into()
    }
}

macro_rules! functions {
    ($($name:ident: $function:ty;)*) => {
        /// A message on its way through a hash function of RustCrypto.
        #[derive(Clone)]
        enum RustCrypto {
            $($name($function),)*
        }

        impl RustCrypto {
            /// Returns a hasher; `None` if the algorithm is none of these.
            fn new(algorithm: Algorithm) -> Option<RustCrypto> {
                match algorithm {
                    $(Algorithm::$name => Some(RustCrypto::$name(<$function as sha3::Digest>::new())),)*
                    _ => None,
                }
            }

            /// Returns the digest of a whole message; `None` if the algorithm is none of these.
            fn whole(algorithm: Algorithm, data: &[u8]) -> Option<Digest> {
                match algorithm {
                    $(Algorithm::$name => Some(Digest::new(&<$function as sha3::Digest>::digest(data))),)*
                    _ => None,
                }
            }

            fn update(&mut self, data: &[u8]) {
                match self {
                    $(RustCrypto::$name(function) => sha3::Digest::update(function, data),)*
                }
            }

            fn finalize(&self) -> Digest {
                match self {
                    $(RustCrypto::$name(function) => Digest::new(&sha3::Digest::finalize(function.clone())),)*
                }
            }

            fn reset(&mut self) {
                match self {
                    $(RustCrypto::$name(function) => *function = <$function as sha3::Digest>::new(),)*
                }
            }
        }
    };
}

// Hash functions of RustCrypto that are computed one message at a time, a line for each.
functions! {
    Sha3_224: sha3::Sha3_224;
    Sha3_256: sha3::Sha3_256;
    Sha3_384: sha3::Sha3_384;
    Sha3_512: sha3::Sha3_512;
    Sm3: sm3::Sm3;
}

#[cfg(test)]
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
