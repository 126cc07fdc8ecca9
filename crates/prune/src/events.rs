//! Reports of a run: each event at once, or kept for later, and each one about a whole file system
//! only once.

use std::collections::HashSet;

use super::lack::Unable;
use super::skip::Skip;
use super::step::{PruneEvent, Step, StepOutcome, TreeStep};

/// Passes new events on to the caller of a run.
pub(super) struct Events<'a> {
    observer: &'a mut dyn FnMut(PruneEvent<'_>),
    /// Lacking abilities of file systems that were reported.
    lacks: HashSet<Unable>,
    /// True once unstable inode numbers were reported.
    unstable: bool,
    /// True once unknown layers were reported.
    layers: bool,
    /// True once unnoticed writers were reported.
    unwatched: bool,
    /// True once it was reported that a place is known only by making a file there.
    unasked: bool,
}

impl<'a> Events<'a> {
    pub(super) fn new(observer: &'a mut dyn FnMut(PruneEvent<'_>)) -> Events<'a> {
        Events {
            observer,
            lacks: HashSet::new(),
            unstable: false,
            layers: false,
            unwatched: false,
            unasked: false,
        }
    }

    pub(super) fn report(&mut self, event: PruneEvent<'_>) {
        if !self.is_reported(event) {
            (self.observer)(event);
        }
    }

    /// Returns true if this was reported before, and need not be reported again.
    fn is_reported(&mut self, event: PruneEvent<'_>) -> bool {
        match event {
            PruneEvent::Step(_, StepOutcome::Skipped(skip)) => match skip {
                Skip::Unable(unable) => !self.lacks.insert(*unable),
                Skip::UnstableInodes => std::mem::replace(&mut self.unstable, true),
                Skip::UnknownLayer => std::mem::replace(&mut self.layers, true),
                _ => false,
            },
            PruneEvent::WritersUndetected(..) => std::mem::replace(&mut self.unwatched, true),
            PruneEvent::ReferenceUndecided(_) => std::mem::replace(&mut self.unasked, true),
            PruneEvent::Step(..)
            | PruneEvent::Tree(..)
            | PruneEvent::Unusable(..)
            | PruneEvent::ProbeLeftBehind(..)
            | PruneEvent::Journal(_) => false,
        }
    }
}

/// A [`PruneEvent`] that is kept.
pub(super) enum KeptEvent {
    Step(Step, StepOutcome),
    Tree(TreeStep, StepOutcome),
    Unusable(Vec<u8>, Skip),
    WritersUndetected(Vec<u8>, i32),
    ReferenceUndecided(Vec<u8>),
    ProbeLeftBehind(Vec<u8>, i32),
    Journal(Skip),
}

impl From<PruneEvent<'_>> for KeptEvent {
    fn from(event: PruneEvent<'_>) -> KeptEvent {
        match event {
            PruneEvent::Step(step, outcome) => KeptEvent::Step(step.clone(), outcome.clone()),
            PruneEvent::Tree(step, outcome) => KeptEvent::Tree(step.clone(), outcome.clone()),
            PruneEvent::Unusable(path, skip) => KeptEvent::Unusable(path.to_vec(), skip.clone()),
            PruneEvent::WritersUndetected(path, errno) => {
                KeptEvent::WritersUndetected(path.to_vec(), errno)
            }
            PruneEvent::ReferenceUndecided(path) => KeptEvent::ReferenceUndecided(path.to_vec()),
            PruneEvent::ProbeLeftBehind(path, errno) => {
                KeptEvent::ProbeLeftBehind(path.to_vec(), errno)
            }
            PruneEvent::Journal(skip) => KeptEvent::Journal(skip.clone()),
        }
    }
}

impl KeptEvent {
    pub(super) fn event(&self) -> PruneEvent<'_> {
        match self {
            KeptEvent::Step(step, outcome) => PruneEvent::Step(step, outcome),
            KeptEvent::Tree(step, outcome) => PruneEvent::Tree(step, outcome),
            KeptEvent::Unusable(path, skip) => PruneEvent::Unusable(path, skip),
            KeptEvent::WritersUndetected(path, errno) => {
                PruneEvent::WritersUndetected(path, *errno)
            }
            KeptEvent::ReferenceUndecided(path) => PruneEvent::ReferenceUndecided(path),
            KeptEvent::ProbeLeftBehind(path, errno) => PruneEvent::ProbeLeftBehind(path, *errno),
            KeptEvent::Journal(skip) => PruneEvent::Journal(skip),
        }
    }
}
