//! A temporary tree for one test: write files, run the binary, look at the result.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::Mode;
use tempfile::TempDir;

use crate::{Run, remove_tree};

/// A directory of its own, removed on drop however hostile its content. The tree under test
/// is [`path`](TestTree::path); [`scratch`](TestTree::scratch) names files beside it.
///
/// Files that they make have mode 0644 and directories 0755, whatever the umask says. The helpers
/// panic on any error and print the path, since a test cannot continue without them.
#[derive(Debug)]
pub struct TestTree {
    base: TempDir,
    root: PathBuf,
}

impl Default for TestTree {
    fn default() -> Self {
        TestTree::new()
    }
}

impl TestTree {
    /// Makes an empty tree in the system's temporary directory (`TMPDIR`).
    pub fn new() -> TestTree {
        TestTree::new_in(&std::env::temp_dir())
    }

    /// Makes an empty tree inside `parent`, e.g. on another file system.
    #[track_caller]
    pub fn new_in(parent: &Path) -> TestTree {
        crate::raise_descriptors();
        // Programs' files have the modes that are expected, too, whatever umask the tests were
        // started with.
        rustix::process::umask(Mode::from_raw_mode(0o022));
        let base = tempfile::Builder::new()
            .prefix("bc-test-")
            .tempdir_in(parent);
        let base = base.unwrap_or_else(|e| panic!("{}: {e}", parent.display()));
        let root = base.path().join("tree");
        ok(fs::create_dir(&root), &root);
        for dir in [base.path(), &root] {
            // Commands run as nobody must be able to enter.
            ok(set_mode(dir, 0o755), dir);
        }
        TestTree { base, root }
    }

    /// Returns the tree under test: an absolute path. Commands run with it as their directory.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Returns a path beside the tree, for outputs that must not be inside it.
    pub fn scratch(&self, name: impl AsRef<Path>) -> PathBuf {
        self.base.path().join(name)
    }

    /// Returns the absolute path of `relative` in the tree.
    pub fn join(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.root.join(relative)
    }

    /// Joins like [`join`](TestTree::join) for a name in raw bytes.
    pub fn join_bytes(&self, relative: &[u8]) -> PathBuf {
        self.root.join(OsStr::from_bytes(relative))
    }

    /// Writes a file, creating the directories above it; replaces an existing one.
    #[track_caller]
    pub fn write(&self, relative: impl AsRef<Path>, content: impl AsRef<[u8]>) -> &Self {
        let path = self.root.join(relative);
        self.parent(&path);
        let is_new = path.symlink_metadata().is_err();
        ok(patiently(|| fs::write(&path, content.as_ref())), &path);
        if is_new {
            ok(set_mode(&path, 0o644), &path);
        }
        self
    }

    /// Writes like [`write`](TestTree::write) for a name in raw bytes.
    #[track_caller]
    pub fn write_bytes(&self, relative: &[u8], content: impl AsRef<[u8]>) -> &Self {
        self.write(OsStr::from_bytes(relative), content)
    }

    /// Creates a directory and those above it.
    #[track_caller]
    pub fn dir(&self, relative: impl AsRef<Path>) -> &Self {
        let path = self.root.join(relative);
        ok(make_dirs(&path), &path);
        self
    }

    /// Creates the symbolic link `relative`, pointing to `target` as given.
    #[track_caller]
    pub fn symlink(&self, target: impl AsRef<Path>, relative: impl AsRef<Path>) -> &Self {
        let path = self.root.join(relative);
        self.parent(&path);
        ok(symlink(target, &path), &path);
        self
    }

    /// Creates `relative` as another name of the file `existing`.
    #[track_caller]
    pub fn hard_link(&self, existing: impl AsRef<Path>, relative: impl AsRef<Path>) -> &Self {
        let path = self.root.join(relative);
        self.parent(&path);
        ok(fs::hard_link(self.root.join(existing), &path), &path);
        self
    }

    /// Sets the permission bits.
    #[track_caller]
    pub fn mode(&self, relative: impl AsRef<Path>, mode: u32) -> &Self {
        let path = self.root.join(relative);
        ok(
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)),
            &path,
        );
        self
    }

    /// Sets the time of last modification, in seconds and nanoseconds since 1970.
    #[track_caller]
    pub fn mtime(&self, relative: impl AsRef<Path>, seconds: i64, nanoseconds: u32) -> &Self {
        use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_OMIT, utimensat};
        let path = self.root.join(relative);
        let times = Timestamps {
            last_access: Timespec {
                tv_sec: 0,
                tv_nsec: UTIME_OMIT,
            },
            last_modification: Timespec {
                tv_sec: seconds,
                tv_nsec: nanoseconds.into(),
            },
        };
        ok(
            utimensat(CWD, &path, &times, AtFlags::SYMLINK_NOFOLLOW),
            &path,
        );
        self
    }

    /// Creates a FIFO.
    #[track_caller]
    pub fn fifo(&self, relative: impl AsRef<Path>) -> &Self {
        use rustix::fs::{CWD, FileType, mknodat};
        let path = self.root.join(relative);
        self.parent(&path);
        ok(
            mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0),
            &path,
        );
        self
    }

    /// Removes one file or a whole tree.
    #[track_caller]
    pub fn remove(&self, relative: impl AsRef<Path>) -> &Self {
        let path = self.root.join(relative);
        ok(remove_tree(&path), &path);
        self
    }

    /// Returns the content of a file.
    #[track_caller]
    pub fn read(&self, relative: impl AsRef<Path>) -> Vec<u8> {
        let path = self.root.join(relative);
        ok(fs::read(&path), &path)
    }

    /// True if the name exists (a dangling link does).
    pub fn exists(&self, relative: impl AsRef<Path>) -> bool {
        self.root.join(relative).symlink_metadata().is_ok()
    }

    /// Returns a command on this tree, to be completed and started by [`Run::go`].
    pub fn run(&self, program: impl AsRef<OsStr>) -> Run {
        Run::new(program.as_ref(), &self.root, self.base.path())
    }

    #[track_caller]
    fn parent(&self, path: &Path) {
        if let Some(parent) = path.parent() {
            ok(make_dirs(parent), parent);
        }
    }
}

/// Opens a file, and waits for descriptors that other tests of this process hold.
fn patiently<T>(mut open: impl FnMut() -> std::io::Result<T>) -> std::io::Result<T> {
    let is_short = |error: &std::io::Error| {
        error.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error())
    };
    for _ in 0..1000 {
        match open() {
            Err(error) if is_short(&error) => std::thread::sleep(Duration::from_millis(10)),
            done => return done,
        }
    }
    open()
}

fn set_mode(path: &Path, mode: u32) -> std::io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// Makes a directory and those above it, with the same mode whatever the umask says.
fn make_dirs(path: &Path) -> std::io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        make_dirs(parent)?;
    }
    fs::create_dir(path)?;
    set_mode(path, 0o755)
}

impl Drop for TestTree {
    fn drop(&mut self) {
        // Files that cannot be removed are left for TempDir to try, and then for the reader of
        // /tmp.
        let _ = remove_tree(&self.root);
    }
}

#[track_caller]
fn ok<T, E: std::fmt::Display>(result: Result<T, E>, path: &Path) -> T {
    result.unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::TestTree;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn builds_and_disappears() {
        let tree = TestTree::new();
        tree.write("a/b", "x")
            .hard_link("a/b", "c")
            .symlink("nowhere", "d")
            .fifo("e")
            .dir("f/g");
        tree.mtime("c", -5, 7).mode("c", 0o400).mode("f", 0o000);
        let meta = tree.join("a/b").metadata().unwrap();
        assert_eq!((meta.nlink(), meta.mtime(), meta.mtime_nsec()), (2, -5, 7));
        assert!(tree.exists("d"));
        let path = tree.path().to_path_buf();
        drop(tree);
        assert!(!path.parent().unwrap().exists());
    }
}
