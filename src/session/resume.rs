//! The journal that runs with `--output=FILE` keep beside it, in `FILE.partial`, and `--resume`,
//! which continues from it.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use bc_digest::Algorithm;
use bc_fs::{Escaped, Size};
use bc_hash::resume::{Beginning, Earlier, JobInputs, Pace, Resume, ResumeOptions};
use bc_walk::Shard;

use crate::files::output::Output;
use crate::parse::args::WalkArgs;
use crate::parse::environment::state_dir;
use crate::parse::time::TimeBound;
use crate::report::diagnostic::Diagnostic;
use crate::session::{Outcome, Session, now};

/// A run that is recorded.
pub struct Recorded {
    pub resume: Arc<Resume>,
    /// The journal, as it is shown.
    name: String,
}

/// Begins to record the run that writes `output`, if that is a file. `going_on`: continue with the
/// records of an interrupted run.
pub fn begin(
    session: &Session,
    output: &Output,
    going_on: bool,
    job: impl FnOnce() -> JobInputs,
    algorithms: &[Algorithm],
) -> Outcome<Option<Recorded>> {
    let name = output.partial_name();
    let place = match output.partial() {
        Some(place) => {
            place.map_err(|error| session.fatal(Diagnostic::failed(&name, "dup", &error)))?
        }
        None if going_on => {
            let text = "--resume: output that is not a file has no journal to resume from";
            return Err(session.fatal(text));
        }
        None => return Ok(None),
    };
    let options = ResumeOptions::new(
        place,
        job(),
        algorithms.to_vec(),
        now(),
        tell(session, &name),
    )
    .state(state_dir())
    .earlier(match going_on {
        true => Earlier::GoOn,
        false => Earlier::SetAside,
    })
    .pace(pace(session));
    let begun = Resume::begin(options, &session.cancel);
    let (resume, beginning) = begun.map_err(|why| {
        let text = format!("{name}: --resume cannot continue it: {why}");
        session.fatal(text)
    })?;
    match beginning {
        Beginning::Kept { is_same: true } => session.report.warning(format_args!(
            "{name}: found the journal of an interrupted run, which --resume would have continued; it \
             stays until this run has read more"
        )),
        Beginning::Kept { is_same: false } => session.report.warning(format_args!(
            "{name}: found the journal of another interrupted run; it is set aside once this run keeps \
             one"
        )),
        Beginning::Anew(aside) => session.report.warning(format_args!(
            "{name}: there is no journal of this name to continue, so everything is read; an earlier \
             one was set aside as {}",
            Escaped(aside.as_encoded_bytes())
        )),
        Beginning::Without(why) => session.report.warning(format_args!(
            "{name}: {why}: left as it is; if this run is interrupted, it cannot be resumed"
        )),
        Beginning::GoesOn { files, lost } => {
            session.report.summary(format_args!(
                "{name}: resuming: {files} files were already read"
            ));
            if lost > 0 {
                session.report.warning(format_args!(
                    "{name}: the last {lost} bytes are no whole records and do not count"
                ));
            }
        }
        _ => {}
    }
    let resume = Arc::new(resume);
    Ok(Some(Recorded { resume, name }))
}

impl Recorded {
    /// Reports the journal that an interrupted or failed run has left, if it has.
    pub fn left(&self, session: &Session) {
        let is_kept = self.resume.leave();
        self.tell_aside(session);
        if is_kept {
            session
                .report
                .summary(format_args!("{}: --resume continues from here", self.name));
        }
    }

    /// Ends the journal: the result is at its destination.
    pub fn done(&self, session: &Session) {
        self.resume.done();
        self.tell_aside(session);
    }

    fn tell_aside(&self, session: &Session) {
        if let Some(aside) = self.resume.aside() {
            session.report.warning(format_args!(
                "{}: the journal of the earlier run is {} now",
                self.name,
                Escaped(aside.as_encoded_bytes())
            ));
        }
    }
}

/// Returns the limits of the records that are kept back: only a small part of a small budget, too
/// little to count, or the least budget would depend on the earlier record that it is compared
/// with.
fn pace(session: &Session) -> Pace {
    let mut pace = Pace::default();
    if let Some(Size(budget)) = session.common.memory_budget {
        let share = usize::try_from(budget / 32).unwrap_or(usize::MAX);
        pace.early = pace.early.min(share);
        pace.piece = pace.piece.min(share);
    }
    pace
}

/// Returns the callback for workers that cannot record any more; that is no failure of the run.
fn tell(session: &Session, name: &str) -> Box<dyn Fn(&str) + Send + Sync> {
    let who = format!("bc {}", session.report.applet());
    let (name, quiet) = (name.to_owned(), session.common.quiet);
    Box::new(move |why| {
        if !quiet {
            let text = format!("{name}: {why}; if this run is interrupted, it cannot be resumed");
            crate::report::caution(&who, &text);
        }
    })
}

/// Returns the job that a journal is for, as far as all commands have it: digests of these
/// algorithms, of these files.
pub fn job(
    command: &str,
    algorithms: &[Algorithm],
    roots: &[OsString],
    walk: &WalkArgs,
) -> JobInputs {
    let names: Vec<&str> = algorithms.iter().map(|a| a.name()).collect();
    let mut job = JobInputs::default()
        .with("command", command)
        .with("version", env!("CARGO_PKG_VERSION"))
        .with("algorithm", names.join(","));
    for root in roots {
        job = job.with("root", place(Path::new(root)));
    }
    if let Some(list) = &walk.files_from {
        job = job.with("--files-from", place(list));
    }
    for (name, globs) in [("--include", &walk.include), ("--exclude", &walk.exclude)] {
        for glob in globs {
            job = job.with(name, glob.as_encoded_bytes());
        }
    }
    let number = |number: Option<u64>| number.map(|number| number.to_string());
    let least = number(walk.min_size.map(|size| size.0));
    let most = number(walk.max_size.map(|size| size.0));
    let depth = number(walk.max_depth.map(u64::from));
    let newer = walk.newer.as_ref().map(TimeBound::recorded);
    let older = walk.older.as_ref().map(TimeBound::recorded);
    for (name, value) in [
        ("--min-size", least),
        ("--max-size", most),
        ("--max-depth", depth),
        ("--newer", newer),
        ("--older", older),
    ] {
        if let Some(value) = value {
            job = job.with(name, value);
        }
    }
    let flags = [
        ("--no-hidden", walk.no_hidden),
        ("--ignore-files", walk.ignore_files),
        ("--follow-symlinks", walk.follow_symlinks),
        ("--one-file-system", walk.one_file_system),
    ];
    flags
        .into_iter()
        .fold(job, |job, (name, set)| flag(job, name, set))
}

/// Adds an option that has no value, if it is given.
pub fn flag(job: JobInputs, name: &str, is_set: bool) -> JobInputs {
    match is_set {
        true => job.with(name, "given"),
        false => job,
    }
}

/// Adds the part of the tree that is asked for, unless that is all of it.
pub fn shard(job: JobInputs, shard: Option<Shard>) -> JobInputs {
    match shard {
        Some(shard) => job.with("--shard", shard.to_string()),
        None => job,
    }
}

/// Returns the real path, the same from any working directory.
fn place(path: &Path) -> Vec<u8> {
    let real = std::fs::canonicalize(path);
    let real = real.unwrap_or_else(|_| path.to_owned());
    real.into_os_string().into_encoded_bytes()
}
