//! `.gitignore` and `.ignore` files: files that match their lines are left out, below the directory
//! of the ignore file. Lines have their meaning in git; braces are nothing special.

use std::io::Read as _;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use rustix::fs::{FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;

use crate::FileKind;
use crate::error::{BadLine, ErrorKind};
use crate::wild::{Backwards, Wild};

/// Bytes that are read of an ignore file at most: far more than any sensible one has, and no way to
/// fill the memory.
const MAX_BYTES: usize = 1 << 20;

/// The ignore files in force in a directory: its own and those further up, inside the root.
#[derive(Debug)]
pub(crate) struct Ignores {
    parent: Option<Arc<Ignores>>,
    /// Length of the directory's path below the root, with a closing slash.
    prefix: usize,
    dot_ignore: Rules,
    gitignore: Rules,
}

/// Name of an ignore file and the mistake in it.
pub(crate) type Failure = (&'static str, ErrorKind);

impl Ignores {
    /// Adds the ignore files of a directory. `prefix` is the length of its path below the root,
    /// with a closing slash. Files that cannot be read and lines that cannot be understood are
    /// given to `fail`.
    pub(crate) fn load(
        parent: Option<Arc<Ignores>>,
        dir: BorrowedFd<'_>,
        prefix: usize,
        mut fail: impl FnMut(Failure),
    ) -> Arc<Ignores> {
        let mut read = |name: &'static str| match read(dir, name) {
            Ok(content) => {
                let (rules, bad) = Rules::parse(&content);
                if let Some(bad) = bad {
                    fail((name, ErrorKind::BadLine(bad)));
                }
                rules
            }
            Err(errno) => {
                fail((name, ErrorKind::System(errno.raw_os_error())));
                Rules::default()
            }
        };
        Arc::new(Ignores {
            parent,
            prefix,
            dot_ignore: read(".ignore"),
            gitignore: read(".gitignore"),
        })
    }

    /// True if the path (below the root) is to be left out. The nearest file with a rule for it
    /// decides; any `.ignore` goes before any `.gitignore`, as in ripgrep.
    pub(crate) fn ignores(&self, path: &[u8], kind: FileKind) -> bool {
        let mut by_gitignore = None;
        let mut level = Some(self);
        while let Some(ignores) = level {
            let below = &path[ignores.prefix..];
            if let Some(ignored) = ignores.dot_ignore.verdict(below, kind) {
                return ignored;
            }
            by_gitignore = by_gitignore.or_else(|| ignores.gitignore.verdict(below, kind));
            level = ignores.parent.as_deref();
        }
        by_gitignore.unwrap_or(false)
    }
}

/// The patterns of one file.
#[derive(Debug, Default)]
struct Rules(Vec<Rule>);

#[derive(Debug)]
struct Rule {
    /// Takes back the effect of an earlier line.
    is_negated: bool,
    directories_only: bool,
    /// Compared with the name alone, not with the path below the file's directory.
    is_name: bool,
    pattern: Pattern,
}

#[derive(Debug)]
enum Pattern {
    /// Exactly this name or path.
    Literal(Box<[u8]>),
    /// Any name that ends so.
    Suffix(Box<[u8]>),
    Wild(Wild),
}

impl Rules {
    /// Takes a file's lines; returns those that are left out as well.
    fn parse(content: &[u8]) -> (Rules, Option<BadLine>) {
        let mut bad: Option<BadLine> = None;
        let mut note = |line: usize, why| match &mut bad {
            Some(bad) => bad.others += 1,
            None => {
                bad = Some(BadLine {
                    line: line as u32 + 1,
                    others: 0,
                    why,
                });
            }
        };
        let mut rules = Vec::new();
        let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
        let mut lines = content.split(|&byte| byte == b'\n');
        if content.len() > MAX_BYTES {
            // The last one may be cut short.
            lines.next_back();
            let rest = content.iter().filter(|&&byte| byte == b'\n').count();
            note(rest, "it begins behind the first MiB");
        }
        for (number, line) in lines.enumerate() {
            match Rule::parse(line.strip_suffix(b"\r").unwrap_or(line)) {
                Ok(rule) => rules.extend(rule),
                Err(why) => note(number, why),
            }
        }
        rules.shrink_to_fit();
        (Rules(rules), bad)
    }

    /// Returns whether the path is to be left out, if any line matches. The last one decides.
    fn verdict(&self, path: &[u8], kind: FileKind) -> Option<bool> {
        if self.0.is_empty() {
            return None;
        }
        let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
        let matching = self.0.iter().rev().find(|rule| {
            (!rule.directories_only || kind == FileKind::Dir)
                && rule
                    .pattern
                    .is_match(if rule.is_name { name } else { path })
        });
        matching.map(|rule| !rule.is_negated)
    }
}

impl Rule {
    /// Parses a line without its end; `None` for a blank line or a comment.
    fn parse(line: &[u8]) -> Result<Option<Rule>, &'static str> {
        if line.starts_with(b"#") {
            return Ok(None);
        }
        let line = without_blanks(line);
        if line.contains(&0) {
            return Err("it holds a NUL");
        }
        let (line, is_negated) = match line.strip_prefix(b"!") {
            Some(line) => (line, true),
            None => (line, false),
        };
        let (line, directories_only) = match line.strip_suffix(b"/") {
            Some(line) => (line, true),
            None => (line, false),
        };
        if line.is_empty() {
            return Ok(None);
        }
        let is_name = !line.contains(&b'/');
        let wild = Wild::parse(line.strip_prefix(b"/").unwrap_or(line), Backwards::Empty)?;
        let pattern = if let Some(bytes) = wild.literal() {
            Pattern::Literal(bytes.into())
        } else if let Some(bytes) = wild.suffix().filter(|_| is_name) {
            Pattern::Suffix(bytes.into())
        } else {
            Pattern::Wild(wild)
        };
        Ok(Some(Rule {
            is_negated,
            directories_only,
            is_name,
            pattern,
        }))
    }
}

impl Pattern {
    fn is_match(&self, text: &[u8]) -> bool {
        match self {
            Pattern::Literal(bytes) => text == &bytes[..],
            Pattern::Suffix(bytes) => text.ends_with(bytes),
            Pattern::Wild(wild) => wild.is_match(text),
        }
    }
}

/// Returns a line without the blanks at its end, but for one that is escaped.
fn without_blanks(line: &[u8]) -> &[u8] {
    let (mut end, mut at) = (0, 0);
    while let Some(byte) = line.get(at) {
        at += match byte {
            b'\\' => 2,
            _ => 1,
        };
        if *byte != b' ' {
            end = at.min(line.len());
        }
    }
    &line[..end]
}

/// Returns the content of an ignore file, up to one byte more than is used of it; empty for
/// anything else.
fn read(dir: BorrowedFd<'_>, name: &str) -> Result<Vec<u8>, Errno> {
    let flags =
        OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = match openat(dir, name, flags, Mode::empty()) {
        Ok(file) => file,
        // A link or nothing: not an ignore file.
        Err(Errno::NOENT | Errno::LOOP) => return Ok(Vec::new()),
        Err(errno) => return Err(errno),
    };
    let mut content = Vec::new();
    if FileType::from_raw_mode(fstat(&file)?.st_mode) == FileType::RegularFile {
        std::fs::File::from(file)
            .take(MAX_BYTES as u64 + 1)
            .read_to_end(&mut content)
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_at_the_end() {
        for (line, expected) in [
            ("a", "a"),
            ("a  ", "a"),
            ("a b ", "a b"),
            ("a\\ ", "a\\ "),
            ("a\\  ", "a\\ "),
            ("a \\", "a \\"),
            ("a\t", "a\t"),
            ("  ", ""),
            ("", ""),
        ] {
            assert_eq!(
                without_blanks(line.as_bytes()),
                expected.as_bytes(),
                "{line:?}"
            );
        }
    }

    #[test]
    fn bad_lines_are_left_out_and_counted() {
        let content = [&b"a\n[\n\\\n"[..], &[b'x'; 5000], b"\nx\0y\n!b/\n"].concat();
        let (rules, bad) = Rules::parse(&content);
        assert_eq!(rules.0.len(), 2);
        let bad = bad.unwrap();
        assert_eq!((bad.line, bad.others), (2, 3));
        let long = b"ab\n".repeat(MAX_BYTES / 3 + 1);
        let (rules, bad) = Rules::parse(&long[..=MAX_BYTES]);
        assert_eq!(rules.0.len(), MAX_BYTES / 3);
        assert_eq!(bad.unwrap().line as usize, MAX_BYTES / 3 + 1);
    }
}
