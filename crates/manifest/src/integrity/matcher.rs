//! Comparison of a line with the known metadata of a file or directory. Nearly all lines match
//! where a tree is verified against its manifest, and comparing takes less than parsing a line.

use bc_digest::Digest;

use super::canonical::Rest;
use super::entry::{Kind, Meta};
use super::header::Header;
use super::swar;
use crate::algorithm::digest_len;
use crate::time;

/// Expected entry of a [directory](Matcher::enter): a file with any digest, or a directory.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    /// The last component of its path.
    pub name: &'a [u8],
    /// Kind; only files and directories can be expected.
    pub kind: Kind,
    /// All of its metadata.
    pub meta: Meta,
}

/// A line that matches the expected entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// Length in bytes, the newline included.
    pub len: usize,
    /// Run that tried the file's content last, if the line has it.
    pub tried_run: Option<u32>,
}

/// Comparison of lines of one manifest with the entries that are expected.
///
/// A line that matches is one that [`Reader`](super::Reader) takes: written as
/// [`Writer`](super::Writer) writes it, with a path below the root, and a digest of the manifest's
/// algorithm if it is a file's. Beside the expected fields it contains at most the index of a
/// device, the time when the content was verified, the run that tried it, and the stamp of a copy.
/// Lines in another spelling never match, whatever their content.
#[derive(Debug)]
pub struct Matcher {
    digest_len: Option<usize>,
    /// Beginning of the paths: empty, or with a closing slash.
    dir: Vec<u8>,
    /// True if these are paths that appear in lines without escapes.
    is_plain: bool,
    /// Common fields of files and of directories, since these take turns.
    owners: [Owner; 2],
    /// Text of the last `verified_at` that was found to be a time.
    verified_at: Vec<u8>,
}

/// The fields that most entries have in common, and how they are written.
#[derive(Debug, Default)]
struct Owner {
    text: Vec<u8>,
    mode: u32,
    uid: u32,
    gid: u32,
}

impl Matcher {
    /// Makes a matcher for the lines of the manifest with this header.
    pub fn new(header: &Header) -> Matcher {
        Matcher {
            digest_len: digest_len(&header.algorithm),
            dir: Vec::new(),
            is_plain: true,
            owners: Default::default(),
            verified_at: Vec::new(),
        }
    }

    /// Returns the path of the entry's line that `text` begins with, if it is written without
    /// escapes.
    pub fn path(text: &[u8]) -> Option<&[u8]> {
        Rest::of_entry(text)?.path()
    }

    /// Sets the directory that entries are expected in from here on: its path with a closing slash,
    /// or nothing for the root. At first it is the root.
    pub fn enter(&mut self, dir: &[u8]) {
        self.dir.clear();
        self.dir.extend_from_slice(dir);
        self.is_plain = match dir.strip_suffix(b"/") {
            Some(path) => path.split(|&byte| byte == b'/').all(swar::is_plain_name),
            None => dir.is_empty(),
        };
    }

    /// Takes the path of the entry, if it is the expected one.
    fn path_is(&self, name: &[u8], rest: &mut Rest<'_>) -> Option<()> {
        if self.is_plain && swar::is_plain_name(name) {
            rest.literal(b"\"")?;
            rest.literal(&self.dir)?;
            rest.literal(name)?;
            return rest.literal(b"\"");
        }
        let path = rest.path()?;
        (path.strip_prefix(&self.dir[..])? == name).then_some(())
    }

    /// Compares the line that `text` begins with; `None` if it is incomplete or does not match.
    pub fn line(&mut self, text: &[u8], expected: &Expected<'_>) -> Option<Match> {
        let meta = &expected.meta;
        let mut rest = Rest::of_entry(text)?;
        self.path_is(expected.name, &mut rest)?;
        match expected.kind {
            Kind::File => rest.literal(b",\"kind\":\"file\"")?,
            Kind::Dir => rest.literal(b",\"kind\":\"dir\"")?,
            _ => return None,
        }
        rest.number_is(b",\"size\":", meta.size)?;
        self.owners[usize::from(expected.kind == Kind::Dir)].is_in(&mut rest, meta)?;
        rest.time_is(b",\"mtime_ns\":", meta.mtime_ns)?;
        rest.time_is(b",\"ctime_ns\":", meta.ctime_ns)?;
        rest.number_is(b",\"ino\":", meta.ino)?;
        rest.number_is(b",\"nlink\":", meta.nlink)?;
        let mut tried_run = None;
        if rest.literal(b"}\n").is_none() {
            if rest.begins(b",\"dev\":") {
                rest.small(b",\"dev\":")?;
            }
            if expected.kind == Kind::File {
                rest.literal(b",\"digest\":")?;
                Digest::is_lower_hex(rest.digits_of_digest(self.digest_len)?).then_some(())?;
            }
            if rest.begins(b",\"verified_at\":") {
                self.time(&mut rest)?;
            }
            if rest.begins(b",\"tried_run\":") {
                tried_run = Some(rest.small(b",\"tried_run\":")?);
            }
            if rest.literal(b",\"copy_stamp\":").is_some() {
                rest.copy_stamp()?;
            }
            rest.literal(b"}\n")?;
        } else if expected.kind == Kind::File {
            return None;
        }
        let len = text.len() - rest.len();
        Some(Match { len, tried_run })
    }

    /// Takes the time at which the content was verified, whatever it is.
    fn time(&mut self, rest: &mut Rest<'_>) -> Option<()> {
        if !self.verified_at.is_empty() && rest.literal(&self.verified_at).is_some() {
            return Some(());
        }
        let before = rest.text();
        rest.literal(b",\"verified_at\":")?;
        time::parse_rfc3339(rest.string()?)?;
        self.verified_at.clear();
        let len = before.len() - rest.len();
        self.verified_at.extend_from_slice(&before[..len]);
        Some(())
    }
}

impl Owner {
    /// Takes mode, owner and group, if they are the expected ones.
    fn is_in(&mut self, rest: &mut Rest<'_>, meta: &Meta) -> Option<()> {
        let expected = (meta.mode, meta.uid, meta.gid);
        if (self.mode, self.uid, self.gid) == expected
            && !self.text.is_empty()
            && rest.fields(&self.text).is_some()
        {
            return Some(());
        }
        let before = rest.text();
        let mode = rest.small(b",\"mode\":")?;
        let uid = rest.small(b",\"uid\":")?;
        let gid = rest.small(b",\"gid\":")?;
        if (mode, uid, gid) != expected {
            return None;
        }
        (self.mode, self.uid, self.gid) = expected;
        self.text.clear();
        let len = before.len() - rest.len();
        self.text.extend_from_slice(&before[..len]);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::Entry;
    use super::super::parse::{ParsedEntry, parse};
    use super::*;
    use proptest::prelude::*;

    fn matcher() -> Matcher {
        Matcher::new(&Header::new("md5", "0.1.0"))
    }

    fn meta() -> impl Strategy<Value = Meta> {
        let numbers = (any::<u64>(), 0..3_u32, 0..3_u32, 0..3_u32);
        let times = (-3..3_i64, any::<i64>(), 0..20_u64, 1..3_u64);
        (numbers, times).prop_map(|(a, b)| Meta {
            size: a.0,
            mode: a.1,
            uid: a.2,
            gid: a.3,
            mtime_ns: b.0,
            ctime_ns: b.1,
            ino: b.2,
            nlink: b.3,
        })
    }

    /// Returns entries that a walk may find and a manifest may contain.
    fn entry() -> impl Strategy<Value = Entry> {
        let kind = proptest::sample::select(&[Kind::File, Kind::File, Kind::Dir, Kind::Fifo][..]);
        let path = "[a-c\"\\\\é]{1,3}(/[a-c.]{1,2}){0,2}";
        let rest = (
            any::<Option<u32>>(),
            any::<[u8; 16]>(),
            proptest::option::of(0..2_i64),
            any::<Option<u32>>(),
            any::<Option<[u8; 16]>>(),
        );
        (path, kind, meta(), rest).prop_map(|(path, kind, meta, rest)| {
            let mut entry = Entry::new(path.into_bytes(), kind);
            entry.meta = Some(meta);
            entry.dev = rest.0;
            if kind == Kind::File {
                entry.digest = Digest::from_slice(&rest.1);
                entry.verified_at = rest.2;
            }
            entry.tried_run = rest.3;
            entry.copy_stamp = rest.4;
            entry
        })
    }

    fn line_of(entry: &Entry) -> Vec<u8> {
        let mut line = Vec::new();
        entry.write_line(&mut line);
        line
    }

    /// Compares `line`, which others follow, with the entry, split at the last slash.
    fn held(matcher: &mut Matcher, line: &[u8], is: &Entry) -> Option<Match> {
        let split = is.path.iter().rposition(|&byte| byte == b'/');
        let (dir, name) = is.path.split_at(split.map_or(0, |slash| slash + 1));
        matcher.enter(dir);
        let expected = Expected {
            name,
            kind: is.kind,
            meta: is.meta.unwrap(),
        };
        let text = [line, b"{\"type\":\"trailer\"}\n"].concat();
        let found = matcher.line(&text, &expected);
        if let Some(found) = found {
            assert_eq!(found.len, line.len());
            for end in found.len - 3..found.len {
                assert_eq!(matcher.line(&text[..end], &expected), None);
            }
        }
        found
    }

    /// Parses the line by the way of all lines.
    fn says(line: &[u8]) -> Option<Entry> {
        match parse(line.strip_suffix(b"\n")?, Some(16)) {
            Ok(ParsedEntry::Entry(entry)) => Some(entry),
            _ => None,
        }
    }

    /// Checks that the entry is the expected one, with no other field of importance.
    fn assert_same(said: &Entry, is: &Entry, found: Match) {
        let mut expected = Entry::new(is.path.clone(), is.kind);
        expected.meta = is.meta;
        expected.tried_run = found.tried_run;
        // These may have any value.
        (expected.dev, expected.digest) = (said.dev, said.digest);
        expected.verified_at = said.verified_at;
        expected.copy_stamp = said.copy_stamp;
        assert_eq!(*said, expected);
    }

    #[test]
    fn a_usual_line_matches() {
        let mut matcher = matcher();
        for (path, kind, run) in [
            (&b"a"[..], Kind::File, None),
            (b"a/.b/caf\xc3\xa9.c", Kind::File, Some(7)),
            (b"a/b", Kind::Dir, None),
        ] {
            let mut entry = Entry::new(path.to_vec(), kind);
            entry.meta = Some(Meta::default());
            if kind == Kind::File {
                entry.digest = Digest::from_slice(&[0xa7; 16]);
                entry.verified_at = run.map(i64::from);
            }
            entry.tried_run = run;
            entry.copy_stamp = run.map(|_| [7; 16]);
            let line = line_of(&entry);
            let (len, tried_run) = (line.len(), run);
            let expected = Some(Match { len, tried_run });
            assert_eq!(held(&mut matcher, &line, &entry), expected);
            assert_eq!(Matcher::path(&line), Some(path));
        }
    }

    proptest! {
        /// Checks that every line that the writer writes of files and directories matches its
        /// entry, whatever came before, and no other.
        #[test]
        fn what_the_writer_writes(all in proptest::collection::vec(entry(), 1..4)) {
            let mut matcher = matcher();
            for entry in &all {
                let line = line_of(entry);
                for is in &all {
                    let found = held(&mut matcher, &line, is);
                    let said = says(&line);
                    if let Some(found) = found {
                        assert_same(&said.unwrap(), is, found);
                    } else if let Some(said) = said.filter(|_| entry == is) {
                        let odd = said.path.iter().any(|byte| b"\"\\".contains(byte));
                        prop_assert!(odd || is.kind == Kind::Fifo);
                    }
                }
            }
        }

        /// Checks that a line that matches after any change is one that the parser takes, with the
        /// same content.
        #[test]
        fn what_anybody_writes(
            entry in entry(),
            at: proptest::sample::Index,
            with in "[0-9,:\"a-f/.}{-]{0,2}|\n",
            drop in 0..3_usize,
        ) {
            let mut matcher = matcher();
            let mut line = line_of(&entry);
            let _ = held(&mut matcher, &line, &entry);
            let at = at.index(line.len());
            let end = (at + drop).min(line.len());
            line.splice(at..end, with.into_bytes());
            let text = [&line[..], b"\n"].concat();
            let first = text.split_inclusive(|&byte| byte == b'\n').next().unwrap();
            if let Some(found) = held(&mut matcher, first, &entry) {
                assert_same(&says(first).unwrap(), &entry, found);
            }
        }
    }
}
