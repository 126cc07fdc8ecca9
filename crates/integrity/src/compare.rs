//! Takes the paths of both sides in order, gives each its class, and reports in path order. Memory
//! grows with the files that only one side has, by 36 bytes each and 16 more where they are moves,
//! never with unchanged files.

mod joined;
mod noted;
mod suspects;

use std::collections::HashSet;
use std::io;

use bc_digest::Digest;
use bc_fs::known::{Doubt, Judgement};
use bc_manifest::integrity::Kind;

use crate::change::{Change, Class, Ctime, Difference, Value};
use crate::entry_ref::EntryRef;
use crate::evidence::{Evidence, Weight};
use crate::fields::{CompareRules, Field};
use crate::flow::Flow;
use crate::judge;
use crate::known_damage::KnownDamage;
use crate::moves::{Candidate, Numbers, Pair, Side, any_pair, pair};
use crate::second::is_second;
use crate::spill_buffer::SpillBuffer;
use crate::summary::ComparisonSummary;
use crate::swaps::{Renamed, rings};
use crate::unread::UnreadDir;
use joined::{
    ALL_RECORDED, class_of, content_of, moved_change, proof_of, renamed_change, with,
    without_identity,
};
use suspects::KNOWN;

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
    sink: &'a mut Sink<'a>,
    /// True if nothing is reported before an entry proves that the sides are of one tree.
    hold: bool,
    /// Evidence for that: files and links with the same content, as far as it was looked at.
    evidence: Evidence,
    buffer: SpillBuffer,
    candidates: Vec<Candidate>,
    /// Files that look damaged and may be others of them under their names.
    swaps: Vec<Renamed<[u8; 16]>>,
    /// New sides of those, where inode numbers identify files.
    taken_over: Vec<Candidate>,
    /// True if the compared entries become the new record.
    records: bool,
    /// Contents that are recorded as damaged on the old side.
    known: Option<&'a KnownDamage<'a>>,
    settled: Option<Settled>,
    /// Paths of contents that became known to be damaged when all paths had come.
    copies: HashSet<Vec<u8>>,
    summary: ComparisonSummary,
}

/// Pairs and rings among the waiting changes.
struct Settled {
    /// Names that are part of a ring, and the names that have their old keys now.
    swapped: Vec<(u64, u64)>,
    /// Names that have another undamaged file now.
    taken_over: HashSet<u64>,
    /// Pairs of which either side has a name that was kept, in order of the added side.
    renamed: Vec<Pair>,
    pairs: Vec<Pair>,
}

/// Judgement of a path of both sides by the content found there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Verdict {
    pub(crate) class: Class,
    /// True if it is modified, and nothing tells an edit from damage.
    pub(crate) undecided: bool,
}

impl Verdict {
    fn of(class: Class) -> Verdict {
        Verdict {
            class,
            undecided: false,
        }
    }
}

/// Verdicts that depend on all paths.
#[derive(Default)]
pub(crate) struct Verdicts {
    /// Paths that looked damaged and have another undamaged file.
    pub(crate) sound: HashSet<Vec<u8>>,
    /// Damaged files under other names than the recorded ones, where a record is made.
    pub(crate) elsewhere: Vec<Elsewhere>,
}

/// A file that is damaged under another name than the recorded one.
pub(crate) struct Elsewhere {
    /// Path that it was recorded under.
    pub(crate) was: Vec<u8>,
    /// Path that it has now.
    pub(crate) is: Vec<u8>,
    /// Its content now.
    pub(crate) content: Option<Digest>,
    /// True if nothing proves that it is the recorded file.
    pub(crate) unproven: bool,
}

impl Settled {
    fn renamed(&self, record: u64) -> Option<&Pair> {
        let found = self.renamed.binary_search_by_key(&record, Pair::added);
        found.ok().map(|at| &self.renamed[at])
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
            sink,
            hold: false,
            evidence: Evidence::default(),
            buffer: SpillBuffer::default(),
            candidates: Vec::new(),
            swaps: Vec::new(),
            taken_over: Vec::new(),
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
            ..self
        }
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
    ) -> io::Result<Verdict> {
        self.summary.old += 1;
        self.summary.new += 1;
        let class = judge::judge(old, new, self.rules);
        self.summary.add(class);
        if let Some(weight) = Weight::of(old) {
            let matches = matches!(class, Class::Ok | Class::Meta);
            self.evidence.add(weight, matches);
        }
        if class == Class::Ok && self.detail != Detail::All {
            return Ok(Verdict::of(class));
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
                Verdict::of(Class::Damaged)
            }
            class => Verdict {
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
            None => {
                let change = self.known_damage(change);
                self.report(without_identity(change, self.rules))
            }
        }
    }

    fn report(&mut self, change: Change) -> io::Result<()> {
        if self.hold && self.evidence.is_conclusive() {
            self.hold = false;
            if self.candidates.is_empty() && self.swaps.is_empty() {
                // Nothing was moved.
                self.flush(Offline)?;
            }
        }
        if self.hold || !self.buffer.is_empty() {
            self.buffer.push(&change);
            return Ok(());
        }
        (self.sink)(&change)
    }

    /// Returns whether the comparison may stop.
    pub(crate) fn flow(&self) -> Flow {
        let first = self.detail == Detail::First && self.summary.any();
        if first && (!self.hold || self.evidence.is_conclusive()) {
            Flow::Stop
        } else {
            Flow::Continue
        }
    }

    /// Returns true if nothing at all matches.
    pub(crate) fn nothing_matches(&mut self) -> bool {
        !self.evidence.matches() && !self.moves_possible()
    }

    /// Returns true if both sides have a content under different names.
    fn moves_possible(&mut self) -> bool {
        any_pair(&mut self.candidates) || !rings(&self.swaps).is_empty()
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
        self.summary.complete = self.flow() == Flow::Continue;
        self.flush(later)?;
        Ok((self.summary, self.copies))
    }

    /// Finds pairs and rings among the waiting changes, when all paths have come.
    pub(crate) fn settle(&mut self, later: &mut impl Later) -> io::Result<Verdicts> {
        let swapped = rings(&std::mem::take(&mut self.swaps));
        let taken_over = self.taken_over();
        let buffer = &self.buffer;
        let mut confirmed = Ok(());
        let pairs = pair(std::mem::take(&mut self.candidates), |pair| {
            proof_of(buffer, pair, later).unwrap_or_else(|error| {
                confirmed = Err(error);
                Judgement::Other
            })
        });
        confirmed?;
        let (mut renamed, pairs): (Vec<Pair>, Vec<Pair>) =
            pairs.into_iter().partition(Pair::has_a_kept_name);
        renamed.sort_unstable_by_key(Pair::added);
        let settled = Settled {
            swapped,
            taken_over,
            renamed,
            pairs,
        };
        let swapped = settled.swapped.iter().map(|pair| pair.0);
        let mut verdicts = Verdicts::default();
        for record in swapped.chain(settled.taken_over.iter().copied()) {
            if settled.renamed(record).is_none() {
                verdicts.sound.insert(buffer.get(record)?.path);
            }
        }
        let pairs = settled.renamed.iter().chain(&settled.pairs);
        for pair in pairs.filter(|pair| self.records && pair.is_damaged()) {
            let is = buffer.get(pair.added())?;
            verdicts.elsewhere.push(Elsewhere {
                was: buffer.get(pair.removed())?.path,
                content: content_of(&is).and_then(Digest::from_slice),
                is: is.path,
                unproven: pair.is_unproven(),
            });
        }
        self.settled = Some(settled);
        Ok(verdicts)
    }

    fn flush(&mut self, mut later: impl Later) -> io::Result<()> {
        if self.settled.is_none() {
            self.settle(&mut later)?;
        }
        let Some(settled) = self.settled.take() else {
            return Ok(());
        };
        let buffer = std::mem::take(&mut self.buffer);
        let Settled {
            swapped,
            taken_over,
            pairs,
            ..
        } = &settled;
        let mut targets: Vec<u64> = pairs.iter().map(Pair::added).collect();
        targets.sort_unstable();
        let (mut pairs, mut targets) = (pairs.iter().peekable(), targets.into_iter().peekable());
        for waiting in buffer.iter() {
            let (offset, change) = waiting?;
            if targets.next_if_eq(&offset).is_some() {
                continue;
            }
            if let Some(pair) = settled.renamed(offset) {
                let was = buffer.get(pair.removed())?;
                let class = class_of(pair);
                self.summary.damaged(&change, class);
                self.summary.undecided += u64::from(class == Class::Modified);
                (self.sink)(&renamed_change(&was, &change, class, self.rules))?;
                continue;
            }
            if let Ok(at) = swapped.binary_search_by_key(&offset, |pair| pair.0) {
                self.summary.swapped();
                let to = buffer.get(swapped[at].1)?;
                (self.sink)(&moved_change(change, to, Class::Moved, self.rules))?;
                continue;
            }
            if taken_over.contains(&offset) {
                self.summary.damaged(&change, Class::Modified);
                let class = Class::Modified;
                let change = Change {
                    class,
                    ctime: None,
                    reason: None,
                    ..change
                };
                (self.sink)(&without_identity(change, self.rules))?;
                continue;
            }
            let moved = pairs.next_if(|pair| pair.removed() == offset);
            match moved {
                Some(pair) => {
                    let class = class_of(pair);
                    let added = buffer.get(pair.added())?;
                    self.summary.moved(class, &added);
                    self.summary.undecided += u64::from(class == Class::Modified);
                    let mut moved = moved_change(change, added, class, self.rules);
                    if let (Some(ctime), Some(to)) = (moved.ctime, &moved.to) {
                        moved.ctime = Some(later.ctime(to, ctime));
                    }
                    (self.sink)(&moved)?;
                }
                None => {
                    let change = self.known_damage(change);
                    let is_learnt = |known: &KnownDamage<'_>| known.has_learnt();
                    if change.class == Class::Damaged && self.known.is_some_and(is_learnt) {
                        self.copies.insert(change.path.clone());
                    }
                    (self.sink)(&without_identity(change, self.rules))?;
                }
            }
            if self.detail == Detail::First {
                break;
            }
        }
        Ok(())
    }
}
