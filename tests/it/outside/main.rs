//! Six things that a program of somebody else's does with the library, each in under ten lines.
#![forbid(unsafe_code)]

use bit_crafts::{
    Algorithm, Cancel, ChecksumFile, CreateOptions, Error, Globs, HashOptions, Hashed,
    ManifestFile, Means, Search, WalkOptions, path_of,
};

fn hash_with_progress_and_cancel() -> Result<(), Error> {
    let (cancel, mut calls, all) = (Cancel::new(), 0, WalkOptions::default());
    let sha256 = HashOptions::new(vec![Algorithm::Sha256]);
    let hashed = sha256.run(["d/a", "d/b"], &all, &Means::new().progress(|_| calls += 1))?.complete()?;
    println!("{} {} {}", hashed.files[0].digest(), hashed.files.len(), calls > 0);
    cancel.stop();
    let error = sha256.run(["d"], &all, &Means::new().cancel(&cancel)).unwrap_err();
    let until_then: &Hashed = error.partial().unwrap();
    println!("{} of them, {:?}", until_then.files.len(), error.kind());
    Ok(())
}

fn find_duplicates() -> Result<(), Error> {
    for group in &Search::new(["d"]).duplicates(&Means::new())?.groups {
        println!("{:?}", group.paths().collect::<Vec<_>>());
    }
    Ok(())
}

fn read_a_manifest() -> Result<(), Error> {
    let _ = CreateOptions::new("d", Algorithm::Blake3).run_to("m.jsonl", &Means::new())?;
    for entry in ManifestFile::open("m.jsonl")?.entries()? {
        let entry = entry?;
        println!("{}: {}", path_of(&entry.path).display(), entry.digest.is_some());
    }
    Ok(())
}

fn walk_with_a_filter() -> Result<(), Error> {
    let text = WalkOptions::default().include(Globs::new(&["*.txt"])?).max_depth(Some(2));
    for path in text.run(["d"], &Means::new())?.paths() {
        println!("{}", path.display());
    }
    Ok(())
}

fn verify_a_checksum_file() -> Result<(), Error> {
    let checked = ChecksumFile::new("SUMS").run(&Means::new())?;
    for file in checked.failed() {
        println!("{}: {:?}", file.path.display(), file.verdict);
    }
    Ok(())
}

fn digest_a_read() -> std::io::Result<()> {
    let digest = bit_crafts::hash_reader(Algorithm::Md5, &b"abc"[..])?;
    println!("{digest}");
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    hash_with_progress_and_cancel()?;
    find_duplicates()?;
    read_a_manifest()?;
    walk_with_a_filter()?;
    verify_a_checksum_file()?;
    Ok(digest_a_read()?)
}
