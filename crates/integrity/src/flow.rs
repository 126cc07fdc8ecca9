//! Whether a pass over paths goes on.

/// What to do after a path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Flow {
    Continue,
    Stop,
}
