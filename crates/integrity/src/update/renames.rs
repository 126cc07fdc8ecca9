//! Files that are there under a new name: same inode, size and mtime as an entry whose path is
//! gone. What their content should be is what that entry says.

use std::collections::BTreeMap;

use bc_manifest::Digest;
use bc_manifest::integrity::{Entry, Kind};
use bc_walk::EntryId;

use crate::error::Error;
use crate::old_side::OldSide;
use crate::view::View;

/// Inode, size, mtime.
type Key = (u64, u64, i64);

/// What an entry that is gone said of its content.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Was {
    pub(super) digest: Digest,
    pub(super) verified_at: Option<i64>,
}

/// Collected in the first pass: 40 bytes for each file that only one side has, and what the
/// entry said of those that both have.
#[derive(Default)]
pub(super) struct Renames {
    added: Vec<(Key, EntryId)>,
    removed: Vec<Key>,
    was: BTreeMap<Key, Vec<Was>>,
}

/// Empty files have nothing to be damaged.
fn key(view: &View<'_>) -> Option<Key> {
    let size = view.size.filter(|size| *size > 0)?;
    (view.kind == Kind::File).then_some((view.ino?, size, view.mtime_ns?))
}

impl Renames {
    /// A file that the old manifest does not have.
    pub(super) fn added(&mut self, id: EntryId, view: &View<'_>) {
        self.added.extend(key(view).map(|key| (key, id)));
    }

    /// An entry that the tree does not have.
    pub(super) fn removed(&mut self, entry: &Entry) {
        if entry.digest.is_some() {
            self.removed.extend(key(&View::from(entry)));
        }
    }

    /// Pairs them, and asks the old manifest, given once more, for what it said.
    pub(super) fn settle(
        &mut self,
        again: impl FnOnce() -> Result<OldSide, Error>,
    ) -> Result<(), Error> {
        let mut removed = std::mem::take(&mut self.removed);
        removed.sort_unstable();
        self.added
            .retain(|(key, _)| removed.binary_search(key).is_ok());
        self.added.sort_unstable_by_key(|(_, id)| *id);
        if self.added.is_empty() {
            return Ok(());
        }
        self.was = self
            .added
            .iter()
            .map(|(key, _)| (*key, Vec::new()))
            .collect();
        let mut old = again()?;
        while let Some(entry) = old.take()? {
            let Some(digest) = entry.digest else { continue };
            let known = key(&View::from(entry)).and_then(|key| self.was.get_mut(&key));
            if let Some(known) = known
                && known.iter().all(|was| was.digest != digest)
            {
                known.push(Was {
                    digest,
                    verified_at: entry.verified_at,
                });
            }
        }
        Ok(())
    }

    /// What a new file's content should be: any of these.
    pub(super) fn was(&self, id: EntryId) -> Option<&[Was]> {
        let at = self.added.binary_search_by_key(&id, |(_, id)| *id).ok()?;
        self.was.get(&self.added[at].0).map(Vec::as_slice)
    }
}
