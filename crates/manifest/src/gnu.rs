//! The lines of sha256sum and its kin, `digest  path`: written as coreutils 9 does and parsed
//! as its `digest.c` does, in the functions `split_3` and `filename_unescape`.

use std::borrow::Cow;

use bc_digest::{Digest, Plain, push_hex};

use crate::algorithm::Name;
use crate::record::End;

/// Appends one line exactly as `sha256sum` prints it.
///
/// A path with a backslash, newline or carriage return has them escaped and a backslash put
/// before the line, unless the line ends with NUL.
///
/// ```
/// use bc_manifest::{End, gnu};
/// let mut out = Vec::new();
/// gnu::write_line(&mut out, &[0xab, 0xcd], b"a\nb", End::Newline);
/// assert_eq!(out, b"\\abcd  a\\nb\n");
/// ```
pub fn write_line(out: &mut Vec<u8>, digest: &[u8], path: &[u8], end: End) {
    write_prefixed(out, b"", digest, path, end);
}

/// Writes a line like [`write_line`] with `XXH3_` before the digest, as xxhsum 0.8.3 and later mark
/// the 64-bit XXH3, which would be taken for XXH64 by its length.
///
/// Internal to bit-crafts.
#[doc(hidden)]
pub fn write_xxh3_line(out: &mut Vec<u8>, digest: &[u8], path: &[u8], end: End) {
    write_prefixed(out, XXH3_PREFIX, digest, path, end);
}

const XXH3_PREFIX: &[u8] = b"XXH3_";

fn write_prefixed(out: &mut Vec<u8>, prefix: &[u8], digest: &[u8], path: &[u8], end: End) {
    let escaped = end == End::Newline && needs_escape(path);
    if escaped {
        out.push(b'\\');
    }
    out.extend_from_slice(prefix);
    push_hex(out, digest);
    out.extend_from_slice(b"  ");
    push_path(out, path, escaped);
    out.push(end.byte());
}

/// Appends `number length`, as `cksum` and `sum` print it of standard input: they cannot be
/// distinguished from other text, so nothing reads them; the caller adds the name and
/// ends the line. `digest` has at most four bytes, the highest first, and `size` is in bytes.
///
/// ```
/// use bc_digest::Plain;
/// let mut out = Vec::new();
/// bc_manifest::gnu::write_sum(&mut out, Plain::Blocks1024, &[0, 97], 1025);
/// assert_eq!(out, b"00097     2");
/// ```
pub fn write_sum(out: &mut Vec<u8>, plain: Plain, digest: &[u8], size: u64) {
    let number = digest
        .iter()
        .fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    let text = match plain {
        Plain::Blocks1024 => format!("{number:05} {:5}", size.div_ceil(1024)),
        Plain::Blocks512 => format!("{number} {}", size.div_ceil(512)),
        _ => format!("{number} {size}"),
    };
    out.extend_from_slice(text.as_bytes());
}

/// True if the path contains a byte that coreutils escapes.
///
/// Internal to bit-crafts.
#[doc(hidden)]
pub fn needs_escape(path: &[u8]) -> bool {
    path.iter().any(|b| matches!(b, b'\\' | b'\n' | b'\r'))
}

/// Appends the path with `\`, newline and carriage return escaped, as coreutils prints names
/// in lines and messages that begin with a backslash.
///
/// Internal to bit-crafts.
#[doc(hidden)]
pub fn escape_path(out: &mut Vec<u8>, path: &[u8]) {
    push_path(out, path, true);
}

pub(crate) fn push_path(out: &mut Vec<u8>, path: &[u8], escaped: bool) {
    if !escaped {
        return out.extend_from_slice(path);
    }
    for &byte in path {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            _ => out.push(byte),
        }
    }
}

/// Content of a line.
pub(crate) struct ParsedLine {
    /// Algorithm, if the line names it.
    pub(crate) algorithm: Option<Name>,
    pub(crate) digest: Digest,
    pub(crate) path: Vec<u8>,
}

/// Untagged style of the lines so far. As in GNU, a file may have either `digest  path` or the
/// `digest path` of BSD's `md5 -r`, not both: a path that begins with a space or star could
/// otherwise be passed off as another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Style {
    #[default]
    Unknown,
    Standard,
    Reversed,
}

/// Returns the digest that a line begins with, if it has one of these lengths in bytes and a blank
/// behind it, and the number of its digits. No tag looks like that.
///
/// Only the characters behind digests of such lengths are looked at before the digits are decoded,
/// which happens many at a time: to look at each digit took half of the time of reading a list.
pub(crate) fn leading_digest(rest: &[u8], lengths: &[usize]) -> Option<(Digest, usize)> {
    lengths.iter().find_map(|length| {
        let (digits, behind) = rest.split_at_checked(2 * length)?;
        behind.first().filter(|byte| is_blank(**byte))?;
        Some((Digest::from_hex(digits)?, digits.len()))
    })
}

/// Parses the text behind the backslash that marks a line with escapes (`escaped`), if there is
/// one.
pub(crate) fn parse(
    rest: &[u8],
    escaped: bool,
    lengths: &[usize],
    style: &mut Style,
) -> Result<ParsedLine, &'static str> {
    let (algorithm, rest, lengths) = match rest.strip_prefix(XXH3_PREFIX) {
        Some(rest) => (Some(Cow::Borrowed("xxh3")), rest, &[8][..]),
        None => (None, rest, lengths),
    };
    let Some((digest, digits)) = leading_digest(rest, lengths) else {
        let digits = rest.iter().take_while(|b| b.is_ascii_hexdigit()).count();
        return Err(match Digest::from_hex(&rest[..digits]) {
            None => "no digest",
            Some(_) if !lengths.contains(&(digits / 2)) => "wrong length of digest",
            Some(_) => "no blank after the digest",
        });
    };
    let rest = &rest[digits..];
    let mut path = &rest[1..];
    match path {
        [] => return Err("no path"),
        [b' ' | b'*', _, ..] if *style != Style::Reversed => {
            *style = Style::Standard;
            path = &path[1..];
        }
        [b' ' | b'*', _, ..] => {}
        _ if *style == Style::Standard => return Err("one blank before the path, not two"),
        _ => *style = Style::Reversed,
    }
    let path = if escaped {
        unescape(path)?
    } else {
        path.to_vec()
    };
    Ok(ParsedLine {
        algorithm,
        digest,
        path,
    })
}

/// Undoes the escapes; any but the three known ones is an error, as with GNU.
pub(crate) fn unescape(path: &[u8]) -> Result<Vec<u8>, &'static str> {
    let mut out = Vec::with_capacity(path.len());
    let mut bytes = path.iter();
    while let Some(&byte) = bytes.next() {
        out.push(match byte {
            b'\\' => match bytes.next() {
                Some(b'n') => b'\n',
                Some(b'r') => b'\r',
                Some(b'\\') => b'\\',
                _ => return Err("invalid escape"),
            },
            byte => byte,
        });
    }
    Ok(out)
}

/// True for a blank of C's own locale.
pub(crate) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

pub(crate) trait TrimBlank {
    fn trim_ascii_start_blank(&self) -> &[u8];
}

impl TrimBlank for [u8] {
    fn trim_ascii_start_blank(&self) -> &[u8] {
        let blanks = self.iter().take_while(|&&b| is_blank(b)).count();
        &self[blanks..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_as_cksum_and_sum_print_them() {
        for (plain, digest, size, expected) in [
            (
                Plain::Bytes,
                &[0xff, 0xff, 0xff, 0xff][..],
                0,
                "4294967295 0",
            ),
            (Plain::Bytes, &[0, 0, 0, 0], 12, "0 12"),
            (Plain::Blocks1024, &[0, 0], 0, "00000     0"),
            (Plain::Blocks1024, &[255, 255], 1 << 40, "65535 1073741824"),
            (Plain::Blocks512, &[0, 97], 1, "97 1"),
            (Plain::Blocks512, &[0, 0], 1024, "0 2"),
        ] {
            let mut out = Vec::new();
            write_sum(&mut out, plain, digest, size);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
