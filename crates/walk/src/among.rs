//! Membership of a file in the trees below some roots, by whichever path leads to it.

use std::path::Path;

use bc_pool::{Cancel, WorkerPanic};

use crate::options::{Metadata, Symlinks, WalkOptions};
use crate::places::OwnFile;
use crate::walk::walk;
use bc_pool::dispatch::Workers;

/// True if a walk of `roots` without any filter comes upon a file: under its own name, a hard link,
/// a bind mount, or a link that is followed. For programs that are about to replace the file.
///
/// # Errors
/// If a worker panics.
pub fn is_among(
    roots: &[impl AsRef<Path>],
    file: &OwnFile,
    symlinks: Symlinks,
    workers: impl Into<Workers>,
    cancel: &Cancel,
) -> Result<bool, WorkerPanic> {
    let options = WalkOptions::default()
        .symlinks(symlinks)
        .metadata(Metadata::None)
        .leave_out(vec![file.clone()]);
    let listing = walk(roots, &options, workers, cancel)?;
    Ok(listing.skipped().left_out > 0)
}
