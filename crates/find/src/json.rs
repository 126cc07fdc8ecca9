//! Values shared by the journal and the JSON report: paths that survive JSON
//! whatever their bytes, and digests as hex.

use bc_manifest::base64;
use serde::{Deserialize, Serialize};

/// A path in JSON: `path` alone where it is UTF-8, otherwise a lossy `path`
/// for people and the bytes in `path_b64`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct JsonPath {
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path_b64: Option<String>,
}

impl JsonPath {
    /// Returns a path as JSON has it.
    pub fn new(path: &[u8]) -> JsonPath {
        match std::str::from_utf8(path) {
            Ok(text) => JsonPath {
                path: text.to_owned(),
                path_b64: None,
            },
            Err(_) => JsonPath {
                path: String::from_utf8_lossy(path).into_owned(),
                path_b64: Some(encode(path)),
            },
        }
    }

    /// Makes a path of the two fields.
    pub fn from_parts(path: String, path_b64: Option<String>) -> JsonPath {
        JsonPath { path, path_b64 }
    }

    /// The two fields, for a record that has them among its own.
    pub fn into_parts(self) -> (String, Option<String>) {
        (self.path, self.path_b64)
    }

    /// The bytes; `None` if they are no path: not base64, empty, or with NUL; nor if `path`, which
    /// people read, is that of another file.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        let bytes = match &self.path_b64 {
            Some(text) => {
                let bytes = base64::decode(text.as_bytes())?;
                let shown = String::from_utf8_lossy(&bytes);
                (shown == self.path).then_some(bytes)?
            }
            None => self.path.clone().into_bytes(),
        };
        (!bytes.is_empty() && !bytes.contains(&0)).then_some(bytes)
    }
}

/// Returns bytes as base64.
pub fn encode(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    base64::encode(&mut out, bytes);
    String::from_utf8(out).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
