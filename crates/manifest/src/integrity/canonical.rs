//! The short way for lines exactly as the writer writes them, which nearly all are: some five
//! times as quick as a general parser. Whatever looks the least bit different (escapes, other
//! order, unknown fields, errors, attributes) is left to that one.

use super::entry::{Entry, Kind, Meta};
use super::parse::digest;
use crate::time;

/// The entry in `line`, if it is written in the one way that is looked for here.
pub(super) fn parse(line: &[u8], digest_len: Option<usize>) -> Option<Entry> {
    let mut rest = Rest(line.strip_prefix(b"{\"type\":\"entry\",\"path\":")?);
    let path = rest.string()?.as_bytes().to_vec();
    rest.literal(b",\"kind\":")?;
    let mut entry = Entry::new(path, Kind::from_name(rest.string()?)?);
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
    if rest.0.starts_with(b",\"rdev\":") {
        entry.rdev = Some(rest.number(b",\"rdev\":")?);
    }
    if rest.literal(b",\"digest\":").is_some() {
        entry.digest = Some(digest(rest.string()?, digest_len).ok()?);
    }
    if rest.literal(b",\"target\":").is_some() {
        entry.target = Some(rest.string()?.as_bytes().to_vec());
    }
    if rest.literal(b",\"verified_at\":").is_some() {
        entry.verified_at = Some(time::parse_rfc3339(rest.string()?)?);
    }
    (rest.0 == b"}").then_some(entry)
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
        let special = |&byte: &u8| byte == b'"' || byte == b'\\' || byte < 0x20;
        let end = body.iter().position(special)?;
        if body[end] != b'"' {
            return None;
        }
        self.0 = &body[end + 1..];
        std::str::from_utf8(&body[..end]).ok()
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
        let mut value = 0_u64;
        let mut count = 0;
        for &byte in self.0 {
            if !byte.is_ascii_digit() {
                break;
            }
            value = value.checked_mul(10)?.checked_add(u64::from(byte - b'0'))?;
            count += 1;
        }
        if count == 0 || (count > 1 && self.0[0] == b'0') {
            return None;
        }
        self.0 = &self.0[count..];
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse::{Parsed, parse_general};
    use super::*;
    use crate::digest::Digest;
    use proptest::prelude::*;

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
        let rest = (
            any::<Option<u64>>(),
            any::<Option<i64>>(),
            any::<[u8; 4]>(),
            path,
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
                prop_assert!(odd(&entry.path) || entry.target.is_some_and(|t| odd(&t)));
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
