//! Paths that are asked for one by one, by their bytes.

use std::collections::HashSet;

/// Paths below a root, and the directories on the way to them.
///
/// ```
/// use bc_walk::ExactPaths;
///
/// let paths = ExactPaths::new([b"a/*.jpg".to_vec()]);
/// assert!(paths.admits(b"a/*.jpg") && paths.admits(b"a"));
/// assert!(!paths.admits(b"a/b.jpg") && !paths.admits(b"a/*"));
/// assert!(paths.asks_for(b"a/*.jpg") && !paths.asks_for(b"a"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct ExactPaths {
    wanted: HashSet<Vec<u8>>,
    on_the_way: HashSet<Vec<u8>>,
}

impl ExactPaths {
    /// Makes the set of these paths, with single slashes between their names, and none before or
    /// after.
    pub fn new(paths: impl IntoIterator<Item = Vec<u8>>) -> ExactPaths {
        let mut all = ExactPaths::default();
        for path in paths {
            for end in slashes(&path) {
                if !all.on_the_way.contains(&path[..end]) {
                    all.on_the_way.insert(path[..end].to_vec());
                }
            }
            all.wanted.insert(path);
        }
        all
    }

    /// True if this path is asked for, is in a directory that is, or leads to one.
    pub fn admits(&self, path: &[u8]) -> bool {
        self.leads_on(path) || self.asks_for(path)
    }

    /// True if this path is asked for, or is in a directory that is.
    pub fn asks_for(&self, path: &[u8]) -> bool {
        self.names(path) || slashes(path).any(|end| self.wanted.contains(&path[..end]))
    }

    /// Returns the paths that are asked for, each once, in no order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.wanted.iter().map(Vec::as_slice)
    }

    /// True if exactly this path is asked for.
    pub(crate) fn names(&self, path: &[u8]) -> bool {
        self.wanted.contains(path)
    }

    /// True if this is a directory on the way to a path that is asked for.
    pub(crate) fn leads_on(&self, path: &[u8]) -> bool {
        self.on_the_way.contains(path)
    }
}

/// Returns the ends of the parent directories' paths: the offsets of the slashes.
pub(crate) fn slashes(path: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let bytes = path.iter().enumerate();
    bytes.filter(|(_, byte)| **byte == b'/').map(|(at, _)| at)
}
