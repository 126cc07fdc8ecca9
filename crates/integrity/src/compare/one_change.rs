//! Two changes that are of one file, a removal and an addition, made one change.

use super::moves::MovedPair;
use crate::change::{Change, Class, Ctime, Difference, Value};
use crate::fields::{CompareRules, Field};
use crate::judge::UNPROVEN;

/// Returns the class of a pair.
pub(super) fn class_of(pair: &MovedPair) -> Class {
    match (pair.is_damaged(), pair.is_unproven()) {
        (false, _) => Class::Moved,
        (true, false) => Class::Damaged,
        (true, true) => Class::Modified,
    }
}

/// Makes one change of a removal and an addition: moved, or moved and damaged.
pub(super) fn moved_change(
    removed: Change,
    added: Change,
    class: Class,
    rules: CompareRules,
) -> Change {
    let mut change = Change::new(class, &removed.path, added.kind);
    // The values of both are the sides of one name each, where names were swapped.
    if class == Class::Damaged {
        change.ctime = Some(ctime_of(&removed, &added));
    }
    change.differences = differences(&removed, &added, rules);
    change.to = Some(added.path);
    doubt(&mut change);
    change
}

/// Marks a change that is not proven to be one file.
fn doubt(change: &mut Change) {
    if change.class == Class::Modified {
        change.reason = Some(UNPROVEN.to_owned());
        change.unproven = true;
    }
}

/// Makes the change of a file that is damaged under a name that another file had, or under a new
/// one while another file has the old.
pub(super) fn renamed_change(
    was: &Change,
    is: &Change,
    class: Class,
    rules: CompareRules,
) -> Change {
    let mut change = Change::new(class, &is.path, is.kind);
    let from = format!("renamed from {}", bc_fs::escape(&was.path));
    change.was_at = Some(was.path.clone());
    change.differences = differences(was, is, rules);
    doubt(&mut change);
    change.reason = match change.reason.take() {
        Some(why) => Some(format!("{from}: {why}")),
        None => {
            change.ctime = Some(ctime_of(was, is));
            Some(from)
        }
    };
    change
}

/// Returns the fields that count and differ between the old and the new file.
fn differences(was: &Change, is: &Change, rules: CompareRules) -> Vec<Difference> {
    let other = |before: &Difference| {
        let new = &found(is, before.field)?.new;
        let known = *new != Value::None && before.old != Value::None;
        let differs = known && *new != before.old && rules.compares(before.field, is.kind);
        differs.then(|| Difference {
            field: before.field,
            old: before.old.clone(),
            new: new.clone(),
        })
    };
    was.differences.iter().filter_map(other).collect()
}

pub(super) fn found(change: &Change, field: Field) -> Option<&Difference> {
    change.differences.iter().find(|d| d.field == field)
}

/// Returns the digest on the new side.
pub(super) fn content_of(change: &Change) -> Option<&[u8]> {
    match &found(change, Field::Digest)?.new {
        Value::Digest(digest) => Some(digest),
        _ => None,
    }
}

/// Compares the ctimes of one file's two changes.
fn ctime_of(was: &Change, is: &Change) -> Ctime {
    let before = found(was, Field::Ctime).map(|d| &d.old);
    let after = found(is, Field::Ctime).map(|d| &d.new);
    match (before, after) {
        (Some(Value::Time(old)), Some(Value::Time(new))) if old == new => Ctime::Same,
        (Some(Value::Time(_)), Some(Value::Time(_))) => Ctime::Other,
        _ => Ctime::Unknown,
    }
}
