//! The decision about one target: what has to be known before it may be changed, in which order,
//! and what follows from it. Pure: whoever runs a step asks [`next`], looks for what it needs, and
//! asks again. A dry run and a real one are led through the same looks.

use rustix::io::Errno;

use crate::options::{Force, OnMetadataDiff};
use crate::skip::Skip;
use crate::step::StepKind;

/// Knowledge that a step needs, from cheap to dear. Looks that leave nothing to decide refuse the
/// step themselves, and give [`Fact::Holds`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Need {
    /// The kept file is in the state that it was found in.
    KeptUnchanged,
    /// [`Fact::Is`]: a name of the one would lie in another mount than the other.
    Apart,
    /// [`Fact::Encryption`], and the first flag of `chattr` that differs.
    Flags,
    /// [`Fact::Differs`]: the first part of the metadata that does.
    Metadata,
    /// [`Fact::Names`] of the kept file.
    Names,
    /// There are blocks to share, which are not shared already.
    Blocks,
    /// Numbers are enough to tell the two apart.
    Distinct,
    /// They are not two names of one file that are numbered differently.
    Numbered,
    /// A link leads from the one to the other.
    LinkText,
    /// Nothing is in the way where the file goes.
    Destination,
    /// The file system can be written to.
    Writable,
    /// The kernel permits the step to this process.
    Permitted,
    /// [`Fact::Is`]: linked to, the kept file would be copied out of a lower layer.
    Below,
    /// The file system can do such steps.
    Able,
    /// The files are stored so that they can share blocks.
    Shareable,
    /// The bytes are the same, and both files unchanged; nobody writes to either meanwhile.
    Content,
}

/// Answer to a [`Need`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Fact {
    Holds,
    Is(bool),
    Encryption {
        is_same: bool,
        flag: Option<&'static str>,
    },
    Differs(Option<&'static str>),
    Names {
        has: u64,
        most: u64,
    },
}

/// Facts that opening a target shows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Opened {
    /// It is the kept file itself.
    pub(crate) is_kept_file: bool,
    /// Something is mounted under its name.
    pub(crate) is_mounted: bool,
    /// It shares the kept file's blocks since it was dealt with under another name.
    pub(crate) is_reflinked: bool,
}

/// Facts about a target, as far as they were asked for.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    opened: Opened,
    known: Vec<(Need, Fact)>,
}

impl Facts {
    pub(crate) fn of(opened: Opened) -> Facts {
        let known = Vec::new();
        Facts { opened, known }
    }

    pub(crate) fn learn(&mut self, need: Need, fact: Fact) {
        self.known.push((need, fact));
    }

    fn known(&self, need: Need) -> Option<Fact> {
        let known = self.known.iter().find(|(known, _)| *known == need);
        known.map(|(_, fact)| *fact)
    }
}

/// StepDecision thing to do about a target.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum StepDecision {
    /// Find this out.
    Need(Need),
    /// Leave it.
    Skip(Skip),
    /// Leave it, and keep it too for those that follow: the kept file can get no more names.
    Keep(Skip),
    /// All that must hold does: do it.
    Step,
}

/// Kind of step and how strict it is to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepRules<'k> {
    pub(crate) kind: &'k StepKind,
    pub(crate) on_metadata_diff: OnMetadataDiff,
    pub(crate) force: Force,
}

impl StepRules<'_> {
    /// Returns what this step needs, in order.
    fn needs(&self) -> impl Iterator<Item = Need> {
        let of_kind: &[Need] = match self.kind {
            StepKind::Hardlink => &[Need::Flags, Need::Metadata, Need::Names],
            StepKind::Reflink => &[Need::Blocks],
            StepKind::Symlink(_) => &[
                Need::Flags,
                Need::Metadata,
                Need::Distinct,
                Need::Numbered,
                Need::LinkText,
            ],
            StepKind::Delete => &[Need::Distinct, Need::Numbered],
            StepKind::Move(_) | StepKind::Trash(_) => {
                &[Need::Distinct, Need::Numbered, Need::Destination]
            }
            StepKind::Leftover => &[],
        };
        let is_reflink = *self.kind == StepKind::Reflink;
        let (strict, forced) = (
            self.on_metadata_diff == OnMetadataDiff::Refuse,
            self.force == Force::Yes,
        );
        let before = [Need::KeptUnchanged, Need::Apart].into_iter();
        let behind = [Need::Writable, Need::Permitted, Need::Below, Need::Able];
        before
            .chain(of_kind.iter().copied())
            .chain(behind)
            .chain([Need::Shareable, Need::Content])
            .filter(move |need| match need {
                Need::Metadata => strict,
                Need::Distinct => !forced,
                Need::Shareable => is_reflink,
                _ => true,
            })
    }

    /// Returns the reason against the step that lies in this answer.
    fn refusal(&self, need: Need, fact: Fact) -> Option<Skip> {
        let strict = self.on_metadata_diff == OnMetadataDiff::Refuse;
        match (need, fact) {
            (Need::Apart, Fact::Is(true)) if *self.kind == StepKind::Hardlink => {
                Some(Skip::System {
                    op: "link",
                    errno: Errno::XDEV.raw_os_error(),
                })
            }
            (_, Fact::Encryption { is_same: false, .. }) => Some(Skip::EncryptionDiffers),
            (_, Fact::Encryption { flag, .. }) if strict => flag.map(Skip::MetadataDiffers),
            (_, Fact::Differs(what)) => what.map(Skip::MetadataDiffers),
            _ => None,
        }
    }
}

/// Returns the next thing to do about a target of which these facts are known.
pub(crate) fn next(rules: &StepRules<'_>, facts: &Facts) -> StepDecision {
    let Opened {
        is_kept_file,
        is_mounted,
        is_reflinked,
    } = facts.opened;
    if is_kept_file {
        return StepDecision::Skip(Skip::AlreadyLinked);
    }
    if is_mounted {
        return StepDecision::Skip(Skip::MountPoint);
    }
    if *rules.kind == StepKind::Reflink && is_reflinked {
        return StepDecision::Skip(Skip::AlreadyShared);
    }
    for need in rules.needs() {
        match facts.known(need) {
            None => return StepDecision::Need(need),
            Some(fact) => {
                if let Some(skip) = rules.refusal(need, fact) {
                    return StepDecision::Skip(skip);
                }
            }
        }
    }
    // Only a file with the same content takes over.
    if facts.known(Need::Below) == Some(Fact::Is(true)) {
        return StepDecision::Keep(Skip::KeeperBelow);
    }
    match facts.known(Need::Names) {
        Some(Fact::Names { has, most }) if has >= most => StepDecision::Keep(Skip::NewKeeper),
        _ => StepDecision::Step,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers that let every step happen, but for those given.
    fn answer(need: Need, others: &[(Need, Fact)]) -> Fact {
        let other = others.iter().find(|(of, _)| *of == need);
        match (other, need) {
            (Some((_, fact)), _) => *fact,
            (None, Need::Apart | Need::Below) => Fact::Is(false),
            (None, Need::Flags) => flags(true, None),
            (None, Need::Metadata) => Fact::Differs(None),
            (None, Need::Names) => Fact::Names { has: 1, most: 2 },
            (None, _) => Fact::Holds,
        }
    }

    fn flags(is_same: bool, flag: Option<&'static str>) -> Fact {
        Fact::Encryption { is_same, flag }
    }

    /// Goes on until there is a decision; returns what was needed on the way, too.
    fn decide(rules: &StepRules<'_>, others: &[(Need, Fact)]) -> (Vec<Need>, StepDecision) {
        let (mut facts, mut needed) = (Facts::of(Opened::default()), Vec::new());
        loop {
            match next(rules, &facts) {
                StepDecision::Need(need) => {
                    assert!(!needed.contains(&need), "{need:?} is asked for twice");
                    needed.push(need);
                    facts.learn(need, answer(need, others));
                }
                decided => return (needed, decided),
            }
        }
    }

    fn strict(kind: &StepKind) -> StepRules<'_> {
        StepRules {
            kind,
            on_metadata_diff: OnMetadataDiff::Refuse,
            force: Force::No,
        }
    }

    fn kinds() -> [StepKind; 7] {
        [
            StepKind::Hardlink,
            StepKind::Reflink,
            StepKind::Symlink(Vec::new()),
            StepKind::Delete,
            StepKind::Move(b"to".to_vec()),
            StepKind::Trash(Vec::new()),
            StepKind::Leftover,
        ]
    }

    #[test]
    fn no_step_happens_before_the_bytes_were_compared() {
        for kind in kinds() {
            for on_metadata_diff in [OnMetadataDiff::Refuse, OnMetadataDiff::Ignore] {
                for force in [Force::No, Force::Yes] {
                    let rules = StepRules {
                        kind: &kind,
                        on_metadata_diff,
                        force,
                    };
                    let (needed, decided) = decide(&rules, &[]);
                    assert_eq!(decided, StepDecision::Step, "{kind:?}");
                    assert_eq!(needed[0], Need::KeptUnchanged);
                    assert_eq!(*needed.last().unwrap(), Need::Content);
                    // The only name of a file is given up only where files can be told apart.
                    let gives_up = matches!(
                        kind,
                        StepKind::Symlink(_)
                            | StepKind::Delete
                            | StepKind::Move(_)
                            | StepKind::Trash(_)
                    );
                    assert_eq!(needed.contains(&Need::Numbered), gives_up);
                    assert_eq!(
                        needed.contains(&Need::Distinct),
                        gives_up && force == Force::No
                    );
                }
            }
        }
    }

    #[test]
    fn what_is_cheap_to_find_is_looked_for_first() {
        let (needed, _) = decide(&strict(&StepKind::Hardlink), &[]);
        use Need::*;
        let expected = [
            KeptUnchanged,
            Apart,
            Flags,
            Metadata,
            Names,
            Writable,
            Permitted,
            Below,
            Able,
            Content,
        ];
        assert_eq!(needed, expected);
    }

    #[test]
    fn facts_refuse_steps() {
        let moved = StepKind::Move(b"to".to_vec());
        let xdev = Skip::System {
            op: "link",
            errno: Errno::XDEV.raw_os_error(),
        };
        let differs = Skip::MetadataDiffers;
        let (apart, below) = ((Need::Apart, Fact::Is(true)), (Need::Below, Fact::Is(true)));
        let full = (Need::Names, Fact::Names { has: 2, most: 2 });
        let owner = (Need::Metadata, Fact::Differs(Some("owner")));
        let flag = (Need::Flags, flags(true, Some("flag")));
        let keys = (Need::Flags, flags(false, Some("flag")));
        for (kind, fact, expected) in [
            (StepKind::Hardlink, apart, StepDecision::Skip(xdev)),
            (moved.clone(), apart, StepDecision::Step),
            (StepKind::Delete, apart, StepDecision::Step),
            (
                StepKind::Hardlink,
                owner,
                StepDecision::Skip(differs("owner")),
            ),
            (
                StepKind::Hardlink,
                flag,
                StepDecision::Skip(differs("flag")),
            ),
            (
                StepKind::Hardlink,
                keys,
                StepDecision::Skip(Skip::EncryptionDiffers),
            ),
            (
                StepKind::Symlink(Vec::new()),
                keys,
                StepDecision::Skip(Skip::EncryptionDiffers),
            ),
            // They go by content.
            (StepKind::Delete, owner, StepDecision::Step),
            (moved, owner, StepDecision::Step),
            (StepKind::Reflink, owner, StepDecision::Step),
            (
                StepKind::Hardlink,
                full,
                StepDecision::Keep(Skip::NewKeeper),
            ),
            (
                StepKind::Hardlink,
                below,
                StepDecision::Keep(Skip::KeeperBelow),
            ),
        ] {
            let decided = decide(&strict(&kind), &[fact]).1;
            assert_eq!(decided, expected, "{kind:?} {fact:?}");
        }
        // A kept file that has all its names and would be copied up is in a lower layer first.
        let decided = decide(&strict(&StepKind::Hardlink), &[full, below]).1;
        assert_eq!(decided, StepDecision::Keep(Skip::KeeperBelow));
    }

    #[test]
    fn metadata_may_be_ignored_and_encryption_may_not() {
        let rules = StepRules {
            on_metadata_diff: OnMetadataDiff::Ignore,
            ..strict(&StepKind::Hardlink)
        };
        let flag = (Need::Flags, flags(true, Some("flag")));
        let (needed, decided) = decide(&rules, &[flag]);
        assert_eq!(decided, StepDecision::Step);
        assert!(!needed.contains(&Need::Metadata));
        let keys = (Need::Flags, flags(false, None));
        assert_eq!(
            decide(&rules, &[keys]).1,
            StepDecision::Skip(Skip::EncryptionDiffers)
        );
    }

    #[test]
    fn what_an_opened_file_shows_ends_it_at_once() {
        let seen = |is_kept_file, is_mounted, is_reflinked| {
            Facts::of(Opened {
                is_kept_file,
                is_mounted,
                is_reflinked,
            })
        };
        for kind in kinds() {
            let rules = strict(&kind);
            for (facts, expected) in [
                (
                    seen(true, true, true),
                    Some(StepDecision::Skip(Skip::AlreadyLinked)),
                ),
                (
                    seen(false, true, true),
                    Some(StepDecision::Skip(Skip::MountPoint)),
                ),
                (
                    seen(false, false, true),
                    (kind == StepKind::Reflink).then_some(StepDecision::Skip(Skip::AlreadyShared)),
                ),
                (seen(false, false, false), None),
            ] {
                let expected = expected.unwrap_or(StepDecision::Need(Need::KeptUnchanged));
                assert_eq!(next(&rules, &facts), expected, "{kind:?} {facts:?}");
            }
        }
    }
}
