//! Parts of the sources that could not be read when they were walked: directories that may contain
//! more than is known, and paths of which only the existence is known.

use std::os::unix::ffi::OsStrExt;

use bc_manifest::Failure;
use bc_manifest::integrity::{ROOT, path_order};
use bc_walk::{EntryId, FileKind, Listing};

use crate::job::shown_below;
use crate::results::failure;
use crate::tree::{Root, RootItem, SourceContent, SourceTree};

/// Parts of the sources that could not be read.
#[derive(Default)]
pub(crate) struct Unread {
    /// Entries, directories as a rule, with the reasons; in order.
    pub(crate) entries: Vec<(RootItem, Failure)>,
    /// Paths without an entry.
    pub(crate) unlisted: Vec<Unlisted>,
}

/// A path that the walk met and could not even call `stat` for.
pub(crate) struct Unlisted {
    /// Target, below the top.
    pub(crate) target: Vec<u8>,
    /// Kind, as far as it is known.
    pub(crate) kind: FileKind,
    pub(crate) failure: Failure,
}

impl Unread {
    /// Collects the errors of the walks; each was reported when it happened.
    pub(crate) fn find(tree: &SourceTree) -> Unread {
        let mut unread = Unread::default();
        for root in &tree.roots {
            if let SourceContent::Listing(listing) = &*root.content {
                unread.look_at(root, listing);
            }
        }
        unread.entries.sort_by_key(|(item, _)| *item);
        // The first reason is kept for each entry.
        unread.entries.dedup_by_key(|(item, _)| *item);
        unread
            .unlisted
            .sort_by(|a, b| path_order(&a.target, &b.target));
        unread.unlisted.dedup_by(|a, b| a.target == b.target);
        unread
    }

    fn look_at(&mut self, root: &Root, listing: &Listing) {
        for error in listing.errors() {
            let relative = relative(error.path(), root.source.path.as_bytes());
            let failure = failure(error);
            match find(listing, relative) {
                Some(EntryId(id)) => self.entries.push((RootItem(root.base + id), failure)),
                None => self.unlisted.push(unlisted(root, relative, failure)),
            }
        }
    }
}

fn unlisted(root: &Root, relative: &[u8], failure: Failure) -> Unlisted {
    let (target, kind) = match relative {
        ROOT => (root.name.clone(), root.source.stat.kind()),
        _ => (shown_below(&root.name, relative), FileKind::File),
    };
    Unlisted {
        target,
        kind,
        failure,
    }
}

/// Returns a printed path relative to the printed root.
fn relative<'a>(path: &'a [u8], root: &[u8]) -> &'a [u8] {
    match path.strip_prefix(root) {
        Some(rest) => match rest.strip_prefix(b"/").unwrap_or(rest) {
            b"" => ROOT,
            rest => rest,
        },
        None => path,
    }
}

/// Finds the entry of a path below the root.
fn find(listing: &Listing, path: &[u8]) -> Option<EntryId> {
    let mut found = Vec::new();
    let (mut low, mut high) = (0, listing.len() as u32);
    while low < high {
        let middle = low + (high - low) / 2;
        found.clear();
        listing.write_relative(EntryId(middle), &mut found);
        match path_order(&found, path) {
            std::cmp::Ordering::Less => low = middle + 1,
            std::cmp::Ordering::Equal => return Some(EntryId(middle)),
            std::cmp::Ordering::Greater => high = middle,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_paths_lead_below_the_root() {
        for (path, root, expected) in [
            ("r", "r", "."),
            ("r/a", "r", "a"),
            ("r/a/b", "r/", "a/b"),
            ("/a", "/", "a"),
            ("./a", ".", "a"),
        ] {
            let found = relative(path.as_bytes(), root.as_bytes());
            assert_eq!(found, expected.as_bytes(), "{path} {root}");
        }
    }
}
