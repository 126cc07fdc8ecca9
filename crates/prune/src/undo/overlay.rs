//! Names as they would be by then: a dry run of undo changes nothing, so it records here what the
//! run would rename, remove and make. In a real run nothing is recorded, and each name is its own.

use std::collections::HashMap;

use bc_digest::Digest;
use bc_fs::dirfd;
use bc_fs::meta;
use bc_fs::path::split;
use bc_walk::{FileKind, Identity};

use super::Original;

/// File that a dry run would give names.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub(super) enum NamedLater {
    There(Identity),
    /// It would be made, and get the other names of this original.
    New(Original),
    /// It would be made for one name: the others cannot be linked to that.
    Alone,
}

/// What a dry run would have changed by then.
#[derive(Default)]
pub(super) struct Overlay {
    /// Files that would be restored, with the content: they may be the kept files of steps before.
    contents: HashMap<Vec<u8>, Option<Digest>>,
    /// Names that would lead elsewhere: with those that now lead there, or `None` if they would lead
    /// to nothing.
    stand_ins: HashMap<Vec<u8>, Option<Vec<u8>>>,
    /// Names that would lead to files that are still to be made.
    made: HashMap<Vec<u8>, NamedLater>,
    /// The first names of those files.
    first: HashMap<Original, Vec<u8>>,
    /// Number of names that a file would have more, or less, than now.
    more: HashMap<NamedLater, i64>,
}

impl Overlay {
    /// Returns the name that now leads to what `path` would lead to by then; `None` if that is
    /// nothing.
    pub(super) fn now<'p>(&'p self, path: &'p [u8]) -> Option<&'p [u8]> {
        match self.stand_ins.get(path) {
            Some(now) => now.as_deref(),
            None => Some(path),
        }
    }

    /// Returns true if what the name would lead to is to be seen under another one.
    pub(super) fn stands_elsewhere(&self, path: &[u8]) -> bool {
        matches!(self.stand_ins.get(path), Some(Some(_)))
    }

    /// Returns true if the name would lead to a file that is still to be made.
    pub(super) fn is_made(&self, path: &[u8]) -> bool {
        self.made.contains_key(path)
    }

    /// Returns the first name of a file that would be made for this original and its other names.
    pub(super) fn first(&self, original: &Original) -> Option<&Vec<u8>> {
        self.first.get(original)
    }

    /// Returns the content of the file that would be restored under this name.
    pub(super) fn content(&self, path: &[u8]) -> Option<&Option<Digest>> {
        self.contents.get(path)
    }

    pub(super) fn restores(&mut self, path: &[u8], content: Option<Digest>) {
        self.contents.insert(path.to_vec(), content);
    }

    /// Returns the number of names that a file has by then, which has so many now.
    pub(super) fn names_by_then(&self, file: NamedLater, now: u64) -> u64 {
        let more = self.more.get(&file).copied().unwrap_or(0);
        now.saturating_add_signed(more)
    }

    /// Records that what `from` leads to would have the name `path` as well.
    pub(super) fn lead(&mut self, path: &[u8], from: &[u8]) {
        let file = self.leads(from);
        let now = self.now(from).map(<[u8]>::to_vec);
        self.lose(path);
        match file {
            Some(file @ (NamedLater::New(_) | NamedLater::Alone)) => self.add_made(path, file),
            Some(NamedLater::There(_)) | None => drop(self.stand_ins.insert(path.to_vec(), now)),
        }
        self.count(file, 1);
    }

    /// Records that a name would go.
    pub(super) fn go(&mut self, path: &[u8]) {
        self.lose(path);
        self.contents.remove(path);
        self.stand_ins.insert(path.to_vec(), None);
    }

    /// Records that a file would be made under this name.
    pub(super) fn make(&mut self, path: &[u8], file: NamedLater) {
        self.lose(path);
        self.add_made(path, file);
        self.count(Some(file), 1);
    }

    fn add_made(&mut self, path: &[u8], file: NamedLater) {
        if self.stands_elsewhere(path) {
            self.stand_ins.remove(path);
        }
        if let NamedLater::New(original) = file {
            self.first.entry(original).or_insert_with(|| path.to_vec());
        }
        self.made.insert(path.to_vec(), file);
    }

    /// Takes the name from the file that it would lead to.
    fn lose(&mut self, path: &[u8]) {
        let file = self.leads(path);
        self.count(file, -1);
        self.made.remove(path);
    }

    fn count(&mut self, file: Option<NamedLater>, more: i64) {
        if let Some(file) = file {
            *self.more.entry(file).or_default() += more;
        }
    }

    /// Returns the regular file that the name would lead to.
    fn leads(&self, path: &[u8]) -> Option<NamedLater> {
        if let Some(made) = self.made.get(path) {
            return Some(*made);
        }
        let (dir, name) = split(self.now(path)?);
        let below = dir.strip_prefix(b"/").unwrap_or(dir);
        let dir = dirfd::open_below(dirfd::open_root(b"/").ok()?, below).ok()?;
        let stat = meta::stat_at(&dir, &dirfd::name(name).ok()?).ok()?;
        (stat.kind() == FileKind::File).then_some(NamedLater::There(stat.id))
    }
}
