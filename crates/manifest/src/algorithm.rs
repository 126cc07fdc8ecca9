//! The algorithms that manifests name: their names with us, their tags in the BSD style and
//! the length of their digests. This crate computes none of them.

use std::borrow::Cow;

/// An algorithm's name as `bc` writes it, e.g. `sha256`: static for the known ones.
pub type Name = Cow<'static, str>;

/// What a manifest can say about an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Known {
    /// Our name, also the key in JSON and the column in CSV.
    pub name: &'static str,
    /// Tags seen in the wild; the first is the one that the usual checksum tools write.
    pub tags: &'static [&'static str],
    /// Length of the digest in bytes.
    pub len: usize,
}

/// Every algorithm the readers know. Tags: coreutils 9 (`MD5` … `BLAKE2b`, `BLAKE2b-256`),
/// `openssl dgst` 3 (`SHA2-256`, `BLAKE2B-512`), FreeBSD's sha512t256 (`SHA512t256`),
/// b3sum and xxhsum.
pub const KNOWN: &[Known] = &[
    known("md5", &["MD5"], 16),
    known("sha1", &["SHA1"], 20),
    known("sha224", &["SHA224", "SHA2-224"], 28),
    known("sha256", &["SHA256", "SHA2-256"], 32),
    known("sha384", &["SHA384", "SHA2-384"], 48),
    known("sha512", &["SHA512", "SHA2-512"], 64),
    known(
        "sha512-256",
        &["SHA512/256", "SHA2-512/256", "SHA512-256", "SHA512t256"],
        32,
    ),
    known(
        "blake2b",
        &["BLAKE2b", "BLAKE2b-512", "BLAKE2B-512", "BLAKE2b512"],
        64,
    ),
    known("blake2b-256", &["BLAKE2b-256", "BLAKE2B-256"], 32),
    known("blake3", &["BLAKE3"], 32),
    known("xxh32", &["XXH32"], 4),
    known("xxh64", &["XXH64"], 8),
    known("xxh3", &["XXH3", "XXH3_64"], 8),
    known("xxh128", &["XXH128", "XXH3_128"], 16),
    known("crc32c", &["CRC32C"], 4),
];

const fn known(name: &'static str, tags: &'static [&'static str], len: usize) -> Known {
    Known { name, tags, len }
}

/// The algorithm of this name (exactly, as in [`Known::name`]).
pub fn by_name(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.name == name)
}

/// A name without allocation where it is a known one.
pub(crate) fn intern(name: &str) -> Name {
    by_name(name).map_or_else(
        || Cow::Owned(name.to_owned()),
        |known| Cow::Borrowed(known.name),
    )
}

/// Byte order in which a tagged line writes its digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Canonical,
    Reversed,
}

/// What a tag stands for: name, digest length in bytes, byte order. The lengths of BLAKE2b
/// that we have no name for (`BLAKE2b-128`) come out as `blake2b-128`.
pub(crate) fn by_tag(tag: &[u8]) -> Option<(Name, usize, Order)> {
    let tag = std::str::from_utf8(tag).ok()?;
    // xxhsum --little-endian marks its tags so.
    let (tag, order) = match tag.strip_suffix("_LE") {
        Some(short) if short.starts_with("XXH") => (short, Order::Reversed),
        _ => (tag, Order::Canonical),
    };
    if let Some(known) = KNOWN.iter().find(|known| known.tags.contains(&tag)) {
        return Some((Cow::Borrowed(known.name), known.len, order));
    }
    let bits = tag
        .strip_prefix("BLAKE2b-")
        .filter(|bits| !bits.starts_with(['0', '+']))?;
    let bits: usize = bits.parse().ok()?;
    (bits.is_multiple_of(8) && (8..=512).contains(&bits)).then(|| {
        (
            Cow::Owned(format!("blake2b-{bits}")),
            bits / 8,
            Order::Canonical,
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_unique_and_lead_to_their_algorithm() {
        let mut all: Vec<&str> = KNOWN.iter().flat_map(|k| k.tags.iter().copied()).collect();
        all.sort_unstable();
        let count = all.len();
        all.dedup();
        assert_eq!(all.len(), count);
        for known in KNOWN {
            for tag in known.tags {
                let found = by_tag(tag.as_bytes()).unwrap();
                assert_eq!(
                    found,
                    (Cow::Borrowed(known.name), known.len, Order::Canonical)
                );
                // Or a line of plain hexadecimal could be taken for a tagged one.
                assert!(!tag.bytes().all(|b| b.is_ascii_hexdigit()));
            }
        }
    }

    #[test]
    fn odd_tags() {
        assert_eq!(by_tag(b"BLAKE2b-128").unwrap().0, "blake2b-128");
        assert_eq!(by_tag(b"XXH64_LE").unwrap().2, Order::Reversed);
        for bad in [
            "BLAKE2b-",
            "BLAKE2b-0",
            "BLAKE2b-12",
            "BLAKE2b-520",
            "BLAKE2b-+8",
            "BLAKE2b-08",
            "sha256",
            "SHA256_LE",
            "",
        ] {
            assert_eq!(by_tag(bad.as_bytes()), None, "{bad}");
        }
    }
}
