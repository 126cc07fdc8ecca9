//! Whole copies, compared with their sources by looking at everything slowly.

mod basics;
mod proof;
mod resume;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use bc_pool::Cancel;

use crate::{Copied, CopyOptions, CopyProgress, Error, Event, copy};

/// Everything that a copy is to have of its source; inode numbers only as which names are one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Seen {
    mode: u32,
    owner: (u32, u32),
    /// Not of directories that are read meanwhile.
    mtime: (i64, i64),
    content: Vec<u8>,
    xattrs: Vec<(Vec<u8>, Vec<u8>)>,
    names: Vec<PathBuf>,
    rdev: u64,
}

/// A tree by path, without the manifest.
pub(super) fn seen(root: &Path) -> BTreeMap<PathBuf, Seen> {
    let mut found = BTreeMap::new();
    let mut inodes: BTreeMap<(u64, u64), Vec<PathBuf>> = BTreeMap::new();
    let mut stack = vec![PathBuf::new()];
    while let Some(relative) = stack.pop() {
        let path = root.join(&relative);
        let meta = std::fs::symlink_metadata(&path).unwrap();
        let kind = meta.file_type();
        let mut content = Vec::new();
        if kind.is_dir() {
            for entry in std::fs::read_dir(&path).unwrap() {
                let name = entry.unwrap().file_name();
                if name != crate::MANIFEST_NAME {
                    stack.push(relative.join(name));
                }
            }
        } else if kind.is_symlink() {
            content = std::fs::read_link(&path)
                .unwrap()
                .into_os_string()
                .into_vec();
        } else if kind.is_file() {
            content = std::fs::read(&path).unwrap();
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
            xattrs: xattrs(&path),
            names: Vec::new(),
            rdev: if is_device { meta.rdev() } else { 0 },
        };
        found.insert(relative, one);
    }
    for names in inodes.into_values() {
        let mut names = names;
        names.sort();
        for name in &names {
            if let Some(one) = found.get_mut(name) {
                one.names.clone_from(&names);
            }
        }
    }
    found
}

fn xattrs(path: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut names = vec![0; 4096];
    let count = rustix::fs::llistxattr(path, &mut names[..]).unwrap_or(0);
    let mut all: Vec<_> = names[..count]
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .map(|name| {
            let mut value = vec![0; 65536];
            let length = rustix::fs::lgetxattr(path, name, &mut value[..]).unwrap_or(0);
            (name.to_vec(), value[..length].to_vec())
        })
        .collect();
    all.sort();
    all
}

/// A place for sources, destinations and journals.
pub(super) struct Ground {
    pub(super) dir: tempfile::TempDir,
}

impl Ground {
    pub(super) fn new() -> Ground {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("from")).unwrap();
        Ground { dir }
    }

    pub(super) fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    pub(super) fn write(&self, path: &str, content: &[u8]) {
        let path = self.at(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(super) fn options(&self, sources: &[&str], to: &str) -> CopyOptions {
        let sources = sources.iter().map(|path| OsString::from(self.at(path)));
        let mut options = CopyOptions::new(sources.collect(), self.at(to).into());
        options.state = Some(self.at("state"));
        options.workers = 2;
        options.now = 1_700_000_000_000_000_000;
        options
    }

    /// Files that no copy leaves behind.
    pub(super) fn litter(&self) -> Vec<PathBuf> {
        let all = seen(self.dir.path());
        let is_litter = |path: &&PathBuf| {
            let text = path.to_string_lossy();
            text.contains(".part") || text.contains(".journal") || text.contains(".tmp")
        };
        let all = all.into_keys().collect::<Vec<_>>();
        all.iter().filter(is_litter).cloned().collect()
    }
}

/// What was told.
pub(super) type Told = Vec<String>;

/// Copies, and gives what was told.
pub(super) fn run(options: &CopyOptions) -> (Result<Copied, Error>, Told) {
    let told = Mutex::new(Told::new());
    let shown = |path: &[u8]| String::from_utf8_lossy(path).into_owned();
    let observer = |event: Event<'_>| {
        let text = match event {
            Event::Copied(path) => format!("+ {}", shown(path)),
            Event::Replaced(path) => format!("~ {}", shown(path)),
            Event::Skipped(path, why) => format!("= {}: {}", shown(path), why.text()),
            Event::Failed(error) => format!("! {error}"),
            Event::Incomplete(error) => format!("? {error}"),
            Event::Note(text) | Event::Warning(text) => format!("# {text}"),
        };
        told.lock().unwrap().push(text);
    };
    let done = copy(options, &Cancel::new(), &CopyProgress::default(), &observer);
    (done, told.into_inner().unwrap())
}

/// The same where nothing goes wrong.
#[track_caller]
pub(super) fn done(options: &CopyOptions) -> Copied {
    let (done, told) = run(options);
    let done = done.unwrap();
    assert_eq!((done.failed, done.left), (0, 0), "{told:#?}");
    assert_eq!(done.walked, done.copied + done.skipped, "{done:?}");
    done
}
