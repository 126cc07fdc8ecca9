//! `bc integrity accept`: single entries recorded as they are now.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bc_digest::Algorithm;
use bc_fs::{PathError, escape, safe};
use bc_integrity::change::Change;
use bc_integrity::fields::{CompareMode, CompareRules, Field, Fields};
use bc_integrity::report::{ChangeFormat, ChangeReport, ReportHeader};
use bc_integrity::{AcceptOptions, Acceptance, ManifestFile};
use bc_manifest::json::insert_bytes;
use serde_json::{Map, Value, json};

use super::args::AcceptArgs;
use super::job::{WorkError, algorithm_of, opened, start, stopped, working};
use super::output::own_files;
use super::plan::root_check;
use crate::files::output::Output;
use crate::files::overlap::Given;
use crate::report::Exit;
use crate::report::diagnostic::Diagnostic;
use crate::report::style::Meaning;
use crate::session::progress::counted;
use crate::session::{Outcome, Session, now};

/// Runs `bc integrity accept` from its arguments to its exit code.
pub fn run(args: &AcceptArgs) -> Outcome<Exit> {
    let given = Given::default().operands([&args.root]);
    let mut session = start("accept", &args.common, &given, Some(&args.manifest))?;
    // Replacing it was asked for; an appending stdout would spoil it before.
    session.spare(&Given::inputs([args.manifest.as_os_str()]), None)?;
    let algorithm = ManifestFile::open_to_replace(&args.manifest)
        .map_err(|error| stopped(&session, &WorkError::Engine(error)))
        .and_then(|manifest| algorithm_of(&session, &manifest))?;
    let mut output = match args.format {
        ChangeFormat::Json => opened(&session, None)?.json(),
        _ => opened(&session, None)?,
    };
    let own = own_files(None, &output);
    let plan = AcceptOptions::new(&args.root, &args.manifest, &args.paths)
        .dry_run(args.dry_run)
        .root_check(root_check(args.force))
        .now(now())
        .leave_out(&own);
    let accepted = working(&session, Some(algorithm), "accept", |work| {
        let report = &mut |done: &Acceptance| {
            let written = write_report(&mut output, args, algorithm, done);
            match written.and_then(|()| output.flush()) {
                // The reader has what it wanted.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                written => written,
            }
        };
        Ok(bc_integrity::accept_reported(&plan, work, report)?)
    })?;
    let Some(done) = accepted else {
        return Ok(session.end(Exit::Done));
    };
    conclude(&session, args, &done);
    session.metrics.counts([
        ("files", "Files processed.", done.files_read),
        ("read_bytes", "Bytes read.", done.bytes_read),
        ("accepted", "Entries accepted.", done.accepted.len() as u64),
        ("refused", "Paths not accepted.", done.refused.len() as u64),
    ]);
    let exit = session.finished(output, Ok(()));
    Ok(session.end(exit))
}

/// Writes a line for each path. In JSON it stands between a header and a summary, and so do the
/// paths that were not accepted.
fn write_report(
    output: &mut Output,
    args: &AcceptArgs,
    algorithm: Algorithm,
    done: &Acceptance,
) -> io::Result<()> {
    if args.format != ChangeFormat::Json {
        let mut each = done.accepted.iter();
        return each.try_for_each(|change| text_line(output, change, args.dry_run));
    }
    let mut report = ChangeReport::new(&mut *output, ChangeFormat::Json);
    let (old, new) = (args.manifest.as_os_str().as_bytes(), args.root.as_bytes());
    let rules = CompareRules::new(CompareMode::Strict, Fields::NONE);
    report.begin(&ReportHeader::new("accept", old, new, algorithm.name()).rules(rules))?;
    for change in &done.accepted {
        report.change(change)?;
    }
    let refused = done.refused.iter().map(refused_object);
    let summary = json!({
        "type": "summary",
        "accepted": done.accepted.len(),
        "refused": done.refused.len(),
        "other_names": done.other_names.len(),
        "files_read": done.files_read,
        "bytes_read": done.bytes_read,
        "dry_run": args.dry_run,
        "written": done.is_written,
    });
    for object in refused.chain([summary]) {
        serde_json::to_writer(&mut *output, &object)?;
        output.write_all(b"\n")?;
    }
    Ok(())
}

fn refused_object(error: &PathError) -> Value {
    let mut object = Map::from_iter([("type".to_owned(), Value::from("refused"))]);
    let path = error.path().as_os_str().as_bytes();
    insert_bytes(&mut object, "path", path);
    let fields = Diagnostic::from(error).fields("integrity");
    object.insert("error".into(), fields.into());
    Value::Object(object)
}

/// Writes what changes in the record of a path.
fn text_line(output: &mut Output, change: &Change, dry_run: bool) -> io::Result<()> {
    let verb = match dry_run {
        true => "would accept",
        false => "accepted",
    };
    output.paint(Meaning::Changed, verb.as_bytes())?;
    let is_content = |field| matches!(field, Field::Kind | Field::Digest | Field::Target);
    // The content first.
    let (content, metadata): (Vec<_>, Vec<_>) = change
        .differences
        .iter()
        .partition(|one| is_content(one.field));
    let differences = content.into_iter().chain(metadata).map(|one| {
        let (old, new) = (one.old.to_string(), one.new.to_string());
        let text = format!("{}: {old} -> {new}", one.field.name());
        safe::line(&text).to_string()
    });
    let differences: Vec<String> = differences.collect();
    let text = match differences.is_empty() {
        true => "as recorded".to_owned(),
        false => differences.join(", "),
    };
    writeln!(output, " {}: {text}", escape(&change.path))
}

/// Reports the paths that were not accepted, and further names of those that were.
fn conclude(session: &Session, args: &AcceptArgs, done: &Acceptance) {
    let report = &session.report;
    for error in &done.refused {
        report.problem(error);
        if let Some(path) = below(&args.root, error.path()) {
            let path = escape(path.as_os_str().as_bytes());
            report.summary(format_args!("paths are relative to ROOT: {path}"));
        }
    }
    for path in &done.other_names {
        let why = "another name of an accepted file keeps its record";
        let path = OsStr::from_bytes(path);
        report.warning(&PathError::with_reason(path, "accept", None, why));
    }
    let text = match (done.is_written, args.dry_run) {
        (true, _) => "the manifest was rewritten",
        (false, true) => "nothing was written",
        (false, false) => "the manifest was left as it is",
    };
    report.note(text);
    if done.is_written && done.refused.is_empty() {
        let entries = counted(done.accepted.len() as u64, "entry", "entries");
        report.closing(|| format!("{entries} recorded as now; all others are as they were"));
    }
}

/// Returns the path below ROOT of one that was given from outside of it.
fn below<'p>(root: &OsStr, path: &'p Path) -> Option<&'p Path> {
    let below = path.strip_prefix(root).ok()?;
    (!below.as_os_str().is_empty() && Path::new(root) != Path::new(".")).then_some(below)
}
