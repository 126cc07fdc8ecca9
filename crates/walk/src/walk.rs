//! The walk.

use std::ffi::OsString;

use bc_pool::{Cancel, WorkerPanic};

use crate::{Listing, Options};

/// Lists what is below the roots.
pub fn walk(
    roots: &[OsString],
    options: &Options,
    workers: usize,
    cancel: &Cancel,
) -> Result<Listing, WorkerPanic> {
    let _ = (roots, options, workers, cancel);
    unimplemented!()
}

/// Lists exactly these paths.
pub fn list_files(
    paths: Vec<Vec<u8>>,
    options: &Options,
    workers: usize,
    cancel: &Cancel,
) -> Result<Listing, WorkerPanic> {
    let _ = (paths, options, workers, cancel);
    unimplemented!()
}
