//! Changes that wait until all paths have come: files that changed names, or may have, and contents
//! that are known to be damaged. Pairs of changes that are one are reported as one.

use std::collections::HashSet;
use std::io;

use bc_digest::Digest;
use bc_fs::known::Judgement;
use bc_manifest::integrity::Kind;

use super::{Comparison, Detail, Later, Renames, Site};
use crate::change::{Change, Class, Difference, Value};
use crate::compare::known_damage::KnownDamage;
use crate::compare::moves::{
    self, Candidate, MovedPair, Numbers, Renamed, Side, any_pair, chained, pair, rings,
};
use crate::compare::one_change::{class_of, content_of, found, moved_change, renamed_change};
use crate::compare::renamed_dirs::RenamedDirs;
use crate::compare::spill_buffer::SpillBuffer;
use crate::entry_ref::EntryRef;
use crate::fields::{CompareRules, Field, Fields};

/// Reason of a content that an earlier run found damaged.
pub(super) const KNOWN: &str = "the content that was found damaged before";

/// Pairs and rings among the waiting changes.
pub(super) struct Settled {
    /// Names that are part of a ring, and the names that have their old keys now.
    swapped: Vec<(u64, u64)>,
    /// Names that have another undamaged file now.
    taken_over: HashSet<u64>,
    /// Pairs of which either side has a name that was kept, in order of the added side.
    renamed: Vec<MovedPair>,
    pairs: Vec<MovedPair>,
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
    fn renamed(&self, record: u64) -> Option<&MovedPair> {
        let found = self.renamed.binary_search_by_key(&record, MovedPair::added);
        found.ok().map(|at| &self.renamed[at])
    }
}

impl Comparison<'_> {
    pub(super) fn is_known(&self, path: &[u8], digest: Option<&[u8]>) -> bool {
        let digests = self.rules.compares(Field::Digest, Kind::File);
        digests
            && self
                .known
                .is_some_and(|known| known.get(path, digest).is_some())
    }

    /// Reclassifies a change that brings a content that is known to be damaged.
    pub(super) fn known_damage(&mut self, change: Change) -> Change {
        let brings = matches!(
            change.class,
            Class::Added | Class::Modified | Class::Replaced | Class::Unreadable
        );
        if !brings || change.kind != Kind::File {
            return change;
        }
        let digest = content_of(&change);
        if !self.is_known(&change.path, digest) {
            return change;
        }
        let expected = self.known.and_then(|known| known.get(&change.path, digest));
        let was_at = expected.map(|expected| expected.path.clone());
        let was_at = was_at.filter(|was_at| *was_at != change.path);
        let reason = match &was_at {
            Some(was_at) => format!("{KNOWN}, as {}", bc_fs::escape(was_at)),
            None => KNOWN.to_owned(),
        };
        self.summary.damaged(&change, Class::Damaged);
        Change {
            class: Class::Damaged,
            was_at,
            reason: Some(reason),
            readable_now: false,
            recorded_now: false,
            unproven: false,
            ..change
        }
    }

    /// Returns true if a file that looks damaged may be another undamaged file of this size and
    /// time.
    pub(super) fn may_be_swapped(
        &mut self,
        path: &[u8],
        class: Class,
        old: &EntryRef<'_>,
        new: &EntryRef<'_>,
        site: &mut impl Site,
    ) -> bool {
        let in_place = old.ino.is_some() && old.ino == new.ino;
        if class != Class::Damaged || in_place {
            return false;
        }
        let key = |side: &EntryRef<'_>| {
            side.size?;
            moves::content_and_time(side)
        };
        let (Some(was), Some(is)) = (key(old), key(new)) else {
            return false;
        };
        let name = self.buffer.len();
        self.swaps.push(Renamed { was, is, name });
        let numbers = site.numbers();
        if numbers == Numbers::Stable {
            let side = |side, view| {
                let candidate = Candidate::new(side, path, view, numbers, name);
                candidate.map(Candidate::of_a_kept_name)
            };
            let new = side(Side::Added, new);
            self.taken_over.extend(new);
            self.candidates
                .extend(side(Side::Removed, old).into_iter().chain(new));
        }
        true
    }

    /// Returns true if a damaged file in its place may have got another name since, with the same
    /// content.
    pub(super) fn may_have_another_name(
        &mut self,
        change: &Change,
        old: &EntryRef<'_>,
        new: &EntryRef<'_>,
    ) -> bool {
        if change.class != Class::Damaged || old.nlink >= new.nlink {
            return false;
        }
        let (path, at) = (&change.path, self.buffer.len());
        let candidate = Candidate::new(Side::Removed, path, old, Numbers::Stable, at);
        let candidate = candidate.map(Candidate::of_a_kept_name);
        self.candidates.extend(candidate);
        candidate.is_some()
    }

    /// Returns true if another file has taken the name. Either may be damaged under another name:
    /// the previous one at its present path, and the present one against its previous path. Where
    /// one of them cannot be read it is the other that may.
    pub(super) fn may_be_renamed(
        &mut self,
        change: &Change,
        old: &EntryRef<'_>,
        new: &EntryRef<'_>,
        mut site: impl Site,
    ) -> bool {
        let in_place = old.ino.is_some() && old.ino == new.ino;
        if !is_written(change.class) || !self.rules.compares(Field::Digest, Kind::File) || in_place
        {
            return false;
        }
        if change.class != Class::Unreadable {
            self.lost.extend(moves::content_and_time(old));
        }
        if old.ino.is_none() || new.ino.is_none() || site.numbers() == Numbers::Moving {
            return false;
        }
        let before = self.candidates.len();
        for (side, file) in [(Side::Removed, old), (Side::Added, new)] {
            if file.kind == Kind::File {
                let (path, at) = (&change.path, self.buffer.len());
                let candidate = Candidate::new(side, path, file, Numbers::Stable, at);
                self.candidates
                    .extend(candidate.map(Candidate::of_a_kept_name));
            }
        }
        self.candidates.len() > before
    }

    /// True if a written file may be a copy of one that turns out to be damaged. That has to be
    /// known only where it would become the record.
    pub(super) fn may_be_copied(&self, change: &Change, new: &EntryRef<'_>) -> bool {
        self.records && is_written(change.class) && new.kind == Kind::File && new.digest.is_some()
    }

    /// Returns names that have the contents and mtimes of others, which have them no longer: these
    /// tell renames where inode numbers do not. A content that comes without its mtime is damage.
    fn chained(&self) -> HashSet<u64> {
        let lost = self.candidates.iter().filter_map(Candidate::lost_content);
        chained(&self.swaps, lost.chain(self.lost.iter().copied()))
    }

    /// Returns names whose files are recorded under other ones, with the content that they have:
    /// they were moved or linked over files of their size and time, and are no damage of these.
    pub(super) fn taken_over(&mut self) -> HashSet<u64> {
        let (new, known) = (std::mem::take(&mut self.taken_over), self.known);
        let here = new.iter().filter_map(Candidate::file_and_content).collect();
        // Whether a file lost its other name, or has one more, does not matter.
        let sound = known.map_or_else(HashSet::new, |known| known.sound(&here));
        let here = new.iter().filter_map(|is| {
            let file = is.file_and_content()?;
            sound.contains(&file).then(|| is.record())
        });
        here.collect()
    }

    /// Returns true if both sides have a content under different names.
    pub(super) fn moves_possible(&mut self) -> bool {
        any_pair(&mut self.candidates)
            || !rings(&self.swaps).is_empty()
            || !self.chained().is_empty()
    }

    /// Finds pairs and rings among the waiting changes, when all paths have come.
    pub(crate) fn settle(&mut self, later: &mut impl Later) -> io::Result<Verdicts> {
        let mut taken_over = self.taken_over();
        taken_over.extend(self.chained());
        let swapped = rings(&std::mem::take(&mut self.swaps));
        let buffer = &self.buffer;
        let mut confirmed = Ok(());
        let pairs = pair(std::mem::take(&mut self.candidates), |pair| {
            proof_of(buffer, pair, later).unwrap_or_else(|error| {
                confirmed = Err(error);
                Judgement::Other
            })
        });
        confirmed?;
        let (mut renamed, pairs): (Vec<MovedPair>, Vec<MovedPair>) =
            pairs.into_iter().partition(MovedPair::has_a_kept_name);
        renamed.sort_unstable_by_key(MovedPair::added);
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

    pub(super) fn flush(&mut self, mut later: impl Later) -> io::Result<()> {
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
        let renames = match self.renames {
            Renames::Directories => RenamedDirs::find(&buffer, pairs, self.rules)?,
            Renames::Entries => RenamedDirs::default(),
        };
        let mut targets: Vec<u64> = pairs.iter().map(MovedPair::added).collect();
        targets.sort_unstable();
        let (mut pairs, mut targets) = (pairs.iter().peekable(), targets.into_iter().peekable());
        for waiting in buffer.iter() {
            let (offset, change) = waiting?;
            if targets.next_if_eq(&offset).is_some() || renames.has_arrived(offset) {
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
            if let Some(added) = renames.joined(offset) {
                let added = buffer.get(added)?;
                self.summary.moved(Class::Moved, &added);
                if !renames.covers(offset) {
                    let mut moved = moved_change(change, added, Class::Moved, self.rules);
                    moved.entries = renames.entries(offset);
                    (self.sink)(&moved)?;
                }
                continue;
            }
            let moved = pairs.next_if(|pair| pair.removed() == offset);
            match moved {
                Some(pair) => {
                    let class = class_of(pair);
                    let added = buffer.get(pair.added())?;
                    self.summary.moved(class, &added);
                    self.summary.undecided += u64::from(class == Class::Modified);
                    if renames.covers(offset) {
                        continue;
                    }
                    let mut moved = moved_change(change, added, class, self.rules);
                    if let (Some(ctime), Some(to)) = (moved.ctime, &moved.to) {
                        moved.ctime = Some(later.ctime(to, ctime));
                    }
                    (self.sink)(&moved)?;
                }
                None => {
                    let change = self.known_damage(change);
                    self.contentless.see(&change);
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

/// True for a name that may have another file than before, or that has a content which was not
/// recorded.
fn is_written(class: Class) -> bool {
    matches!(class, Class::Modified | Class::Replaced | Class::Unreadable)
}

/// Checks whether the two sides of a pair with different contents are one file. They were paired by
/// a hash, and the numbers behind it may be another file's by now.
pub(super) fn proof_of(
    buffer: &SpillBuffer,
    pair: &MovedPair,
    later: &mut impl Later,
) -> io::Result<Judgement> {
    let (removed, added) = (buffer.get(pair.removed())?, buffer.get(pair.added())?);
    let same = |field| {
        let (before, after) = (found(&removed, field), found(&added, field));
        matches!((before, after), (Some(before), Some(after)) if before.old == after.new)
    };
    let fields = [Field::Ino, Field::Size, Field::Mtime];
    if !fields.into_iter().all(same) {
        return Ok(Judgement::Other);
    }
    let ctime = found(&removed, Field::Ctime).and_then(|d| match d.old {
        Value::Time(time) => Some(time),
        _ => None,
    });
    Ok(later.proof(&added.path, ctime))
}

/// All recorded fields of an entry beside its kind.
pub(crate) const ALL_RECORDED: Fields = Fields::ALL
    .without(Field::Kind)
    .without(Field::Dev)
    .without(Field::DirSize)
    .without(Field::DirNlink);

/// Adds all values of these fields on either side, equal or not.
pub(super) fn with(
    mut change: Change,
    old: &EntryRef<'_>,
    new: &EntryRef<'_>,
    fields: Fields,
) -> Change {
    change.differences.retain(|d| !fields.contains(d.field));
    let values = fields.iter().map(|field| Difference {
        field,
        old: old.value(field),
        new: new.value(field),
    });
    change.differences.extend(values);
    change
}

/// Keeps only the differences that count.
pub(super) fn without_identity(mut change: Change, rules: CompareRules) -> Change {
    if matches!(
        change.class,
        Class::Modified | Class::Replaced | Class::Damaged
    ) {
        let kind = change.kind;
        change.differences.retain(|d| {
            let known = d.old != Value::None && d.new != Value::None;
            known && d.old != d.new && rules.compares(d.field, kind)
        });
        change.differences.sort_by_key(|d| d.field);
    }
    if change.class == Class::Unreadable {
        change.differences.clear();
    }
    change
}
