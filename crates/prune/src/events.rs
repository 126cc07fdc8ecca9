//! Reports of a run: each event about a whole file system only once.

use std::collections::HashSet;

use super::lack::Unable;
use super::skip::Skip;
use super::step::{PruneEvent, StepOutcome};

/// Passes new events on to the caller of a run.
pub(super) struct Events<'a> {
    observer: &'a mut dyn FnMut(PruneEvent),
    /// Lacking abilities of file systems that were reported.
    lacks: HashSet<Unable>,
    /// True once unstable inode numbers were reported.
    unstable: bool,
    /// True once unknown layers were reported.
    layers: bool,
    /// True once unnoticed writers were reported.
    unwatched: bool,
}

impl<'a> Events<'a> {
    pub(super) fn new(observer: &'a mut dyn FnMut(PruneEvent)) -> Events<'a> {
        Events {
            observer,
            lacks: HashSet::new(),
            unstable: false,
            layers: false,
            unwatched: false,
        }
    }

    pub(super) fn report(&mut self, event: PruneEvent) {
        if !self.is_reported(&event) {
            (self.observer)(event);
        }
    }

    /// Returns true if this was reported before, and need not be reported again.
    fn is_reported(&mut self, event: &PruneEvent) -> bool {
        match event {
            PruneEvent::Step(_, StepOutcome::Skipped(skip)) => match skip {
                Skip::Unable(unable) => !self.lacks.insert(*unable),
                Skip::UnstableInodes => std::mem::replace(&mut self.unstable, true),
                Skip::UnknownLayer => std::mem::replace(&mut self.layers, true),
                _ => false,
            },
            PruneEvent::WritersUndetected(..) => std::mem::replace(&mut self.unwatched, true),
            PruneEvent::Step(..)
            | PruneEvent::Tree(..)
            | PruneEvent::Unusable(..)
            | PruneEvent::Journal(_) => false,
        }
    }
}
