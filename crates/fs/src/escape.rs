//! Makes a raw path safe and unambiguous in a message for people.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

/// Returns `path` as text that cannot move the cursor, colour the screen, break the line or reverse
/// the reading direction: control characters, bidirectional overrides, line separators and bytes
/// that are not UTF-8 come out as `\n`, `\x1b`, `\u{202e}`; a backslash is doubled, so that two
/// paths never look the same. Borrowed if there is nothing to escape.
///
/// ```
/// use bc_fs::escape;
/// assert_eq!(escape(b"plain caf\xc3\xa9"), "plain café");
/// assert_eq!(escape(b"a\nb\x1b[31m\xff\\"), r"a\nb\x1b[31m\xff\\");
/// ```
pub fn escape(path: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(path)
        && !text.chars().any(|c| c == '\\' || is_unsafe(c))
    {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(path.len() + 16);
    escape_pieces(path, is_unsafe, |piece| match piece {
        EscapePiece::Plain(text) => out.push_str(text),
        EscapePiece::Escape(text) => out.push_str(&text),
    });
    Cow::Owned(out)
}

/// A piece of a path as [`escape`](fn@escape) shows it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum EscapePiece<'a> {
    /// Characters that stand for themselves.
    Plain(&'a str),
    /// The escape of one character or byte.
    Escape(String),
}

/// Gives `path` to `each` in pieces: escapes for backslashes, bytes that are not UTF-8 and
/// characters that `is_unsafe` says are not safe where the text is to be shown, and what is between
/// them.
pub fn escape_pieces<'a>(
    path: &'a [u8],
    is_unsafe: impl Fn(char) -> bool,
    mut each: impl FnMut(EscapePiece<'a>),
) {
    for chunk in path.utf8_chunks() {
        let mut rest = chunk.valid();
        let is_escaped = |(_, c): &(usize, char)| *c == '\\' || is_unsafe(*c);
        while let Some((at, c)) = rest.char_indices().find(is_escaped) {
            if at > 0 {
                each(EscapePiece::Plain(&rest[..at]));
            }
            let mut text = String::new();
            match c {
                '\\' => text.push_str("\\\\"),
                c => push_char(&mut text, c),
            }
            each(EscapePiece::Escape(text));
            rest = &rest[at + c.len_utf8()..];
        }
        if !rest.is_empty() {
            each(EscapePiece::Plain(rest));
        }
        for byte in chunk.invalid() {
            each(EscapePiece::Escape(format!("\\x{byte:02x}")));
        }
    }
}

/// Shows a path as [`escape`](fn@escape) does, where a `Display` is wanted. The text does not have
/// to lead back to the file; the machine-readable formats have encodings for that. The empty path is
/// `''`.
///
/// ```
/// use bc_fs::Escaped;
/// assert_eq!(format!("{} {}", Escaped(b"a\nb"), Escaped(b"")), r"a\nb ''");
/// ```
pub struct Escaped<'a>(pub &'a [u8]);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            // A message that names nothing could not be read.
            b"" => f.write_str("''"),
            path => f.write_str(&escape(path)),
        }
    }
}

/// Appends an unsafe character as `\n`, `\x1b` or `\u{202e}`.
pub(crate) fn push_char(out: &mut String, c: char) {
    // Writing to a String cannot fail.
    let _ = match c {
        '\n' => out.write_str("\\n"),
        '\r' => out.write_str("\\r"),
        '\t' => out.write_str("\\t"),
        c if c.is_ascii() => write!(out, "\\x{:02x}", c as u32),
        c => write!(out, "\\u{{{:x}}}", c as u32),
    };
}

/// Appends bytes that are no text as `\xff`.
pub(crate) fn push_bytes(out: &mut String, bytes: &[u8]) {
    for byte in bytes {
        let _ = write!(out, "\\x{byte:02x}");
    }
}

/// True if this character could do anything to a terminal, or to the order in which a line is read:
/// control characters, bidirectional controls, and separators of lines and paragraphs.
pub(crate) fn is_unsafe(c: char) -> bool {
    // Control characters (C0, DEL, C1); bidirectional controls and separators of lines and
    // paragraphs, from Unicode Standard Annex #9 and section 23.2.
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::escape;
    use proptest::prelude::*;
    use std::borrow::Cow;

    #[test]
    fn borrows_what_is_harmless() {
        assert!(matches!(
            escape("naïve ☃ file".as_bytes()),
            Cow::Borrowed(_)
        ));
        assert!(matches!(escape(b""), Cow::Borrowed("")));
    }

    #[test]
    fn escapes_every_class() {
        let hostile = "\t\r\u{7f}\u{85}\u{202e}\u{2028}\0".as_bytes();
        assert_eq!(escape(hostile), r"\t\r\x7f\u{85}\u{202e}\u{2028}\x00");
        assert_eq!(escape(b"\xed\xa0\x80\xc3"), r"\xed\xa0\x80\xc3");
    }

    proptest! {
        #[test]
        fn nothing_dangerous_comes_out(path: Vec<u8>) {
            prop_assert!(!escape(&path).chars().any(char::is_control));
        }

        #[test]
        fn different_paths_look_different(
            a in proptest::collection::vec(0u8..255, 0..4),
            b in proptest::collection::vec(0u8..255, 0..4),
        ) {
            prop_assert_eq!(escape(&a) == escape(&b), a == b);
        }
    }
}
