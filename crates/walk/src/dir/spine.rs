//! The descriptors that a worker keeps open from one directory to the next.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::tree::Task;

/// Descriptors of the directory read last and of those above it: the next one is usually
/// below one of them, so that opening it takes a step or two and not the whole path.
#[derive(Default)]
pub(super) struct Spine {
    top: u32,
    /// Below the top; the directories' paths are beginnings of it, of these lengths.
    path: Vec<u8>,
    dirs: Vec<(usize, Arc<OwnedFd>)>,
}

/// Descriptors that a worker keeps: beyond a few levels up, what is next is somewhere else.
const SPINE: usize = 8;

impl Spine {
    /// Lets go of all descriptors.
    pub(super) fn clear(&mut self) {
        self.dirs.clear();
    }

    /// The nearest directory above the task's, and how much of the path it covers.
    pub(super) fn nearest(&mut self, task: &Task) -> Option<(Arc<OwnedFd>, usize)> {
        if self.top != task.top {
            self.dirs.clear();
        }
        while let Some((len, fd)) = self.dirs.last() {
            let above = &self.path[..*len];
            if task.path.get(*len) == Some(&b'/') && task.path.starts_with(above) {
                return Some((Arc::clone(fd), len + 1));
            }
            self.dirs.pop();
        }
        None
    }

    pub(super) fn push(&mut self, task: &Task, fd: &Arc<OwnedFd>) {
        if self.dirs.len() == SPINE {
            self.dirs.remove(0);
        }
        self.top = task.top;
        self.path.clone_from(&task.path);
        self.dirs.push((task.path.len(), Arc::clone(fd)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd as _;

    fn task(top: u32, path: &str) -> Task {
        Task {
            top,
            fd: None,
            path: path.as_bytes().to_vec(),
            ticket: 0,
            depth: 0,
            ino: 0,
            ignores: None,
        }
    }

    fn fd() -> Arc<OwnedFd> {
        Arc::new(std::fs::File::open(".").unwrap().into())
    }

    #[track_caller]
    fn check(spine: &mut Spine, path: &str, expected: Option<(&Arc<OwnedFd>, usize)>) {
        let found = spine.nearest(&task(1, path));
        let found = found.map(|(fd, covered)| (fd.as_raw_fd(), covered));
        assert_eq!(
            found,
            expected.map(|(fd, covered)| (fd.as_raw_fd(), covered))
        );
    }

    #[test]
    fn only_directories_above_count() {
        let mut spine = Spine::default();
        let (a, ab) = (fd(), fd());
        assert!(spine.nearest(&task(1, "a")).is_none());
        spine.push(&task(1, "a"), &a);
        check(&mut spine, "a/b", Some((&a, 2)));
        spine.push(&task(1, "a/b"), &ab);
        check(&mut spine, "a/b/c", Some((&ab, 4)));
        check(&mut spine, "a/bc/d", Some((&a, 2)));
        check(&mut spine, "a/b/c", Some((&a, 2)));
        check(&mut spine, "ab", None);
        check(&mut spine, "a/b", None);
    }

    #[test]
    fn another_top_is_another_tree() {
        let mut spine = Spine::default();
        spine.push(&task(1, "a"), &fd());
        assert!(spine.nearest(&task(2, "a/b")).is_none());
    }

    #[test]
    fn few_are_kept() {
        let mut spine = Spine::default();
        let mut path = String::from("0");
        for level in 1..50 {
            let deeper = task(0, &path);
            spine.nearest(&deeper);
            spine.push(&deeper, &fd());
            assert!(spine.dirs.len() <= SPINE);
            path = format!("{path}/{level}");
            assert!(spine.nearest(&task(0, &path)).is_some());
        }
    }
}
