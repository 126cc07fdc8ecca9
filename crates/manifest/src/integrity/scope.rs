//! Paths below a root that a manifest is limited to, where it is not about all of them.

use bc_digest::push_hex;
use serde_json::{Value, json};

/// Paths below the root, with everything that is below them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Sorted, and none twice.
    paths: Vec<Vec<u8>>,
}

impl Scope {
    /// Makes a scope of these paths, in any order.
    pub fn of(mut paths: Vec<Vec<u8>>) -> Scope {
        paths.sort_unstable();
        paths.dedup();
        Scope { paths }
    }

    /// True if a path is one of them or below one.
    pub fn holds(&self, path: &[u8]) -> bool {
        let has = |path: &[u8]| self.paths.binary_search_by(|own| own[..].cmp(path)).is_ok();
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        has(path) || slashes.into_iter().any(|(at, _)| has(&path[..at]))
    }

    /// Returns the paths, in order.
    pub fn paths(&self) -> &[Vec<u8>] {
        &self.paths
    }

    /// Returns the header's form: a list of paths, those that are not UTF-8 as objects with their
    /// bytes in hexadecimal digits.
    pub fn to_json(&self) -> Value {
        let path = |path: &Vec<u8>| match std::str::from_utf8(path) {
            Ok(text) => json!(text),
            Err(_) => {
                let mut hex = Vec::new();
                push_hex(&mut hex, path);
                json!({ "hex": String::from_utf8_lossy(&hex) })
            }
        };
        Value::Array(self.paths.iter().map(path).collect())
    }

    /// Reads the form that [`to_json`](Self::to_json) returns; `None` for anything else, and for
    /// paths that do not stay below the root.
    pub fn from_json(value: &Value) -> Option<Scope> {
        let path = |value: &Value| match value {
            Value::String(text) => Some(text.clone().into_bytes()),
            value => unhex(value.as_object()?.get("hex")?.as_str()?),
        };
        let paths: Option<Vec<Vec<u8>>> = value.as_array()?.iter().map(path).collect();
        let paths = paths?;
        let sound = |path: &Vec<u8>| path != super::ROOT && super::check_path(path).is_ok();
        paths.iter().all(sound).then(|| Scope::of(paths))
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8);
    rest.is_empty()
        .then(|| pairs.iter().map(byte).collect())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_about_what_is_below_its_paths() {
        let scope = Scope::of(vec![b"b/c".to_vec(), b"a".to_vec(), b"\xff".to_vec()]);
        for path in [&b"a"[..], b"a/x", b"a/x/y", b"b/c", b"b/c/d", b"\xff/z"] {
            assert!(scope.holds(path), "{path:?}");
        }
        for path in [&b"."[..], b"b", b"a-", b"ab", b"b/cd", b"c"] {
            assert!(!scope.holds(path), "{path:?}");
        }
        assert_eq!(Scope::from_json(&scope.to_json()), Some(scope));
    }

    #[test]
    fn what_leaves_the_root_is_no_scope() {
        for value in [
            json!(["../x"]),
            json!(["/x"]),
            json!(["."]),
            json!([{ "hex": "2e2" }]),
            json!([{ "hex": "2e2e" }]),
            json!([1]),
            json!("a"),
        ] {
            assert_eq!(Scope::from_json(&value), None, "{value}");
        }
    }
}
