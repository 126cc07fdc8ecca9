//! Settings that errors speak of.

/// A setting that helps where a job was refused. Messages say what is wrong in words that hold for
/// every program; this says what its user may change, which each program names in its own way.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Setting {
    /// The check that the tree is the one that was recorded can be left out:
    /// [`RootCheck::Forced`](crate::RootCheck::Forced).
    Force,
    /// Digests can be left out of the comparison:
    /// [`CompareRules`](crate::fields::CompareRules) without
    /// [`Field::Digest`](crate::fields::Field::Digest).
    IgnoreDigest,
    /// What is there already under the name of what is to be written can be replaced.
    Overwrite,
    /// The manifest can be written to another place.
    Manifest,
    /// What is below a source can be left out by a pattern.
    Exclude,
}
