//! One message with a function that takes blocks or has a state to begin with: MD5, SHA-1, SHA-2 and
//! BLAKE2b, which have lanes too, and RustCrypto's functions, which have none.

use blake2::Blake2bVarCore;
use blake2::digest::block_api::{Buffer, UpdateCore, VariableOutputCore};

use crate::digest::Digest;
use crate::lanes::family::{self, Md5, Sha1, Sha256, Sha512};
use crate::lanes::message::MessageStream;
use crate::{Algorithm, CpuFeatures};

/// A message on its way through such a function.
#[derive(Clone)]
pub(crate) enum BlockHasher {
    Md5(Box<MessageStream<Md5>>),
    Sha1(Box<MessageStream<Sha1>>),
    Sha256(Box<MessageStream<Sha256>>),
    Sha512(Box<MessageStream<Sha512>>),
    Blake2b(Box<Blake2bStream>),
    RustCrypto(Box<RustCrypto>),
}

impl BlockHasher {
    /// Makes a hasher that has seen nothing, of an algorithm that takes blocks.
    pub(crate) fn new(algorithm: Algorithm, k: CpuFeatures) -> BlockHasher {
        match algorithm {
            Algorithm::Md5 => BlockHasher::Md5(Box::new(MessageStream::new(&family::MD5_IV, k))),
            Algorithm::Sha1 => BlockHasher::Sha1(Box::new(MessageStream::new(&family::SHA1_IV, k))),
            Algorithm::Sha224 | Algorithm::Sha256 => BlockHasher::Sha256(Box::new(
                MessageStream::new(&family::sha256_iv(algorithm), k),
            )),
            Algorithm::Sha384 | Algorithm::Sha512 | Algorithm::Sha512_256 => BlockHasher::Sha512(
                Box::new(MessageStream::new(&family::sha512_iv(algorithm), k)),
            ),
            Algorithm::Blake2b | Algorithm::Blake2b256 => {
                BlockHasher::blake2b(algorithm.digest_len())
            }
            other => {
                let function = RustCrypto::new(other).expect("one of the functions listed there");
                BlockHasher::RustCrypto(Box::new(function))
            }
        }
    }

    /// Makes a hasher of BLAKE2b with a digest of so many bytes.
    pub(crate) fn blake2b(bytes: usize) -> BlockHasher {
        BlockHasher::Blake2b(Box::new(Blake2bStream::new(bytes)))
    }

    pub(crate) fn update(&mut self, data: &[u8]) {
        match self {
            BlockHasher::Md5(s) => s.update(data),
            BlockHasher::Sha1(s) => s.update(data),
            BlockHasher::Sha256(s) => s.update(data),
            BlockHasher::Sha512(s) => s.update(data),
            BlockHasher::Blake2b(s) => s.update(data),
            BlockHasher::RustCrypto(function) => function.update(data),
        }
    }

    /// Returns the digest of the bytes so far; more may follow. `algorithm` is the one that it was
    /// made for.
    pub(crate) fn finalize(&self, algorithm: Algorithm) -> Digest {
        let truncate = |bytes| Digest::truncated(bytes, algorithm.digest_len());
        match self {
            BlockHasher::Md5(s) => truncate(s.finalize()),
            BlockHasher::Sha1(s) => truncate(s.finalize()),
            BlockHasher::Sha256(s) => truncate(s.finalize()),
            BlockHasher::Sha512(s) => truncate(s.finalize()),
            BlockHasher::Blake2b(s) => Digest::truncated(s.finalize(), s.len),
            BlockHasher::RustCrypto(function) => function.finalize(),
        }
    }

    /// Forgets everything, to start another message. `algorithm` is the one that it was made for.
    pub(crate) fn reset(&mut self, algorithm: Algorithm) {
        match self {
            BlockHasher::Md5(s) => s.reset(&family::MD5_IV),
            BlockHasher::Sha1(s) => s.reset(&family::SHA1_IV),
            BlockHasher::Sha256(s) => s.reset(&family::sha256_iv(algorithm)),
            BlockHasher::Sha512(s) => s.reset(&family::sha512_iv(algorithm)),
            BlockHasher::Blake2b(s) => **s = Blake2bStream::new(s.len),
            BlockHasher::RustCrypto(function) => function.reset(),
        }
    }

    /// Returns the digest of a whole message, without the detour over a hasher; `None` if the
    /// algorithm is none of these.
    #[inline]
    pub(crate) fn whole(algorithm: Algorithm, cpu: CpuFeatures, data: &[u8]) -> Option<Digest> {
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
            other => return RustCrypto::whole(other, data),
        };
        Some(Digest::truncated(bytes, algorithm.digest_len()))
    }
}

/// A message on its way through BLAKE2b, whose digest may have any length, as `b2sum -l` has it.
#[derive(Clone)]
pub(crate) struct Blake2bStream {
    /// Bytes of the digest.
    len: usize,
    core: Blake2bVarCore,
    buffer: Buffer<Blake2bVarCore>,
}

impl Blake2bStream {
    fn new(bytes: usize) -> Blake2bStream {
        assert!((1..=64).contains(&bytes), "BLAKE2b of {bytes} bytes");
        Blake2bStream {
            len: bytes,
            core: Blake2bVarCore::new(bytes).expect("a length of BLAKE2b"),
            buffer: Buffer::<Blake2bVarCore>::default(),
        }
    }

    fn update(&mut self, data: &[u8]) {
        let Blake2bStream { core, buffer, .. } = self;
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
        pub(crate) enum RustCrypto {
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
