//! The judgement over two entries of one path: the one place where damage is told from edits.

use bc_manifest::Failure;
use bc_manifest::integrity::Kind;
use bc_manifest::time::is_beyond;

use crate::change::{Class, Ctime, Difference};
use crate::entry_ref::{EntryRef, differ, is_same_ctime, is_same_mtime};
use crate::field::{Field, each_difference};
use crate::fields::CompareRules;

/// The fields that differ and count, the digest and the target included.
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

/// What two entries of one path are to each other. Never `Added`, `Removed`
/// or `Moved`.
pub fn judge(old: &EntryRef<'_>, new: &EntryRef<'_>, rules: CompareRules) -> Class {
    // Not even the kind is certain of what could not be stat'ed.
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
                let same = |old: Option<_>, new: Option<_>| old.is_some() && old == new;
                let untouched = same(old.size, new.size) && is_same_mtime(old, new);
                return if untouched {
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

/// Of content that differs: does nothing tell an edit from damage? So it is with what was imported
/// from files that hold neither size nor time, and with times that cannot be held.
pub(crate) fn is_undecided(old: &EntryRef<'_>, new: &EntryRef<'_>) -> bool {
    // A size alone does not tell an edit from a file that was cut off.
    let no_edit_seen = !differ(old.mtime_ns, new.mtime_ns)
        && (!differ(old.size, new.size) || old.mtime_ns.is_none());
    let incomplete = [old, new]
        .iter()
        .any(|side| side.size.is_none() || side.mtime_ns.is_none_or(is_beyond));
    old.kind == new.kind && differ(old.digest, new.digest) && no_edit_seen && incomplete
}

/// What is said of it.
pub(crate) const UNDECIDED: &str = "content differs; nothing recorded tells an edit from damage";

/// A file that was read to its end and has an error all the same: its extended
/// attributes could not be read.
fn attributes_failed(file: &EntryRef<'_>) -> bool {
    file.digest.is_some() && file.error.is_some()
}

/// The fields behind [`judge`]'s answer, with their values.
pub fn differences(old: &EntryRef<'_>, new: &EntryRef<'_>, rules: CompareRules) -> Vec<Difference> {
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

/// Which side lacks what the other has, as a reason.
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

/// As messages have it: `operation: reason`.
pub(crate) fn describe(error: &Failure) -> String {
    format!("{}: {}", error.op, error.message)
}

/// The same of a directory above the path it is said of.
pub(crate) fn describe_above(error: &Failure, above: &[u8]) -> String {
    format!("in {}: {}", bc_fs::escape(above), describe(error))
}

/// What the ctimes of a damaged file say.
pub(crate) fn ctime_hint(old: &EntryRef<'_>, new: &EntryRef<'_>) -> Ctime {
    match (old.ctime_ns, new.ctime_ns) {
        (Some(_), Some(_)) if is_same_ctime(old, new) => Ctime::Same,
        (Some(was), Some(is)) if was != is => Ctime::Other,
        _ => Ctime::Unknown,
    }
}

#[cfg(test)]
mod tests;
