//! Data of a walk in progress: what its workers share, and what each of them finds, grouped by
//! directory.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{self, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError};

use bc_fs::mount::Traits;
use bc_pool::Cancel;

use crate::absent::Declined;
use crate::columns::{AttributeClass, Classes, Columns};
use crate::identity::{DirectoryMap, join};
use crate::ignores::Ignores;
use crate::listing::{PathPrefix, Tag};
use crate::open::{KeptDirs, Opener};
use crate::{DirectorySet, Error, Gap, Identity, Skipped, SkippedPath, WalkOptions};

/// A directory from which a walk begins and within which neither device nor mount changes: a
/// root, a mount point or the target of a followed link.
#[derive(Debug)]
pub(crate) struct WalkRoot {
    pub(crate) prefix: u32,
    /// Path below the prefix, without a closing slash; empty for a root.
    pub(crate) path: Vec<u8>,
    pub(crate) ticket: u32,
    pub(crate) depth: u32,
    pub(crate) id: Identity,
    pub(crate) traits: Traits,
    /// The kernel's path of it, where numbers do not distinguish directories.
    pub(crate) kernel_path: Option<Vec<u8>>,
    pub(crate) ignores: Option<Arc<Ignores>>,
}

impl WalkRoot {
    /// Returns the kernel's path of an entry below, where numbers are ambiguous: no link and no mount
    /// comes between.
    pub(crate) fn kernel_path_to(&self, below: &[&[u8]]) -> Option<Vec<u8>> {
        self.kernel_path.as_ref().map(|path| join(path, below))
    }
}

/// A directory to read.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) walk_root: u32,
    /// The walk root's descriptor; `None`: this is the walk root, not opened yet.
    pub(crate) fd: Option<Arc<OwnedFd>>,
    /// Path below the walk root, without a closing slash; empty for the walk root itself.
    pub(crate) path: Vec<u8>,
    pub(crate) ticket: u32,
    pub(crate) depth: u32,
    /// Inode number, from its parent's entry for it.
    pub(crate) ino: u64,
    pub(crate) ignores: Option<Arc<Ignores>>,
}

/// Names of roots that are files, by the directory they are in.
pub(crate) type Listed = DirectoryMap<HashSet<Vec<u8>>>;

/// Shared state that does not change while workers run.
pub(crate) struct Context<'w> {
    pub(crate) options: &'w WalkOptions,
    pub(crate) cancel: &'w Cancel,
    /// Number of entries that were found, for the caller to watch.
    pub(crate) counted: Option<&'w AtomicU64>,
    pub(crate) opener: &'w Opener,
    pub(crate) kept: &'w KeptDirs,
    pub(crate) prefixes: &'w [PathPrefix],
    pub(crate) walk_roots: &'w [WalkRoot],
    /// All walk roots: a worker that meets one on the way down leaves it to that walk root. Two
    /// walks can only overlap from one's walk root downwards, so nothing else need be remembered.
    pub(crate) walk_root_map: &'w DirectoryMap<()>,
    /// The roots, if there are several and directories are listed: a worker that meets one on the
    /// way does not list it again.
    pub(crate) inner_roots: &'w DirectoryMap<()>,
    pub(crate) listed: &'w Listed,
    /// Inode numbers of directories whose identity matters; all others need no `fstat`.
    pub(crate) watched: &'w HashSet<u64>,
    pub(crate) shared: &'w SharedTree,
}

/// Shared state that grows while workers run.
#[derive(Debug, Default)]
pub(crate) struct SharedTree {
    tickets: AtomicU64,
    classes: Mutex<Classes>,
}

impl SharedTree {
    /// Takes numbers for `count` directories, the first of which is returned.
    ///
    /// # Panics
    ///
    /// Beyond 2^32 directories, which take more memory than this is made for.
    pub(crate) fn take_tickets(&self, count: usize) -> u32 {
        let first = self
            .tickets
            .fetch_add(count as u64, atomic::Ordering::Relaxed);
        assert!(
            first + count as u64 <= u64::from(u32::MAX),
            "more than 4294967295 directories"
        );
        first as u32
    }

    pub(crate) fn tickets(&self) -> usize {
        self.tickets.load(atomic::Ordering::Relaxed) as usize
    }

    /// Returns the number under which columns know a class.
    pub(crate) fn class_number(&self, class: AttributeClass) -> u32 {
        self.classes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .number(class)
    }

    /// Returns all classes, by number.
    pub(crate) fn into_classes(self) -> Vec<AttributeClass> {
        self.classes
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
            .into_all()
    }
}

/// One worker's findings. They are put in path order only when all are known.
#[derive(Debug, Default)]
pub(crate) struct WorkerOutput {
    /// Names, each preceded by its tag and followed by a NUL.
    pub(crate) names: Vec<u8>,
    pub(crate) items: Vec<Item>,
    /// Parallel to `items`, if metadata is asked for.
    pub(crate) columns: Columns,
    pub(crate) dirs: Vec<DirRecord>,
    /// Kernel's paths of those that numbers do not distinguish from others, where links are followed
    /// that could lead there again.
    pub(crate) kernel_paths: HashSet<Vec<u8>>,
    /// Found, but only to be decided on when everything before it is known.
    pub(crate) pending: Vec<Pending>,
    pub(crate) errors: Vec<Error>,
    pub(crate) skipped: Skipped,
    /// The paths of these, if they are asked for.
    pub(crate) skipped_paths: Vec<SkippedPath>,
    /// Paths that were asked for and left out even so.
    pub(crate) declined: Vec<Declined>,
    /// Directories of the part of the tree that is asked for, of which all is known: they were
    /// read, or the options say that they are not to be.
    pub(crate) settled: DirectorySet,
    /// Directories of all parts, if only one is asked for.
    pub(crate) met: DirectorySet,
    /// Gaps by ticket.
    pub(crate) gaps: Vec<(u32, Gap)>,
}

/// Takes the paths from all workers that were asked for and left out.
pub(crate) fn take_declined(outputs: &mut [WorkerOutput]) -> Vec<Declined> {
    let all = outputs.iter_mut();
    all.flat_map(|output| output.declined.drain(..)).collect()
}

/// An entry, or the place where the contents of a subdirectory belong.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    /// Offset of the tag from the directory's first name.
    pub(crate) name: u32,
    /// Index among the directory's children; [`NO_CHILD`] for an entry.
    pub(crate) child: u32,
    pub(crate) ino: u64,
}

pub(crate) const NO_CHILD: u32 = u32::MAX;

/// A directory that has been read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DirRecord {
    /// The number under which its parent knows it.
    pub(crate) ticket: u32,
    /// Ticket of its first child; the others follow.
    pub(crate) first_child: u32,
    /// Number of its walk root, which gives the device.
    pub(crate) walk_root: u32,
    pub(crate) ino: u64,
    /// Its items, in the output.
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Its first name's tag, in the output.
    pub(crate) names: u64,
}

/// A directory behind a mount point or a link: whether it has been visited under another name can
/// only be decided once everything else is known, or it would depend on the timing.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) prefix: u32,
    /// Path below the prefix.
    pub(crate) path: Vec<u8>,
    pub(crate) ticket: u32,
    pub(crate) depth: u32,
    pub(crate) ignores: Option<Arc<Ignores>>,
}

/// An entry of the directory being read. Its name is in the output already.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundEntry {
    /// The first eight bytes of the name (with its slash, if this is where contents belong)
    /// as a number: most comparisons end here.
    key: u64,
    pub(crate) ino: u64,
    /// Position of the tag in the output's names, less that of the directory's first.
    pub(crate) name: u32,
    /// Number of entries found in the directory before it, which is its row of metadata, times
    /// four; plus its role.
    nth_and_role: u32,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Role {
    /// An entry to list.
    Entry,
    /// A subdirectory to walk.
    Descend,
    /// A link to a directory, or a directory that is known to be a mount point.
    Defer,
}

impl FoundEntry {
    /// Makes an entry; `nth` is below [`MOST`].
    pub(crate) fn new(name: &[u8], offset: u32, ino: u64, role: Role, nth: usize) -> FoundEntry {
        let mut head = [0; 8];
        let len = name.len().min(8);
        head[..len].copy_from_slice(&name[..len]);
        if role != Role::Entry && len < 8 {
            head[len] = b'/';
        }
        FoundEntry {
            key: u64::from_be_bytes(head),
            ino,
            name: offset,
            nth_and_role: (nth as u32) << 2 | role as u32,
        }
    }

    pub(crate) fn nth(&self) -> u32 {
        self.nth_and_role >> 2
    }

    pub(crate) fn role(&self) -> Role {
        match self.nth_and_role & 3 {
            0 => Role::Entry,
            1 => Role::Descend,
            _ => Role::Defer,
        }
    }

    /// Returns its name, where `names` begins at the directory's first one.
    pub(crate) fn name_in<'n>(&self, names: &'n [u8]) -> &'n [u8] {
        let name = CStr::from_bytes_until_nul(&names[self.name as usize + 1..]);
        // It was written with its NUL.
        name.unwrap_or_default().to_bytes()
    }
}

/// Greatest number of entries that can be found in one directory.
pub(crate) const MOST: usize = 1 << 30;

/// Sorts into the order in which paths come: contents of a directory sort as `name/`.
/// `names` begins at the directory's first name.
pub(crate) fn sort(found: &mut [FoundEntry], names: &[u8]) {
    found.sort_unstable_by(|a, b| a.key.cmp(&b.key).then_with(|| compare(a, b, names)));
}

/// Compares two entries with the same key. Eight bytes at a time: names of a directory often begin
/// alike.
fn compare(a: &FoundEntry, b: &FoundEntry, names: &[u8]) -> Ordering {
    // As many bytes of both are known to be the same, unless the last is a slash of ours.
    let known = match a.key as u8 {
        0 | b'/' => 0,
        _ => 8,
    };
    let (left, right) = (a.name as usize + 1, b.name as usize + 1);
    let mut at = known;
    loop {
        let (x, y) = (word(names, left + at), word(names, right + at));
        let differs = x ^ y;
        // The first byte that differs; 8 if none does.
        let nth = differs.leading_zeros() / 8;
        let before = x | u64::MAX.checked_shr(8 * nth).unwrap_or(0);
        if has_nul(before) {
            // The names are the same.
            return (a.role() != Role::Entry).cmp(&(b.role() != Role::Entry));
        }
        if differs != 0 {
            let byte = |word: u64, found: &FoundEntry| match (word >> (56 - 8 * nth)) as u8 {
                0 if found.role() != Role::Entry => b'/',
                byte => byte,
            };
            return byte(x, a).cmp(&byte(y, b));
        }
        at += 8;
    }
}

/// Returns eight bytes of the names from `at` on, with zeros behind the last.
fn word(names: &[u8], at: usize) -> u64 {
    match names[at..].first_chunk() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => {
            let mut bytes = [0; 8];
            let rest = &names[at..];
            bytes[..rest.len()].copy_from_slice(rest);
            u64::from_be_bytes(bytes)
        }
    }
}

/// True if any byte is 0 (Hacker's Delight, 6-1).
fn has_nul(word: u64) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    word.wrapping_sub(ONES) & !word & (ONES << 7) != 0
}

impl WorkerOutput {
    /// Stores a name with its tag and returns the tag's position.
    pub(crate) fn push_name(&mut self, tag: Tag, name: &[u8]) -> usize {
        let at = self.names.len();
        self.names.push(tag.0);
        self.names.extend_from_slice(name);
        self.names.push(0);
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn order_is_that_of_the_paths(
            names in prop::collection::hash_set(
                (
                    prop::sample::select(&["", "a", "aaaaaaa", "aaaaaaaa", "aaaaaaaa.aaaaaa"][..]),
                    prop::collection::vec(prop::sample::select(&b"ab.-/0\xff\x01"[..]), 1..12),
                )
                    .prop_map(|(start, rest)| {
                        let bytes = start.bytes().chain(rest);
                        bytes.map(|b| if b == b'/' { b'.' } else { b }).collect::<Vec<u8>>()
                    }),
                0..40,
            ),
            roles in prop::collection::vec(0..3, 40),
        ) {
            let mut output = WorkerOutput::default();
            let mut found = Vec::new();
            let mut expected = Vec::new();
            for (name, role) in names.iter().zip(roles) {
                let offset = output.push_name(Tag(0), name) as u32;
                if role != 1 {
                    found.push(FoundEntry::new(name, offset, 0, Role::Entry, found.len()));
                    expected.push(name.clone());
                }
                if role != 0 {
                    found.push(FoundEntry::new(name, offset, 0, Role::Descend, found.len()));
                    expected.push([name, &b"/"[..]].concat());
                }
            }
            sort(&mut found, &output.names);
            expected.sort();
            let sorted: Vec<Vec<u8>> = found
                .iter()
                .map(|found| {
                    let mut name = found.name_in(&output.names).to_vec();
                    if found.role() == Role::Descend {
                        name.push(b'/');
                    }
                    name
                })
                .collect();
            prop_assert_eq!(sorted, expected);
        }
    }
}
