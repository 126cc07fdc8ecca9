//! Judgement of two entries of one path: the one place where damage is distinguished from edits.

use bc_manifest::Failure;
use bc_manifest::integrity::Kind;
use bc_manifest::time::is_beyond;

use crate::change::{Class, Ctime, Difference};
use crate::entry_ref::{EntryRef, differ, is_same_ctime, is_same_mtime};
use crate::fields::CompareRules;
use crate::fields::{Field, each_difference};

/// Returns the fields that differ and count, the digest and the target included.
fn fields_that_differ(
    old: &EntryRef<'_>,
    new: &EntryRef<'_>,
    rules: CompareRules,
    mut found: impl FnMut(Field),
) {
    each_difference(old, new, |field| {
        if rules.compares(field, new.kind) {
            found(field);
        }
    });
}

/// Returns the class of two entries of one path. Never `Added`, `Removed` or `Moved`.
pub(crate) fn judge(old: &EntryRef<'_>, new: &EntryRef<'_>, rules: CompareRules) -> Class {
    // Not even the kind is certain where `stat` failed.
    let unknown = |side: &EntryRef<'_>| side.mode.is_none() && side.error.is_some();
    if unknown(old) || unknown(new) {
        return Class::Unreadable;
    }
    if old.kind != new.kind {
        return Class::Replaced;
    }
    match new.kind {
        Kind::File if rules.compares(Field::Digest, Kind::File) => match (old.digest, new.digest) {
            (Some(old_digest), Some(new_digest)) if old_digest != new_digest => {
                let untouched = is_untouched(old, new) && !old.unsteady;
                let damaged = untouched || is_known_damage(old, new);
                return if damaged && !old.unproven {
                    Class::Damaged
                } else {
                    Class::Modified
                };
            }
            (Some(_), Some(_)) => {}
            _ => return Class::Unreadable,
        },
        // Nothing was read, but this much is certain.
        Kind::File if differ(old.size, new.size) && rules.compares(Field::Size, Kind::File) => {
            return Class::Modified;
        }
        Kind::Symlink if rules.compares(Field::Target, Kind::Symlink) => {
            match (old.target, new.target) {
                (Some(old_target), Some(new_target)) if old_target != new_target => {
                    return Class::Modified;
                }
                (Some(_), Some(_)) => {}
                _ => return Class::Unreadable,
            }
        }
        // A directory that cannot be listed, attributes that cannot be read.
        // A file's reading error means nothing where no content is compared.
        Kind::File => {}
        _ if old.error.is_some() || new.error.is_some() => return Class::Unreadable,
        _ => {}
    }
    if new.kind == Kind::File && (attributes_failed(old) || attributes_failed(new)) {
        return Class::Unreadable;
    }
    let mut any = false;
    fields_that_differ(old, new, rules, |_| any = true);
    if any { Class::Meta } else { Class::Ok }
}

/// True if a file has the size and the mtime that were recorded.
pub(crate) fn is_untouched(old: &EntryRef<'_>, new: &EntryRef<'_>) -> bool {
    old.size.is_some() && old.size == new.size && is_same_mtime(old, new)
}

/// True if a file has the content that was found there when it was found damaged: new times do not
/// make that right.
pub(crate) fn is_known_damage(old: &EntryRef<'_>, new: &EntryRef<'_>) -> bool {
    old.damaged.is_some() && old.damaged == new.digest
}

/// Returns the reason for which nothing tells an edit from damage, if content differs and nothing
/// does. So it is with entries imported from files that hold neither size nor time, with times that
/// cannot be held, with files that may be others than the recorded ones, or may have been edited as
/// they were recorded, and where the damage that was found before is not recorded.
pub(crate) fn undecided(old: &EntryRef<'_>, new: &EntryRef<'_>) -> Option<&'static str> {
    if old.kind != new.kind || !differ(old.digest, new.digest) {
        return None;
    }
    if old.unproven && (is_untouched(old, new) || is_known_damage(old, new)) {
        return Some(UNPROVEN);
    }
    if old.unsteady && is_untouched(old, new) && !is_known_damage(old, new) {
        return Some(UNSTEADY);
    }
    if old.damage_unknown && !is_untouched(old, new) {
        return Some(DAMAGE_UNKNOWN);
    }
    let is_distant = |side: &EntryRef<'_>| side.mtime_ns.is_some_and(is_beyond);
    let why = match is_distant(old) || is_distant(new) {
        true => DISTANT,
        false => UNDECIDED,
    };
    has_no_evidence(old, new).then_some(why)
}

fn has_no_evidence(old: &EntryRef<'_>, new: &EntryRef<'_>) -> bool {
    // A size alone does not distinguish an edit from a file that was cut off.
    let no_edit_seen = !differ(old.mtime_ns, new.mtime_ns)
        && (!differ(old.size, new.size) || old.mtime_ns.is_none());
    let incomplete = [old, new]
        .iter()
        .any(|side| side.size.is_none() || side.mtime_ns.is_none_or(is_beyond));
    no_edit_seen && incomplete
}

/// Reasons of undecided differences.
const UNDECIDED: &str = "content differs; an edit cannot be distinguished from damage";
const DISTANT: &str = "content differs; nothing tells an edit from damage, for no manifest records a time before 1677-09-22 or \
     after 2262-04-11";
const UNSTEADY: &str = "content differs; it was recorded as soon as it was written, and an edit at that time leaves no \
     trace on this file system";
const DAMAGE_UNKNOWN: &str =
    "was found damaged before; that content cannot be distinguished from an edit";
pub(crate) const UNPROVEN: &str = "possibly moved and damaged; nothing tells the recorded file from a new one with its inode \
     number, size and mtime";

/// True if a file was read to its end and has an error all the same: its extended attributes could
/// not be read.
fn attributes_failed(file: &EntryRef<'_>) -> bool {
    file.digest.is_some() && file.error.is_some()
}

/// Returns the fields behind [`judge`]'s answer, with their values.
pub(crate) fn differences(
    old: &EntryRef<'_>,
    new: &EntryRef<'_>,
    rules: CompareRules,
) -> Vec<Difference> {
    let mut all = Vec::new();
    fields_that_differ(old, new, rules, |field| {
        all.push(Difference {
            field,
            old: old.value(field),
            new: new.value(field),
        });
    });
    all
}

/// Returns the reason: the side that lacks content or metadata of the other.
pub(crate) fn reason(old: &EntryRef<'_>, new: &EntryRef<'_>) -> String {
    match (new.error, old.error) {
        (Some(error), _) => describe(error),
        (None, Some(error)) => format!("no content recorded: {}", describe(error)),
        (None, None) if old.digest.is_none() && old.target.is_none() => {
            "no content recorded".to_string()
        }
        (None, None) => "not read".to_string(),
    }
}

/// Formats a failure as messages have it: `operation: reason`.
pub(crate) fn describe(error: &Failure) -> String {
    format!("{}: {}", error.op, error.message)
}

/// Returns the evidence of a damaged file's ctimes.
pub(crate) fn ctime_hint(old: &EntryRef<'_>, new: &EntryRef<'_>) -> Ctime {
    match (old.ctime_ns, new.ctime_ns) {
        (Some(_), Some(_)) if is_same_ctime(old, new) => Ctime::Same,
        (Some(was), Some(is)) if was != is => Ctime::Other,
        _ => Ctime::Unknown,
    }
}

#[cfg(test)]
mod tests;
