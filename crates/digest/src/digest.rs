//! The result of hashing: up to 64 bytes, compared and printed as one value.

use std::fmt;

/// A digest: 1 to 64 bytes. Ordered bytewise; prints as lower-case hexadecimal.
///
/// The bytes are in the order in which they print: for xxHash and CRC, the canonical big-endian one.
#[derive(Copy, Clone, Eq, PartialEq, Hash, Ord, PartialOrd)]
pub struct Digest {
    // Zero beyond `len`, so that the derived comparisons see what the bytes say.
    bytes: [u8; 64],
    len: u8,
}

impl Digest {
    /// A digest of these bytes.
    ///
    /// # Panics
    ///
    /// If there are none, or more than 64.
    #[inline]
    pub fn new(bytes: &[u8]) -> Digest {
        assert!(
            (1..=64).contains(&bytes.len()),
            "a digest has 1 to 64 bytes, not {}",
            bytes.len()
        );
        let mut digest = Digest {
            bytes: [0; 64],
            len: bytes.len() as u8,
        };
        digest.bytes[..bytes.len()].copy_from_slice(bytes);
        digest
    }

    /// The first `len` bytes of a buffer whose rest may hold anything.
    pub(crate) fn truncated(mut bytes: [u8; 64], len: usize) -> Digest {
        bytes[len..].fill(0);
        Digest {
            bytes,
            len: len as u8,
        }
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Parses hexadecimal of either case: 2 to 128 digits, an even number, nothing else.
    pub fn from_hex(hex: &[u8]) -> Option<Digest> {
        if hex.is_empty() || hex.len() > 128 || !hex.len().is_multiple_of(2) {
            return None;
        }
        let mut digest = Digest {
            bytes: [0; 64],
            len: (hex.len() / 2) as u8,
        };
        for (byte, pair) in digest.bytes.iter_mut().zip(hex.chunks_exact(2)) {
            *byte = (nibble(pair[0])? << 4) | nibble(pair[1])?;
        }
        Some(digest)
    }

    /// Appends the lower-case hexadecimal digits.
    pub fn write_hex(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + 2 * usize::from(self.len), 0);
        for (pair, byte) in out[start..].chunks_exact_mut(2).zip(self.as_bytes()) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

const fn nibble(c: u8) -> Option<u8> {
    match c {
        b'0'..=b'9' => Some(c - b'0'),
        b'a'..=b'f' => Some(c - b'a' + 10),
        b'A'..=b'F' => Some(c - b'A' + 10),
        _ => None,
    }
}

impl AsRef<[u8]> for Digest {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.as_bytes() {
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn hex_round_trip(bytes in proptest::collection::vec(any::<u8>(), 1..=64)) {
            let digest = Digest::new(&bytes);
            let mut hex = Vec::new();
            digest.write_hex(&mut hex);
            prop_assert_eq!(digest.to_string().into_bytes(), hex.clone());
            prop_assert_eq!(Digest::from_hex(&hex), Some(digest));
            prop_assert_eq!(Digest::from_hex(&hex.to_ascii_uppercase()), Some(digest));
        }

        #[test]
        fn order_is_that_of_the_bytes(
            a in proptest::collection::vec(0u8..3, 1..=4),
            b in proptest::collection::vec(0u8..3, 1..=4),
        ) {
            prop_assert_eq!(Digest::new(&a).cmp(&Digest::new(&b)), a.cmp(&b));
        }
    }

    #[test]
    fn malformed_hex() {
        for hex in ["", "a", "abc", "0g", " 0", "0x12", "-1"] {
            assert_eq!(Digest::from_hex(hex.as_bytes()), None, "{hex:?}");
        }
        assert_eq!(Digest::from_hex(&[b'0'; 130]), None);
    }

    #[test]
    #[should_panic(expected = "1 to 64 bytes")]
    fn no_empty_digest() {
        Digest::new(&[]);
    }
}
