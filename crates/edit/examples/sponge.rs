//! Writes standard input to FILE, which appears whole or not at all:
//! `sort names | sponge names`.

#![forbid(unsafe_code)]

use std::error::Error;
use std::io::{Write, stdin};
use std::path::Path;

use bc_edit::atomic::AtomicFile;

fn main() -> Result<(), Box<dyn Error>> {
    let target = std::env::args_os().nth(1).ok_or("usage: sponge FILE")?;
    let new = AtomicFile::create(Path::new(&target))?;
    // The old content stays until the end, so it may be what is read.
    let written = std::io::copy(&mut stdin().lock(), &mut new.file())?;
    new.commit()
        .map_err(|not| format!("{}: {}", not.operation, not.error))?;
    writeln!(std::io::stdout(), "{written} bytes")?;
    Ok(())
}
