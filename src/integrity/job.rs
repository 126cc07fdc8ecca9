//! Steps that every command of the applet takes in the same way.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use bc_digest::{Algorithm, Batch, CpuFeatures};
use bc_fs::PathError;
use bc_hash::HashProgress;
use bc_integrity::change::Change;
use bc_integrity::{Job, ManifestFile, Origin, Reading, WalkObserver, Work};
use bc_walk::Listing;
use bc_walk::job::{Error, ErrorKind};

use crate::files::output::Output;
use crate::files::overlap::Given;
use crate::parse::args::Common;
use crate::report::diagnostic::Diagnostic;
use crate::report::{Exit, details};
use crate::session::progress::Display;
use crate::session::{Outcome, Session};

pub fn start(
    command: &'static str,
    common: &Common,
    given: &Given<'_>,
    written: Option<&Path>,
) -> Outcome<Session> {
    Session::start("integrity", command, common, given, written)
}

/// Opens the output of a manifest.
pub fn opened_manifest(session: &Session, file: Option<&Path>) -> Outcome<Output> {
    let output = opened(session, file)?;
    Ok(output.fixed_json().only_owner_writes())
}

pub fn opened(session: &Session, file: Option<&Path>) -> Outcome<Output> {
    Ok(session.output(file)?.colors(session.common.color))
}

/// Error that ended a command early.
pub enum WorkError {
    Engine(Error),
    Write(io::Error),
}

impl WorkError {
    /// Returns true if the reader of our output went away, which is its right.
    pub fn is_broken_pipe(&self) -> bool {
        let kind = match self {
            WorkError::Engine(error) => error.io_kind(),
            WorkError::Write(error) => Some(error.kind()),
        };
        kind == Some(io::ErrorKind::BrokenPipe)
    }
}

impl From<io::Error> for WorkError {
    fn from(error: io::Error) -> WorkError {
        WorkError::Write(error)
    }
}

impl From<Error> for WorkError {
    fn from(error: Error) -> WorkError {
        WorkError::Engine(error)
    }
}

/// Runs `f` with the means to work through a tree. None: cancelled, or the
/// reader of our output went away; the session knows.
pub fn working<T>(
    session: &Session,
    algorithm: Option<Algorithm>,
    phase: &'static str,
    f: impl FnOnce(&Work<'_>) -> Result<T, WorkError>,
) -> Outcome<Option<T>> {
    working_shown(session, algorithm, phase, |work, _| f(work))
}

/// Runs `f` as [`working`] does, with the display, for a command with several phases, each of which
/// sets its name there.
pub fn working_shown<T>(
    session: &Session,
    algorithm: Option<Algorithm>,
    phase: &'static str,
    f: impl FnOnce(&Work<'_>, &Display) -> Result<T, WorkError>,
) -> Outcome<Option<T>> {
    let progress = Arc::new(HashProgress::default());
    let display = Display::start(
        &session.common,
        "walk",
        crate::session::progress::reading(&progress),
    );
    let width = algorithm.map_or(1, |a| Batch::new(&[a], CpuFeatures::detect()).width());
    // Before the walk, regardless of the number of files.
    session.read_options(1, width, 0)?;
    let reading = |job: Job| {
        display.phase(phase, job.files, job.bytes.unwrap_or(0));
        let workers = session.workers(job.files as usize, width, job.memory);
        let read = session.fit(workers, width, job.memory)?;
        Ok(Reading::new(workers)
            .start(session.common.threads.start())
            .read(read))
    };
    let begun = Instant::now();
    let walked =
        |listing: &Listing| details::walked(&session.report, listing, "entries", begun.elapsed());
    let work = Work::new(session.walk_workers(), &reading, &session.cancel, &progress)
        .shows_bytes(display.is_shown())
        .observer(Some(WalkObserver::new(session.skipped_detail(), &walked)));
    match f(&work, &display) {
        Ok(result) => Ok(Some(result)),
        Err(WorkError::Engine(error)) if error.kind() == ErrorKind::Cancelled => Ok(None),
        Err(stop) if stop.is_broken_pipe() => Ok(None),
        Err(_) if session.cancel.is_cancelled() => Ok(None),
        Err(stop) => Err(stopped(session, &stop)),
    }
}

/// Reports the error that ended the command, unless a signal did.
pub fn stopped(session: &Session, stop: &WorkError) -> Exit {
    if let Some(signal) = session.signal() {
        return Exit::Signal(signal);
    }
    match stop {
        WorkError::Engine(error) => session.fatal(error),
        WorkError::Write(error) => {
            let named = error.get_ref().and_then(|e| e.downcast_ref::<PathError>());
            let failed = || Diagnostic::failed("output", "write", error);
            session.fatal(named.map_or_else(failed, Diagnostic::from))
        }
    }
}

pub fn done_or(session: Session, stop: WorkError) -> Outcome<Exit> {
    // A signal ends reading with an error that says nothing more.
    if stop.is_broken_pipe() || session.cancel.is_cancelled() {
        Ok(session.end(Exit::Done))
    } else {
        Err(stopped(&session, &stop))
    }
}

pub fn open(session: &Session, path: &Path) -> Outcome<ManifestFile> {
    crate::files::input::check(path).map_err(|text| session.fatal(&text))?;
    let opened = session.while_reading(path.as_os_str(), || {
        if crate::parse::args::is_dash(path.as_os_str()) {
            let stdin = crate::files::input::stdin().map_err(|text| session.fatal(&text))?;
            Ok(ManifestFile::from_reader(b"-", stdin))
        } else {
            Ok(ManifestFile::open_until(path, &session.cancel))
        }
    })?;
    opened
        .map(|manifest| manifest.cancelled_by(&session.cancel))
        .map_err(|error| stopped(session, &WorkError::Engine(error)))
}

/// Gives changes to `report` until a signal comes.
pub fn until_cancelled<'a>(
    session: &'a Session,
    mut report: impl FnMut(&Change) -> io::Result<()> + 'a,
) -> impl FnMut(&Change) -> io::Result<()> + 'a {
    move |change| {
        if session.cancel.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        report(change)
    }
}

/// Returns the algorithm of the manifest's digests.
pub fn algorithm_of(session: &Session, manifest: &ManifestFile) -> Outcome<Algorithm> {
    let algorithm = manifest.algorithm();
    algorithm.map_err(|error| stopped(session, &WorkError::Engine(error)))
}

/// Returns the origin that a manifest records as its writer: this host, and its machine id.
pub fn origin() -> Origin {
    Origin::of_this_machine()
}
