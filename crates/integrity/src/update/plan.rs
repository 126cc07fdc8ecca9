//! The first pass: results of `stat` against the old manifest.

use std::collections::HashSet;

use bc_manifest::integrity::{Entry, Found, Kind, ROOT, UNSEEN_AT};
use bc_manifest::time::parse_rfc3339;
use bc_walk::EntryId;

use super::renames::Renames;
use super::unchanged::{Judge, Unchanged};
use super::{Damaged, EVERYTHING, UpdateOptions};
use crate::change::Class;
use crate::entry_loader::{EntryLoader, LoadedEntry};
use crate::entry_ref::{EntryRef, is_same_mtime};
use crate::error::Error;
use crate::evidence::{Evidence, Weight};
use crate::flow::Flow;
use crate::input::{ManifestFile, Trust};
use crate::join::{Same, Sides, join};
use crate::judge::judge;
use crate::manifest_stream::{ManifestStream, Position};
use crate::options::{TreeOptions, Work};
use crate::passing::Run;
use crate::reread::{Reread, RereadCandidate};
use crate::tree::Tree;
use crate::unmounted::{Knows, MissingMount, Replaced, Unmounted};

/// Results of the first pass.
pub(super) struct FirstPass<'a> {
    tree: &'a Tree,
    /// For each entry, true if it is to be read.
    pub(super) wanted: Vec<bool>,
    pub(super) candidates: Vec<RereadCandidate>,
    /// Number of entries of both sides.
    pub(super) seen: u64,
    /// True if there is anything to write.
    pub(super) differs: bool,
    /// True if there is anything to report, even if there is nothing to write: known damage,
    /// unreadable paths, and mount points that are none.
    pub(super) report: bool,
    /// Mount points with another file system than they had.
    pub(super) replaced: Replaced,
    /// New names of files that lost theirs.
    pub(super) renames: Renames,
    /// Evidence that the tree is the recorded one.
    pub(super) evidence: Evidence,
    /// Number of files that the old manifest has and the tree has not, without those in replaced
    /// mounts.
    lost: u64,
    /// Number of files that both have, edited or not.
    found: u64,
    /// True if the root has the place that was recorded.
    at_home: bool,
    /// True if its inode number is the recorded one as well.
    same_root: bool,
    pub(super) problems: Vec<String>,
    /// Number of files that are as recorded by path, size and mtime alone.
    pub(super) by_name: u64,
    /// Entries of such files to be read if the tree turns out to be no copy, and their weight as
    /// evidence for that alone.
    if_copied: Vec<(EntryId, Option<Weight>)>,
    /// The latest run in the old manifest.
    last_run: u32,
    /// Mounts that the old manifest records.
    knows: Knows,
    judge: Judge<'a>,
}

impl<'a> FirstPass<'a> {
    pub(super) fn new(tree: &'a Tree, elsewhere: bool, at_home: bool) -> FirstPass<'a> {
        FirstPass {
            tree,
            wanted: vec![false; tree.listing.len()],
            candidates: Vec::new(),
            seen: 0,
            differs: false,
            report: false,
            replaced: Replaced::default(),
            renames: Renames::default(),
            evidence: Evidence::default(),
            lost: 0,
            found: 0,
            at_home,
            // A file that is the root is identified by its path.
            same_root: at_home && !tree.is_directory(),
            problems: Vec::new(),
            by_name: 0,
            if_copied: Vec::new(),
            last_run: 0,
            knows: Knows::Nothing,
            judge: Judge::new(tree, elsewhere),
        }
    }

    pub(super) fn read(&mut self, id: EntryId) {
        self.wanted[id.0 as usize] = true;
    }

    /// Returns the number of this run: files that it tries have their next turn after all that it
    /// does not.
    pub(super) fn run(&self) -> u32 {
        self.last_run.saturating_add(1)
    }

    /// True if the old manifest has files of which none is found again, be it by its old name or a
    /// new one. Then the tree is another one, or its content is gone.
    pub(super) fn loses_all(&self) -> bool {
        self.lost + self.replaced.really_lost() > 0 && self.found == 0 && !self.renames.any()
    }

    fn lose(&mut self, path: &[u8]) {
        self.lost += u64::from(!self.replaced.lost(path));
    }

    /// True if the file at a recorded file's path is still that file, as far as `stat` shows. Where
    /// no recorded field can show it, and in the recorded directory itself, its name decides.
    fn is_found(&mut self, old: &EntryRef<'_>, new: &LoadedEntry<'_>) -> bool {
        let Some(id) = new.id.filter(|_| new.view.kind == Kind::File) else {
            return false;
        };
        let same_size = old.size.is_none_or(|size| new.view.size == Some(size));
        let copied = same_size
            && old
                .mtime_ns
                .is_none_or(|time| new.view.mtime_ns == Some(time));
        let mut in_place = || old.ino == new.view.ino && self.judge.has_recorded_numbers(id);
        copied || self.same_root || in_place()
    }

    pub(super) fn make(
        &mut self,
        old: ManifestStream,
        manifest: &ManifestFile,
        options: &TreeOptions,
        what: &UpdateOptions<'_>,
        work: &Work<'_>,
    ) -> Result<(), Error> {
        // Without a time of its own an entry was last verified when the
        // manifest was made.
        let made = old
            .header()
            .created_at
            .as_deref()
            .and_then(parse_rfc3339)
            .unwrap_or(i64::MIN);
        if old.header().mount_root.is_some() {
            self.knows = Knows::All;
        }
        // Each has to be looked at to be read again, or to be distinguished from copies.
        let counts = what.trust == Trust::Checked
            && what.reread == Reread::None
            && !self.judge.is_elsewhere();
        let mut loader = EntryLoader::new(self.tree, options.xattrs, manifest.directory(), work);
        let mut pass = Pass {
            plan: self,
            old,
            unmounted: Unmounted::new(what.root_check),
            made,
            what,
        };
        let same = if counts { Same::Counted } else { Same::Shown };
        join(&mut pass, &mut loader, manifest, same, work)?;
        let Pass {
            mut old,
            mut unmounted,
            ..
        } = pass;
        while let Some(entry) = old.take()? {
            self.gone(entry, &mut unmounted);
        }
        self.settle_copies();
        self.report |= self.replaced.any();
        self.problems = old.problems().to_vec();
        self.differs |= !self.problems.is_empty();
        Ok(())
    }

    /// Adds files to read whose ctime counts after all: the entry that shows that their file system
    /// is the recorded one may have come behind them.
    fn settle_copies(&mut self) {
        let mut read = HashSet::new();
        for (id, weight) in std::mem::take(&mut self.if_copied) {
            if self.judge.is_original(id) {
                self.read(id);
                self.by_name -= 1;
                weight.into_iter().for_each(|of| self.evidence.withdraw(of));
                read.insert(id);
            }
        }
        if !read.is_empty() {
            self.candidates.retain(|one| !read.contains(&one.entry));
        }
    }

    fn count_run(&mut self, entry: &Entry) {
        self.last_run = self.last_run.max(entry.tried_run.unwrap_or(0));
    }

    /// Counts a run as if each entry had been given to [`both`](Plan::both).
    fn same(&mut self, run: &Run) {
        self.last_run = self.last_run.max(run.tried_run);
        self.seen += run.entries();
        self.found += run.files;
        self.evidence.add_files(run.files);
    }

    fn gone(&mut self, entry: &Entry, unmounted: &mut Unmounted) {
        self.count_run(entry);
        let unseen = self.tree.why_unseen(&entry.path).is_some();
        if !unseen {
            if unmounted.see(entry, None) != MissingMount::No {
                self.report = true;
                return;
            }
            if self.tree.is_left_out(&entry.path) {
                return;
            }
            self.renames.removed(entry);
        }
        self.differs = true;
        if let Some(weight) = Weight::of(&EntryRef::from(entry)) {
            self.evidence.add(weight, false);
            if entry.kind == Kind::File && !unseen {
                self.lose(&entry.path);
            }
            self.replaced.leaf(&entry.path, weight, false);
        }
    }

    fn both(&mut self, entry: &Entry, new: &LoadedEntry<'_>, made: i64, what: &UpdateOptions<'_>) {
        self.seen += 1;
        let old = EntryRef::from(entry);
        let same = judge(&old, &new.compared(), EVERYTHING) == Class::Ok;
        // An imported entry has digests only; missing fields are filled in.
        self.differs |= !same || old.mode.is_none() || entry.error.is_some();
        self.differs |= entry.extra.contains_key(UNSEEN_AT);
        // Earlier versions did not record it.
        self.differs |= entry.mount.as_deref() != new.mount;
        if let Some(id) = new.id {
            self.judge.note_same_ctime(&old, &new.view, id);
        }
        let mount = new.id.and_then(|id| self.tree.any_mount(id));
        self.replaced.see(entry, new, mount, self.knows);
        // Where numbers move, another one proves nothing.
        let renamed = is_another(&old, &new.view)
            && new.id.is_none_or(|id| self.judge.has_stable_numbers(id));
        // One name more, which may be one that is not recorded yet.
        let linked = old.ino == new.view.ino && old.nlink < new.view.nlink;
        // Where a good copy is in place of what was damaged, that may be beside it.
        let repaired = entry.found == Some(Found::Damaged)
            && is_same_but_for_number(&old, &new.view)
            && new.id.is_none_or(|id| self.judge.has_stable_numbers(id));
        if renamed || linked || repaired {
            self.renames.removed(entry);
        }
        if let (Some(id), Kind::File) = (new.id, new.view.kind) {
            if renamed {
                self.renames.added(id, &new.view);
            }
            if is_same_but_for_number(&old, &new.view) && self.judge.has_recorded_numbers(id) {
                self.renames.swapped(entry, id, &new.view);
            }
            if old.kind != Kind::File {
                // Where a directory was, or a pipe, there is no digest to keep.
                self.read(id);
            }
        }
        if entry.path == ROOT {
            self.same_root = self.at_home && old.ino == new.view.ino;
        }
        let Some(weight) = Weight::of(&old) else {
            return;
        };
        if entry.kind == Kind::File {
            match self.is_found(&old, new) {
                true => self.found += 1,
                // An entry that cannot be looked at is kept.
                false if new.view.error.is_none() => self.lose(&entry.path),
                false => {}
            }
        }
        let (Some(id), Kind::File) = (new.id, new.view.kind) else {
            let matches = same || has_same_target(&old, &new.view);
            self.evidence.add(weight, matches);
            self.replaced.leaf(&entry.path, weight, matches);
            return;
        };
        let unchanged = self
            .judge
            .file(&old, &new.view, id, entry.verified_at.unwrap_or(made));
        let by_name = matches!(unchanged, Unchanged::ByName | Unchanged::IfCopied);
        let matches = same || by_name;
        self.evidence.add(weight, matches);
        // A copy that kept the times is at home wherever it is mounted.
        let copied =
            old.size.is_some() && old.size == new.view.size && is_same_mtime(&old, &new.view);
        self.replaced.leaf(&entry.path, weight, matches || copied);
        let accepts = what.damaged == Damaged::Accept && entry.found == Some(Found::Damaged);
        // A name alone does not prove that this is the file that was found wrong.
        let doubted = by_name && entry.found.is_some();
        if unchanged == Unchanged::No || accepts || doubted {
            self.read(id);
            self.differs = true;
            return;
        }
        self.by_name += u64::from(by_name);
        self.differs |= by_name;
        if unchanged == Unchanged::IfCopied {
            self.if_copied.push((id, (!same).then_some(weight)));
        }
        self.report |= entry.found.is_some();
        if what.reread != Reread::None {
            if self.candidates.is_empty() {
                // Grown step by step, it would be there twice for a moment. Pages that turn out not
                // to be needed are never touched.
                self.candidates.reserve_exact(self.tree.listing.len());
            }
            self.candidates.push(RereadCandidate {
                run: entry.tried_run.unwrap_or(0),
                last: last_tried(entry, made, what.now),
                entry: id,
            });
        }
    }
}

/// The first pass over both sides.
struct Pass<'p, 'a> {
    plan: &'p mut FirstPass<'a>,
    old: ManifestStream,
    unmounted: Unmounted,
    /// Time at which the manifest was made.
    made: i64,
    what: &'p UpdateOptions<'p>,
}

impl Sides for Pass<'_, '_> {
    fn old(&mut self) -> &mut ManifestStream {
        &mut self.old
    }

    fn before(&mut self, path: &[u8]) -> Result<Flow, Error> {
        while let Some(entry) = self.old.take_before(path)? {
            self.plan.gone(entry, &mut self.unmounted);
        }
        Ok(Flow::Continue)
    }

    fn same(&mut self, run: &Run) -> bool {
        let tells = self.unmounted.any() || !self.plan.replaced.is_empty();
        if !tells {
            self.plan.same(run);
        }
        !tells
    }

    fn present(&mut self, new: &LoadedEntry<'_>) -> Result<Flow, Error> {
        let (plan, unmounted) = (&mut *self.plan, &mut self.unmounted);
        let entry = loop {
            match self.old.take_up_to(new.path)? {
                Some((Position::Before, entry)) => plan.gone(entry, unmounted),
                Some((Position::At, entry)) => break Some(entry),
                None => break None,
            }
        };
        match entry {
            Some(entry) => {
                plan.count_run(entry);
                match unmounted.see(entry, Some(new)) {
                    MissingMount::No => plan.both(entry, new, self.made, self.what),
                    MissingMount::Here | MissingMount::Below | MissingMount::Nowhere => {
                        plan.seen += 1;
                        plan.report = true;
                    }
                }
            }
            None if unmounted.covers(new.path) => plan.report = true,
            None => {
                plan.differs = true;
                if let (Some(id), Kind::File) = (new.id, new.view.kind) {
                    plan.read(id);
                    // Where numbers move, an old one may have come to another file.
                    if plan.judge.has_stable_numbers(id) {
                        plan.renames.added(id, &new.view);
                    }
                }
            }
        }
        Ok(Flow::Continue)
    }
}

/// Returns the time at which an entry's content was last tried, with any result. A time in the
/// future does not count, unless there is no other.
fn last_tried(entry: &Entry, made: i64, now: i64) -> i64 {
    let verified = entry.verified_at.unwrap_or(made);
    let times = [Some(verified), entry.tried_at];
    let over = times.into_iter().flatten().filter(|time| *time <= now);
    over.max().unwrap_or(verified)
}

/// True if another file has the name now, with other content as well: no restored copy of what was
/// recorded.
fn is_another(old: &EntryRef<'_>, new: &EntryRef<'_>) -> bool {
    let is_copy = old.digest.is_some() && is_untouched(old, new);
    old.ino.is_some() && old.ino != new.ino && !is_copy
}

/// True for a restored copy, or another file of the same size and time that has the name now.
fn is_same_but_for_number(old: &EntryRef<'_>, new: &EntryRef<'_>) -> bool {
    old.ino.is_some() && old.ino != new.ino && is_untouched(old, new)
}

fn is_untouched(old: &EntryRef<'_>, new: &EntryRef<'_>) -> bool {
    old.kind == new.kind && old.size == new.size && is_same_mtime(old, new)
}

/// True for links of a copy: all but their targets is new.
fn has_same_target(old: &EntryRef<'_>, new: &EntryRef<'_>) -> bool {
    old.kind == new.kind && old.target.is_some() && old.target == new.target
}
