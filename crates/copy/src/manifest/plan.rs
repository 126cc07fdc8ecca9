//! Where a manifest goes.

use std::path::PathBuf;

/// Where a manifest goes, and what it is about.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The file.
    pub(crate) file: PathBuf,
    /// The directory that its paths are relative to, as it is shown.
    pub(crate) root: Vec<u8>,
    /// That directory below the top: empty for the top itself.
    pub(crate) below: Vec<u8>,
    /// Whether the directory holds nothing but what was copied, so that all of it is meant.
    pub(crate) whole: bool,
}
