//! The short way for lines exactly as the writer writes them, which nearly all are: some five
//! times as quick as a general parser. Whatever looks the least bit different (escapes, other
//! order, unknown fields, errors, attributes) is left to that one.

use super::entry::{Entry, Kind, Meta};
use crate::digest::Digest;
use crate::time;

/// Reads `line` into `entry`, if it is written in the one way that is looked for here; nothing
/// of what `entry` held before is left then. Otherwise returns `false` and `entry` is of no use.
pub(super) fn parse_into(line: &[u8], digest_len: Option<usize>, entry: &mut Entry) -> bool {
    parse_fields(line, digest_len, entry).is_some()
}

fn parse_fields(line: &[u8], digest_len: Option<usize>, entry: &mut Entry) -> Option<()> {
    let mut rest = Rest(line.strip_prefix(b"{\"type\":\"entry\",\"path\":")?);
    entry.path.clear();
    entry.path.extend_from_slice(rest.string()?.as_bytes());
    rest.literal(b",\"kind\":")?;
    entry.kind = rest.kind()?;
    entry.meta = Some(Meta {
        size: rest.number(b",\"size\":")?,
        mode: rest.small(b",\"mode\":")?,
        uid: rest.small(b",\"uid\":")?,
        gid: rest.small(b",\"gid\":")?,
        mtime_ns: rest.signed(b",\"mtime_ns\":")?,
        ctime_ns: rest.signed(b",\"ctime_ns\":")?,
        ino: rest.number(b",\"ino\":")?,
        nlink: rest.number(b",\"nlink\":")?,
    });
    entry.dev = match rest.0.starts_with(b",\"dev\":") {
        true => Some(rest.small(b",\"dev\":")?),
        false => None,
    };
    entry.mount = None;
    entry.rdev = match rest.0.starts_with(b",\"rdev\":") {
        true => Some(rest.number(b",\"rdev\":")?),
        false => None,
    };
    entry.digest = match rest.literal(b",\"digest\":") {
        Some(()) => Some(rest.digest(digest_len)?),
        None => None,
    };
    entry.target = match rest.literal(b",\"target\":") {
        Some(()) => Some(rest.string()?.as_bytes().to_vec()),
        None => None,
    };
    entry.verified_at = match rest.literal(b",\"verified_at\":") {
        Some(()) => Some(time::parse_rfc3339(rest.string()?)?),
        None => None,
    };
    entry.tried_run = match rest.0.starts_with(b",\"tried_run\":") {
        true => Some(rest.small(b",\"tried_run\":")?),
        false => None,
    };
    entry.size_alone = None;
    entry.tried_at = None;
    entry.found = None;
    entry.xattrs = None;
    entry.error = None;
    if !entry.extra.is_empty() {
        entry.extra.clear();
    }
    (rest.0 == b"}").then_some(())
}

/// What of the line is still to be read.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn literal(&mut self, text: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(text)?;
        Some(())
    }

    /// A string without escapes.
    fn string(&mut self) -> Option<&'a str> {
        let body = self.0.strip_prefix(b"\"")?;
        let end = memchr::memchr2(b'"', b'\\', body)?;
        let text = &body[..end];
        // Without an early exit, which makes it a few vector instructions.
        let controls = text.iter().fold(false, |any, &byte| any | (byte < 0x20));
        if body[end] != b'"' || controls {
            return None;
        }
        self.0 = &body[end + 1..];
        std::str::from_utf8(text).ok()
    }

    /// A digest of this many bytes, if that is known.
    fn digest(&mut self, len: Option<usize>) -> Option<Digest> {
        let body = self.0.strip_prefix(b"\"")?;
        let digits = match len {
            Some(len) => len * 2,
            None => memchr::memchr(b'"', body)?,
        };
        let digest = Digest::from_lower_hex(body.get(..digits)?)?;
        self.0 = body[digits..].strip_prefix(b"\"")?;
        Some(digest)
    }

    fn kind(&mut self) -> Option<Kind> {
        // Nearly all are these.
        for (name, kind) in [(&b"\"file\""[..], Kind::File), (b"\"dir\"", Kind::Dir)] {
            if self.literal(name).is_some() {
                return Some(kind);
            }
        }
        Kind::from_name(self.string()?)
    }

    /// A number as JSON has it: no sign, no leading zeros.
    fn number(&mut self, key: &[u8]) -> Option<u64> {
        self.literal(key)?;
        self.digits()
    }

    fn small(&mut self, key: &[u8]) -> Option<u32> {
        self.number(key)?.try_into().ok()
    }

    fn signed(&mut self, key: &[u8]) -> Option<i64> {
        self.literal(key)?;
        if self.literal(b"-").is_some() {
            // `-0` is a float to the general parser.
            let value = self.digits().filter(|&value| value > 0)?;
            return 0_i64.checked_sub_unsigned(value);
        }
        self.digits()?.try_into().ok()
    }

    fn digits(&mut self) -> Option<u64> {
        let digits = self.0;
        let mut value = 0_u64;
        let mut count = 0;
        // Times have 19 digits: two steps of eight. 16 digits cannot overflow.
        while count < 16
            && let Some(eight) = digits[count..].first_chunk()
            && let Some(number) = eight_digits(*eight)
        {
            value = value * 100_000_000 + number;
            count += 8;
        }
        while let Some(&byte) = digits.get(count)
            && byte.is_ascii_digit()
        {
            value = value.checked_mul(10)?.checked_add(u64::from(byte - b'0'))?;
            count += 1;
        }
        if count == 0 || (count > 1 && digits[0] == b'0') {
            return None;
        }
        self.0 = &digits[count..];
        Some(value)
    }
}

/// The number that eight digits make, if that is what they are: all at once in one register.
fn eight_digits(text: [u8; 8]) -> Option<u64> {
    const ZEROS: u64 = 0x3030_3030_3030_3030;
    let word = u64::from_le_bytes(text);
    // A byte from 0x30 to 0x39 keeps its high nibble with and without 6 added.
    let high = 0xf0f0_f0f0_f0f0_f0f0;
    if word & high != ZEROS || word.wrapping_add(0x0606_0606_0606_0606) & high != ZEROS {
        return None;
    }
    // Neighbours into pairs, pairs into fours, fours into one; the first digit is lowest.
    let word = word & 0x0f0f_0f0f_0f0f_0f0f;
    let word = (word * 10 + (word >> 8)) & 0x00ff_00ff_00ff_00ff;
    let word = (word * 100 + (word >> 16)) & 0x0000_ffff_0000_ffff;
    Some((word * 10_000 + (word >> 32)) & 0xffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::super::entry::{Found, Mounted};
    use super::super::parse::{Parsed, parse_general};
    use super::*;
    use proptest::prelude::*;

    fn parse(line: &[u8], digest_len: Option<usize>) -> Option<Entry> {
        // Whatever was there before must be gone.
        let mut entry = Entry::new(b"before".to_vec(), Kind::Char);
        entry.rdev = Some(1);
        entry.digest = Digest::new(&[9]);
        entry.target = Some(b"before".to_vec());
        entry.xattrs = Some(Default::default());
        entry.verified_at = Some(1);
        entry.tried_run = Some(1);
        entry.size_alone = Some(1);
        entry.tried_at = Some(1);
        entry.found = Some(Found::Damaged);
        entry.dev = Some(1);
        entry.mount = Some(Default::default());
        entry.error = Some(crate::Failure {
            op: "before".into(),
            errno: None,
            message: String::new(),
        });
        entry.extra.insert("before".into(), 1.into());
        parse_into(line, digest_len, &mut entry).then_some(entry)
    }

    #[test]
    fn eight_digits_at_once() {
        assert_eq!(eight_digits(*b"12345678"), Some(12_345_678));
        assert_eq!(eight_digits(*b"00000000"), Some(0));
        assert_eq!(eight_digits(*b"99999999"), Some(99_999_999));
        for at in 0..8 {
            for byte in 0..=255_u8 {
                let mut text = *b"10203049";
                text[at] = byte;
                let expected = std::str::from_utf8(&text)
                    .ok()
                    .filter(|_| text.iter().all(u8::is_ascii_digit))
                    .and_then(|text| text.parse().ok());
                assert_eq!(eight_digits(text), expected, "{text:?}");
            }
        }
    }

    fn general(line: &[u8]) -> Option<Entry> {
        match parse_general(line, Some(4)) {
            Ok(Parsed::Entry(entry)) => Some(entry),
            _ => None,
        }
    }

    fn entry() -> impl Strategy<Value = Entry> {
        let kind = proptest::sample::select(&Kind::ALL[..]);
        let numbers = (any::<u64>(), any::<u32>(), any::<u32>(), any::<u32>());
        let times = (any::<i64>(), any::<i64>(), any::<u64>(), any::<u64>());
        let path = "[a-zé\"\\\\\n.-]{1,9}";
        let tried = (any::<i64>(), any::<bool>());
        let rare = (
            any::<Option<u32>>(),
            proptest::option::of("[a-z:/\"é]{0,9}"),
            proptest::option::of(tried),
        );
        let rest = (
            any::<Option<u64>>(),
            any::<Option<i64>>(),
            any::<[u8; 4]>(),
            path,
            rare,
        );
        (path, kind, numbers, times, rest).prop_map(|(path, kind, a, b, rest)| {
            let mut entry = Entry::new(path.into_bytes(), kind);
            entry.meta = Some(Meta {
                size: a.0,
                mode: a.1,
                uid: a.2,
                gid: a.3,
                mtime_ns: b.0,
                ctime_ns: b.1,
                ino: b.2,
                nlink: b.3,
            });
            entry.rdev = rest.0;
            entry.verified_at = rest.1;
            entry.dev = rest.4.0;
            entry.tried_run = rest.4.0;
            entry.mount = rest.4.1.map(|source| {
                Box::new(Mounted {
                    root: Some(source.clone()),
                    fs_uuid: rest.0.map(|id| id.to_string()),
                    subvolid: rest.0,
                    source,
                })
            });
            if let Some((time, damaged)) = rest.4.2 {
                let found = [Found::Unreadable, Found::Damaged][usize::from(damaged)];
                (entry.tried_at, entry.found) = (Some(time), Some(found));
            }
            match kind {
                Kind::File => entry.digest = Digest::new(&rest.2),
                Kind::Symlink => entry.target = Some(rest.3.into_bytes()),
                _ => {}
            }
            entry
        })
    }

    fn line_of(entry: &Entry) -> Vec<u8> {
        let mut line = Vec::new();
        entry.write_line(&mut line);
        line.pop();
        line
    }

    #[test]
    fn the_usual_line_is_taken() {
        let mut entry = Entry::new(b"drivers/a b/caf\xc3\xa9.c".to_vec(), Kind::File);
        entry.meta = Some(Meta {
            mtime_ns: -1,
            size: 7,
            ..Meta::default()
        });
        entry.dev = Some(1);
        entry.digest = Digest::new(&[1, 2, 3, 0xff]);
        assert_eq!(parse(&line_of(&entry), Some(4)), Some(entry));
    }

    proptest! {
        #[test]
        fn what_the_writer_writes(entry in entry()) {
            let line = line_of(&entry);
            prop_assert_eq!(general(&line), Some(entry.clone()));
            if let Some(quick) = parse(&line, Some(4)) {
                prop_assert_eq!(&quick, &entry);
            } else {
                let odd = |bytes: &[u8]| bytes.iter().any(|b| b"\"\\\n".contains(b));
                let rare = entry.mount.is_some() || entry.tried_at.is_some();
                prop_assert!(rare || odd(&entry.path) || entry.target.is_some_and(|t| odd(&t)));
            }
        }

        /// Never takes what the general parser refuses, never reads it otherwise.
        #[test]
        fn what_anybody_writes(
            entry in entry(),
            at: proptest::sample::Index,
            with in proptest::collection::vec(any::<u8>(), 0..3),
            drop in 0..3_usize,
        ) {
            let mut line = line_of(&entry);
            let at = at.index(line.len());
            let end = (at + drop).min(line.len());
            line.splice(at..end, with);
            if let Some(quick) = parse(&line, Some(4)) {
                prop_assert_eq!(Some(quick), general(&line));
            }
        }
    }
}
