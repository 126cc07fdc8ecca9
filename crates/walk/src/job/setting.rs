//! Settings of jobs that errors refer to.

/// A setting that helps where a job was refused. Messages describe the problem in words that hold
/// for every program; this is the remedy, which each program names in its own way.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Setting {
    /// Setting that leaves out the check that the tree is the recorded one, or that a disk is
    /// mounted: `root_check`, and `force` of a search for what is unique.
    Force,
    /// Setting that leaves digests out of the comparison, which compares everything else then:
    /// the `ignore` of its rules.
    IgnoreDigest,
    /// Setting that replaces the existing file with the name of the output: `overwrite`, and
    /// `replace_manifest` of a copy.
    Overwrite,
    /// Setting that writes the manifest to another place: `manifest` of a copy.
    Manifest,
    /// Setting that leaves out a path below a source by a pattern: `exclude` of its walk.
    Exclude,
}
