//! `bc integrity`: record trees, verify them, tell decay from edits.

mod args;
mod foreign;
mod html;
mod output;

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bc_digest::{Algorithm, Batch, Kernels};
use bc_hash::Progress;
use bc_integrity::compare::Detail;
use bc_integrity::fields::{Fields, Mode as EngineMode, Rules};
use bc_integrity::report::{Format as ReportFormat, Header, Report};
use bc_integrity::{
    Create, Damaged, Diff, Error, ErrorKind, Job, ManifestFile, Outcome as Verdict, Reading,
    Reread, RootCheck, Summary, TreeOptions, Trust, Update, Verify, Work, Xattrs,
};
use bc_manifest::compress::Compressor;
use bc_walk::{Entries, Metadata};
use clap::{CommandFactory, FromArgMatches};

use crate::args::WalkArgs;
use crate::exit::Exit;
use crate::output::{Output, Written};
use crate::progress::Display;
use crate::run::{Outcome, Session};
use args::{DiffArgs, IntegrityCli, IntegrityCommand, ManifestArgs, Mode, UpdateArgs, VerifyArgs};
use output::Changes;

/// The command tree of the applet.
pub fn command() -> clap::Command {
    IntegrityCli::command()
}

/// Runs a parsed command line.
pub fn run(matches: &clap::ArgMatches) -> Exit {
    let cli = match IntegrityCli::from_arg_matches(matches) {
        Ok(cli) => cli,
        Err(error) => return crate::config::usage(error),
    };
    let exit = match &cli.command {
        IntegrityCommand::Manifest(args) => manifest(args),
        IntegrityCommand::Verify(args) => verify(args),
        IntegrityCommand::Diff(args) => diff(args),
        IntegrityCommand::Update(args) => update(args),
        IntegrityCommand::Export(args) => foreign::export(args),
        IntegrityCommand::Import(args) => foreign::import(args),
    };
    exit.unwrap_or_else(|fatal| fatal)
}

fn manifest(args: &ManifestArgs) -> Outcome<Exit> {
    let mut session = Session::start("integrity", "manifest", &args.common)?;
    let tree = tree_options(args, &session)?;
    let output = Output::open(args.output.as_deref()).map_err(|text| session.fatal(&text))?;
    let leave_out = crate::output::identity(args.output.as_deref());
    let what = Create {
        root: &args.root,
        tree,
        algorithm: args.algorithm,
        created_at: now(),
        host: host(),
        leave_out: leave_out.into_iter().collect(),
    };
    let compressed = is_compressed(args.output.as_deref());
    let mut output = output;
    let created = working(&session, Some(args.algorithm), "manifest", |work| {
        let on_failure = &mut |path: &[u8], failure: &bc_manifest::Failure| {
            let path = crate::run::below(&args.root, path);
            let text = format!(
                "{}: {}: {}",
                bc_manifest::escape(&path),
                failure.op,
                failure.message
            );
            session.report.problem(&text);
        };
        if compressed {
            let to = Compressor::new(&mut output).map_err(Stop::Write)?;
            let (to, created) = bc_integrity::create(&what, work, to, on_failure)?;
            to.finish().map_err(Stop::Write)?;
            Ok(created)
        } else {
            Ok(bc_integrity::create(&what, work, &mut output, on_failure)?.1)
        }
    })?;
    let Some(created) = created else {
        return Ok(session.end(Exit::Done));
    };
    if let Err(text) = output.finish(Ok(())) {
        let exit = session.fatal(&text);
        return Ok(session.end(exit));
    }
    let trailer = &created.trailer;
    session.report.note(
        1,
        &format!(
            "manifest: {} entries, {} files, {} bytes, {} errors, {:.3} s",
            trailer.entries,
            trailer.files,
            trailer.bytes,
            trailer.errors,
            session.elapsed(),
        ),
    );
    session
        .metrics
        .set("entries", "Entries recorded.", trailer.entries as f64);
    session
        .metrics
        .set("files", "Files hashed.", created.totals.read.files as f64);
    session.metrics.set(
        "read_bytes",
        "Bytes read.",
        created.totals.read.bytes as f64,
    );
    let exit = session.report.exit();
    Ok(session.end(exit))
}

fn verify(args: &VerifyArgs) -> Outcome<Exit> {
    let mut session = Session::start("integrity", "verify", &args.common)?;
    let manifest = open(&session, &args.manifest)?;
    let rules = Rules {
        mode: mode(args.mode),
        ignore: ignored(&session, &args.ignore)?,
    };
    let algorithm = manifest
        .algorithm()
        .map_err(|error| stopped(&session, &Stop::Engine(error)))?;
    let mut output = Output::open(args.output.as_deref()).map_err(|text| session.fatal(&text))?;
    let mut report = Changes::new(&mut output, args.format);
    let detail = match (args.fail_fast, session.report.shows(1)) {
        (true, _) => Detail::First,
        (_, true) => Detail::All,
        _ => Detail::Changes,
    };
    let (trust, root_check) = trust(args.force);
    let header = Header {
        command: "verify",
        old: manifest.name(),
        new: args.root.as_encoded_bytes(),
        rules,
        algorithm: algorithm.name(),
    };
    let what = Verify {
        root: &args.root,
        manifest: &manifest,
        rules,
        detail,
        trust,
        root_check,
    };
    let verified = working(&session, Some(algorithm), "verify", |work| {
        report.begin(&header).map_err(Stop::Write)?;
        let verified = bc_integrity::verify(&what, work, &mut |change| report.change(change))?;
        report
            .end(&verified.summary, &verified.problems)
            .map_err(Stop::Write)?;
        Ok(verified)
    })?;
    let Some(verified) = verified else {
        return Ok(session.end(Exit::Done));
    };
    for problem in &verified.problems {
        session.report.warning(problem);
    }
    session
        .metrics
        .set("files", "Files read.", verified.totals.read.files as f64);
    session.metrics.set(
        "read_bytes",
        "Bytes read.",
        verified.totals.read.bytes as f64,
    );
    Ok(conclude(session, output, &verified.summary))
}

fn diff(args: &DiffArgs) -> Outcome<Exit> {
    let session = Session::start("integrity", "diff", &args.common)?;
    let old = open(&session, &args.old)?;
    let new = open(&session, &args.new)?;
    let rules = Rules {
        mode: EngineMode::Strict,
        ignore: ignored(&session, &args.ignore)?,
    };
    let algorithm = new
        .algorithm()
        .map_err(|error| stopped(&session, &Stop::Engine(error)))?;
    let mut output = Output::open(args.output.as_deref()).map_err(|text| session.fatal(&text))?;
    let mut report = Changes::new(&mut output, args.format);
    let detail = if session.report.shows(1) {
        Detail::All
    } else {
        Detail::Changes
    };
    let header = Header {
        command: "diff",
        old: old.name(),
        new: new.name(),
        rules,
        algorithm: algorithm.name(),
    };
    let what = Diff {
        old: &old,
        new: &new,
        rules,
        detail,
        trust: trust(args.force).0,
    };
    let compared = (|| {
        report.begin(&header).map_err(Stop::Write)?;
        let diffed = bc_integrity::diff(&what, &mut |change| report.change(change))?;
        report
            .end(&diffed.summary, &diffed.problems)
            .map_err(Stop::Write)?;
        Ok(diffed)
    })();
    let diffed = match compared {
        Ok(diffed) => diffed,
        Err(stop) => return done_or(session, stop),
    };
    for problem in &diffed.problems {
        session.report.warning(problem);
    }
    Ok(conclude(session, output, &diffed.summary))
}

fn update(args: &UpdateArgs) -> Outcome<Exit> {
    let mut session = Session::start("integrity", "update", &args.common)?;
    let reread = match &args.reread {
        Some(text) => text
            .parse::<Reread>()
            .map_err(|error| session.fatal(&format!("--reread: {error}")))?,
        None => Reread::None,
    };
    let algorithm = open(&session, &args.manifest)?
        .algorithm()
        .map_err(|error| stopped(&session, &Stop::Engine(error)))?;
    let mut output = Output::open(None).map_err(|text| session.fatal(&text))?;
    let mut report = Report::new(&mut output, ReportFormat::Text);
    let (trust, root_check) = trust(args.force);
    let what = Update {
        root: &args.root,
        manifest: &args.manifest,
        reread,
        damaged: if args.accept_damaged {
            Damaged::Accept
        } else {
            Damaged::Keep
        },
        detail: if session.report.shows(1) {
            Detail::All
        } else {
            Detail::Changes
        },
        trust,
        root_check,
        now: now(),
    };
    let updated = working(&session, Some(algorithm), "update", |work| {
        Ok(bc_integrity::update(&what, work, &mut |change| {
            report.change(change)
        })?)
    })?;
    let Some(updated) = updated else {
        return Ok(session.end(Exit::Done));
    };
    for problem in &updated.problems {
        session.report.warning(problem);
    }
    session.report.note(
        1,
        match updated.written {
            Some(_) => "the manifest was rewritten",
            None => "nothing changed; the manifest was left as it is",
        },
    );
    session
        .metrics
        .set("files", "Files read.", updated.totals.read.files as f64);
    session.metrics.set(
        "read_bytes",
        "Bytes read.",
        updated.totals.read.bytes as f64,
    );
    // Bringing a manifest up to date is what was asked for: only damage and
    // what could not be read are worth an exit code.
    let exit = conclude_with(&mut session, output, &updated.summary);
    let exit = if exit == Exit::Differs && unread(&updated.summary) == 0 {
        Exit::Done
    } else {
        exit
    };
    Ok(session.end(exit))
}

fn unread(summary: &Summary) -> u64 {
    summary.count(bc_integrity::change::Class::Unreadable)
}

/// What ended a command early.
enum Stop {
    Engine(Error),
    Write(io::Error),
}

impl Stop {
    /// Did the reader of our output go away, which is its right?
    fn is_broken_pipe(&self) -> bool {
        let kind = match self {
            Stop::Engine(error) => error.io_kind(),
            Stop::Write(error) => Some(error.kind()),
        };
        kind == Some(io::ErrorKind::BrokenPipe)
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Engine(error)
    }
}

/// Runs `f` with the means to work through a tree. None: cancelled, or the
/// reader of our output went away; the session knows.
fn working<T>(
    session: &Session,
    algorithm: Option<Algorithm>,
    phase: &'static str,
    f: impl FnOnce(&Work<'_>) -> Result<T, Stop>,
) -> Outcome<Option<T>> {
    let progress = Arc::new(Progress::default());
    let display = Display::start(&session.common, "walk", crate::progress::reading(&progress));
    let width = algorithm.map_or(1, |a| Batch::new(&[a], Kernels::detect()).width());
    let fallback = session.read_options(1, width)?;
    let reading = |job: Job| {
        display.phase(phase, job.files, job.bytes);
        let workers = session.workers(job.files as usize, Some(job.bytes), algorithm);
        match session.read_options(workers, width) {
            Ok(read) => Reading { workers, read },
            // Said already; one worker fits the budget, as was checked above.
            Err(_) => Reading {
                workers: 1,
                read: fallback.clone(),
            },
        }
    };
    let work = Work {
        walk_workers: session.walk_workers(),
        reading: &reading,
        kernels: Kernels::detect(),
        cancel: &session.cancel,
        progress: &progress,
    };
    match f(&work) {
        Ok(result) => Ok(Some(result)),
        Err(Stop::Engine(error)) if error.kind() == ErrorKind::Cancelled => Ok(None),
        Err(stop) if stop.is_broken_pipe() => Ok(None),
        Err(stop) => Err(stopped(session, &stop)),
    }
}

fn stopped(session: &Session, stop: &Stop) -> Exit {
    match stop {
        Stop::Engine(error) => session.fatal(&error.to_string()),
        Stop::Write(error) => session.fatal(&format!("output: write: {error}")),
    }
}

fn done_or(session: Session, stop: Stop) -> Outcome<Exit> {
    if stop.is_broken_pipe() {
        Ok(session.end(Exit::Done))
    } else {
        Err(stopped(&session, &stop))
    }
}

/// Puts the output in place, says the totals and gives the exit code.
fn conclude(mut session: Session, output: Output, summary: &Summary) -> Exit {
    let exit = conclude_with(&mut session, output, summary);
    session.end(exit)
}

fn conclude_with(session: &mut Session, output: Output, summary: &Summary) -> Exit {
    use bc_integrity::change::Class;
    let mut words = Vec::new();
    for class in Class::ALL {
        let count = summary.count(class);
        session
            .metrics
            .set(metric(class), "Entries of this class.", count as f64);
        if count > 0 {
            words.push(format!("{count} {}", class.name()));
        }
    }
    if summary.any() {
        session.report.summary(&words.join(", "));
    } else {
        session.report.note(1, &words.join(", "));
    }
    let exit = match summary.outcome() {
        Verdict::Same => Exit::Done,
        Verdict::Different => Exit::Differs,
        Verdict::Damaged => Exit::Damage,
    };
    match output.finish(Ok(())) {
        Ok(Written::Whole | Written::ReaderLeft) => exit,
        Err(text) => exit.worst(session.fatal(&text)),
    }
}

fn metric(class: bc_integrity::change::Class) -> &'static str {
    use bc_integrity::change::Class;
    match class {
        Class::Ok => "entries_ok",
        Class::Added => "entries_added",
        Class::Removed => "entries_removed",
        Class::Moved => "entries_moved",
        Class::Meta => "entries_meta",
        Class::Modified => "entries_modified",
        Class::Damaged => "entries_damaged",
        Class::Unreadable => "entries_unreadable",
        Class::Replaced => "entries_replaced",
    }
}

fn open(session: &Session, path: &Path) -> Outcome<ManifestFile> {
    let opened = session.while_reading(path.as_os_str(), || {
        if crate::args::is_dash(path.as_os_str()) {
            ManifestFile::from_reader(b"-", io::stdin().lock())
        } else {
            ManifestFile::open(path)
        }
    });
    opened.map_err(|error| session.fatal(&error.to_string()))
}

fn trust(force: bool) -> (Trust, RootCheck) {
    if force {
        (Trust::Forced, RootCheck::Forced)
    } else {
        (Trust::Checked, RootCheck::Careful)
    }
}

fn mode(mode: Mode) -> EngineMode {
    match mode {
        Mode::Strict => EngineMode::Strict,
        Mode::Content => EngineMode::Content,
        Mode::Meta => EngineMode::Meta,
    }
}

/// Does this name ask for compression?
fn is_compressed(path: Option<&Path>) -> bool {
    path.is_some_and(|path| path.extension() == Some(OsStr::new("zst")))
}

/// Without `--ignore`, what cannot survive a restore.
fn ignored(session: &Session, names: &[String]) -> Outcome<Fields> {
    if names.is_empty() {
        return Ok(Fields::NOT_RESTORED);
    }
    names
        .join(",")
        .parse()
        .map_err(|error| session.fatal(&format!("--ignore: {error}")))
}

fn tree_options(args: &ManifestArgs, session: &Session) -> Outcome<TreeOptions> {
    let WalkArgs {
        include, exclude, ..
    } = &args.walk;
    if args.walk.files_from.is_some() {
        return Err(session.fatal("--files-from: a manifest records a whole tree; use --include"));
    }
    // The shared translation also checks the globs.
    let walk = session.walk_options(&args.walk, Metadata::Full, None)?;
    let bytes = |patterns: &[std::ffi::OsString]| {
        patterns
            .iter()
            .map(|p| p.as_encoded_bytes().to_vec())
            .collect()
    };
    Ok(TreeOptions {
        hidden: walk.hidden,
        symlinks: walk.symlinks,
        file_systems: walk.file_systems,
        max_depth: walk.max_depth,
        include: bytes(include),
        exclude: bytes(exclude),
        min_size: walk.min_size,
        max_size: walk.max_size,
        ignore_files: walk.ignore_files,
        entries: Entries::All,
        xattrs: if args.xattrs {
            Xattrs::Record
        } else {
            Xattrs::Skip
        },
    })
}

/// Nanoseconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

fn host() -> Option<String> {
    Some(
        rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned(),
    )
}
