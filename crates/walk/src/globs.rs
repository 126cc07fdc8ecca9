//! Sets of glob patterns, matched against the raw bytes of names and paths.

use std::fmt;

use globset::{Candidate, GlobBuilder, GlobSet, GlobSetBuilder};

/// Patterns of `--include` and `--exclude`. An empty set matches nothing.
///
/// - Without `/`, a pattern matches base names: `*.o`.
/// - With `/`, it matches the path below the root, whole: `src/*.rs`; `*` and `?` stop at
///   `/`, `**` crosses directories. A leading `/` only anchors: `/build` is the one directly
///   in the root.
/// - With a trailing `/`, it matches directories only: `build/`.
/// - `[a-z]`, `[!a-z]`, `{one,two}` and `\` work as in a shell. `?` stands for one byte.
///
/// Names need not be UTF-8; patterns must be.
///
/// ```
/// use bc_walk::Globs;
///
/// let globs = Globs::new(&[b"*.o".to_vec(), b"/doc/**/*.md".to_vec()])?;
/// assert!(globs.matches_file(b"deep/down/main.o"));
/// assert!(globs.matches_file(b"doc/a/b/c.md"));
/// assert!(!globs.matches_file(b"src/doc/c.md"));
/// # Ok::<(), bc_walk::GlobError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Globs {
    names: Patterns,
    paths: Patterns,
    /// `x` of patterns `x/**`: everything in such a directory matches.
    contents: Patterns,
}

/// Those for anything, and those for directories only.
#[derive(Clone, Debug, Default)]
struct Patterns {
    any: GlobSet,
    directories: GlobSet,
}

/// A pattern that cannot be understood.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GlobError {
    /// The pattern, raw bytes.
    pub pattern: Vec<u8>,
    /// What is wrong with it.
    pub message: String,
}

impl fmt::Display for GlobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "bad pattern \"{}\": {}",
            self.pattern.escape_ascii(),
            self.message
        )
    }
}

impl std::error::Error for GlobError {}

/// What a pattern is matched against.
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
    /// Names the first pattern that is empty, not UTF-8 or malformed.
    pub fn new(patterns: &[Vec<u8>]) -> Result<Globs, GlobError> {
        let mut names = Builder::new();
        let mut paths = Builder::new();
        let mut contents = Builder::new();
        for pattern in patterns {
            let bad = |message: String| GlobError {
                pattern: pattern.clone(),
                message,
            };
            let text = std::str::from_utf8(pattern).map_err(|_| bad("not UTF-8".to_owned()))?;
            let (text, directories_only) = match text.strip_suffix('/') {
                // An escaped slash is a slash as well.
                Some(text) => (text.strip_suffix('\\').unwrap_or(text), true),
                None => (text, false),
            };
            let anchored = text.strip_prefix('/');
            let is_path = anchored.is_some() || text.contains('/');
            let text = anchored.unwrap_or(text);
            if text.is_empty() {
                return Err(bad("matches nothing".to_owned()));
            }
            let set = if is_path { &mut paths } else { &mut names };
            set.add(text, directories_only).map_err(bad)?;
            if let Some(directory) = text.strip_suffix("/**") {
                let directory = if directory.is_empty() {
                    "**"
                } else {
                    directory
                };
                contents.add(directory, false).map_err(bad)?;
            }
        }
        let bad = |message| GlobError {
            pattern: patterns.join(&b' '),
            message,
        };
        Ok(Globs {
            names: names.build().map_err(bad)?,
            paths: paths.build().map_err(bad)?,
            contents: contents.build().map_err(bad)?,
        })
    }

    /// No patterns at all.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.paths.is_empty()
    }

    /// Whether a file with this path below its root matches.
    pub fn matches_file(&self, path: &[u8]) -> bool {
        self.matches(path, Against::File)
    }

    /// Whether a directory with this path below its root matches.
    pub fn matches_directory(&self, path: &[u8]) -> bool {
        self.matches(path, Against::Directory)
    }

    /// Whether everything in a directory with this path below its root is sure to match.
    pub fn matches_contents(&self, path: &[u8]) -> bool {
        self.contents.is_match(path, Against::File)
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
        if self.is_empty() {
            return false;
        }
        let candidate = Candidate::from_bytes(text);
        self.any.is_match_candidate(&candidate)
            || matches!(against, Against::Directory)
                && self.directories.is_match_candidate(&candidate)
    }
}

struct Builder {
    any: GlobSetBuilder,
    directories: GlobSetBuilder,
}

impl Builder {
    fn new() -> Builder {
        Builder {
            any: GlobSetBuilder::new(),
            directories: GlobSetBuilder::new(),
        }
    }

    fn add(&mut self, pattern: &str, directories_only: bool) -> Result<(), String> {
        let glob = GlobBuilder::new(pattern)
            .literal_separator(true)
            .backslash_escape(true)
            .empty_alternates(true)
            .build()
            .map_err(|error| error.kind().to_string())?;
        if directories_only {
            self.directories.add(glob);
        } else {
            self.any.add(glob);
        }
        Ok(())
    }

    fn build(&self) -> Result<Patterns, String> {
        Ok(Patterns {
            any: self.any.build().map_err(|error| error.to_string())?,
            directories: self
                .directories
                .build()
                .map_err(|error| error.to_string())?,
        })
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
        for bad in ["[", "{a", "", "/", "a\\", "[z-a]"] {
            let error = Globs::new(&[b"fine".to_vec(), bad.into()]).unwrap_err();
            assert_eq!(error.pattern, bad.as_bytes());
            assert!(!error.message.is_empty());
        }
        let error = Globs::new(&[vec![0xff]]).unwrap_err();
        assert_eq!(error.to_string(), "bad pattern \"\\xff\": not UTF-8");
    }

    #[test]
    fn none_match_nothing() {
        assert!(Globs::default().is_empty());
        assert!(!Globs::default().matches_file(b"x"));
        assert!(!globs(&["x"]).is_empty());
    }
}
