//! What killed runs left: recognised by its names, told from what a living run is at, and removed
//! where that loses nothing.

pub(crate) mod claim;
pub(crate) mod leftover;
pub(crate) mod sweep;
