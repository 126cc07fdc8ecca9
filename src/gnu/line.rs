//! A line of digests as coreutils reads it (`split_3` in its cksum.c): `digest  name`, `digest name`,
//! `TAG (name) = digest`, `TAG(name)= digest`.

use super::family::{Family, SHA_BITS};

/// State from earlier lines, and the options.
#[derive(Clone, Debug)]
pub struct ChecksumLines {
    /// `cksum`, which knows tags of all digests, and base64.
    is_cksum: bool,
    /// True if the digest was named.
    is_named: bool,
    /// The digest; without a name that of the last tag.
    family: Family,
    /// The length in bits of the digest in the last line.
    bits: usize,
    /// Digits of it.
    hex: usize,
    /// True if lines have only one space before the name, as BSD's `md5 -r` writes them; they are
    /// not mixed with others. `None` before the first line.
    reversed: Option<bool>,
}

/// One line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CheckedLine {
    pub family: Family,
    /// Bits of the digest.
    pub bits: usize,
    /// Digest as the line has it, hexadecimal of any case or base64.
    pub digest: Vec<u8>,
    /// Name without escapes.
    pub name: Vec<u8>,
}

/// Returns the number of characters of so many bytes in base64.
pub fn base64_length(bytes: usize) -> usize {
    bytes.div_ceil(3) * 4
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/'
}

/// Returns the name up to a NUL: the rest is not part of it.
fn up_to_nul(name: &[u8]) -> &[u8] {
    name.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Returns the name without its escapes; `None` if they are none of ours.
fn unescaped(name: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(name.len());
    let mut bytes = name.iter();
    while let Some(&byte) = bytes.next() {
        out.push(match byte {
            0 => return None,
            b'\\' => match bytes.next()? {
                b'n' => b'\n',
                b'r' => b'\r',
                b'\\' => b'\\',
                _ => return None,
            },
            byte => byte,
        });
    }
    Some(out)
}

impl ChecksumLines {
    /// Returns the state for a digest of this length, by default or because it was named.
    pub fn new(is_cksum: bool, is_named: bool, family: Family, bits: usize) -> ChecksumLines {
        ChecksumLines {
            is_cksum,
            is_named,
            family,
            bits,
            hex: bits / 4,
            reversed: None,
        }
    }

    /// Returns the tag by which messages name the digest.
    pub fn tag(&self) -> &'static str {
        self.family.tag()
    }

    /// Returns true if the length is taken from the line.
    fn finds_length(&self) -> bool {
        self.family.has_lengths()
    }

    /// Returns true if lengths of any kind are looked at, which the programs of one digest do not
    /// do.
    fn knows_lengths(&self) -> bool {
        self.is_cksum || self.family == Family::Blake2b
    }

    /// Returns the parts of a line without its end; `None` if it is improper.
    pub fn parse(&mut self, line: &[u8]) -> Option<CheckedLine> {
        let at = |i: usize| line.get(i).copied().unwrap_or(0);
        let mut i = 0;
        while is_blank(at(i)) {
            i += 1;
        }
        let escaped = at(i) == b'\\';
        i += usize::from(escaped);
        self.by_tag(&line[i..])?;
        if let Some(tagged) = self.tagged(&line[i..], escaped) {
            return tagged;
        }
        let least = match self.knows_lengths() {
            true => 3,
            false => self.hex + 2,
        };
        if line.len() - i < least + usize::from(at(i) == b'\\') {
            return None;
        }
        if self.finds_length() {
            self.find_length(&line[i..])?;
        }
        let from = i;
        while at(i) != 0 && !is_blank(at(i)) {
            i += 1;
        }
        if i == line.len() {
            return None;
        }
        let digest = &line[from..i];
        i += 1;
        if !self.is_digest(digest) {
            return None;
        }
        if line.len() - i == 1 || !matches!(at(i), b' ' | b'*') {
            // An attacker could else make a name of another by a leading space.
            if self.reversed == Some(false) {
                return None;
            }
            self.reversed = Some(true);
        } else if self.reversed != Some(true) {
            self.reversed = Some(false);
            i += 1;
        }
        let name = line.get(i..).unwrap_or_default();
        let name = match escaped {
            true => unescaped(name)?,
            false => up_to_nul(name).to_vec(),
        };
        Some(self.line(digest, name))
    }

    fn line(&self, digest: &[u8], name: Vec<u8>) -> CheckedLine {
        CheckedLine {
            family: self.family,
            bits: self.bits,
            digest: digest.to_vec(),
            name,
        }
    }

    /// Takes the digest from the line's tag where none was named. `None`: there is no tag, or one
    /// of lines that no program can check.
    fn by_tag(&mut self, rest: &[u8]) -> Option<()> {
        if !self.is_cksum || (self.is_named && self.family != Family::Sha2) {
            return Some(());
        }
        const LONGEST: usize = 7;
        let ends = |byte: &u8| *byte == 0 || is_blank(*byte) || matches!(byte, b'-' | b'(');
        let end = rest.iter().position(ends).unwrap_or(rest.len());
        let found = match end <= LONGEST {
            true => Family::from_tag(&rest[..end]),
            false => None,
        };
        match (self.is_named, found) {
            (false, Some(family)) if !family.is_old() => self.family = family,
            (false, _) => return None,
            (true, Some(family)) if is_sha2(family) => self.family = family,
            (true, _) => {}
        }
        Some(())
    }

    /// Reads a line with a tag. `None`: it has no tag; `Some(None)`: it is improper.
    fn tagged(&mut self, line: &[u8], escaped: bool) -> Option<Option<CheckedLine>> {
        let mut rest = line.strip_prefix(self.family.tag().as_bytes())?;
        if self.knows_lengths() {
            self.bits = self.family.bits();
            if let Some(length) = rest.strip_prefix(b"-") {
                let (bits, after) = match number(length) {
                    Some(found) => found,
                    None => return Some(None),
                };
                let fits = match self.family {
                    Family::Sha2 | Family::Sha3 => SHA_BITS.contains(&bits),
                    _ => bits > 0 && bits <= self.bits && bits % 8 == 0,
                };
                if !fits {
                    return Some(None);
                }
                self.bits = bits;
                rest = after;
            }
            self.hex = self.bits / 4;
        }
        let rest = rest.strip_prefix(b" ").unwrap_or(rest);
        let rest = rest.strip_prefix(b"(")?;
        Some(self.after_tag(rest, escaped))
    }

    /// Reads `name) = digest`.
    fn after_tag(&self, rest: &[u8], escaped: bool) -> Option<CheckedLine> {
        let close = rest.iter().rposition(|byte| *byte == b')')?;
        let name = match escaped {
            true => unescaped(&rest[..close])?,
            false => up_to_nul(&rest[..close]).to_vec(),
        };
        let digest = trimmed(trimmed(&rest[close + 1..]).strip_prefix(b"=")?);
        self.is_digest(digest).then(|| self.line(digest, name))
    }

    /// Finds the length of the digest that begins the line, by its digits.
    fn find_length(&mut self, rest: &[u8]) -> Option<()> {
        let count = |bytes: &[u8], is: fn(u8) -> bool| {
            let end = bytes.iter().position(|byte| !is(*byte));
            end.unwrap_or(bytes.len())
        };
        let mut hex = count(rest, |byte| byte.is_ascii_hexdigit());
        // Also for a line that turns out improper, as in coreutils, where later lines, by whose tag
        // the length is settled, are then improper as well.
        self.hex = hex;
        if self.is_cksum {
            let base64 = hex + count(&rest[hex..], is_base64);
            let equals = count(&rest[base64..], |byte| byte == b'=');
            let all = base64 + equals;
            if self.family != Family::Blake2b {
                if !SHA_BITS.contains(&(hex / 2 * 8)) {
                    let fitting = |bits: &&usize| base64_length(**bits / 8) == all;
                    hex = SHA_BITS.iter().find(fitting)? / 4;
                }
            } else if hex < base64 {
                let fits = |bits: &usize| base64_length(bits / 8) == all && bits % 3 == equals;
                if let Some(bits) = (8..=512).step_by(8).find(fits) {
                    hex = bits / 4;
                }
            }
        }
        self.hex = hex;
        if hex < 2 || hex % 2 != 0 || hex > 128 {
            return None;
        }
        self.bits = hex * 4;
        Some(())
    }

    fn is_digest(&self, digest: &[u8]) -> bool {
        if self.is_cksum && digest.len() == base64_length(self.bits / 8) {
            let (digits, equals) = digest.split_at(digest.len() - self.bits % 3);
            return digits.iter().all(|byte| is_base64(*byte))
                && equals.iter().all(|byte| *byte == b'=');
        }
        digest.len() == self.hex && digest.iter().all(u8::is_ascii_hexdigit)
    }
}

fn is_sha2(family: Family) -> bool {
    matches!(
        family,
        Family::Sha2 | Family::Sha224 | Family::Sha256 | Family::Sha384 | Family::Sha512
    )
}

/// Reads a number as C writes it, octal and hexadecimal too; returns it and the rest.
fn number(text: &[u8]) -> Option<(usize, &[u8])> {
    if !text.first()?.is_ascii_digit() {
        return None;
    }
    let (digits, radix) = match text {
        [b'0', b'x' | b'X', rest @ ..] if rest.first().is_some_and(u8::is_ascii_hexdigit) => {
            (rest, 16)
        }
        [b'0', ..] => (text, 8),
        _ => (text, 10),
    };
    let is_digit = |byte: &u8| char::from(*byte).is_digit(radix);
    let end = digits.iter().position(|byte| !is_digit(byte));
    let (number, rest) = digits.split_at(end.unwrap_or(digits.len()));
    let number = std::str::from_utf8(number).ok()?;
    Some((usize::from_str_radix(number, radix).ok()?, rest))
}

/// Returns the text after leading blanks.
fn trimmed(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|byte| !is_blank(*byte));
    &text[start.unwrap_or(text.len())..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn md5() -> ChecksumLines {
        ChecksumLines::new(false, true, Family::Md5, 128)
    }

    fn cksum() -> ChecksumLines {
        ChecksumLines::new(true, false, Family::Crc, 32)
    }

    const EMPTY: &str = "d41d8cd98f00b204e9800998ecf8427e";

    fn name(lines: &mut ChecksumLines, line: &str) -> Option<String> {
        let line = lines.parse(line.as_bytes())?;
        Some(String::from_utf8(line.name).unwrap())
    }

    #[test]
    fn untagged_lines() {
        for (line, expected) in [
            (format!("{EMPTY}  a b"), Some("a b")),
            (format!("{EMPTY} *a"), Some("a")),
            (format!(" \t{EMPTY}  a"), Some("a")),
            (format!("\\{EMPTY}  a\\nb\\\\"), Some("a\nb\\")),
            (format!("\\{EMPTY}  a\\tb"), None),
            (format!("{EMPTY}  a\\nb"), Some("a\\nb")),
            (format!("{}  a", EMPTY.to_uppercase()), Some("a")),
            (format!("{EMPTY}0  a"), None),
            (EMPTY.to_owned(), None),
            (format!("{EMPTY}  "), Some(" ")),
            ("\0".repeat(32) + "  h", None),
        ] {
            assert_eq!(name(&mut md5(), &line).as_deref(), expected, "{line:?}");
        }
    }

    #[test]
    fn styles_are_not_mixed() {
        let mut lines = md5();
        assert_eq!(
            name(&mut lines, &format!("{EMPTY} a")).as_deref(),
            Some("a")
        );
        assert_eq!(
            name(&mut lines, &format!("{EMPTY}  b")).as_deref(),
            Some(" b")
        );
        let mut lines = md5();
        assert_eq!(
            name(&mut lines, &format!("{EMPTY}  a")).as_deref(),
            Some("a")
        );
        assert_eq!(name(&mut lines, &format!("{EMPTY} b")), None);
    }

    #[test]
    fn tagged_lines() {
        for (line, expected) in [
            (format!("MD5 (a) = {EMPTY}"), Some("a")),
            (format!("MD5(a)= {EMPTY}"), Some("a")),
            (format!("MD5 (a) b) \t=\t{EMPTY}"), Some("a) b")),
            (format!("\\MD5 (a\\nb) = {EMPTY}"), Some("a\nb")),
            (format!("SHA1 (a) = {EMPTY}"), None),
            ("MD5 (".to_owned(), None),
            ("MD5 ()".to_owned(), None),
        ] {
            assert_eq!(name(&mut md5(), &line).as_deref(), expected, "{line:?}");
            assert_eq!(name(&mut cksum(), &line).as_deref(), expected, "{line:?}");
        }
    }

    #[test]
    fn lengths_come_from_tags_and_digits() {
        let mut lines = cksum();
        let line = lines.parse(b"BLAKE2b-24 (a) = abcdef").unwrap();
        assert_eq!((line.family, line.bits), (Family::Blake2b, 24));
        // Four digits can only be base64, and that would end with a sign.
        assert_eq!(lines.parse(b"BLAKE2b-16 (a) = abcd"), None);
        assert_eq!(lines.parse(b"BLAKE2b-12 (a) = abc"), None);
        assert_eq!(lines.parse(b"SHA2-128 (a) = 0123456789abcdef"), None);
        let base64 = b"MD5 (a) = 1B2M2Y8AsgTpgAmY7PhCfg==";
        assert_eq!(cksum().parse(base64).unwrap().digest.len(), 24);
        assert_eq!(cksum().parse(&base64[..base64.len() - 1]), None);
        let mut b2 = ChecksumLines::new(false, true, Family::Blake2b, 512);
        assert_eq!(b2.parse(b"abcd  a").unwrap().bits, 16);
        assert_eq!(b2.parse(b"0A0BA0"), None);
        assert_eq!(b2.parse(b"BLAKE2b-"), None);
    }

    #[test]
    fn no_line_panics() {
        let mut rng = bc_testkit::Rng::new(9);
        let signs = b"SHA2-56MD()= \\*nBLAKEb\0\t0aF/+";
        for _ in 0..20_000 {
            let len = rng.below(60);
            let line: Vec<u8> = (0..len)
                .map(|_| signs[rng.below(signs.len() as u64) as usize])
                .collect();
            for mut lines in [
                md5(),
                cksum(),
                ChecksumLines::new(true, true, Family::Sha2, 512),
            ] {
                let _ = lines.parse(&line);
                for start in ["SHA2-", "MD5 (", "BLAKE2b-16 (a) = "] {
                    let _ = lines.parse(&[start.as_bytes(), &line].concat());
                }
            }
        }
    }
}
