//! Names and arguments as GNU's programs show them in messages: in a shell's quotes, where a shell
//! would not read them back otherwise.

use std::cmp::Ordering;
use std::ffi::OsString;
use std::sync::OnceLock;

/// Kind of the bytes at one place of a name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Unit {
    /// One byte that prints, or is let through.
    Byte(u8),
    /// So many bytes of one character that prints.
    Character(usize),
    /// So many bytes that do not print.
    Hidden(usize),
}

/// Returns a name for a message that continues after it with a colon: itself if a shell would take
/// it unquoted, else within quotes, with `$'\n'` for bytes that do not print.
pub fn name(name: &[u8]) -> Vec<u8> {
    if !name.is_empty() && !name.contains(&b':') && is_harmless(name) {
        return name.to_vec();
    }
    if name.contains(&b'\'') && is_double_quotable(name) {
        return [b"\"", name, b"\""].concat();
    }
    quoted(name)
}

/// Returns true if a shell would read it back unquoted.
fn is_harmless(name: &[u8]) -> bool {
    let first_only = |at: usize, byte: u8| at == 0 && matches!(byte, b'#' | b'~');
    let alone = name.len() == 1 && matches!(name[0], b'{' | b'}');
    !alone
        && units(name).all(|(at, unit)| match unit {
            Unit::Hidden(_) => false,
            Unit::Character(_) => true,
            Unit::Byte(byte) => !is_special(byte) && !first_only(at, byte),
        })
}

fn is_special(byte: u8) -> bool {
    b" !\"$&'()*;<=>?[\\^`|\n\r\t".contains(&byte)
}

/// Returns true if double quotes change nothing of it.
fn is_double_quotable(name: &[u8]) -> bool {
    units(name).all(|(at, unit)| match unit {
        Unit::Hidden(_) => false,
        Unit::Character(_) => true,
        Unit::Byte(byte) => {
            let word = byte.is_ascii_alphanumeric() || b"%+,-./:]_@ '".contains(&byte);
            let first = at == 0 && matches!(byte, b'#' | b'~');
            word || first || byte >= 0x80
        }
    })
}

/// Returns it within single quotes.
fn quoted(name: &[u8]) -> Vec<u8> {
    let mut out = vec![b'\''];
    // Within $'...', which has to be left before characters that print.
    let mut dollar = false;
    for (at, unit) in units(name) {
        let escape = match unit {
            Unit::Byte(b'\n') => Some(b'n'),
            Unit::Byte(b'\r') => Some(b'r'),
            Unit::Byte(b'\t') => Some(b't'),
            Unit::Hidden(_) => short(name[at]),
            _ => None,
        };
        if escape.is_some() || matches!(unit, Unit::Hidden(_)) {
            if !std::mem::replace(&mut dollar, true) {
                out.extend_from_slice(b"'$'");
            }
            match (escape, unit) {
                (Some(letter), _) => out.extend([b'\\', letter]),
                (None, Unit::Hidden(count)) => {
                    for byte in &name[at..at + count] {
                        out.extend_from_slice(format!("\\{byte:03o}").as_bytes());
                    }
                }
                (None, _) => {}
            }
            continue;
        }
        if unit == Unit::Byte(b'\'') {
            // Out of the quotes, by which $'...' ends as well, and in again.
            dollar = false;
            out.extend_from_slice(b"'\\''");
            continue;
        }
        if std::mem::replace(&mut dollar, false) {
            out.extend_from_slice(b"''");
        }
        match unit {
            Unit::Character(count) => out.extend_from_slice(&name[at..at + count]),
            _ => out.push(name[at]),
        }
    }
    out.push(b'\'');
    out
}

/// Returns the letter of a control character that has one in C.
fn short(byte: u8) -> Option<u8> {
    Some(match byte {
        0x07 => b'a',
        0x08 => b'b',
        0x0b => b'v',
        0x0c => b'f',
        _ => return None,
    })
}

/// Returns an argument that is complained of, within single quotes, escaped as in C.
pub fn argument(argument: &[u8]) -> Vec<u8> {
    let mut out = vec![b'\''];
    for (at, unit) in units(argument) {
        match unit {
            Unit::Byte(b'\'') => out.extend_from_slice(b"\\'"),
            Unit::Byte(b'\\') => out.extend_from_slice(b"\\\\"),
            Unit::Byte(b'\n') => out.extend_from_slice(b"\\n"),
            Unit::Byte(b'\r') => out.extend_from_slice(b"\\r"),
            Unit::Byte(b'\t') => out.extend_from_slice(b"\\t"),
            Unit::Byte(byte) => out.push(byte),
            Unit::Character(count) => out.extend_from_slice(&argument[at..at + count]),
            Unit::Hidden(count) => match short(argument[at]) {
                Some(letter) => out.extend([b'\\', letter]),
                None => {
                    for byte in &argument[at..at + count] {
                        out.extend_from_slice(format!("\\{byte:03o}").as_bytes());
                    }
                }
            },
        }
    }
    out.push(b'\'');
    out
}

/// Returns the places of a name and the unit at each. Newline, carriage return and tabulator count
/// as bytes.
fn units(name: &[u8]) -> impl Iterator<Item = (usize, Unit)> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = name.get(at..).filter(|rest| !rest.is_empty())?;
        let unit = unit(rest);
        let from = at;
        at += match unit {
            Unit::Byte(_) => 1,
            Unit::Character(count) | Unit::Hidden(count) => count,
        };
        Some((from, unit))
    })
}

fn unit(rest: &[u8]) -> Unit {
    match rest[0] {
        byte @ (b'\n' | b'\r' | b'\t' | b' '..=b'~') => Unit::Byte(byte),
        0..0x80 => Unit::Hidden(1),
        _ if !is_utf8() => Unit::Hidden(1),
        _ => character(rest),
    }
}

/// Returns a character beyond ASCII, or a byte that is not one.
fn character(rest: &[u8]) -> Unit {
    let most = &rest[..rest.len().min(4)];
    let whole = match std::str::from_utf8(most) {
        Ok(text) => text.chars().next(),
        Err(error) => std::str::from_utf8(&most[..error.valid_up_to()])
            .ok()
            .and_then(|text| text.chars().next()),
    };
    match whole {
        Some(c) if prints(c) => Unit::Character(c.len_utf8()),
        Some(c) => Unit::Hidden(c.len_utf8()),
        None => Unit::Hidden(1),
    }
}

/// Returns true if the C library counts it as printing: all that Rust would not escape, and spaces,
/// format characters and private ones as well. With a letter before it a combining mark prints.
fn prints(c: char) -> bool {
    let text = String::from_iter(['a', c]);
    text.escape_debug().count() == 2
        || PRINTED
            .binary_search_by(|(first, last)| match c {
                c if *last < c => Ordering::Less,
                c if *first > c => Ordering::Greater,
                _ => Ordering::Equal,
            })
            .is_ok()
}

/// The spaces, format characters and private ones of Unicode (Zs, Cf and Co) beyond ASCII.
#[rustfmt::skip]
const PRINTED: &[(char, char)] = &[
    ('\u{a0}', '\u{a0}'), ('\u{ad}', '\u{ad}'), ('\u{600}', '\u{605}'), ('\u{61c}', '\u{61c}'),
    ('\u{6dd}', '\u{6dd}'), ('\u{70f}', '\u{70f}'), ('\u{890}', '\u{891}'), ('\u{8e2}', '\u{8e2}'),
    ('\u{1680}', '\u{1680}'), ('\u{180e}', '\u{180e}'), ('\u{2000}', '\u{200f}'),
    ('\u{202a}', '\u{202f}'), ('\u{205f}', '\u{2064}'), ('\u{2066}', '\u{206f}'),
    ('\u{3000}', '\u{3000}'), ('\u{e000}', '\u{f8ff}'), ('\u{feff}', '\u{feff}'),
    ('\u{fff9}', '\u{fffb}'), ('\u{110bd}', '\u{110bd}'), ('\u{110cd}', '\u{110cd}'),
    ('\u{13430}', '\u{1343f}'), ('\u{1bca0}', '\u{1bca3}'), ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0001}', '\u{e0001}'), ('\u{e0020}', '\u{e007f}'), ('\u{f0000}', '\u{ffffd}'),
    ('\u{100000}', '\u{10fffd}'),
];

/// Returns true if the locale's encoding is UTF-8. Messages stay English.
fn is_utf8() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set);
        locale.is_some_and(|locale: OsString| {
            let (_, codeset) = match locale.to_str().and_then(|text| text.split_once('.')) {
                Some(parts) => parts,
                None => return false,
            };
            let codeset = codeset.split('@').next().unwrap_or_default().as_bytes();
            let plain = codeset.iter().filter(|byte| **byte != b'-');
            let plain: Vec<u8> = plain.map(u8::to_ascii_lowercase).collect();
            plain == b"utf8"
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_where_a_shell_would_need_it() {
        for (given, shown) in [
            ("plain-1.0_x+%,/]@", "plain-1.0_x+%,/]@"),
            ("", "''"),
            (" b", "' b'"),
            ("a:b", "'a:b'"),
            ("a\\b", "'a\\b'"),
            ("a\nb", "'a'$'\\n''b'"),
            ("a\tb", "'a'$'\\t''b'"),
            ("\n", "''$'\\n'"),
            ("\x01\x02z", "''$'\\001\\002''z'"),
            ("it's", "\"it's\""),
            ("it's $5", "'it'\\''s $5'"),
            ("'\n'", "''\\'''$'\\n'\\'''"),
            ("#a", "'#a'"),
            ("a#~", "a#~"),
            ("{", "'{'"),
            ("{}", "{}"),
            ("a=b", "'a=b'"),
            ("a?", "'a?'"),
            ("\x1b[31m", "''$'\\033''[31m'"),
            ("\x07", "''$'\\a'"),
        ] {
            let got = name(given.as_bytes());
            assert_eq!(String::from_utf8_lossy(&got), shown, "{given:?}");
        }
    }

    #[test]
    fn arguments_are_quoted_as_in_c() {
        assert_eq!(argument(b"513"), b"'513'");
        assert_eq!(argument(b"a'b\\c\n\x01"), b"'a\\'b\\\\c\\n\\001'");
    }
}
