//! The commands of `bc integrity`: each opens its inputs and outputs, runs the engine, and reports
//! the result.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::io::{self, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bc_fs::PathError;
use bc_fs::quote::shell_path;
use bc_hash::Totals;
use bc_integrity::change::{Change, Class};
use bc_integrity::fields::CompareRules;
use bc_integrity::report::{ChangeFormat, ChangeReport, ReportHeader};
use bc_integrity::{
    Created, Damaged, Exported, LastRead, ManifestFile, MassChange, ReadTimes, Updated,
};
use bc_walk::OwnFile;
use bc_walk::job::path_of;

use super::args::{DiffArgs, ExportArgs, ImportArgs, ManifestArgs, UpdateArgs, VerifyArgs};
use super::job::{
    WorkError, algorithm_of, done_or, open, opened, opened_manifest, origin, start, stopped,
    until_cancelled, working,
};
use super::output::{Changes, Marked, conclude, own_files, write_manifest};
use super::plan;
use super::protect::{own_dir, present_dir, protect_updated, report_stale};
use crate::files::input::{Input, is_stdin};
use crate::files::lists::ListKind;
use crate::files::output::{Output, is_readable_again};
use crate::files::overlap::Given;
use crate::report::diagnostic::Diagnostic;
use crate::report::{Exit, details};
use crate::session::progress::{counted, size};
use crate::session::resume::{self, Recorded};
use crate::session::{Outcome, Session};

pub fn manifest(args: &ManifestArgs) -> Outcome<Exit> {
    let file = args.output.as_deref();
    let given = Given::inputs(args.walk.inputs())
        .operands([&args.root])
        .walking(&args.walk)
        .writes(ListKind::Manifest);
    let mut session = start("manifest", &args.common, &given, file)?;
    let mut plan = plan::manifest(args, &session)?;
    // The trailer's digest is that of the bytes as they are written.
    let mut output = opened_manifest(&session, file)?;
    let recorded = record(args, &output, &session)?;
    plan.leave_out = own_files(file, &output);
    plan.leave_out.extend(file.and_then(own_dir));
    let resume = recorded.as_ref().map(|recorded| &recorded.resume);
    let journal = resume.and_then(|resume| resume.own_file());
    plan.leave_out.extend(journal);
    let created = working(&session, Some(plan.algorithm), "manifest", |work| {
        let on_failure = &mut |path: &[u8], failure: &bc_manifest::Failure| {
            let path = crate::session::below(plan.root, path);
            session.report.problem(Diagnostic::recorded(&path, failure));
        };
        write_manifest(&mut output, file, |to| {
            let created = bc_integrity::create_recorded(&plan, resume, work, to, on_failure)?;
            Ok(created.1)
        })
    });
    let left = || recorded.iter().for_each(|recorded| recorded.left(&session));
    let Some(created) = created.inspect_err(|_| left())? else {
        left();
        return Ok(session.end(Exit::Done));
    };
    if let Err(exit) = session.finish(output, Ok(())) {
        left();
        return Ok(session.end(exit));
    }
    recorded.iter().for_each(|recorded| recorded.done(&session));
    report_created(&mut session, &created);
    let exit = session.report.exit();
    // A part is verified once it is merged with the others.
    let is_whole = exit == Exit::Done && args.shard.is_none();
    if let Some(file) = file.filter(|file| is_whole && is_readable_again(file)) {
        session.report.closing(|| {
            let (path, root) = (file.as_os_str().as_bytes(), args.root.as_bytes());
            format!(
                "{}: {}, {} read; 'bc integrity verify {} {}' compares {} with it",
                bc_fs::escape(path),
                counted(created.trailer.entries, "entry", "entries"),
                size(created.totals.read.bytes),
                shell_path(root),
                shell_path(path),
                bc_fs::escape(root),
            )
        });
    }
    Ok(session.end(exit))
}

/// Begins the journal of a run that may be interrupted, or continues one.
fn record(args: &ManifestArgs, output: &Output, session: &Session) -> Outcome<Option<Recorded>> {
    let (algorithms, roots) = ([args.algorithm], [args.root.clone()]);
    let job = || {
        let job = resume::job("integrity manifest", &algorithms, &roots, &args.walk);
        let job = resume::flag(job, "--xattrs", args.xattrs);
        resume::shard(job, args.shard)
    };
    resume::begin(session, output, args.resume, job, &algorithms)
}

pub fn verify(args: &VerifyArgs) -> Outcome<Exit> {
    let file = args.output.as_deref();
    let given = Given::inputs([args.manifest.as_os_str()])
        .operands([&args.root])
        .writes(ListKind::Changes);
    let mut session = start("verify", &args.common, &given, file)?;
    let manifest = open(&session, &args.manifest)?;
    let mut plan = plan::verify(args, &session, &manifest)?;
    let algorithm = algorithm_of(&session, &manifest)?;
    report_rules(&session, &[&manifest], plan.rules);
    let mut output = args.format.of(opened(&session, file)?);
    let mut own = own_files(file, &output);
    own.extend(own_dir(&args.manifest));
    plan.leave_out = &own;
    let mut report = Changes::new(&mut output, args.format);
    report.manifests(&[&manifest]);
    let verified = working(&session, Some(algorithm), "verify", |work| {
        report.begin(
            &ReportHeader::new(
                "verify",
                manifest.name(),
                plan.root.as_encoded_bytes(),
                algorithm.name(),
            )
            .rules(plan.rules),
        )?;
        let reported = |change: &Change| report.change(change);
        let verified = bc_integrity::verify(&plan, work, &mut until_cancelled(&session, reported))?;
        report.end(&verified.summary, &verified.problems)?;
        Ok(verified)
    })?;
    let Some(verified) = verified else {
        return Ok(session.end(Exit::Done));
    };
    warn(&session, &verified.problems);
    count_read(&mut session, &verified.totals);
    if let Some(times) = plan.read_times {
        count_last_read(&mut session, &verified.last_read, times);
    }
    let sampled = super::words::sampled(&verified.summary);
    let exit = conclude(&mut session, output, &verified.summary);
    sampled.iter().for_each(|text| session.report.summary(text));
    if exit == Exit::Done {
        let entries = counted(verified.summary.new, "entry", "entries");
        let read = size(verified.totals.read.bytes);
        session
            .report
            .closing(|| format!("as recorded: {entries}, {read} read"));
    }
    if verified.summary.unmounted > 0 {
        let text = "--force accepts disks that seem unmounted as they are found";
        session.report.summary(text);
    }
    report_stale(&session, &args.manifest);
    Ok(session.end(exit))
}

pub fn diff(args: &DiffArgs) -> Outcome<Exit> {
    let file = args.output.as_deref();
    let sides = [args.old.as_os_str(), args.new.as_os_str()];
    let (directories, manifests): (Vec<&OsStr>, Vec<&OsStr>) =
        sides.into_iter().partition(|side| is_directory(side));
    let mut given = Given::inputs(manifests).operands(directories.iter().copied());
    if !directories.is_empty() {
        given = given.writes(ListKind::Changes);
    }
    let mut session = start("diff", &args.common, &given, file)?;
    if sides.iter().all(|side| is_stdin(side)) {
        return Err(session.fatal("both manifests are standard input, which can be read once only"));
    }
    let side = |path| match is_directory(path) {
        true => Ok(None),
        false => open(&session, Path::new(path)).map(Some),
    };
    let opened_sides = [side(sides[0])?, side(sides[1])?];
    let rules = plan::diff_rules(args, &session)?;
    let mut output = args.format.of(opened(&session, file)?);
    let own = own_files(file, &output);
    let Some(([old, new], read)) = recorded(args, opened_sides, own, &mut session)? else {
        return Ok(session.end(Exit::Done));
    };
    let plan = plan::diff(args, &session, &old, &new).rules(rules);
    let algorithm = algorithm_of(&session, &new)?;
    report_rules(&session, &[&old, &new], plan.rules);
    let mut report = Changes::new(&mut output, args.format);
    report.manifests(&[&old, &new]);
    let compared = (|| {
        report.begin(
            &ReportHeader::new("diff", old.name(), new.name(), algorithm.name()).rules(plan.rules),
        )?;
        let reported = |change: &Change| report.change(change);
        let mut diffed = bc_integrity::diff(&plan, &mut until_cancelled(&session, reported))?;
        let counts = &mut diffed.summary;
        (counts.files_read, counts.bytes_read) = (read.read.files, read.read.bytes);
        report.end(&diffed.summary, &diffed.problems)?;
        Ok(diffed)
    })();
    let diffed = match compared {
        Ok(diffed) => diffed,
        Err(stop) => return done_or(session, stop),
    };
    warn(&session, &diffed.problems);
    let exit = conclude(&mut session, output, &diffed.summary);
    if exit == Exit::Done {
        let entries = counted(diffed.summary.new, "entry", "entries");
        session.report.closing(|| format!("the same: {entries}"));
    }
    Ok(session.end(exit))
}

/// Returns true if a side of a comparison is a directory to be recorded for it.
fn is_directory(side: &OsStr) -> bool {
    !is_stdin(side) && std::fs::metadata(side).is_ok_and(|meta| meta.is_dir())
}

/// Records the directories of a comparison with the algorithm and filters of the other side, if
/// that is a manifest, and counts what was read; `own` are files that are written. `None`: cancelled.
fn recorded(
    args: &DiffArgs,
    sides: [Option<ManifestFile>; 2],
    own: Vec<OwnFile>,
    session: &mut Session,
) -> Outcome<Option<([ManifestFile; 2], Totals)>> {
    let mut read = Totals::default();
    let mut sides = match sides {
        [Some(old), Some(new)] => return Ok(Some(([old, new], read))),
        sides => sides,
    };
    let manifest = sides.iter().flatten().next();
    let mut like = plan::recording(args, manifest, session)?;
    like.leave_out = own;
    (like.leave_out).extend(manifest.and_then(ManifestFile::own_file));
    let parity = manifest.and_then(|manifest| own_dir(&path_of(manifest.name())));
    (like.leave_out).extend(parity);
    for (root, side) in [&args.old, &args.new].into_iter().zip(&mut sides) {
        if side.is_some() {
            continue;
        }
        like.root = root.as_os_str();
        let recorded = working(session, Some(like.algorithm), "read", |work| {
            // The comparison reports them.
            let on_failure = &mut |_: &[u8], _: &bc_manifest::Failure| {};
            Ok(bc_integrity::record_unnamed(&like, work, on_failure)?)
        })?;
        let Some((manifest, created)) = recorded else {
            return Ok(None);
        };
        read.merge(created.totals);
        *side = Some(manifest);
    }
    count_read(session, &read);
    let [old, new] = sides;
    Ok(old.zip(new).map(|(old, new)| ([old, new], read)))
}

pub fn update(args: &UpdateArgs) -> Outcome<Exit> {
    let parity = present_dir(args.parity.as_deref(), &args.manifest);
    let given = Given::default().operands([&args.root]).operands(&parity);
    let mut session = start("update", &args.common, &given, Some(&args.manifest))?;
    // Replacing it was asked for; an appending stdout would spoil it before.
    session.spare(&Given::inputs([args.manifest.as_os_str()]), None)?;
    let origin = origin();
    let mut plan = plan::update(args, &session, &origin)?;
    let algorithm = ManifestFile::open_to_replace(&args.manifest)
        .map_err(|error| stopped(&session, &WorkError::Engine(error)))
        .and_then(|manifest| algorithm_of(&session, &manifest))?;
    let mut output = match args.format {
        ChangeFormat::Json => opened(&session, None)?.json(),
        _ => opened(&session, None)?,
    };
    let mut own = own_files(None, &output);
    own.extend(own_dir(&args.manifest));
    plan.leave_out = &own;
    let report = RefCell::new(ChangeReport::new(Marked(&mut output), args.format));
    let updated = working(&session, Some(algorithm), "update", |work| {
        let (old, new) = (args.manifest.as_os_str().as_bytes(), args.root.as_bytes());
        let header = ReportHeader::new("update", old, new, algorithm.name());
        report.borrow_mut().begin(&header)?;
        let reported = |change: &Change| match args.common.quiet && !is_wrong(change) {
            true => Ok(()),
            false => report.borrow_mut().change(change),
        };
        let sink = &mut until_cancelled(&session, reported);
        let flush = &mut || match report.borrow_mut().flush() {
            // The reader has what it wanted.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            flushed => flushed,
        };
        Ok(bc_integrity::update_reported(&plan, work, sink, flush)?)
    })?;
    let Some(updated) = updated else {
        return Ok(session.end(Exit::Done));
    };
    match report.into_inner().end_update(&updated) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            return done_or(session, error.into());
        }
        // The manifest is in place, whether a reader is still there or not.
        Ok(_) | Err(_) => {}
    }
    report_updated(&mut session, &updated);
    count_last_read_of(&mut session, &args.manifest);
    let refused = updated.refused;
    let exit = conclude(&mut session, output, &updated.summary);
    // Bringing a manifest up to date was asked for: only damage, possible damage and entries that
    // could not be read are worth an exit code.
    let kept = plan.damaged == Damaged::Keep && updated.summary.undecided > 0;
    let exit = match exit {
        Exit::Differs if updated.summary.unread() == 0 && !kept => Exit::Done,
        exit => exit,
    };
    // After the totals, which it is about.
    let exit = match refused {
        Some(refused) => {
            report_refused(&session, args, &refused);
            exit.worst(Exit::Differs)
        }
        None if args.protect => {
            // The update is done, and its figures are to be written whatever became of parity.
            let protected = protect_updated(&mut session, args).unwrap_or_else(|fatal| fatal);
            exit.worst(protected)
        }
        None => {
            report_stale(&session, &args.manifest);
            exit
        }
    };
    Ok(session.end(exit))
}

/// Reports that nothing was recorded, and what to type if the changes were meant.
fn report_refused(session: &Session, args: &UpdateArgs, refused: &MassChange) {
    let MassChange {
        changed,
        recorded,
        limit,
        ..
    } = refused;
    let reason = format!(
        "{changed} of {recorded} entries were edited, removed or damaged, more than --max-changed={limit} allows: the manifest was left as it is; if that was meant, run it once with --max-changed=100%"
    );
    let failed = PathError::with_reason(args.manifest.as_os_str(), "update", None, &*reason);
    session.report.problem(&failed);
}

/// Returns true if `update` reports the change even with `--quiet`: it is damage, or it has a
/// reason: it is new and unread, or perhaps no edit. Edits are in the new manifest, and so are
/// entries that could not be read before and can be now.
fn is_wrong(change: &Change) -> bool {
    let is_reported = change.class == Class::Damaged || change.reason.is_some();
    is_reported && !change.readable_now
}

pub fn export(args: &ExportArgs) -> Outcome<Exit> {
    let given = Given::inputs([args.manifest.as_os_str()]);
    let session = start("export", &args.common, &given, args.output.as_deref())?;
    let manifest = open(&session, &args.manifest)?;
    let mut output = opened(&session, args.output.as_deref())?;
    let trust = plan::trust(args.force);
    let mut inexpressible = |path: &[u8]| {
        let reason = "the format has no way to write this name";
        let failed = PathError::with_reason(OsStr::from_bytes(path), "export", None, reason);
        session.report.problem(&failed);
    };
    let exported = bc_integrity::export(
        &manifest,
        args.format,
        trust,
        &mut output,
        &mut inexpressible,
    );
    let exported = match exported {
        Ok((_, exported)) => exported,
        Err(error) => return done_or(session, WorkError::Engine(error)),
    };
    report_exported(&session, manifest.name(), &exported);
    let exit = session.finished(output, Ok(()));
    Ok(session.end(exit))
}

/// Most bytes that are imported from a pipe: all paths are held in memory, and a pipe may never end.
const MOST: u64 = 1 << 30;

pub fn import(args: &ImportArgs) -> Outcome<Exit> {
    let (name, file) = (args.file.as_os_str(), args.output.as_deref());
    let session = start("import", &args.common, &Given::inputs([name]), file)?;
    // A FIFO that no process writes to waits here.
    let opened_input = session.while_reading(name, || Input::open_no_device(name, &session.cancel));
    let input = opened_input.map_err(|text| session.fatal(&text))?;
    let input = BufReader::with_capacity(256 << 10, input.within(MOST));
    let plan = plan::import(args);
    let mut output = opened_manifest(&session, file)?;
    let imported = write_manifest(&mut output, file, |to| {
        Ok(bc_integrity::import(&plan, input, to)?.1)
    });
    let trailer = match imported {
        Ok(trailer) => trailer,
        Err(stop) => return done_or(session, stop),
    };
    session
        .report
        .note(format_args!("imported {} entries", trailer.entries));
    let exit = session.finished(output, Ok(()));
    Ok(session.end(exit))
}

/// Notes the manifests that are compared, and the rules.
fn report_rules(session: &Session, manifests: &[&ManifestFile], rules: CompareRules) {
    if !session.report.shows(2) {
        return;
    }
    for manifest in manifests {
        let Ok(header) = manifest.header() else {
            continue;
        };
        let known = |what: &Option<String>| what.clone().unwrap_or_else(|| "?".to_owned());
        let text = format!(
            "{}: {} digests, made {} on {}",
            bc_fs::escape(manifest.name()),
            header.algorithm,
            known(&header.created_at),
            known(&header.host),
        );
        session.report.info(text);
    }
    let ignored: Vec<&str> = rules.ignore.iter().map(|field| field.name()).collect();
    let text = format!(
        "compare: mode {}, ignored: {}",
        rules.mode.name(),
        ignored.join(", ")
    );
    session.report.info(text);
}

fn warn(session: &Session, problems: &[PathError]) {
    for problem in problems {
        session.report.warning(problem);
    }
}

fn count_read(session: &mut Session, totals: &Totals) {
    let read = &totals.read;
    details::read(&session.report, read);
    let read_bytes = ("read_bytes", "Bytes read.", read.bytes);
    let files = ("files", "Files processed.", read.files);
    session.metrics.counts([files, read_bytes]);
}

/// Adds figures of the times at which contents were read last.
fn count_last_read(session: &mut Session, last: &LastRead, times: ReadTimes) {
    const SECOND_NS: f64 = 1e9;
    let metrics = &mut session.metrics;
    if let Some(oldest) = last.oldest {
        let age = times.now.saturating_sub(oldest).max(0);
        metrics.set(
            "oldest_read_timestamp_seconds",
            "When the content was read that was not read for the longest time.",
            oldest as f64 / SECOND_NS,
        );
        metrics.set(
            "oldest_read_age_seconds",
            "Time since then, when the run counted it.",
            age as f64 / SECOND_NS,
        );
    }
    let share = match last.bytes {
        0 => 1.0,
        bytes => last.recent_bytes as f64 / bytes as f64,
    };
    metrics.set(
        "recently_read_ratio",
        "Share of the bytes whose content was read within the last 30 days.",
        share,
    );
}

/// Adds those figures of a manifest, as it is now.
fn count_last_read_of(session: &mut Session, manifest: &Path) {
    let Some(times) = plan::read_times(session) else {
        return;
    };
    let last = ManifestFile::open(manifest)
        .map(|manifest| manifest.cancelled_by(&session.cancel))
        .and_then(|manifest| LastRead::of(&manifest, times));
    match last {
        Ok(last) => count_last_read(session, &last, times),
        Err(_) if session.cancel.is_cancelled() => {}
        Err(error) => session.report.warning(&error),
    }
}

fn report_created(session: &mut Session, created: &Created) {
    let trailer = &created.trailer;
    session.report.note(format_args!(
        "manifest: {} entries, {} files, {} bytes, {} errors, {} threads, {:.3} s",
        trailer.entries,
        trailer.files,
        trailer.bytes,
        trailer.errors,
        created.totals.workers,
        session.elapsed(),
    ));
    let metrics = &mut session.metrics;
    metrics.count("entries", "Entries recorded.", trailer.entries);
    count_read(session, &created.totals);
}

fn report_updated(session: &mut Session, updated: &Updated) {
    warn(session, &updated.problems);
    if updated.by_name > 0 {
        let count = updated.by_name;
        let files = if count == 1 { "file" } else { "files" };
        session.report.summary(format_args!(
            "{count} {files} taken as unchanged by path, size and mtime: inode numbers cannot be compared with the recorded ones"
        ));
    }
    let text = match updated.written {
        Some(_) => "the manifest was rewritten",
        None if updated.refused.is_some() => "nothing was written",
        None => "nothing changed; the manifest was left as it is",
    };
    session.report.note(text);
    count_read(session, &updated.totals);
}

fn report_exported(session: &Session, manifest: &[u8], exported: &Exported) {
    let report = &session.report;
    report.note(format_args!("export: {:.3} s in all", session.elapsed()));
    warn(session, &exported.problems);
    if exported.without_digest > 0 {
        let count = exported.without_digest;
        let reason = format!("{count} files have no digest in the manifest");
        let manifest = OsStr::from_bytes(manifest);
        report.problem(&PathError::with_reason(manifest, "export", None, reason));
    }
}
