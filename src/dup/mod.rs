//! `bc dup`: find duplicate files, say what they waste, reclaim it safely.

mod args;
mod html;
mod journals;
mod prune;
mod question;
mod references;
mod saved;
mod summary;
mod terminal;

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bc_digest::{Algorithm, Batch, CpuFeatures};
use bc_dup::report::{Names, Report};
use bc_dup::scan::{HardLinks, Options, Progress, Proof, Scan, Span};
use bc_dup::{Cache, Location, Subtrees};
use bc_walk::{Listing, Metadata};
use clap::{Args as _, CommandFactory, FromArgMatches};

use crate::args::WalkArgs;
use crate::budget::Kept;
use crate::exit::Exit;
use crate::output::{Output, Written};
use crate::progress::Display;
use crate::run::{Outcome, Session};
use args::{Digest, DupCli, DupCommand, Format, ScanArgs, SearchArgs};

/// The command tree of the applet.
pub fn command() -> clap::Command {
    DupCli::command()
}

/// One subcommand alone.
pub fn only(name: &str) -> Option<clap::Command> {
    let command = clap::Command::new(name.to_owned());
    Some(match name {
        "scan" => args::ScanArgs::augment_args(command),
        "summary" => args::SummaryArgs::augment_args(command),
        "prune" => args::PruneArgs::augment_args(command),
        "undo" => args::UndoArgs::augment_args(command),
        _ => return None,
    })
}

/// Runs a parsed command line.
pub fn run(mut matches: clap::ArgMatches) -> Exit {
    let cli = match DupCli::from_arg_matches_mut(&mut matches) {
        Ok(cli) => cli,
        Err(error) => return crate::report::usage(error),
    };
    let exit = match &cli.command {
        DupCommand::Scan(args) => scan(args),
        DupCommand::Summary(args) => summary::run(args),
        DupCommand::Prune(args) => prune::run(args),
        DupCommand::Undo(args) => prune::undo(args),
    };
    exit.unwrap_or_else(|fatal| fatal)
}

fn scan(args: &ScanArgs) -> Outcome<Exit> {
    let mut read = args.walk.inputs();
    read.extend(args.search.cache.as_deref());
    let session = Session::start("dup", "scan", &args.common, &read, args.output.as_deref())?;
    let output = Output::open(args.output.as_deref()).map_err(|text| session.fatal(&text))?;
    let found = search(
        &session,
        &args.paths,
        &args.search,
        &args.walk,
        args.output.as_deref(),
    )?;
    if session.cancel.is_cancelled() {
        return Ok(session.end(Exit::Done));
    }
    let mut output = match args.format {
        Format::Json | Format::Jsonl => output.json(),
        _ => output.colors(args.common.color),
    };
    let names = match output.is_terminal() {
        true => Names::OneLine,
        false => Names::Exact,
    };
    let result = match format(args.format) {
        Some(bc_dup::report::Format::Text) if output.is_terminal() => {
            terminal::groups(&found, &mut output)
        }
        Some(format) => found.report().write(format, names, &mut output),
        None => html::page(&found.report()).write(&mut output),
    };
    let exit = match output.finish(result) {
        Ok(Written::Whole | Written::ReaderLeft) => session.report.exit(),
        Err(text) => session.fatal(&text),
    };
    terminal::closing(&session, &found, &args.paths);
    Ok(session_end(session, &found, exit))
}

/// A finished search and everything its report needs.
struct Found {
    listing: Listing,
    scan: Scan,
    algorithm: Algorithm,
    roots: Vec<Vec<u8>>,
    reference_roots: Vec<usize>,
    references: Arc<Subtrees>,
    started_at: String,
}

impl Found {
    fn report(&self) -> Report<'_> {
        Report {
            listing: &self.listing,
            scan: &self.scan,
            algorithm: self.algorithm,
            roots: &self.roots,
            reference_roots: &self.reference_roots,
            started_at: &self.started_at,
        }
    }
}

/// Walks and searches; reports every file that could not be judged.
fn search(
    session: &Session,
    paths: &[OsString],
    search: &SearchArgs,
    walk: &WalkArgs,
    output: Option<&Path>,
) -> Outcome<Found> {
    let started_at = crate::metrics::now();
    if walk.files_from.is_some() && !search.reference.is_empty() {
        return Err(session.fatal("--reference needs PATHs; it does not go with --files-from"));
    }
    let mut references = references::open(session, &references::bytes(&search.reference))?;
    // References are searched as well; one that is a PATH too, by whichever
    // name, is that root.
    let mut roots: Vec<OsString> = paths.to_vec();
    let reference_roots = references::as_roots(&references, &search.reference, &mut roots);
    if paths.is_empty() {
        roots.clear();
    }
    let progress = Arc::new(Progress::default());
    let counters = Arc::clone(&progress);
    let reading = move || crate::progress::Counts {
        phase: counters.whole.load(Relaxed).then_some("whole files"),
        files_total: counters.planned.load(Relaxed),
        bytes_total: counters.planned_bytes.load(Relaxed),
        ..crate::progress::counts(&counters.files, &counters.bytes)
    };
    let display = Display::start(&session.common, "walk", Arc::new(reading));

    // Before the walk: what changes from here on is not to be remembered.
    let mut cache = open_cache(session, search.cache.as_deref().map(Path::new))?;
    let mut walk_options =
        session.walk_options(walk, Metadata::Basic, crate::output::replaced(output))?;
    (walk_options.min_size, _) = session.sizes(walk, args::LEAST.0)?;
    references::survey(session, &mut references, walk)?;
    let references = Arc::new(references);
    let listing = session.listing(&roots, walk, &walk_options)?;
    references
        .check()
        .map_err(|error| session.fatal(&format!("--reference={error}")))?;
    display.phase("first bytes", 0, 0);

    let algorithm = match search.algorithm {
        Digest::Xxh128 => Algorithm::Xxh128,
        Digest::Xxh3 => Algorithm::Xxh3,
        Digest::Blake3 => Algorithm::Blake3,
        Digest::Sha256 => Algorithm::Sha256,
    };
    let cpu = CpuFeatures::detect();
    let width = Batch::new(&[algorithm], cpu).width();
    let state = Kept::Arrays(bc_dup::scan::memory(&listing));
    let workers = session.workers(listing.len(), width, state);
    let options = Options {
        algorithm,
        min_size: walk_options.min_size,
        hard_links: if search.match_hardlinks {
            HardLinks::Duplicates
        } else {
            HardLinks::OneFile
        },
        references: Arc::clone(&references),
        span: if search.across_roots {
            Span::AcrossRoots
        } else {
            Span::Any
        },
        proof: if search.verify_bytes {
            Proof::Bytes
        } else {
            Proof::Digest
        },
        read: session.read_options(workers, width, state)?,
        workers,
        start: session.common.threads.start(),
        cpu,
    };
    let scan = bc_dup::scan::scan(
        &listing,
        &options,
        cache.as_mut(),
        &session.cancel,
        &progress,
    )
    .map_err(|panic| session.defect(&panic))?;
    display.stop();
    for message in cache.iter().flat_map(Cache::messages) {
        session.report.warning(message);
    }
    for error in &scan.errors {
        session.report.failure(error);
    }
    let stats = &scan.stats;
    session.report.note(1, &format!(
        "search: {} files, {} share their size, {} read first, {} read whole afterwards, {} bytes read, reader {}, {:.3} s in all",
        stats.files, stats.size_candidates, stats.fast_hashed, stats.full_hashed, stats.bytes_read,
        stats.backend.name(), session.elapsed(),
    ));
    session.report.note(
        1,
        &format!(
            "found: {} groups, {} duplicates, {} wasted",
            scan.groups().len(),
            scan.duplicates(),
            crate::progress::size(scan.wasted()),
        ),
    );
    let roots = roots
        .into_iter()
        .map(OsString::into_encoded_bytes)
        .collect();
    Ok(Found {
        listing,
        scan,
        algorithm,
        roots,
        reference_roots,
        references,
        started_at,
    })
}

/// The cache asked for: at its path, or at the usual place if it is empty.
fn open_cache(session: &Session, path: Option<&Path>) -> Outcome<Option<Cache>> {
    let Some(path) = path else { return Ok(None) };
    let usual = match crate::dirs::cache_dir() {
        _ if !path.as_os_str().is_empty() => None,
        Some(dir) => Some(dir.join("dup.redb")),
        None => {
            let text = "--cache: neither XDG_CACHE_HOME nor HOME is set; name a file";
            return Err(session.fatal(text));
        }
    };
    let opened = match &usual {
        Some(usual) => Cache::open(usual, Location::Usual),
        None => Cache::open(path, Location::Named),
    };
    opened
        .map(Some)
        .map_err(|refused| session.fatal(&format!("--cache: {refused}; it is left as it is")))
}

/// Ends the run with the search's figures in the metrics.
fn session_end(mut session: Session, found: &Found, exit: Exit) -> Exit {
    let stats = &found.scan.stats;
    let metrics = &mut session.metrics;
    metrics.set("files", "Files looked at.", stats.files as f64);
    metrics.set("read_bytes", "Bytes read.", stats.bytes_read as f64);
    metrics.set(
        "groups",
        "Groups of equal files.",
        found.scan.groups().len() as f64,
    );
    metrics.set(
        "duplicates",
        "Files that could be given up.",
        found.scan.duplicates() as f64,
    );
    metrics.set(
        "wasted_bytes",
        "Disk space that could be freed.",
        found.scan.wasted() as f64,
    );
    metrics.label("reader", stats.backend.name());
    session.end(exit)
}

/// The engine's name of a format; a page is made here.
fn format(format: Format) -> Option<bc_dup::report::Format> {
    use bc_dup::report::Format as F;
    Some(match format {
        Format::Text => F::Text,
        Format::Json => F::Json,
        Format::Jsonl => F::Jsonl,
        Format::Csv => F::Csv,
        Format::Fdupes => F::Fdupes,
        Format::Script => F::Script,
        Format::Html => return None,
    })
}
