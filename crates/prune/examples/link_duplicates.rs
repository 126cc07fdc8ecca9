//! Makes equal files below some directories hard links of each other, and takes that back:
//! `link_duplicates JOURNAL DIR...`, then `link_duplicates JOURNAL`.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::{self, Write};

use bc_find::Search;
use bc_prune::{Action, PruneOptions, RunMode, UndoJob};
use bc_walk::job::Means;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1);
    let journal = args.next().ok_or("JOURNAL is missing")?;
    let roots: Vec<_> = args.collect();
    let mut out = io::stdout().lock();
    if roots.is_empty() {
        let undone = UndoJob::new(&journal).run(&Means::new())?;
        writeln!(out, "{} restored", undone.restored)?;
        return Ok(());
    }
    let link = PruneOptions::new(Action::Hardlink).mode(RunMode::Execute);
    let link = link.journal(Some(journal.into()));
    let mut printed = Ok(());
    let pruned = link.run_each(&Search::new(&roots), &Means::new(), |done| {
        if printed.is_ok() {
            printed = writeln!(out, "{}", done.step);
        }
    })?;
    printed?;
    let errors = pruned.errors.len();
    writeln!(out, "{} changed, {errors} errors", pruned.changed)?;
    Ok(())
}
