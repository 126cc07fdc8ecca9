//! Records a directory in memory, waits for a line on standard input, and reports the changes
//! since: `what_changed DIR`.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::Write;

use bc_digest::Algorithm;
use bc_integrity::{CreateOptions, ManifestFile, VerifyOptions};
use bc_walk::job::{Means, path_of};

fn main() -> Result<(), Box<dyn Error>> {
    let root = std::env::args_os()
        .nth(1)
        .ok_or("usage: what_changed DIR")?;
    let means = Means::new();
    let record = CreateOptions::new(&root, Algorithm::Blake3);
    let (manifest, written) = record.write_to(Vec::new(), &means)?;
    for error in &written.errors {
        writeln!(std::io::stderr(), "{error}")?;
    }
    let mut out = std::io::stdout();
    writeln!(out, "{} entries recorded; press Enter", written.entries)?;
    std::io::stdin().read_line(&mut String::new())?;

    let manifest = ManifestFile::from_reader(b"memory", &manifest[..])?;
    for change in VerifyOptions::new(&root, &manifest).run(&means)?.changes {
        writeln!(
            out,
            "{:<10} {}",
            change.class,
            path_of(&change.path).display()
        )?;
    }
    Ok(())
}
