//! Settings that errors speak of.

/// A setting that helps where a job was refused. Messages say what is wrong in words that hold for
/// every program; this says what its user may change, which each program names in its own way.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Setting {
    /// The check that what is there is what was meant can be left out: that a tree is the one that was
    /// recorded, that a disk is mounted.
    Force,
    /// Digests can be left out of the comparison, which looks at all else then.
    IgnoreDigest,
    /// What is there already under the name of what is to be written can be replaced.
    Overwrite,
    /// The manifest can be written to another place.
    Manifest,
    /// What is below a source can be left out by a pattern.
    Exclude,
}
