//! Bytes as hexadecimal digits, sixteen at a time.

/// Letters that count as digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    Any,
    Lower,
}

/// Bytes decoded at once.
const BLOCK: usize = 16;

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
pub(crate) fn is_lower_hex(hex: &[u8]) -> bool {
    let is_digit = |byte: u8| byte.wrapping_sub(b'0') < 10 || byte.wrapping_sub(b'a') < 6;
    // Without an early exit, which makes it a few vector instructions.
    let all = hex.iter().fold(true, |all, &byte| all & is_digit(byte));
    all && !hex.is_empty() && hex.len().is_multiple_of(2)
}

/// Returns the bytes that the digits encode, zero behind the last; `None` if a character is no
/// digit, or if there are none, an odd number of them or too many.
pub(crate) fn decode<const MAX: usize>(hex: &[u8], case: Case) -> Option<[u8; MAX]> {
    // Whole blocks: what is left of the last one has room.
    const { assert!(MAX.is_multiple_of(BLOCK)) };
    if hex.is_empty() || !hex.len().is_multiple_of(2) || hex.len() > 2 * MAX {
        return None;
    }
    let mut out = [0; MAX];
    let mut right = true;
    let mut blocks = hex.chunks_exact(2 * BLOCK);
    let mut bytes = out.chunks_exact_mut(BLOCK);
    for (block, bytes) in blocks.by_ref().zip(bytes.by_ref()) {
        right &= decode_block(block, case, bytes);
    }
    let rest = blocks.remainder();
    if let (false, Some(bytes)) = (rest.is_empty(), bytes.next()) {
        // Bytes behind the digest are zero.
        let mut padded = [b'0'; 2 * BLOCK];
        padded[..rest.len()].copy_from_slice(rest);
        right &= decode_block(&padded, case, bytes);
    }
    right.then_some(out)
}

/// Writes the [`BLOCK`] bytes that twice as many digits encode; `false` if a character is no digit.
/// Loops of known length without an exit, which become a few vector instructions.
fn decode_block(digits: &[u8], case: Case, bytes: &mut [u8]) -> bool {
    let (Some(digits), Some(bytes)) = (
        digits.first_chunk::<{ 2 * BLOCK }>(),
        bytes.first_chunk_mut::<BLOCK>(),
    ) else {
        return false;
    };
    let upper = match case {
        Case::Any => 0x20,
        Case::Lower => 0,
    };
    let mut values = [0; 2 * BLOCK];
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
    use crate::Digest;

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
