//! Tagged lines, `SHA256 (path) = digest`: as the BSDs, `sha256sum --tag`, `b3sum --tag` and
//! xxhsum write them, and `openssl dgst` without the first blank, `SHA2-256(path)= digest`.

use bc_digest::{Digest, push_hex};

use crate::algorithm::{self, DigestOrder};
use crate::gnu::{self, ParsedLine, TrimBlank};
use crate::record::End;

/// Appends one line exactly as `sha256sum --tag` prints it. `tag` is usually
/// [`Algorithm::tag`](bc_digest::Algorithm::tag).
///
/// ```
/// use bc_manifest::{End, bsd};
/// let mut out = Vec::new();
/// bsd::write_line(&mut out, "MD5", &[0xab, 0xcd], b"a) = b", End::Newline);
/// assert_eq!(out, b"MD5 (a) = b) = abcd\n");
/// ```
pub fn write_line(out: &mut Vec<u8>, tag: &str, digest: &[u8], path: &[u8], end: End) {
    let escaped = end == End::Newline && gnu::needs_escape(path);
    if escaped {
        out.push(b'\\');
    }
    out.extend_from_slice(tag.as_bytes());
    out.extend_from_slice(b" (");
    gnu::push_path(out, path, escaped);
    out.extend_from_slice(b") = ");
    push_hex(out, digest);
    out.push(end.byte());
}

/// Parses a line that begins with a tag and an opening parenthesis; `None` if it does not.
/// As GNU, the path ends at the last closing parenthesis.
pub(crate) fn parse(line: &[u8], escaped: bool) -> Option<Result<ParsedLine, &'static str>> {
    let tag_len = line
        .iter()
        .take_while(|b| b.is_ascii_alphanumeric() || b"-_/".contains(b))
        .count();
    let (tag, rest) = line.split_at(tag_len);
    let rest = rest.strip_prefix(b" ").unwrap_or(rest).strip_prefix(b"(")?;
    if tag.iter().all(u8::is_ascii_hexdigit) {
        return None; // "digest (path)" of `md5 -r`
    }
    Some(parse_rest(tag, rest, escaped))
}

fn parse_rest(tag: &[u8], rest: &[u8], escaped: bool) -> Result<ParsedLine, &'static str> {
    let tag = algorithm::by_tag(tag).ok_or("unknown algorithm")?;
    let close = rest
        .iter()
        .rposition(|&b| b == b')')
        .ok_or("no closing parenthesis")?;
    let path = if escaped {
        gnu::unescape(&rest[..close])?
    } else {
        rest[..close].to_vec()
    };
    let rest = rest[close + 1..].trim_ascii_start_blank();
    let hex = rest
        .strip_prefix(b"=")
        .ok_or("no equals sign")?
        .trim_ascii_start_blank();
    let digest = Digest::from_hex(hex).ok_or("no digest")?;
    if digest.as_bytes().len() != tag.digest_len {
        return Err("wrong length of digest");
    }
    let digest = if tag.order == DigestOrder::Reversed {
        digest.reversed()
    } else {
        digest
    };
    Ok(ParsedLine {
        algorithm: Some(tag.algorithm),
        digest,
        path,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Option<(String, String, String)> {
        let parsed = parse(line.as_bytes(), false)?.ok()?;
        Some((
            parsed.algorithm?.into_owned(),
            parsed.digest.to_string(),
            String::from_utf8(parsed.path).ok()?,
        ))
    }

    #[test]
    fn what_the_tools_print() {
        // Printed by coreutils 9.1, openssl 3.0 and xxhsum 0.8.1 for a file "a" holding "hi\n".
        let sha256 = "98ea6e4f216f2fb4b69fff9b3a44842c38686ca685f3f55dc48c5d3fb1107be4";
        for (line, name, digest) in [
            (format!("SHA256 (a) = {sha256}"), "sha256", sha256),
            (format!("SHA2-256(a)= {sha256}"), "sha256", sha256),
            (format!("SHA256 (a)={}", sha256.to_uppercase()), "sha256", sha256),
            ("SHA2-512/256(a)= a31a54719bc64d484e0352a21918dffb66d51a510a1a00325b3ae7e6835455bd".into(), "sha512-256", "a31a54719bc64d484e0352a21918dffb66d51a510a1a00325b3ae7e6835455bd"),
            ("BLAKE2b-256 (a) = de9543b2ae1b2b87434a730727db17f5ac8b8c020b84a5cb8c5fbcc1423443ba".into(), "blake2b-256", "de9543b2ae1b2b87434a730727db17f5ac8b8c020b84a5cb8c5fbcc1423443ba"),
            ("XXH32 (a) = d20fe3d3".into(), "xxh32", "d20fe3d3"),
            ("XXH64 (a) = d50463dd92503d34".into(), "xxh64", "d50463dd92503d34"),
            ("XXH64_LE (a) = 343d5092dd6304d5".into(), "xxh64", "d50463dd92503d34"),
            ("XXH3 (a) = b34d1a3ab2bece70".into(), "xxh3", "b34d1a3ab2bece70"),
            ("XXH128 (a) = f4d0497cf9394caab34d1a3ab2bece70".into(), "xxh128", "f4d0497cf9394caab34d1a3ab2bece70"),
        ] {
            assert_eq!(parsed(&line), Some((name.into(), digest.into(), "a".into())), "{line}");
        }
    }

    #[test]
    fn the_path_ends_at_the_last_parenthesis() {
        let line = "XXH32 (SHA256 (x) = 00) = ff) = d20fe3d3";
        assert_eq!(parsed(line).unwrap().2, "SHA256 (x) = 00) = ff");
        assert_eq!(parsed("XXH32 () = d20fe3d3").unwrap().2, "");
    }

    #[test]
    fn refuses() {
        for line in [
            "XXH32 (a) = d20fe3d",
            "XXH32 (a) = d20fe3d3 ",
            "XXH32 (a) d20fe3d3",
            "XXH32 (a = d20fe3d3",
            "XXH32  (a) = d20fe3d3",
            "XXH99 (a) = d20fe3d3",
            "XXH32 (a) = d20fe3d3d20fe3d3",
            "XXH32 (a) = ",
            "XXH32 (",
        ] {
            assert_eq!(parsed(line), None, "{line}");
        }
    }
}
