//! The decision about one entry: a pure function of what is asked for and of facts. EntryFacts that only
//! an opened file can tell are asked for where it depends on them. A dry run and the copy decide by
//! the same function.

use bc_digest::Digest;
use bc_walk::FileKind;

use crate::event::Why;
use crate::options::OnConflict;
use crate::results::Proof;
use crate::resume::known::NamedRecord;
use crate::resume::stamp::LINKS;

/// Parts of the options, and of the run's history, that decisions depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopyOrder {
    pub(crate) on_conflict: OnConflict,
    /// True if a copy that lacks metadata counts as failed.
    pub(crate) strict: bool,
    /// See [`given`](crate::resume::stamp::given).
    pub(crate) given: u64,
    /// True if this run resumes an earlier one.
    pub(crate) goes_on: bool,
    /// True if sources are removed in the end: what an earlier run copied may be all that is left of
    /// them.
    pub(crate) moves: bool,
    /// True if what the earlier run did is done again.
    pub(crate) is_anew: bool,
    /// True if a power cut may have taken records, or data, of the earlier run.
    pub(crate) is_doubtful: bool,
}

/// Kind of an entry, as far as its decision differs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum EntryClass {
    File,
    /// A link, pipe, socket or device: it has no content but what it is.
    Special,
    /// A further name of an entry that was decided about before.
    FurtherName,
}

/// File that has the name of an entry.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Occupant {
    pub(crate) is_dir: bool,
    /// True if it is the source.
    pub(crate) is_source: bool,
    /// True if it is the copy that the entry is to be a further name of.
    pub(crate) is_first: bool,
    /// True if the directory above all was made by this run, so that another entry has put it there.
    pub(crate) is_in_new_root: bool,
    /// True if it was modified when its source was, or that does not matter.
    pub(crate) is_of_now: bool,
    /// True if it was made during one of the earlier runs.
    pub(crate) is_ours: bool,
    /// True if the journal has a record of a file with this name.
    pub(crate) is_named: bool,
    /// True if the journal says that it was begun.
    pub(crate) is_begun: bool,
    /// True if a record says that this very file was made.
    pub(crate) is_made: bool,
}

impl Occupant {
    /// True if a power cut may have left it as part of a copy.
    fn may_be_torn(&self, order: &CopyOrder) -> bool {
        order.is_doubtful && (self.is_ours || self.is_made)
    }
}

/// Outcome of comparing an existing file with a source.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Compared {
    /// It has the bytes of the source; with their digest, if one is wanted.
    Same(Option<Digest>),
    /// It has nothing that the source lacks: some of its bytes, and zeros.
    Less,
    Other,
}

/// Fact that has to be looked up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Fact {
    There,
    Record,
    /// `is_torn`: true if a power cut may have left it as part of a copy.
    Content {
        is_torn: bool,
    },
    Given,
    Recorded,
    Newer,
}

/// Facts about an entry; `None` where nothing was looked up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryFacts {
    pub(crate) subject: EntryClass,
    /// File that has the name, if there is one.
    pub(crate) there: Option<Option<Occupant>>,
    /// The journal's record that it is proven to be of, if there is one.
    pub(crate) record: Option<Option<NamedRecord>>,
    pub(crate) content: Option<Compared>,
    /// True if it has the metadata that it would be given.
    pub(crate) is_given: Option<bool>,
    /// Digest and proof of an earlier copy's manifest, if it is proven to be the one recorded there.
    pub(crate) recorded: Option<Option<(Option<Digest>, Proof)>>,
    /// True if the source was modified later.
    pub(crate) is_newer: Option<bool>,
}

impl EntryFacts {
    pub(crate) fn new(subject: EntryClass) -> EntryFacts {
        EntryFacts {
            subject,
            there: None,
            record: None,
            content: None,
            is_given: None,
            recorded: None,
            is_newer: None,
        }
    }

    fn content(&self, is_torn: bool) -> Result<Compared, Fact> {
        self.content.ok_or(Fact::Content { is_torn })
    }

    fn is_given(&self) -> Result<bool, Fact> {
        self.is_given.ok_or(Fact::Given)
    }
}

/// Next step of an entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum NextStep {
    /// It is made where no name is, or was.
    Make,
    /// It is made in the place of whatever has its name.
    MakeOverAny,
    /// It is made in the place of what was looked at, and of nothing else.
    MakeOver,
    Skip(SkippedEntry),
    Refuse(NameTaken),
    Need(Fact),
}

/// An entry of which nothing is made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct SkippedEntry {
    pub(crate) why: Why,
    /// Digest of the existing file, where it is known.
    pub(crate) digest: Option<Digest>,
    pub(crate) proof: Proof,
    /// True if the copy lacks metadata of its source.
    pub(crate) lacks: bool,
    /// True if its bytes proved it to be the copy of an earlier run, not its recorded state.
    pub(crate) is_by_bytes: bool,
}

impl SkippedEntry {
    fn new(why: Why, digest: Option<Digest>) -> SkippedEntry {
        SkippedEntry {
            why,
            digest,
            proof: Proof::None,
            lacks: false,
            is_by_bytes: false,
        }
    }

    /// Returns the outcome of an entry that an earlier run, or this one, has made.
    pub(crate) fn done(digest: Option<Digest>) -> SkippedEntry {
        SkippedEntry::new(Why::Done, digest)
    }
}

/// Reason for which an entry fails.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum NameTaken {
    /// The file with the name is the source.
    IsSource,
    IsDir,
    Exists,
}

/// Decides about an entry.
pub(crate) fn next(order: &CopyOrder, facts: &EntryFacts) -> NextStep {
    decide(order, facts).unwrap_or_else(NextStep::Need)
}

fn decide(order: &CopyOrder, facts: &EntryFacts) -> Result<NextStep, Fact> {
    let Some(there) = facts.there.ok_or(Fact::There)? else {
        return Ok(NextStep::Make);
    };
    if there.is_first {
        return Ok(NextStep::Skip(SkippedEntry::done(None)));
    }
    if there.is_source && order.moves && there.is_begun {
        // An earlier run has given it this name, and was to take the other one away.
        return Ok(NextStep::Skip(SkippedEntry::done(None)));
    }
    if there.is_source {
        return Ok(NextStep::Refuse(NameTaken::IsSource));
    }
    let of_earlier_run = match facts.subject {
        EntryClass::Special => special_of_earlier_run(order, facts, &there)?,
        EntryClass::File | EntryClass::FurtherName => file_of_earlier_run(order, facts, &there)?,
    };
    if let Some(next) = of_earlier_run {
        return Ok(next);
    }
    // Occupant is no content that could be another one.
    let may_be_recorded = facts.subject != EntryClass::Special
        || there.is_of_now && matches!(facts.content(false)?, Compared::Same(_));
    // A name that is to be one of several is replaced by a link, as whoever replaces wants it.
    let is_to_be_linked =
        facts.subject == EntryClass::FurtherName && order.on_conflict != OnConflict::Fail;
    if order.on_conflict.is_to_have_all()
        && !is_to_be_linked
        && may_be_recorded
        && let Some((digest, proof)) = facts.recorded.ok_or(Fact::Recorded)?
    {
        let skipped = SkippedEntry::done(digest);
        return Ok(NextStep::Skip(SkippedEntry { proof, ..skipped }));
    }
    by_rule(order, facts, &there)
}

/// Decides about a file that one of the earlier runs has copied, or may have.
fn file_of_earlier_run(
    order: &CopyOrder,
    facts: &EntryFacts,
    there: &Occupant,
) -> Result<Option<NextStep>, Fact> {
    let record = facts.record.ok_or(Fact::Record)?;
    let is_foreign = record.is_some_and(|record| record.is_foreign);
    if let Some(record) = record.filter(|record| !record.is_foreign) {
        // It may be the only copy of a source that was removed, by the move or by another program, and
        // whose name another file has now: what that one lacks is the user's. One that was never
        // removed was edited since. Equal bytes lose nothing: a file system that numbers its files again
        // when it is mounted has every source look like another file.
        let is_left = order.moves
            && !record.is_kept
            && (record.is_of_other || record.unsettled)
            && !matches!(facts.content(false)?, Compared::Same(_));
        if is_left {
            return Ok(None);
        }
        return of_record(order, facts, &record).map(Some);
    }
    if there.is_in_new_root {
        return Ok(Some(NextStep::Make));
    }
    // A power cut takes records with it, not always the names that were given after them; on a full
    // disk names can be given when records cannot be written any more; and some file systems number
    // their files again at any time.
    let is_known = there.is_ours || there.is_named;
    if !order.goes_on || is_foreign || !(order.is_doubtful || is_known) {
        return Ok(None);
    }
    Ok(match facts.content(there.may_be_torn(order))? {
        // What is merely equal may be the source, seen by another way: no removal follows from it.
        Compared::Same(_) if order.moves => there.is_ours.then_some(NextStep::MakeOver),
        // What the copy cannot be known to have made has to have all that it would be given.
        Compared::Same(digest) if is_known || facts.is_given()? => {
            Some(NextStep::Skip(SkippedEntry::done(digest)))
        }
        Compared::Less => Some(NextStep::MakeOver),
        Compared::Same(_) | Compared::Other => None,
    })
}

/// Decides about a file that is proven to be that of a record.
fn of_record(
    order: &CopyOrder,
    facts: &EntryFacts,
    record: &NamedRecord,
) -> Result<NextStep, Fact> {
    // A copy of its own, of a run that had nothing to link it to.
    let is_alone = facts.subject == EntryClass::FurtherName;
    // What it lacks is to be given to it now, or counts as a failure.
    let lacks_more = record
        .given
        .is_some_and(|given| order.given & !given & !LINKS != 0);
    if is_alone || record.outdated || record.lacks && (order.strict || order.moves) || lacks_more {
        return Ok(NextStep::MakeOver);
    }
    let digest = match record.unsettled {
        false => record.digest,
        true => match facts.content(false)? {
            Compared::Same(digest) => digest,
            Compared::Less | Compared::Other => return Ok(NextStep::MakeOver),
        },
    };
    let is_by_bytes = !record.is_proven;
    if (record.is_set_aside || order.moves && is_by_bytes) && !facts.is_given()? {
        return Ok(NextStep::MakeOver);
    }
    Ok(NextStep::Skip(SkippedEntry {
        lacks: record.lacks,
        is_by_bytes,
        ..SkippedEntry::done(digest)
    }))
}

/// Decides about an entry without content that an earlier run may have made: it tells what it begins
/// before it makes it, but a power cut may take that with it.
fn special_of_earlier_run(
    order: &CopyOrder,
    facts: &EntryFacts,
    there: &Occupant,
) -> Result<Option<NextStep>, Fact> {
    let goes_on = order.goes_on && !order.is_anew;
    let is_begun = goes_on && there.is_begun;
    let may_be_ours = is_begun || goes_on && order.is_doubtful;
    if !may_be_ours || !matches!(facts.content(false)?, Compared::Same(_)) {
        return Ok(None);
    }
    if order.moves && !is_begun {
        // What is merely equal may be the source, seen by another way.
        return Ok(there.is_ours.then_some(NextStep::MakeOver));
    }
    if there.is_of_now && facts.is_given()? {
        return Ok(Some(NextStep::Skip(SkippedEntry::done(None))));
    }
    // That of an earlier run, which lacked something, or whose source was made anew since.
    Ok(is_begun.then_some(NextStep::MakeOver))
}

fn skip(why: Why, digest: Option<Digest>) -> NextStep {
    NextStep::Skip(SkippedEntry::new(why, digest))
}

/// Decides about what is the user's.
fn by_rule(order: &CopyOrder, facts: &EntryFacts, there: &Occupant) -> Result<NextStep, Fact> {
    if there.is_dir {
        return Ok(NextStep::Refuse(NameTaken::IsDir));
    }
    Ok(match order.on_conflict {
        OnConflict::Fail => NextStep::Refuse(NameTaken::Exists),
        OnConflict::Skip => skip(Why::Exists, None),
        OnConflict::Update => match facts.is_newer.ok_or(Fact::Newer)? {
            true => NextStep::MakeOver,
            false => skip(Why::NotNewer, None),
        },
        OnConflict::Verify => match facts.content(false)? {
            Compared::Same(digest) => skip(Why::Same, digest),
            Compared::Less | Compared::Other => NextStep::MakeOver,
        },
        OnConflict::Replace => NextStep::MakeOverAny,
    })
}

/// Returns false if a directory is there already. `there`: kind of what has its name.
///
/// # Errors
/// Fails with the reason for which it cannot be a directory of the copy.
pub(crate) fn makes_dir(
    there: Option<FileKind>,
    is_in_new_root: bool,
) -> Result<bool, &'static str> {
    match there {
        None => Ok(true),
        Some(FileKind::Dir) if is_in_new_root => {
            Err("is there already: another name of the source is the same here")
        }
        Some(FileKind::Dir) => Ok(false),
        Some(FileKind::Symlink) => Err("is a symbolic link there, which is not followed"),
        Some(_) => Err("is no directory there"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: Option<Digest> = None;

    const RECORD: NamedRecord = NamedRecord {
        digest: DIGEST,
        content: None,
        size: 1,
        is_proven: true,
        outdated: false,
        is_of_other: false,
        unsettled: false,
        is_set_aside: false,
        is_foreign: false,
        source_ino: 0,
        born_until_ns: 0,
        is_kept: false,
        lacks: false,
        given: None,
    };

    fn order(on_conflict: OnConflict) -> CopyOrder {
        CopyOrder {
            on_conflict,
            strict: false,
            given: 0,
            goes_on: false,
            moves: false,
            is_anew: false,
            is_doubtful: false,
        }
    }

    /// An order to go on after a power cut.
    fn after_a_cut(on_conflict: OnConflict) -> CopyOrder {
        CopyOrder {
            goes_on: true,
            is_doubtful: true,
            ..order(on_conflict)
        }
    }

    /// What has the name, all of which is looked up; each case changes some of it.
    fn facts(subject: EntryClass, there: Occupant) -> EntryFacts {
        EntryFacts {
            there: Some(Some(there)),
            record: Some(None),
            content: Some(Compared::Other),
            is_given: Some(false),
            recorded: Some(None),
            is_newer: Some(false),
            ..EntryFacts::new(subject)
        }
    }

    fn done() -> NextStep {
        NextStep::Skip(SkippedEntry::done(None))
    }

    const SUBJECTS: [EntryClass; 3] = [
        EntryClass::File,
        EntryClass::Special,
        EntryClass::FurtherName,
    ];
    const RULES: [OnConflict; 5] = [
        OnConflict::Fail,
        OnConflict::Skip,
        OnConflict::Replace,
        OnConflict::Update,
        OnConflict::Verify,
    ];

    #[test]
    fn what_is_the_users_is_treated_by_the_rule() {
        let same = Some(Compared::Same(None));
        let cases = [
            (OnConflict::Fail, NextStep::Refuse(NameTaken::Exists), None),
            (OnConflict::Skip, skip(Why::Exists, None), None),
            (OnConflict::Replace, NextStep::MakeOverAny, None),
            (OnConflict::Update, skip(Why::NotNewer, None), None),
            (
                OnConflict::Verify,
                NextStep::MakeOver,
                Some(skip(Why::Same, None)),
            ),
        ];
        for subject in SUBJECTS {
            for (rule, expected, if_same) in cases {
                let mut facts = facts(subject, Occupant::default());
                assert_eq!(next(&order(rule), &facts), expected, "{subject:?} {rule:?}");
                facts.content = same;
                let expected = if_same.unwrap_or(expected);
                assert_eq!(next(&order(rule), &facts), expected, "{subject:?} {rule:?}");
                facts.is_newer = Some(true);
                let expected = match rule {
                    OnConflict::Update => NextStep::MakeOver,
                    _ => expected,
                };
                assert_eq!(next(&order(rule), &facts), expected, "{subject:?} {rule:?}");
            }
        }
    }

    #[test]
    fn neither_a_directory_nor_the_source_is_ever_replaced() {
        for (subject, rule) in SUBJECTS
            .into_iter()
            .flat_map(|one| RULES.map(|rule| (one, rule)))
        {
            let dir = Occupant {
                is_dir: true,
                ..Occupant::default()
            };
            let source = Occupant {
                is_source: true,
                ..Occupant::default()
            };
            for order in [order(rule), after_a_cut(rule)] {
                let found = next(&order, &facts(subject, dir));
                assert_eq!(
                    found,
                    NextStep::Refuse(NameTaken::IsDir),
                    "{subject:?} {rule:?}"
                );
                let found = next(&order, &facts(subject, source));
                assert_eq!(
                    found,
                    NextStep::Refuse(NameTaken::IsSource),
                    "{subject:?} {rule:?}"
                );
            }
        }
    }

    /// A file that has both its names already, because a move was about to take the first away.
    #[test]
    fn a_source_is_its_own_copy_only_where_this_move_has_begun_it() {
        let is = |moves, is_begun| {
            let there = Occupant {
                is_source: true,
                is_begun,
                ..Occupant::default()
            };
            let order = CopyOrder {
                moves,
                ..order(OnConflict::Fail)
            };
            next(&order, &facts(EntryClass::File, there))
        };
        assert_eq!(is(true, true), done());
        for (moves, is_begun) in [(true, false), (false, true), (false, false)] {
            let refused = NextStep::Refuse(NameTaken::IsSource);
            assert_eq!(is(moves, is_begun), refused);
        }
    }

    /// EntryFacts that cost a look at the disk are asked for only where the decision depends on them.
    #[test]
    fn what_is_not_needed_is_not_asked_for() {
        let asked = |order: &CopyOrder, mut facts: EntryFacts| {
            let mut asked = Vec::new();
            while let NextStep::Need(fact) = next(order, &facts) {
                asked.push(fact);
                match fact {
                    Fact::There => facts.there = Some(Some(Occupant::default())),
                    Fact::Record => facts.record = Some(None),
                    Fact::Content { .. } => facts.content = Some(Compared::Other),
                    Fact::Given => facts.is_given = Some(false),
                    Fact::Recorded => facts.recorded = Some(None),
                    Fact::Newer => facts.is_newer = Some(false),
                }
            }
            asked
        };
        let content = Fact::Content { is_torn: false };
        let of_rule = [
            (OnConflict::Fail, vec![Fact::Recorded]),
            (OnConflict::Skip, vec![]),
            (OnConflict::Replace, vec![Fact::Recorded]),
            (OnConflict::Update, vec![Fact::Newer]),
            (OnConflict::Verify, vec![content]),
        ];
        for (rule, more) in of_rule {
            let expected = [&[Fact::There, Fact::Record][..], &more].concat();
            let found = asked(&order(rule), EntryFacts::new(EntryClass::File));
            assert_eq!(found, expected, "{rule:?}");
        }
        let found = asked(
            &order(OnConflict::Fail),
            EntryFacts::new(EntryClass::Special),
        );
        assert_eq!(found, [Fact::There]);
        // Content is compared once, whatever the rule is.
        for rule in RULES {
            let found = asked(&after_a_cut(rule), EntryFacts::new(EntryClass::File));
            let compared = found.iter().filter(|fact| **fact == content);
            assert_eq!(compared.count(), 1, "{rule:?} {found:?}");
        }
        let mut none = EntryFacts::new(EntryClass::File);
        none.there = Some(None);
        assert_eq!(next(&order(OnConflict::Fail), &none), NextStep::Make);
    }

    #[test]
    fn a_recorded_file_counts_unless_it_is_to_have_something_else() {
        let is = |record: NamedRecord, order: CopyOrder, content: Compared| {
            let mut facts = facts(EntryClass::File, Occupant::default());
            (facts.record, facts.content) = (Some(Some(record)), Some(content));
            next(&order, &facts)
        };
        let fails = order(OnConflict::Fail);
        let strict = CopyOrder {
            strict: true,
            ..fails
        };
        let gives = |given| CopyOrder { given, ..fails };
        let (other, same) = (Compared::Other, Compared::Same(None));
        assert_eq!(is(RECORD, fails, other), done());
        let outdated = NamedRecord {
            outdated: true,
            ..RECORD
        };
        assert_eq!(is(outdated, fails, same), NextStep::MakeOver);
        let unsettled = NamedRecord {
            unsettled: true,
            ..RECORD
        };
        assert_eq!(is(unsettled, fails, same), done());
        assert_eq!(is(unsettled, fails, other), NextStep::MakeOver);
        assert_eq!(is(unsettled, fails, Compared::Less), NextStep::MakeOver);
        let lacks = NamedRecord {
            lacks: true,
            ..RECORD
        };
        assert_eq!(is(lacks, strict, other), NextStep::MakeOver);
        // Its source stays otherwise.
        let moves = CopyOrder {
            moves: true,
            ..fails
        };
        assert_eq!(is(lacks, moves, other), NextStep::MakeOver);
        let NextStep::Skip(skipped) = is(lacks, fails, other) else {
            panic!("it is done");
        };
        assert!(skipped.lacks && !skipped.is_by_bytes);
        let given = NamedRecord {
            given: Some(1 << 5),
            ..RECORD
        };
        assert_eq!(is(given, gives(1 << 5), other), done());
        assert_eq!(is(given, gives(1 << 5 | LINKS), other), done());
        assert_eq!(is(given, gives(1 << 5 | 1 << 6), other), NextStep::MakeOver);
        // What the source was moved to is no copy of the file that has its name now, unless that is
        // the source itself or has the same bytes.
        let refused = NextStep::Refuse(NameTaken::Exists);
        let of_other = NamedRecord {
            is_of_other: true,
            ..outdated
        };
        let is_kept = true;
        assert_eq!(is(of_other, fails, same), NextStep::MakeOver);
        assert_eq!(is(of_other, moves, other), refused);
        assert_eq!(is(of_other, moves, same), NextStep::MakeOver);
        assert_eq!(
            is(
                NamedRecord {
                    is_kept,
                    ..of_other
                },
                moves,
                other
            ),
            NextStep::MakeOver
        );
        assert_eq!(is(outdated, moves, same), NextStep::MakeOver);
        assert_eq!(is(unsettled, moves, same), done());
        assert_eq!(is(unsettled, moves, other), refused);
        assert_eq!(
            is(
                NamedRecord {
                    is_kept,
                    ..unsettled
                },
                moves,
                other
            ),
            NextStep::MakeOver
        );
        assert_eq!(is(RECORD, moves, other), done());
        let by_bytes = NamedRecord {
            is_proven: false,
            ..RECORD
        };
        assert_eq!(is(by_bytes, moves, same), NextStep::MakeOver);
        // A copy of another volume's file is the user's.
        let foreign = NamedRecord {
            is_foreign: true,
            ..RECORD
        };
        let cut = after_a_cut(OnConflict::Fail);
        for order in [fails, cut] {
            assert_eq!(
                is(foreign, order, same),
                NextStep::Refuse(NameTaken::Exists)
            );
        }
        let mut name = facts(EntryClass::FurtherName, Occupant::default());
        name.record = Some(Some(RECORD));
        assert_eq!(next(&fails, &name), NextStep::MakeOver);
        name.record = Some(Some(foreign));
        assert_eq!(next(&fails, &name), NextStep::Refuse(NameTaken::Exists));
    }

    #[test]
    fn after_a_power_cut_the_bytes_decide() {
        let (ours, named) = (
            Occupant {
                is_ours: true,
                ..Occupant::default()
            },
            Occupant {
                is_named: true,
                ..Occupant::default()
            },
        );
        let cut = after_a_cut(OnConflict::Fail);
        let kept = CopyOrder {
            is_doubtful: false,
            ..cut
        };
        let refused = NextStep::Refuse(NameTaken::Exists);
        // What has the name, after what, its bytes, whether it has all metadata.
        let cases = [
            (ours, cut, Compared::Same(None), false, done()),
            (ours, cut, Compared::Less, false, NextStep::MakeOver),
            (ours, cut, Compared::Other, false, refused),
            (ours, kept, Compared::Same(None), false, done()),
            (named, kept, Compared::Same(None), false, done()),
            (
                Occupant::default(),
                kept,
                Compared::Same(None),
                true,
                refused,
            ),
            (Occupant::default(), cut, Compared::Same(None), true, done()),
            (
                Occupant::default(),
                cut,
                Compared::Same(None),
                false,
                refused,
            ),
        ];
        for (there, order, content, is_given, expected) in cases {
            let mut facts = facts(EntryClass::File, there);
            (facts.content, facts.is_given) = (Some(content), Some(is_given));
            assert_eq!(
                next(&order, &facts),
                expected,
                "{there:?} {order:?} {content:?}"
            );
        }
        let mut asked = facts(EntryClass::File, ours);
        asked.content = None;
        let is_torn = true;
        assert_eq!(
            next(&cut, &asked),
            NextStep::Need(Fact::Content { is_torn })
        );
        let is_torn = false;
        assert_eq!(
            next(&kept, &asked),
            NextStep::Need(Fact::Content { is_torn })
        );
    }

    /// The destination may be another view of the source.
    #[test]
    fn no_removal_follows_from_equal_bytes() {
        let ours = Occupant {
            is_ours: true,
            is_of_now: true,
            ..Occupant::default()
        };
        let (other, named) = (
            Occupant {
                is_ours: false,
                ..ours
            },
            Occupant {
                is_ours: false,
                is_named: true,
                ..ours
            },
        );
        let order = CopyOrder {
            moves: true,
            ..after_a_cut(OnConflict::Fail)
        };
        let refused = NextStep::Refuse(NameTaken::Exists);
        for subject in SUBJECTS {
            let is = |there| {
                let mut facts = facts(subject, there);
                (facts.content, facts.is_given) = (Some(Compared::Same(None)), Some(true));
                next(&order, &facts)
            };
            assert_eq!(is(ours), NextStep::MakeOver, "{subject:?}");
            assert_eq!(is(other), refused, "{subject:?}");
            assert_eq!(is(named), refused, "{subject:?}");
        }
    }

    #[test]
    fn what_has_no_content_is_known_by_what_it_is() {
        let there = Occupant {
            is_of_now: true,
            is_begun: true,
            ..Occupant::default()
        };
        let not_begun = Occupant {
            is_begun: false,
            ..there
        };
        let fails = order(OnConflict::Fail);
        let goes_on = CopyOrder {
            goes_on: true,
            ..fails
        };
        let anew = CopyOrder {
            is_anew: true,
            ..goes_on
        };
        let refused = NextStep::Refuse(NameTaken::Exists);
        let (same, other) = (Compared::Same(None), Compared::Other);
        let cases = [
            (there, goes_on, same, true, done()),
            (there, goes_on, same, false, NextStep::MakeOver),
            (there, goes_on, other, true, refused),
            (there, anew, same, true, refused),
            (there, fails, same, true, refused),
            (not_begun, goes_on, same, true, refused),
            (not_begun, after_a_cut(OnConflict::Fail), same, true, done()),
            (
                not_begun,
                after_a_cut(OnConflict::Fail),
                same,
                false,
                refused,
            ),
        ];
        for (there, order, content, is_given, expected) in cases {
            let mut facts = facts(EntryClass::Special, there);
            (facts.content, facts.is_given) = (Some(content), Some(is_given));
            assert_eq!(
                next(&order, &facts),
                expected,
                "{there:?} {order:?} {content:?}"
            );
        }
        let mut recorded = facts(EntryClass::Special, not_begun);
        recorded.recorded = Some(Some((None, Proof::None)));
        assert_eq!(next(&fails, &recorded), refused);
        recorded.content = Some(same);
        assert_eq!(next(&fails, &recorded), done());
    }

    #[test]
    fn further_names_of_what_is_there() {
        let first = Occupant {
            is_first: true,
            ..Occupant::default()
        };
        let new = Occupant {
            is_in_new_root: true,
            ..Occupant::default()
        };
        for rule in RULES {
            let order = order(rule);
            assert_eq!(next(&order, &facts(EntryClass::FurtherName, first)), done());
            // Another entry of this run has it, which finds out when the name is given.
            assert_eq!(
                next(&order, &facts(EntryClass::FurtherName, new)),
                NextStep::Make
            );
        }
    }

    #[test]
    fn directories_are_filled_where_they_are() {
        assert_eq!(makes_dir(None, false), Ok(true));
        assert_eq!(makes_dir(Some(FileKind::Dir), false), Ok(false));
        assert!(makes_dir(Some(FileKind::Dir), true).is_err());
        for kind in [FileKind::Symlink, FileKind::File, FileKind::Fifo] {
            assert!(makes_dir(Some(kind), false).is_err(), "{kind:?}");
        }
    }
}
