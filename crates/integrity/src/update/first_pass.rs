//! The first pass: results of `stat` against the old manifest.

use std::collections::HashSet;
use std::sync::Arc;

use bc_manifest::integrity::{ContentFault, Entry, Kind, ROOT, UNSEEN_AT};
use bc_manifest::time::parse_rfc3339;
use bc_walk::EntryId;
use bc_walk::job::Error;

use super::renames::Renames;
use super::{Damaged, EVERYTHING, UpdateOptions};
use crate::absence::{Absence, Here};
use crate::absence::{Knows, Replaced, Unmounted};
use crate::change::Class;
use crate::entry_ref::EntryRef;
use crate::input::passing::LineRun;
use crate::input::stream::ManifestStream;
use crate::input::{ManifestFile, Trust};
use crate::judge::{is_untouched, judge};
use crate::options::{RootCheck, Work, XattrPolicy};
use crate::place;
use crate::place::{Evidence, Weight};
use crate::reliability::{Judge, Unchanged};
use crate::sides::{Pair, Receiver, Sides};
use crate::tree::Tree;
use crate::tree::loader::{EntryLoader, LoadedEntry};
use crate::update::reread::{Reread, RereadCandidate};
use std::ops::ControlFlow;

/// Unchanged files that are read because of what the manifest notes of them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ReadNoted {
    /// None.
    No,
    /// Those whose content was found damaged.
    Damaged,
    /// Those, and those that could not be read.
    All,
}

/// Options of the first pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstPassOptions {
    pub(crate) noted: ReadNoted,
    /// True if the other unchanged files are collected, for some of them to be read.
    pub(crate) candidates: bool,
    pub(crate) trust: Trust,
    pub(crate) root_check: RootCheck,
    /// The time now, in nanoseconds since 1970.
    pub(crate) now: i64,
}

impl From<&UpdateOptions<'_>> for FirstPassOptions {
    fn from(what: &UpdateOptions<'_>) -> FirstPassOptions {
        FirstPassOptions {
            noted: match what.damaged {
                Damaged::Keep => ReadNoted::No,
                Damaged::Accept => ReadNoted::Damaged,
            },
            candidates: what.reread != Reread::None,
            trust: what.trust,
            root_check: what.root_check,
            now: what.now,
        }
    }
}

/// Results of the first pass.
#[derive(Default)]
pub(crate) struct UpdatePlan {
    /// For each entry, true if it is to be read.
    pub(crate) wanted: Vec<bool>,
    pub(crate) candidates: Vec<RereadCandidate>,
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
    pub(super) files: RecordedFiles,
    pub(super) problems: Vec<String>,
    /// Number of files that are as recorded by path, size and mtime alone.
    pub(super) by_name: u64,
    /// The latest run in the old manifest.
    last_run: u32,
}

/// Files of the old manifest, by whether the tree has them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecordedFiles {
    /// Number of those that the tree has not, without those in replaced mounts.
    lost: u64,
    /// Number of those that both have, edited or not.
    found: u64,
}

impl UpdatePlan {
    pub(crate) fn read(&mut self, id: EntryId) {
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
        let RecordedFiles { lost, found } = self.files;
        lost + self.replaced.really_lost() > 0 && found == 0 && !self.renames.any()
    }

    fn lose(&mut self, path: &[u8]) {
        self.files.lost += u64::from(!self.replaced.lost(path));
    }
}

/// State of the first pass.
struct FirstPass<'a> {
    what: FirstPassOptions,
    tree: &'a Tree,
    /// Time at which the manifest was made: an entry without a time of its own was verified then.
    made: i64,
    /// Mounts that the old manifest records.
    knows: Knows,
    /// True if the root has the place that was recorded.
    at_home: bool,
    /// True if its inode number is the recorded one as well.
    same_root: bool,
    /// Entries of files as recorded by name to be read if the tree turns out to be no copy, and
    /// their weight as evidence for that alone.
    if_copied: Vec<(EntryId, Option<Weight>)>,
    judge: Judge<'a>,
    plan: UpdatePlan,
}

/// Compares the results of `stat` with the old manifest. `elsewhere`: true if the root is on
/// another device than recorded.
pub(crate) fn plan(
    old: ManifestStream,
    manifest: &ManifestFile,
    tree: &Tree,
    elsewhere: bool,
    xattrs: XattrPolicy,
    what: FirstPassOptions,
    work: &Work<'_>,
) -> Result<UpdatePlan, Error> {
    let header = old.header();
    let at_home = place::is_at_home(tree, header, elsewhere);
    let made = header.created_at.as_deref().and_then(parse_rfc3339);
    let mut pass = FirstPass {
        what,
        tree,
        made: made.unwrap_or(i64::MIN),
        knows: match header.mount_root {
            Some(_) => Knows::All,
            None => Knows::Nothing,
        },
        at_home,
        // A file that is the root is identified by its path.
        same_root: at_home && !tree.is_directory(),
        if_copied: Vec::new(),
        judge: Judge::new(tree, elsewhere),
        plan: UpdatePlan {
            wanted: vec![false; tree.listing.len()],
            ..UpdatePlan::default()
        },
    };
    let mut loader = EntryLoader::new(tree, xattrs, manifest.directory(), work);
    let mut sides = Sides::of_tree(old, tree, Unmounted::new(what.root_check));
    // Each has to be looked at to be read again, or to be distinguished from copies.
    let counts = what.trust == Trust::Checked && !what.candidates && !elsewhere;
    let same = match counts {
        true => sides.find_same(&loader, manifest, work)?,
        false => Arc::default(),
    };
    sides.join(&mut loader, manifest, &same, work, &mut pass)?;
    pass.settle_copies();
    let mut plan = pass.plan;
    plan.report |= plan.replaced.any();
    plan.problems = sides.problems().to_vec();
    plan.differs |= !plan.problems.is_empty() || elsewhere;
    Ok(plan)
}

impl FirstPass<'_> {
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

    /// Adds files to read whose ctime counts after all: the entry that shows that their file system
    /// is the recorded one may have come behind them.
    fn settle_copies(&mut self) {
        let mut read = HashSet::new();
        for (id, weight) in std::mem::take(&mut self.if_copied) {
            if self.judge.is_original(id) {
                self.plan.read(id);
                self.plan.by_name -= 1;
                weight
                    .into_iter()
                    .for_each(|of| self.plan.evidence.withdraw(of));
                read.insert(id);
            }
        }
        if !read.is_empty() {
            self.plan
                .candidates
                .retain(|one| !read.contains(&one.entry));
        }
    }

    fn count_run(&mut self, entry: &Entry) {
        self.plan.last_run = self.plan.last_run.max(entry.tried_run.unwrap_or(0));
    }

    fn gone(&mut self, entry: &Entry, why: Absence<'_>) {
        self.count_run(entry);
        let plan = &mut self.plan;
        match why {
            Absence::Removed => plan.renames.removed(entry),
            Absence::Unread(_) => {}
            Absence::LeftOut => return,
            Absence::Unmounted(_, here) => {
                plan.seen += u64::from(here == Here::Other);
                plan.report = true;
                return;
            }
        }
        plan.differs = true;
        if let Some(weight) = Weight::of(&EntryRef::from(entry)) {
            plan.evidence.add(weight, false);
            if entry.kind == Kind::File && matches!(why, Absence::Removed) {
                plan.lose(&entry.path);
            }
            plan.replaced.leaf(&entry.path, weight, false);
        }
    }

    fn added(&mut self, new: &LoadedEntry<'_>, hides: bool) {
        if hides {
            self.plan.report = true;
            return;
        }
        self.plan.differs = true;
        if let (Some(id), Kind::File) = (new.id, new.view.kind) {
            self.plan.read(id);
            // Where numbers move, an old one may have come to another file.
            if self.judge.has_stable_numbers(id) {
                self.plan.renames.added(id, &new.view);
            }
        }
    }

    fn both(&mut self, entry: &Entry, old: &EntryRef<'_>, new: &LoadedEntry<'_>) {
        self.count_run(entry);
        self.plan.seen += 1;
        let same = judge(old, &new.compared(), EVERYTHING) == Class::Ok;
        // An imported entry has digests only; missing fields are filled in.
        self.plan.differs |= !same || old.mode.is_none() || entry.error.is_some();
        self.plan.differs |= entry.extra.contains_key(UNSEEN_AT);
        // Earlier versions did not record it.
        self.plan.differs |= entry.mount.as_deref() != new.mount;
        if let Some(id) = new.id {
            self.judge.note_same_ctime(old, &new.view, id);
        }
        let mount = new.id.and_then(|id| self.tree.any_mount(id));
        self.plan.replaced.see(entry, new, mount, self.knows);
        // Where numbers move, another one proves nothing.
        let renamed =
            is_another(old, &new.view) && new.id.is_none_or(|id| self.judge.has_stable_numbers(id));
        // One name more, which may be one that is not recorded yet.
        let linked = old.ino == new.view.ino && old.nlink < new.view.nlink;
        // Where a good copy is in place of what was damaged, that may be beside it.
        let repaired = entry.found == Some(ContentFault::Damaged)
            && is_same_but_for_number(old, &new.view)
            && new.id.is_none_or(|id| self.judge.has_stable_numbers(id));
        if renamed || linked || repaired {
            self.plan.renames.removed(entry);
        }
        if let (Some(id), Kind::File) = (new.id, new.view.kind) {
            if renamed {
                self.plan.renames.added(id, &new.view);
            }
            if is_same_but_for_number(old, &new.view) && self.judge.has_recorded_numbers(id) {
                self.plan.renames.swapped(entry, id, &new.view);
            }
            if old.kind != Kind::File {
                // Where a directory was, or a pipe, there is no digest to keep.
                self.plan.read(id);
            }
        }
        if entry.path == ROOT {
            self.same_root = self.at_home && old.ino == new.view.ino;
        }
        let Some(weight) = Weight::of(old) else {
            return;
        };
        if entry.kind == Kind::File {
            match self.is_found(old, new) {
                true => self.plan.files.found += 1,
                // An entry that cannot be looked at is kept.
                false if new.view.error.is_none() => self.plan.lose(&entry.path),
                false => {}
            }
        }
        let (Some(id), Kind::File) = (new.id, new.view.kind) else {
            let matches = same || has_same_target(old, &new.view);
            self.plan.evidence.add(weight, matches);
            self.plan.replaced.leaf(&entry.path, weight, matches);
            return;
        };
        let unchanged = self
            .judge
            .file(old, &new.view, id, entry.verified_at.unwrap_or(self.made));
        let by_name = matches!(unchanged, Unchanged::ByName | Unchanged::IfCopied);
        let matches = same || by_name;
        self.plan.evidence.add(weight, matches);
        // A copy that kept the times is at home wherever it is mounted.
        let copied = is_untouched(old, &new.view);
        self.plan
            .replaced
            .leaf(&entry.path, weight, matches || copied);
        let reads_noted = match self.what.noted {
            ReadNoted::No => false,
            ReadNoted::Damaged => entry.found == Some(ContentFault::Damaged),
            ReadNoted::All => entry.found.is_some(),
        };
        // A name alone does not prove that this is the file that was found wrong.
        let doubted = by_name && entry.found.is_some();
        if unchanged == Unchanged::No || reads_noted || doubted {
            self.plan.read(id);
            self.plan.differs = true;
            return;
        }
        self.plan.by_name += u64::from(by_name);
        self.plan.differs |= by_name;
        if unchanged == Unchanged::IfCopied {
            self.if_copied.push((id, (!same).then_some(weight)));
        }
        self.plan.report |= entry.found.is_some();
        if self.what.candidates {
            if self.plan.candidates.is_empty() {
                // Grown step by step, it would be there twice for a moment. Pages that turn out not
                // to be needed are never touched.
                self.plan.candidates.reserve_exact(self.tree.listing.len());
            }
            self.plan.candidates.push(RereadCandidate {
                run: entry.tried_run.unwrap_or(0),
                last: last_tried(entry, self.made, self.what.now),
                entry: id,
            });
        }
    }
}

impl Receiver for FirstPass<'_> {
    fn pair(&mut self, pair: Pair<'_>) -> Result<ControlFlow<()>, Error> {
        match pair {
            Pair::Both { entry, old, new } => self.both(entry, &old, new),
            Pair::Gone(entry, why) => self.gone(entry, why),
            Pair::Added { new, hides, .. } => self.added(new, hides),
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Counts a run as if each entry had come by itself.
    fn same(&mut self, run: &LineRun) -> bool {
        let plan = &mut self.plan;
        if !plan.replaced.is_empty() {
            return false;
        }
        plan.last_run = plan.last_run.max(run.tried_run);
        plan.seen += run.entries();
        plan.files.found += run.files;
        plan.evidence.add_files(run.files);
        true
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
    let is_copy = old.digest.is_some() && old.kind == new.kind && is_untouched(old, new);
    old.ino.is_some() && old.ino != new.ino && !is_copy
}

/// True for a restored copy, or another file of the same size and time that has the name now.
fn is_same_but_for_number(old: &EntryRef<'_>, new: &EntryRef<'_>) -> bool {
    old.ino.is_some() && old.ino != new.ino && old.kind == new.kind && is_untouched(old, new)
}

/// True for links of a copy: all but their targets is new.
fn has_same_target(old: &EntryRef<'_>, new: &EntryRef<'_>) -> bool {
    old.kind == new.kind && old.target.is_some() && old.target == new.target
}
