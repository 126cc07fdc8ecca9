//! Base64 with the standard alphabet and padding (RFC 4648, section 4), strict when decoding:
//! one encoding per value, so that a changed byte cannot go unnoticed.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends the encoding of `bytes`.
pub fn encode(out: &mut Vec<u8>, bytes: &[u8]) {
    out.reserve(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |i: usize| u32::from(chunk.get(i).copied().unwrap_or(0));
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        for position in 0..4 {
            out.push(if position <= chunk.len() {
                ALPHABET[(word >> (18 - 6 * position)) as usize & 63]
            } else {
                b'='
            });
        }
    }
}

/// Decodes; `None` unless `text` is exactly as [`encode`] would write it.
pub fn decode(text: &[u8]) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let padding = text
        .iter()
        .rev()
        .take(2)
        .take_while(|&&b| b == b'=')
        .count();
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let body = &text[..text.len() - padding];
    for chunk in body.chunks(4) {
        let mut word = 0u32;
        for (position, &digit) in chunk.iter().enumerate() {
            word |= u32::from(value(digit)?) << (18 - 6 * position);
        }
        let bytes = word.to_be_bytes();
        let keep = chunk.len() - 1;
        // Bits beyond the last byte must be zero, or two texts would mean the same.
        if keep == 0 || bytes[1 + keep..].iter().any(|&b| b != 0) {
            return None;
        }
        out.extend_from_slice(&bytes[1..=keep]);
    }
    Some(out)
}

fn value(digit: u8) -> Option<u8> {
    Some(match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};
    use proptest::prelude::*;

    fn encoded(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(&mut out, bytes);
        out
    }

    #[test]
    fn vectors_of_rfc_4648() {
        for (plain, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encoded(plain.as_bytes()), text.as_bytes());
            assert_eq!(decode(text.as_bytes()).as_deref(), Some(plain.as_bytes()));
        }
    }

    proptest! {
        #[test]
        fn round_trip(bytes: Vec<u8>) {
            prop_assert_eq!(decode(&encoded(&bytes)), Some(bytes));
        }

        #[test]
        fn only_one_text_per_value(text in "[A-Za-b+/=]{0,12}") {
            if let Some(bytes) = decode(text.as_bytes()) {
                prop_assert_eq!(encoded(&bytes), text.into_bytes());
            }
        }
    }
}
