//! Paths far longer than the system takes in one call.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, fstat, mkdirat, openat, unlinkat};

use super::*;
use crate::EntryId;

const LEVELS: usize = 3000;
const NAME: &str = "0123456789";

/// A chain of directories with a file at its end, made and removed step by step: neither
/// the standard library nor the shell's tools need be able to.
struct Chain {
    tree: Tree,
}

fn open(from: &OwnedFd, name: &str) -> OwnedFd {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(from, name, flags, Mode::empty()).unwrap()
}

impl Chain {
    fn new() -> Chain {
        let chain = Chain { tree: Tree::new() };
        let mut at = chain.root();
        for _ in 0..LEVELS {
            mkdirat(&at, NAME, Mode::RWXU).unwrap();
            at = open(&at, NAME);
        }
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
        openat(&at, "file", flags, Mode::RUSR | Mode::WUSR).unwrap();
        chain
    }

    fn root(&self) -> OwnedFd {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(CWD, self.tree.0.path(), flags, Mode::empty()).unwrap()
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        let mut at = self.root();
        let mut depth = 0;
        while let Ok(next) = openat(
            &at,
            NAME,
            OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        ) {
            at = next;
            depth += 1;
        }
        let _ = unlinkat(&at, "file", AtFlags::empty());
        for _ in 0..depth {
            at = open(&at, "..");
            let _ = unlinkat(&at, NAME, AtFlags::REMOVEDIR);
        }
    }
}

#[test]
fn thousands_of_levels() {
    let chain = Chain::new();
    let root = chain.tree.root();
    let listing = in_every_way(
        Given::Roots,
        std::slice::from_ref(&root),
        &WalkOptions::default(),
    );
    assert!(
        listing.errors().is_empty(),
        "{:?}",
        listing.errors()[0].message()
    );
    assert_eq!(listing.directories(), LEVELS as u64 + 1);
    let entry = listing.ids().next().unwrap();
    let expected = [
        &root[..],
        b"/",
        &format!("{NAME}/").repeat(LEVELS).into_bytes(),
        b"file",
    ];
    assert_eq!(listing.path(entry), expected.concat());
    let fd = listing.open_dir(listing.dir(entry)).unwrap();
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = openat(&fd, listing.name(entry), flags, Mode::empty()).unwrap();
    assert_eq!(fstat(file).unwrap().st_ino, listing.inode_hint(entry));

    // The same file named as a root, and its directory as well.
    let path = listing.path(entry);
    let named = in_every_way(
        Given::Exactly,
        std::slice::from_ref(&path),
        &WalkOptions::default(),
    );
    assert_eq!(named.len(), 1);
    assert_eq!(named.path(EntryId(0)), path);
    named.open_dir(named.dir(EntryId(0))).unwrap();
    let directory = path[..path.len() - b"/file".len()].to_vec();
    let inner = in_every_way(Given::Roots, &[directory], &WalkOptions::default());
    assert_eq!(inner.path(EntryId(0)), path);
}
