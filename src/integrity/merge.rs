//! `bc integrity merge`: the manifests of the parts of a tree put together, or only checked.

use std::io;

use bc_fleet::{
    ListFile, MergeOptions, Merged, MergedLists, check_manifest, merge_lists, shard_of,
};
use bc_integrity::ManifestFile;
use bc_manifest::Failure;
use bc_walk::job::{Error, ErrorKind};

use super::args::MergeArgs;
use super::job::{WorkError, done_or, open, opened_manifest, start};
use super::output::write_manifest;
use crate::files::overlap::Given;
use crate::report::Exit;
use crate::report::diagnostic::Diagnostic;
use crate::session::{Outcome, Session};

pub fn run(args: &MergeArgs) -> Outcome<Exit> {
    let given = Given::inputs(args.manifests.iter().map(|path| path.as_os_str()));
    let session = start("merge", &args.common, &given, args.output.as_deref())?;
    match args.check {
        true => check(args, session),
        false => merge(args, session),
    }
}

fn merge(args: &MergeArgs, session: Session) -> Outcome<Exit> {
    let manifests = args.manifests.iter().map(|path| open(&session, path));
    let manifests = manifests.collect::<Outcome<Vec<_>>>()?;
    let of_first = ListFile::of(&manifests[0]);
    if of_first.map_err(|error| session.fatal(&error))?.is_some() {
        return lists(args, &manifests, session);
    }
    let plan = plan(&session, &manifests);
    let file = args.output.as_deref();
    // Output to a pipe cannot be taken back: all of the input is looked at before.
    if file.is_none()
        && let Err(error) = bc_fleet::merge(&plan, io::sink())
    {
        return done_or(session, WorkError::Engine(error));
    }
    let mut output = opened_manifest(&session, file)?;
    let merged = write_manifest(&mut output, file, |to| Ok(bc_fleet::merge(&plan, to)?.1));
    let merged = match merged {
        Ok(merged) => merged,
        Err(stop) => return done_or(session, stop),
    };
    tell(&session, &merged);
    let exit = session.finished(output, Ok(()));
    Ok(session.end(exit))
}

/// Lists of digests, all of them.
fn lists(args: &MergeArgs, files: &[ManifestFile], session: Session) -> Outcome<Exit> {
    let mut lists = Vec::with_capacity(files.len());
    for file in files {
        let list = ListFile::of(file).map_err(|error| session.fatal(&error))?;
        lists.push(list.ok_or_else(|| {
            let name = bc_fs::escape(file.name());
            let text = format!("{name}: not a JSON list of bc hash, as the first file is");
            session.fatal(text)
        })?);
    }
    let file = args.output.as_deref();
    if file.is_none()
        && let Err(error) = merge_lists(&lists, &session.cancel, &mut io::sink())
    {
        return done_or(session, WorkError::Engine(error));
    }
    let mut output = opened_manifest(&session, file)?;
    let merged = write_manifest(&mut output, file, |to| {
        Ok(merge_lists(&lists, &session.cancel, to)?)
    });
    let merged = match merged {
        Ok(merged) => merged,
        Err(stop) => return done_or(session, stop),
    };
    report_lists(&session, &merged);
    let exit = session.finished(output, Ok(()));
    Ok(session.end(exit))
}

fn report_lists(session: &Session, merged: &MergedLists) {
    let MergedLists {
        files,
        errors,
        bytes,
        unread,
        ..
    } = merged;
    report_unread(session, unread);
    let seconds = session.elapsed();
    session.report.note(format_args!(
        "merge: {files} files, {bytes} bytes, {errors} errors, {seconds:.3} s"
    ));
}

/// Checks every manifest by itself, and all parts of a tree among them together.
fn check(args: &MergeArgs, session: Session) -> Outcome<Exit> {
    let opened = args.manifests.iter().map(|path| open(&session, path));
    let (manifests, missing): (Vec<_>, Vec<_>) = opened.partition(Result::is_ok);
    let manifests: Vec<ManifestFile> = manifests.into_iter().flatten().collect();
    let (mut parts, mut lists) = (Vec::new(), Vec::new());
    for manifest in &manifests {
        match ListFile::of(manifest) {
            Ok(Some(list)) => {
                lists.push(list);
                continue;
            }
            Ok(None) => {}
            Err(error) => {
                session.report.problem(&error);
                continue;
            }
        }
        let checked = shard_of(manifest).and_then(|shard| match shard {
            Some(_) => Ok(None),
            None => check_manifest(manifest, &session.cancel).map(Some),
        });
        match checked {
            Ok(Some(trailer)) => {
                let name = bc_fs::escape(manifest.name());
                session
                    .report
                    .note(format_args!("{name}: whole, {} entries", trailer.entries));
            }
            Ok(None) => parts.push(manifest.clone()),
            Err(error) if error.kind() == ErrorKind::Cancelled => {
                return done_or(session, WorkError::Engine(error));
            }
            Err(error) => session.report.problem(&error),
        }
    }
    let mut results: Vec<Result<(), Error>> = Vec::new();
    if !parts.is_empty() {
        let merged = bc_fleet::merge(&plan(&session, &parts), io::sink());
        results.push(merged.map(|(_, merged)| tell(&session, &merged)));
    }
    if !lists.is_empty() {
        let merged = merge_lists(&lists, &session.cancel, &mut io::sink());
        results.push(merged.map(|merged| report_lists(&session, &merged)));
    }
    for error in results.into_iter().filter_map(Result::err) {
        if error.kind() == ErrorKind::Cancelled {
            return done_or(session, WorkError::Engine(error));
        }
        session.report.problem(&error);
    }
    // A part that cannot be opened was reported, and keeps no other from being looked at.
    let missing = missing.into_iter().filter_map(Result::err);
    let exit = missing.fold(session.report.exit(), Exit::worst);
    Ok(session.end(exit))
}

fn plan<'a>(session: &'a Session, manifests: &'a [ManifestFile]) -> MergeOptions<'a> {
    MergeOptions::new(manifests, session.most_workers(), &session.cancel)
}

fn tell(session: &Session, merged: &Merged) {
    for paths in &merged.moved {
        let names: Vec<_> = paths.iter().map(|path| bc_fs::escape(path)).collect();
        let reason = "moved meanwhile: one file under several names";
        let text = format!("{}: merge: {reason}", names.join(", "));
        let what = Diagnostic::from(text).about(&paths[0], "merge", None, reason);
        session.report.problem(what);
    }
    report_unread(session, &merged.unread);
    let trailer = &merged.trailer;
    session.report.note(format_args!(
        "merge: {} entries, {} files, {} bytes, {} errors, {:.3} s",
        trailer.entries,
        trailer.files,
        trailer.bytes,
        trailer.errors,
        session.elapsed(),
    ));
}

/// Names what could not be read when the parts were made: the exit code is 1 then.
fn report_unread(session: &Session, unread: &[(Vec<u8>, Failure)]) {
    for (path, failure) in unread {
        session.report.problem(Diagnostic::recorded(path, failure));
    }
}
