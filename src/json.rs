//! Parts that JSON objects of all applets have in common.

use serde_json::{Map, Value};

/// Puts a path into a JSON object: text, and base64 beside it where it is not UTF-8.
pub fn insert_path(object: &mut Map<String, Value>, key: &str, path: &[u8]) {
    object.insert(key.to_owned(), Value::from(String::from_utf8_lossy(path)));
    if std::str::from_utf8(path).is_err() {
        let mut text = Vec::new();
        bc_manifest::base64::encode(&mut text, path);
        object.insert(
            format!("{key}_b64"),
            Value::from(String::from_utf8_lossy(&text)),
        );
    }
}
