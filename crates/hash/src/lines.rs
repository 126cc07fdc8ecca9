//! Paths and digests that a line of a checksum file asks for, and the algorithm of its digest: from
//! the line's own tag, from the caller, from the file's name, or from the digest's length.
//!
//! ```
//! use std::path::Path;
//!
//! use bc_digest::Algorithm;
//! use bc_hash::lines::Hint;
//!
//! let hint = Hint::new(None, Path::new("disk.b3"));
//! assert_eq!(hint.resolve(32), Some(Algorithm::Blake3));
//! assert!(Hint::new(None, Path::new("list")).is_guess(32));
//! ```

use std::path::Path;

use bc_digest::{Algorithm, Plain};
use bc_manifest::{Failure, Record};

use crate::FileDigests;

/// Sources of a manifest's algorithm other than tags.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hint {
    /// Given by the caller: decides, whatever the name or the length.
    pub explicit: Option<Algorithm>,
    /// Derived from the manifest's name.
    pub name: Option<Algorithm>,
}

impl Hint {
    /// Makes the hint for a manifest called `path`.
    pub fn new(explicit: Option<Algorithm>, path: impl AsRef<Path>) -> Hint {
        Hint {
            explicit,
            name: by_name(path.as_ref()),
        }
    }

    /// Returns the algorithm of an untagged digest of `length` bytes; None if the line cannot be
    /// one (so it is improperly formatted).
    pub fn resolve(self, length: usize) -> Option<Algorithm> {
        if let Some(algorithm) = self.explicit {
            return (algorithm.digest_len() == length).then_some(algorithm);
        }
        // A name that does not fit the length is just a name.
        self.name
            .filter(|a| a.digest_len() == length)
            .or_else(|| by_length(length))
    }

    /// True if [`resolve`](Hint::resolve) would go by the length alone, which several algorithms
    /// share.
    pub fn is_guess(self, length: usize) -> bool {
        let by_name = self.name.is_some_and(|a| a.digest_len() == length);
        self.explicit.is_none() && !by_name
    }
}

/// Returns the algorithm from a name: `SHA256SUMS`, `tree.xxh128`, `sha1sum.txt`: the extension,
/// else the start of the name up to "sum".
fn by_name(path: &Path) -> Option<Algorithm> {
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let stem = name.strip_suffix(".txt").unwrap_or(&name);
    if let Some((_, extension)) = stem.rsplit_once('.') {
        let extension = extension.trim_end_matches("sums").trim_end_matches("sum");
        if let Ok(algorithm) = extension.parse() {
            return Some(algorithm);
        }
    }
    let start = &stem[..stem.find("sum")?];
    start.trim_end_matches(['-', '_']).parse().ok()
}

/// Content of a line.
#[derive(Clone, Debug)]
pub enum Line {
    /// A path and its digests.
    Wanted(FileDigests),
    /// A path and one digest, whose algorithm follows from nothing but its length.
    Guessed(FileDigests),
    /// A file that had no digest, and why: nothing is known of its content.
    Unread(Vec<u8>, Failure),
    /// An improperly formatted line, by number.
    Improper(u64),
}

/// Assigns each digest of a record its algorithm.
pub fn resolve(record: Record, hint: Hint) -> Line {
    if record.digests.is_empty() {
        return match record.error {
            Some(failure) => Line::Unread(record.path, failure),
            None => Line::Improper(record.line),
        };
    }
    let mut digests = Vec::with_capacity(record.digests.len());
    for (name, digest) in &record.digests {
        let len = digest.as_bytes().len();
        let algorithm: Option<Algorithm> = match name {
            Some(name) => name
                .parse()
                .ok()
                .filter(|a: &Algorithm| a.digest_len() == len),
            None => hint.resolve(len),
        };
        match algorithm {
            Some(algorithm) => digests.push((algorithm, *digest)),
            None => return Line::Improper(record.line),
        }
    }
    let wanted = FileDigests {
        path: record.path,
        digests,
    };
    match record.digests.as_slice() {
        [(None, digest)] if hint.is_guess(digest.as_bytes().len()) => Line::Guessed(wanted),
        _ => Line::Wanted(wanted),
    }
}

/// Returns the algorithm that digests of this length usually are.
fn by_length(length: usize) -> Option<Algorithm> {
    Some(match length {
        4 => Algorithm::Crc32c,
        8 => Algorithm::Xxh64,
        16 => Algorithm::Md5,
        20 => Algorithm::Sha1,
        28 => Algorithm::Sha224,
        32 => Algorithm::Sha256,
        48 => Algorithm::Sha384,
        64 => Algorithm::Sha512,
        _ => return None,
    })
}

/// Returns the other algorithms with digests as long as `algorithm`'s, for a hint when nothing
/// matches; without those whose own lines look different.
pub fn same_length(algorithm: Algorithm) -> Vec<Algorithm> {
    let same = |a: &&Algorithm| {
        let alike = a.digest_len() == algorithm.digest_len() && a.plain() == Plain::Hex;
        **a != algorithm && alike
    };
    Algorithm::ALL.iter().filter(same).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_lengths() {
        for (name, length, algorithm) in [
            ("SHA256SUMS", 32, Algorithm::Sha256),
            ("B2SUMS", 64, Algorithm::Blake2b),
            ("md5sum.txt", 16, Algorithm::Md5),
            ("tree.xxh128", 16, Algorithm::Xxh128),
            ("tree.blake3", 32, Algorithm::Blake3),
            ("disk.b3", 32, Algorithm::Blake3),
            ("x.sha512sum", 64, Algorithm::Sha512),
            ("tree.xxh128", 32, Algorithm::Sha256),
            ("manifest", 16, Algorithm::Md5),
            ("manifest", 28, Algorithm::Sha224),
        ] {
            let hint = Hint::new(None, Path::new(name));
            assert_eq!(hint.resolve(length), Some(algorithm), "{name} {length}");
        }
        let explicit = Hint::new(Some(Algorithm::Xxh128), Path::new("MD5SUMS"));
        assert_eq!(explicit.resolve(16), Some(Algorithm::Xxh128));
        assert_eq!(explicit.resolve(32), None);
        assert_eq!(Hint::default().resolve(5), None);
    }

    #[test]
    fn alternatives() {
        assert!(same_length(Algorithm::Sha256).contains(&Algorithm::Blake3));
        assert!(!same_length(Algorithm::Sha256).contains(&Algorithm::Sha256));
    }
}
