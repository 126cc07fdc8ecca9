//! The digests as `cksum -a` names them, and how one is computed.

use bc_digest::{Algorithm, CpuFeatures, Digest, Hasher};

/// A name of `cksum -a`; some stand for several lengths.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Family {
    Bsd,
    Sysv,
    Crc,
    Crc32b,
    Md5,
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
    Sha2,
    Sha3,
    Blake2b,
    Sm3,
}

/// Name, tag and bits of each, in the order in which they are listed.
const TABLE: &[(Family, &str, &str, usize)] = &[
    (Family::Bsd, "bsd", "BSD", 16),
    (Family::Sysv, "sysv", "SYSV", 16),
    (Family::Crc, "crc", "CRC", 32),
    (Family::Crc32b, "crc32b", "CRC32B", 32),
    (Family::Md5, "md5", "MD5", 128),
    (Family::Sha1, "sha1", "SHA1", 160),
    (Family::Sha224, "sha224", "SHA224", 224),
    (Family::Sha256, "sha256", "SHA256", 256),
    (Family::Sha384, "sha384", "SHA384", 384),
    (Family::Sha512, "sha512", "SHA512", 512),
    (Family::Sha2, "sha2", "SHA2", 512),
    (Family::Sha3, "sha3", "SHA3", 512),
    (Family::Blake2b, "blake2b", "BLAKE2b", 512),
    (Family::Sm3, "sm3", "SM3", 256),
];

/// The lengths in bits that SHA-2 and SHA-3 have.
pub const SHA_BITS: [usize; 4] = [224, 256, 384, 512];

impl Family {
    /// Returns all families, as they are listed.
    pub fn all() -> impl Iterator<Item = Family> {
        TABLE.iter().map(|row| row.0)
    }

    /// Returns its name, as the argument of `-a`.
    pub fn name(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// Returns its tag in lines.
    pub fn tag(self) -> &'static str {
        TABLE[self as usize].2
    }

    /// Returns the bits of its longest digest.
    pub fn bits(self) -> usize {
        TABLE[self as usize].3
    }

    /// Returns the family of exactly this name.
    pub fn from_name(name: &[u8]) -> Option<Family> {
        Family::all().find(|family| family.name().as_bytes() == name)
    }

    /// Returns the family of exactly this tag.
    pub fn from_tag(tag: &[u8]) -> Option<Family> {
        Family::all().find(|family| family.tag().as_bytes() == tag)
    }

    /// Returns true if its lines are a number and a length, which no program can check.
    pub fn is_old(self) -> bool {
        matches!(
            self,
            Family::Bsd | Family::Sysv | Family::Crc | Family::Crc32b
        )
    }

    /// Returns true if the length is chosen by `-l`.
    pub fn has_lengths(self) -> bool {
        matches!(self, Family::Sha2 | Family::Sha3 | Family::Blake2b)
    }
}

/// A digest to compute.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Sum {
    /// An algorithm that the table has.
    Of(Algorithm),
    /// BLAKE2b of another length, in bytes.
    Blake2b(usize),
}

impl Sum {
    /// Returns the member of a family with this length; the lengths are checked where they are
    /// read.
    pub fn new(family: Family, bits: usize) -> Sum {
        let sha2 = match bits {
            224 => Algorithm::Sha224,
            256 => Algorithm::Sha256,
            384 => Algorithm::Sha384,
            _ => Algorithm::Sha512,
        };
        let sha3 = match bits {
            224 => Algorithm::Sha3_224,
            256 => Algorithm::Sha3_256,
            384 => Algorithm::Sha3_384,
            _ => Algorithm::Sha3_512,
        };
        Sum::Of(match family {
            Family::Bsd => Algorithm::Bsd,
            Family::Sysv => Algorithm::Sysv,
            Family::Crc => Algorithm::Crc,
            Family::Crc32b => Algorithm::Crc32b,
            Family::Md5 => Algorithm::Md5,
            Family::Sha1 => Algorithm::Sha1,
            Family::Sha224 => Algorithm::Sha224,
            Family::Sha256 => Algorithm::Sha256,
            Family::Sha384 => Algorithm::Sha384,
            Family::Sha512 => Algorithm::Sha512,
            Family::Sha2 => sha2,
            Family::Sha3 => sha3,
            Family::Sm3 => Algorithm::Sm3,
            Family::Blake2b => match bits / 8 {
                64 => Algorithm::Blake2b,
                32 => Algorithm::Blake2b256,
                bytes => return Sum::Blake2b(bytes),
            },
        })
    }

    /// Returns a hasher that has seen nothing.
    pub fn hasher(self, cpu: CpuFeatures) -> Hasher {
        match self {
            Sum::Of(algorithm) => Hasher::with_cpu(algorithm, cpu),
            Sum::Blake2b(bytes) => Hasher::blake2b(bytes),
        }
    }

    /// Returns the algorithm, where many files are best hashed at once in lanes, by the engine of
    /// `bc hash`. The old sums go with the bytes that were read, which it does not count.
    pub fn in_engine(self) -> Option<Algorithm> {
        match self {
            Sum::Of(Algorithm::Bsd | Algorithm::Sysv | Algorithm::Crc | Algorithm::Crc32b)
            | Sum::Blake2b(_) => None,
            Sum::Of(algorithm) => Some(algorithm),
        }
    }
}

/// Result for one file.
#[derive(Clone, Copy, Debug)]
pub struct FamilyResult {
    /// Its digest.
    pub digest: Digest,
    /// The bytes that were read; known for sums that go with them.
    pub bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_in_the_order_of_the_enum() {
        for (at, family) in Family::all().enumerate() {
            assert_eq!(family as usize, at);
            assert_eq!(Family::from_name(family.name().as_bytes()), Some(family));
            assert_eq!(Family::from_tag(family.tag().as_bytes()), Some(family));
            let Sum::Of(algorithm) = Sum::new(family, family.bits()) else {
                panic!("the longest one has a row");
            };
            assert_eq!(algorithm.digest_len() * 8, family.bits());
        }
    }
}
