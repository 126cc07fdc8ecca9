//! Copies those photos of a card that an archive does not have under any name to a new folder of it,
//! and reads the copies back: `import_photos CARD ARCHIVE FOLDER`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program may")]
#![forbid(unsafe_code)]

use std::error::Error;
use std::path::PathBuf;

use bit_crafts::{CopyOptions, Globs, Means, ReadBack, Search, UniqueOptions, WalkOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [card, archive, folder] = args.as_slice() else {
        return Err("usage: import_photos CARD ARCHIVE FOLDER".into());
    };
    // Patterns are case-sensitive, and cameras write capitals.
    let pictures = Globs::new(&["*.[jJ][pP][gG]", "*.[rR][aA][wW]"])?;
    let means = Means::new().progress(|now| eprint!("\r{} files", now.files));
    // If the card is missing or the job is cancelled, this is an error, not an answer.
    let found = Search::new([card])
        .references([archive])
        .walk(WalkOptions::default().include(pictures))
        .unique(&UniqueOptions::new(), &means)?;
    if let Some(error) = found.errors.first() {
        return Err(error.clone().into());
    }
    let mut new = Vec::new();
    for content in found.nowhere() {
        new.push(content.paths[0].strip_prefix(card)?);
    }
    let copied = CopyOptions::new([card], archive.join(folder))
        .paths(&new)?
        .read_back(ReadBack::Read)
        .run(&means)?
        .complete()?;
    let known = found.contents.len() - new.len();
    println!("{} imported, {known} known", copied.counts.files);
    Ok(())
}
