//! Continuation of a pass over paths.

/// Answer after a path: continue, or stop.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Flow {
    Continue,
    Stop,
}
