//! Naive references: list everything, read everything, compare bytes. Slow and plain on
//! purpose, so that they can be believed.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, Stat, openat, readlinkat, statat};

/// One name below the root.
#[derive(Clone, Debug)]
pub struct Found {
    /// Relative to the root, raw bytes, components joined with `/`.
    pub path: Vec<u8>,
    /// Its `lstat`.
    pub stat: Stat,
    /// Target, for symbolic links.
    pub target: Option<Vec<u8>>,
    /// Error because of which the directory could not be listed.
    pub unlisted: Option<rustix::io::Errno>,
}

impl Found {
    /// Returns the type of file.
    pub fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }

    /// Returns device and inode.
    pub fn identity(&self) -> (u64, u64) {
        (self.stat.st_dev, self.stat.st_ino)
    }
}

/// Returns everything below `root` (without `root` itself), sorted bytewise by path. Follows no
/// links. Holds one descriptor per level, so depth is limited by the descriptor limit, but not by
/// PATH_MAX.
///
/// # Errors
/// If `root` cannot be listed, or something vanishes meanwhile.
pub fn listing(root: &Path) -> io::Result<Vec<Found>> {
    let mut found = Vec::new();
    list(
        openat(CWD, root, directory(), Mode::empty())?,
        &mut Vec::new(),
        &mut found,
    )?;
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Returns the paths of the regular files below `root`, sorted bytewise.
///
/// # Errors
/// As [`listing`].
pub fn files(root: &Path) -> io::Result<Vec<Vec<u8>>> {
    let found = listing(root)?.into_iter();
    Ok(found
        .filter(|f| f.kind() == FileType::RegularFile)
        .map(|f| f.path)
        .collect())
}

/// Returns the names in a directory. Read in large pieces, as every program does: there are servers
/// (lowntfs-3g) that continue at the wrong place after a piece of less than a page.
fn names(dir: &OwnedFd) -> io::Result<Vec<CString>> {
    let mut piece = Vec::with_capacity(64 << 10);
    let mut entries = RawDir::new(dir, piece.spare_capacity_mut());
    let mut found = Vec::new();
    while let Some(entry) = entries.next() {
        let name = entry?.file_name().to_owned();
        if name.as_c_str() != c"." && name.as_c_str() != c".." {
            found.push(name);
        }
    }
    Ok(found)
}

fn list(dir: OwnedFd, prefix: &mut Vec<u8>, found: &mut Vec<Found>) -> io::Result<()> {
    for name in names(&dir)? {
        let stat = statat(&dir, &name, AtFlags::SYMLINK_NOFOLLOW)?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        let length = prefix.len();
        if length > 0 {
            prefix.push(b'/');
        }
        prefix.extend_from_slice(name.as_bytes());
        let target = match kind {
            FileType::Symlink => Some(readlinkat(&dir, &name, Vec::new())?.into_bytes()),
            _ => None,
        };
        let below = match kind {
            FileType::Directory => Some(openat(&dir, &name, directory(), Mode::empty())),
            _ => None,
        };
        let unlisted = below
            .as_ref()
            .and_then(|opened| opened.as_ref().err())
            .copied();
        found.push(Found {
            path: prefix.clone(),
            stat,
            target,
            unlisted,
        });
        if let Some(Ok(below)) = below {
            list(below, prefix, found)?;
        }
        prefix.truncate(length);
    }
    Ok(())
}

fn directory() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

/// Returns the content of `path` below `root`, opened component by component, so that a path longer
/// than PATH_MAX is fine.
///
/// # Errors
/// If any component cannot be opened, or the file not read.
pub fn read(root: &Path, path: &[u8]) -> io::Result<Vec<u8>> {
    let mut dir = openat(CWD, root, directory(), Mode::empty())?;
    let (above, name) = match path.iter().rposition(|&b| b == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (&path[..0], path),
    };
    for part in above.split(|&b| b == b'/').filter(|part| !part.is_empty()) {
        dir = openat(dir.as_fd(), CString::new(part)?, directory(), Mode::empty())?;
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut content = Vec::new();
    File::from(openat(dir, CString::new(name)?, flags, Mode::empty())?)
        .read_to_end(&mut content)?;
    Ok(content)
}

/// Counting of the names of one inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkCounting {
    /// Every name counts: two hard links are duplicates of each other.
    Apart,
    /// Names count once for an inode, the bytewise first one.
    Together,
}

/// Returns the groups of at least two non-empty regular files below `root` with equal content,
/// found by comparing the bytes; unreadable files are left out. Groups and their paths are sorted
/// bytewise.
///
/// # Errors
/// As [`listing`].
pub fn duplicates(root: &Path, links: LinkCounting) -> io::Result<Vec<Vec<Vec<u8>>>> {
    let mut by_size: BTreeMap<i64, Vec<Found>> = BTreeMap::new();
    for found in listing(root)? {
        if found.kind() == FileType::RegularFile && found.stat.st_size > 0 {
            by_size.entry(found.stat.st_size).or_default().push(found);
        }
    }
    let mut groups = Vec::new();
    for files in by_size.into_values().filter(|files| files.len() > 1) {
        let mut seen = std::collections::HashSet::new();
        let mut by_content: BTreeMap<Vec<u8>, Vec<Vec<u8>>> = BTreeMap::new();
        for file in files {
            if links == LinkCounting::Together && !seen.insert(file.identity()) {
                continue;
            }
            if let Ok(content) = read(root, &file.path) {
                by_content.entry(content).or_default().push(file.path);
            }
        }
        groups.extend(by_content.into_values().filter(|group| group.len() > 1));
    }
    groups.sort();
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TestTree;

    #[test]
    fn lists_bytewise_by_whole_path() {
        let tree = TestTree::new();
        tree.write("a/x", "1")
            .write("a.b", "2")
            .write("a-", "3")
            .symlink("a", "l");
        let listed = listing(tree.path()).unwrap();
        let paths: Vec<&[u8]> = listed.iter().map(|f| &*f.path).collect();
        assert_eq!(paths, [&b"a"[..], b"a-", b"a.b", b"a/x", b"l"]);
        assert_eq!(listed[4].target.as_deref(), Some(&b"a"[..]));
        assert_eq!(files(tree.path()).unwrap().len(), 3);
        assert_eq!(read(tree.path(), b"a/x").unwrap(), b"1");
    }

    #[test]
    fn finds_equal_bytes_only() {
        let tree = TestTree::new();
        tree.write("a", "one")
            .write("b", "two")
            .write("c/d", "one")
            .write("e", "")
            .write("f", "");
        tree.hard_link("b", "g");
        let names = |group: &[&str]| {
            group
                .iter()
                .map(|n| n.as_bytes().to_vec())
                .collect::<Vec<_>>()
        };
        let apart = duplicates(tree.path(), LinkCounting::Apart).unwrap();
        assert_eq!(apart, [names(&["a", "c/d"]), names(&["b", "g"])]);
        let together = duplicates(tree.path(), LinkCounting::Together).unwrap();
        assert_eq!(together, [names(&["a", "c/d"])]);
    }
}
