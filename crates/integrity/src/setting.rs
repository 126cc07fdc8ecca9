//! Settings that errors refer to.

/// A setting that helps where a job was refused. Messages describe the problem in words that hold
/// for every program; this is the remedy, which each program names in its own way.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Setting {
    /// Setting that leaves out the check that the tree is the recorded one, or that a disk is
    /// mounted.
    Force,
    /// Setting that leaves digests out of the comparison, which compares everything else then.
    IgnoreDigest,
    /// Setting that replaces the existing file with the name of the output.
    Overwrite,
    /// Setting that writes the manifest to another place.
    Manifest,
    /// Setting that leaves out a path below a source by a pattern.
    Exclude,
}
