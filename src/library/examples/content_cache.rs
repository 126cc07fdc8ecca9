//! A cache keyed by content: counts the words of files, and reads equal files only once, regardless
//! of their names: `content_cache CACHE FILE...`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program may")]
#![forbid(unsafe_code)]

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use bit_crafts::{Algorithm, HashOptions, Means, WalkOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from);
    let cache = args.next().ok_or("usage: content_cache CACHE FILE...")?;
    fs::create_dir_all(&cache)?;
    // It must be impossible to make another file of the same digest, so it is a cryptographic one.
    let options = HashOptions::new(vec![Algorithm::Blake3]);
    let hashed = options.run(args, &WalkOptions::default(), &Means::new())?;
    for file in &hashed.files {
        let kept = cache.join(file.digest().to_string());
        let (words, how) = match fs::read_to_string(&kept) {
            Ok(words) => (words, "known"),
            Err(_) => {
                let words = fs::read(&file.path)?;
                let words = words.split(u8::is_ascii_whitespace);
                let words = words.filter(|word| !word.is_empty()).count().to_string();
                fs::write(&kept, &words)?;
                (words, "counted")
            }
        };
        println!("{}: {words} words, {how}", file.path.display());
    }
    Ok(hashed.complete().map(drop)?)
}
