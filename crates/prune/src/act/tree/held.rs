//! Directories and links, held open and proven to be those that a search found.

use std::collections::HashMap;
use std::ffi::CString;
use std::os::fd::OwnedFd;

use bc_find::groups::FileRef;
use bc_find::groups::TreeCopy;
use bc_fs::dirfd;
use bc_walk::FileKind;
use rustix::fs::Dir;

use crate::check::dir;
use crate::check::open_file::OpenFile;
use crate::skip::Skip;

/// Opens a directory that can be listed; no link leads to it, and it is the one that was found.
pub(super) fn open_dir(dir: &FileRef) -> Result<OpenFile, Skip> {
    let (parent, name) = dir::open_parent(dir)?;
    let opened = dirfd::open_listed(&parent, &name)?;
    let held = OpenFile::link(opened, &parent, &name, &dir.path)?;
    match held.stat.id == dir.id && held.stat.kind() == FileKind::Dir {
        true => Ok(held),
        false => Err(Skip::Changed),
    }
}

/// Opens a symbolic link itself, if it is the one that was found, and gives its text.
pub(super) fn open_link(link: &FileRef) -> Result<(OpenFile, Vec<u8>), Skip> {
    let (parent, name) = dir::open_parent(link)?;
    let opened = dirfd::open_link(&parent, &name)?;
    let held = OpenFile::link(opened, &parent, &name, &link.path)?;
    if held.stat.id != link.id || held.stat.kind() != FileKind::Symlink {
        return Err(Skip::Changed);
    }
    let text = dirfd::link_text(&held.file)?;
    Ok((held, text))
}

/// The names in each directory of a copy, by which of its entries that is.
pub(super) type HeldNames<'c> = HashMap<Option<u32>, Vec<&'c [u8]>>;

/// Returns the names that the search found in the copy.
pub(super) fn expected(copy: &TreeCopy) -> HeldNames<'_> {
    let mut names = HeldNames::new();
    for entry in &copy.entries {
        names.entry(entry.parent).or_default().push(&entry.name);
    }
    for found in names.values_mut() {
        found.sort_unstable();
    }
    names
}

/// Proves that a directory holds these names, in order, and no others.
pub(super) fn check_names(dir: &OpenFile, expected: &[&[u8]]) -> Result<(), Skip> {
    let mut found = list(&dir.file)?;
    found.sort_unstable();
    let names = found.iter().map(|name| name.as_bytes());
    let more = names
        .clone()
        .find(|name| expected.binary_search(name).is_err());
    if let Some(more) = more {
        return Err(Skip::HasMore([&dir.path, b"/".as_slice(), more].concat()));
    }
    match found.len() == expected.len() {
        true => Ok(()),
        false => Err(Skip::Changed),
    }
}

/// The names in a directory.
fn list(dir: &OwnedFd) -> Result<Vec<CString>, Skip> {
    let failed = |errno: rustix::io::Errno| Skip::System {
        op: "read directory",
        errno: errno.raw_os_error(),
    };
    let listing = Dir::read_from(dirfd::relist(dir)?).map_err(failed)?;
    let mut names = Vec::new();
    for entry in listing {
        let name = entry.map_err(failed)?.file_name().to_owned();
        if !matches!(name.to_bytes(), b"." | b"..") {
            names.push(name);
        }
    }
    Ok(names)
}
