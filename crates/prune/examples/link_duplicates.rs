//! Makes equal files below some directories hard links of each other, and takes that back:
//! `link_duplicates JOURNAL DIR...`, then `link_duplicates JOURNAL`.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::{self, Write};

use bc_find::groups::FileGroup;
use bc_find::report::ScanReport;
use bc_find::scan::{ScanOptions, ScanProgress, scan};
use bc_pool::{Cancel, available_cpus};
use bc_prune::{Action, Journal, PruneEvent, PruneOptions, RunMode, prune, undo};
use bc_walk::{Metadata, WalkOptions, walk};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1);
    let journal = args.next().ok_or("JOURNAL is missing")?;
    let roots: Vec<_> = args.collect();
    let cancel = Cancel::new();
    let mut out = io::stdout().lock();
    if roots.is_empty() {
        let totals = undo(&journal, RunMode::Execute, &cancel, &mut |_| ())?;
        writeln!(out, "{} restored", totals.restored)?;
        return Ok(());
    }
    let walking = WalkOptions::default().metadata(Metadata::Basic);
    let listing = walk(&roots, &walking, available_cpus(), &cancel)?;
    let options = ScanOptions::default();
    let found = scan(&listing, &options, None, &cancel, &ScanProgress::default())?;
    let given = roots.into_iter().map(|root| root.into_encoded_bytes());
    let report = ScanReport {
        listing: &listing,
        scan: &found,
        algorithm: options.algorithm,
        roots: &given.collect::<Vec<_>>(),
        reference_roots: &[],
        started_at: "1970-01-01T00:00:00Z",
    };
    let mut plan = PruneOptions::new(Action::Hardlink);
    plan.mode = RunMode::Execute;
    let groups: Vec<FileGroup> = report.groups().collect();
    let mut journal = Journal::create(&journal, &plan.action, &groups, &cancel)?;
    let mut printed = Ok(());
    let mut print = |event| {
        if let (PruneEvent::Step(step, _), Ok(())) = (event, &printed) {
            printed = writeln!(out, "{step}");
        }
    };
    let totals = prune(groups, &plan, Some(&mut journal), &cancel, &mut print);
    printed?;
    writeln!(out, "{} changed, {} errors", totals.changed, totals.errors)?;
    Ok(())
}
