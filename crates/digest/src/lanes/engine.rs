//! The share of a batch that an algorithm with lanes has.

use super::family::{self, Blake2b, Md5, Sha1, Sha256, Sha512};
use super::scheduler::Scheduler;
use crate::chunk::{Chunk, Pending};
use crate::digest::Digest;
use crate::{Algorithm, CpuFeatures};

/// Scheduler of the lanes of an algorithm.
pub(crate) enum LaneEngine {
    Md5(Box<Scheduler<Md5>>),
    Sha1(Box<Scheduler<Sha1>>),
    Sha256(Box<Scheduler<Sha256>>),
    Sha512(Box<Scheduler<Sha512>>),
    Blake2b(Box<Scheduler<Blake2b>>),
}

macro_rules! each {
    ($engine:expr, $e:ident => $body:expr) => {
        match $engine {
            LaneEngine::Md5($e) => $body,
            LaneEngine::Sha1($e) => $body,
            LaneEngine::Sha256($e) => $body,
            LaneEngine::Sha512($e) => $body,
            LaneEngine::Blake2b($e) => $body,
        }
    };
}

impl LaneEngine {
    /// Returns the engine of an algorithm; `None` if its messages are hashed one at a time.
    pub(crate) fn new(algorithm: Algorithm, cpu: CpuFeatures) -> Option<LaneEngine> {
        Some(match algorithm {
            Algorithm::Md5 => {
                LaneEngine::Md5(Box::new(Scheduler::new(algorithm, family::MD5_IV, cpu)))
            }
            Algorithm::Sha1 => {
                LaneEngine::Sha1(Box::new(Scheduler::new(algorithm, family::SHA1_IV, cpu)))
            }
            Algorithm::Sha224 | Algorithm::Sha256 => LaneEngine::Sha256(Box::new(Scheduler::new(
                algorithm,
                family::sha256_iv(algorithm),
                cpu,
            ))),
            Algorithm::Sha384 | Algorithm::Sha512 | Algorithm::Sha512_256 => LaneEngine::Sha512(
                Box::new(Scheduler::new(algorithm, family::sha512_iv(algorithm), cpu)),
            ),
            Algorithm::Blake2b | Algorithm::Blake2b256 if Blake2b::has_lanes(cpu) => {
                let iv = family::blake2b_iv(algorithm);
                LaneEngine::Blake2b(Box::new(Scheduler::new(algorithm, iv, cpu)))
            }
            _ => return None,
        })
    }

    pub(crate) fn width(&self) -> usize {
        each!(self, e => e.width())
    }

    pub(crate) fn reserve(&mut self, messages: usize) {
        each!(self, e => e.reserve(messages));
    }

    pub(crate) fn begin(&mut self, message: usize) {
        each!(self, e => e.begin(message));
    }

    pub(crate) fn digest(&self, message: usize) -> Digest {
        each!(self, e => e.digest(message))
    }

    /// Begins a call: see [`Scheduler::attach`].
    pub(crate) fn attach(&mut self, chunks: &[Chunk<'_>], pending: &Pending) -> usize {
        each!(self, e => e.attach(chunks, pending))
    }

    /// Hashes for a while: see [`Scheduler::work`].
    pub(crate) fn work(
        &mut self,
        chunks: &[Chunk<'_>],
        pending: &mut Pending,
        consumed: &mut Vec<usize>,
    ) -> usize {
        each!(self, e => e.work(chunks, pending, consumed))
    }
}
