//! Bytes in JSON that need not be UTF-8, as paths and extended attributes: text under a key, lossy
//! where it must be, and then the bytes in base64 under the same key with `_b64` at its end. And
//! pieces of JSON written by hand, where serde would cost too much for each of millions of lines. A
//! failure with one path has the same fields in all outputs, so that one query finds them in results,
//! reports and diagnostics alike.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::base64;
use crate::record::Failure;

/// Appends `"text"` with JSON escapes.
pub fn push_str(out: &mut Vec<u8>, text: &str) {
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
pub fn push_key(out: &mut Vec<u8>, key: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(b"\":");
}

/// Appends `,"key":"text"`, and `,"key_b64":"…"` with the raw bytes where they are not UTF-8
/// (the text is lossy then).
pub fn push_bytes(out: &mut Vec<u8>, key: &str, bytes: &[u8]) {
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

/// Appends `,"error":{…}`.
pub(crate) fn push_failure(out: &mut Vec<u8>, error: &Failure) {
    push_key(out, "error");
    out.extend_from_slice(b"{\"op\":");
    push_str(out, &error.op);
    if let Some(errno) = error.errno {
        push_key(out, "errno");
        push_i64(out, errno.into());
    }
    push_key(out, "message");
    push_str(out, &error.message);
    out.push(b'}');
}

/// Appends `,"key":value` for each field.
pub(crate) fn push_extra(out: &mut Vec<u8>, extra: &Map<String, Value>) {
    for (key, value) in extra {
        out.push(b',');
        push_str(out, key);
        out.push(b':');
        // JSON values into a Vec: cannot fail.
        let _ = serde_json::to_writer(&mut *out, value);
    }
}

/// Appends `"base64"`.
pub fn push_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    base64::encode(out, bytes);
    out.push(b'"');
}

/// Puts bytes into an object as [`push_bytes`] writes them.
pub fn insert_bytes(object: &mut Map<String, Value>, key: &str, bytes: &[u8]) {
    let JsonPath { path, path_b64 } = JsonPath::new(bytes);
    object.insert(key.to_owned(), path.into());
    if let Some(text) = path_b64 {
        object.insert(format!("{key}_b64"), text.into());
    }
}

/// Writes the beginning of a document: the members of the object `head`, and `stats`.
///
/// # Errors
/// Errors of writing to `out`.
pub fn write_head(out: &mut dyn Write, head: &Value, stats: &Value) -> io::Result<()> {
    let head = head.to_string();
    let head = head.strip_suffix('}').unwrap_or(&head);
    write!(out, "{head},\n\"stats\":{stats}")
}

/// Writes an array as a member of a document, with a line for each value; the caller closes it.
///
/// # Errors
/// Errors of writing to `out`.
pub fn write_array<T: Serialize>(
    out: &mut dyn Write,
    name: &str,
    values: impl IntoIterator<Item = T>,
) -> io::Result<()> {
    write!(out, ",\n\"{name}\":[")?;
    for (nth, value) in values.into_iter().enumerate() {
        out.write_all(if nth == 0 { b"\n" } else { b",\n" })?;
        serde_json::to_writer(&mut *out, &value)?;
    }
    Ok(())
}

/// Writes an object as a line, its `type` before its members.
///
/// # Errors
/// Errors of writing to `out`.
pub fn write_line(out: &mut dyn Write, kind: &str, object: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_string(object)?;
    let rest = text.strip_prefix('{').unwrap_or(&text);
    writeln!(out, "{{\"type\":\"{kind}\",{rest}")
}

/// A failure with one path.
///
/// ```
/// let failed = bc_manifest::ErrorRecord {
///     applet: "hash",
///     path: b"a/b",
///     operation: "open",
///     errno: Some(13),
///     reason: "Permission denied (os error 13)",
/// };
/// let mut line = Vec::new();
/// failed.write_line(&mut line);
/// assert_eq!(
///     String::from_utf8_lossy(&line),
///     "{\"type\":\"error\",\"applet\":\"hash\",\"path\":\"a/b\",\"operation\":\"open\",\
///      \"errno\":13,\"reason\":\"Permission denied (os error 13)\"}\n"
/// );
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ErrorRecord<'a> {
    /// Command that reports it: `hash`, `dup`, `integrity`.
    pub applet: &'a str,
    /// The path in raw bytes; not UTF-8, it is lossy in `path`, and `path_b64` has the bytes.
    pub path: &'a [u8],
    /// The operation that failed, in a word or two: `open`, `read directory`.
    pub operation: &'a str,
    /// The system's error number; absent where a rule of ours was broken, as by a file that changed
    /// while it was read.
    pub errno: Option<i32>,
    /// The reason in words.
    pub reason: &'a str,
}

impl ErrorRecord<'_> {
    /// Appends it as a JSON object.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.write_after(out, b"{");
    }

    /// Appends it as a line of its own, an object of type `error`.
    pub fn write_line(&self, out: &mut Vec<u8>) {
        self.write_after(out, b"{\"type\":\"error\",");
        out.push(b'\n');
    }

    fn write_after(&self, out: &mut Vec<u8>, start: &[u8]) {
        out.extend_from_slice(start);
        out.extend_from_slice(b"\"applet\":");
        push_str(out, self.applet);
        push_bytes(out, "path", self.path);
        push_key(out, "operation");
        push_str(out, self.operation);
        if let Some(errno) = self.errno {
            push_key(out, "errno");
            push_i64(out, errno.into());
        }
        push_key(out, "reason");
        push_str(out, self.reason);
        out.push(b'}');
    }
}

/// Returns the encoding of `bytes` in base64.
pub fn base64_text(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    base64::encode(&mut out, bytes);
    String::from_utf8(out).unwrap_or_default()
}

/// A path as two members of an object: `path` alone where it is UTF-8, otherwise a lossy `path`
/// for people and the bytes in `path_b64`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct JsonPath {
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path_b64: Option<String>,
}

impl JsonPath {
    /// Makes the two members of the raw bytes of a path.
    pub fn new(path: &[u8]) -> JsonPath {
        match std::str::from_utf8(path) {
            Ok(text) => JsonPath {
                path: text.to_owned(),
                path_b64: None,
            },
            Err(_) => JsonPath {
                path: String::from_utf8_lossy(path).into_owned(),
                path_b64: Some(base64_text(path)),
            },
        }
    }

    /// Makes a path of its two members.
    pub fn from_parts(path: String, path_b64: Option<String>) -> JsonPath {
        JsonPath { path, path_b64 }
    }

    /// Returns the two members, for a record that has them among its own.
    pub fn into_parts(self) -> (String, Option<String>) {
        (self.path, self.path_b64)
    }

    /// Returns the bytes; `None` if they are no path: not base64, empty, or with NUL; nor if
    /// `path`, which people read, is that of another file.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        let bytes = match &self.path_b64 {
            Some(twin) => agreeing(&self.path, twin)?,
            None => self.path.clone().into_bytes(),
        };
        (!bytes.is_empty() && !bytes.contains(&0)).then_some(bytes)
    }
}

/// Returns the bytes encoded in `twin` if they are shown to people as `text`.
fn agreeing(text: &str, twin: &str) -> Option<Vec<u8>> {
    let bytes = base64::decode(twin.as_bytes())?;
    (String::from_utf8_lossy(&bytes) == text).then_some(bytes)
}

/// Returns the bytes meant by a text and its optional twin, which must agree. A twin beside valid
/// UTF-8, or one that says something else, would show people one path and programs another.
pub(crate) fn untwin(text: impl Into<String>, twin: Option<&str>) -> Option<Vec<u8>> {
    let text = text.into();
    match twin {
        None => Some(text.into_bytes()),
        Some(twin) => agreeing(&text, twin).filter(|bytes| std::str::from_utf8(bytes).is_err()),
    }
}

/// Returns the bytes of a path by its two members, of which one is enough: the encoded bytes count
/// where both are there. `None` if there is neither, or the base64 is wrong.
pub fn either_path(text: Option<impl Into<String>>, twin: Option<&str>) -> Option<Vec<u8>> {
    match twin {
        Some(twin) => base64::decode(twin.as_bytes()),
        None => Some(text?.into().into_bytes()),
    }
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
    fn documents_and_lines_are_objects() {
        let mut out = Vec::new();
        let head = serde_json::json!({"schema": 1});
        write_head(&mut out, &head, &serde_json::json!({"files": 2})).unwrap();
        write_array(&mut out, "groups", [1, 2]).unwrap();
        out.extend_from_slice(b"]");
        write_array(&mut out, "errors", [0; 0]).unwrap();
        out.extend_from_slice(b"]}\n");
        let text =
            "{\"schema\":1,\n\"stats\":{\"files\":2},\n\"groups\":[\n1,\n2],\n\"errors\":[]}\n";
        assert_eq!(String::from_utf8_lossy(&out), text);
        let mut out = Vec::new();
        write_line(&mut out, "group", &head).unwrap();
        assert_eq!(out, b"{\"type\":\"group\",\"schema\":1}\n");
    }

    #[test]
    fn any_path_comes_back() {
        for path in [
            &b"plain"[..],
            b"new\nline \"quoted\"",
            b"\xff\xfe/odd",
            "\u{fffd}".as_bytes(),
        ] {
            let text = serde_json::to_string(&JsonPath::new(path)).unwrap();
            let back: JsonPath = serde_json::from_str(&text).unwrap();
            assert_eq!(back.bytes().unwrap(), path, "{text}");
        }
        let mut other = JsonPath::new(b"\xff/odd");
        other.path = "another/name".to_owned();
        assert_eq!(other.bytes(), None);
        assert_eq!(JsonPath::new(b"").bytes(), None);
        assert_eq!(JsonPath::new(b"a\0b").bytes(), None);
    }

    #[test]
    fn all_ways_to_write_bytes_agree() {
        for bytes in [
            &b"plain"[..],
            b"\xff\xfe/\"odd\"\x7f\n",
            "\u{fffd}".as_bytes(),
        ] {
            let mut written = b"{\"x\":0".to_vec();
            push_bytes(&mut written, "path", bytes);
            written.push(b'}');
            let mut object = Map::new();
            object.insert("x".to_owned(), 0.into());
            insert_bytes(&mut object, "path", bytes);
            let read: Value = serde_json::from_slice(&written).unwrap();
            assert_eq!(read, Value::Object(object.clone()));
            object.remove("x");
            assert_eq!(
                serde_json::to_value(JsonPath::new(bytes)).unwrap(),
                Value::Object(object)
            );
        }
    }

    #[test]
    fn twins_agree_or_are_refused() {
        assert_eq!(untwin("a", None).unwrap(), b"a");
        assert_eq!(untwin("\u{fffd}", Some("/w==")).unwrap(), b"\xff");
        assert_eq!(untwin("b", Some("/w==")), None);
        // Of text that is UTF-8 a manifest has no twin; a report that somebody edited may.
        assert_eq!(untwin("a", Some("YQ==")), None);
        let path = JsonPath::from_parts("a".to_owned(), Some("YQ==".to_owned()));
        assert_eq!(path.bytes().unwrap(), b"a");
        assert_eq!(either_path(Some("a"), Some("/w==")).unwrap(), b"\xff");
        assert_eq!(either_path(None::<&str>, Some("/w==")).unwrap(), b"\xff");
        assert_eq!(either_path(Some("a"), Some("/w")), None);
        assert_eq!(either_path(None::<&str>, None), None);
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

    #[test]
    fn any_path_and_a_reason_without_a_number() {
        let failed = ErrorRecord {
            applet: "dup",
            path: b"a\n\"\xff",
            operation: "read",
            errno: None,
            reason: "changed while reading",
        };
        let mut out = Vec::new();
        failed.write(&mut out);
        let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
        let text = "a\n\"\u{fffd}";
        assert_eq!(
            value,
            serde_json::json!({
                "applet": "dup", "path": text, "path_b64": "YQoi/w==", "operation": "read",
                "reason": "changed while reading",
            })
        );
    }
}
