//! Entries that have no content to be found again by: directories, links, empty files, FIFOs. A rename
//! leaves all that is recorded of them as it was, so that those which only one side has can be
//! counted off against each other.

use std::collections::HashMap;

use bc_manifest::integrity::Kind;

use super::moves::hash_of;
use super::one_change::found;
use crate::change::{Change, Class, Value};
use crate::fields::Field;

/// Counts of names that only the old side has, and only the new one, by a hash of what is recorded
/// of them. Nothing is counted where it is not wanted.
#[derive(Default)]
pub(super) struct Contentless {
    counts: Option<HashMap<u64, [u64; 2]>>,
}

/// Fields that a rename leaves as they were, and that are always recorded.
const KEPT: [Field; 6] = [
    Field::Mtime,
    Field::Mode,
    Field::Uid,
    Field::Gid,
    Field::Target,
    Field::Rdev,
];

impl Contentless {
    /// Returns counts that are wanted.
    pub(super) fn counted() -> Contentless {
        Contentless {
            counts: Some(HashMap::new()),
        }
    }

    /// Counts a change that is a removal or an addition for good.
    pub(super) fn see(&mut self, change: &Change) {
        let Some(counts) = &mut self.counts else {
            return;
        };
        let side = match change.class {
            Class::Removed => 0,
            Class::Added if change.reason.is_none() => 1,
            _ => return,
        };
        let value = |field| {
            let found = found(change, field);
            found.map_or(&Value::None, |found| match side {
                0 => &found.old,
                _ => &found.new,
            })
        };
        let has_content = change.kind == Kind::File && *value(Field::Size) != Value::Number(0);
        if has_content || *value(Field::Mtime) == Value::None {
            return;
        }
        let key = hash_of((change.kind, KEPT.map(value)));
        counts.entry(key).or_default()[side] += 1;
    }

    /// Returns the number of old names that have a new one each.
    pub(super) fn renamed(&self) -> u64 {
        let counts = self.counts.iter().flat_map(HashMap::values);
        counts.map(|[old, new]| old.min(new)).sum()
    }
}
