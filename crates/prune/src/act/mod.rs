//! The steps: each takes proven files, and proves once more what its change rests on.

pub(crate) mod hardlink;
pub(crate) mod moving;
pub(crate) mod reflink;
pub(crate) mod symlink;
pub(crate) mod temp;
pub(crate) mod trash;
pub(crate) mod tree;
