//! Hashes a tree with a chosen set of kernels and prints how many files and
//! bytes there were: `hash_tree best|avx512|avx2|sha-ni|portable ALG DIR
//! [THREADS]`. For timing one instruction set against another on one machine.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "its output is the result")]

use std::error::Error;

use bc_digest::{Algorithm, Kernels};
use bc_hash::{Options, hash_listing};
use bc_pool::Cancel;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [kernels, algorithm, dir, rest @ ..] = args.as_slice() else {
        return Err("usage: hash_tree best|avx512|avx2|sha-ni|portable ALG DIR [THREADS]".into());
    };
    let kernels = match kernels.as_str() {
        "best" => Some(Kernels::detect()),
        "avx512" => Kernels::avx512(),
        "avx2" => Kernels::avx2(),
        "sha-ni" => Kernels::sha_ni(),
        "portable" => Some(Kernels::portable()),
        other => return Err(format!("unknown kernels: {other}").into()),
    };
    let algorithm: Algorithm = algorithm.parse()?;
    let workers = match rest.first() {
        Some(text) => text.parse()?,
        None => bc_pool::available_cpus(),
    };
    let cancel = Cancel::new();
    let walk = bc_walk::Options::default();
    let listing = bc_walk::walk(&[dir.into()], &walk, workers, &cancel)?;
    let options = Options {
        kernels: kernels.ok_or("this CPU does not have them")?,
        workers,
        ..Options::new(vec![algorithm])
    };
    let hashes = hash_listing(&listing, &options, &cancel, &Default::default())?;
    let read = &hashes.totals().read;
    println!(
        "{} files, {} bytes, {} errors",
        read.files, read.bytes, read.errors
    );
    Ok(())
}
