//! The result of hashing: up to 64 bytes, compared and printed as one value; and hexadecimal digits,
//! decoded sixteen bytes at a time.

use std::fmt;
use std::str::FromStr;

/// A digest: 1 to 64 bytes. Ordered bytewise; prints as lower-case hexadecimal.
///
/// The bytes are in the order in which they print: for xxHash and CRC, the canonical big-endian one.
///
/// ```
/// # use bc_digest::{Algorithm, Digest, hash_reader};
/// let digest = hash_reader(Algorithm::Sha256, &b"abc"[..])?;
/// let bytes: [u8; 32] = digest.try_into()?; // as other crates have it
/// assert_eq!(Digest::try_from(&bytes[..])?, digest);
/// assert_eq!(digest.to_string().parse(), Ok(digest));
/// assert!(Digest::try_from(&[][..]).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Copy, Clone, Eq, PartialEq, Hash, Ord, PartialOrd)]
pub struct Digest {
    // Zero beyond `len`, so that the derived comparisons see what the bytes say.
    bytes: [u8; Digest::MAX_LEN],
    len: u8,
}

impl Digest {
    /// Bytes of the longest one that an algorithm has.
    pub const MAX_LEN: usize = 64;

    /// Returns a digest of these bytes, for callers that know how many there are; others use
    /// [`from_slice`](Digest::from_slice) or `Digest::try_from`.
    ///
    /// # Panics
    ///
    /// If there are none, or more than 64.
    #[inline]
    pub fn new(bytes: &[u8]) -> Digest {
        match Digest::from_slice(bytes) {
            Some(digest) => digest,
            None => panic!("a digest has 1 to 64 bytes, not {}", bytes.len()),
        }
    }

    /// Returns a digest of these bytes; `None` if there are none, or more than 64.
    #[inline]
    pub fn from_slice(bytes: &[u8]) -> Option<Digest> {
        if bytes.is_empty() {
            return None;
        }
        let mut digest = Digest {
            bytes: [0; Digest::MAX_LEN],
            len: bytes.len() as u8,
        };
        digest.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(digest)
    }

    /// Returns the first `len` bytes of a buffer whose rest may contain anything.
    #[cfg(feature = "algorithms")]
    pub(crate) fn truncated(mut bytes: [u8; Digest::MAX_LEN], len: usize) -> Digest {
        bytes[len..].fill(0);
        Digest {
            bytes,
            len: len as u8,
        }
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Parses hexadecimal of either case: 2 to 128 digits, an even number, nothing else.
    pub fn from_hex(hex: &[u8]) -> Option<Digest> {
        Digest::from_digits(hex, HexCase::Any)
    }

    /// Parses like [`from_hex`](Digest::from_hex), but refuses upper case.
    pub fn from_lower_hex(hex: &[u8]) -> Option<Digest> {
        Digest::from_digits(hex, HexCase::Lower)
    }

    /// True if [`from_lower_hex`](Digest::from_lower_hex) would take this.
    pub fn is_lower_hex(hex: &[u8]) -> bool {
        hex.len() <= 2 * Digest::MAX_LEN && is_lower_hex(hex)
    }

    fn from_digits(hex: &[u8], case: HexCase) -> Option<Digest> {
        let bytes = decode_hex(hex, case)?;
        let len = (hex.len() / 2) as u8;
        Some(Digest { bytes, len })
    }

    /// Appends the lower-case hexadecimal digits.
    pub fn write_hex(&self, out: &mut Vec<u8>) {
        push_hex(out, self.as_bytes());
    }

    /// Reverses the bytes, as tools print them that take the number for little-endian.
    pub fn reversed(mut self) -> Digest {
        self.bytes[..usize::from(self.len)].reverse();
        self
    }
}

/// Error for bytes or digits that are no digest.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct InvalidDigest(&'static str);

impl fmt::Display for InvalidDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for InvalidDigest {}

impl TryFrom<&[u8]> for Digest {
    type Error = InvalidDigest;

    /// Takes 1 to 64 bytes, as any other program has them.
    fn try_from(bytes: &[u8]) -> Result<Digest, InvalidDigest> {
        Digest::from_slice(bytes).ok_or(InvalidDigest("a digest has 1 to 64 bytes"))
    }
}

impl<const LEN: usize> TryFrom<Digest> for [u8; LEN] {
    type Error = InvalidDigest;

    /// Returns the bytes, if there are as many.
    fn try_from(digest: Digest) -> Result<[u8; LEN], InvalidDigest> {
        let bytes = <[u8; LEN]>::try_from(digest.as_bytes());
        bytes.map_err(|_| InvalidDigest("the digest has another length"))
    }
}

impl FromStr for Digest {
    type Err = InvalidDigest;

    /// Parses like [`from_hex`](Digest::from_hex).
    fn from_str(hex: &str) -> Result<Digest, InvalidDigest> {
        let digest = Digest::from_hex(hex.as_bytes());
        digest.ok_or(InvalidDigest("not 2 to 128 hexadecimal digits, in pairs"))
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

/// Letters that count as digits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HexCase {
    Any,
    Lower,
}

/// Bytes decoded at once.
const HEX_BLOCK: usize = 16;

/// Appends the lower-case digits of any bytes.
pub fn push_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let at = out.len();
    out.resize(at + bytes.len() * 2, 0);
    for (pair, byte) in out[at..].chunks_exact_mut(2).zip(bytes) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
}

/// True if these are the lower-case digits of any bytes.
fn is_lower_hex(hex: &[u8]) -> bool {
    let is_digit = |byte: u8| byte.wrapping_sub(b'0') < 10 || byte.wrapping_sub(b'a') < 6;
    // Without an early exit, which makes it a few vector instructions.
    let all = hex.iter().fold(true, |all, &byte| all & is_digit(byte));
    all && !hex.is_empty() && hex.len().is_multiple_of(2)
}

/// Returns the bytes that the digits encode, zero behind the last; `None` if a character is no
/// digit, or if there are none, an odd number of them or too many.
fn decode_hex<const MAX: usize>(hex: &[u8], case: HexCase) -> Option<[u8; MAX]> {
    // Whole blocks: what is left of the last one has room.
    const { assert!(MAX.is_multiple_of(HEX_BLOCK)) };
    if hex.is_empty() || !hex.len().is_multiple_of(2) || hex.len() > 2 * MAX {
        return None;
    }
    let mut out = [0; MAX];
    let mut right = true;
    let mut blocks = hex.chunks_exact(2 * HEX_BLOCK);
    let mut bytes = out.chunks_exact_mut(HEX_BLOCK);
    for (block, bytes) in blocks.by_ref().zip(bytes.by_ref()) {
        right &= decode_hex_block(block, case, bytes);
    }
    let rest = blocks.remainder();
    if let (false, Some(bytes)) = (rest.is_empty(), bytes.next()) {
        // Bytes behind the digest are zero.
        let mut padded = [b'0'; 2 * HEX_BLOCK];
        padded[..rest.len()].copy_from_slice(rest);
        right &= decode_hex_block(&padded, case, bytes);
    }
    right.then_some(out)
}

/// Writes the [`HEX_BLOCK`] bytes that twice as many digits encode; `false` if a character is no digit.
/// Loops of known length without an exit, which become a few vector instructions.
fn decode_hex_block(digits: &[u8], case: HexCase, bytes: &mut [u8]) -> bool {
    let (Some(digits), Some(bytes)) = (
        digits.first_chunk::<{ 2 * HEX_BLOCK }>(),
        bytes.first_chunk_mut::<HEX_BLOCK>(),
    ) else {
        return false;
    };
    let upper = match case {
        HexCase::Any => 0x20,
        HexCase::Lower => 0,
    };
    let mut values = [0; 2 * HEX_BLOCK];
    let mut wrong = 0;
    for (value, &byte) in values.iter_mut().zip(digits) {
        let number = byte.wrapping_sub(b'0');
        let letter = (byte | upper).wrapping_sub(b'a');
        *value = if number < 10 {
            number
        } else {
            letter.wrapping_add(10)
        };
        wrong |= u8::from(number >= 10) & u8::from(letter >= 6);
    }
    for (byte, pair) in bytes.iter_mut().zip(values.chunks_exact(2)) {
        *byte = pair[0] << 4 | pair[1];
    }
    wrong == 0
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

    #[test]
    fn what_is_no_digest_is_an_error_that_says_so() {
        let long = [7; 65];
        for bytes in [&[][..], &long] {
            let error = Digest::try_from(bytes).unwrap_err();
            assert_eq!(error.to_string(), "a digest has 1 to 64 bytes");
        }
        let digest = Digest::new(&[1, 2, 3]);
        assert_eq!(digest.try_into(), Ok([1_u8, 2, 3]));
        assert!(<[u8; 4]>::try_from(digest).is_err());
        assert_eq!("010203".parse(), Ok(digest));
        assert!("01020".parse::<Digest>().is_err());
    }

    #[test]
    fn as_many_bytes_as_a_digest_can_have() {
        for len in 0..=66 {
            let bytes = vec![7; len];
            let digest = Digest::from_slice(&bytes);
            let expected = (1..=64).contains(&len).then_some(&bytes[..]);
            assert_eq!(digest.as_ref().map(Digest::as_bytes), expected);
        }
        assert_eq!(Digest::new(&[1, 2, 3]).reversed(), Digest::new(&[3, 2, 1]));
    }

    #[test]
    fn hex_both_ways() {
        let all: Vec<u8> = (0..=255).collect();
        for bytes in all.chunks(64) {
            let digest = Digest::from_slice(bytes).unwrap();
            let hex = digest.to_string();
            assert_eq!(Digest::from_hex(hex.as_bytes()), Some(digest));
            assert_eq!(
                Digest::from_hex(hex.to_uppercase().as_bytes()),
                Some(digest)
            );
            assert_eq!(Digest::from_lower_hex(hex.as_bytes()), Some(digest));
        }
        assert_eq!(Digest::from_lower_hex(b"aA"), None);
    }

    #[test]
    fn every_byte_as_a_digit() {
        for len in [2, 4, 6, 8, 10, 14, 16, 18, 32, 64, 126, 128] {
            for at in 0..len {
                for byte in 0..=255_u8 {
                    let mut hex = vec![b'7'; len];
                    hex[at] = byte;
                    let mut expected = vec![0x77; len / 2];
                    let value = char::from(byte).to_digit(16).map(|digit| digit as u8);
                    let other = &mut expected[at / 2];
                    *other = match at % 2 {
                        0 => (value.unwrap_or(0) << 4) | 7,
                        _ => 0x70 | value.unwrap_or(0),
                    };
                    let expected = value.and_then(|_| Digest::from_slice(&expected));
                    assert_eq!(Digest::from_hex(&hex), expected, "{}", hex.escape_ascii());
                    let lower = expected.filter(|_| !byte.is_ascii_uppercase());
                    assert_eq!(Digest::from_lower_hex(&hex), lower);
                    assert_eq!(Digest::is_lower_hex(&hex), lower.is_some());
                }
            }
        }
    }

    #[test]
    fn refuses_what_is_no_hex() {
        for bad in [&b""[..], b"a", b"0g", b"g0", b"0x", b" 0", &[b'0'; 130]] {
            assert_eq!(Digest::from_hex(bad), None, "{}", bad.escape_ascii());
            assert!(!Digest::is_lower_hex(bad), "{}", bad.escape_ascii());
        }
    }
}
