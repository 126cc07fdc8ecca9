//! Prints groups of equal files below some directories: `find_duplicates DIR...`.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::Write;

use bc_find::scan::{ScanOptions, ScanProgress, scan};
use bc_pool::{Cancel, available_cpus};
use bc_walk::{Metadata, walk};

fn main() -> Result<(), Box<dyn Error>> {
    let roots: Vec<_> = std::env::args_os().skip(1).collect();
    let (cancel, workers) = (Cancel::new(), available_cpus());
    let walking = bc_walk::WalkOptions::default().metadata(Metadata::Basic);
    let listing = walk(&roots, &walking, workers, &cancel)?;
    let options = ScanOptions::default().workers(workers);
    let found = scan(&listing, &options, None, &cancel, &ScanProgress::default())?;
    let mut out = std::io::stdout().lock();
    for group in found.groups() {
        for file in group.files() {
            let path = listing.path(file.names[0]);
            writeln!(out, "{}", String::from_utf8_lossy(&path))?;
        }
        writeln!(out)?;
    }
    Ok(())
}
