//! The decision about the source of an entry: a pure function of the order and of facts. Facts that
//! only an opened file can tell are asked for where it depends on them, from cheap to dear.

use crate::results::EntryState;

/// Parts of the options that the decision depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct RemovalOrder {
    /// True if a copy that lacks metadata is enough.
    pub(super) allow_lossy: bool,
}

/// State of a source, when it was opened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum SourceNow {
    /// As it was walked, with so many names.
    AsWalked {
        names: u64,
    },
    /// Another file, or in another state.
    Changed,
    Gone,
}

/// Answer to the question for processes that have a source open for writing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Writers {
    /// None, and from here on one that comes is noticed.
    None,
    Some,
    /// They cannot be asked for here.
    Unknown,
}

/// What the destination's name leads to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum CopyNow {
    /// The copy that this job made, with the bytes that it was made of.
    Proven,
    /// Another file, or the copy in another state.
    Changed,
    Gone,
    /// It has other bytes than were written.
    Differs,
}

/// Fact that has to be looked up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum RemovalFact {
    Source,
    Writers,
    Copy,
}

/// Facts about a source and its copy; `None` where nothing was looked up.
#[derive(Clone, Copy, Debug)]
pub(super) struct RemovalFacts {
    /// Outcome of its copy.
    pub(super) state: EntryState,
    /// True if the copy lacks metadata.
    pub(super) is_lossy: bool,
    /// Number of its names among the sources.
    pub(super) names: u64,
    /// True for a regular file, which has content that can change.
    pub(super) is_file: bool,
    /// True if the copy is known to have been made of the file in the state in which it was walked.
    pub(super) is_of_walked: bool,
    pub(super) source: Option<SourceNow>,
    pub(super) writers: Option<Writers>,
    pub(super) copy: Option<CopyNow>,
}

/// Reason for which a source stays.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Stays {
    /// It has no copy, which was reported.
    NotCopied,
    /// Something else has its name at the destination, and was left as asked.
    LeftThere,
    Lossy,
    Changed,
    Gone,
    NamesOutside,
    OpenForWriting,
    CopyChanged,
    CopyGone,
    CopyDiffers,
    /// Its private name cannot be recorded.
    Unrecorded,
    /// A directory in which something is new.
    NotEmpty,
    /// A directory in which something stays.
    NotEmptied,
    /// A directory that is not empty, of which something was left out.
    LeftOut,
}

impl Stays {
    /// Returns the reason in words; `None` where something else was reported that says it.
    pub(super) const fn text(self) -> Option<&'static str> {
        Some(match self {
            Stays::NotCopied | Stays::NotEmptied | Stays::LeftOut => return None,
            Stays::LeftThere => "stays: the existing entry at the destination was left as it is",
            Stays::Lossy => "stays: its copy lacks some of its metadata",
            Stays::Changed => "stays: it was changed since it was copied",
            Stays::Gone => "no longer exists: another program has moved or removed it",
            Stays::NamesOutside => "stays: it has other names than those that are moved",
            Stays::OpenForWriting => "stays: it is open for writing",
            Stays::CopyChanged => "stays: its copy was changed since",
            Stays::CopyGone => "stays: its copy is gone",
            Stays::CopyDiffers => "stays: its copy has other bytes than were written",
            Stays::Unrecorded => "stays: there is no journal that could record its removal",
            Stays::NotEmpty => "stays: something is in it that was not there when it was read",
        })
    }

    /// True if another run may remove it without being asked for anything else.
    pub(super) const fn is_retried(self) -> bool {
        !matches!(
            self,
            Stays::NotCopied | Stays::LeftThere | Stays::NotEmptied | Stays::LeftOut
        )
    }
}

/// Next step of a source.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum RemovalStep {
    /// It is set aside, looked at once more, and removed. `compares`: its bytes are read again by
    /// then, since nothing else shows that they are still those of the copy.
    Remove {
        compares: bool,
    },
    Stay(Stays),
    Need(RemovalFact),
}

/// Decides about a source.
pub(super) fn next(order: &RemovalOrder, facts: &RemovalFacts) -> RemovalStep {
    decide(order, facts).unwrap_or_else(RemovalStep::Need)
}

fn decide(order: &RemovalOrder, facts: &RemovalFacts) -> Result<RemovalStep, RemovalFact> {
    let stay = |why| Ok(RemovalStep::Stay(why));
    match facts.state {
        EntryState::Copied | EntryState::Before => {}
        EntryState::Skipped => return stay(Stays::LeftThere),
        EntryState::Failed | EntryState::Left => return stay(Stays::NotCopied),
    }
    if facts.is_lossy && !order.allow_lossy {
        return stay(Stays::Lossy);
    }
    match facts.source.ok_or(RemovalFact::Source)? {
        SourceNow::AsWalked { names } if names > facts.names => return stay(Stays::NamesOutside),
        SourceNow::AsWalked { .. } => {}
        SourceNow::Changed => return stay(Stays::Changed),
        SourceNow::Gone => return stay(Stays::Gone),
    }
    let mut compares = false;
    if facts.is_file {
        match facts.writers.ok_or(RemovalFact::Writers)? {
            Writers::Some => return stay(Stays::OpenForWriting),
            Writers::Unknown => compares = true,
            Writers::None => {}
        }
        compares |= !facts.is_of_walked;
    }
    match facts.copy.ok_or(RemovalFact::Copy)? {
        CopyNow::Proven => Ok(RemovalStep::Remove { compares }),
        CopyNow::Changed => stay(Stays::CopyChanged),
        CopyNow::Gone => stay(Stays::CopyGone),
        CopyNow::Differs => stay(Stays::CopyDiffers),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDER: RemovalOrder = RemovalOrder { allow_lossy: false };

    fn facts() -> RemovalFacts {
        RemovalFacts {
            state: EntryState::Copied,
            is_lossy: false,
            names: 1,
            is_file: true,
            is_of_walked: true,
            source: Some(SourceNow::AsWalked { names: 1 }),
            writers: Some(Writers::None),
            copy: Some(CopyNow::Proven),
        }
    }

    #[test]
    fn only_what_this_job_has_made_authorises_a_removal() {
        let removed = RemovalStep::Remove { compares: false };
        for (state, expected) in [
            (EntryState::Copied, removed),
            (EntryState::Before, removed),
            (EntryState::Skipped, RemovalStep::Stay(Stays::LeftThere)),
            (EntryState::Failed, RemovalStep::Stay(Stays::NotCopied)),
            (EntryState::Left, RemovalStep::Stay(Stays::NotCopied)),
        ] {
            assert_eq!(next(&ORDER, &RemovalFacts { state, ..facts() }), expected);
        }
    }

    #[test]
    fn every_doubt_keeps_the_source() {
        let stays = |facts: RemovalFacts| match next(&ORDER, &facts) {
            RemovalStep::Stay(why) => why,
            other => panic!("{other:?}: {facts:?}"),
        };
        let is_lossy = RemovalFacts {
            is_lossy: true,
            ..facts()
        };
        assert_eq!(stays(is_lossy), Stays::Lossy);
        let allow_lossy = true;
        let removed = next(&RemovalOrder { allow_lossy }, &is_lossy);
        assert_eq!(removed, RemovalStep::Remove { compares: false });
        for (source, why) in [
            (SourceNow::AsWalked { names: 2 }, Stays::NamesOutside),
            (SourceNow::Changed, Stays::Changed),
            (SourceNow::Gone, Stays::Gone),
        ] {
            let source = Some(source);
            assert_eq!(stays(RemovalFacts { source, ..facts() }), why);
        }
        let writers = Some(Writers::Some);
        assert_eq!(
            stays(RemovalFacts { writers, ..facts() }),
            Stays::OpenForWriting
        );
        for (copy, why) in [
            (CopyNow::Changed, Stays::CopyChanged),
            (CopyNow::Gone, Stays::CopyGone),
            (CopyNow::Differs, Stays::CopyDiffers),
        ] {
            let copy = Some(copy);
            assert_eq!(stays(RemovalFacts { copy, ..facts() }), why);
        }
        assert!(Stays::LeftThere.text().is_some() && !Stays::LeftThere.is_retried());
        for why in [Stays::Lossy, Stays::Changed, Stays::CopyDiffers] {
            assert!(why.text().is_some() && why.is_retried());
        }
    }

    #[test]
    fn bytes_are_read_again_where_nothing_else_shows_them() {
        let compares = |facts: RemovalFacts| match next(&ORDER, &facts) {
            RemovalStep::Remove { compares } => compares,
            other => panic!("{other:?}: {facts:?}"),
        };
        let writers = Some(Writers::Unknown);
        let is_of_walked = false;
        assert!(!compares(facts()));
        assert!(compares(RemovalFacts { writers, ..facts() }));
        assert!(compares(RemovalFacts {
            is_of_walked,
            ..facts()
        }));
        let link = RemovalFacts {
            is_file: false,
            writers: None,
            ..facts()
        };
        assert!(!compares(link));
    }

    #[test]
    fn what_is_dear_is_asked_for_last() {
        let mut facts = RemovalFacts {
            source: None,
            writers: None,
            copy: None,
            ..facts()
        };
        let mut asked = Vec::new();
        while let RemovalStep::Need(fact) = next(&ORDER, &facts) {
            asked.push(fact);
            match fact {
                RemovalFact::Source => facts.source = Some(SourceNow::AsWalked { names: 1 }),
                RemovalFact::Writers => facts.writers = Some(Writers::None),
                RemovalFact::Copy => facts.copy = Some(CopyNow::Proven),
            }
        }
        let all = [RemovalFact::Source, RemovalFact::Writers, RemovalFact::Copy];
        assert_eq!(asked, all);
        facts.state = EntryState::Skipped;
        (facts.source, facts.copy) = (None, None);
        assert_eq!(next(&ORDER, &facts), RemovalStep::Stay(Stays::LeftThere));
    }
}
