//! Properties of a tree that its copy is to have, found out slowly and without the code under test.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// State of the file at one path. Equal for a file and its perfect copy.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Seen {
    /// Type and permission bits.
    pub mode: u32,
    /// User and group.
    pub owner: (u32, u32),
    /// Last modification: seconds since 1970, and nanoseconds.
    pub mtime: (i64, i64),
    /// The bytes of a file, the target of a link.
    pub content: Vec<u8>,
    /// Names and values, sorted.
    pub xattrs: Vec<(Vec<u8>, Vec<u8>)>,
    /// All paths below the root that are this very file, sorted.
    pub names: Vec<PathBuf>,
    /// Device that a device node stands for.
    pub rdev: u64,
}

/// Returns the files below `root`, and `root` itself under the empty path; names called `but` are
/// left out.
///
/// # Errors
/// Errors of reading anything there.
pub fn seen(root: &Path, but: &str) -> io::Result<BTreeMap<PathBuf, Seen>> {
    let mut found = BTreeMap::new();
    let mut inodes: BTreeMap<(u64, u64), Vec<PathBuf>> = BTreeMap::new();
    let mut stack = vec![PathBuf::new()];
    while let Some(relative) = stack.pop() {
        let path = root.join(&relative);
        let meta = path.symlink_metadata()?;
        let kind = meta.file_type();
        let mut content = Vec::new();
        if kind.is_dir() {
            for entry in std::fs::read_dir(&path)? {
                let name = entry?.file_name();
                if name != but {
                    stack.push(relative.join(name));
                }
            }
        } else if kind.is_symlink() {
            content = std::fs::read_link(&path)?.into_os_string().into_vec();
        } else if kind.is_file() {
            content = std::fs::read(&path)?;
        }
        if !kind.is_dir() {
            let id = (meta.dev(), meta.ino());
            inodes.entry(id).or_default().push(relative.clone());
        }
        let is_device = kind.is_block_device() || kind.is_char_device();
        let one = Seen {
            mode: meta.mode(),
            owner: (meta.uid(), meta.gid()),
            mtime: (meta.mtime(), meta.mtime_nsec()),
            content,
            xattrs: xattrs(&path)?,
            names: Vec::new(),
            rdev: if is_device { meta.rdev() } else { 0 },
        };
        found.insert(relative, one);
    }
    for mut names in inodes.into_values() {
        names.sort();
        for name in &names {
            if let Some(one) = found.get_mut(name) {
                one.names.clone_from(&names);
            }
        }
    }
    Ok(found)
}

fn xattrs(path: &Path) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut names = vec![0; 64 << 10];
    let count = match rustix::fs::llistxattr(path, &mut names[..]) {
        Err(rustix::io::Errno::NOTSUP) => 0,
        count => count?,
    };
    let mut all = Vec::new();
    for name in names[..count].split(|byte| *byte == 0) {
        // XFS shows root its access control lists a second time.
        if !name.is_empty() && !name.starts_with(b"trusted.SGI_ACL_") {
            let mut value = vec![0; 64 << 10];
            let length = rustix::fs::lgetxattr(path, name, &mut value[..])?;
            all.push((name.to_vec(), value[..length].to_vec()));
        }
    }
    all.sort();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::seen;
    use crate::TestTree;

    #[test]
    fn a_difference_is_seen() {
        let t = TestTree::new();
        t.write("a/file", "x").symlink("file", "a/link");
        let before = seen(t.path(), "none").unwrap();
        assert_eq!(before.len(), 4);
        t.mode("a/file", 0o600);
        let after = seen(t.path(), "none").unwrap();
        assert_ne!(before, after);
        assert_eq!(seen(t.path(), "a").unwrap().len(), 1);
    }
}
