//! A manifest's record of one file.

use bc_digest::{Algorithm, Digest};

/// A path and the digests that its content has, or should have.
#[derive(Clone, Debug)]
pub struct FileDigests {
    /// Path as recorded, as raw bytes.
    pub path: Vec<u8>,
    /// At least one where it is to be [checked](crate::check::check), and then all of them must
    /// match; none, where manifests are compared, of a file that could not be read.
    pub digests: Vec<(Algorithm, Digest)>,
}
