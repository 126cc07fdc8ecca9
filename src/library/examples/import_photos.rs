//! Copies the files of a card that the archive does not have, under any name:
//! `import_photos CARD ARCHIVE`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program may")]
#![forbid(unsafe_code)]

use std::error::Error;
use std::path::{Path, PathBuf};

use bit_crafts::{
    ContentPlace, CopyOptions, Globs, ManifestPlace, Means, ReadBack, Search, Target,
    UniqueOptions, WalkOptions,
};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [card, archive] = args.as_slice() else {
        return Err("usage: import_photos CARD ARCHIVE".into());
    };
    // Case counts, and cameras write capitals.
    let pictures = WalkOptions::default()
        .include(Globs::new(&["*.[jJ][pP][gG]", "*.[rR][aA][wW]"])?)
        .max_depth(Some(8));
    let means = Means::new().progress(|now| eprint!("\r{} files compared", now.files));
    // Cancelled, or without a card, this is an error and no answer.
    let found = Search::new([card])
        .references([archive])
        .walk(pictures)
        .unique(&UniqueOptions::new(), &means)?;
    eprintln!();
    if let Some(own) = found.own_archives.first() {
        return Err(format!("{}: lies in {}", own.display(), card.display()).into());
    }
    let (mut new, mut known) = (0, 0);
    for content in &found.contents {
        match &content.place {
            ContentPlace::Archive(_) => known += 1,
            // It is among the errors below.
            ContentPlace::Unknown => {}
            _ => {
                import(&content.paths[0], archive)?;
                new += 1;
            }
        }
    }
    println!("{new} imported, {known} known");
    for other in &found.not_files {
        eprintln!("{}: no regular file, not imported", other.path.display());
    }
    if found.unseen > 0 {
        eprintln!(
            "{} entries were left out: no pictures by their names",
            found.unseen
        );
    }
    match found.errors.first() {
        Some(error) => Err(error.clone().into()),
        None => Ok(()),
    }
}

/// Copies one picture and reads the copy again; a name that is taken gets a number.
fn import(picture: &Path, archive: &Path) -> Result<(), Box<dyn Error>> {
    let name = picture.file_name().ok_or("a picture without a name")?;
    let mut target = archive.join(name);
    for number in 2.. {
        if !target.exists() {
            break;
        }
        let stem = picture.file_stem().unwrap_or(name).to_string_lossy();
        let end = picture.extension().unwrap_or_default().to_string_lossy();
        target = archive.join(format!("{stem}-{number}.{end}"));
    }
    let copied = CopyOptions::new([picture], &target)
        .target(Target::Exactly)
        .read_back(ReadBack::Read)
        .manifest(ManifestPlace::None)
        .run(&Means::new())?;
    Ok(copied.complete().map(drop)?)
}
