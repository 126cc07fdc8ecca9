//! JSON form of a failure with one path: the same fields in all outputs, so that one query finds
//! them in results, reports and diagnostics alike.

use crate::json::{push_bytes, push_i64, push_key, push_str};

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

#[cfg(test)]
mod tests {
    use super::*;

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
