//! Selection of the kernel for each compression function and instruction set, and the names of those
//! that serve an algorithm.

use super::family::{Blake2b, Family, Md5, Sha1, Sha256, Sha512};
#[cfg(target_arch = "x86_64")]
use super::kernels;
use super::{LaneKernel, StreamKernel, portable};
use crate::{Algorithm, CpuFeatures};

/// The kernels for one compression function.
pub(crate) struct Selection<W: 'static> {
    /// Many messages in lockstep, if that beats one after the other.
    pub(crate) lanes: Option<&'static LaneKernel<W>>,
    /// One message.
    pub(crate) stream: &'static StreamKernel<W>,
    /// Number of live messages up to which `few` and `stream` are faster: the speed of `lanes`
    /// shrinks with every idle lane, theirs does not.
    pub(crate) few_up_to: usize,
    /// A few messages interleaved, if that beats one after the other.
    pub(crate) few: Option<&'static LaneKernel<W>>,
}

impl<W: 'static> Selection<W> {
    fn stream_only(stream: &'static StreamKernel<W>) -> Selection<W> {
        Selection {
            lanes: None,
            stream,
            few_up_to: 0,
            few: None,
        }
    }

    /// Returns the kernels' names, without repetition.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        names.extend(self.lanes.map(|k| k.name));
        names.extend(self.few.map(|k| k.name));
        names.push(self.stream.name);
        names.dedup();
        names
    }
}

/// Takes the SIMD kernels for the instruction sets, if there are any, else the portable stream.
macro_rules! selections {
    ($($function:ident: $word:ty = $portable:ident;)*) => {$(
        #[cfg(target_arch = "x86_64")]
        pub(crate) fn $function(cpu: CpuFeatures) -> Selection<$word> {
            kernels::$function::select(cpu)
                .unwrap_or(Selection::stream_only(&portable::$portable))
        }

        #[cfg(not(target_arch = "x86_64"))]
        pub(crate) fn $function(_cpu: CpuFeatures) -> Selection<$word> {
            Selection::stream_only(&portable::$portable)
        }
    )*};
}

selections! {
    md5: u32 = MD5;
    sha1: u32 = SHA1;
    sha256: u32 = SHA256;
    sha512: u64 = SHA512;
    blake2b: u64 = BLAKE2B;
}

impl CpuFeatures {
    /// Returns the kernels that serve an algorithm, e.g. `["sha256/avx512", "sha256/sha-ni"]`: the
    /// one for many messages, if there is one, the one for a few, and the one for a single message.
    /// Empty for algorithms that are always hashed one message at a time.
    pub fn serving(self, algorithm: Algorithm) -> Vec<&'static str> {
        match algorithm {
            Algorithm::Md5 => Md5::select(self).names(),
            Algorithm::Sha1 => Sha1::select(self).names(),
            Algorithm::Sha224 | Algorithm::Sha256 => Sha256::select(self).names(),
            Algorithm::Sha384 | Algorithm::Sha512 | Algorithm::Sha512_256 => {
                Sha512::select(self).names()
            }
            Algorithm::Blake2b | Algorithm::Blake2b256 => Blake2b::select(self).names(),
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Algorithm, CpuFeatures};

    #[test]
    fn kernels_are_named_after_their_function() {
        for cpu in CpuFeatures::available() {
            for &algorithm in Algorithm::ALL {
                let family = match algorithm {
                    Algorithm::Sha224 => "sha256/",
                    Algorithm::Sha384 | Algorithm::Sha512_256 => "sha512/",
                    Algorithm::Blake2b256 => "blake2b/",
                    other => &format!("{}/", other.name()),
                };
                for name in cpu.serving(algorithm) {
                    assert!(name.starts_with(family), "{name} serves {algorithm}");
                }
            }
        }
    }
}
