//! A digest as bytes, and its hexadecimal form.

use std::fmt;

/// The longest digest any supported algorithm has, in bytes.
pub const MAX_LEN: usize = 64;

/// 1 to 64 bytes of digest, without saying of which algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest {
    len: u8,
    bytes: [u8; MAX_LEN],
}

impl Digest {
    /// A digest of these bytes; `None` if there are none or more than 64.
    pub fn new(bytes: &[u8]) -> Option<Digest> {
        if bytes.is_empty() || bytes.len() > MAX_LEN {
            return None;
        }
        let mut out = Digest {
            len: bytes.len() as u8,
            bytes: [0; MAX_LEN],
        };
        out.bytes[..bytes.len()].copy_from_slice(bytes);
        Some(out)
    }

    /// Parses hexadecimal digits of either case; `None` for an odd number of them, for
    /// anything else, and for more than 64 bytes.
    pub fn from_hex(hex: &[u8]) -> Option<Digest> {
        Digest::from_digits(hex, &NIBBLE)
    }

    /// As [`from_hex`](Digest::from_hex), but upper case is refused.
    pub(crate) fn from_lower_hex(hex: &[u8]) -> Option<Digest> {
        Digest::from_digits(hex, &LOWER_NIBBLE)
    }

    fn from_digits(hex: &[u8], values: &[u8; 256]) -> Option<Digest> {
        if hex.is_empty() || !hex.len().is_multiple_of(2) || hex.len() > 2 * MAX_LEN {
            return None;
        }
        let mut out = Digest {
            len: (hex.len() / 2) as u8,
            bytes: [0; MAX_LEN],
        };
        let mut all = 0;
        for (byte, pair) in out.bytes.iter_mut().zip(hex.chunks_exact(2)) {
            let (high, low) = (values[usize::from(pair[0])], values[usize::from(pair[1])]);
            all |= high | low;
            *byte = high << 4 | low;
        }
        (all <= 15).then_some(out)
    }

    /// The bytes, as many as the digest has.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Appends lower-case hexadecimal.
    pub fn write_hex(&self, out: &mut Vec<u8>) {
        push_hex(out, self.as_bytes());
    }

    /// The same bytes in the opposite order (xxhsum's little-endian form).
    pub(crate) fn reversed(mut self) -> Digest {
        self.bytes[..usize::from(self.len)].reverse();
        self
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes()
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Value of a hexadecimal digit, 255 for any other byte.
static NIBBLE: [u8; 256] = nibbles([b"0123456789abcdef", b"0123456789ABCDEF"]);
static LOWER_NIBBLE: [u8; 256] = nibbles([b"0123456789abcdef", b"0123456789abcdef"]);

const fn nibbles(digits: [&[u8; 16]; 2]) -> [u8; 256] {
    let mut table = [255; 256];
    let mut i = 0;
    while i < 16 {
        table[digits[0][i] as usize] = i as u8;
        table[digits[1][i] as usize] = i as u8;
        i += 1;
    }
    table
}

pub(crate) fn push_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let at = out.len();
    out.resize(at + bytes.len() * 2, 0);
    for (pair, byte) in out[at..].chunks_exact_mut(2).zip(bytes) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
}

#[cfg(test)]
mod tests {
    use super::Digest;

    #[test]
    fn hex_both_ways() {
        let all: Vec<u8> = (0..=255).collect();
        for bytes in all.chunks(64) {
            let digest = Digest::new(bytes).unwrap();
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
    fn refuses_what_is_no_hex() {
        for bad in [&b""[..], b"a", b"0g", b"g0", b"0x", b" 0", &[b'0'; 130]] {
            assert_eq!(Digest::from_hex(bad), None, "{}", bad.escape_ascii());
        }
        assert_eq!(Digest::new(&[]), None);
        assert_eq!(Digest::new(&[0; 65]), None);
    }
}
