//! Names of the kernels that serve an algorithm: for people and for tests.

use super::family::{Blake2b, Family, Md5, Sha1, Sha256, Sha512};
use crate::{Algorithm, CpuFeatures};

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
