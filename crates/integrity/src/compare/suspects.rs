//! Changes that may not be what they seem at their paths: files that changed names, and contents
//! that are known to be damaged.

use std::collections::HashSet;

use bc_manifest::integrity::Kind;

use super::joined::content_of;
use super::{Comparison, EntryRef, Site};
use crate::change::{Change, Class};
use crate::fields::Field;
use crate::moves::{self, Candidate, Numbers, Side};
use crate::swaps::Renamed;

/// Reason of a content that an earlier run found damaged.
pub(super) const KNOWN: &str = "the content that was found damaged before";

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
        let key = |side: &EntryRef<'_>| moves::key(side.digest?, Some(side.size?));
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
        if !is_written(change.class)
            || !self.rules.compares(Field::Digest, Kind::File)
            || old.ino.is_none()
            || new.ino.is_none()
            || old.ino == new.ino
            || site.numbers() == Numbers::Moving
        {
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
}

/// True for a name that may have another file than before, or that has a content which was not
/// recorded.
fn is_written(class: Class) -> bool {
    matches!(class, Class::Modified | Class::Replaced | Class::Unreadable)
}
