//! The decision about one step of a journal: what has to be known of the names that it left, in which
//! order, and what follows from that. Pure, as the [decision about a target](crate::plan::next) is:
//! the caller asks [`next`], looks for what it needs, and asks again. A dry run foresees the
//! [`Reversal`] that a real one carries out.

use bc_walk::FileKind;

use super::names::ContentProof;
use crate::act::moving::relocate::MoveMethod;
use crate::journal::record::CopyOrigin;
use crate::skip::Skip;
use crate::step::StepKind;

/// Knowledge that undoing a step needs. Looks that leave nothing to decide refuse it themselves, and
/// give [`UndoFact::Is`] `true`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum UndoNeed {
    /// The file that has the name may be the one that had it before the step.
    Original,
    /// It surely is that one.
    ProvenOriginal,
    /// The name leads to the kept file, as the step left it.
    Link,
    /// Nothing is lost with the name of that link.
    Spare,
    /// The file itself has a temporary name beside the link.
    SetAside,
    /// The file that has the name has the recorded content.
    Content,
    /// [`UndoFact::Lacks`]: a part of the recorded metadata that it lacks.
    Metadata,
    /// This undo gave it the name, for a later step.
    GivenBack,
    /// By then this undo would have given the name that the file was moved to its content again.
    Foreseen,
    /// [`UndoFact::Leads`]: what that name leads to.
    Destination,
    /// The file there has the recorded content, and no process writes to it; true if it is the moved
    /// file itself.
    Moved,
    /// The file that has the name has the metadata that undo would give it.
    InPlace,
    /// The two files are two, and equal; no process writes to either.
    Pair,
    /// [`UndoFact::Loses`]: the part of the copy that the file in its place does not have.
    Loss,
}

/// Answer to an [`UndoNeed`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum UndoFact {
    Is(bool),
    Lacks(Option<&'static str>),
    Leads(Destination),
    Loses(Option<String>),
}

/// State of the name that a file was moved to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Destination {
    Free,
    /// It leads to the copy that the journal says the move made.
    Copy,
    /// It leads to another file.
    Other,
}

/// State of the name that a step changed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum NameState {
    Free,
    /// A dry run would have made a file with the content of the step's under it by then.
    Foreseen,
    Taken(FileKind),
}

/// A step as the journal has it, and the facts about its names, as far as they were asked for.
#[derive(Clone, Debug)]
pub(super) struct UndoFacts<'s> {
    pub(super) kind: &'s StepKind,
    /// True if it took effect; `None` if its run was killed over it.
    pub(super) took_effect: Option<bool>,
    /// Run that made the copy, where the journal records one.
    pub(super) copy: Option<CopyOrigin>,
    pub(super) name: NameState,
    pub(super) known: Vec<(UndoNeed, UndoFact)>,
}

/// Next thing to do about a step.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum UndoDecision {
    /// Find this out.
    Need(UndoNeed),
    /// Leave it.
    Refuse(Skip),
    /// Nothing: the name leads to the step's file.
    Unneeded(ContentProof),
    /// Leave the copy that a move made, as this part of it is nowhere else; the file itself is in
    /// its place.
    KeepCopy(String),
    /// All that must hold does: take the step back.
    Reverse(Reversal),
}

/// Change that takes a step back.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Reversal {
    /// The file, which this undo made for a later step, gets the metadata of this one.
    GiveMetadata,
    /// The file itself gets its name again from the link that is in its place.
    PutInPlace,
    /// A file is made in the place of the link.
    Replace,
    /// A file is made under the name, which is free.
    Make,
    /// The moved file comes back.
    BringBack(MoveMethod),
    /// A file that a dry run would have made by then comes back.
    BringForeseen,
    /// The copy that the move made goes: the file itself is in its place.
    RemoveCopy,
}

/// Returns the next thing to do about a step of which these facts are known.
pub(super) fn next(facts: &UndoFacts<'_>) -> UndoDecision {
    facts.decide().unwrap_or_else(UndoDecision::Need)
}

/// A decision, or what it needs before.
type Decided = Result<UndoDecision, UndoNeed>;

fn refuse(why: Skip) -> Decided {
    Ok(UndoDecision::Refuse(why))
}

fn unneeded(content: ContentProof) -> Decided {
    Ok(UndoDecision::Unneeded(content))
}

fn reverse(by: Reversal) -> Decided {
    Ok(UndoDecision::Reverse(by))
}

impl UndoFacts<'_> {
    fn known(&self, need: UndoNeed) -> Result<&UndoFact, UndoNeed> {
        let known = self.known.iter().find(|(known, _)| *known == need);
        known.map(|(_, fact)| fact).ok_or(need)
    }

    fn is(&self, need: UndoNeed) -> Result<bool, UndoNeed> {
        Ok(*self.known(need)? == UndoFact::Is(true))
    }

    fn decide(&self) -> Decided {
        let is_taken = matches!(self.name, NameState::Taken(_));
        match self.kind {
            StepKind::Move(to) => self.moved(to),
            StepKind::Trash(to) => self.trashed(to),
            // It changed no name: reflinked files are separate files as they are.
            StepKind::Reflink => match is_taken {
                true => self.as_recorded(),
                false => refuse(Skip::Gone),
            },
            // A step that was never finished. After one that was, the name leads to another file,
            // which was given the number that became free.
            _ if is_taken && self.took_effect != Some(true) && self.is(UndoNeed::Original)? => {
                unneeded(ContentProof::Unproven)
            }
            StepKind::Hardlink | StepKind::Symlink(_) => self.linked(),
            StepKind::Delete => self.removed(),
            // Reading the journal let no other through.
            StepKind::Leftover => refuse(Skip::Changed),
        }
    }

    /// A name that became a link to the kept file.
    fn linked(&self) -> Decided {
        match self.name {
            NameState::Free => return refuse(Skip::Gone),
            NameState::Foreseen => return self.foreseen(),
            NameState::Taken(_) => {}
        }
        if !self.is(UndoNeed::Link)? {
            return self.separate();
        }
        self.is(UndoNeed::Spare)?;
        reverse(match self.is(UndoNeed::SetAside)? {
            true => Reversal::PutInPlace,
            false => Reversal::Replace,
        })
    }

    /// A name that went, whose content stays elsewhere.
    fn removed(&self) -> Decided {
        match self.name {
            NameState::Taken(_) => self.separate(),
            NameState::Foreseen => self.foreseen(),
            NameState::Free => reverse(Reversal::Make),
        }
    }

    /// A name that this undo would have given a file with the content of the step's, for a step of a
    /// later run.
    fn foreseen(&self) -> Decided {
        match *self.known(UndoNeed::Metadata)? {
            UndoFact::Lacks(Some(_)) => reverse(Reversal::GiveMetadata),
            _ => unneeded(ContentProof::Proven),
        }
    }

    /// A separate file with the recorded content and metadata: undo was run before. Any other is
    /// another program's work since, or was refused to an earlier undo; a file that this undo made
    /// for a later run's step gets the metadata of this step.
    fn separate(&self) -> Decided {
        if !self.is(UndoNeed::Content)? {
            return refuse(Skip::Changed);
        }
        match *self.known(UndoNeed::Metadata)? {
            UndoFact::Lacks(Some(what)) => match self.is(UndoNeed::GivenBack)? {
                true => reverse(Reversal::GiveMetadata),
                false => refuse(Skip::Incomplete(what)),
            },
            _ => unneeded(ContentProof::Proven),
        }
    }

    fn as_recorded(&self) -> Decided {
        match self.is(UndoNeed::Content)? {
            true => unneeded(ContentProof::Proven),
            false => refuse(Skip::Changed),
        }
    }

    fn moved(&self, to: &[u8]) -> Decided {
        // The run had found its copy at the destination: that copy is not the run's, and stays. Even
        // if it is gone or changed since, it is not needed: the kept file has the content.
        if self.copy == Some(CopyOrigin::Found) {
            return self.removed();
        }
        let NameState::Taken(kind) = self.name else {
            return self.away(to);
        };
        if kind != FileKind::File {
            return refuse(Skip::NotRegular);
        }
        let leads = match *self.known(UndoNeed::Destination)? {
            UndoFact::Leads(Destination::Copy) => Destination::Copy,
            UndoFact::Leads(Destination::Other) => Destination::Other,
            // Never moved, or back already. A number that became free may be another file's.
            _ => {
                let never = self.took_effect != Some(true) && self.is(UndoNeed::Original)?;
                return match never || self.is(UndoNeed::ProvenOriginal)? {
                    true => unneeded(ContentProof::Unproven),
                    false => self.as_recorded(),
                };
            }
        };
        // The move was killed before the original went, or undo after it was restored.
        match self.is(UndoNeed::Original)? {
            true if leads == Destination::Other => {
                return unneeded(ContentProof::Unproven);
            }
            false if !self.is(UndoNeed::InPlace)? => return refuse(Skip::DestinationExists(None)),
            _ => {}
        }
        self.is(UndoNeed::Pair)?;
        match self.known(UndoNeed::Loss)? {
            UndoFact::Loses(Some(what)) => Ok(UndoDecision::KeepCopy(what.clone())),
            _ => reverse(Reversal::RemoveCopy),
        }
    }

    /// A file that went to the trash comes out of that, as long as it is there.
    fn trashed(&self, to: &[u8]) -> Decided {
        match self.name {
            NameState::Free => {}
            NameState::Foreseen => return self.foreseen(),
            NameState::Taken(_) => {
                // Never gone, or back already: by an earlier undo, or by another program.
                let never = self.took_effect != Some(true) && self.is(UndoNeed::Original)?;
                return match never || self.is(UndoNeed::ProvenOriginal)? {
                    true => unneeded(ContentProof::Unproven),
                    false => self.as_recorded(),
                };
            }
        }
        let emptied = || refuse(Skip::TrashEmptied(to.to_vec()));
        if *self.known(UndoNeed::Destination)? == UndoFact::Leads(Destination::Free) {
            return emptied();
        }
        match self.is(UndoNeed::Moved)? {
            true => reverse(Reversal::BringBack(MoveMethod::Rename)),
            // Another file has its name there.
            false => emptied(),
        }
    }

    /// A moved file whose name is free.
    fn away(&self, to: &[u8]) -> Decided {
        if self.is(UndoNeed::Foreseen)? {
            return reverse(Reversal::BringForeseen);
        }
        if *self.known(UndoNeed::Destination)? == UndoFact::Leads(Destination::Free) {
            return refuse(Skip::Missing(to.to_vec()));
        }
        // A file that is not the moved one keeps its metadata.
        reverse(Reversal::BringBack(match self.is(UndoNeed::Moved)? {
            true => MoveMethod::Rename,
            false => MoveMethod::Copy,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAKEN: NameState = NameState::Taken(FileKind::File);

    fn step<'s>(kind: &'s StepKind, name: NameState, took_effect: Option<bool>) -> UndoFacts<'s> {
        UndoFacts {
            kind,
            took_effect,
            copy: None,
            name,
            known: Vec::new(),
        }
    }

    /// Learns these facts in this order, and no other; returns the decision.
    #[track_caller]
    fn decide(mut facts: UndoFacts<'_>, answers: &[(UndoNeed, UndoFact)]) -> UndoDecision {
        for answer in answers {
            assert_eq!(next(&facts), UndoDecision::Need(answer.0), "{facts:?}");
            facts.known.push(answer.clone());
        }
        next(&facts)
    }

    fn is(need: UndoNeed, is: bool) -> (UndoNeed, UndoFact) {
        (need, UndoFact::Is(is))
    }

    fn reversed(by: Reversal) -> UndoDecision {
        UndoDecision::Reverse(by)
    }

    fn moved() -> StepKind {
        StepKind::Move(b"/to".to_vec())
    }

    const UNNEEDED: UndoDecision = UndoDecision::Unneeded(ContentProof::Unproven);

    #[test]
    fn a_link_goes_only_if_nothing_is_lost_with_it() {
        use UndoNeed::{Link, Original, SetAside, Spare};
        for kind in [StepKind::Hardlink, StepKind::Symlink(Vec::new())] {
            for (is_aside, by) in [(true, Reversal::PutInPlace), (false, Reversal::Replace)] {
                let answers = [is(Link, true), is(Spare, true), is(SetAside, is_aside)];
                let decided = decide(step(&kind, TAKEN, Some(true)), &answers);
                assert_eq!(decided, reversed(by), "{kind:?}");
            }
            // Of a step that was not finished the name may lead to the file itself.
            for took_effect in [None, Some(false)] {
                let facts = step(&kind, TAKEN, took_effect);
                let decided = decide(facts, &[is(Original, true)]);
                assert_eq!(decided, UNNEEDED, "{kind:?}");
            }
            let gone = decide(step(&kind, NameState::Free, None), &[]);
            assert_eq!(gone, UndoDecision::Refuse(Skip::Gone), "{kind:?}");
        }
    }

    #[test]
    fn another_file_under_the_name_is_never_changed_unless_this_undo_made_it() {
        use UndoNeed::{Content, GivenBack, Link, Metadata};
        let (link, delete) = (StepKind::Hardlink, StepKind::Delete);
        for (kind, before) in [(&link, &[is(Link, false)][..]), (&delete, &[])] {
            let decide = |more: &[(UndoNeed, UndoFact)]| {
                decide(step(kind, TAKEN, Some(true)), &[before, more].concat())
            };
            let lacks = |what| (Metadata, UndoFact::Lacks(what));
            let (same, mode) = (is(Content, true), lacks(Some("mode")));
            let refused = UndoDecision::Refuse;
            assert_eq!(decide(&[is(Content, false)]), refused(Skip::Changed));
            let proven = UndoDecision::Unneeded(ContentProof::Proven);
            assert_eq!(decide(&[same.clone(), lacks(None)]), proven);
            let of_another = [same.clone(), mode.clone(), is(GivenBack, false)];
            assert_eq!(decide(&of_another), refused(Skip::Incomplete("mode")));
            let ours = [same, mode, is(GivenBack, true)];
            assert_eq!(decide(&ours), reversed(Reversal::GiveMetadata));
        }
    }

    #[test]
    fn a_file_that_would_be_there_by_then_gets_at_most_its_metadata() {
        let trash = StepKind::Trash(b"/to".to_vec());
        for kind in [StepKind::Hardlink, StepKind::Delete, trash] {
            let decide = |lacks| {
                let facts = step(&kind, NameState::Foreseen, Some(true));
                decide(facts, &[(UndoNeed::Metadata, UndoFact::Lacks(lacks))])
            };
            let proven = UndoDecision::Unneeded(ContentProof::Proven);
            assert_eq!(decide(None), proven, "{kind:?}");
            assert_eq!(decide(Some("mode")), reversed(Reversal::GiveMetadata));
        }
    }

    #[test]
    fn a_copy_goes_only_while_the_file_is_in_its_place_with_all_that_the_copy_has() {
        use UndoNeed::{Destination as To, InPlace, Loss, Original, Pair};
        let kind = moved();
        let leads = |to| (To, UndoFact::Leads(to));
        let loses = |what: Option<&str>| (Loss, UndoFact::Loses(what.map(str::to_owned)));
        let there = || step(&kind, TAKEN, Some(true));
        let place = [is(Original, false), is(InPlace, true)];
        for in_place in [&place[..], &[is(Original, true)]] {
            let before = [&[leads(Destination::Copy)], in_place, &[is(Pair, true)]].concat();
            let decide = |loses| decide(there(), &[&before[..], &[loses]].concat());
            assert_eq!(decide(loses(None)), reversed(Reversal::RemoveCopy));
            let kept = UndoDecision::KeepCopy("mode".to_owned());
            assert_eq!(decide(loses(Some("mode"))), kept);
        }
        let before = [leads(Destination::Other), is(Original, true)];
        assert_eq!(decide(there(), &before), UNNEEDED);
        for to in [Destination::Copy, Destination::Other] {
            let before = [leads(to), is(Original, false), is(InPlace, false)];
            let exists = Skip::DestinationExists(None);
            assert_eq!(decide(there(), &before), UndoDecision::Refuse(exists));
        }
    }

    #[test]
    fn a_file_comes_out_of_the_trash_while_it_is_there() {
        use UndoNeed::{Content, Destination as To, Moved, Original, ProvenOriginal};
        let kind = StepKind::Trash(b"/to".to_vec());
        let free = || step(&kind, NameState::Free, Some(true));
        let leads = |to| (To, UndoFact::Leads(to));
        let emptied = UndoDecision::Refuse(Skip::TrashEmptied(b"/to".to_vec()));
        assert_eq!(decide(free(), &[leads(Destination::Free)]), emptied);
        let other = leads(Destination::Other);
        let decided = decide(free(), &[other.clone(), is(Moved, true)]);
        assert_eq!(decided, reversed(Reversal::BringBack(MoveMethod::Rename)));
        assert_eq!(decide(free(), &[other, is(Moved, false)]), emptied);
        // Another program gave it back.
        let back = step(&kind, TAKEN, Some(true));
        assert_eq!(decide(back, &[is(ProvenOriginal, true)]), UNNEEDED);
        let killed = step(&kind, TAKEN, None);
        assert_eq!(decide(killed, &[is(Original, true)]), UNNEEDED);
        let taken = step(&kind, TAKEN, Some(true));
        let another = [is(ProvenOriginal, false), is(Content, false)];
        assert_eq!(decide(taken, &another), UndoDecision::Refuse(Skip::Changed));
    }

    #[test]
    fn a_moved_file_comes_back_to_a_free_name_alone() {
        use UndoNeed::{Destination as To, Foreseen, Moved};
        let kind = moved();
        let decide = |more: &[_]| {
            let facts = step(&kind, NameState::Free, Some(true));
            decide(facts, &[&[is(Foreseen, false)], more].concat())
        };
        let leads = |to| (To, UndoFact::Leads(to));
        let missing = UndoDecision::Refuse(Skip::Missing(b"/to".to_vec()));
        assert_eq!(decide(&[leads(Destination::Free)]), missing);
        for (is_it, how) in [(true, MoveMethod::Rename), (false, MoveMethod::Copy)] {
            let decided = decide(&[leads(Destination::Copy), is(Moved, is_it)]);
            assert_eq!(decided, reversed(Reversal::BringBack(how)));
        }
        // A copy that the run had only found is left alone.
        let found = UndoFacts {
            copy: Some(CopyOrigin::Found),
            ..step(&kind, NameState::Free, Some(true))
        };
        assert_eq!(next(&found), reversed(Reversal::Make));
    }
}
