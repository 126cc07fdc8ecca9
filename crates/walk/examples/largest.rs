//! The ten largest files below some directories: `largest DIR...`.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::Write;

use bc_walk::job::Means;
use bc_walk::{Metadata, WalkOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let roots: Vec<_> = std::env::args_os().skip(1).collect();
    let options = WalkOptions::default().metadata(Metadata::Basic);
    let listing = options.run(&roots, &Means::new())?;
    let mut files: Vec<_> = listing
        .ids()
        .filter_map(|id| Some((listing.meta(id)?.stamp.size, id)))
        .collect();
    // The largest first; of equal ones the order of the paths decides.
    files.sort_by_key(|(size, id)| (std::cmp::Reverse(*size), *id));
    let mut out = std::io::stdout().lock();
    for (size, id) in files.iter().take(10) {
        let path = listing.path(*id);
        writeln!(out, "{size:>12}  {}", String::from_utf8_lossy(&path))?;
    }
    for error in listing.errors() {
        writeln!(std::io::stderr(), "{error}")?;
    }
    Ok(())
}
