//! Files under a new name: same inode, size and mtime as an entry whose path is gone or has become
//! another file's; the new name may have been another's too. That entry has the content that they
//! should have.

use std::collections::BTreeMap;

use bc_digest::Digest;
use bc_manifest::integrity::{ContentFault, Entry, Kind};
use bc_manifest::time::is_beyond;
use bc_walk::EntryId;
use bc_walk::job::Error;

use crate::compare::moves::{Renamed, rings};
use crate::entry_ref::EntryRef;
use crate::input::stream::ManifestStream;

/// A file that may have another name now.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct RenameKey {
    ino: u64,
    size: u64,
    mtime_ns: i64,
}

/// Content of an entry that is gone.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Was {
    pub(super) digest: Digest,
    pub(super) verified_at: Option<i64>,
    pub(super) ctime_ns: Option<i64>,
    /// Content that was found in its place, if it was.
    pub(super) damaged: Option<Digest>,
    pub(super) found: Option<ContentFault>,
}

impl Was {
    /// Returns the content of an entry that has one.
    pub(super) fn of(entry: &Entry) -> Option<Was> {
        Some(Was {
            digest: entry.digest?,
            verified_at: entry.verified_at,
            ctime_ns: EntryRef::from(entry).ctime_ns,
            damaged: entry.damaged_digest,
            found: entry.found,
        })
    }
}

/// Names collected in the first pass: 40 bytes for each file that only one side has, and the
/// recorded content of those that both have.
#[derive(Default)]
pub(super) struct Renames {
    added: Vec<(RenameKey, EntryId)>,
    removed: Vec<RenameKey>,
    /// Names that have another file of the same size and time now.
    renamed: Vec<Renamed<RenameKey>>,
    /// Entries among them whose file lost another name, in order.
    swapped: Vec<EntryId>,
    was: BTreeMap<RenameKey, Renewed>,
}

/// A file under a new name.
#[derive(Clone, Debug)]
struct Renewed {
    /// One of its new names.
    is: EntryId,
    /// Its contents by the records.
    was: Vec<Was>,
}

/// Returns the key of a file; empty files have nothing to be damaged, and times out of range
/// recognise nothing.
fn key(view: &EntryRef<'_>) -> Option<RenameKey> {
    let size = view.size.filter(|size| *size > 0)?;
    let mtime_ns = view.mtime_ns.filter(|time| !is_beyond(*time))?;
    let ino = view.ino?;
    (view.kind == Kind::File).then_some(RenameKey {
        ino,
        size,
        mtime_ns,
    })
}

/// Returns the names whose file lost another one: to a third file, in a ring or in a row, or to
/// none.
fn moved_here(renamed: Vec<Renamed<RenameKey>>, removed: &[RenameKey]) -> Vec<Renamed<RenameKey>> {
    if renamed.is_empty() {
        return Vec::new();
    }
    let rings = rings(&renamed);
    let in_ring = |one: &Renamed<RenameKey>| rings.binary_search_by_key(&one.name, |r| r.0).is_ok();
    let (mut here, rest): (Vec<_>, Vec<_>) = renamed.into_iter().partition(in_ring);
    let mut by_file: BTreeMap<RenameKey, Vec<Renamed<RenameKey>>> = BTreeMap::new();
    for one in rest {
        by_file.entry(one.is).or_default().push(one);
    }
    let lost = removed.iter().copied();
    let mut lost: Vec<RenameKey> = lost.chain(here.iter().map(|one| one.was)).collect();
    while let Some(key) = lost.pop() {
        for one in by_file.remove(&key).into_iter().flatten() {
            lost.push(one.was);
            here.push(one);
        }
    }
    here
}

impl Renames {
    /// Adds a file that the old manifest does not have, or had another for.
    pub(super) fn added(&mut self, id: EntryId, view: &EntryRef<'_>) {
        self.added.extend(key(view).map(|key| (key, id)));
    }

    /// Adds an entry that the tree does not have, or has another file for.
    pub(super) fn removed(&mut self, entry: &Entry) {
        if entry.digest.is_some() {
            self.removed.extend(key(&EntryRef::from(entry)));
        }
    }

    /// Adds a name that has another file of the same size and time now.
    pub(super) fn swapped(&mut self, entry: &Entry, id: EntryId, view: &EntryRef<'_>) {
        if let (Some(was), Some(is), Some(_)) =
            (key(&EntryRef::from(entry)), key(view), entry.digest)
        {
            let name = u64::from(id.0);
            self.renamed.push(Renamed { was, is, name });
        }
    }

    /// True if this name has a file that had another one, which it has no longer.
    pub(super) fn is_swapped(&self, id: EntryId) -> bool {
        self.swapped.binary_search(&id).is_ok()
    }

    /// Pairs them, and looks up their recorded content in the old manifest, given once more.
    pub(super) fn settle(
        &mut self,
        again: impl FnOnce() -> Result<ManifestStream, Error>,
    ) -> Result<(), Error> {
        let renamed = std::mem::take(&mut self.renamed);
        for one in moved_here(renamed, &self.removed) {
            let id = EntryId(one.name as u32);
            self.swapped.push(id);
            self.removed.push(one.was);
            self.added.push((one.is, id));
        }
        self.swapped.sort_unstable();
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
            .map(|&(key, is)| {
                (
                    key,
                    Renewed {
                        is,
                        was: Vec::new(),
                    },
                )
            })
            .collect();
        let mut old = again()?;
        while let Some(entry) = old.take()? {
            let Some(was) = Was::of(entry) else { continue };
            let known = key(&EntryRef::from(entry)).and_then(|key| self.was.get_mut(&key));
            if let Some(Renewed { was: known, .. }) = known
                && known.iter().all(|one| one.digest != was.digest)
            {
                known.push(was);
            }
        }
        Ok(())
    }

    /// True if any file is recognised under a new name.
    pub(super) fn any(&self) -> bool {
        !self.added.is_empty()
    }

    /// Returns the contents that a new file may have by the records: any of these.
    pub(super) fn was(&self, id: EntryId) -> Option<&[Was]> {
        let at = self.added.binary_search_by_key(&id, |(_, id)| *id).ok()?;
        let known = self.was.get(&self.added[at].0)?;
        Some(known.was.as_slice())
    }

    /// Returns the new name of the file of an entry, where another file has its path.
    pub(super) fn is_at(&self, entry: &Entry) -> Option<EntryId> {
        let known = self.was.get(&key(&EntryRef::from(entry))?)?;
        Some(known.is)
    }
}
