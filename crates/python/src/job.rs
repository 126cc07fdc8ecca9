//! Jobs: each on a thread of its own, which hands over items as it has them and its result in the
//! end. The thread that waits for either holds no interpreter, and wakes to look for signals, to
//! report progress, and to end the job if its caller wants no more.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::Builder;
use std::time::Duration;

use bit_crafts::{Cancel, Error, ErrorKind, Means, Progress};
use nix::sys::signal::{SigSet, Signal};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::errors::exception;
use crate::items::Item;
#[cfg(debug_assertions)]
use crate::paths::PathArg;

/// Interval between two looks for a signal.
const LOOK: Duration = Duration::from_millis(25);

/// Most items that wait to be taken; a job with more of them waits.
const MOST_WAITING: usize = 4096;

/// Result of a job, which becomes a Python object.
pub(crate) trait Outcome: Clone + Send + 'static {
    /// Makes the object.
    fn object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>>;
}

/// What makes the result's object, or the exception in its place.
type Ending = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// Means of a job as its Python function was given them: the number of threads, the token that
/// cancels it, true if items are taken one by one, and true if progress is reported.
#[derive(FromPyObject)]
pub(crate) struct Call(Option<usize>, Option<Py<CancelToken>>, bool, bool);

/// The place where a job and its caller meet.
struct Meeting {
    cancel: Cancel,
    /// The process in which the job's thread is.
    process: u32,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    items: Vec<Box<dyn Item>>,
    progress: Option<Progress>,
    ending: Option<Ending>,
    has_ended: bool,
    /// True once nobody takes items any more.
    is_left: bool,
}

impl Meeting {
    fn new() -> Meeting {
        Meeting {
            cancel: Cancel::default(),
            process: std::process::id(),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Returns true in the process of the job's thread. In one that was forked from it nobody gives
    /// the lock back, if that thread had it.
    fn is_here(&self) -> bool {
        std::process::id() == self.process
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the job to end; from here on it waits for no item to be taken.
    fn stop(&self) {
        self.cancel.stop();
        // Under the lock: a job that is about to wait would miss it.
        let _state = self.lock();
        self.changed.notify_all();
    }

    /// Ends the job early; its items are not wanted.
    fn leave(&self) {
        self.lock().is_left = true;
        self.stop();
    }

    /// Waits until there is something to take, or it is time to look for signals.
    fn wait(&self) -> (Vec<Box<dyn Item>>, Option<Progress>, bool) {
        let state = self.lock();
        let is_idle = |state: &mut State| state.items.is_empty() && !state.has_ended;
        let waited = self.changed.wait_timeout_while(state, LOOK, is_idle);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let taken = std::mem::take(&mut state.items);
        if !taken.is_empty() {
            self.changed.notify_all();
        }
        (taken, state.progress.take(), state.has_ended)
    }
}

/// The way of a job's items to its caller.
pub(crate) struct Each(Option<Arc<Meeting>>);

impl Each {
    /// Returns true if somebody takes items.
    pub(crate) fn is_wanted(&self) -> bool {
        self.0.is_some()
    }

    /// Hands over an item. It waits while many others do, unless the job was cancelled: the few that
    /// were on their way then are still wanted.
    pub(crate) fn give(&self, item: impl Item) {
        self.give_few(item, MOST_WAITING);
    }

    /// Hands over an item. It waits while `most` others do.
    pub(crate) fn give_few(&self, item: impl Item, most: usize) {
        let Some(meeting) = &self.0 else {
            return;
        };
        let is_full = |state: &mut State| {
            state.items.len() >= most && !state.is_left && !meeting.cancel.is_cancelled()
        };
        let waited = meeting.changed.wait_while(meeting.lock(), is_full);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.is_left {
            return;
        }
        state.items.push(Box::new(item));
        if state.items.len() == 1 {
            meeting.changed.notify_all();
        }
    }
}

/// A job at work.
#[pyclass(frozen, module = "bit_crafts._native")]
pub(crate) struct Job {
    meeting: Arc<Meeting>,
}

impl Job {
    /// Starts a job.
    pub(crate) fn start<T: Outcome>(
        call: &Call,
        work: impl FnOnce(&Means<'_>, &Each) -> Result<T, Error> + Send + 'static,
    ) -> PyResult<Job> {
        let Call(threads, token, streams, reports) = call;
        let (threads, streams, reports) = (*threads, *streams, *reports);
        let meeting = Arc::new(Meeting::new());
        if let Some(token) = token {
            token.get().join(&meeting);
        }
        let job = Job {
            meeting: Arc::clone(&meeting),
        };
        let run = move || {
            leave_signals_to_others();
            let done = catch_unwind(AssertUnwindSafe(|| {
                let mut means = Means::new().cancel(&meeting.cancel);
                if let Some(count) = threads {
                    means = means.threads(count);
                }
                if reports {
                    let meeting = Arc::clone(&meeting);
                    means = means.progress(move |now| meeting.lock().progress = Some(now));
                }
                let each = Each(streams.then(|| Arc::clone(&meeting)));
                work(&means, &each)
            }));
            let done = done.unwrap_or_else(|panic| Err(of_panic(&*panic)));
            let mut state = meeting.lock();
            state.ending = Some(Box::new(move |py| object_of(py, done)));
            state.has_ended = true;
            meeting.changed.notify_all();
        };
        Builder::new().name("bit-crafts".to_owned()).spawn(run)?;
        Ok(job)
    }

    /// Takes what there is, and returns true once the job has ended. Signals and a failure of
    /// `report` end the job first.
    fn take(
        &self,
        py: Python<'_>,
        report: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(Vec<Box<dyn Item>>, bool)> {
        if !self.meeting.is_here() {
            let text = "the job runs in the process that this one was forked from";
            return Err(PyRuntimeError::new_err(text));
        }
        let (items, progress, has_ended) = py.detach(|| self.meeting.wait());
        let looked = py.check_signals().and_then(|()| match (report, progress) {
            (Some(report), Some(now)) => {
                let now = (now.files, now.bytes, now.files_total, now.bytes_total);
                report.call1(now).map(drop)
            }
            _ => Ok(()),
        });
        match looked {
            Ok(()) => Ok((items, has_ended)),
            Err(error) => {
                self.meeting.leave();
                Err(match self.wait_for_end(py) {
                    Ok(()) => error,
                    Err(second) => raised_during(py, second, &error)?,
                })
            }
        }
    }

    /// Waits for the end of a job that was cancelled, or for the exception of a signal.
    fn wait_for_end(&self, py: Python<'_>) -> PyResult<()> {
        while !py.detach(|| self.meeting.wait()).2 {
            py.check_signals()?;
        }
        Ok(())
    }
}

#[pymethods]
impl Job {
    /// Waits for the result.
    fn result(&self, py: Python<'_>, report: Option<&Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
        while !self.take(py, report)?.1 {}
        let ending = self.meeting.lock().ending.take();
        match ending {
            Some(ending) => ending(py),
            None => Err(PyRuntimeError::new_err("the result was taken before")),
        }
    }

    /// Waits for items and returns some; `None` once there are no more.
    fn items<'py>(
        &self,
        py: Python<'py>,
        report: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyList>>> {
        loop {
            let (items, has_ended) = self.take(py, report)?;
            if !items.is_empty() {
                let objects = items.iter().map(|item| item.object(py));
                let objects = objects.collect::<PyResult<Vec<_>>>()?;
                return PyList::new(py, objects).map(Some);
            }
            if has_ended {
                return Ok(None);
            }
        }
    }

    /// Asks the job to end early, without a wait for that.
    fn leave(&self) {
        if self.meeting.is_here() {
            self.meeting.leave();
        }
    }

    /// Ends the job early, and waits until it has.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.leave();
        match self.meeting.is_here() {
            true => self.wait_for_end(py),
            false => Ok(()),
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Keeps signals from the calling thread and those that it starts: a handler of Python's lets system
/// calls fail, and the interpreter's own threads take them as well. Not those of a fault, which are
/// the thread's own.
fn leave_signals_to_others() {
    let mut signals = SigSet::all();
    for own in [
        Signal::SIGSEGV,
        Signal::SIGBUS,
        Signal::SIGFPE,
        Signal::SIGILL,
        Signal::SIGABRT,
    ] {
        signals.remove(own);
    }
    // It fails for no mask; and a job with signals is as good as one.
    let _ = signals.thread_block();
}

/// Returns an exception that a signal raised while another one was on its way, as Python links them.
fn raised_during(py: Python<'_>, second: PyErr, first: &PyErr) -> PyResult<PyErr> {
    if !second.value(py).is(first.value(py)) {
        second.value(py).setattr("__context__", first.value(py))?;
    }
    Ok(second)
}

fn of_panic(panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    Error::new(
        ErrorKind::Panic,
        text.unwrap_or("a panic without a message"),
    )
}

fn object_of<T: Outcome>(py: Python<'_>, done: Result<T, Error>) -> PyResult<Py<PyAny>> {
    match done {
        Ok(result) => Ok(result.object(py)?.unbind()),
        Err(error) => {
            let partial = error.partial::<T>().cloned();
            let partial = partial.map(|result| result.object(py)).transpose()?;
            Err(exception(py, &error, partial)?)
        }
    }
}

/// Starts a job that panics, as no other does. No wheel has it.
#[cfg(debug_assertions)]
#[pyfunction]
pub(crate) fn panic(call: Call) -> PyResult<Job> {
    Job::start(&call, |_, _| -> Result<bit_crafts::Hashed, _> {
        std::panic::panic_any("of a test")
    })
}

/// Starts a job that waits until this FIFO has a writer, and is deaf to cancellation, as a read from
/// a server that is gone. No wheel has it.
#[cfg(debug_assertions)]
#[pyfunction]
pub(crate) fn deaf(fifo: PathArg, call: Call) -> PyResult<Job> {
    Job::start(&call, move |means, _| -> Result<bit_crafts::Hashed, _> {
        means.run(Progress::default, || {
            let opened = std::fs::File::open(&fifo.0);
            Err(opened.map_or_else(
                |error| Error::io(&fifo.0, "open", &error),
                |_| Error::cancelled(),
            ))
        })
    })
}

/// A request to stop, for any number of jobs. It may be made by any thread, and by a signal handler.
///
/// >>> import bit_crafts
/// >>> cancel = bit_crafts.Cancel()
/// >>> cancel.stop()
/// >>> bit_crafts.hash(".", cancel=cancel)
/// Traceback (most recent call last):
///     ...
/// bit_crafts.CancelledError: cancelled before all was done
#[pyclass(frozen, module = "bit_crafts", name = "Cancel")]
#[derive(Default)]
pub(crate) struct CancelToken {
    is_stopped: Cancel,
    jobs: Mutex<Vec<Weak<Meeting>>>,
}

impl CancelToken {
    fn join(&self, job: &Arc<Meeting>) {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.retain(|job| job.strong_count() > 0);
        jobs.push(Arc::downgrade(job));
        if self.is_stopped.is_cancelled() {
            job.cancel.stop();
        }
    }
}

#[pymethods]
impl CancelToken {
    #[new]
    fn new() -> CancelToken {
        CancelToken::default()
    }

    /// Asks all jobs that have it to end: those at work, and those to come.
    fn stop(&self) {
        self.is_stopped.stop();
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let jobs = jobs.iter().filter_map(Weak::upgrade);
        jobs.filter(|job| job.is_here()).for_each(|job| job.stop());
    }

    /// Returns True once a stop was asked for.
    fn is_cancelled(&self) -> bool {
        self.is_stopped.is_cancelled()
    }
}
