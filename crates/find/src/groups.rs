//! Groups of equal files and directories as a search found them: all that has to be known of a name
//! to find its file again, without a listing. Whoever acts on them checks all of it once more.

use bc_fs::meta::{Identity, Stamp};
use bc_fs::path::{below, split};

/// One name of a file as a scan found it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FileRef {
    /// The path, as printed.
    pub path: Vec<u8>,
    /// Bytes of `path` that are the root it was found under: links in that part
    /// are followed, links below are refused. Equal to the length of `path`
    /// where the file itself was the root, 0 where it was listed without one.
    pub root_len: usize,
    /// Index of the root.
    pub root: u32,
    /// Identity of the file.
    pub id: Identity,
    /// State in which it was read.
    pub stamp: Stamp,
    /// Number of names that it had.
    pub nlink: u64,
    /// True if it lies under a reference directory and is never to be changed.
    pub protected: bool,
}

impl FileRef {
    /// The path below its root; the base name where the root is the file.
    pub fn relative(&self) -> &[u8] {
        match self.path.get(..self.root_len) {
            Some(b"") => &self.path,
            Some(root) => below(&self.path, root).unwrap_or_else(|| self.name()),
            None => self.name(),
        }
    }

    /// The last component.
    pub fn name(&self) -> &[u8] {
        split(&self.path).1
    }
}

/// Files that a scan found to hold the same bytes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct FileGroup {
    /// All names of all files.
    pub files: Vec<FileRef>,
}

/// A directory with all that is in it, as a search found it.
#[derive(Clone, Debug)]
pub struct TreeCopy {
    /// The directory itself.
    pub dir: FileRef,
    /// Entries below it, at any depth: each directory before its own entries. Copies have theirs in
    /// the same order.
    pub entries: Vec<TreeEntry>,
}

/// One name below a [`TreeCopy`].
#[derive(Clone, Debug)]
pub struct TreeEntry {
    /// Index of the directory that it is in; `None`: the copy itself.
    pub parent: Option<u32>,
    /// Its name there.
    pub name: Vec<u8>,
    /// Kind of entry.
    pub kind: TreeKind,
    /// Identity.
    pub id: Identity,
    /// State.
    pub stamp: Stamp,
    /// Number of names that it had.
    pub nlink: u64,
}

/// Kind of entry below a directory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TreeKind {
    /// A regular file.
    File,
    /// A symbolic link.
    Link,
    /// A directory.
    Dir,
}

/// Directories that a search found to be copies of each other.
#[derive(Clone, Debug)]
pub struct TreeGroup {
    /// All of them.
    pub copies: Vec<TreeCopy>,
    /// Entries in them that filters left out: of such a group nothing is removed.
    pub filtered: u64,
}

impl TreeCopy {
    /// The copy itself, or one of its entries, by the path that it has.
    pub fn at(&self, at: Option<u32>) -> FileRef {
        let Some(nth) = at else {
            return self.dir.clone();
        };
        let entry = &self.entries[nth as usize];
        let mut names: Vec<&[u8]> = vec![&entry.name];
        let mut above = entry.parent;
        while let Some(nth) = above {
            let entry = &self.entries[nth as usize];
            names.push(&entry.name);
            above = entry.parent;
        }
        let mut path = self.dir.path.clone();
        for name in names.into_iter().rev() {
            path.push(b'/');
            path.extend_from_slice(name);
        }
        FileRef {
            path,
            root_len: self.dir.root_len,
            root: self.dir.root,
            id: entry.id,
            stamp: entry.stamp,
            nlink: entry.nlink,
            protected: self.dir.protected,
        }
    }

    /// The entries of one kind.
    pub fn of(&self, kind: TreeKind) -> impl DoubleEndedIterator<Item = Option<u32>> {
        let all = 0..self.entries.len() as u32;
        let of_kind = all.filter(move |nth| self.entries[*nth as usize].kind == kind);
        of_kind.map(Some)
    }

    /// The directory, and each one in it.
    pub fn dirs(&self) -> impl Iterator<Item = Identity> {
        let inner = self.entries.iter();
        let inner = inner.filter(|entry| entry.kind == TreeKind::Dir);
        [self.dir.id].into_iter().chain(inner.map(|entry| entry.id))
    }

    /// Returns the number of files in it, and of their bytes.
    pub fn amount(&self) -> (u64, u64) {
        let files = self.entries.iter();
        let files = files.filter(|entry| entry.kind == TreeKind::File);
        files.fold((0, 0), |(count, bytes), file| {
            (count + 1, bytes + file.stamp.size)
        })
    }
}
