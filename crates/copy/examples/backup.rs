//! Copies directories into another one and names what failed: `backup SOURCE... DESTINATION`.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::Write;

use bc_copy::{CopyOptions, CopyProgress, Event, OnConflict, copy};
use bc_pool::{Cancel, available_cpus};

fn main() -> Result<(), Box<dyn Error>> {
    let mut paths: Vec<_> = std::env::args_os().skip(1).collect();
    let destination = paths.pop().ok_or("no destination")?;
    let mut options = CopyOptions::new(paths, destination);
    options.on_conflict = OnConflict::Update;
    options.workers = available_cpus();
    let reported = |event: Event<'_>| {
        if let Event::Failed(error) = event {
            let _ = writeln!(std::io::stderr(), "{error}");
        }
    };
    let done = copy(
        &options,
        &Cancel::new(),
        &CopyProgress::default(),
        &reported,
    )?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{} of {} copied", done.copied, done.walked)?;
    Ok(())
}
