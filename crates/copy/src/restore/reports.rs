//! Events of the paths, reported in the order of the paths, whichever thread was done first. An
//! event of a path waits until the outcomes of all paths before it are known.

use std::borrow::Cow;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard};

use bc_walk::Error;

use super::RepairSource;
use super::needs::Need;
use super::options::{Repaired, RestoreEvent, RestoreObserver};
use crate::lock;

/// Event of a path that waits for its turn.
pub(super) enum PathEvent {
    Repaired {
        from: Option<Vec<u8>>,
        linked: Option<Vec<u8>>,
        kept: Option<Vec<u8>>,
    },
    Missing(Cow<'static, str>),
    /// Name of a part that was put beside.
    Partial(Vec<u8>),
    Failed(Error),
    Incomplete(Error),
    /// A copy that could not be read.
    Unreadable(Error),
}

impl PathEvent {
    pub(super) fn repaired(source: RepairSource<'_>, kept: Option<&[u8]>) -> PathEvent {
        let (from, linked) = match source {
            RepairSource::Record => (None, None),
            RepairSource::Copy(from) => (Some(from.to_vec()), None),
            RepairSource::Name(linked) => (None, Some(linked.to_vec())),
        };
        let kept = kept.map(<[u8]>::to_vec);
        PathEvent::Repaired { from, linked, kept }
    }

    fn report(&self, need: &Need, observer: &RestoreObserver<'_>) {
        let (path, loss) = (&need.path[..], need.loss);
        match self {
            PathEvent::Repaired { from, linked, kept } => {
                observer(RestoreEvent::Repaired(&Repaired {
                    path,
                    loss,
                    from: from.as_deref(),
                    linked: linked.as_deref(),
                    kept: kept.as_deref(),
                }));
            }
            PathEvent::Missing(why) => observer(RestoreEvent::Missing { path, loss, why }),
            PathEvent::Partial(part) => observer(RestoreEvent::Partial { path, part }),
            PathEvent::Failed(error) => observer(RestoreEvent::Failed { path, loss, error }),
            PathEvent::Incomplete(error) => observer(RestoreEvent::Incomplete(error)),
            PathEvent::Unreadable(error) => observer(RestoreEvent::Unreadable(error)),
        }
    }
}

/// The events of all paths, by the numbers of the needs.
#[derive(Default)]
pub(super) struct PathReports {
    /// For each need, true once its outcome is known.
    settled: Vec<AtomicBool>,
    waiting: Mutex<WaitingEvents>,
}

#[derive(Default)]
struct WaitingEvents {
    events: Vec<Vec<PathEvent>>,
    /// Number of the first need whose events are not all reported.
    next: usize,
}

impl PathReports {
    /// Makes the reports of so many needs.
    pub(super) fn new(needs: usize) -> PathReports {
        let mut waiting = WaitingEvents::default();
        waiting.events.resize_with(needs, Vec::new);
        PathReports {
            settled: (0..needs).map(|_| AtomicBool::new(false)).collect(),
            waiting: Mutex::new(waiting),
        }
    }

    pub(super) fn is_settled(&self, need: usize) -> bool {
        self.settled[need].load(Relaxed)
    }

    fn waiting(&self) -> MutexGuard<'_, WaitingEvents> {
        lock(&self.waiting)
    }

    /// Adds an event of a path whose outcome is not known yet.
    pub(super) fn add(
        &self,
        need: usize,
        event: PathEvent,
        needs: &[Need],
        observer: &RestoreObserver<'_>,
    ) {
        let mut waiting = self.waiting();
        match need < waiting.next {
            true => event.report(&needs[need], observer),
            false => waiting.events[need].push(event),
        }
    }

    /// Adds the outcome of a path, and reports what waited for it alone.
    pub(super) fn settle(
        &self,
        need: usize,
        outcome: PathEvent,
        needs: &[Need],
        observer: &RestoreObserver<'_>,
    ) {
        let mut waiting = self.waiting();
        waiting.events[need].push(outcome);
        self.settled[need].store(true, Relaxed);
        while waiting.next < needs.len() && self.is_settled(waiting.next) {
            waiting.report_next(needs, observer);
        }
    }

    /// Reports what still waits: nothing more is begun.
    pub(super) fn end(&self, needs: &[Need], observer: &RestoreObserver<'_>) {
        let mut waiting = self.waiting();
        while waiting.next < needs.len() {
            waiting.report_next(needs, observer);
        }
    }
}

impl WaitingEvents {
    fn report_next(&mut self, needs: &[Need], observer: &RestoreObserver<'_>) {
        let events = std::mem::take(&mut self.events[self.next]);
        events
            .iter()
            .for_each(|event| event.report(&needs[self.next], observer));
        self.next += 1;
    }
}
