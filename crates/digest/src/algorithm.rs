//! The algorithms: names, tags as other tools print them, digest lengths.

use std::fmt;
use std::str::FromStr;

/// A digest algorithm.
#[non_exhaustive]
#[derive(Copy, Clone, Eq, PartialEq, Hash, Ord, PartialOrd, Debug)]
pub enum Algorithm {
    /// MD5 (RFC 1321). Broken: collisions are made at will.
    #[cfg(feature = "algorithms")]
    Md5,
    /// SHA-1 (FIPS 180-4). Broken: chosen-prefix collisions are affordable.
    #[cfg(feature = "algorithms")]
    Sha1,
    /// SHA-224 (FIPS 180-4).
    #[cfg(feature = "algorithms")]
    Sha224,
    /// SHA-256 (FIPS 180-4).
    #[cfg(feature = "algorithms")]
    Sha256,
    /// SHA-384 (FIPS 180-4).
    #[cfg(feature = "algorithms")]
    Sha384,
    /// SHA-512 (FIPS 180-4).
    #[cfg(feature = "algorithms")]
    Sha512,
    /// SHA-512/256 (FIPS 180-4).
    #[cfg(feature = "algorithms")]
    Sha512_256,
    /// SHA3-224 (FIPS 202).
    #[cfg(feature = "algorithms")]
    Sha3_224,
    /// SHA3-256 (FIPS 202).
    #[cfg(feature = "algorithms")]
    Sha3_256,
    /// SHA3-384 (FIPS 202).
    #[cfg(feature = "algorithms")]
    Sha3_384,
    /// SHA3-512 (FIPS 202).
    #[cfg(feature = "algorithms")]
    Sha3_512,
    /// SM3 (GB/T 32905-2016).
    #[cfg(feature = "algorithms")]
    Sm3,
    /// BLAKE2b with 512 bits (RFC 7693), as `b2sum` computes it.
    #[cfg(feature = "algorithms")]
    Blake2b,
    /// BLAKE2b with 256 bits (RFC 7693), as `b2sum -l 256` computes it.
    #[cfg(feature = "algorithms")]
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
    /// The CRC-32 of POSIX's `cksum`, which includes the length.
    Crc,
    /// The CRC-32 of zip, gzip, Ethernet and SFV files.
    Crc32b,
    /// The 16-bit sum of `sum -r`.
    Bsd,
    /// The 16-bit sum of `sum -s`.
    Sysv,
}

/// Format of a line without a tag, as the tools write it that the algorithm comes from.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
#[non_exhaustive]
pub enum Plain {
    /// Hexadecimal, two spaces, the name: `sha256sum` and most others.
    Hex,
    /// The digest as a decimal number, the bytes of the file, the name: `cksum`.
    Bytes,
    /// The digest as five decimal digits, then, at least five characters wide, blocks of 1024 bytes,
    /// and the name: `sum -r`.
    Blocks1024,
    /// The digest as a decimal number, blocks of 512 bytes, the name: `sum -s`.
    Blocks512,
}

/// One row of the table below.
struct AlgorithmRow {
    algorithm: Algorithm,
    name: &'static str,
    tags: &'static [&'static str],
    aliases: &'static [&'static str],
    digest_len: usize,
    plain: Plain,
}

/// Properties of each algorithm: its name, the tags of lines, other spellings that people type (in
/// any case), the bytes of its digest, and the format of its lines without a tag. In the order of
/// the enum, so that `algorithm as usize` finds the row (a test checks it).
///
/// The first tag is the one we write: those of GNU coreutils' `cksum` (`MD5` … `SHA512`, `BLAKE2b`,
/// `BLAKE2b-256`), of Perl's `shasum` and the BSDs' `cksum` (`SHA512/256`), of `b3sum` (`BLAKE3`) and
/// of `xxhsum` (`XXH32` … `XXH128`). OpenSSL 3 writes `SHA2-256`, `SHA2-512/256` and `BLAKE2B-512`,
/// FreeBSD `SHA512t256`.
#[rustfmt::skip]
const TABLE: &[AlgorithmRow] = &[
    #[cfg(feature = "algorithms")]
    row(Algorithm::Md5, "md5", &["MD5"], &[], 16),
    #[cfg(feature = "algorithms")]
    row(Algorithm::Sha1, "sha1", &["SHA1"], &["sha-1"], 20),
    #[cfg(feature = "algorithms")]
    row(Algorithm::Sha224, "sha224", &["SHA224", "SHA2-224"], &["sha-224"], 28),
    #[cfg(feature = "algorithms")]
    row(Algorithm::Sha256, "sha256", &["SHA256", "SHA2-256"], &["sha-256"], 32),
    #[cfg(feature = "algorithms")]
    row(Algorithm::Sha384, "sha384", &["SHA384", "SHA2-384"], &["sha-384"], 48),
    #[cfg(feature = "algorithms")]
    row(Algorithm::Sha512, "sha512", &["SHA512", "SHA2-512"], &["sha-512"], 64),
    #[cfg(feature = "algorithms")]
    row(Algorithm::Sha512_256, "sha512-256", &["SHA512/256", "SHA2-512/256", "SHA512-256", "SHA512t256"], &["sha512_256", "sha-512/256", "sha2-512-256"], 32),
    #[cfg(feature = "algorithms")]
    row(Algorithm::Sha3_224, "sha3-224", &["SHA3-224"], &["sha3_224"], 28),
    #[cfg(feature = "algorithms")]
    row(Algorithm::Sha3_256, "sha3-256", &["SHA3-256"], &["sha3_256"], 32),
    #[cfg(feature = "algorithms")]
    row(Algorithm::Sha3_384, "sha3-384", &["SHA3-384"], &["sha3_384"], 48),
    #[cfg(feature = "algorithms")]
    row(Algorithm::Sha3_512, "sha3-512", &["SHA3-512"], &["sha3_512"], 64),
    #[cfg(feature = "algorithms")]
    row(Algorithm::Sm3, "sm3", &["SM3"], &[], 32),
    #[cfg(feature = "algorithms")]
    row(Algorithm::Blake2b, "blake2b", &["BLAKE2b", "BLAKE2b-512", "BLAKE2B-512", "BLAKE2b512"], &["b2"], 64),
    #[cfg(feature = "algorithms")]
    row(Algorithm::Blake2b256, "blake2b-256", &["BLAKE2b-256", "BLAKE2B-256"], &["blake2b256", "b2-256"], 32),
    row(Algorithm::Blake3, "blake3", &["BLAKE3"], &["b3", "blake3-256"], 32),
    row(Algorithm::Xxh32, "xxh32", &["XXH32"], &["xxhash32"], 4),
    row(Algorithm::Xxh64, "xxh64", &["XXH64"], &["xxhash64"], 8),
    row(Algorithm::Xxh3, "xxh3", &["XXH3", "XXH3_64"], &["xxh3-64"], 8),
    row(Algorithm::Xxh128, "xxh128", &["XXH128", "XXH3_128"], &["xxh3-128", "xxhash128"], 16),
    row(Algorithm::Crc32c, "crc32c", &["CRC32C"], &["crc-32c"], 4),
    row(Algorithm::Crc, "crc", &["CRC"], &["cksum"], 4).plain(Plain::Bytes),
    row(Algorithm::Crc32b, "crc32b", &["CRC32B", "CRC32"], &["crc-32"], 4).plain(Plain::Bytes),
    row(Algorithm::Bsd, "bsd", &["BSD"], &[], 2).plain(Plain::Blocks1024),
    row(Algorithm::Sysv, "sysv", &["SYSV"], &[], 2).plain(Plain::Blocks512),
];

const fn row(
    algorithm: Algorithm,
    name: &'static str,
    tags: &'static [&'static str],
    aliases: &'static [&'static str],
    digest_len: usize,
) -> AlgorithmRow {
    AlgorithmRow {
        algorithm,
        name,
        tags,
        aliases,
        digest_len,
        plain: Plain::Hex,
    }
}

impl AlgorithmRow {
    const fn plain(mut self, plain: Plain) -> AlgorithmRow {
        self.plain = plain;
        self
    }
}

const ALL: [Algorithm; TABLE.len()] = {
    let mut all = [Algorithm::Blake3; TABLE.len()];
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

    const fn row(self) -> &'static AlgorithmRow {
        &TABLE[self as usize]
    }

    /// Returns the name in our own formats and for users to ask for, e.g. `sha256`, `sha512-256`.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns the algorithm of exactly this [`name`](Algorithm::name), as in our own formats.
    /// Parsing takes more.
    pub fn from_name(name: &str) -> Option<Algorithm> {
        let row = TABLE.iter().find(|row| row.name == name);
        row.map(|row| row.algorithm)
    }

    /// Returns the tag in BSD-style lines, `SHA256 (path) = …`, as coreutils, b3sum and xxhsum
    /// write it.
    pub const fn tag(self) -> &'static str {
        self.row().tags[0]
    }

    /// Returns every tag of this algorithm that tools write, [`tag`](Algorithm::tag) first: those
    /// of OpenSSL (`SHA2-256`, `SHA2-512/256`) and of the BSDs (`SHA512t256`) as well.
    pub const fn tags(self) -> &'static [&'static str] {
        self.row().tags
    }

    /// Returns the algorithm of one of the [`tags`](Algorithm::tags), exactly as it is written.
    pub fn from_tag(tag: &str) -> Option<Algorithm> {
        let row = TABLE.iter().find(|row| row.tags.contains(&tag));
        row.map(|row| row.algorithm)
    }

    /// Returns the length of the digest in bytes.
    pub const fn digest_len(self) -> usize {
        self.row().digest_len
    }

    /// Returns the format of a line without a tag. Where that is not [`Plain::Hex`], such a line
    /// can be neither distinguished from other text nor checked, and no digest of its length is
    /// ever taken for one of this algorithm's.
    pub const fn plain(self) -> Plain {
        self.row().plain
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

    /// Parses names, tags and aliases (`b2`, `b3`, `sha512/256`, `xxh3-128` …), in any case.
    fn from_str(s: &str) -> Result<Algorithm, UnknownAlgorithm> {
        let is_it = |spelling: &str| spelling.eq_ignore_ascii_case(s);
        let known = |row: &&AlgorithmRow| {
            is_it(row.name)
                || row.tags.iter().any(|t| is_it(t))
                || row.aliases.iter().any(|a| is_it(a))
        };
        let row = TABLE.iter().find(known);
        row.map(|row| row.algorithm)
            .ok_or_else(|| UnknownAlgorithm {
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
        for e in TABLE {
            for s in [e.name].iter().chain(e.tags).chain(e.aliases) {
                let old = seen.insert(s.to_ascii_lowercase(), e.algorithm);
                assert!(old.is_none_or(|o| o == e.algorithm), "{s} is ambiguous");
                assert_eq!(s.parse(), Ok(e.algorithm));
                assert_eq!(s.to_ascii_uppercase().parse(), Ok(e.algorithm));
            }
        }
    }

    #[test]
    fn names_and_tags_are_exact_and_spellings_are_not() {
        for &algorithm in Algorithm::ALL {
            assert_eq!(Algorithm::from_name(algorithm.name()), Some(algorithm));
            for tag in algorithm.tags() {
                assert_eq!(Algorithm::from_tag(tag), Some(algorithm));
                // Or a line of plain hexadecimal could be taken for a tagged one.
                assert!(!tag.bytes().all(|b| b.is_ascii_hexdigit()));
            }
        }
        assert_eq!(Algorithm::from_name("SHA256"), None);
        assert_eq!(Algorithm::from_tag("b3"), None);
        for tag in ["", "SHA", "SHA25", "SHA2560", "BLAKE2b-128", "SHA512/224"] {
            assert_eq!(Algorithm::from_tag(tag), None, "{tag}");
            assert!(tag.parse::<Algorithm>().is_err(), "{tag}");
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
