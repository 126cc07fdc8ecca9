//! `bc copy` from its arguments to its exit code.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bc_copy::{CopyProgress, ManifestPlace, MoveOptions};
use bc_walk::job::{Error, ErrorKind};

use super::args::{CopyArgs, MoveArgs};
use super::output;
use super::plan::plan;
use crate::files::output::OutputLines;
use crate::files::overlap::Given;
use crate::parse::args::is_dash;
use crate::report::Exit;
use crate::report::diagnostic::Diagnostic;
use crate::session::progress::{Display, ProgressCounts};
use crate::session::{Outcome, Session, signals};

pub fn copy(args: &CopyArgs) -> Outcome<Exit> {
    let written = args.manifest.as_deref();
    let written = written.filter(|name| *name != "none" && !is_dash(name));
    // The engine ensures that no manifest replaces a source or a destination.
    let given = Given::default().operands(&args.paths).operands(&args.to);
    let written = written.map(Path::new);
    let mut session = Session::start("copy", "copy", &args.common, &given, written)?;
    let plan = plan(&session, args)?;
    signals::watch();
    let lines = (args.itemize || args.dry_run) && !args.common.quiet;
    let lines = lines.then(|| session.output(None)).transpose()?;
    let lines = lines.map(|output| OutputLines::new(output.colors(args.common.color)));
    let progress = Arc::new(CopyProgress::default());
    let display = display(&session, &progress);
    let reported = |event: bc_copy::Event<'_>| output::report(event, &session, lines.as_ref());
    let options = &plan.options;
    let all = bc_copy::fan_out(options, &plan.others, &session.cancel, &progress, &reported);
    display.stop();
    let written = lines.map_or(Ok(()), OutputLines::finish);
    written.map_err(|what| session.fatal(what))?;
    let all = all.map_err(|error| fatal(&session, None, &error))?;
    if options.manifest == ManifestPlace::None && options.algorithm.is_some() {
        session.report.note("digests are taken, and kept nowhere");
    }
    let mut exit = Exit::Done;
    for (destination, copied) in plan.destinations().zip(&all) {
        let place = destination.as_os_str();
        let named = (all.len() > 1).then_some(place);
        exit = exit.worst(match copied {
            Ok(copied) => output::conclude(&session, copied, place, named, args.dry_run),
            Err(error) => fatal(&session, named, error),
        });
    }
    let copied: Vec<_> = all.iter().flatten().collect();
    output::figures(&mut session, &copied);
    Ok(session.end(exit))
}

pub fn move_files(args: &MoveArgs) -> Outcome<Exit> {
    let copy = &args.copy;
    let written = copy.manifest.as_deref();
    let written = written.filter(|name| *name != "none" && !is_dash(name));
    let given = Given::default().operands(&copy.paths);
    let written = written.map(Path::new);
    let mut session = Session::start("move", "move", &copy.common, &given, written)?;
    if !copy.to.is_empty() {
        return Err(session.fatal("--to: a move has one destination: copy to the others first"));
    }
    let mut options = MoveOptions::new(plan(&session, copy)?.options);
    options.allow_lossy = args.allow_lossy;
    options.copy.durability = copy.sync;
    options.copy.read_back = copy.verify;
    signals::watch();
    let lines = (copy.itemize || copy.dry_run) && !copy.common.quiet;
    let lines = lines.then(|| session.output(None)).transpose()?;
    let lines = lines.map(|output| OutputLines::new(output.colors(copy.common.color)));
    let progress = Arc::new(CopyProgress::default());
    let display = display(&session, &progress);
    let reported = |event: bc_copy::Event<'_>| output::report(event, &session, lines.as_ref());
    let place = copy.paths.last().cloned().unwrap_or_default();
    let moved = bc_copy::move_files(&options, &session.cancel, &progress, &reported);
    display.stop();
    let written = lines.map_or(Ok(()), OutputLines::finish);
    written.map_err(|what| session.fatal(what))?;
    let moved = moved.map_err(|error| fatal(&session, None, &error))?;
    let exit = output::conclude_move(&session, &moved, &place, copy.dry_run);
    output::move_figures(&mut session, &moved);
    Ok(session.end(exit))
}

/// Reports why nothing was copied to a destination, or to any.
fn fatal(session: &Session, destination: Option<&OsStr>, error: &Error) -> Exit {
    match (error.kind(), error.operation(), destination) {
        // It was reported when it happened.
        (ErrorKind::Panic, ..) => Exit::Fatal,
        (_, None, Some(path)) => {
            let text = Diagnostic::from(error);
            let path = bc_fs::Escaped(path.as_bytes());
            session.fatal(format!("{path}: {}", text.text()))
        }
        _ => session.fatal(error),
    }
}

fn display(session: &Session, progress: &Arc<CopyProgress>) -> Display {
    let progress = Arc::clone(progress);
    let reading = move || {
        let total = progress.files_total.load(Relaxed);
        ProgressCounts {
            files_total: total,
            bytes_total: progress.bytes_total.load(Relaxed),
            phase: (total > 0).then_some("copy"),
            ..crate::session::progress::counts(&progress.files, &progress.bytes)
        }
    };
    Display::start(&session.common, "walk", Arc::new(reading))
}
