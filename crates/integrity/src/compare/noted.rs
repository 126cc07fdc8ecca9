//! Paths that are not compared: an earlier run's note on them is reported, or the reason for which
//! they cannot be looked at.

use std::io;

use bc_manifest::integrity::{Entry, Found, Kind};
use bc_manifest::time::format_rfc3339;

use super::{Comparison, Detail};
use crate::change::{Change, Class};
use crate::entry_ref::EntryRef;
use crate::judge;
use crate::sides::{Absence, Here};
use crate::unmounted::why_lost;
use crate::unread::UnreadDir;

impl Comparison<'_> {
    /// A path of both sides that is unchanged but was found wrong when its content was last tried.
    /// Nothing is said of its ctime, which may have been recorded before or after that.
    pub(crate) fn known(
        &mut self,
        path: &[u8],
        old: &EntryRef<'_>,
        new: &EntryRef<'_>,
        found: Found,
        tried_at: Option<i64>,
    ) -> io::Result<()> {
        self.summary.old += 1;
        self.summary.new += 1;
        // Either side may be the one that notes it.
        let unproven = old.unproven || new.unproven;
        let class = match found {
            Found::Damaged if unproven => Class::Modified,
            Found::Damaged => Class::Damaged,
            Found::Unreadable => Class::Unreadable,
        };
        self.summary.add(class);
        let mut change = Change::new(class, path, new.kind);
        change.reason = Some(found_at(tried_at));
        self.doubt(&mut change);
        self.report(change)
    }

    /// Takes a path of the new side only, which notes that it is damaged.
    pub(crate) fn known_added(
        &mut self,
        path: &[u8],
        new: &EntryRef<'_>,
        at: Option<i64>,
    ) -> io::Result<()> {
        self.summary.new += 1;
        self.summary.damaged_added += 1;
        let class = match new.unproven {
            true => Class::Modified,
            false => Class::Damaged,
        };
        self.summary.add(class);
        let mut change = Change::new(class, path, new.kind);
        change.reason = Some(found_at(at));
        self.doubt(&mut change);
        self.report(change)
    }

    /// Marks a change that is not proven to be the recorded file.
    fn doubt(&mut self, change: &mut Change) {
        if change.class == Class::Modified {
            let found = change.reason.take().unwrap_or_default();
            change.reason = Some(format!("{}; {found}", judge::UNPROVEN));
            change.unproven = true;
            self.summary.undecided += 1;
        }
    }

    /// Takes a path that the new side does not have.
    pub(crate) fn absent(&mut self, entry: &Entry, why: Absence<'_>) -> io::Result<()> {
        let (path, kind) = (&entry.path[..], entry.kind);
        match why {
            Absence::Removed => self.removed(path, &EntryRef::from(entry)),
            Absence::Unread(above) => self.unseen(path, kind, above),
            Absence::LeftOut => self.left_out(path, kind),
            Absence::Unmounted(lost, here) => {
                self.unmounted(path, kind, here, why_lost(entry, lost))
            }
        }
    }

    /// Takes a path of the old side that the new side could not look at: a directory above failed.
    fn unseen(&mut self, path: &[u8], kind: Kind, above: UnreadDir<'_>) -> io::Result<()> {
        self.summary.old += 1;
        self.summary.unseen += 1;
        self.summary.add(Class::Unreadable);
        let mut change = Change::new(Class::Unreadable, path, kind);
        change.fail(above.path, Some(above.failure));
        change.reason = Some(above.reason());
        self.report(change)
    }

    /// Takes a path of the old side that the new side was not to look at.
    fn left_out(&mut self, path: &[u8], kind: Kind) -> io::Result<()> {
        self.summary.old += 1;
        self.summary.new += 1;
        self.summary.add(Class::Ok);
        match self.detail {
            Detail::All => self.report(Change::new(Class::Ok, path, kind)),
            Detail::Changes | Detail::First => Ok(()),
        }
    }

    /// Takes a path of the old side on a file system that is no longer mounted. Only the mount
    /// point itself has a `reason`, which is reported; those below it are counted.
    fn unmounted(
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
            Some(reason) => {
                self.summary.unmounted += 1;
                reason
            }
        };
        let mut change = Change::new(Class::Unreadable, path, kind);
        change.reason = Some(reason);
        self.report(change)
    }
}

/// Returns the reason of a path that an earlier attempt found wrong.
fn found_at(at: Option<i64>) -> String {
    let at = at.map_or_else(String::new, |at| format!(" at {}", format_rfc3339(at)));
    format!("found{at}, not tried again since")
}
