//! Outcomes of the entries, for the manifest and for the counts; and parts of the sources that could
//! not be read when they were walked: directories that may contain more than is known, and paths of
//! which only the existence is known.

use std::os::unix::ffi::OsStrExt;
use std::sync::{Mutex, MutexGuard};

use bc_digest::Digest;
use bc_manifest::Failure;
use bc_manifest::integrity::{Meta, ROOT, path_order};
use bc_walk::{EntryId, FileKind, Listing};

use crate::lock;
use crate::sources::{Root, RootItem, SourceContent, SourceTree, shown_below};

/// Outcome of an entry.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum EntryState {
    /// Nothing yet.
    #[default]
    Left,
    /// It was copied.
    Copied,
    /// An earlier run of the same copy had done it.
    Before,
    /// The existing file was left.
    Skipped,
    /// It failed.
    Failed,
}

/// Evidence beside the digest that the manifest may cite for later copies.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Proof {
    /// Nothing.
    #[default]
    None,
    /// The earlier manifest's: the two ends are what they were.
    Kept,
    /// New: the file was copied from its source in the state in which that was walked, or compared
    /// with it, and has all its metadata.
    New,
}

#[derive(Clone, Debug, Default)]
struct EntryRow {
    state: EntryState,
    proof: Proof,
    meta: Option<Meta>,
}

/// The rows of all entries.
pub(crate) struct Results(Mutex<Rows>);

#[derive(Default)]
pub(crate) struct Rows {
    rows: Vec<EntryRow>,
    /// Digests by number of the entry, each of `stride` bytes.
    digests: Vec<u8>,
    stride: usize,
    failures: Vec<(RootItem, Failure)>,
}

/// One outcome on its way to the rows.
pub(crate) struct EntryOutcome {
    pub(crate) item: RootItem,
    pub(crate) state: EntryState,
    pub(crate) meta: Option<Meta>,
    pub(crate) digest: Option<Digest>,
    pub(crate) proof: Proof,
}

impl EntryOutcome {
    /// Makes the outcome of an entry of which nothing more is known.
    pub(crate) fn new(item: RootItem, state: EntryState) -> EntryOutcome {
        EntryOutcome {
            item,
            state,
            meta: None,
            digest: None,
            proof: Proof::None,
        }
    }
}

impl Results {
    /// Makes rows for so many entries, with digests of `stride` bytes.
    pub(crate) fn new(entries: u32, stride: usize) -> Results {
        Results(Mutex::new(Rows {
            rows: vec![EntryRow::default(); entries as usize],
            digests: vec![0; entries as usize * stride],
            stride,
            failures: Vec::new(),
        }))
    }

    pub(crate) fn put(&self, outcomes: impl IntoIterator<Item = EntryOutcome>) {
        let mut rows = self.lock();
        for outcome in outcomes {
            rows.put(outcome);
        }
    }

    pub(crate) fn fail(&self, item: RootItem, error: &bc_walk::Error) {
        let mut rows = self.lock();
        rows.rows[item.0 as usize].state = EntryState::Failed;
        rows.failures.push((item, failure(error)));
    }

    pub(crate) fn state(&self, item: RootItem) -> EntryState {
        self.lock().rows[item.0 as usize].state
    }

    pub(crate) fn proof(&self, item: RootItem) -> Proof {
        self.lock().proof(item)
    }

    pub(crate) fn meta(&self, item: RootItem) -> Option<Meta> {
        self.lock().meta(item)
    }

    /// Returns the digest of an entry that was copied, now or before.
    pub(crate) fn digest(&self, item: RootItem) -> Option<Digest> {
        self.lock().digest(item)
    }

    /// Takes all rows, once no worker is left.
    pub(crate) fn take(&self) -> Rows {
        let mut rows = std::mem::take(&mut *self.lock());
        rows.failures.sort_by_key(|(item, _)| *item);
        rows
    }

    fn lock(&self) -> MutexGuard<'_, Rows> {
        lock(&self.0)
    }
}

impl Rows {
    fn put(&mut self, outcome: EntryOutcome) {
        let at = outcome.item.0 as usize;
        self.rows[at] = EntryRow {
            state: outcome.state,
            proof: outcome.proof,
            meta: outcome.meta,
        };
        if let Some(digest) = outcome.digest
            && digest.as_bytes().len() == self.stride
        {
            self.digests[at * self.stride..][..self.stride].copy_from_slice(digest.as_bytes());
        }
    }

    pub(crate) fn state(&self, item: RootItem) -> EntryState {
        self.rows[item.0 as usize].state
    }

    pub(crate) fn proof(&self, item: RootItem) -> Proof {
        self.rows[item.0 as usize].proof
    }

    /// True if more is proven of any entry than an earlier manifest says.
    pub(crate) fn has_new_proofs(&self) -> bool {
        self.rows.iter().any(|row| row.proof == Proof::New)
    }

    pub(crate) fn meta(&self, item: RootItem) -> Option<Meta> {
        self.rows[item.0 as usize].meta
    }

    /// Returns the digest of an entry; `None` where none was taken: nothing hashes to zeros.
    pub(crate) fn digest(&self, item: RootItem) -> Option<Digest> {
        let bytes = &self.digests[item.0 as usize * self.stride..][..self.stride];
        let is_set = bytes.iter().any(|byte| *byte != 0);
        is_set.then(|| Digest::from_slice(bytes)).flatten()
    }

    /// Adds the failures of entries that are there and are not known in full; their other records
    /// stay. In order of entries, as other failures.
    pub(crate) fn add_unread(&mut self, unread: &[(RootItem, Failure)]) {
        for (item, failure) in unread {
            let row = &mut self.rows[item.0 as usize];
            let at = self.failures.binary_search_by_key(item, |(item, _)| *item);
            if let (false, Err(at)) = (row.state == EntryState::Left, at) {
                row.state = EntryState::Failed;
                self.failures.insert(at, (*item, failure.clone()));
            }
        }
    }

    /// Returns the failure of an entry.
    pub(crate) fn failure(&self, item: RootItem) -> Option<&Failure> {
        let at = self.failures.binary_search_by_key(&item, |(item, _)| *item);
        at.ok().map(|at| &self.failures[at].1)
    }
}

/// Converts an error to the form that a manifest keeps.
pub(crate) fn failure(error: &bc_walk::Error) -> Failure {
    Failure {
        op: error.op().to_owned(),
        errno: error.errno(),
        message: error.message(),
    }
}

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
