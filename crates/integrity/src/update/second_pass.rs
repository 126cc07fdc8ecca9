//! The second pass: each path gets its class and its line in the new manifest.

use std::collections::{BTreeMap, HashSet};

use bc_digest::Digest;
use bc_fs::known::Judgement;
use bc_manifest::integrity::{ContentFault, Entry, Kind, UNSEEN_AT};
use bc_manifest::time::format_rfc3339;
use bc_walk::EntryId;
use bc_walk::job::Error;

use super::first_pass::UpdatePlan;
use super::output::{Ended, Output};
use super::renames::Was;
use super::{Damaged, UpdateOptions};
use crate::absence::Absence;
use crate::change::Class;
use crate::compare::known_damage::is_second;
use crate::compare::known_damage::{Expected, KnownDamage};
use crate::compare::pending::{Elsewhere, Verdicts};
use crate::compare::{Comparison, ContentVerdict};
use crate::entry_ref::EntryRef;
use crate::error::write_failed;
use crate::input::stream::ManifestStream;
use crate::judge::is_untouched;
use crate::reliability::Hints;
use crate::sides::{Pair, Receiver};
use crate::tree::loader::LoadedEntry;
use crate::tree::recording::{Devices, to_entry};
use crate::tree::unread::UnreadDir;
use std::ops::ControlFlow;

/// State of the second pass.
pub(super) struct SecondPass<'a, 's> {
    pub(super) what: &'a UpdateOptions<'a>,
    pub(super) plan: &'a UpdatePlan,
    pub(super) comparison: Comparison<'s>,
    /// Contents that the old manifest knows to be damaged.
    pub(super) known: &'a KnownDamage<'a>,
    pub(super) output: Output,
    pub(super) devices: Devices,
    pub(super) hints: Hints<'a>,
    pub(super) late: Late,
    /// Entries found damaged that the old manifest already noted as such.
    pub(super) noted: u64,
}

/// Corrections that depend on the comparison when all paths have come: until then entries that look
/// damaged are written as such.
#[derive(Default)]
pub(super) struct Late {
    /// Entries that look damaged and may be of another undamaged file, by their paths.
    sound: BTreeMap<Vec<u8>, Entry>,
    /// Entries of unreadable files, by their paths, which keep the records of other files unless
    /// these have other names.
    closed: BTreeMap<Vec<u8>, Entry>,
    /// Contents that were found damaged.
    found: Vec<(Digest, Expected)>,
    /// Paths with the record of another name of their files.
    noted: HashSet<Vec<u8>>,
    /// Records of damaged files by their present paths, and whether they are unproven to be these,
    /// of which only the comparison knew.
    missed: BTreeMap<Vec<u8>, (Was, bool)>,
}

impl Late {
    /// Keeps only the entries that are right, and passes the others' contents to `known`. `again`
    /// opens the old manifest once more.
    pub(super) fn settle(
        &mut self,
        verdicts: Verdicts,
        what: &UpdateOptions<'_>,
        known: &KnownDamage<'_>,
        again: impl FnOnce() -> Result<ManifestStream, Error>,
    ) -> Result<(), Error> {
        let Verdicts {
            sound,
            mut elsewhere,
        } = verdicts;
        let mut closed = std::mem::take(&mut self.closed);
        let moved: HashSet<&Vec<u8>> = elsewhere.iter().map(|one| &one.was).collect();
        closed.retain(|path, _| moved.contains(path));
        elsewhere.retain(|one| what.damaged == Damaged::Keep && !self.noted.contains(&one.is));
        self.miss(elsewhere, again)?;
        self.sound.retain(|path, _| sound.contains(path));
        self.sound.append(&mut closed);
        let found = std::mem::take(&mut self.found).into_iter();
        known.learn(found.filter(|one| !sound.contains(&one.1.path)).collect());
        Ok(())
    }

    /// Looks up the records of damaged files that have other names.
    fn miss(
        &mut self,
        elsewhere: Vec<Elsewhere>,
        again: impl FnOnce() -> Result<ManifestStream, Error>,
    ) -> Result<(), Error> {
        if elsewhere.is_empty() {
            return Ok(());
        }
        let mut by_path: BTreeMap<Vec<u8>, Vec<Elsewhere>> = BTreeMap::new();
        for mut one in elsewhere {
            let was = std::mem::take(&mut one.was);
            by_path.entry(was).or_default().push(one);
        }
        let mut old = again()?;
        while let Some(entry) = old.take()? {
            let Some(was) = Was::of(entry) else { continue };
            for one in by_path.remove(&entry.path).into_iter().flatten() {
                if let (Some(damaged), false) = (one.content, one.unproven) {
                    let expected = Expected {
                        path: one.is.clone(),
                        digest: was.digest,
                        verified_at: was.verified_at,
                    };
                    self.found.push((damaged, expected));
                }
                self.missed.insert(one.is, (was, one.unproven));
            }
        }
        Ok(())
    }

    /// Corrects the output; `copies` are paths of contents that are only now known to be damaged.
    pub(super) fn amend(
        mut self,
        output: Ended,
        copies: &HashSet<Vec<u8>>,
        what: &UpdateOptions<'_>,
        known: &KnownDamage<'_>,
    ) -> Result<Ended, Error> {
        if self.sound.is_empty() && copies.is_empty() && self.missed.is_empty() {
            return Ok(output);
        }
        output.amended(|entry| {
            if let Some(sound) = self.sound.remove(&entry.path) {
                *entry = sound;
            }
            if let Some((was, unproven)) = self.missed.remove(&entry.path)
                && entry.found.is_none()
            {
                note(entry, &was, unproven, ContentFault::Damaged, what.now);
            }
            if copies.contains(&entry.path) {
                note_known_damage(entry, what, known);
            }
        })
    }

    /// An entry whose content was found damaged in its place.
    fn found(&mut self, entry: &Entry) {
        if let (Some(damaged), Some(digest), false) =
            (entry.damaged_digest, entry.digest, entry.unproven)
        {
            let expected = Expected {
                path: entry.path.clone(),
                digest,
                verified_at: entry.verified_at,
            };
            self.found.push((damaged, expected));
        }
    }
}

/// Gives a file's entry the record of another name that it had, to which its content is not equal.
fn note(fresh: &mut Entry, was: &Was, unproven: bool, found: ContentFault, now: i64) {
    fresh.unproven = unproven;
    let (found, damaged) = match found {
        ContentFault::Damaged => (found, fresh.digest),
        ContentFault::Unreadable => (was.found.unwrap_or(found), was.damaged),
    };
    fresh.damaged_digest = damaged;
    fresh.digest = Some(was.digest);
    fresh.verified_at = was.verified_at;
    // With a new one it would look like bitrot from now on.
    if let (Some(meta), Some(ctime_ns)) = (&mut fresh.meta, was.ctime_ns) {
        meta.ctime_ns = ctime_ns;
    }
    fresh.error = None;
    (fresh.tried_at, fresh.found) = (Some(now), Some(found));
}

/// A content that was found damaged before stays so, whatever name and time it has now.
fn note_known_damage(fresh: &mut Entry, what: &UpdateOptions<'_>, known: &KnownDamage<'_>) {
    let digest = fresh.digest.as_ref().map(|digest| digest.as_bytes());
    if fresh.found.is_some() || what.damaged == Damaged::Accept {
        return;
    }
    if let Some(expected) = known.get(&fresh.path, digest) {
        fresh.damaged_digest = fresh.digest.replace(expected.digest);
        fresh.verified_at = expected.verified_at;
        (fresh.tried_at, fresh.found) = (Some(what.now), Some(ContentFault::Damaged));
    }
}

impl Receiver for SecondPass<'_, '_> {
    fn pair(&mut self, pair: Pair<'_>) -> Result<ControlFlow<()>, Error> {
        match pair {
            Pair::Both { entry, old, new } => self.both(entry, old, new)?,
            Pair::Added { new, above, hides } => self.added(new, above, hides)?,
            Pair::Gone(entry, why) => {
                let reported = self.comparison.absent(entry, why);
                reported.map_err(|error| write_failed(&error))?;
                if !matches!(why, Absence::Removed) {
                    self.keep_unseen(entry)?;
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

impl SecondPass<'_, '_> {
    fn added(
        &mut self,
        new: &LoadedEntry<'_>,
        above: Option<UnreadDir<'_>>,
        hides: bool,
    ) -> Result<(), Error> {
        let site = self.hints.at(new.id, new.view.device);
        self.comparison
            .added(new.path, &new.view, above, site)
            .map_err(|error| write_failed(&error))?;
        if hides {
            // A file in the place of a missing disk is none of its files.
            return Ok(());
        }
        let mut fresh = to_entry(new, &mut self.devices);
        fresh.verified_at = fresh.digest.map(|_| self.what.now);
        fresh.tried_run = (fresh.kind == Kind::File).then(|| self.plan.run());
        self.renamed(new.id, &mut fresh);
        note_known_damage(&mut fresh, self.what, self.known);
        self.output.put(&fresh)
    }

    /// True if a name has a file that had another one, and that has its content of there or is that
    /// file for certain: the recorded content of this name is not expected of it.
    fn is_moved_here(&mut self, id: Option<EntryId>, digest: Option<&[u8]>) -> bool {
        let Some(id) = id.filter(|id| self.plan.renames.is_swapped(*id)) else {
            return false;
        };
        let was = self.plan.renames.was(id).unwrap_or_default();
        was.iter().any(|was| {
            Some(was.digest.as_bytes()) == digest
                || self.hints.proof(Some(id), was.ctime_ns) == Judgement::Same
        })
    }

    /// True if the file of an entry has another name now.
    fn is_elsewhere(&mut self, entry: &Entry) -> bool {
        let ctime = EntryRef::from(entry).ctime_ns;
        let is = self.plan.renames.is_at(entry);
        is.is_some_and(|id| self.hints.proof(Some(id), ctime) != Judgement::Other)
    }

    /// Keeps the record of a file that had another name, so that later runs find its damage again.
    fn renamed(&mut self, id: Option<EntryId>, fresh: &mut Entry) {
        let Some(was) = id.and_then(|id| self.plan.renames.was(id)) else {
            return;
        };
        if is_second(&fresh.path, fresh.digest) {
            return;
        }
        let found = match fresh.digest {
            Some(digest) if was.iter().any(|was| was.digest == digest) => None,
            Some(_) if self.what.damaged == Damaged::Accept => None,
            Some(_) => Some(ContentFault::Damaged),
            None => Some(ContentFault::Unreadable),
        };
        let Some(found) = found else { return };
        let mut proven = was
            .iter()
            .map(|was| (was, self.hints.proof(id, was.ctime_ns)));
        // Another file that was given the number is judged by itself.
        if let Some((was, proof)) = proven.find(|(_, proof)| *proof != Judgement::Other) {
            let unproven = matches!(proof, Judgement::Unproven(_));
            note(fresh, was, unproven, found, self.what.now);
            self.late.found(fresh);
            self.late.noted.insert(fresh.path.clone());
        }
    }

    fn both(
        &mut self,
        entry: &Entry,
        mut before: EntryRef<'_>,
        new: &LoadedEntry<'_>,
    ) -> Result<(), Error> {
        // It is seen again.
        let seen;
        let entry = match entry.extra.contains_key(UNSEEN_AT) {
            true => {
                let mut again = entry.clone();
                again.extra.remove(UNSEEN_AT);
                seen = again;
                &seen
            }
            false => entry,
        };
        if let Some(is) = new.view.device
            && new.view.kind == Kind::Dir
            && before.ino == new.view.ino
        {
            self.devices.was(entry.dev, is);
        }
        let (mut now, mut compared) = (new.view, new.compared());
        let mut verified_at = now.digest.map(|_| self.what.now);
        let tried = new.id.is_some_and(|id| self.plan.wanted[id.0 as usize]);
        if now.kind == Kind::File && now.digest.is_none() && now.error.is_none() {
            // Unchanged: as it was.
            now.digest = before.digest;
            compared.digest = before.digest;
            verified_at = entry.verified_at;
        }
        if let (Some(found), false, None) = (entry.found, tried, now.error)
            && now.kind == entry.kind
        {
            self.noted += u64::from(found == ContentFault::Damaged);
            self.comparison
                .known(new.path, &before, &compared, found, entry.tried_at)
                .map_err(|error| write_failed(&error))?;
            return self.keep(entry, new.view.device);
        }
        self.hints
            .mark_unsteady(&mut before, &compared, new, entry.verified_at);
        let site = self.hints.at(new.id, new.view.device);
        let verdict = self.comparison.both(new.path, &before, &compared, site);
        let ContentVerdict { class, undecided } = verdict.map_err(|error| write_failed(&error))?;
        self.noted += u64::from(
            entry.found == Some(ContentFault::Damaged) && (class == Class::Damaged || undecided),
        );
        let keeps = self.what.damaged == Damaged::Keep;
        if keeps && undecided {
            return self.keep(entry, new.view.device);
        }
        let swapped = class == Class::Damaged && self.is_moved_here(new.id, compared.digest);
        // A file known to be damaged is compared with the record of the file that it was.
        let renamed = !is_untouched(&before, &compared)
            && new.id.is_some_and(|id| self.plan.renames.was(id).is_some());
        // The records of a file that cannot be read go with it to its new name, and those of the
        // file that had this name are where that is now.
        let unread_elsewhere = class == Class::Unreadable
            && before.ino.is_some()
            && before.ino != now.ino
            && (new.id.is_some_and(|id| self.plan.renames.was(id).is_some())
                || self.is_elsewhere(entry));
        // Of a content that was not recorded there is no record to keep.
        let unrecorded = entry.digest.is_none();
        let in_place = entry.kind == Kind::File && !unrecorded && !swapped && !renamed;
        let found = match class {
            Class::Damaged if keeps && in_place => Some(ContentFault::Damaged),
            // The last known record is better than none.
            Class::Unreadable
                if now.error.is_some() && before.error.is_none() && !unread_elsewhere =>
            {
                Some(entry.found.unwrap_or(ContentFault::Unreadable))
            }
            _ => None,
        };
        let elsewhere = self.hints.is_elsewhere();
        let mut fresh = || {
            let present = LoadedEntry { view: now, ..*new };
            let mut fresh = to_entry(&present, &mut self.devices);
            if fresh.digest.is_some() {
                fresh.verified_at = verified_at;
                fresh.tried_at = entry.tried_at.filter(|_| !tried);
            }
            fresh.tried_run = match tried {
                true => Some(self.plan.run()),
                false => entry.tried_run.filter(|_| fresh.kind == Kind::File),
            };
            fresh.extra.clone_from(&entry.extra);
            fresh
        };
        if found.is_none() {
            let mut fresh = fresh();
            let may_be_renamed = match class {
                Class::Modified | Class::Replaced => true,
                Class::Damaged => !in_place,
                Class::Unreadable => unread_elsewhere || unrecorded,
                _ => false,
            };
            if may_be_renamed {
                self.renamed(new.id, &mut fresh);
                note_known_damage(&mut fresh, self.what, self.known);
            }
            return self.output.put(&fresh);
        }
        if before.ino != now.ino {
            let late = match class {
                Class::Damaged => Some(&mut self.late.sound),
                // Each of a copy, and none of them anywhere else.
                _ if elsewhere => None,
                _ => Some(&mut self.late.closed),
            };
            late.map(|late| late.insert(entry.path.clone(), fresh()));
        }
        let mut kept = entry.clone();
        if tried {
            (kept.tried_at, kept.found) = (Some(self.what.now), found);
            kept.tried_run = Some(self.plan.run());
            if class == Class::Damaged {
                kept.damaged_digest = now.digest.and_then(Digest::from_slice);
                self.late.found(&kept);
            }
        }
        self.keep(&kept, new.view.device)
    }

    /// Writes an old entry again that could not be seen, with the time since when: queries over
    /// many manifests must not count it as an existing copy.
    fn keep_unseen(&mut self, entry: &Entry) -> Result<(), Error> {
        if entry.extra.contains_key(UNSEEN_AT) {
            return self.keep(entry, None);
        }
        let mut unseen = entry.clone();
        let now = format_rfc3339(self.what.now);
        unseen.extra.insert(UNSEEN_AT.to_owned(), now.into());
        self.keep(&unseen, None)
    }

    /// Writes an old entry again; `device` is its present device, if it is there.
    fn keep(&mut self, entry: &Entry, device: Option<u64>) -> Result<(), Error> {
        let dev = match device {
            Some(device) => self.devices.index(device),
            None => self.devices.kept(entry.dev),
        };
        if dev == entry.dev {
            return self.output.put(entry);
        }
        let mut entry = entry.clone();
        entry.dev = dev;
        self.output.put(&entry)
    }
}
