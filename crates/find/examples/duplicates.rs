//! Lists the duplicates below some directories: `duplicates DIR…`. With
//! `BC_CACHE=FILE` in the environment digests are kept there.

#![forbid(unsafe_code)]

use std::error::Error;
use std::io::{BufWriter, Write};
use std::time::Instant;

use bc_find::Cache;
use bc_find::scan::{ScanOptions, ScanProgress, scan};
use bc_pool::{Cancel, available_cpus};
use bc_walk::{Metadata, walk};

fn main() -> Result<(), Box<dyn Error>> {
    let roots: Vec<_> = std::env::args_os().skip(1).collect();
    let workers = available_cpus();
    let cancel = Cancel::new();
    let cache = std::env::var_os("BC_CACHE");
    let mut cache = cache
        .map(|path| Cache::open(path, bc_find::Location::Named))
        .transpose()?;
    let started = Instant::now();
    let options = bc_walk::WalkOptions::default().metadata(Metadata::Basic);
    let listing = walk(&roots, &options, workers, &cancel)?;
    let walked = started.elapsed();
    let options = ScanOptions::default().workers(workers);
    let found = scan(
        &listing,
        &options,
        cache.as_mut(),
        &cancel,
        &ScanProgress::default(),
    )?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut path = Vec::new();
    for group in found.groups() {
        for entry in group.files().map(|file| file.names[0]) {
            path.clear();
            listing.write_path(entry, &mut path);
            path.push(b'\n');
            out.write_all(&path)?;
        }
        out.write_all(b"\n")?;
    }
    out.flush()?;
    for error in listing.errors().iter().chain(&found.errors) {
        writeln!(std::io::stderr(), "{error}")?;
    }
    for message in cache.iter().flat_map(Cache::messages) {
        writeln!(std::io::stderr(), "{message}")?;
    }
    writeln!(
        std::io::stderr(),
        "walk {walked:?}, all {:?}, {:?}",
        started.elapsed(),
        found.stats
    )?;
    Ok(())
}
