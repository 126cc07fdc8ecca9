//! Pieces of JSON written by hand, where serde would cost too much for each of millions of lines.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

use crate::base64;

/// Appends `"text"` with JSON escapes.
pub(crate) fn push_str(out: &mut Vec<u8>, text: &str) {
    // Nearly all names: no early exit, so that it is a few vector instructions.
    let special = |&byte: &u8| (byte < 0x20) | (byte == b'"') | (byte == b'\\');
    if !text
        .as_bytes()
        .iter()
        .fold(false, |any, byte| any | special(byte))
    {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
        return;
    }
    // Writing a string to a Vec cannot fail.
    let _ = serde_json::to_writer(out, text);
}

/// Appends an unsigned number.
pub(crate) fn push_u64(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    // Two digits a division: times have 19.
    while value >= 10 {
        let pair = (value % 100) as u8;
        value /= 100;
        at -= 2;
        digits[at] = b'0' + pair / 10;
        digits[at + 1] = b'0' + pair % 10;
    }
    if value > 0 || at == digits.len() {
        at -= 1;
        digits[at] = b'0' + value as u8;
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends a signed number.
pub(crate) fn push_i64(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    push_u64(out, value.unsigned_abs());
}

/// Appends `,"key":NUMBER`.
pub(crate) fn push_field(out: &mut Vec<u8>, key: &str, value: u64) {
    push_key(out, key);
    push_u64(out, value);
}

/// Appends `,"key":`. The key must need no escapes.
pub(crate) fn push_key(out: &mut Vec<u8>, key: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(b"\":");
}

/// Appends `,"key":"text"`, and `,"key_b64":"…"` with the raw bytes where they are not UTF-8
/// (the text is lossy then).
pub(crate) fn push_bytes(out: &mut Vec<u8>, key: &str, bytes: &[u8]) {
    push_key(out, key);
    match std::str::from_utf8(bytes) {
        Ok(text) => push_str(out, text),
        Err(_) => {
            push_str(out, &String::from_utf8_lossy(bytes));
            out.extend_from_slice(b",\"");
            out.extend_from_slice(key.as_bytes());
            out.extend_from_slice(b"_b64\":");
            push_base64(out, bytes);
        }
    }
}

/// Appends `"base64"`.
pub(crate) fn push_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    base64::encode(out, bytes);
    out.push(b'"');
}

/// A string, borrowed from the line where it holds no escapes.
#[derive(Debug)]
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }

            fn visit_string<E: Error>(self, text: String) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text)))
            }
        }
        deserializer.deserialize_str(TextVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        for value in [
            0,
            9,
            10,
            99,
            100,
            101,
            999,
            1000,
            12_345,
            u64::MAX / 10,
            u64::MAX,
        ] {
            let mut out = Vec::new();
            push_u64(&mut out, value);
            assert_eq!(out, value.to_string().into_bytes());
        }
        for value in [0, -1, i64::MIN, i64::MAX] {
            let mut out = Vec::new();
            push_i64(&mut out, value);
            assert_eq!(out, value.to_string().into_bytes());
        }
    }

    #[test]
    fn raw_bytes_get_a_twin() {
        let mut out = Vec::new();
        push_bytes(&mut out, "path", b"a\"\n");
        push_bytes(&mut out, "path", b"\xff");
        assert_eq!(
            out,
            b",\"path\":\"a\\\"\\n\",\"path\":\"\xef\xbf\xbd\",\"path_b64\":\"/w==\""
        );
    }
}
