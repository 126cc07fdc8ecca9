//! Line of a checksum file, tagged or not: both may occur in one file.

use crate::bsd;
use crate::gnu::{self, ParsedLine, Style, TrimBlank};
use crate::record::End;

/// Parses one line without its end, in either the GNU or the BSD style.
pub(crate) fn parse(
    line: &[u8],
    lengths: &[usize],
    end: End,
    style: &mut Style,
) -> Result<ParsedLine, &'static str> {
    let mut rest = line.trim_ascii_start_blank();
    let escaped = rest.first() == Some(&b'\\');
    if escaped {
        if end == End::Nul {
            return Err("backslash before a digest in a NUL-separated manifest");
        }
        rest = &rest[1..];
    }
    let parsed = match bsd::parse(rest, escaped) {
        Some(parsed) => parsed?,
        None => gnu::parse(rest, escaped, lengths, style)?,
    };
    // A path cannot hold a NUL; GNU cuts it off there, which names another file.
    if end == End::Newline && parsed.path.contains(&0) {
        return Err("NUL in the path");
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gnu::write_xxh3_line;

    fn path(line: &[u8], style: &mut Style) -> Result<Vec<u8>, &'static str> {
        parse(line, &[2], End::Newline, style).map(|parsed| parsed.path)
    }

    fn first(line: &[u8]) -> Result<Vec<u8>, &'static str> {
        path(line, &mut Style::Unknown)
    }

    #[test]
    fn what_gnu_accepts() {
        // Each tried with sha256sum 9.1 (and a longer digest).
        for (line, expected) in [
            (&b"abcd  a"[..], &b"a"[..]),
            (b"ABCD *a", b"a"),
            (b"abcd a", b"a"),
            (b"abcd\ta", b"a"),
            (b"abcd\t*a", b"a"),
            (b" \tabcd  a", b"a"),
            (b"abcd   ", b" "),
            (b"abcd  ", b" "),
            (b"abcd  a ", b"a "),
            (b"\\abcd  a\\nb\\\\c\\r", b"a\nb\\c\r"),
            (b"abcd  a\\n", b"a\\n"),
            (b"abcd **", b"*"),
        ] {
            assert_eq!(
                first(line).as_deref(),
                Ok(expected),
                "{}",
                line.escape_ascii()
            );
        }
    }

    #[test]
    fn what_gnu_refuses() {
        for line in [
            &b""[..],
            b" ",
            b"abcd",
            b"abcd ",
            b"abc  a",
            b"abcde  a",
            b"abcdef  a",
            b"ab  a",
            b"abcx  a",
            b"\\abcd  a\\",
            b"\\abcd  a\\x",
            b"\\\\abcd  a",
            b"-----BEGIN PGP",
            b"abcd-  a",
        ] {
            assert!(first(line).is_err(), "{}", line.escape_ascii());
        }
        assert!(first(b"abcd  a\0b").is_err());
    }

    #[test]
    fn the_two_untagged_styles_do_not_mix() {
        let mut style = Style::Unknown;
        assert!(path(b"abcd  a", &mut style).is_ok());
        assert!(path(b"abcd a", &mut style).is_err());
        let mut style = Style::Unknown;
        assert!(path(b"abcd a", &mut style).is_ok());
        assert_eq!(path(b"abcd  a", &mut style).as_deref(), Ok(&b" a"[..]));
        assert_eq!(path(b"abcd *a", &mut style).as_deref(), Ok(&b"*a"[..]));
    }

    #[test]
    fn xxh3_carries_its_name() {
        let mut out = Vec::new();
        write_xxh3_line(&mut out, &[7; 8], b"a", End::Newline);
        assert_eq!(out, b"XXH3_0707070707070707  a\n");
        let parsed = parse(
            &out[..out.len() - 1],
            &[2],
            End::Newline,
            &mut Style::Unknown,
        )
        .unwrap();
        assert_eq!(parsed.algorithm.as_deref(), Some("xxh3"));
    }
}
