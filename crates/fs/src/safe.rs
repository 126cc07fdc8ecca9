//! Last step before a terminal: a writer behind which no name can do any harm, whatever the format
//! around it.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use crate::escape::{is_unsafe, push_bytes, push_char};

/// Bytes that a [`SafeWriter`] lets through and the form in which it shows the rest.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Style {
    /// Every byte as it is: files and pipes, which get what the format defines.
    Exact,
    /// Lines of text on a terminal: newlines pass, alone or behind a carriage return; other
    /// unsafe characters and bytes that are not UTF-8 come out as [`escape`](fn@crate::escape)
    /// shows them. Backslashes stay single: the stream may be escaped already.
    Text,
    /// Records that end with NUL, on a terminal: each on a line of its own, with `\n` for a
    /// newline inside.
    Nul,
    /// JSON, for terminals as for programs: unsafe characters, which occur in strings only, come
    /// out as `\u009b`. Every parser reads the same text.
    Json,
}

/// Passes text on with every terminal control made visible: C0 and C1 controls, DEL, bidirectional
/// controls, bytes that are not UTF-8.
///
/// Nothing unsafe comes out, whatever goes in: no sequence is let through for being known, so
/// colours of our own must go to the stream behind it. An incomplete character at the end of a
/// write is held back until the next one, or until [`flush`](Write::flush), which takes it for its
/// end.
///
/// ```
/// use std::io::Write;
/// use bc_fs::safe::{SafeWriter, Style};
/// let mut shown = SafeWriter::new(Vec::new(), Style::Text);
/// shown.write_all(b"caf\xc3").unwrap();
/// shown.write_all(b"\xa9 \x9b31m\n").unwrap();
/// shown.flush().unwrap();
/// assert_eq!(shown.into_inner(), "café \\x9b31m\n".as_bytes());
/// ```
#[derive(Debug)]
pub struct SafeWriter<W> {
    to: W,
    style: Style,
    /// Incomplete end of the last write, with which the next one begins: the start of a character,
    /// a carriage return.
    held: Vec<u8>,
}

impl<W> SafeWriter<W> {
    /// Makes a writer in front of `to`.
    pub fn new(to: W, style: Style) -> SafeWriter<W> {
        SafeWriter {
            to,
            style,
            held: Vec::new(),
        }
    }

    /// Takes the bytes written from here on in another style.
    pub fn set_style(&mut self, style: Style) {
        self.style = style;
    }

    /// Returns the style in force.
    pub fn style(&self) -> Style {
        self.style
    }

    /// Returns the stream behind it, for colours of one's own: a terminal interprets what is
    /// written there. To be used only between two whole pieces of text, when nothing is held back.
    pub fn stream(&mut self) -> &mut W {
        &mut self.to
    }

    /// Returns the stream behind it; bytes that are held back are lost.
    pub fn into_inner(self) -> W {
        self.to
    }
}

impl<W: Write> Write for SafeWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.style == Style::Exact {
            return self.to.write(bytes);
        }
        if self.style != Style::Nul && self.held.is_empty() && is_harmless(bytes) {
            return self.to.write(bytes);
        }
        let all = [std::mem::take(&mut self.held).as_slice(), bytes].concat();
        let (now, later) = all.split_at(all.len() - unfinished(&all));
        self.to.write_all(show(now, self.style).as_bytes())?;
        self.held = later.to_vec();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let held = std::mem::take(&mut self.held);
        if !held.is_empty() {
            self.to.write_all(show(&held, self.style).as_bytes())?;
        }
        self.to.flush()
    }
}

/// Returns a message of our own with the names and reasons in it, fit for any terminal: in one
/// line, without doubling the backslashes of text that is escaped already.
///
/// ```
/// assert_eq!(bc_fs::safe::line("a\\n: \u{9b}2J\n"), "a\\n: \\u{9b}2J\\n");
/// ```
pub fn line(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            c if is_unsafe(c) => push_char(&mut out, c),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Shows a message of several lines: its newlines stay.
pub fn lines(text: &str) -> String {
    show(text.as_bytes(), Style::Text)
}

/// Shows a whole text in one style.
fn show(bytes: &[u8], style: Style) -> String {
    let mut out = String::with_capacity(bytes.len() + bytes.len() / 8);
    for chunk in bytes.utf8_chunks() {
        let mut rest = chunk.valid();
        // From one character that may be unsafe to the next.
        while let Some(at) = rest.bytes().position(may_be_unsafe) {
            out.push_str(&rest[..at]);
            let mut chars = rest[at..].chars();
            let Some(c) = chars.next() else { break };
            rest = chars.as_str();
            match (style, c) {
                (Style::Nul, '\0') => out.push('\n'),
                (Style::Text | Style::Json, '\n') => out.push('\n'),
                (Style::Text, '\r') if rest.starts_with('\n') => out.push('\r'),
                // Writing to a String cannot fail.
                (Style::Json, c) if is_unsafe(c) => drop(write!(out, "\\u{:04x}", c as u32)),
                (_, c) if is_unsafe(c) => push_char(&mut out, c),
                (_, c) => out.push(c),
            }
        }
        out.push_str(rest);
        match style {
            Style::Json if chunk.invalid().is_empty() => {}
            Style::Json => out.push('\u{fffd}'),
            _ => push_bytes(&mut out, chunk.invalid()),
        }
    }
    out
}

/// Shows a whole JSON text, with the unsafe characters in its strings written as `\\u009b`.
///
/// ```
/// assert_eq!(bc_fs::safe::json("{\"path\":\"\u{7f}\"}"), r#"{"path":"\u007f"}"#);
/// ```
pub fn json(text: &str) -> String {
    show(text.as_bytes(), Style::Json)
}

/// True for printable ASCII and newlines, as nearly everything is: no early exit, so that it is a
/// few vector instructions.
fn is_harmless(bytes: &[u8]) -> bool {
    let special = |&byte: &u8| ((byte < 0x20) & (byte != b'\n')) | (byte >= 0x7f);
    !bytes.iter().fold(false, |any, byte| any | special(byte))
}

/// True for a byte that an unsafe character may begin with. Others may begin with it too; inside a
/// character none of these bytes occurs.
fn may_be_unsafe(byte: u8) -> bool {
    // C0 and DEL; C1, U+061C, and the rest from U+200E to U+2069.
    byte < 0x20 || matches!(byte, 0x7f | 0xc2 | 0xd8 | 0xe2)
}

/// Returns the number of bytes at the end that the next write may finish.
fn unfinished(bytes: &[u8]) -> usize {
    if bytes.last() == Some(&b'\r') {
        return 1;
    }
    let last = bytes.utf8_chunks().last().map_or(&[][..], |c| c.invalid());
    match std::str::from_utf8(last) {
        Err(error) if error.error_len().is_none() => last.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn through(style: Style, pieces: &[&[u8]]) -> Vec<u8> {
        let mut writer = SafeWriter::new(Vec::new(), style);
        for piece in pieces {
            writer.write_all(piece).unwrap();
        }
        writer.flush().unwrap();
        writer.into_inner()
    }

    #[test]
    fn each_style_shows_what_it_cannot_pass_on() {
        let hostile = "a\x1b[2J\t\u{7f}\u{9b}\u{202e}\\ é\r\nb\rc\0".as_bytes();
        let hostile = [hostile, b"\xff\n"].concat();
        let shown = |style| String::from_utf8(through(style, &[&hostile])).unwrap();
        assert_eq!(
            shown(Style::Text),
            "a\\x1b[2J\\t\\x7f\\u{9b}\\u{202e}\\ é\r\nb\\rc\\x00\\xff\n"
        );
        assert_eq!(
            shown(Style::Nul),
            "a\\x1b[2J\\t\\x7f\\u{9b}\\u{202e}\\ é\\r\\nb\\rc\n\\xff\\n"
        );
        assert_eq!(
            shown(Style::Json),
            "a\\u001b[2J\\u0009\\u007f\\u009b\\u202e\\ é\\u000d\nb\\u000dc\\u0000\u{fffd}\n"
        );
        assert_eq!(through(Style::Exact, &[&hostile]), hostile);
    }

    #[test]
    fn what_ends_in_the_middle_of_a_character_is_shown_at_the_end() {
        assert_eq!(through(Style::Text, &[b"a\xe2\x80"]), b"a\\xe2\\x80");
        assert_eq!(through(Style::Text, &[b"a\r"]), b"a\\r");
        assert_eq!(through(Style::Text, &[b"a\xe2", b"b"]), b"a\\xe2b");
    }

    #[test]
    fn the_first_byte_tells_what_may_be_unsafe() {
        for c in (0..=0x10_ffff).filter_map(char::from_u32) {
            let first = c.to_string().as_bytes()[0];
            assert!(!is_unsafe(c) || may_be_unsafe(first), "{c:?}");
        }
        assert!((0x80..=0xbf).all(|inside| !may_be_unsafe(inside)));
    }

    proptest! {
        #[test]
        fn how_it_is_cut_does_not_matter(
            bytes in proptest::collection::vec(
                proptest::sample::select(&b"ab\r\n\\\x00\x1b\x7f\xc2\x9b\xe2\x80\xae\xf0\x9f\xa6\x80"[..]), 0..40),
            cuts in proptest::collection::vec(0_usize..40, 0..6),
        ) {
            for style in [Style::Text, Style::Nul, Style::Json, Style::Exact] {
                let mut cuts: Vec<usize> = cuts.iter().map(|c| (*c).min(bytes.len())).collect();
                cuts.extend([0, bytes.len()]);
                cuts.sort_unstable();
                let pieces: Vec<&[u8]> = cuts.windows(2).map(|w| &bytes[w[0]..w[1]]).collect();
                prop_assert_eq!(through(style, &pieces), through(style, &[&bytes]));
            }
        }

        #[test]
        fn nothing_dangerous_comes_out(bytes: Vec<u8>) {
            for style in [Style::Text, Style::Nul, Style::Json] {
                let shown = String::from_utf8(through(style, &[&bytes])).unwrap();
                let shown = shown.replace("\r\n", "\n");
                prop_assert!(!shown.chars().any(|c| c != '\n' && is_unsafe(c)), "{:?}", shown);
            }
        }

        #[test]
        fn json_means_the_same(text: String) {
            let json = serde_json::to_string(&text).unwrap();
            let shown = through(Style::Json, &[json.as_bytes()]);
            prop_assert_eq!(serde_json::from_slice::<String>(&shown).unwrap(), text);
        }
    }
}
