//! Place of a manifest.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use crate::target::place_of;

/// Place and subject of a manifest.
#[derive(Clone, Debug)]
pub(crate) struct ManifestPlan {
    /// The file.
    pub(crate) file: PathBuf,
    /// The directory that its paths are relative to, as it is shown.
    pub(crate) root: Vec<u8>,
    /// Path of that directory below the top: empty for the top itself.
    pub(crate) below: Vec<u8>,
    /// True if the directory holds nothing but what was copied, so that the manifest describes all
    /// of it.
    pub(crate) whole: bool,
}

impl ManifestPlan {
    /// Returns the path that a manifest of this directory records as its root.
    pub(crate) fn real_root(&self) -> Vec<u8> {
        let root = place_of(OsStr::from_bytes(&self.root));
        let real = std::fs::canonicalize(OsStr::from_bytes(&root));
        real.map_or(root, |real| real.into_os_string().into_vec())
    }
}
