//! BLAKE3 of one message in parts that may be hashed at the same time: the
//! inner nodes of its tree (section 2.1 of the BLAKE3 paper).
//!
//! ```
//! use bc_digest::{Algorithm, blake3_tree, hash};
//!
//! let message = vec![7; 3 * 65536 + 5];
//! let parts: Vec<_> = message
//!     .chunks(65536)
//!     .enumerate()
//!     .map(|(i, part)| blake3_tree::subtree(i as u64 * 65536, part))
//!     .collect();
//! assert_eq!(blake3_tree::root(&parts), hash(Algorithm::Blake3, &message));
//! ```

use blake3::hazmat::{HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};

use crate::Digest;

/// The chaining value of a part that is not the whole message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subtree([u8; 32]);

impl Subtree {
    /// Returns the value's bytes, to be kept.
    pub fn to_bytes(self) -> [u8; 32] {
        self.0
    }

    /// Restores a value that was kept.
    pub fn from_bytes(bytes: [u8; 32]) -> Subtree {
        Subtree(bytes)
    }
}

/// Hashes the part at `offset`. All parts of a message have the same length, a
/// power of two of at least 1024 bytes, except the last, which may be shorter
/// but not empty.
///
/// # Panics
/// If `part` is empty, or `offset` is no multiple of 1024 or of the part's
/// length rounded up to a power of two.
pub fn subtree(offset: u64, part: &[u8]) -> Subtree {
    let mut hasher = blake3::Hasher::new();
    hasher.set_input_offset(offset);
    hasher.update(part);
    Subtree(hasher.finalize_non_root())
}

/// Returns the digest of the message with these parts, in order.
///
/// # Panics
/// With fewer than two parts: a message of one part has no inner node, so
/// [`hash`](crate::hash) it as it is.
pub fn root(parts: &[Subtree]) -> Digest {
    assert!(parts.len() >= 2, "one part is the whole message");
    let (left, right) = parts.split_at(left_parts(parts.len()));
    Digest::new(merge_subtrees_root(&node(left), &node(right), Mode::Hash).as_bytes())
}

fn node(parts: &[Subtree]) -> [u8; 32] {
    if let [part] = parts {
        return part.0;
    }
    let (left, right) = parts.split_at(left_parts(parts.len()));
    merge_subtrees_non_root(&node(left), &node(right), Mode::Hash)
}

/// Returns the largest power of two below `parts`: left subtrees are always full.
fn left_parts(parts: usize) -> usize {
    parts.next_power_of_two() / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Algorithm, hash};

    #[test]
    fn any_number_of_parts_gives_the_digest_of_the_whole() {
        let message: Vec<u8> = (0..64 * 1024 + 1).map(|i| (i % 251) as u8).collect();
        for part in [1024, 2048, 8192] {
            for length in (part + 1..message.len())
                .step_by(509)
                .chain([2 * part, 8 * part])
            {
                let message = &message[..length];
                let parts: Vec<Subtree> = message
                    .chunks(part)
                    .enumerate()
                    .map(|(i, bytes)| subtree((i * part) as u64, bytes))
                    .collect();
                assert_eq!(
                    root(&parts),
                    hash(Algorithm::Blake3, message),
                    "{length} in {part}"
                );
            }
        }
    }
}
