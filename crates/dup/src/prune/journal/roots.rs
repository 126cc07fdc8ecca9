//! The directories that a run may act in, as the kernel names them: recorded
//! in the journal's first line, and the bounds of what undo will touch.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::prune::guard::Held;
use crate::prune::plan::{Group, split};
use crate::prune::step::Action;

/// Where a run acts.
#[derive(Debug)]
pub(super) struct Bounds {
    /// Absolute, without links, sorted; none lies in another.
    pub(super) roots: Vec<Vec<u8>>,
    /// By what the user called them.
    given: HashMap<Vec<u8>, Vec<u8>>,
    /// The destination of a move, as given and as it is.
    destination: Option<(Vec<u8>, Vec<u8>)>,
}

impl Bounds {
    pub(super) fn of(groups: &[Group], action: &Action) -> Bounds {
        let mut asked: HashSet<&[u8]> = HashSet::new();
        for file in groups.iter().flat_map(|group| &group.files) {
            // Of a file that was named itself the directory counts.
            let root = if file.root_len < file.path.len() {
                &file.path[..file.root_len]
            } else {
                split(&file.path).0
            };
            asked.insert(root);
        }
        let given: HashMap<Vec<u8>, Vec<u8>> = asked
            .into_iter()
            .map(|root| (root.to_vec(), real(root)))
            .collect();
        let destination = match action {
            Action::Move(dir) => Some((dir.clone(), real(dir))),
            _ => None,
        };
        let mut roots: Vec<Vec<u8>> = given.values().cloned().collect();
        roots.extend(destination.iter().map(|(_, real)| real.clone()));
        roots.sort();
        let mut outer: Vec<Vec<u8>> = Vec::new();
        for root in roots {
            // A directory sorts before what lies in it.
            if !contain(&outer, &root) {
                outer.push(root);
            }
        }
        Bounds {
            roots: outer,
            given,
            destination,
        }
    }

    /// The real path of an open file; `None` if that is none of the run's: its
    /// directory was moved away meanwhile.
    pub(super) fn path_of(&self, held: &Held) -> Option<Vec<u8>> {
        let path = held.real_path().unwrap_or_else(|| self.by_root(&held.path));
        contain(&self.roots, &path).then_some(path)
    }

    /// For paths that the kernel does not tell: without /proc, or too long.
    fn by_root(&self, path: &[u8]) -> Vec<u8> {
        let mut at = path;
        loop {
            if let Some(real) = self.given.get(at) {
                return join(real, &path[at.len()..]);
            }
            let parent = split(at).0;
            if parent.len() >= at.len() {
                return absolute(path);
            }
            at = parent;
        }
    }

    /// The real path of a place below the destination.
    pub(super) fn destination_of(&self, to: &[u8]) -> Option<Vec<u8>> {
        let (given, real) = self.destination.as_ref()?;
        Some(join(real, to.strip_prefix(given.as_slice())?))
    }
}

/// Whether `path` is one of `roots` or lies in one, with no way out.
pub(super) fn contain(roots: &[Vec<u8>], path: &[u8]) -> bool {
    let plain = path[1.min(path.len())..]
        .split(|byte| *byte == b'/')
        .all(|part| !matches!(part, b"" | b"." | b".."));
    (plain || path == b"/")
        && roots.iter().any(|root| {
            root == b"/"
                || path
                    .strip_prefix(root.as_slice())
                    .is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
        })
}

/// `dir`, then what of `rest` is a component.
pub(crate) fn join(dir: &[u8], rest: &[u8]) -> Vec<u8> {
    let mut path = dir.to_vec();
    for part in rest.split(|byte| *byte == b'/') {
        if matches!(part, b"" | b".") {
            continue;
        }
        if path.last() != Some(&b'/') {
            path.push(b'/');
        }
        path.extend_from_slice(part);
    }
    path
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
                    // What will be created has no links, so this is exact.
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
        let roots = [b"/a/b".to_vec()];
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
        assert!(contain(&[b"/".to_vec()], b"/anything"));
        assert!(!contain(&[b"/".to_vec()], b"/any/../thing"));
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
