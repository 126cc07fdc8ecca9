//! Six things that a program of somebody else's does with the library, each in under ten lines.
#![forbid(unsafe_code)]

use bit_crafts::{Algorithm, Cancel, Error, Filter, Hashed};

fn hash_with_progress_and_cancel() -> Result<(), Error> {
    let (cancel, mut calls) = (Cancel::new(), 0);
    let job = bit_crafts::hash(["d/a", "d/b"]).algorithm(Algorithm::Sha256).cancel(&cancel);
    let hashed = job.progress(|_| calls += 1).run()?.complete()?;
    println!("{} {} {}", hashed.files[0].digest(), hashed.files.len(), calls > 0);
    cancel.stop();
    let error = bit_crafts::hash(["d"]).cancel(&cancel).run().unwrap_err();
    let until_then: &Hashed = error.partial().unwrap();
    println!("{} of them, {:?}", until_then.files.len(), error.kind());
    Ok(())
}

fn find_duplicates() -> Result<(), Error> {
    for group in &bit_crafts::duplicates(["d"]).run()?.groups {
        println!("{:?}", group.paths().collect::<Vec<_>>());
    }
    Ok(())
}

fn read_a_manifest() -> Result<(), Error> {
    let _ = bit_crafts::manifest("d").write("m.jsonl")?;
    for entry in bit_crafts::read_manifest("m.jsonl")?.entries()? {
        let entry = entry?;
        println!("{}: {}", entry.path.display(), entry.digest.is_some());
    }
    Ok(())
}

fn walk_with_a_filter() -> Result<(), Error> {
    let filter = Filter::new().include("*.txt").max_depth(2);
    for file in bit_crafts::walk(["d"]).filter(filter).run()?.files() {
        println!("{}", file.path.display());
    }
    Ok(())
}

fn verify_a_checksum_file() -> Result<(), Error> {
    let checked = bit_crafts::check("SUMS").run()?;
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
