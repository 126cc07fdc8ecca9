//! Takes the paths of both sides in order, gives each its class, and reports in path order. Memory
//! grows with the files that only one side has, by 36 bytes each and 16 more where they are moves,
//! and by 16 for each name that has another file, never with unchanged files.

mod contentless;
pub(crate) mod known_damage;
pub(crate) mod moves;
mod one_change;
pub(crate) mod pending;
mod renamed_dirs;
pub(crate) mod soundness;
mod spill_buffer;
pub(crate) mod summary;

use std::collections::HashSet;
use std::io;
use std::ops::ControlFlow;

use bc_digest::Digest;
use bc_fs::known::{Doubt, Judgement};
use bc_manifest::integrity::{ContentFault, Entry, Kind};
use bc_manifest::time::format_rfc3339;
use pending::{ALL_RECORDED, KNOWN, Settled, with, without_identity};

use crate::absence::why_lost;
use crate::absence::{Absence, Here};
use crate::change::{Change, Class, Ctime, Difference, Value};
use crate::compare::contentless::Contentless;
use crate::compare::known_damage::{KnownDamage, is_second};
use crate::compare::moves::{Candidate, ContentAndTime, Numbers, Renamed, Side};
use crate::compare::spill_buffer::SpillBuffer;
use crate::compare::summary::ComparisonSummary;
use crate::entry_ref::EntryRef;
use crate::fields::{CompareRules, Field};
use crate::judge;
use crate::place::{Evidence, Weight};
use crate::tree::unread::UnreadDir;

/// Changes that are reported, and the end of the comparison.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Detail {
    /// All paths that are not ok.
    #[default]
    Changes,
    /// The ok ones too.
    All,
    /// Only the first path that is not ok; moves are not searched for.
    First,
}

/// Report of directories that were renamed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Renames {
    /// Each entry by itself: files as moved, all else as removed and added.
    #[default]
    Entries,
    /// A directory as one move, with the [number](Change::entries) of entries that moved along and
    /// differ in nothing; the others by themselves.
    Directories,
}

/// Returns the reason of a path that an update records now.
fn readable_now(before: &str) -> String {
    format!("readable now; before: {before}")
}

/// Receives the changes in path order.
pub type Sink<'a> = dyn FnMut(&Change) -> io::Result<()> + 'a;

/// Evidence from the file system of a file of the new side.
pub(crate) trait Site {
    /// Adjusts the evidence of a damaged file's ctimes to its file system.
    fn ctime(&mut self, ctime: Ctime) -> Ctime;
    /// Returns whether inode numbers identify files there.
    fn numbers(&mut self) -> Numbers;
}

/// A manifest, which contains no traits of the file systems that it lists.
pub(crate) struct Offline;

/// Evidence about paths of the new side, once all of them are known.
pub(crate) trait Later {
    /// Adjusts the evidence of the ctimes of a file that was moved and damaged to its present file
    /// system.
    fn ctime(&mut self, path: &[u8], ctime: Ctime) -> Ctime;
    /// Checks that the file at `path` is the one that was recorded with this change time: inode
    /// number, size and mtime already agree.
    fn proof(&mut self, path: &[u8], ctime: Option<i64>) -> Judgement;
}

impl Later for Offline {
    fn ctime(&mut self, _: &[u8], ctime: Ctime) -> Ctime {
        ctime
    }

    fn proof(&mut self, _: &[u8], _: Option<i64>) -> Judgement {
        Judgement::Unproven(Doubt::Birth)
    }
}

impl Site for Offline {
    fn ctime(&mut self, ctime: Ctime) -> Ctime {
        ctime
    }

    fn numbers(&mut self) -> Numbers {
        Numbers::Stable
    }
}

/// The comparison of two sorted sides.
pub(crate) struct Comparison<'a> {
    rules: CompareRules,
    detail: Detail,
    renames: Renames,
    /// True if names that may be part of a renamed directory wait.
    waits: bool,
    sink: &'a mut Sink<'a>,
    /// True if nothing is reported before an entry proves that the sides are of one tree.
    hold: bool,
    /// Evidence for that: files and links with the same content, as far as it was looked at.
    evidence: Evidence,
    buffer: SpillBuffer,
    candidates: Vec<Candidate>,
    /// Files that look damaged and may be others of them under their names.
    swaps: Vec<Renamed<ContentAndTime>>,
    /// New sides of those, where inode numbers identify files.
    taken_over: Vec<Candidate>,
    /// Contents whose names have other files now, with their mtimes.
    lost: Vec<ContentAndTime>,
    /// Entries without content that one side has, where the changes are counted.
    contentless: Contentless,
    /// True if the compared entries become the new record.
    records: bool,
    /// Contents that are recorded as damaged on the old side.
    known: Option<&'a KnownDamage<'a>>,
    settled: Option<Settled>,
    /// Paths of contents that became known to be damaged when all paths had come.
    copies: HashSet<Vec<u8>>,
    summary: ComparisonSummary,
}

/// Judgement of a path of both sides by the content found there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct ContentVerdict {
    pub(crate) class: Class,
    /// True if it is modified, and nothing tells an edit from damage.
    pub(crate) undecided: bool,
}

impl ContentVerdict {
    fn of(class: Class) -> ContentVerdict {
        ContentVerdict {
            class,
            undecided: false,
        }
    }
}

impl<'a> Comparison<'a> {
    pub(crate) fn new(
        rules: CompareRules,
        detail: Detail,
        sink: &'a mut Sink<'a>,
    ) -> Comparison<'a> {
        Comparison {
            rules,
            detail,
            renames: Renames::default(),
            waits: false,
            sink,
            hold: false,
            evidence: Evidence::default(),
            buffer: SpillBuffer::default(),
            candidates: Vec::new(),
            swaps: Vec::new(),
            taken_over: Vec::new(),
            lost: Vec::new(),
            contentless: Contentless::default(),
            records: false,
            known: None,
            settled: None,
            copies: HashSet::new(),
            summary: ComparisonSummary::default(),
        }
    }

    /// Makes the compared entries the new record, so that nothing readable stays unrecorded.
    pub(crate) fn recording(self) -> Comparison<'a> {
        Comparison {
            records: true,
            contentless: Contentless::counted(),
            ..self
        }
    }

    /// Sets the report of renamed directories.
    pub(crate) fn renames(self, renames: Renames) -> Comparison<'a> {
        Comparison { renames, ..self }
    }

    /// Reports contents that are recorded as damaged as such wherever they lie.
    pub(crate) fn knowing(self, known: &'a KnownDamage<'a>) -> Comparison<'a> {
        let known = Some(known);
        Comparison { known, ..self }
    }

    /// Reports nothing before the first file that matches.
    pub(crate) fn hold(&mut self) {
        self.hold = true;
    }

    /// Compares a path of both sides and returns the judgement of its content.
    pub(crate) fn both(
        &mut self,
        path: &[u8],
        old: &EntryRef<'_>,
        new: &EntryRef<'_>,
        mut site: impl Site,
    ) -> io::Result<ContentVerdict> {
        self.summary.old += 1;
        self.summary.new += 1;
        let class = judge::judge(old, new, self.rules);
        self.summary.add(class);
        if let Some(weight) = Weight::of(old) {
            let matches = matches!(class, Class::Ok | Class::Meta);
            self.evidence.add(weight, matches);
        }
        if class == Class::Ok && self.detail != Detail::All {
            return Ok(ContentVerdict::of(class));
        }
        let mut change = Change::new(class, path, new.kind);
        match class {
            Class::Ok => {}
            Class::Unreadable => {
                change.readable_now = new.error.is_none();
                self.summary.readable_now += u64::from(change.readable_now);
                change.recorded_now = change.readable_now && self.records;
                change.reason = Some(match (change.recorded_now, old.error) {
                    (true, Some(error)) => readable_now(&judge::describe(error)),
                    (true, None) => "readable now; no content was recorded".to_owned(),
                    (false, _) => judge::reason(old, new),
                });
                change.fail(path, new.error);
            }
            _ => change.differences = judge::differences(old, new, self.rules),
        }
        if class == Class::Damaged {
            match judge::is_known_damage(old, new) && !judge::is_untouched(old, new) {
                true => change.reason = Some(KNOWN.to_owned()),
                false => change.ctime = Some(site.ctime(judge::ctime_hint(old, new))),
            }
        }
        let undecided = match class {
            Class::Modified => judge::undecided(old, new),
            _ => None,
        };
        if let Some(why) = undecided {
            change.reason = Some(why.to_owned());
            change.unproven = old.unproven;
            self.summary.undecided += 1;
        }
        if let (Class::Replaced, Some(error)) = (class, new.error) {
            change.fail(path, Some(error));
            change.reason = Some(judge::describe(error));
            self.summary.replaced_unread += 1;
        }
        // The caller gets the verdict on the content; the report may have to wait.
        let verdict = match class {
            Class::Modified | Class::Replaced | Class::Unreadable
                if self.is_known(path, new.digest) =>
            {
                ContentVerdict::of(Class::Damaged)
            }
            class => ContentVerdict {
                class,
                undecided: undecided.is_some(),
            },
        };
        if self.detail != Detail::First
            && (self.may_be_swapped(path, class, old, new, &mut site)
                || self.may_have_another_name(&change, old, new)
                || self.may_be_renamed(&change, old, new, site)
                || self.may_be_copied(&change, new))
        {
            self.buffer.push(&with(change, old, new, ALL_RECORDED));
            return Ok(verdict);
        }
        if class == Class::Unreadable && verdict.class == Class::Damaged {
            let change = self.known_damage(with(change, old, new, ALL_RECORDED));
            return self
                .report(without_identity(change, self.rules))
                .map(|()| verdict);
        }
        let change = self.known_damage(change);
        self.report(change).map(|()| verdict)
    }

    /// Counts so many paths of both sides without a difference, `files` of them files. Returns
    /// `false` if they have to come one by one, since each is reported, or any may be the last.
    pub(crate) fn same(&mut self, paths: u64, files: u64) -> bool {
        if self.detail == Detail::All || self.hold && self.detail == Detail::First {
            return false;
        }
        self.summary.old += paths;
        self.summary.new += paths;
        self.summary.add_many(Class::Ok, paths);
        self.evidence.add_files(files);
        true
    }

    /// Takes a path of the old side only.
    pub(crate) fn removed(&mut self, path: &[u8], old: &EntryRef<'_>) -> io::Result<()> {
        self.summary.old += 1;
        let weight = Weight::of(old);
        weight
            .into_iter()
            .for_each(|of| self.evidence.add(of, false));
        // The new side determines whether the number counts.
        self.one_sided(Class::Removed, path, old, None, Offline)
    }

    /// Takes a path of the new side only; `above` is the directory above it that the old side could
    /// not read, if there is one.
    pub(crate) fn added(
        &mut self,
        path: &[u8],
        new: &EntryRef<'_>,
        above: Option<UnreadDir<'_>>,
        site: impl Site,
    ) -> io::Result<()> {
        self.summary.new += 1;
        match above {
            None => self.one_sided(Class::Added, path, new, None, site),
            Some(above) => {
                let reason = match self.records && new.error.is_none() {
                    true => readable_now(&above.reason()),
                    false => format!("not recorded: {}", above.reason()),
                };
                self.one_sided(Class::Unreadable, path, new, Some(reason), site)
            }
        }
    }

    /// Takes a path of one side; one of the new side that is `Unreadable` lies where the old side
    /// could not look.
    fn one_sided(
        &mut self,
        class: Class,
        path: &[u8],
        entry: &EntryRef<'_>,
        reason: Option<String>,
        mut site: impl Site,
    ) -> io::Result<()> {
        let side = match class {
            Class::Removed => Side::Removed,
            _ => Side::Added,
        };
        let mut change = Change::new(class, path, entry.kind);
        change.is_new = side == Side::Added;
        // A failure to read a file that is gone is out of date.
        let unread = entry.error.filter(|_| side == Side::Added);
        change.fail(path, unread);
        change.reason = unread.map(judge::describe).or(reason);
        change.readable_now = class == Class::Unreadable && entry.error.is_none();
        change.recorded_now = change.readable_now && self.records;
        self.summary.one_sided(&change);
        for field in ALL_RECORDED.iter() {
            match (entry.value(field), side) {
                (Value::None, _) => {}
                (value, Side::Added) => {
                    change.differences.push(Difference {
                        field,
                        old: Value::None,
                        new: value,
                    });
                }
                (value, Side::Removed) => {
                    change.differences.push(Difference {
                        field,
                        old: value,
                        new: Value::None,
                    });
                }
            }
        }
        let candidate = match (entry.kind, self.detail) {
            (Kind::File, Detail::Changes | Detail::All)
                if self.rules.compares(Field::Digest, Kind::File) =>
            {
                // What a restore has put aside is the file that it was, and no damage any more.
                let digest = entry.digest.and_then(Digest::from_slice);
                let numbers = match side == Side::Added && is_second(path, digest) {
                    true => Numbers::Moving,
                    false => site.numbers(),
                };
                // Where it will be if it has to wait.
                Candidate::new(side, path, entry, numbers, self.buffer.len())
            }
            _ => None,
        };
        match candidate {
            Some(candidate) => {
                self.candidates.push(candidate);
                self.buffer.push(&change);
                Ok(())
            }
            None if self.renames == Renames::Directories && self.detail != Detail::First => {
                self.waits = true;
                self.buffer.push(&change);
                Ok(())
            }
            None => {
                let change = self.known_damage(change);
                self.report(without_identity(change, self.rules))
            }
        }
    }

    fn report(&mut self, change: Change) -> io::Result<()> {
        if self.hold && self.evidence.is_conclusive() {
            self.hold = false;
            if self.candidates.is_empty() && self.swaps.is_empty() && !self.waits {
                // Nothing was moved.
                self.flush(Offline)?;
            }
        }
        if self.hold || !self.buffer.is_empty() {
            self.buffer.push(&change);
            return Ok(());
        }
        self.contentless.see(&change);
        (self.sink)(&change)
    }

    /// Returns whether the comparison may stop.
    pub(crate) fn flow(&self) -> ControlFlow<()> {
        let first = self.detail == Detail::First && self.summary.any();
        if first && (!self.hold || self.evidence.is_conclusive()) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    /// Returns true if nothing at all matches.
    pub(crate) fn nothing_matches(&mut self) -> bool {
        !self.evidence.matches() && !self.moves_possible()
    }

    /// Pairs moves, reports the waiting changes, and sums up.
    pub(crate) fn finish(self, later: impl Later) -> io::Result<ComparisonSummary> {
        self.finish_recorded(later).map(|(summary, _)| summary)
    }

    /// Like [`finish`](Self::finish), and returns the paths of contents that were passed to
    /// [`KnownDamage::learn`].
    pub(crate) fn finish_recorded(
        mut self,
        later: impl Later,
    ) -> io::Result<(ComparisonSummary, HashSet<Vec<u8>>)> {
        self.summary.complete = self.flow().is_continue();
        self.flush(later)?;
        self.summary.renamed = self.contentless.renamed();
        Ok((self.summary, self.copies))
    }

    /// A path of both sides that is unchanged but was found wrong when its content was last tried.
    /// Nothing is said of its ctime, which may have been recorded before or after that.
    pub(crate) fn known(
        &mut self,
        path: &[u8],
        old: &EntryRef<'_>,
        new: &EntryRef<'_>,
        found: ContentFault,
        tried_at: Option<i64>,
    ) -> io::Result<()> {
        self.summary.old += 1;
        self.summary.new += 1;
        // Either side may be the one that notes it.
        let unproven = old.unproven || new.unproven;
        let class = match found {
            ContentFault::Damaged if unproven => Class::Modified,
            ContentFault::Damaged => Class::Damaged,
            ContentFault::Unreadable => Class::Unreadable,
        };
        self.summary.add(class);
        let mut change = Change::new(class, path, new.kind);
        change.reason = Some(found_at(tried_at));
        self.doubt(&mut change);
        self.report(change)
    }

    /// Takes a path of the new side only, which notes that it is damaged.
    pub(crate) fn known_added(
        &mut self,
        path: &[u8],
        new: &EntryRef<'_>,
        at: Option<i64>,
    ) -> io::Result<()> {
        self.summary.new += 1;
        self.summary.damaged_added += 1;
        let class = match new.unproven {
            true => Class::Modified,
            false => Class::Damaged,
        };
        self.summary.add(class);
        let mut change = Change::new(class, path, new.kind);
        change.reason = Some(found_at(at));
        self.doubt(&mut change);
        self.report(change)
    }

    /// Marks a change that is not proven to be the recorded file.
    fn doubt(&mut self, change: &mut Change) {
        if change.class == Class::Modified {
            let found = change.reason.take().unwrap_or_default();
            change.reason = Some(format!("{}; {found}", judge::UNPROVEN));
            change.unproven = true;
            self.summary.undecided += 1;
        }
    }

    /// Takes a path that the new side does not have.
    pub(crate) fn absent(&mut self, entry: &Entry, why: Absence<'_>) -> io::Result<()> {
        let (path, kind) = (&entry.path[..], entry.kind);
        match why {
            Absence::Removed => self.removed(path, &EntryRef::from(entry)),
            Absence::Unread(above) => self.unseen(path, kind, above),
            Absence::LeftOut => self.left_out(path, kind),
            Absence::Unmounted(lost, here) => {
                self.unmounted(path, kind, here, why_lost(entry, lost))
            }
        }
    }

    /// Takes a path of the old side that the new side could not look at: a directory above failed.
    fn unseen(&mut self, path: &[u8], kind: Kind, above: UnreadDir<'_>) -> io::Result<()> {
        self.summary.old += 1;
        self.summary.unseen += 1;
        self.summary.add(Class::Unreadable);
        let mut change = Change::new(Class::Unreadable, path, kind);
        change.fail(above.path, Some(above.failure));
        change.reason = Some(above.reason());
        self.report(change)
    }

    /// Takes a path of the old side that the new side was not to look at.
    fn left_out(&mut self, path: &[u8], kind: Kind) -> io::Result<()> {
        self.summary.old += 1;
        self.summary.new += 1;
        self.summary.add(Class::Ok);
        match self.detail {
            Detail::All => self.report(Change::new(Class::Ok, path, kind)),
            Detail::Changes | Detail::First => Ok(()),
        }
    }

    /// Takes a path of the old side on a file system that is no longer mounted. Only the mount
    /// point itself has a `reason`, which is reported; those below it are counted.
    fn unmounted(
        &mut self,
        path: &[u8],
        kind: Kind,
        here: Here,
        reason: Option<String>,
    ) -> io::Result<()> {
        self.summary.old += 1;
        match here {
            Here::Nothing => self.summary.unseen += 1,
            Here::Other => self.summary.new += 1,
        }
        self.summary.add(Class::Unreadable);
        let reason = match reason {
            None if self.detail != Detail::All => return Ok(()),
            None => "not mounted".to_string(),
            Some(reason) => {
                self.summary.unmounted += 1;
                reason
            }
        };
        let mut change = Change::new(Class::Unreadable, path, kind);
        change.reason = Some(reason);
        self.report(change)
    }
}

/// Returns the reason of a path that an earlier attempt found wrong.
fn found_at(at: Option<i64>) -> String {
    let at = at.map_or_else(String::new, |at| format!(" at {}", format_rfc3339(at)));
    format!("found{at}, not tried again since")
}
