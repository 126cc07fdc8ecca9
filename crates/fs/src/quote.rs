//! Words quoted for a POSIX shell: exact bytes for scripts, printable text for commands that a
//! person may copy from a message.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::escape::is_unsafe;

/// True for bytes that no shell gives a meaning, anywhere in a word.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_=+./,:%@".contains(&byte)
}

/// Appends `word` between single quotes, byte for byte; a quote within becomes `'\''`. Read back
/// by every POSIX shell.
///
/// ```
/// let mut line = b"rm ".to_vec();
/// bc_fs::quote::single_quoted(&mut line, b"it's");
/// assert_eq!(line, br"rm 'it'\''s'");
/// ```
pub fn single_quoted(line: &mut Vec<u8>, word: &[u8]) {
    line.push(b'\'');
    for byte in word {
        match byte {
            b'\'' => line.extend_from_slice(br"'\''"),
            byte => line.push(*byte),
        }
    }
    line.push(b'\'');
}

/// Returns `word` as it would be typed: as it is where that is safe, between single quotes where a
/// shell would give it a meaning, and as `$'…'` (POSIX.1-2024) where it contains terminal controls
/// or is not UTF-8.
///
/// ```
/// use bc_fs::quote::shell_word;
/// assert_eq!(shell_word(b"a/b.txt"), "a/b.txt");
/// assert_eq!(shell_word(b"it's"), r"'it'\''s'");
/// assert_eq!(shell_word(b"a\nb\xff"), r"$'a\nb\377'");
/// ```
pub fn shell_word(word: &[u8]) -> Cow<'_, str> {
    let Ok(text) = std::str::from_utf8(word) else {
        return Cow::Owned(escaped(word));
    };
    if text.chars().any(is_unsafe) {
        return Cow::Owned(escaped(word));
    }
    if !word.is_empty() && word.iter().copied().all(is_plain) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("'{}'", text.replace('\'', r"'\''")))
}

/// Returns a path as it would be typed as an operand: as a [word](shell_word) that no program takes for
/// an option.
///
/// ```
/// assert_eq!(bc_fs::quote::shell_path(b"-a b"), "'./-a b'");
/// ```
pub fn shell_path(path: &[u8]) -> Cow<'_, str> {
    match path.first() {
        Some(b'-') => Cow::Owned(shell_word(&[b"./", path].concat()).into_owned()),
        _ => shell_word(path),
    }
}

/// Returns a word for within `$'…'`: octal escapes for each byte that is no printable character,
/// always of three digits so that a digit after them stays one.
fn escaped(word: &[u8]) -> String {
    let mut out = String::from("$'");
    let octal = |out: &mut String, bytes: &[u8]| {
        for byte in bytes {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\{byte:03o}");
        }
    };
    for chunk in word.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' => out.push_str(r"\n"),
                '\t' => out.push_str(r"\t"),
                '\r' => out.push_str(r"\r"),
                '\'' | '\\' => out.extend(['\\', c]),
                c if is_unsafe(c) => octal(&mut out, c.encode_utf8(&mut [0; 4]).as_bytes()),
                c => out.push(c),
            }
        }
        octal(&mut out, chunk.invalid());
    }
    out.push('\'');
    out
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    use std::process::Command;

    use super::*;

    const WORDS: [&[u8]; 14] = [
        b"",
        b"plain",
        b"a b",
        b"-rf",
        b"it's",
        b"~",
        b"#c",
        b"$(touch x)`y`\\",
        b"new\nline",
        b"'",
        b"\xff\"*",
        b"\x1b[31m7",
        "caf\u{e9} \u{202e}x".as_bytes(),
        b"!{a,b}?",
    ];

    /// Returns the bytes that a shell hands to a program for a word of its language.
    fn read_back(shell: &str, word: &[u8]) -> Option<Vec<u8>> {
        let script = OsString::from_vec([b"printf %s ", word].concat());
        let output = Command::new(shell).arg("-c").arg(script).output().ok()?;
        Some(output.stdout)
    }

    #[test]
    fn single_quotes_survive_a_shell() {
        for word in WORDS {
            let mut quoted = Vec::new();
            single_quoted(&mut quoted, word);
            assert_eq!(read_back("sh", &quoted).unwrap(), word);
        }
    }

    #[test]
    #[expect(clippy::print_stderr, reason = "says why part of it was left out")]
    fn words_are_safe_to_show_and_to_type() {
        for word in WORDS {
            let quoted = shell_word(word);
            assert!(!quoted.chars().any(is_unsafe), "{quoted:?}");
            match read_back("bash", quoted.as_bytes()) {
                Some(read) => assert_eq!(read, word, "{quoted}"),
                None => eprintln!("not read back: no bash here"),
            }
        }
    }
}
