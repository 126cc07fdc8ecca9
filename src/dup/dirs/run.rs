//! Run of `bc dup dirs`, from its arguments to its exit code.

use bc_digest::Batch;
use bc_find::dirs::{DirNames, DirsOptions, DirsReport, digest_algorithm, offline_dirs};
use bc_find::scan::Span;
use bc_hash::HashOptions;

use super::args::{DirsArgs, DirsFormat};
use super::search::{look, of_search, plan};
use super::{html, output};
use crate::dup::references;
use crate::dup::run::end_search;
use crate::dup::search::{OfflineManifests, SearchResult, search};
use crate::files::lists::ListKind;
use crate::report::Exit;
use crate::session::{Outcome, Session};

pub fn dirs(args: &DirsArgs) -> Outcome<Exit> {
    let mut read = args.walk.inputs();
    read.extend(args.search.cache.as_deref());
    let target = args.output.as_deref();
    let given = references::given(read, &args.paths, &args.search.reference, &args.walk)
        .writes(ListKind::Duplicates);
    let mut session = Session::start("dup", "dirs", &args.common, &given, target)?;
    if args.walk.files_from.is_some() {
        let text = "--files-from: whole directories are compared; use --include";
        return Err(session.fatal(text));
    }
    let output = session.output(target)?;
    let output = match args.format {
        DirsFormat::Json | DirsFormat::Jsonl => output.json(),
        _ => output.colors(args.common.color),
    };
    let plan = plan(&session, &args.paths, &args.search, &args.walk, target)?;
    let span = plan.scan.span;
    let found = search(&session, plan)?;
    let options = options(&session, args, &found, span)?;
    let answer = look(&session, &found, &options)?;
    if session.cancel.is_cancelled() {
        return Ok(session.end(Exit::Done));
    }
    output::tell(&session, &found, &answer, &options);
    let (help, groups) = ("Groups of equal directories.", answer.groups.len());
    let metrics = &mut session.metrics;
    metrics.count("directory_groups", help, groups as u64);
    let offline = found
        .offline
        .as_ref()
        .map(|offline| offline_dirs(&found.listing, &answer, &offline.offline, args.min_files));
    let offline = offline.unwrap_or_default();
    let manifests = found
        .offline
        .as_ref()
        .map(OfflineManifests::paths)
        .unwrap_or_default();
    let report = DirsReport {
        scan: found.report(),
        found: &answer,
        options: &options,
        offline: &offline,
        manifests: &manifests,
    };
    let closing = output::closing(&found, &answer, &args.paths);
    end_search(session, &found, output, closing, |output| {
        match args.format {
            DirsFormat::Text => output::text(&report, output),
            DirsFormat::Json => report.document(output),
            DirsFormat::Jsonl => report.lines(output),
            DirsFormat::Html => html::page(&report).write(output),
        }
    })
}

/// Returns the engine's options; digests of directories are computed only for JSON, which reports
/// them.
fn options(
    session: &Session,
    args: &DirsArgs,
    found: &SearchResult,
    span: Span,
) -> Outcome<DirsOptions> {
    let mut options = of_search(session, found, span)?;
    options.names = match args.ignore_names {
        true => DirNames::Ignore,
        false => DirNames::Compare,
    };
    options.similar = args.similar;
    options.min_files = args.min_files;
    let state = bc_find::dirs::dirs_memory(&found.listing);
    if matches!(args.format, DirsFormat::Json | DirsFormat::Jsonl) {
        let algorithms = vec![digest_algorithm(found.algorithm)];
        let mut reading = HashOptions::new(algorithms);
        let width = Batch::new(&reading.algorithms, reading.cpu).width();
        reading.workers = session.workers(found.listing.len(), width, state);
        reading.read = session.read_options(reading.workers, width, state)?;
        reading.start = session.common.threads.start();
        options.digests = Some(reading);
    }
    Ok(options)
}
