//! Prints the same as `find DIR -type f | sort | xargs sha256sum`, from all CPUs: `sha256_tree
//! DIR...`.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::{BufWriter, Write};

use bc_digest::Algorithm;
use bc_hash::{HashOptions, HashProgress, hash_listing};
use bc_pool::{Cancel, available_cpus};

fn main() -> Result<(), Box<dyn Error>> {
    let roots: Vec<_> = std::env::args_os().skip(1).collect();
    let (cancel, workers) = (Cancel::new(), available_cpus());
    let listing = bc_walk::walk(&roots, &bc_walk::WalkOptions::default(), workers, &cancel)?;
    let mut options = HashOptions::new(vec![Algorithm::Sha256]);
    options.workers = workers;
    let hashes = hash_listing(&listing, &options, &cancel, &HashProgress::default())?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    for id in listing.ids() {
        if let Some(digest) = hashes.digests(id).and_then(|mut all| all.next()) {
            let path = listing.path(id);
            writeln!(out, "{digest}  {}", String::from_utf8_lossy(&path))?;
        }
    }
    out.flush()?;
    for (_, error) in hashes.errors() {
        writeln!(std::io::stderr(), "{error}")?;
    }
    Ok(())
}
