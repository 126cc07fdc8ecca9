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
/// ```
#[derive(Clone, Debug, Default)]
pub struct ExactPaths {
    wanted: HashSet<Vec<u8>>,
    on_the_way: HashSet<Vec<u8>>,
}

impl ExactPaths {
    /// These paths, with single slashes between their names, and none before or after.
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

    /// Whether this path is asked for, is in a directory that is, or leads to one.
    pub fn admits(&self, path: &[u8]) -> bool {
        self.wanted.contains(path)
            || self.on_the_way.contains(path)
            || slashes(path).any(|end| self.wanted.contains(&path[..end]))
    }
}

fn slashes(path: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let bytes = path.iter().enumerate();
    bytes.filter(|(_, byte)| **byte == b'/').map(|(at, _)| at)
}
