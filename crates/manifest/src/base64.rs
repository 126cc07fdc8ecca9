//! Base64 with the standard alphabet and padding (RFC 4648, section 4), strict when decoding:
//! one encoding per value, so that a changed byte cannot go unnoticed.

use ::base64::Engine as _;
use ::base64::engine::general_purpose::STANDARD;

/// Appends the encoding of `bytes`.
pub fn encode(out: &mut Vec<u8>, bytes: &[u8]) {
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(3) * 4, 0);
    // It fails where there is no room.
    let _ = STANDARD.encode_slice(bytes, &mut out[start..]);
}

/// Decodes; `None` unless `text` is exactly as [`encode`] would write it.
pub fn decode(text: &[u8]) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
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
        for bad in [
            "Zg", "Zh==", "Zg==Zg==", "Zg==\n", "Zm9v\n", "Z m8", "=", "====", "Zm9_",
        ] {
            assert_eq!(decode(bad.as_bytes()), None, "{bad:?}");
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
