//! Prints groups of equal files below some directories: `find_duplicates DIR...`.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::Write;

use bc_find::Search;
use bc_walk::job::Means;

fn main() -> Result<(), Box<dyn Error>> {
    let roots: Vec<_> = std::env::args_os().skip(1).collect();
    let found = Search::new(&roots).duplicates(&Means::new())?;
    let mut out = std::io::stdout().lock();
    for group in &found.groups {
        for path in group.paths() {
            writeln!(out, "{}", path.display())?;
        }
        writeln!(out)?;
    }
    Ok(())
}
