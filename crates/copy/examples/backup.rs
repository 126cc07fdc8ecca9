//! Copies directories into another one and names what failed: `backup SOURCE... DESTINATION`.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::Write;

use bc_copy::{CopyOptions, OnConflict};
use bc_walk::job::Means;

fn main() -> Result<(), Box<dyn Error>> {
    let mut paths: Vec<_> = std::env::args_os().skip(1).collect();
    let destination = paths.pop().ok_or("no destination")?;
    let copy = CopyOptions::new(paths, destination).on_conflict(OnConflict::Update);
    let done = copy.run(&Means::new())?;
    for error in &done.errors {
        writeln!(std::io::stderr(), "{error}")?;
    }
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{} of {} copied",
        done.counts.copied, done.counts.walked
    )?;
    Ok(())
}
