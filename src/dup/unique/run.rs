//! `bc dup unique` from its plan to its exit code.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bc_digest::Batch;
use bc_find::Files;
use bc_find::scan::ScanProgress;
use bc_find::unique::{Sides, Unique, covered, unique as search};
use bc_hash::HashProgress;
use bc_walk::{Error, FileKind, Listing, Metadata, Symlinks, WalkOptions};

use super::args::UniqueArgs;
use super::output::{self, Asked};
use super::plan::UniquePlan;
use super::report;
use crate::dup::references;
use crate::files::output::Output;
use crate::report::Exit;
use crate::session::progress::{Display, ProgressCounts};
use crate::session::{Outcome, Session};

pub fn unique(args: &UniqueArgs) -> Outcome<Exit> {
    let read = args.walk.inputs();
    let given = references::given(read, &args.paths, &args.reference, &args.walk);
    let session = Session::start("dup", "unique", &args.common, &given, None)?;
    let output = session.output(None)?;
    let output = match (args.format.is_json(), args.walk.null) {
        (true, _) => output.json(),
        (false, true) => output.records(),
        (false, false) => output.colors(args.common.color),
    };
    let started_at = crate::session::metrics::now();
    let mut plan = UniquePlan::new(&session, args)?;
    let hidden = |plan: &UniquePlan| {
        let paths = args.paths.iter().map(|path| path.as_encoded_bytes());
        covered(paths, &plan.walks[0].exclude)
    };
    let before = hidden(&plan);
    let found = find(&session, args, &mut plan)?;
    if session.cancel.is_cancelled() {
        return Ok(session.end(Exit::Done));
    }
    let asked = Asked {
        args,
        manifests: &plan.manifests,
        manifest_numbers: &plan.manifest_numbers,
        started_at: &started_at,
    };
    let hidden = hidden_points(&session, [before, hidden(&plan)]);
    answer(session, &asked, &found, &hidden, output)
}

/// Returns the places where something was mounted before the search or is now.
fn hidden_points(session: &Session, looks: [Result<Vec<Vec<u8>>, Error>; 2]) -> Vec<Vec<u8>> {
    let mut points = Vec::new();
    for look in looks {
        match look {
            Ok(found) => points.extend(found),
            Err(error) => {
                let text = format!("cannot determine which files mounts cover: {error}");
                session.report.problem(text);
                break;
            }
        }
    }
    points.sort();
    points.dedup();
    points
}

/// Writes the answer, and reports the digests that it rests on.
fn answer(
    session: Session,
    asked: &Asked<'_>,
    found: &Unique,
    hidden: &[Vec<u8>],
    mut output: Output,
) -> Outcome<Exit> {
    let whole = report::whole(&session, asked, found, hidden);
    let complete = whole && session.report.exit() == Exit::Done;
    let nothing = found.nowhere().next().is_none();
    let result = output::write(asked, found, complete, &mut output);
    session.finish(output, result)?;
    report::summary(&session, asked, found, complete);
    let exit = match session.report.exit() {
        Exit::Done if !(nothing && complete) => Exit::Differs,
        exit => exit,
    };
    Ok(report::end(session, found, exit))
}

/// Walks both sides and searches.
fn find(session: &Session, args: &UniqueArgs, plan: &mut UniquePlan) -> Outcome<Unique> {
    let progress = Arc::new(ScanProgress::default());
    let hashed = Arc::new(HashProgress::default());
    let display = display(session, &progress, &hashed);
    survey(session, args, plan)?;
    let paths = session.listing(&args.paths, &args.walk, &plan.walks[0])?;
    session.refuse_unreached(&paths, &args.paths)?;
    refuse_nothing(session, args, &paths)?;
    let references = match plan.directories.is_empty() {
        true => none(session)?,
        false => session.listing(&plan.directories, &args.walk, &plan.walks[1])?,
    };
    plan.opened
        .check()
        .map_err(|error| session.fatal(format!("--reference={error}")))?;
    plan.own
        .check()
        .map_err(|error| session.fatal(error.to_string()))?;
    display.phase("first bytes", 0, 0);
    let mut options = plan.options.clone();
    let width = Batch::new(&[options.scan.algorithm], options.scan.cpu).width();
    let files = paths.len() + references.len();
    let state = bc_find::scan::scan_memory(&paths) + bc_find::scan::scan_memory(&references);
    options.scan.workers = session.workers(files, width, state);
    options.scan.read = session.read_options(options.scan.workers, width, state)?;
    let sides = Sides {
        paths,
        path_roots: args.paths.len(),
        own: std::mem::take(&mut plan.own),
        references,
        reference_roots: &plan.directory_numbers,
        manifests: &mut plan.manifests,
        manifest_numbers: &plan.manifest_numbers,
    };
    let found = search(sides, &options, &session.cancel, &progress, &hashed);
    let mut found = found.map_err(|why| crate::dup::search::unanswered(session, &why))?;
    let workers = session.walk_workers();
    // Without metadata: `look_again` reads that of the files that the answer rests on.
    let names = plan.walks[0].clone().metadata(Metadata::None);
    let again = bc_walk::walk(&args.paths, &names, workers, &session.cancel);
    let again = again.map_err(|panic| session.defect(&panic))?;
    if !session.cancel.is_cancelled() {
        let looked = found.look_again(&again, session.most_workers());
        looked.map_err(|panic| session.defect(&panic))?;
    }
    display.stop();
    for error in &found.errors {
        session.report.problem(error);
    }
    Ok(found)
}

/// A PATH without any file is where a disk would be mounted that is not: of that it would be said
/// that all is elsewhere. Files that filters leave out, or that were met below another PATH, are
/// files that are there.
fn refuse_nothing(session: &Session, args: &UniqueArgs, paths: &Listing) -> Outcome<()> {
    if args.reference.is_empty() {
        return Ok(());
    }
    let mut filled = vec![false; args.paths.len()];
    for entry in paths.ids() {
        filled[paths.root(entry)] |= paths.kind(entry) == FileKind::File;
        if !filled.contains(&false) {
            return Ok(());
        }
    }
    let options = WalkOptions::default().symlinks(symlinks(args));
    for (path, _) in args.paths.iter().zip(filled).filter(|(_, filled)| !filled) {
        let all = bc_walk::walk(&[path], &options, session.walk_workers(), &session.cancel);
        let all = all.map_err(|panic| session.defect(&panic))?;
        // What cannot be read is reported, and nothing is safe then.
        if all.ids().next().is_none() && all.errors().is_empty() && !all.is_cancelled() {
            return Err(session.fatal(format!(
                "{}: no files at all: is it mounted?",
                bc_fs::escape(path.as_encoded_bytes())
            )));
        }
    }
    Ok(())
}

fn symlinks(args: &UniqueArgs) -> Symlinks {
    match args.walk.follow_symlinks {
        true => Symlinks::Follow,
        false => Symlinks::Skip,
    }
}

/// Looks up files that a filter keeps from the walk: they are the PATHs' own all the same, by any
/// path that leads a reference there.
fn survey(session: &Session, args: &UniqueArgs, plan: &mut UniquePlan) -> Outcome<()> {
    if !plan.walks[0].leaves_out() {
        return Ok(());
    }
    plan.own.keep_traces();
    plan.own
        .survey(
            symlinks(args),
            Files::All,
            session.walk_workers(),
            &session.cancel,
        )
        .map_err(|panic| session.defect(&panic))
}

/// Returns a listing of nothing.
fn none(session: &Session) -> Outcome<Listing> {
    let options = bc_walk::WalkOptions::default();
    bc_walk::walk(&[""; 0], &options, 1, &session.cancel).map_err(|panic| session.defect(&panic))
}

fn display(session: &Session, progress: &Arc<ScanProgress>, hashed: &Arc<HashProgress>) -> Display {
    let (search, hashed) = (Arc::clone(progress), Arc::clone(hashed));
    let reading = move || {
        let known = hashed.files.load(Relaxed);
        let mut counts = ProgressCounts {
            phase: search.whole.load(Relaxed).then_some("whole files"),
            files_total: search.planned.load(Relaxed),
            bytes_total: search.planned_bytes.load(Relaxed),
            ..crate::session::progress::counts(&search.files, &search.bytes)
        };
        if known > 0 {
            counts.phase = Some("digests of manifests");
            counts.files += known;
            counts.bytes += hashed.bytes.load(Relaxed);
            (counts.files_total, counts.bytes_total) = (0, 0);
        }
        counts
    };
    Display::start(&session.common, "walk", Arc::new(reading))
}
