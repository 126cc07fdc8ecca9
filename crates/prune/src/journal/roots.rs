//! The directories that a run may act in, as the kernel names them: recorded in the journal's first
//! line, and the bounds within which undo acts.

use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, OsStr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bc_find::groups::FileGroup;
use bc_fs::dirfd;
use bc_fs::path::{join, split};

use crate::check::dir;
use crate::check::dir::RealPlaces;
use crate::check::open_file::OpenFile;
use crate::step::{Action, lies_in_trash};

/// Directories that a run acts in.
#[derive(Debug)]
pub(super) struct Bounds {
    /// Absolute, without links; none lies in another.
    pub(super) roots: HashSet<Vec<u8>>,
    /// Real paths by the names that the user gave.
    given: HashMap<Vec<u8>, Vec<u8>>,
    /// Length of the longest of those names.
    longest: usize,
    /// The destination of a move, as given and as it is.
    destination: Option<(Vec<u8>, Vec<u8>)>,
    /// Real places behind bind mounts.
    places: RealPlaces,
}

impl Bounds {
    pub(super) fn of(groups: &[FileGroup], action: &Action) -> Bounds {
        let mut asked: HashSet<&[u8]> = HashSet::new();
        for file in groups.iter().flat_map(|group| &group.files) {
            // Of a file that was named itself the directory counts.
            asked.insert(dir::way(file).0);
        }
        let given: HashMap<Vec<u8>, Vec<u8>> = asked
            .into_iter()
            .map(|root| (root.to_vec(), real(root)))
            .collect();
        let destination = match action {
            Action::Move(dir) => Some((dir.clone(), real(dir))),
            _ => None,
        };
        let trash = match action {
            Action::Trash(Some(home)) => Some(real(home)),
            _ => None,
        };
        let all: HashSet<Vec<u8>> = given
            .values()
            .chain(destination.as_ref().map(|(_, real)| real))
            .cloned()
            .chain(trash)
            .collect();
        let places = RealPlaces::read();
        let mut all = all;
        for root in given.values() {
            let opened = dirfd::open_root(root).ok();
            all.extend(opened.and_then(|dir| places.to_undo_at(dir, root)));
        }
        let roots = all.clone();
        all.extend(places.mounted(|point| contain(&roots, point)));
        let outer = |root: &&Vec<u8>| root.as_slice() == b"/" || !contain(&all, split(root).0);
        Bounds {
            roots: all.iter().filter(outer).cloned().collect(),
            longest: given.keys().map(Vec::len).max().unwrap_or(0),
            given,
            destination,
            places,
        }
    }

    /// Returns the real path of an open file, at its own place if it is seen through a bind mount:
    /// undo finds it there when the mount is gone. `None` if that is not in the run's directories:
    /// its directory was moved away meanwhile.
    pub(super) fn path_of(&self, held: &OpenFile) -> Option<Vec<u8>> {
        self.path_in(&held.dir, &held.name, &held.path)
    }

    /// Returns the real path of a name in a directory; `given` is the path that the user knows it
    /// by.
    pub(super) fn path_in(&self, dir: &OwnedFd, name: &CStr, given: &[u8]) -> Option<Vec<u8>> {
        let path = match dirfd::real_path(dir) {
            Some(seen) => {
                let place = self.places.to_undo_at(dir, &seen);
                join(&place.unwrap_or(seen), name.to_bytes())
            }
            None => self.by_root(given),
        };
        contain(&self.roots, &path).then_some(path)
    }

    /// Returns the real path where the kernel reports none: without /proc, or if it is too long.
    fn by_root(&self, path: &[u8]) -> Vec<u8> {
        let mut at = path;
        loop {
            // A longer path cannot be among them, so it need not be hashed.
            if at.len() <= self.longest
                && let Some(real) = self.given.get(at)
            {
                return join(real, &path[at.len()..]);
            }
            let parent = split(at).0;
            if parent.len() >= at.len() {
                return absolute(path);
            }
            at = parent;
        }
    }

    /// The real path of a place below the destination; one in a trash is that already.
    pub(super) fn destination_of(&self, to: &[u8]) -> Option<Vec<u8>> {
        match &self.destination {
            Some((given, real)) => Some(join(real, to.strip_prefix(given.as_slice())?)),
            None => (contain(&self.roots, to) || is_in_trash(to)).then(|| to.to_vec()),
        }
    }
}

/// Returns true if the path is one in the trash at the top of a file system, with no way out.
pub(super) fn is_in_trash(path: &[u8]) -> bool {
    path.starts_with(b"/") && is_plain(path) && lies_in_trash(path)
}

/// Returns true if no part of an absolute path is empty or leads elsewhere than down.
fn is_plain(path: &[u8]) -> bool {
    path[1.min(path.len())..]
        .split(|byte| *byte == b'/')
        .all(|part| !matches!(part, b"" | b"." | b".."))
}

/// Returns true if `path` is one of `roots` or lies in one, with no way out. Looks up each
/// directory above it once, however many roots there are, and from the top down: roots are short,
/// and paths in them may be very deep.
pub(super) fn contain(roots: &HashSet<Vec<u8>>, path: &[u8]) -> bool {
    if !path.starts_with(b"/") || !is_plain(path) && path != b"/" {
        return false;
    }
    let slashes = (1..path.len()).filter(|&at| path[at] == b'/');
    let mut above = slashes.chain([path.len()]).map(|end| &path[..end]);
    roots.contains(b"/".as_slice()) || above.any(|above| roots.contains(above))
}

/// The path without links, of which the end may not exist yet.
fn real(path: &[u8]) -> Vec<u8> {
    let whole = absolute(path);
    let mut missing: Vec<&[u8]> = Vec::new();
    let mut at = whole.as_slice();
    loop {
        if let Ok(found) = std::fs::canonicalize(Path::new(OsStr::from_bytes(at))) {
            let mut found = found.into_os_string().into_encoded_bytes();
            for part in missing.iter().rev() {
                match *part {
                    // A path that will be created has no links, so this is exact.
                    b".." => found.truncate(split(&found).0.len()),
                    part => found = join(&found, part),
                }
            }
            return found;
        }
        let (parent, name) = split(at);
        if parent.len() >= at.len() {
            return join(b"/", &whole);
        }
        missing.push(name);
        at = parent;
    }
}

/// The absolute form of a path, by the working directory.
fn absolute(path: &[u8]) -> Vec<u8> {
    if path.starts_with(b"/") {
        return join(b"/", path);
    }
    let here = std::env::current_dir().unwrap_or_default();
    join(&here.into_os_string().into_encoded_bytes(), path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_components_not_letters() {
        let roots = HashSet::from([b"/a/b".to_vec()]);
        for inside in ["/a/b", "/a/b/c", "/a/b/..c/d"] {
            assert!(contain(&roots, inside.as_bytes()), "{inside}");
        }
        for outside in [
            "/a",
            "/a/bc",
            "/a/b/../c",
            "/a/b/./c",
            "/a/b//c",
            "/a/b/",
            "a/b",
            "",
            "/",
        ] {
            assert!(!contain(&roots, outside.as_bytes()), "{outside}");
        }
        assert!(contain(&HashSet::from([b"/".to_vec()]), b"/anything"));
        assert!(!contain(&HashSet::from([b"/".to_vec()]), b"/any/../thing"));
    }

    #[test]
    fn nested_roots_are_named_once() {
        let dir = tempfile::tempdir().unwrap();
        let real_dir = std::fs::canonicalize(dir.path()).unwrap();
        for name in ["a", "a-b", "a/c"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        let file = |root: &str| bc_find::groups::FileRef {
            path: dir
                .path()
                .join(root)
                .join("x")
                .into_os_string()
                .into_encoded_bytes(),
            root_len: dir.path().join(root).as_os_str().len(),
            root: 0,
            id: bc_walk::Identity { dev: 1, ino: 1 },
            stamp: bc_walk::Stamp {
                size: 1,
                mtime_ns: 0,
                ctime_ns: 0,
            },
            nlink: 1,
            protected: false,
        };
        let groups = [FileGroup {
            files: vec![file("a/c"), file("a-b"), file("a"), file("a/../a")],
        }];
        let expected: HashSet<Vec<u8>> = ["a", "a-b"]
            .map(|name| real_dir.join(name).into_os_string().into_encoded_bytes())
            .into();
        assert_eq!(Bounds::of(&groups, &Action::Delete).roots, expected);
    }

    #[test]
    fn what_is_not_there_yet_has_a_real_path() {
        let dir = tempfile::tempdir().unwrap();
        let real_dir = std::fs::canonicalize(dir.path()).unwrap();
        std::os::unix::fs::symlink(".", dir.path().join("link")).unwrap();
        for (end, expected) in [
            ("link/new/deep", "new/deep"),
            ("link//./new/../deep/", "deep"),
            ("link", ""),
        ] {
            let path = dir.path().join(end);
            let found = real(path.as_os_str().as_bytes());
            let expected = real_dir.join(expected);
            let expected = join(expected.as_os_str().as_bytes(), b"");
            assert_eq!(
                String::from_utf8_lossy(&found),
                String::from_utf8_lossy(&expected).trim_end_matches('/')
            );
        }
    }
}
