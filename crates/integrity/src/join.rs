//! A tree and its manifest side by side, in path order. Entries known to be the same are not looked
//! at again.

use std::sync::Arc;

use bc_walk::EntryId;

use crate::entry_loader::{EntryLoader, LoadedEntry};
use crate::error::Error;
use crate::flow::Flow;
use crate::input::{ManifestFile, Trust};
use crate::manifest_stream::ManifestStream;
use crate::options::{Work, XattrPolicy};
use crate::passing::{Passing, Run};
use crate::runs;

/// Receiver of the entries of both sides.
pub(crate) trait Sides {
    /// Returns the stream of the manifest's entries.
    fn old(&mut self) -> &mut ManifestStream;

    /// Takes a path of the tree, with the manifest's entries up to it.
    fn present(&mut self, new: &LoadedEntry<'_>) -> Result<Flow, Error>;

    /// Takes the entries before `path` that only the manifest has.
    fn before(&mut self, path: &[u8]) -> Result<Flow, Error>;

    /// Takes entries of both sides without a difference. Returns `false` if they are to be shown
    /// one by one.
    fn same(&mut self, run: &Run) -> bool;

    /// Leaves these runs out when the manifest is read: before its first entry is taken.
    fn pass_over(&mut self, runs: &Arc<[Run]>) {
        self.old().leave_out(Passing::over(runs));
    }
}

/// Treatment of entries that are the same.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Same {
    Shown,
    Counted,
}

/// Runs through the tree; the manifest's entries behind it are left to the caller. With
/// [`Same::Counted`] most entries that are the same are only counted, if the manifest's SHA-256 was
/// found right.
pub(crate) fn join(
    sides: &mut impl Sides,
    loader: &mut EntryLoader<'_>,
    manifest: &ManifestFile,
    same: Same,
    work: &Work<'_>,
) -> Result<Flow, Error> {
    let runs: Arc<[Run]> = match same {
        Same::Counted if loader.xattrs() == XattrPolicy::Skip => runs::find(
            manifest,
            &sides.old().header().clone(),
            loader.tree,
            manifest.directory(),
            work.walk_workers.usual(),
            work.cancel,
        )?,
        _ => Arc::default(),
    };
    sides.pass_over(&runs);
    let mut next = 0;
    let mut path = Vec::new();
    for run in &runs[..] {
        if loader.all_of(next..run.ids.start, work.cancel, |new| sides.present(new))? == Flow::Stop
        {
            return Ok(Flow::Stop);
        }
        path.clear();
        let first = EntryId(run.ids.start);
        loader.tree.listing.write_relative(first, &mut path);
        if sides.before(&path)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
        if !sides.same(run) {
            // Its lines, in the place of those behind it.
            let lines = manifest.again(Trust::Checked)?.only(run);
            let rest = std::mem::replace(sides.old(), lines);
            let flow = loader.all_of(run.ids.clone(), work.cancel, |new| sides.present(new))?;
            *sides.old() = rest;
            if flow == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        next = run.ids.end;
    }
    let end = loader.tree.listing.len() as u32;
    loader.all_of(next..end, work.cancel, |new| sides.present(new))
}
