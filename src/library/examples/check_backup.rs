//! Records a tree the first time, and lists changed and damaged files on later runs:
//! `check_backup DIR MANIFEST`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program may")]
#![forbid(unsafe_code)]

use std::error::Error;
use std::path::PathBuf;

use bit_crafts::{Algorithm, CreateOptions, ManifestFile, Means, Progress, VerifyOptions, path_of};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [root, manifest] = args.as_slice() else {
        return Err("usage: check_backup DIR MANIFEST".into());
    };
    let means = Means::new().progress(bar);
    if !manifest.exists() {
        let record = CreateOptions::new(root, Algorithm::Blake3);
        let written = record.run_to(manifest, &means)?.complete()?;
        println!("{} files recorded", written.files);
        return Ok(());
    }
    let manifest = ManifestFile::open(manifest)?;
    let verified = VerifyOptions::new(root, &manifest).run_each(&means, |change| {
        println!("{}: {}", change.class, path_of(&change.path).display());
    })?;
    match verified.is_damaged() {
        true => Err("damaged".into()),
        false => Ok(verified.complete().map(drop)?),
    }
}

/// Draws a bar of forty characters, once the total is known.
fn bar(now: Progress) {
    if let Some(total) = now.files_total {
        let done = (now.files * 40 / total.max(1)).min(40) as usize;
        eprint!("\r[{:<40}] {}/{total}", "#".repeat(done), now.files);
    }
}
