//! A cache keyed by content: counts the words of files, and reads identical files only once,
//! regardless of their names: `content_cache CACHE FILE...`.
#![allow(clippy::print_stdout, reason = "a program may")]
#![forbid(unsafe_code)]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{fs, io};

use bit_crafts::{Algorithm, HashOptions, HashedFile, Means, WalkOptions, hash_reader};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from);
    let cache = args.next().ok_or("usage: content_cache CACHE FILE...")?;
    fs::create_dir_all(&cache)?;
    // A cryptographic digest: it must be impossible to create another file with the same one.
    let options = HashOptions::new(vec![Algorithm::Blake3]);
    let hashed = options.run(args, &WalkOptions::default(), &Means::new())?;
    for file in &hashed.files {
        let (words, how) = words_in(file, &cache)?;
        println!("{}: {words} words, {how}", file.path.display());
    }
    Ok(hashed.complete().map(drop)?)
}

/// Counts the words of a file, unless one with the same content was counted before.
fn words_in(file: &HashedFile, cache: &Path) -> io::Result<(String, &'static str)> {
    let kept = cache.join(file.digest().to_string());
    if let Ok(words) = fs::read_to_string(&kept) {
        return Ok((words, "known"));
    }
    let text = fs::read(&file.path)?;
    if hash_reader(Algorithm::Blake3, &text[..])? != file.digest() {
        return Err(io::Error::other("changed meanwhile"));
    }
    let words = text.split(u8::is_ascii_whitespace);
    let words = words.filter(|word| !word.is_empty()).count().to_string();
    fs::write(&kept, &words)?;
    Ok((words, "counted"))
}
