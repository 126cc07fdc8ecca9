//! The search that `scan`, `summary` and `prune` begin with, and what manifests of offline disks know of
//! its contents.

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bc_digest::{Algorithm, Batch};
use bc_find::manifests::{Manifest, is_weak, tag};
use bc_find::report::ScanReport;
use bc_find::scan::{Scan, ScanOptions, ScanProgress, scan};
use bc_find::unique::{Offline, offline};
use bc_find::{Cache, Subtrees};
use bc_hash::{HashOptions, HashProgress};
use bc_walk::Listing;

use super::plan::{CacheFile, SearchPlan};
use super::{output, references};
use crate::report::Exit;
use crate::report::diagnostic::Diagnostic;
use crate::session::progress::{Display, ProgressCounts, thousands};
use crate::session::{Outcome, Session};

/// A finished search and everything its report needs.
pub struct SearchResult {
    pub listing: Listing,
    pub scan: Scan,
    pub references: Arc<Subtrees>,
    /// Contents that manifests list, if there are manifests.
    pub offline: Option<OfflineManifests>,
    pub algorithm: Algorithm,
    roots: Vec<Vec<u8>>,
    reference_roots: Vec<usize>,
    started_at: String,
}

impl SearchResult {
    pub fn report(&self) -> ScanReport<'_> {
        ScanReport {
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
pub fn search(session: &Session, mut plan: SearchPlan<'_>) -> Outcome<SearchResult> {
    let started_at = crate::session::metrics::now();
    let progress = Arc::new(ScanProgress::default());
    let display = display(session, &progress);
    // Before the walk: files that change from here on are not to be remembered.
    let open = |file: &CacheFile| file.open(session);
    let mut cache = plan.cache.as_ref().map(open).transpose()?;
    references::survey(
        session,
        &mut plan.references,
        plan.reference_files,
        plan.walk,
    )?;
    let listing = session.listing(&plan.roots, plan.walk, &plan.walk_options)?;
    session.refuse_unreached(&listing, &plan.roots)?;
    plan.references.check().map_err(|error| {
        let text = format!("--reference={error}");
        session.fatal(Diagnostic::from(&error).worded(text))
    })?;
    display.phase("first bytes", 0, 0);

    let references = Arc::new(plan.references);
    let mut options = plan.scan;
    let width = Batch::new(&[options.algorithm], options.cpu).width();
    let state = bc_find::scan::scan_memory(&listing);
    options.workers = session.workers(listing.len(), width, state);
    options.read = session.read_options(options.workers, width, state)?;
    options.references = Arc::clone(&references);
    let scan = scan(
        &listing,
        &options,
        cache.as_mut(),
        &session.cancel,
        &progress,
    )
    .map_err(|panic| session.defect(&panic))?;
    let offline = ask(session, &listing, &scan, &options, plan.manifests)?;
    display.stop();
    output::search(
        session,
        &scan,
        cache.as_ref().map_or(&[][..], Cache::messages),
    );
    let roots = plan.roots.into_iter().map(OsString::into_encoded_bytes);
    Ok(SearchResult {
        listing,
        scan,
        references,
        offline,
        algorithm: options.algorithm,
        roots: roots.collect(),
        reference_roots: plan.reference_roots,
        started_at,
    })
}

/// Asks manifests about the contents that were found.
fn ask(
    session: &Session,
    listing: &Listing,
    scan: &Scan,
    options: &ScanOptions,
    mut manifests: Vec<Manifest>,
) -> Outcome<Option<OfflineManifests>> {
    if manifests.is_empty() || session.cancel.is_cancelled() {
        return Ok(None);
    }
    let hash = HashOptions::new(Vec::new())
        .cpu(options.cpu)
        .read(options.read.clone())
        .workers(options.workers)
        .start(options.start);
    let (cancel, progress) = (&session.cancel, HashProgress::default());
    let offline = offline(listing, scan, &mut manifests, hash, cancel, &progress);
    let offline = offline.map_err(|why| unanswered(session, &why))?;
    for error in &offline.errors {
        session.report.problem(error);
    }
    if let Some(text) = rests_on(&offline) {
        session.report.always(text);
    }
    Ok(Some(OfflineManifests { manifests, offline }))
}

fn display(session: &Session, progress: &Arc<ScanProgress>) -> Display {
    let counters = Arc::clone(progress);
    let reading = move || ProgressCounts {
        phase: counters.whole.load(Relaxed).then_some("whole files"),
        files_total: counters.planned.load(Relaxed),
        bytes_total: counters.planned_bytes.load(Relaxed),
        ..crate::session::progress::counts(&counters.files, &counters.bytes)
    };
    Display::start(&session.common, "walk", Arc::new(reading))
}

/// Manifests, and the contents that they list.
pub struct OfflineManifests {
    pub manifests: Vec<Manifest>,
    pub offline: Offline,
}

impl OfflineManifests {
    /// Returns the paths of the manifests.
    pub fn paths(&self) -> Vec<&[u8]> {
        self.manifests.iter().map(Manifest::path).collect()
    }
}

/// Returns `of 3 contents this rests on MD5, fine against accidents only`.
fn rests_on(offline: &Offline) -> Option<String> {
    let weak = offline
        .contents
        .iter()
        .map(|content| content.answer.algorithm);
    let weak: Vec<_> = weak.filter(|algorithm| is_weak(*algorithm)).collect();
    let mut names: Vec<&str> = weak.iter().map(|algorithm| tag(*algorithm)).collect();
    names.sort_unstable();
    names.dedup();
    (!weak.is_empty()).then(|| {
        format!(
            "of {} contents that manifests know this rests on {}, fine against accidents only",
            thousands(weak.len() as u64),
            names.join(" and ")
        )
    })
}

/// Reports why manifests did not answer.
pub fn unanswered(session: &Session, why: &bc_walk::job::Error) -> Exit {
    match why.path() {
        Some(_) => session.fatal(format!("--reference={why}")),
        None => session.defect(why),
    }
}
