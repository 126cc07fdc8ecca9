//! Sets of glob patterns, matched against the raw bytes of names and paths.

use std::collections::HashSet;
use std::fmt;

use crate::wild::{Backwards, Wild, end_of_class};

/// Greatest length of a pattern in bytes, and of all that its braces stand for.
const MAX_BYTES: usize = 64 << 10;

/// Greatest number of patterns that the braces of one may stand for.
const MAX_ALTERNATIVES: usize = 4096;

/// Greatest depth of braces within braces.
const MAX_NESTING: usize = 32;

/// Patterns of `--include` and `--exclude`. An empty set matches nothing.
///
/// - Without `/`, a pattern matches base names: `*.o`.
/// - With `/`, it matches the path below the root, whole: `src/*.rs`; `*`, `?` and `[…]` stop at
///   `/`, `**` crosses directories. A leading `/` or `./` only anchors: `/build` is the one
///   directly in the root.
/// - With a trailing `/`, it matches directories only: `build/`.
/// - `[a-z]`, `[!a-z]`, `[[:digit:]]`, `{one,two}` and `\` work as in a shell. `?` stands for one
///   byte.
///
/// Names need not be UTF-8; patterns must be.
///
/// ```
/// use bc_walk::Globs;
///
/// let globs = Globs::new(&["*.o", "/doc/**/*.md"])?;
/// assert!(globs.matches_file(b"deep/down/main.o"));
/// assert!(globs.matches_file(b"doc/a/b/c.md"));
/// assert!(!globs.matches_file(b"src/doc/c.md"));
/// # Ok::<(), bc_walk::GlobError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Globs {
    patterns: Vec<Vec<u8>>,
    names: Patterns,
    paths: Patterns,
    /// `x` of patterns `x/**`: everything in such a directory matches.
    contents: Set,
}

/// Patterns for anything, and patterns for directories only.
#[derive(Clone, Debug, Default)]
struct Patterns {
    any: Set,
    directories: Set,
}

/// Patterns, each of which may match.
#[derive(Clone, Debug, Default)]
struct Set {
    literals: HashSet<Vec<u8>>,
    wild: Vec<Wild>,
}

/// A pattern that cannot be understood.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GlobError {
    /// The pattern, raw bytes.
    pub pattern: Vec<u8>,
    /// Description of the mistake.
    pub message: String,
}

/// Most bytes of a pattern that a message shows.
const SHOWN: usize = 200;

impl fmt::Display for GlobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.pattern.get(..SHOWN);
        write!(
            f,
            "bad pattern \"{}{}\": {}",
            shown.unwrap_or(&self.pattern).escape_ascii(),
            shown.map_or("", |_| "..."),
            self.message
        )
    }
}

impl std::error::Error for GlobError {}

/// Kind of file that a pattern is matched against.
#[derive(Clone, Copy)]
enum Against {
    File,
    Directory,
}

impl Globs {
    /// Compiles the patterns.
    ///
    /// # Errors
    ///
    /// Names the first pattern that is empty, not UTF-8, malformed, or longer or deeper than any
    /// that people write.
    pub fn new(patterns: &[impl AsRef<[u8]>]) -> Result<Globs, GlobError> {
        let mut globs = Globs::default();
        for pattern in patterns.iter().map(AsRef::as_ref) {
            globs.add(pattern).map_err(|message| GlobError {
                pattern: pattern.to_vec(),
                message: message.to_owned(),
            })?;
            globs.patterns.push(pattern.to_vec());
        }
        Ok(globs)
    }

    /// Returns the patterns as they were given.
    pub fn patterns(&self) -> &[Vec<u8>] {
        &self.patterns
    }

    fn add(&mut self, pattern: &[u8]) -> Result<(), &'static str> {
        if std::str::from_utf8(pattern).is_err() {
            return Err("not UTF-8");
        }
        let (text, directories_only) = match pattern.strip_suffix(b"/") {
            // An escaped slash is a slash as well.
            Some(text) => (text.strip_suffix(b"\\").unwrap_or(text), true),
            None => (pattern, false),
        };
        let anchored = text.strip_prefix(b"/").or_else(|| text.strip_prefix(b"./"));
        let is_path = anchored.is_some() || text.contains(&b'/');
        let text = anchored.unwrap_or(text);
        if matches!(text, b"" | b"." | b"..") {
            return Err("matches nothing");
        }
        let patterns = match is_path {
            true => &mut self.paths,
            false => &mut self.names,
        };
        for alternative in alternatives(text)? {
            let wild = Wild::parse(&alternative, Backwards::Refused)?;
            let set = match directories_only {
                true => &mut patterns.directories,
                false => &mut patterns.any,
            };
            // All that is below a directory, and not the directories alone.
            let contents = wild.contents_of().filter(|_| !directories_only);
            if let Some(above) = contents {
                self.contents.add(above);
            }
            set.add(wild);
        }
        Ok(())
    }

    /// True if there are no patterns at all.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.paths.is_empty()
    }

    /// True if a file with this path below its root matches.
    pub fn matches_file(&self, path: &[u8]) -> bool {
        self.matches(path, Against::File)
    }

    /// True if a directory with this path below its root matches.
    pub fn matches_directory(&self, path: &[u8]) -> bool {
        self.matches(path, Against::Directory)
    }

    /// True if everything in a directory with this path below its root is sure to match.
    pub fn matches_contents(&self, path: &[u8]) -> bool {
        self.contents.is_match(path)
    }

    fn matches(&self, path: &[u8], against: Against) -> bool {
        let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
        self.names.is_match(name, against) || self.paths.is_match(path, against)
    }
}

impl Patterns {
    fn is_empty(&self) -> bool {
        self.any.is_empty() && self.directories.is_empty()
    }

    fn is_match(&self, text: &[u8], against: Against) -> bool {
        self.any.is_match(text)
            || matches!(against, Against::Directory) && self.directories.is_match(text)
    }
}

impl Set {
    fn is_empty(&self) -> bool {
        self.literals.is_empty() && self.wild.is_empty()
    }

    fn add(&mut self, wild: Wild) {
        match wild.literal() {
            Some(bytes) => {
                self.literals.insert(bytes);
            }
            None => self.wild.push(wild),
        }
    }

    fn is_match(&self, text: &[u8]) -> bool {
        !self.literals.is_empty() && self.literals.contains(text)
            || self.wild.iter().any(|wild| wild.is_match(text))
    }
}

/// Returns the patterns without braces that a pattern stands for.
fn alternatives(pattern: &[u8]) -> Result<Vec<Vec<u8>>, &'static str> {
    if pattern.len() > MAX_BYTES {
        return Err("longer than 64 KiB");
    }
    let (all, end) = sequence(pattern, 0, 0)?;
    match end == pattern.len() {
        true => Ok(all),
        false => Err("'}' without its '{'"),
    }
}

/// Expands a pattern from `at` on, up to the end of the braces that it is in; returns the
/// alternatives and that end. At most [`MAX_NESTING`] of these calls are active at once.
fn sequence(
    pattern: &[u8],
    mut at: usize,
    depth: usize,
) -> Result<(Vec<Vec<u8>>, usize), &'static str> {
    let mut all = vec![Vec::new()];
    while let Some(&byte) = pattern.get(at) {
        let end = match byte {
            b',' | b'}' if depth > 0 => break,
            b'}' => break,
            b'{' => {
                let (within, end) = braces(pattern, at + 1, depth + 1)?;
                let both = all.iter().flat_map(|before| {
                    let joined = |after: &Vec<u8>| [&before[..], after].concat();
                    within.iter().map(joined)
                });
                if all.len() * within.len() > MAX_ALTERNATIVES {
                    return Err("its braces stand for more than 4096 patterns");
                }
                all = both.collect();
                at = end;
                check_size(&all)?;
                continue;
            }
            b'[' => end_of_class(pattern, at + 1)?,
            b'\\' => (at + 2).min(pattern.len()),
            _ => at + 1,
        };
        for one in &mut all {
            one.extend_from_slice(&pattern[at..end]);
        }
        at = end;
    }
    check_size(&all)?;
    Ok((all, at))
}

/// Expands braces; returns the alternatives and the end: `at` is behind the opening brace.
fn braces(
    pattern: &[u8],
    mut at: usize,
    depth: usize,
) -> Result<(Vec<Vec<u8>>, usize), &'static str> {
    if depth > MAX_NESTING {
        return Err("braces in braces, more than 32 deep");
    }
    let mut all = Vec::new();
    loop {
        let (some, end) = sequence(pattern, at, depth)?;
        all.extend(some);
        if all.len() > MAX_ALTERNATIVES {
            return Err("its braces stand for more than 4096 patterns");
        }
        at = end + 1;
        match pattern.get(end) {
            Some(b',') => {}
            Some(_) => return Ok((all, at)),
            None => return Err("'{' without its '}'"),
        }
    }
}

fn check_size(all: &[Vec<u8>]) -> Result<(), &'static str> {
    match all.iter().map(Vec::len).sum::<usize>() > 16 * MAX_BYTES {
        true => Err("its braces stand for more than 1 MiB of patterns"),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn globs(patterns: &[&str]) -> Globs {
        let patterns: Vec<_> = patterns.iter().map(|p| p.as_bytes().to_vec()).collect();
        Globs::new(&patterns).unwrap()
    }

    #[track_caller]
    fn check(pattern: &str, yes: &[&str], no: &[&str]) {
        let globs = globs(&[pattern]);
        for path in yes {
            assert!(
                globs.matches_file(path.as_bytes()),
                "{pattern} should match {path}"
            );
        }
        for path in no {
            assert!(
                !globs.matches_file(path.as_bytes()),
                "{pattern} should not match {path}"
            );
        }
    }

    #[test]
    fn base_names_and_paths() {
        check(
            "*.o",
            &["a.o", "x/y/a.o", ".o", "x/.o"],
            &["a.oo", "a.o/x", "o"],
        );
        check("foo", &["foo", "a/foo"], &["foo/a", "afoo"]);
        check("a/*.c", &["a/x.c"], &["x/a/x.c", "a/b/x.c", "x.c"]);
        check("/foo", &["foo"], &["a/foo"]);
        check(
            "a/**/z",
            &["a/z", "a/b/z", "a/b/c/z"],
            &["z", "a/zz", "b/a/z"],
        );
        check("?", &["a", "x/b"], &["ab", ""]);
        check("[!a]x", &["bx"], &["ax"]);
        check("d[!a]x", &["dbx"], &["d/x"]);
        check("{a,b}.{c,d}", &["a.c", "b.d"], &["a.b"]);
        check(r"\*", &["*", "x/*"], &["a"]);
    }

    #[test]
    fn two_stars_in_front_do_not_match_everything() {
        check(
            "**/foo",
            &["foo", "a/foo", "a/b/foo"],
            &["a", "a/b", "foo/x", "xfoo"],
        );
        check("**/*.tmp", &["a.tmp", "x/a.tmp"], &["a", "x", "x/a"]);
        let globs = globs(&["**/foo", "**/*.tmp"]);
        assert!(!globs.matches_directory(b"a"));
        assert!(!globs.matches_contents(b"a"));
    }

    #[test]
    fn contents_of_a_directory() {
        let globs = globs(&["out/**", "**/cache/**"]);
        assert!(globs.matches_file(b"out/a/b"));
        assert!(!globs.matches_directory(b"out"));
        assert!(globs.matches_contents(b"out"));
        assert!(globs.matches_contents(b"a/cache"));
        assert!(!globs.matches_contents(b"a/out"));
    }

    #[test]
    fn trailing_slash_means_directories() {
        let globs = globs(&["build/", "a/b/"]);
        assert!(globs.matches_directory(b"build"));
        assert!(globs.matches_directory(b"x/build"));
        assert!(globs.matches_directory(b"a/b"));
        assert!(!globs.matches_directory(b"x/a/b"));
        assert!(!globs.matches_file(b"build"));
        assert!(!globs.matches_file(b"a/b"));
    }

    #[test]
    fn raw_bytes() {
        check("caf*", &["café"], &[]);
        let globs = globs(&["*.bin", "d/*"]);
        assert!(globs.matches_file(b"\xff\xfe.bin"));
        assert!(globs.matches_file(b"d/\xff\n"));
        assert!(!globs.matches_file(b"d\xff/x"));
    }

    #[test]
    fn bad_patterns_are_named() {
        for bad in ["[", "{a", "", "/", "a\\", "[z-a]", "a}"] {
            let error = Globs::new(&[b"fine".to_vec(), bad.into()]).unwrap_err();
            assert_eq!(error.pattern, bad.as_bytes());
            assert!(!error.message.is_empty());
        }
        let error = Globs::new(&[vec![0xff]]).unwrap_err();
        assert_eq!(error.to_string(), "bad pattern \"\\xff\": not UTF-8");
    }

    #[test]
    fn only_directories_of_a_directory() {
        let globs = globs(&["a/**/", "//**"]);
        assert!(globs.matches_directory(b"a/b") && globs.matches_directory(b"a/b/c"));
        assert!(!globs.matches_directory(b"a") && !globs.matches_file(b"a/z"));
        for dir in [&b""[..], b"a", b"a/b", b"x"] {
            assert!(!globs.matches_contents(dir));
        }
    }

    #[test]
    fn braces() {
        check("{a,{b,c}d,}x", &["ax", "bdx", "cdx", "x"], &["bx", "dx"]);
        check("{**/a,b/*}/c", &["a/c", "x/a/c", "b/x/c"], &["b/c", "c"]);
        check(r"{a\,b,\{}", &["a,b", "{"], &["a", "b"]);
        check("[{]a", &["{a"], &["a"]);
        check("a,b", &["a,b"], &["a"]);
    }

    #[test]
    fn patterns_have_bounds() {
        let nested = |depth: usize| "{".repeat(depth) + "a" + &"}".repeat(depth);
        check(&nested(MAX_NESTING), &["a"], &["b"]);
        check(&"{a,b}".repeat(12), &[&"a".repeat(12)], &["a"]);
        for bad in [
            nested(MAX_NESTING + 1),
            nested(1_000_000),
            "{".repeat(1_000_000),
            "{a,b}".repeat(13),
            "a".repeat(5000),
            "{a}".repeat(1_000_000),
            "[".repeat(1_000_000),
        ] {
            let error = Globs::new(&[bad.into_bytes()]).unwrap_err();
            assert!(error.to_string().len() < 400, "{error}");
        }
    }

    #[test]
    fn none_match_nothing() {
        assert!(Globs::default().is_empty());
        assert!(!Globs::default().matches_file(b"x"));
        assert!(!globs(&["x"]).is_empty());
    }
}
