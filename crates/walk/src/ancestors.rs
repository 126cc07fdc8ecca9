//! Descriptors of the directories on the way to the one that was opened last, by path.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;

/// Descriptors of the directory opened last and of its ancestors: the next one is usually below one
/// of them, so that opening it takes a step or two and not the whole path.
///
/// Some of the directories on the way are kept as well if it takes many steps. A walk that returns
/// from the depth finds the nearest of them close by, so that `n` directories that are each other's
/// parents are opened with some `n · log n` steps in either direction.
pub(crate) struct AncestorFds<F> {
    path: Vec<u8>,
    /// The directories' paths are beginnings of it, of these lengths.
    dirs: Vec<(usize, F)>,
}

/// Number of descriptors that are kept: a few levels up, the next directory is usually somewhere
/// else.
const KEPT: usize = 8;

/// Names that are looked up in one call without keeping anything on the way. No tree that people
/// make is as deep.
pub(crate) const STRIDE: usize = 32;

/// Purpose of opening a directory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Reach {
    /// A step towards another directory.
    Way,
    /// The directory that is wanted.
    End,
}

impl<F> Default for AncestorFds<F> {
    fn default() -> AncestorFds<F> {
        AncestorFds {
            path: Vec::new(),
            dirs: Vec::new(),
        }
    }
}

impl<F: AsFd + Clone + From<OwnedFd>> AncestorFds<F> {
    /// Lets go of all descriptors; returns whether there were any.
    pub(crate) fn clear(&mut self) -> bool {
        let any = !self.dirs.is_empty();
        self.dirs.clear();
        any
    }

    /// Opens the directory `path`. `open` is given the directory to start from, if it is not the
    /// one that all paths begin at, and the path from there, which is empty where that is the end
    /// already. Only the directories opened on the [`Way`](Reach::Way) are kept: the end is the
    /// caller's to [`push`](AncestorFds::push).
    pub(crate) fn open(
        &mut self,
        path: &[u8],
        mut open: impl FnMut(Option<&F>, &[u8], Reach) -> Result<OwnedFd, Errno>,
    ) -> Result<F, Errno> {
        let (mut from, mut start) = match self.nearest(path) {
            Some((fd, covered)) => (Some(fd), covered),
            None => (None, 0),
        };
        while let Some(len) = halfway(&path[start..]) {
            let way = start..start + len;
            let fd = F::from(open(from.as_ref(), &path[way.clone()], Reach::Way)?);
            self.push(&path[..way.end], &fd);
            start = way.end + slashes(&path[way.end..]);
            from = Some(fd);
        }
        open(from.as_ref(), &path[start..], Reach::End).map(F::from)
    }

    /// Returns the nearest kept directory on the way to `path`, or that one itself, and the length
    /// of the path that it covers with the slashes that follow. Directories that are not on the way
    /// are dropped.
    fn nearest(&mut self, path: &[u8]) -> Option<(F, usize)> {
        while let Some((len, fd)) = self.dirs.last() {
            let above = &self.path[..*len];
            if path.starts_with(above) {
                let after = slashes(&path[*len..]);
                if after > 0 || path.len() == *len || above.ends_with(b"/") {
                    return Some((fd.clone(), len + after));
                }
            }
            self.dirs.pop();
        }
        None
    }

    /// Keeps the directory that was opened last.
    pub(crate) fn push(&mut self, path: &[u8], fd: &F) {
        if self.dirs.len() == KEPT {
            self.dirs.remove(0);
        }
        self.path.clear();
        self.path.extend_from_slice(path);
        self.dirs.push((path.len(), fd.clone()));
    }
}

/// True if a path has more names than are looked up at once.
pub(crate) fn is_long(path: &[u8]) -> bool {
    halfway(path).is_some()
}

/// Returns the length of the first half of the names of a path that has more than [`STRIDE`].
fn halfway(path: &[u8]) -> Option<usize> {
    // Each name has a slash.
    if path.len() < 2 * STRIDE {
        return None;
    }
    let slashes = || (0..path.len()).filter(|&at| path[at] == b'/');
    let count = slashes().count();
    (count >= STRIDE)
        .then(|| slashes().nth(count / 2))
        .flatten()
}

fn slashes(path: &[u8]) -> usize {
    path.iter().take_while(|&&byte| byte == b'/').count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd as _;
    use std::sync::Arc;

    type AncestorFds = super::AncestorFds<Arc<OwnedFd>>;

    fn fd() -> Arc<OwnedFd> {
        Arc::new(std::fs::File::open(".").unwrap().into())
    }

    #[track_caller]
    fn check(ancestors: &mut AncestorFds, path: &str, expected: Option<(&Arc<OwnedFd>, usize)>) {
        let found = ancestors.nearest(path.as_bytes());
        let found = found.map(|(fd, covered)| (fd.as_raw_fd(), covered));
        assert_eq!(
            found,
            expected.map(|(fd, covered)| (fd.as_raw_fd(), covered))
        );
    }

    #[test]
    fn only_directories_above_count() {
        let mut ancestors = AncestorFds::default();
        let (a, ab) = (fd(), fd());
        check(&mut ancestors, "a", None);
        ancestors.push(b"a", &a);
        check(&mut ancestors, "a/b", Some((&a, 2)));
        ancestors.push(b"a/b", &ab);
        check(&mut ancestors, "a/b/c", Some((&ab, 4)));
        check(&mut ancestors, "a/b", Some((&ab, 3)));
        check(&mut ancestors, "a/b//c", Some((&ab, 5)));
        check(&mut ancestors, "a/bc/d", Some((&a, 2)));
        check(&mut ancestors, "a/b/c", Some((&a, 2)));
        check(&mut ancestors, "ab", None);
        check(&mut ancestors, "a/b", None);
        ancestors.push(b"a/", &a);
        check(&mut ancestors, "a/b", Some((&a, 2)));
        check(&mut ancestors, "a", None);
    }

    /// Returns the number of names that are looked up for directories of a chain, so deep, one
    /// after the other.
    fn steps(depths: impl Iterator<Item = usize>) -> usize {
        let mut ancestors = AncestorFds::default();
        let (mut steps, one, chain) = (0, fd(), "d/".repeat(DEEP));
        for depth in depths {
            let path = &chain.as_bytes()[..2 * depth - 1];
            let mut ends = 0;
            let opened = ancestors.open(path, |_, rest, reach| {
                ends += usize::from(reach == Reach::End);
                steps += rest.split(|byte| *byte == b'/').count();
                Ok(one.try_clone().unwrap())
            });
            ancestors.push(path, &opened.unwrap());
            assert_eq!(ends, 1);
            assert!(ancestors.dirs.len() <= KEPT);
        }
        steps
    }

    const DEEP: usize = 10_000;

    #[test]
    fn going_down_takes_a_step_each_and_coming_up_a_few() {
        assert_eq!(steps(1..=STRIDE), STRIDE);
        assert_eq!(steps(1..=DEEP), DEEP);
        let up = steps((1..=DEEP).rev());
        assert!(up < 30 * DEEP, "{up}");
    }

    #[test]
    fn nothing_is_kept_on_a_short_way_and_slashes_lead_nowhere_else() {
        assert_eq!(halfway(b"a/b/c"), None);
        assert_eq!(halfway("directory/".repeat(STRIDE - 1).as_bytes()), None);
        for path in ["/a".repeat(100), "a//".repeat(100), "/".repeat(300)] {
            let mut from_root = false;
            let opened = AncestorFds::default().open(path.as_bytes(), |from, rest, _| {
                from_root |= from.is_none();
                assert!(from.is_none() || !rest.starts_with(b"/"));
                Ok(std::fs::File::open(".").unwrap().into())
            });
            opened.unwrap();
            assert!(from_root);
        }
    }

    #[test]
    fn few_are_kept() {
        let mut ancestors = AncestorFds::default();
        let mut path = String::from("0");
        for level in 1..50 {
            ancestors.nearest(path.as_bytes());
            ancestors.push(path.as_bytes(), &fd());
            assert!(ancestors.dirs.len() <= KEPT);
            path = format!("{path}/{level}");
            assert!(ancestors.nearest(path.as_bytes()).is_some());
        }
    }
}
