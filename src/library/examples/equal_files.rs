//! Prints groups of identical files below some directories: `equal_files DIR...`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program may")]
#![forbid(unsafe_code)]

use bit_crafts::{Means, Search};

fn main() -> Result<(), bit_crafts::Error> {
    let roots = std::env::args_os().skip(1);
    let found = Search::new(roots).duplicates(&Means::new())?;
    for group in &found.groups {
        for path in group.paths() {
            println!("{}", path.display());
        }
        println!();
    }
    found.complete().map(drop) // unreadable files are an error
}
