//! `bc integrity merge`: the manifests of the parts of a tree put together, or only checked.

use std::ffi::OsStr;
use std::io;

use bc_integrity::{ErrorKind, ManifestFile, MergeOptions, Merged, check_manifest, shard_of};

use super::args::MergeArgs;
use super::job::{Stop, done_or, open};
use super::output::write_manifest;
use super::run::{opened, start};
use crate::diagnostic::Diagnostic;
use crate::exit::Exit;
use crate::output::Written;
use crate::run::{Outcome, Session};

pub fn run(args: &MergeArgs) -> Outcome<Exit> {
    let inputs: Vec<&OsStr> = args.manifests.iter().map(|path| path.as_os_str()).collect();
    let session = start("merge", &args.common, &inputs, args.output.as_deref())?;
    match args.check {
        true => check(args, session),
        false => merge(args, session),
    }
}

fn merge(args: &MergeArgs, session: Session) -> Outcome<Exit> {
    let manifests = args.manifests.iter().map(|path| open(&session, path));
    let manifests = manifests.collect::<Outcome<Vec<_>>>()?;
    let plan = plan(&session, &manifests);
    let file = args.output.as_deref();
    // What went to a pipe cannot be taken back: all of it is looked at before.
    if file.is_none()
        && let Err(error) = bc_integrity::merge(&plan, io::sink())
    {
        return done_or(session, Stop::Engine(error));
    }
    let mut output = opened(&session, file)?.fixed_json();
    let merged = write_manifest(
        &mut output,
        file,
        |to| Ok(bc_integrity::merge(&plan, to)?.1),
    );
    let merged = match merged {
        Ok(merged) => merged,
        Err(stop) => return done_or(session, stop),
    };
    tell(&session, &merged);
    let exit = match output.finish(Ok(())) {
        Ok(Written::Whole | Written::ReaderLeft) => session.report.exit(),
        Err(text) => session.fatal(&text),
    };
    Ok(session.end(exit))
}

/// Every manifest by itself, and all parts of a tree among them together.
fn check(args: &MergeArgs, session: Session) -> Outcome<Exit> {
    let mut parts = Vec::new();
    for path in &args.manifests {
        let manifest = open(&session, path)?;
        let checked = shard_of(&manifest).and_then(|shard| match shard {
            Some(_) => Ok(None),
            None => check_manifest(&manifest, &session.cancel).map(Some),
        });
        match checked {
            Ok(Some(trailer)) => {
                let name = bc_fs::escape(manifest.name());
                let text = format!("{name}: whole, {} entries", trailer.entries);
                session.report.note(1, &text);
            }
            Ok(None) => parts.push(manifest),
            Err(error) if error.kind() == ErrorKind::Cancelled => {
                return done_or(session, Stop::Engine(error));
            }
            Err(error) => session.report.problem(&error),
        }
    }
    if !parts.is_empty() {
        match bc_integrity::merge(&plan(&session, &parts), io::sink()) {
            Ok((_, merged)) => tell(&session, &merged),
            Err(error) if error.kind() == ErrorKind::Cancelled => {
                return done_or(session, Stop::Engine(error));
            }
            Err(error) => session.report.problem(&error),
        }
    }
    let exit = session.report.exit();
    Ok(session.end(exit))
}

fn plan<'a>(session: &'a Session, manifests: &'a [ManifestFile]) -> MergeOptions<'a> {
    MergeOptions {
        manifests,
        workers: session.most_workers(),
        cancel: &session.cancel,
    }
}

fn tell(session: &Session, merged: &Merged) {
    for paths in &merged.moved {
        let names: Vec<_> = paths.iter().map(|path| bc_fs::escape(path)).collect();
        let reason = "moved meanwhile: one file under several names";
        let text = format!("{}: merge: {reason}", names.join(", "));
        let what = Diagnostic::from(text).about(&paths[0], "merge", None, reason);
        session.report.problem(what);
    }
    let trailer = &merged.trailer;
    let text = format!(
        "merge: {} entries, {} files, {} bytes, {} errors, {:.3} s",
        trailer.entries,
        trailer.files,
        trailer.bytes,
        trailer.errors,
        session.elapsed(),
    );
    session.report.note(1, &text);
}
