//! One message, streaming or at once, with the best single-stream kernel.

use xxhash_rust::xxh32::Xxh32;
use xxhash_rust::xxh64::Xxh64;

use crate::digest::Digest;
use crate::lanes::family::{self, Blake2b, Md5, Sha1, Sha256, Sha512};
use crate::lanes::stream::MessageStream;
use crate::rustcrypto::RustCrypto;
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
    state: State,
}

#[derive(Clone)]
enum State {
    Md5(Box<MessageStream<Md5>>),
    Sha1(Box<MessageStream<Sha1>>),
    Sha256(Box<MessageStream<Sha256>>),
    Sha512(Box<MessageStream<Sha512>>),
    Blake2b(Box<MessageStream<Blake2b>>),
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
    pub fn blake2b(bytes: usize, cpu: CpuFeatures) -> Hasher {
        assert!((1..=64).contains(&bytes), "BLAKE2b of {bytes} bytes");
        let stream = MessageStream::new(&family::blake2b_iv_of(bytes), cpu);
        Hasher {
            algorithm: Algorithm::Blake2b,
            len: bytes,
            state: State::Blake2b(Box::new(stream)),
        }
    }

    /// Makes a hasher that has seen nothing. `cpu` is [`CpuFeatures::detect`] but in tests,
    /// benchmarks, and where the user forbids some of it.
    pub fn with_cpu(algorithm: Algorithm, k: CpuFeatures) -> Hasher {
        let state = match algorithm {
            Algorithm::Md5 => State::Md5(Box::new(MessageStream::new(&family::MD5_IV, k))),
            Algorithm::Sha1 => State::Sha1(Box::new(MessageStream::new(&family::SHA1_IV, k))),
            Algorithm::Sha224 | Algorithm::Sha256 => State::Sha256(Box::new(MessageStream::new(
                &family::sha256_iv(algorithm),
                k,
            ))),
            Algorithm::Sha384 | Algorithm::Sha512 | Algorithm::Sha512_256 => State::Sha512(
                Box::new(MessageStream::new(&family::sha512_iv(algorithm), k)),
            ),
            Algorithm::Blake2b | Algorithm::Blake2b256 => State::Blake2b(Box::new(
                MessageStream::new(&family::blake2b_iv(algorithm), k),
            )),
            Algorithm::Blake3 => State::Blake3(Box::default()),
            Algorithm::Xxh32 => State::Xxh32(Xxh32::new(0)),
            Algorithm::Xxh64 => State::Xxh64(Xxh64::new(0)),
            Algorithm::Xxh3 | Algorithm::Xxh128 => State::Xxh3(Box::new(Xxh3::new(k))),
            Algorithm::Crc32c => State::Crc32c(0),
            Algorithm::Crc | Algorithm::Crc32b | Algorithm::Bsd | Algorithm::Sysv => {
                State::Sum(RunningSum::new(algorithm, k).expect("one of the sums listed there"))
            }
            other => {
                let function = RustCrypto::new(other).expect("one of the functions listed there");
                State::RustCrypto(Box::new(function))
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
            State::Md5(s) => s.update(data),
            State::Sha1(s) => s.update(data),
            State::Sha256(s) => s.update(data),
            State::Sha512(s) => s.update(data),
            State::Blake2b(s) => s.update(data),
            State::Blake3(s) => {
                s.update(data);
            }
            State::Xxh32(s) => s.update(data),
            State::Xxh64(s) => s.update(data),
            State::Xxh3(s) => s.update(data),
            State::Crc32c(crc) => *crc = crc32c::crc32c_append(*crc, data),
            State::Sum(sum) => sum.update(data),
            State::RustCrypto(function) => function.update(data),
        }
    }

    /// Returns the digest of the bytes appended so far; more may follow.
    pub fn finalize(&self) -> Digest {
        let truncate = |bytes| Digest::truncated(bytes, self.len);
        match &self.state {
            State::Md5(s) => truncate(s.finalize()),
            State::Sha1(s) => truncate(s.finalize()),
            State::Sha256(s) => truncate(s.finalize()),
            State::Sha512(s) => truncate(s.finalize()),
            State::Blake2b(s) => truncate(s.finalize()),
            State::Blake3(s) => Digest::new(s.finalize().as_bytes()),
            State::Xxh32(s) => Digest::new(&s.digest().to_be_bytes()),
            State::Xxh64(s) => Digest::new(&s.digest().to_be_bytes()),
            State::Xxh3(s) if self.algorithm == Algorithm::Xxh3 => {
                Digest::new(&s.digest64().to_be_bytes())
            }
            State::Xxh3(s) => Digest::new(&s.digest128().to_be_bytes()),
            State::Crc32c(crc) => Digest::new(&crc.to_be_bytes()),
            State::Sum(sum) => sum.finalize(),
            State::RustCrypto(function) => function.finalize(),
        }
    }

    /// Forgets everything appended, to start another message.
    pub fn reset(&mut self) {
        match &mut self.state {
            State::Md5(s) => s.reset(&family::MD5_IV),
            State::Sha1(s) => s.reset(&family::SHA1_IV),
            State::Sha256(s) => s.reset(&family::sha256_iv(self.algorithm)),
            State::Sha512(s) => s.reset(&family::sha512_iv(self.algorithm)),
            State::Blake2b(s) => s.reset(&family::blake2b_iv_of(self.len)),
            State::Blake3(s) => {
                s.reset();
            }
            State::Xxh32(s) => s.reset(0),
            State::Xxh64(s) => s.reset(0),
            State::Xxh3(s) => s.reset(),
            State::Crc32c(crc) => *crc = 0,
            State::Sum(sum) => sum.reset(),
            State::RustCrypto(function) => function.reset(),
        }
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
pub fn hash(algorithm: Algorithm, data: &[u8]) -> Digest {
    hash_with(algorithm, CpuFeatures::detect(), data)
}

/// Hashes like [`hash`], without the detour over a streaming state where there is one.
pub(crate) fn hash_with(algorithm: Algorithm, cpu: CpuFeatures, data: &[u8]) -> Digest {
    match algorithm {
        Algorithm::Blake3 => Digest::new(blake3::hash(data).as_bytes()),
        Algorithm::Xxh32 => Digest::new(&xxhash_rust::xxh32::xxh32(data, 0).to_be_bytes()),
        Algorithm::Xxh64 => Digest::new(&xxhash_rust::xxh64::xxh64(data, 0).to_be_bytes()),
        Algorithm::Xxh3 => Digest::new(&xxh3::xxh3_64(cpu, data).to_be_bytes()),
        Algorithm::Xxh128 => Digest::new(&xxh3::xxh3_128(cpu, data).to_be_bytes()),
        Algorithm::Crc32c => Digest::new(&crc32c::crc32c(data).to_be_bytes()),
        _ => {
            let mut hasher = Hasher::with_cpu(algorithm, cpu);
            hasher.update(data);
            hasher.finalize()
        }
    }
}
