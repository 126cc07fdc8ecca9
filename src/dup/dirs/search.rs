//! Search for whole directories: its plan, and the look at directories after the files were compared.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use bc_find::dirs::{Directories, DirsOptions};
use bc_find::scan::Span;
use bc_hash::HashProgress;
use bc_walk::{Entries, Repeats, WalkOptions};

use crate::dup::args::search::SearchArgs;
use crate::dup::plan::SearchPlan;
use crate::dup::search::SearchResult;
use crate::parse::args::WalkArgs;
use crate::session::progress::{Display, reading};
use crate::session::{Outcome, Session};

/// Returns the plan of a search of whole directories: an empty file is a part of its directory.
pub fn plan<'a>(
    session: &Session,
    paths: &[OsString],
    search: &SearchArgs,
    walk: &'a WalkArgs,
    target: Option<&Path>,
) -> Outcome<SearchPlan<'a>> {
    let mut plan = SearchPlan::from_size(0, session, paths, search, walk, target)?;
    plan.walk_options = of_directories(plan.walk_options);
    Ok(plan)
}

/// Returns options of a walk with all that the directories in it contain.
pub fn of_directories(mut options: WalkOptions) -> WalkOptions {
    options.entries = Entries::All;
    options.repeats = Repeats::List;
    options
}

/// Returns the engine's options for directories of a search: equal and contained ones.
pub fn of_search(session: &Session, found: &SearchResult, span: Span) -> Outcome<DirsOptions> {
    session.read_options(1, 1, bc_find::dirs::dirs_memory(&found.listing))?;
    let mut options = DirsOptions::new();
    options.span = span;
    options.algorithm = found.algorithm;
    Ok(options)
}

/// Compares the directories of the files found; reports those that could not be read or changed.
pub fn look(
    session: &Session,
    found: &SearchResult,
    options: &DirsOptions,
) -> Outcome<Directories> {
    let progress = Arc::new(HashProgress::default());
    // Without digests nothing is read any more.
    let start = |_| Display::start(&session.common, "directories", reading(&progress));
    let display = options.digests.as_ref().map(start);
    let (listing, scan) = (&found.listing, &found.scan);
    let answer = bc_find::dirs::find(listing, scan, options, &session.cancel, &progress)
        .map_err(|panic| session.defect(&panic))?;
    drop(display);
    for error in &answer.errors {
        session.report.problem(error);
    }
    Ok(answer)
}
