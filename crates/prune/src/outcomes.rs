//! Outcomes of a run: events for its caller, each about a whole file system only once, and totals.

use std::collections::HashSet;

use crate::skip::Skip;
use crate::skip::Unable;
use crate::step::{PruneEvent, PruneSummary, Step, StepKind, StepOutcome, TreeStep};

/// Outcomes of the steps of one thread of a run.
pub(super) struct Outcomes<'a> {
    observer: &'a mut dyn FnMut(PruneEvent),
    pub(super) summary: PruneSummary,
    /// True if another thread reports this one's events to the caller.
    pub(super) tells_later: bool,
}

impl<'a> Outcomes<'a> {
    pub(super) fn new(observer: &'a mut dyn FnMut(PruneEvent)) -> Outcomes<'a> {
        Outcomes {
            observer,
            summary: PruneSummary::default(),
            tells_later: false,
        }
    }

    pub(super) fn event(&mut self, event: PruneEvent) {
        (self.observer)(event);
    }

    pub(super) fn unwatched(&mut self, path: &[u8], errno: i32) {
        self.event(PruneEvent::WritersUndetected(path.to_vec(), errno));
    }

    /// Reports a file that cannot be kept.
    pub(super) fn unusable(&mut self, path: &[u8], skip: Skip) {
        self.summary.skip(&skip);
        self.event(PruneEvent::Unusable(path.to_vec(), skip));
    }

    /// Reports that the journal lacks the end of a step, or of the run.
    pub(super) fn unrecorded(&mut self, skip: Skip) {
        self.summary.skip(&skip);
        self.event(PruneEvent::Journal(skip));
    }

    pub(super) fn report(&mut self, step: Step, outcome: StepOutcome) {
        match &outcome {
            StepOutcome::Done { freed, .. } | StepOutcome::Would { freed } => {
                self.changed(*freed, &outcome);
                match step.kind {
                    StepKind::Leftover => self.summary.leftovers += 1,
                    _ => self.summary.changed += 1,
                }
            }
            StepOutcome::Skipped(skip) => self.summary.skip(skip),
        }
        self.event(PruneEvent::Step(step, outcome));
    }

    pub(super) fn report_tree(&mut self, step: TreeStep, outcome: StepOutcome) {
        match &outcome {
            StepOutcome::Done { freed, .. } | StepOutcome::Would { freed } => {
                self.changed(*freed, &outcome);
                self.summary.changed += step.files;
                self.summary.dirs += 1;
            }
            StepOutcome::Skipped(skip) => {
                if let Skip::Stopped { gone, freed, .. } = skip {
                    self.summary.changed += gone;
                    self.summary.freed += freed;
                }
                self.summary.skip(skip);
            }
        }
        self.event(PruneEvent::Tree(step, outcome));
    }

    fn changed(&mut self, freed: u64, outcome: &StepOutcome) {
        self.summary.freed += freed;
        let lost = matches!(outcome, StepOutcome::Done { lost, .. } if !lost.is_empty());
        self.summary.incomplete += u64::from(lost);
    }

    /// Returns the totals, with what was freed and what was used set off against each other.
    pub(super) fn finish(mut self) -> PruneSummary {
        let (freed, used) = (self.summary.freed, self.summary.used);
        self.summary.freed = freed.saturating_sub(used);
        self.summary.used = used.saturating_sub(freed);
        self.summary
    }
}

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
