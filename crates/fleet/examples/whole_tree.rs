//! Puts the manifests of all parts of a tree together and writes the whole to standard output:
//! `whole_tree PART...`.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::{Write, stderr, stdout};

use bc_fleet::{MergeOptions, merge};
use bc_integrity::ManifestFile;

fn main() -> Result<(), Box<dyn Error>> {
    let names = std::env::args_os().skip(1);
    let parts: Vec<ManifestFile> = names
        .map(|name| ManifestFile::open(&name))
        .collect::<Result<_, _>>()?;
    let cancel = bc_pool::Cancel::new();
    let options = MergeOptions::new(&parts, bc_pool::available_cpus(), &cancel);
    let (_, merged) = merge(&options, stdout().lock())?;
    writeln!(stderr(), "{} entries", merged.trailer.entries)?;
    Ok(())
}
