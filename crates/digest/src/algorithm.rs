//! The algorithms: names, tags as other tools print them, digest lengths.

use std::fmt;
use std::str::FromStr;

/// A digest algorithm.
#[non_exhaustive]
#[derive(Copy, Clone, Eq, PartialEq, Hash, Ord, PartialOrd, Debug)]
pub enum Algorithm {
    /// MD5 (RFC 1321). Broken: collisions are made at will.
    Md5,
    /// SHA-1 (FIPS 180-4). Broken: chosen-prefix collisions are affordable.
    Sha1,
    /// SHA-224 (FIPS 180-4).
    Sha224,
    /// SHA-256 (FIPS 180-4).
    Sha256,
    /// SHA-384 (FIPS 180-4).
    Sha384,
    /// SHA-512 (FIPS 180-4).
    Sha512,
    /// SHA-512/256 (FIPS 180-4).
    Sha512_256,
    /// BLAKE2b with 512 bits (RFC 7693), as `b2sum` computes it.
    Blake2b,
    /// BLAKE2b with 256 bits (RFC 7693), as `b2sum -l 256` computes it.
    Blake2b256,
    /// BLAKE3 with 256 bits.
    Blake3,
    /// xxHash, 32 bit, seed 0.
    Xxh32,
    /// xxHash, 64 bit, seed 0.
    Xxh64,
    /// XXH3, 64 bit, seed 0 and the default secret.
    Xxh3,
    /// XXH3, 128 bit, seed 0 and the default secret.
    Xxh128,
    /// CRC-32C, Castagnoli's polynomial (RFC 3720), printed most significant byte first.
    Crc32c,
}

/// One row of the table below.
struct Entry {
    algorithm: Algorithm,
    name: &'static str,
    tag: &'static str,
    /// Further spellings, of either, that appear in the wild. Matched without regard to case.
    aliases: &'static [&'static str],
    digest_len: usize,
    cryptographic: bool,
}

/// In the order of the enum, so that `algorithm as usize` finds the row (a test checks it).
///
/// Tags are those of GNU coreutils' `cksum` (`MD5` … `SHA512`, `BLAKE2b`, `BLAKE2b-256`), of Perl's
/// `shasum` and the BSDs' `cksum` (`SHA512/256`), of `b3sum` (`BLAKE3`) and of `xxhsum` (`XXH32` …
/// `XXH128`). OpenSSL writes `SHA2-256` and `SHA2-512/256`, FreeBSD `SHA512t256`.
const TABLE: [Entry; 15] = [
    entry(Algorithm::Md5, "md5", "MD5", &[], 16, false),
    entry(Algorithm::Sha1, "sha1", "SHA1", &["sha-1"], 20, false),
    entry(
        Algorithm::Sha224,
        "sha224",
        "SHA224",
        &["sha-224", "sha2-224"],
        28,
        true,
    ),
    entry(
        Algorithm::Sha256,
        "sha256",
        "SHA256",
        &["sha-256", "sha2-256"],
        32,
        true,
    ),
    entry(
        Algorithm::Sha384,
        "sha384",
        "SHA384",
        &["sha-384", "sha2-384"],
        48,
        true,
    ),
    entry(
        Algorithm::Sha512,
        "sha512",
        "SHA512",
        &["sha-512", "sha2-512"],
        64,
        true,
    ),
    entry(
        Algorithm::Sha512_256,
        "sha512-256",
        "SHA512/256",
        &[
            "sha512_256",
            "sha512t256",
            "sha-512/256",
            "sha2-512/256",
            "sha2-512-256",
        ],
        32,
        true,
    ),
    entry(
        Algorithm::Blake2b,
        "blake2b",
        "BLAKE2b",
        &["blake2b-512", "blake2b512", "b2"],
        64,
        true,
    ),
    entry(
        Algorithm::Blake2b256,
        "blake2b-256",
        "BLAKE2b-256",
        &["blake2b256", "b2-256"],
        32,
        true,
    ),
    entry(
        Algorithm::Blake3,
        "blake3",
        "BLAKE3",
        &["b3", "blake3-256"],
        32,
        true,
    ),
    entry(Algorithm::Xxh32, "xxh32", "XXH32", &["xxhash32"], 4, false),
    entry(Algorithm::Xxh64, "xxh64", "XXH64", &["xxhash64"], 8, false),
    entry(
        Algorithm::Xxh3,
        "xxh3",
        "XXH3",
        &["xxh3-64", "xxh3_64"],
        8,
        false,
    ),
    entry(
        Algorithm::Xxh128,
        "xxh128",
        "XXH128",
        &["xxh3-128", "xxh3_128", "xxhash128"],
        16,
        false,
    ),
    entry(
        Algorithm::Crc32c,
        "crc32c",
        "CRC32C",
        &["crc-32c"],
        4,
        false,
    ),
];

const fn entry(
    algorithm: Algorithm,
    name: &'static str,
    tag: &'static str,
    aliases: &'static [&'static str],
    digest_len: usize,
    cryptographic: bool,
) -> Entry {
    Entry {
        algorithm,
        name,
        tag,
        aliases,
        digest_len,
        cryptographic,
    }
}

const ALL: [Algorithm; TABLE.len()] = {
    let mut all = [Algorithm::Md5; TABLE.len()];
    let mut i = 0;
    while i < TABLE.len() {
        all[i] = TABLE[i].algorithm;
        i += 1;
    }
    all
};

impl Algorithm {
    /// Every algorithm, in the order of the enum.
    pub const ALL: &'static [Algorithm] = &ALL;

    const fn entry(self) -> &'static Entry {
        &TABLE[self as usize]
    }

    /// The name on command lines and in our own formats, e.g. `sha256`, `sha512-256`.
    pub const fn name(self) -> &'static str {
        self.entry().name
    }

    /// The tag in BSD-style lines, `SHA256 (path) = …`, as coreutils, b3sum and xxhsum write it.
    pub const fn tag(self) -> &'static str {
        self.entry().tag
    }

    /// Finds the algorithm of a BSD-style tag. Besides [`Algorithm::tag`] this knows the spellings
    /// of OpenSSL (`SHA2-256`, `SHA2-512/256`), of the BSDs (`SHA512t256`) and `BLAKE2b-512`; case
    /// does not matter.
    pub fn from_tag(tag: &[u8]) -> Option<Algorithm> {
        let known = |s: &str| s.as_bytes().eq_ignore_ascii_case(tag);
        TABLE
            .iter()
            .find(|e| known(e.tag) || known(e.name) || e.aliases.iter().any(|a| known(a)))
            .map(|e| e.algorithm)
    }

    /// Length of the digest in bytes.
    pub const fn digest_len(self) -> usize {
        self.entry().digest_len
    }

    /// Whether equal digests prove equal content even against somebody who makes files on purpose.
    ///
    /// `false` for xxHash and CRC, which never claimed it, and for MD5 and SHA-1, whose collision
    /// resistance is broken. All of them still detect accidents.
    pub const fn is_cryptographic(self) -> bool {
        self.entry().cryptographic
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The error of parsing an [`Algorithm`]: its message lists the valid names.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnknownAlgorithm {
    given: String,
}

impl fmt::Display for UnknownAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown algorithm '{}'; known are", self.given)?;
        for (i, a) in Algorithm::ALL.iter().enumerate() {
            write!(f, "{} {a}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownAlgorithm {}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    /// Names, tags and aliases (`b2`, `b3`, `sha512/256`, `xxh3-128` …), in any case.
    fn from_str(s: &str) -> Result<Algorithm, UnknownAlgorithm> {
        Algorithm::from_tag(s.as_bytes()).ok_or_else(|| UnknownAlgorithm {
            given: s.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_in_the_order_of_the_enum() {
        for (i, a) in Algorithm::ALL.iter().enumerate() {
            assert_eq!(*a as usize, i);
        }
    }

    #[test]
    fn every_spelling_is_unambiguous() {
        let mut seen = std::collections::HashMap::new();
        for e in &TABLE {
            for s in [e.name, e.tag].iter().chain(e.aliases) {
                let old = seen.insert(s.to_ascii_lowercase(), e.algorithm);
                assert!(old.is_none_or(|o| o == e.algorithm), "{s} is ambiguous");
                assert_eq!(s.parse(), Ok(e.algorithm));
                assert_eq!(s.to_ascii_uppercase().parse(), Ok(e.algorithm));
            }
        }
    }

    #[test]
    fn tags_seen_in_the_wild() {
        for (tag, algorithm) in [
            ("SHA2-256", Algorithm::Sha256),
            ("SHA512-256", Algorithm::Sha512_256),
            ("SHA2-512/256", Algorithm::Sha512_256),
            ("SHA512t256", Algorithm::Sha512_256),
            ("BLAKE2b-512", Algorithm::Blake2b),
            ("BLAKE2b-256", Algorithm::Blake2b256),
            ("XXH3", Algorithm::Xxh3),
        ] {
            assert_eq!(Algorithm::from_tag(tag.as_bytes()), Some(algorithm));
        }
        for tag in ["", "SHA", "SHA25", "SHA2560", "BLAKE2b-128", "SHA512/224"] {
            assert_eq!(Algorithm::from_tag(tag.as_bytes()), None, "{tag}");
        }
    }

    #[test]
    fn the_error_lists_the_names() {
        let message = "sha3".parse::<Algorithm>().unwrap_err().to_string();
        assert!(message.starts_with("unknown algorithm 'sha3'; known are md5, sha1,"));
        for a in Algorithm::ALL {
            assert!(message.contains(a.name()));
        }
    }
}
