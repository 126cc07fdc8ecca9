//! A tree and its manifest side by side, in path order. What is known to be the same is not looked
//! at again.

use std::sync::Arc;

use bc_walk::EntryId;

use crate::compare::Flow;
use crate::error::Error;
use crate::input::{ManifestFile, Trust};
use crate::old_side::OldSide;
use crate::options::{Work, Xattrs};
use crate::passing::{Passing, Run};
use crate::present::{Looker, Present};
use crate::runs;

/// Who looks at what the two sides have.
pub(crate) trait Sides {
    /// The manifest's entries.
    fn old(&mut self) -> &mut OldSide;

    /// A path of the tree, with all that the manifest has up to it.
    fn present(&mut self, new: &Present<'_>) -> Result<Flow, Error>;

    /// What only the manifest has before `path`.
    fn before(&mut self, path: &[u8]) -> Result<Flow, Error>;

    /// Entries of both sides of which all is the same. `false`: they are to be shown one by one.
    fn same(&mut self, run: &Run) -> bool;
}

/// Whether what is the same has to be shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Same {
    Shown,
    Counted,
}

/// Runs through the tree; what the manifest has behind it is left to the caller. With
/// [`Same::Counted`] most of what is the same is counted only: that of a manifest whose SHA-256
/// was found right.
pub(crate) fn join(
    sides: &mut impl Sides,
    looker: &mut Looker<'_>,
    manifest: &ManifestFile,
    same: Same,
    work: &Work<'_>,
) -> Result<Flow, Error> {
    let runs: Arc<[Run]> = match same {
        Same::Counted if looker.xattrs() == Xattrs::Skip => runs::find(
            manifest,
            &sides.old().header().clone(),
            looker.tree,
            manifest.directory(),
            work.walk_workers.usual(),
            work.cancel,
        )?,
        _ => Arc::default(),
    };
    sides.old().leave_out(Passing::over(&runs));
    let mut next = 0;
    let mut path = Vec::new();
    for run in &runs[..] {
        if looker.all_of(next..run.ids.start, work.cancel, |new| sides.present(new))? == Flow::Stop
        {
            return Ok(Flow::Stop);
        }
        path.clear();
        let first = EntryId(run.ids.start);
        looker.tree.listing.write_relative(first, &mut path);
        if sides.before(&path)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
        if !sides.same(run) {
            // Its lines, in the place of those behind it.
            let lines = manifest.again(Trust::Checked)?.only(run);
            let rest = std::mem::replace(sides.old(), lines);
            let flow = looker.all_of(run.ids.clone(), work.cancel, |new| sides.present(new))?;
            *sides.old() = rest;
            if flow == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        next = run.ids.end;
    }
    let end = looker.tree.listing.len() as u32;
    looker.all_of(next..end, work.cancel, |new| sides.present(new))
}
