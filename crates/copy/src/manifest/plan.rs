//! Place of a manifest.

use std::path::PathBuf;

/// Place and subject of a manifest.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
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
