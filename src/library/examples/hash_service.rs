//! A service that reads names of directories, one per line, and hashes them one after the other,
//! reporting progress; the line `stop` ends the last job: `hash_service`.
#![allow(clippy::print_stdout, reason = "a program may")]
#![forbid(unsafe_code)]

use std::sync::mpsc::channel;
use std::{io, thread};

use bit_crafts::{Algorithm, Cancel, ErrorKind, HashOptions, HashedFile, Means, WalkOptions};

fn main() -> io::Result<()> {
    let (sender, jobs) = channel::<(String, Cancel)>();
    let worker = thread::spawn(move || jobs.iter().for_each(|(dir, cancel)| hash(&dir, &cancel)));
    let mut cancel = Cancel::new();
    for line in io::stdin().lines() {
        match line? {
            stop if stop == "stop" => cancel.stop(),
            dir => {
                cancel = Cancel::new();
                sender
                    .send((dir, cancel.clone()))
                    .map_err(io::Error::other)?;
            }
        }
    }
    drop(sender);
    worker.join().map_err(|_| io::Error::other("a defect"))
}

fn hash(dir: &str, cancel: &Cancel) {
    let means = Means::new().cancel(cancel);
    let means = means.progress(|now| println!("{dir}: {} bytes", now.bytes));
    let blake3 = HashOptions::new(vec![Algorithm::Blake3]);
    let each = |file: HashedFile| println!("{}  {}", file.digest(), file.path.display());
    match blake3.run_each([dir], &WalkOptions::default(), &means, each) {
        Ok(done) => println!("{dir}: done, {} errors", done.errors.len()),
        Err(error) if error.kind() == ErrorKind::Cancelled => println!("{dir}: stopped"),
        Err(error) => println!("{error}"),
    }
}
