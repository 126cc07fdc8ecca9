//! The first pass: what `stat` tells, against the old manifest.

use bc_manifest::integrity::{Entry, Kind};
use bc_manifest::time::parse_rfc3339;
use bc_walk::{EntryId, Identity};

use super::unchanged::{Judge, Unchanged};
use super::{EVERYTHING, Update};
use crate::change::Class;
use crate::compare::Flow;
use crate::error::Error;
use crate::old_side::OldSide;
use crate::options::{TreeOptions, Work};
use crate::present::{Looker, Present};
use crate::reread::{Candidate, Reread};
use crate::tree::Tree;
use crate::view::{View, judge};

/// What the first pass found out.
pub(super) struct Plan<'a> {
    tree: &'a Tree,
    /// By entry: is it to be read?
    pub(super) wanted: Vec<bool>,
    pub(super) candidates: Vec<Candidate>,
    /// Entries of both sides.
    pub(super) seen: u64,
    /// Is there anything to write?
    pub(super) differs: bool,
    /// Old entries of files and links, and how many of them are as recorded.
    pub(super) leaves: u64,
    pub(super) matches: u64,
    pub(super) problems: Vec<String>,
    /// Files that are as recorded by path, size and mtime alone.
    pub(super) by_name: u64,
    judge: Judge<'a>,
}

impl<'a> Plan<'a> {
    pub(super) fn new(tree: &'a Tree, elsewhere: bool) -> Plan<'a> {
        Plan {
            tree,
            wanted: vec![false; tree.listing.len()],
            candidates: Vec::new(),
            seen: 0,
            differs: false,
            leaves: 0,
            matches: 0,
            problems: Vec::new(),
            by_name: 0,
            judge: Judge::new(tree, elsewhere),
        }
    }

    pub(super) fn read(&mut self, id: EntryId) {
        self.wanted[id.0 as usize] = true;
    }

    pub(super) fn make(
        &mut self,
        mut old: OldSide,
        touched: Option<Identity>,
        options: &TreeOptions,
        what: &Update<'_>,
        work: &Work<'_>,
    ) -> Result<(), Error> {
        // Without a time of its own an entry was last verified when the
        // manifest was made.
        let made = old
            .header()
            .created_at
            .as_deref()
            .and_then(parse_rfc3339)
            .unwrap_or(i64::MIN);
        let mut looker = Looker::new(self.tree, options.xattrs, touched, work);
        looker.all(work.cancel, |new| {
            while let Some(entry) = old.take_before(new.path)? {
                self.gone(entry);
            }
            match old.take_at(new.path)? {
                Some(entry) => self.both(entry, new, made, what.reread),
                None => {
                    self.differs = true;
                    if let (Some(id), Kind::File) = (new.id, new.view.kind) {
                        self.read(id);
                    }
                }
            }
            Ok(Flow::Continue)
        })?;
        while let Some(entry) = old.take()? {
            self.gone(entry);
        }
        self.problems = old.problems().to_vec();
        self.differs |= !self.problems.is_empty();
        Ok(())
    }

    fn gone(&mut self, entry: &Entry) {
        self.differs = true;
        self.leaves += u64::from(matches!(entry.kind, Kind::File | Kind::Symlink));
    }

    fn both(&mut self, entry: &Entry, new: &Present<'_>, made: i64, reread: Reread) {
        self.seen += 1;
        let old = View::from(entry);
        let same = judge(&old, &new.compared(), EVERYTHING) == Class::Ok;
        // An imported entry has digests only; what it lacks is filled in.
        self.differs |= !same || old.mode.is_none() || entry.error.is_some();
        if !matches!(entry.kind, Kind::File | Kind::Symlink) {
            return;
        }
        self.leaves += 1;
        let (Some(id), Kind::File) = (new.id, new.view.kind) else {
            self.matches += u64::from(same || has_same_target(&old, &new.view));
            return;
        };
        let unchanged = self.judge.file(&old, &new.view, id);
        self.by_name += u64::from(unchanged == Unchanged::ByName);
        self.differs |= unchanged == Unchanged::ByName;
        self.matches += u64::from(same || unchanged == Unchanged::ByName);
        if unchanged == Unchanged::No {
            self.read(id);
            self.differs = true;
        } else if reread != Reread::None {
            let verified_at = entry.verified_at.unwrap_or(made);
            let size = new.view.size.unwrap_or(0);
            self.candidates.push(Candidate {
                verified_at,
                size,
                entry: id,
            });
        }
    }
}

/// Links of a copy: all but their targets is new.
fn has_same_target(old: &View<'_>, new: &View<'_>) -> bool {
    old.kind == new.kind && old.target.is_some() && old.target == new.target
}
