//! One line per change: a mark, the path with control characters escaped, and a few words of
//! detail.

use std::fmt::Write;

use bc_fs::{escape, safe};
use bc_manifest::integrity::Xattrs;

use crate::change::{Change, Class, Ctime, Difference, Value};
use crate::fields::Field;

pub(super) fn change(line: &mut Vec<u8>, change: &Change) {
    let path = escape(&change.path);
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = match change.class {
        Class::Ok => write!(text, "ok {path}"),
        Class::Added => {
            let _ = write!(text, "+ {path}");
            reason(&mut text, change)
        }
        Class::Removed => write!(text, "- {path}"),
        Class::Moved => {
            let to = escape(change.to.as_deref().unwrap_or_default());
            let _ = match change.entries {
                Some(1) => write!(text, "> {path}/ -> {to}/ (1 entry)"),
                Some(entries) => write!(text, "> {path}/ -> {to}/ ({entries} entries)"),
                None => write!(text, "> {path} -> {to}"),
            };
            differences(&mut text, &change.differences);
            Ok(())
        }
        Class::Meta => {
            let _ = write!(text, "~m {path}");
            differences(&mut text, &change.differences);
            Ok(())
        }
        Class::Modified => {
            let _ = write!(text, "~c {path}");
            if let Some(to) = &change.to {
                let _ = write!(text, " -> {}", escape(to));
            }
            let said = reason(&mut text, change);
            beside_content(
                &mut text,
                change,
                if change.reason.is_some() { ";" } else { "" },
            );
            said
        }
        Class::Damaged => {
            let mut path = path;
            if let Some(to) = &change.to {
                let to = escape(to);
                let _ = write!(text, "> {path} -> {to}");
                beside_content(&mut text, change, "");
                text.push('\n');
                path = to;
            }
            let _ = write!(text, "!! {path}");
            // No times are compared of files that were damaged before.
            if change.ctime.is_some() || change.reason.is_none() {
                let _ = write!(text, ": {}", ctime(change.ctime));
            }
            let said = reason(&mut text, change);
            if change.to.is_none() {
                beside_content(&mut text, change, ";");
            }
            said
        }
        Class::Unreadable => {
            let reason = change.reason.as_deref().unwrap_or("not read");
            let mark = match change.recorded_now {
                true => "+",
                false => "??",
            };
            write!(text, "{mark} {path}: {}", safe::line(reason))
        }
        Class::Replaced => {
            let kinds = change
                .differences
                .iter()
                .find_map(|d| match (&d.old, &d.new) {
                    (Value::Kind(old), Value::Kind(new)) => Some((old.name(), new.name())),
                    _ => None,
                });
            let (old, new) = kinds.unwrap_or(("?", change.kind.name()));
            let _ = write!(text, "~t {path} {old} -> {new}");
            reason(&mut text, change)
        }
    };
    text.push('\n');
    line.extend_from_slice(text.as_bytes());
}

/// Appends changed metadata of a file whose content differs, except the fields that every new
/// content changes.
fn beside_content(text: &mut String, change: &Change, before: &str) {
    let all = change.differences.iter();
    let metadata: Vec<_> = all
        .filter(|d| METADATA.contains(&d.field))
        .cloned()
        .collect();
    if !metadata.is_empty() {
        text.push_str(before);
        differences(text, &metadata);
    }
}

const METADATA: [Field; 6] = [
    Field::Mode,
    Field::Uid,
    Field::Gid,
    Field::Nlink,
    Field::Rdev,
    Field::Xattrs,
];

/// Appends the reason: a failure to read a new path; the time when damage was found; the cause of a
/// doubt between edit and damage.
fn reason(text: &mut String, change: &Change) -> std::fmt::Result {
    match &change.reason {
        Some(reason) => write!(text, ": {}", safe::line(reason)),
        None => Ok(()),
    }
}

fn ctime(ctime: Option<Ctime>) -> &'static str {
    match ctime {
        Some(Ctime::Same) => "ctime unchanged, points to bitrot",
        Some(Ctime::Other) => "ctime changed, probably a rewrite with its mtime reset",
        Some(Ctime::Mute) => "ctime proves nothing here, bitrot or a rewrite with its mtime reset",
        _ => "ctime not recorded, bitrot or a rewrite with its mtime reset",
    }
}

fn differences(text: &mut String, differences: &[Difference]) {
    for (nth, Difference { field, old, new }) in differences.iter().enumerate() {
        text.push_str(if nth == 0 { " " } else { ", " });
        text.push_str(field.name());
        text.push(':');
        if let (Value::Xattrs(old), Value::Xattrs(new)) = (old, new) {
            attributes(text, old, new);
        } else {
            let _ = write!(text, " {old} -> {new}");
        }
    }
}

/// The names only: values are long and rarely text.
fn attributes(text: &mut String, old: &Xattrs, new: &Xattrs) {
    for (name, before) in old {
        let mark = match new.get(name) {
            None => '-',
            Some(after) if after != before => '~',
            Some(_) => continue,
        };
        let _ = write!(text, " {mark}{}", escape(name));
    }
    for (name, _) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
        let _ = write!(text, " +{}", escape(name));
    }
}
