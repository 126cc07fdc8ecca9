//! Identity of directories and files: by number where numbers are the file system's own, and by the
//! path within the mount where they are not.
//!
//! A view of several file systems, such as a FUSE mount over two disks, may pass on the numbers
//! of both: its directories then share device and inode number and have nothing else in common.
//! The kernel knows one path to each within a mount.

use std::collections::HashMap;
use std::ffi::CString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use bc_fs::dirfd::own_path;
use bc_fs::mount::{Traits, basic_traits};
use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use rustix::io::Errno;

use crate::{BasicStat, FileStat, Identity, Stamp};

/// Values by directory. One that was put in without a path is known by its number alone.
#[derive(Debug)]
pub(crate) struct DirectoryMap<T>(HashMap<Identity, Numbered<T>>);

/// All values of one inode number, each with its path within the mount.
type Numbered<T> = Vec<(Option<Vec<u8>>, T)>;

impl<T> Default for DirectoryMap<T> {
    fn default() -> DirectoryMap<T> {
        DirectoryMap(HashMap::new())
    }
}

impl<T: Default> DirectoryMap<T> {
    /// Returns the value of a directory, and whether it is new.
    pub(crate) fn entry(&mut self, id: Identity, kernel_path: Option<&[u8]>) -> (&mut T, bool) {
        let found = self.0.entry(id).or_default();
        let at = found
            .iter()
            .position(|(known, _)| known.as_deref() == kernel_path);
        let index = at.unwrap_or_else(|| {
            found.push((kernel_path.map(<[u8]>::to_vec), T::default()));
            found.len() - 1
        });
        (&mut found[index].1, at.is_none())
    }

    /// Returns the value of a directory; `kernel_path` is only asked for where the number is
    /// ambiguous.
    pub(crate) fn get(
        &self,
        id: Identity,
        kernel_path: impl FnOnce() -> Option<Vec<u8>>,
    ) -> Option<&T> {
        let found = self.0.get(&id)?;
        let by_number = found.iter().find(|(known, _)| known.is_none());
        let (_, value) = by_number.or_else(|| {
            let kernel_path = kernel_path()?;
            found
                .iter()
                .find(|(known, _)| known.as_ref() == Some(&kernel_path))
        })?;
        Some(value)
    }

    /// Returns all inode numbers.
    pub(crate) fn inodes(&self) -> impl Iterator<Item = u64> {
        self.0.keys().map(|id| id.ino)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Returns the kernel's path of a directory or file, if its numbers do not distinguish it from
/// others; `None` also where the system does not return one, and then numbers have to do.
pub(crate) fn kernel_path_where_needed(file: impl AsFd, traits: &Traits) -> Option<Vec<u8>> {
    if traits.numbers_are_its_own() {
        return None;
    }
    kernel_path(file)
}

/// Returns the path by which the kernel knows an open file: absolute and without links. `None`
/// without `/proc`, beyond `PATH_MAX`, and outside of this process's root. Of a removed file too,
/// unlike [`real_path`](bc_fs::dirfd::real_path): this one only distinguishes, nothing is opened by
/// it.
fn kernel_path(file: impl AsFd) -> Option<Vec<u8>> {
    let path = rustix::fs::readlink(own_path(file), Vec::new())
        .ok()?
        .into_bytes();
    path.starts_with(b"/").then_some(path)
}

/// Appends the names `below` to a path, part by part.
pub(crate) fn join(path: &[u8], below: &[&[u8]]) -> Vec<u8> {
    let mut joined = path.to_vec();
    for part in below.iter().filter(|part| !part.is_empty()) {
        if !joined.ends_with(b"/") {
            joined.push(b'/');
        }
        joined.extend_from_slice(part);
    }
    joined
}

/// A file that a listing leaves out, such as the one that the result is written to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OwnFile {
    id: Identity,
    view: Option<View>,
}

/// Facts that have to be equal where equal numbers may be another file's: the path, or the
/// whole state.
#[derive(Clone, Debug, Eq, PartialEq)]
struct View {
    kernel_path: Option<Vec<u8>>,
    stamp: Stamp,
    nlink: u64,
}

impl OwnFile {
    /// Describes an open file (`O_PATH` is enough), as it is now.
    ///
    /// # Errors
    ///
    /// `fstat` as the system gives it.
    pub fn of(file: impl AsFd) -> io::Result<OwnFile> {
        let stat = FileStat::from(&fstat(&file)?);
        let trusted = basic_traits(&file).is_ok_and(|traits| traits.numbers_are_its_own());
        Ok(OwnFile {
            id: stat.id,
            view: (!trusted).then(|| View {
                kernel_path: kernel_path(&file),
                stamp: stat.stamp,
                nlink: stat.nlink,
            }),
        })
    }

    /// Describes the file at a path, through links, as it is now.
    ///
    /// # Errors
    ///
    /// `open` and `fstat` as the system gives them.
    pub fn at(path: impl AsRef<Path>) -> io::Result<OwnFile> {
        OwnFile::of(open_path(path.as_ref(), OFlags::empty())?)
    }

    /// Returns the file's identity, which may be ambiguous on views of several file systems.
    pub(crate) fn id(&self) -> Identity {
        self.id
    }

    /// True if a path leads to this file; a link there is no file.
    pub fn is_at(&self, path: impl AsRef<Path>) -> bool {
        let Ok(file) = open_path(path.as_ref(), OFlags::NOFOLLOW) else {
            return false;
        };
        let stat = fstat(&file).map(|stat| FileStat::from(&stat).meta());
        stat.is_ok_and(|stat| self.is(stat.id, || kernel_path(&file), || Some(stat)))
    }

    /// True if the file with this number is this one; the path and the state are only asked
    /// for if the number could be another file's.
    pub(crate) fn is(
        &self,
        id: Identity,
        kernel_path: impl FnOnce() -> Option<Vec<u8>>,
        now: impl FnOnce() -> Option<BasicStat>,
    ) -> bool {
        if self.id != id {
            return false;
        }
        let Some(view) = &self.view else {
            return true;
        };
        let same_state = |meta: BasicStat| (meta.stamp, meta.nlink) == (view.stamp, view.nlink);
        view.kernel_path.is_some() && kernel_path() == view.kernel_path
            || now().is_some_and(same_state)
    }
}

fn open_path(path: &Path, flags: OFlags) -> Result<std::os::fd::OwnedFd, Errno> {
    let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::INVAL)?;
    openat(
        CWD,
        path,
        OFlags::PATH | OFlags::CLOEXEC | flags,
        Mode::empty(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Identity = Identity { dev: 1, ino: 2 };

    #[test]
    fn paths_distinguish_what_numbers_do_not() {
        let mut places = DirectoryMap::<u8>::default();
        *places.entry(ONE, Some(b"/v/A")).0 = 1;
        assert!(places.entry(ONE, Some(b"/v/B")).1);
        assert!(!places.entry(ONE, Some(b"/v/A")).1);
        let get = |kernel_path: &[u8]| places.get(ONE, || Some(kernel_path.to_vec())).copied();
        assert_eq!(get(b"/v/A"), Some(1));
        assert_eq!(get(b"/v/B"), Some(0));
        assert_eq!(get(b"/v/C"), None);
        assert_eq!(places.get(ONE, || None), None);

        // By its number alone, whatever the path.
        let mut places = DirectoryMap::<()>::default();
        places.entry(ONE, None);
        assert!(places.get(ONE, || panic!("asked")).is_some());
    }

    #[test]
    fn an_equal_number_is_another_file_unless_path_or_state_agree() {
        let stamp = Stamp {
            size: 1,
            mtime_ns: 2,
            ctime_ns: 3,
        };
        let meta = |stamp| BasicStat {
            id: ONE,
            stamp,
            nlink: 1,
        };
        let own = OwnFile {
            id: ONE,
            view: Some(View {
                kernel_path: Some(b"/v/A/out".to_vec()),
                stamp,
                nlink: 1,
            }),
        };
        let other = Stamp { size: 9, ..stamp };
        let is = |kernel_path: &[u8], stamp| {
            own.is(ONE, || Some(kernel_path.to_vec()), || Some(meta(stamp)))
        };
        // It grew meanwhile; it is seen under another path; it is something else.
        assert!(is(b"/v/A/out", other));
        assert!(is(b"/w/out", stamp));
        assert!(!is(b"/v/B/x", other));
        let known = OwnFile {
            id: ONE,
            view: None,
        };
        assert!(known.is(ONE, || panic!("asked"), || panic!("asked")));
    }

    #[test]
    fn paths_are_joined_as_the_kernel_writes_them() {
        assert_eq!(join(b"/", &[b"", b"x"]), b"/x");
        assert_eq!(join(b"/v", &[b"a/b", b"c"]), b"/v/a/b/c");
        assert_eq!(join(b"/v", &[b""]), b"/v");
    }
}
