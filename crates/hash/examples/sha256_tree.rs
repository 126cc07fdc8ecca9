//! Prints the same as `find DIR -type f | sort | xargs sha256sum`, from all CPUs: `sha256_tree
//! DIR...`.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::{BufWriter, Write};

use bc_digest::Algorithm;
use bc_hash::HashOptions;
use bc_walk::WalkOptions;
use bc_walk::job::Means;

fn main() -> Result<(), Box<dyn Error>> {
    let roots: Vec<_> = std::env::args_os().skip(1).collect();
    let options = HashOptions::new(vec![Algorithm::Sha256]);
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut printed = Ok(());
    let hashed = options.run_each(&roots, &WalkOptions::default(), &Means::new(), |file| {
        if printed.is_ok() {
            printed = writeln!(out, "{}  {}", file.digest(), file.path.display());
        }
    })?;
    printed?;
    out.flush()?;
    for error in &hashed.errors {
        writeln!(std::io::stderr(), "{error}")?;
    }
    Ok(())
}
