//! `.gitignore` and `.ignore` files: what they name is left out, below where they are.

use std::ffi::OsStr;
use std::io::Read as _;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;

use crate::FileKind;

/// Read at most this much of an ignore file: far more than any sensible one has, and no way
/// to fill the memory.
const MAX_BYTES: u64 = 16 << 20;

/// The ignore files in force in a directory: its own and those further up, inside the root.
#[derive(Debug)]
pub(crate) struct Ignores {
    parent: Option<Arc<Ignores>>,
    /// Length of the directory's path below the root, with a closing slash.
    prefix: usize,
    dot_ignore: Gitignore,
    gitignore: Gitignore,
}

impl Ignores {
    /// Adds the ignore files of a directory. `prefix` is the length of its path below the
    /// root, with a closing slash. On failure, the name of the file and the reason.
    pub(crate) fn load(
        parent: Option<Arc<Ignores>>,
        dir: BorrowedFd<'_>,
        prefix: usize,
    ) -> (Arc<Ignores>, Option<(&'static str, Errno)>) {
        let mut failure = None;
        let mut read = |name: &'static str| match read_patterns(dir, name) {
            Ok(patterns) => patterns,
            Err(errno) => {
                failure = Some((name, errno));
                Gitignore::empty()
            }
        };
        let ignores = Ignores {
            parent,
            prefix,
            dot_ignore: read(".ignore"),
            gitignore: read(".gitignore"),
        };
        (Arc::new(ignores), failure)
    }

    /// Whether the path (below the root) is to be left out. The nearest file that says
    /// anything decides; any `.ignore` goes before any `.gitignore`, as in ripgrep.
    pub(crate) fn ignores(&self, path: &[u8], kind: FileKind) -> bool {
        let is_dir = kind == FileKind::Dir;
        let mut by_gitignore = None;
        let mut level = Some(self);
        while let Some(ignores) = level {
            let below = Path::new(OsStr::from_bytes(&path[ignores.prefix..]));
            let found = ignores.dot_ignore.matched(below, is_dir);
            if !found.is_none() {
                return found.is_ignore();
            }
            if by_gitignore.is_none() {
                let found = ignores.gitignore.matched(below, is_dir);
                if !found.is_none() {
                    by_gitignore = Some(found.is_ignore());
                }
            }
            level = ignores.parent.as_deref();
        }
        by_gitignore.unwrap_or(false)
    }
}

/// Lines that are malformed or not UTF-8 mean nothing, as in git.
fn read_patterns(dir: BorrowedFd<'_>, name: &str) -> Result<Gitignore, Errno> {
    let flags =
        OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = match openat(dir, name, flags, Mode::empty()) {
        Ok(file) => file,
        // A link or nothing: not an ignore file.
        Err(Errno::NOENT | Errno::LOOP) => return Ok(Gitignore::empty()),
        Err(errno) => return Err(errno),
    };
    if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
        return Ok(Gitignore::empty());
    }
    let mut content = Vec::new();
    std::fs::File::from(file)
        .take(MAX_BYTES)
        .read_to_end(&mut content)
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    let mut builder = GitignoreBuilder::new("");
    for line in content.split(|&byte| byte == b'\n') {
        if let Ok(line) = std::str::from_utf8(line) {
            let _ = builder.add_line(None, line.strip_suffix('\r').unwrap_or(line));
        }
    }
    Ok(builder.build().unwrap_or_else(|_| Gitignore::empty()))
}
