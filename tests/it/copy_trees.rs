//! What the tests of interrupted copies share: trees with something of everything, and how to look
//! at what an interrupted copy leaves and at what a complete one is.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use bc_testkit::{TestTree, asked_points, is_root, seen};
use rustix::fs::{XattrFlags, setxattr};

use crate::common::Bc;

pub const MANIFEST: &str = ".bc-copy-manifest.jsonl";

/// Says what a run of more points than usual came to.
#[expect(clippy::print_stderr, reason = "it is for people")]
pub fn figures(text: &str) {
    if asked_points().is_some() {
        eprintln!("{text}");
    }
}

/// Something of everything, small; times of long ago, so that they prove what they say.
pub fn tree() -> TestTree {
    let t = TestTree::new();
    t.write("r/a/file", "content")
        .write("r/a/large", vec![7; 200_000])
        .hard_link("r/a/file", "r/second")
        .symlink("a/file", "r/link")
        .fifo("r/pipe")
        .mode("r/a/file", 0o664)
        .mode("r/a", 0o750);
    give(&t, "r/a/large");
    for (path, seconds) in [("r/a/file", 5), ("r/a/large", 7), ("r/a", 9), ("r", 11)] {
        t.mtime(path, seconds, 123_456_789);
    }
    t
}

/// To somebody else, where that may be.
fn give(t: &TestTree, path: &str) {
    if is_root() {
        std::os::unix::fs::chown(t.join(path), Some(12), Some(34)).unwrap();
    }
}

/// The same with holes, attributes, an access control list, deeper directories, and a file that is
/// copied in blocks, most of which is a hole.
pub fn rich() -> TestTree {
    /// Owner, user 1000, group, mask and others, as the kernel keeps them.
    const LIST: [(u16, u16, u32); 5] = [
        (0x01, 6, u32::MAX),
        (0x02, 4, 1000),
        (0x04, 4, u32::MAX),
        (0x10, 4, u32::MAX),
        (0x20, 0, u32::MAX),
    ];
    let t = tree();
    t.write("r/a/b/c/deep", "deep")
        .write("r/a/b/empty", "")
        .write("r/a/b/medium", pattern(300_000))
        .hard_link("r/a/large", "r/a/b/also large")
        .symlink("/nowhere", "r/a/b/c/dangling")
        .dir("r/void");
    with_data(&t.join("r/sparse"), 5 << 20, &[(3 << 20, 5000)]);
    let data = [
        (1 << 20, 5 << 20),
        (40 << 20, 3 << 20),
        ((64 << 20) + 100, 50),
    ];
    with_data(&t.join("r/huge"), (64 << 20) + 4097, &data);
    give(&t, "r/huge");
    t.mode("r/huge", 0o664)
        .mode("r/void", 0o700)
        .mode("r/a/b/c/deep", 0o4711);
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, permission, id) in LIST {
        list.extend_from_slice(&tag.to_le_bytes());
        list.extend_from_slice(&permission.to_le_bytes());
        list.extend_from_slice(&id.to_le_bytes());
    }
    for (path, name, value) in [
        ("r/huge", "user.huge", &b"value"[..]),
        ("r/a/b", "user.dir", b"of a directory"),
        ("r/a/file", "system.posix_acl_access", &list),
    ] {
        // Where there are none, copies need none.
        let _ = setxattr(t.join(path), name, value, XattrFlags::empty());
    }
    for path in [
        "r/a/b/c/deep",
        "r/a/b/medium",
        "r/sparse",
        "r/huge",
        "r/link",
        "r/pipe",
    ] {
        t.mtime(path, 1_000_000_001, 987_654_321);
    }
    for (path, seconds) in [
        ("r/a/b/c", 2),
        ("r/a/b", -3),
        ("r/void", 4),
        ("r/a", 9),
        ("r", 11),
    ] {
        t.mtime(path, seconds, 123_456_789);
    }
    t
}

/// A file of that size with data at these places, each with its length.
pub fn with_data(path: &Path, size: u64, data: &[(u64, usize)]) {
    let file = File::create(path).unwrap();
    file.set_len(size).unwrap();
    for (at, length) in data {
        file.write_all_at(&pattern(*length), *at).unwrap();
    }
}

/// Bytes without zeros, that do not repeat within a page.
pub fn pattern(length: usize) -> Vec<u8> {
    let byte = |i: usize| ((i as u32).wrapping_mul(2_654_435_761) >> 24) as u8 | 1;
    (0..length).map(byte).collect()
}

/// Every regular file below `root`, by its path in it.
fn files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![root.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                pending.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path().strip_prefix(root).unwrap().to_owned());
            }
        }
    }
    found
}

/// Files of the copy `to` of `from` that have their names and not their bytes.
pub fn half_done(from: &Path, to: &Path) -> Vec<PathBuf> {
    let is_wrong = |name: &PathBuf| {
        let there = std::fs::read(to.join(name));
        there.is_ok_and(|there| there != std::fs::read(from.join(name)).unwrap())
    };
    files(from).into_iter().filter(is_wrong).collect()
}

/// Every file with a final name is whole.
#[track_caller]
pub fn nothing_is_half_done(t: &TestTree, to: &str, context: &str) {
    let found = half_done(&t.join("r"), &t.join(to));
    assert_eq!(found, Vec::<PathBuf>::new(), "{context}");
}

/// Names that a copy must not leave behind, wherever they are.
pub fn litter(t: &TestTree) -> Vec<PathBuf> {
    litter_below(t.path())
        .chain(litter_below(&t.scratch("home")))
        .collect()
}

/// The same below one directory.
pub fn litter_below(root: &Path) -> impl Iterator<Item = PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![root.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten() {
            let entry = entry.unwrap();
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type().unwrap().is_dir() {
                pending.push(entry.path());
            } else if name.contains(".part") || name.ends_with(".journal") || name.contains("tmp") {
                found.push(entry.path());
            }
        }
    }
    found.into_iter()
}

/// The copy equals its source, its manifest is accepted, and nothing else is left.
#[track_caller]
pub fn complete(t: &TestTree, to: &str, context: &str) {
    let (source, target) = (t.join("r"), t.join(to));
    let from = seen(&source, MANIFEST).unwrap();
    let copy = seen(&target, MANIFEST).unwrap();
    for (path, one) in &from {
        let Some(there) = copy.get(path) else {
            panic!("{context}: {}: not there", path.display());
        };
        let same = there.content == one.content;
        assert!(same, "{context}: {}: other bytes", path.display());
        let [mut one, mut there] = [one.clone(), there.clone()];
        (one.content, there.content) = (Vec::new(), Vec::new());
        assert_eq!(there, one, "{context}: {}", path.display());
        let meta = |root: &Path| root.join(path).symlink_metadata().unwrap();
        let (one, there) = (meta(&source), meta(&target));
        // As many holes, but for what file systems differ in: XFS keeps room behind what is written.
        let is_sparse = one.is_file() && one.size() > (one.blocks() << 9) + (1 << 20);
        let slack = one.size().saturating_sub(one.blocks() << 9) / 4;
        assert!(
            !is_sparse || there.blocks() << 9 <= (one.blocks() << 9) + slack,
            "{context}: {}: {} blocks, not {}",
            path.display(),
            there.blocks(),
            one.blocks()
        );
    }
    assert_eq!(from.len(), copy.len(), "{context}: {:?}", copy.keys());
    let verify = format!("integrity verify {to} {to}/{MANIFEST}");
    let out = t.bc_line(&verify).go();
    assert_eq!(out.status.code(), Some(0), "{context}: {out}");
    let left: Vec<_> = litter(t).into_iter().chain(litter_below(&target)).collect();
    assert_eq!(left, Vec::<PathBuf>::new(), "{context}");
}

/// Whether a run came to its end but for what it had to say: its journal is gone.
pub fn is_over(t: &TestTree, to: &str) -> bool {
    let is_journal = |path: &PathBuf| path.extension().is_some_and(|end| end == "journal");
    !litter(t).iter().any(is_journal) && t.exists(Path::new(to).join(MANIFEST))
}
