//! Takes the paths of both sides in order, gives each its class, and reports
//! in path order. Memory grows with the files that only one side has, by 40
//! bytes each and 24 more where they are moves, never with what is unchanged.

use std::io;

use bc_manifest::integrity::{Found, Kind};
use bc_manifest::time::format_rfc3339;

use crate::change::{Change, Class, Ctime, Difference, Value};
use crate::fields::{Field, Rules};
use crate::moves::{Candidate, Pair, Side, pair};
use crate::spool::Spool;
use crate::summary::Summary;
use crate::view::{self, View};

/// Which changes are reported, and when to stop.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Detail {
    /// Everything that is not ok.
    #[default]
    Changes,
    /// The ok ones too.
    All,
    /// Up to the first that is not ok; no moves are looked for.
    First,
}

/// Receives the changes in path order.
pub type Sink<'a> = dyn FnMut(&Change) -> io::Result<()> + 'a;

/// What to do after a path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Flow {
    Continue,
    Stop,
}

/// What is at a path where something else was mounted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Here {
    Nothing,
    /// Something that is not what was recorded.
    Other,
}

/// The comparison of two sorted sides.
pub(crate) struct Comparison<'a> {
    rules: Rules,
    detail: Detail,
    sink: &'a mut Sink<'a>,
    /// Report nothing before something is found that matches.
    hold: bool,
    /// Files and links of both sides with the same content, as far as it was
    /// looked at.
    matches: u64,
    spool: Spool,
    candidates: Vec<Candidate>,
    summary: Summary,
}

impl<'a> Comparison<'a> {
    pub(crate) fn new(rules: Rules, detail: Detail, sink: &'a mut Sink<'a>) -> Comparison<'a> {
        Comparison {
            rules,
            detail,
            sink,
            hold: false,
            matches: 0,
            spool: Spool::default(),
            candidates: Vec::new(),
            summary: Summary::default(),
        }
    }

    /// Reports nothing before the first file or link that matches.
    pub(crate) fn hold(&mut self) {
        self.hold = true;
    }

    /// A path of both sides. Returns its class. `hint` says what the ctimes of a
    /// damaged file come to where it lies.
    pub(crate) fn both(
        &mut self,
        path: &[u8],
        old: &View<'_>,
        new: &View<'_>,
        hint: impl FnOnce(Ctime) -> Ctime,
    ) -> io::Result<Class> {
        self.summary.old += 1;
        self.summary.new += 1;
        let class = view::judge(old, new, self.rules);
        self.summary.add(class);
        if matches!(class, Class::Ok | Class::Meta)
            && matches!(new.kind, Kind::File | Kind::Symlink)
        {
            self.matches += 1;
        }
        if class == Class::Ok && self.detail != Detail::All {
            return Ok(class);
        }
        let mut change = Change::new(class, path, new.kind);
        match class {
            Class::Ok => {}
            Class::Unreadable => {
                self.summary.readable_now += u64::from(new.error.is_none());
                change.reason = Some(view::reason(old, new));
            }
            _ => change.differences = view::differences(old, new, self.rules),
        }
        if class == Class::Damaged {
            change.ctime = Some(hint(view::ctime_hint(old, new)));
        }
        self.report(change).map(|()| class)
    }

    /// A path of both sides that is unchanged but was found wrong when its content was last tried.
    /// `hint` as for [`both`](Comparison::both).
    pub(crate) fn known(
        &mut self,
        path: &[u8],
        old: &View<'_>,
        new: &View<'_>,
        (found, at): (Found, Option<i64>),
        hint: impl FnOnce(Ctime) -> Ctime,
    ) -> io::Result<()> {
        self.summary.old += 1;
        self.summary.new += 1;
        let class = match found {
            Found::Damaged => Class::Damaged,
            Found::Unreadable => Class::Unreadable,
        };
        self.summary.add(class);
        let mut change = Change::new(class, path, new.kind);
        let at = at.map_or_else(String::new, |at| format!(" at {}", format_rfc3339(at)));
        change.reason = Some(format!("found{at}, not tried again since"));
        if class == Class::Damaged {
            change.ctime = Some(hint(view::ctime_hint(old, new)));
        }
        self.report(change)
    }

    /// A path of the old side only.
    pub(crate) fn removed(&mut self, path: &[u8], old: &View<'_>) -> io::Result<()> {
        self.summary.old += 1;
        self.one_sided(Side::Removed, path, old)
    }

    /// A path of the new side only.
    pub(crate) fn added(&mut self, path: &[u8], new: &View<'_>) -> io::Result<()> {
        self.summary.new += 1;
        self.one_sided(Side::Added, path, new)
    }

    /// A path of the old side that the new side could not look at.
    pub(crate) fn unseen(&mut self, path: &[u8], old: &View<'_>, reason: &str) -> io::Result<()> {
        self.summary.old += 1;
        self.summary.unseen += 1;
        self.summary.add(Class::Unreadable);
        let mut change = Change::new(Class::Unreadable, path, old.kind);
        change.reason = Some(reason.to_string());
        self.report(change)
    }

    /// A path of the old side that the new side was not to look at.
    pub(crate) fn left_out(&mut self, path: &[u8], kind: Kind) -> io::Result<()> {
        self.summary.old += 1;
        self.summary.new += 1;
        self.summary.add(Class::Ok);
        match self.detail {
            Detail::All => self.report(Change::new(Class::Ok, path, kind)),
            Detail::Changes | Detail::First => Ok(()),
        }
    }

    /// A path of the old side that lies where a file system is not mounted any more. Only the
    /// mount point itself has a `reason`, which is reported; those below it are counted.
    pub(crate) fn unmounted(
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
            Some(reason) => reason,
        };
        let mut change = Change::new(Class::Unreadable, path, kind);
        change.reason = Some(reason);
        self.report(change)
    }

    fn one_sided(&mut self, side: Side, path: &[u8], entry: &View<'_>) -> io::Result<()> {
        let class = if side == Side::Added {
            Class::Added
        } else {
            Class::Removed
        };
        self.summary.add(class);
        self.summary.added_unread += u64::from(side == Side::Added && entry.error.is_some());
        let mut change = Change::new(class, path, entry.kind);
        change.reason = entry.error.map(view::describe);
        for field in [
            Field::Size,
            Field::Mode,
            Field::Uid,
            Field::Gid,
            Field::Mtime,
            Field::Ctime,
            Field::Ino,
            Field::Nlink,
            Field::Rdev,
            Field::Digest,
            Field::Target,
            Field::Xattrs,
        ] {
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
                // Where it will be if it has to wait.
                Candidate::new(side, path, entry, self.spool.len())
            }
            _ => None,
        };
        match candidate {
            Some(candidate) => {
                self.candidates.push(candidate);
                self.spool.push(&change);
                Ok(())
            }
            None => self.report(change),
        }
    }

    fn report(&mut self, change: Change) -> io::Result<()> {
        if self.hold && self.matches > 0 {
            self.hold = false;
            if self.candidates.is_empty() {
                // Nothing was moved.
                self.flush(|_, ctime| ctime)?;
            }
        }
        if self.hold || !self.spool.is_empty() {
            self.spool.push(&change);
            return Ok(());
        }
        (self.sink)(&change)
    }

    /// Has enough been seen?
    pub(crate) fn flow(&self) -> Flow {
        let first = self.detail == Detail::First && self.summary.any();
        if first && (!self.hold || self.matches > 0) {
            Flow::Stop
        } else {
            Flow::Continue
        }
    }

    /// Was there nothing at all that matches?
    pub(crate) fn nothing_matches(&self) -> bool {
        self.matches == 0 && !self.moves_possible()
    }

    /// Is there content that both sides have under different names?
    fn moves_possible(&self) -> bool {
        !pair(self.candidates.clone()).is_empty()
    }

    /// Pairs moves, reports what waits, and sums up. `hint` says what the ctimes of what was moved
    /// and damaged come to where it lies now.
    pub(crate) fn finish(mut self, hint: impl FnMut(&[u8], Ctime) -> Ctime) -> io::Result<Summary> {
        self.summary.complete = self.flow() == Flow::Continue;
        self.flush(hint)?;
        Ok(self.summary)
    }

    fn flush(&mut self, mut hint: impl FnMut(&[u8], Ctime) -> Ctime) -> io::Result<()> {
        let mut pairs = pair(std::mem::take(&mut self.candidates));
        let spool = std::mem::take(&mut self.spool);
        let mut confirmed = Ok(());
        pairs.retain(|pair| match is_confirmed(&spool, pair) {
            Ok(confirmed) => confirmed,
            Err(error) => {
                confirmed = Err(error);
                false
            }
        });
        confirmed?;
        let mut targets: Vec<u64> = pairs.iter().map(|pair| pair.added).collect();
        targets.sort_unstable();
        let (mut pairs, mut targets) = (pairs.iter().peekable(), targets.into_iter().peekable());
        for waiting in spool.iter() {
            let (offset, change) = waiting?;
            if targets.next_if_eq(&offset).is_some() {
                continue;
            }
            let moved = pairs.next_if(|pair| pair.removed == offset);
            match moved {
                Some(pair) => {
                    let class = match pair.damaged {
                        true => Class::Damaged,
                        false => Class::Moved,
                    };
                    self.summary.moved(class);
                    let added = spool.get(pair.added)?;
                    let mut moved = moved_change(change, added, class, self.rules);
                    if let (Some(ctime), Some(to)) = (moved.ctime, &moved.to) {
                        moved.ctime = Some(hint(to, ctime));
                    }
                    (self.sink)(&moved)?;
                }
                None => (self.sink)(&change)?,
            }
            if self.detail == Detail::First {
                break;
            }
        }
        Ok(())
    }
}

/// Are the two sides of a pair one file? Of damaged ones only a hash says so.
fn is_confirmed(spool: &Spool, pair: &Pair) -> io::Result<bool> {
    if !pair.damaged {
        return Ok(true);
    }
    let (removed, added) = (spool.get(pair.removed)?, spool.get(pair.added)?);
    let same = |field| {
        let before = removed.differences.iter().find(|d| d.field == field);
        let after = added.differences.iter().find(|d| d.field == field);
        matches!((before, after), (Some(before), Some(after)) if before.old == after.new)
    };
    Ok([Field::Ino, Field::Size, Field::Mtime]
        .into_iter()
        .all(same))
}

/// One change out of a removal and an addition: moved, or moved and damaged.
fn moved_change(removed: Change, added: Change, class: Class, rules: Rules) -> Change {
    let mut change = Change::new(class, &removed.path, added.kind);
    if class == Class::Damaged {
        let time = |differences: &[Difference]| {
            differences
                .iter()
                .find_map(|d| match (d.field, &d.old, &d.new) {
                    (Field::Ctime, Value::Time(time), _) | (Field::Ctime, _, Value::Time(time)) => {
                        Some(*time)
                    }
                    _ => None,
                })
        };
        change.ctime = Some(
            match (time(&removed.differences), time(&added.differences)) {
                (Some(old), Some(new)) if old == new => Ctime::Same,
                (Some(_), Some(_)) => Ctime::Other,
                _ => Ctime::Unknown,
            },
        );
    }
    for before in removed.differences {
        let after = added
            .differences
            .iter()
            .find(|after| after.field == before.field);
        if let Some(after) = after
            && after.new != before.old
            && rules.compares(before.field, added.kind)
        {
            change.differences.push(Difference {
                new: after.new.clone(),
                ..before
            });
        }
    }
    change.to = Some(added.path);
    change
}
