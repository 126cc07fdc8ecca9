//! Names of algorithms in manifests, beyond the table of [`bc_digest`]: names that it does not
//! know, and lengths of BLAKE2b that have no name. This crate computes no digest of a file.

use std::borrow::Cow;

use bc_digest::Algorithm;

/// An algorithm's name as `bc` writes it, e.g. `sha256`: static for the known ones.
pub type Name = Cow<'static, str>;

/// Returns the length in bytes of an algorithm's digests, if the name is one that `bc` knows.
pub(crate) fn digest_len(name: &str) -> Option<usize> {
    Algorithm::from_name(name).map(Algorithm::digest_len)
}

/// Returns a name without allocation where it is a known one.
pub(crate) fn intern(name: &str) -> Name {
    Algorithm::from_name(name).map_or_else(
        || Cow::Owned(name.to_owned()),
        |known| Cow::Borrowed(known.name()),
    )
}

/// Byte order in which a tagged line writes its digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DigestOrder {
    Canonical,
    Reversed,
}

/// Meaning of a tag.
#[derive(Debug, PartialEq)]
pub(crate) struct TagMeaning {
    pub(crate) algorithm: Name,
    /// Length of its digests in bytes.
    pub(crate) digest_len: usize,
    pub(crate) order: DigestOrder,
}

/// Returns the meaning of a tag. The lengths of BLAKE2b that we have no name for (`BLAKE2b-128`)
/// come out as `blake2b-128`.
pub(crate) fn by_tag(tag: &[u8]) -> Option<TagMeaning> {
    let tag = std::str::from_utf8(tag).ok()?;
    // xxhsum --little-endian marks its tags so.
    let (tag, order) = match tag.strip_suffix("_LE") {
        Some(short) if short.starts_with("XXH") => (short, DigestOrder::Reversed),
        _ => (tag, DigestOrder::Canonical),
    };
    if let Some(known) = Algorithm::from_tag(tag) {
        return Some(TagMeaning {
            algorithm: Cow::Borrowed(known.name()),
            digest_len: known.digest_len(),
            order,
        });
    }
    let bits = tag
        .strip_prefix("BLAKE2b-")
        .filter(|bits| !bits.starts_with(['0', '+']))?;
    let bits: usize = bits.parse().ok()?;
    (bits.is_multiple_of(8) && (8..=512).contains(&bits)).then(|| TagMeaning {
        algorithm: Cow::Owned(format!("blake2b-{bits}")),
        digest_len: bits / 8,
        order: DigestOrder::Canonical,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_tags() {
        assert_eq!(by_tag(b"BLAKE2b-128").unwrap().algorithm, "blake2b-128");
        assert_eq!(by_tag(b"XXH64_LE").unwrap().order, DigestOrder::Reversed);
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
