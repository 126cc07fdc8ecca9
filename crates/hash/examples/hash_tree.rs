//! Hashes a tree with a chosen set of kernels and prints the same as `bc hash`: `hash_tree
//! best|avx512|avx2|sha-ni|portable|stream ALG DIR [THREADS]`. For timing one instruction set
//! against another on one machine. `stream` hashes one file after another in each thread, through
//! the same reader, with the best single-stream kernel.

#![forbid(unsafe_code)]

use std::error::Error;
use std::io::Write;

use bc_digest::{Algorithm, CpuFeatures, Digest, Hasher};
use bc_hash::{HashOptions, hash_listing};
use bc_pool::Cancel;
use bc_read::{Consumer, Feed, Opened, Plan};
use bc_walk::{EntryId, Listing};

const USAGE: &str = "usage: hash_tree best|avx512|avx2|sha-ni|portable|stream ALG DIR [THREADS]";

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [kernels, algorithm, dir, rest @ ..] = args.as_slice() else {
        return Err(USAGE.into());
    };
    let algorithm: Algorithm = algorithm.parse()?;
    let workers = match rest.first() {
        Some(text) => text.parse()?,
        None => bc_pool::available_cpus(),
    };
    let walk = bc_walk::WalkOptions::default();
    let listing = bc_walk::walk(&[dir], &walk, workers, &Cancel::new())?;
    if let Some(error) = listing.errors().first() {
        return Err(error.to_string().into());
    }
    let digests = match kernels.as_str() {
        "best" => lanes(&listing, algorithm, Some(CpuFeatures::detect()), workers)?,
        "avx512" => lanes(&listing, algorithm, CpuFeatures::avx512(), workers)?,
        "avx2" => lanes(&listing, algorithm, CpuFeatures::avx2(), workers)?,
        "sha-ni" => lanes(&listing, algorithm, CpuFeatures::sha_ni(), workers)?,
        "portable" => lanes(&listing, algorithm, Some(CpuFeatures::portable()), workers)?,
        "stream" => streams(&listing, algorithm, workers)?,
        other => return Err(format!("unknown kernels: {other}\n{USAGE}").into()),
    };
    let (mut line, mut lines) = (Vec::new(), std::io::BufWriter::new(std::io::stdout()));
    for (entry, digest) in digests {
        line.clear();
        listing.write_path(entry, &mut line);
        write!(lines, "{digest}  ")?;
        lines.write_all(&line)?;
        lines.write_all(b"\n")?;
    }
    Ok(lines.flush()?)
}

type Digests = Vec<(EntryId, Digest)>;

/// Hashes as `bc hash` does.
fn lanes(
    listing: &Listing,
    algorithm: Algorithm,
    cpu: Option<CpuFeatures>,
    workers: usize,
) -> Result<Digests, Box<dyn Error>> {
    let options = HashOptions::new(vec![algorithm])
        .cpu(cpu.ok_or("this CPU does not have them")?)
        .workers(workers);
    let hashes = hash_listing(listing, &options, &Cancel::new(), &Default::default())?;
    let digest = |entry: EntryId| {
        let digest = hashes.digests(entry).and_then(|mut all| all.next());
        digest.map(|digest| (entry, digest))
    };
    if let Some((_, error)) = hashes.errors().next() {
        return Err(error.to_string().into());
    }
    Ok(listing.ids().filter_map(digest).collect())
}

/// One hasher a thread, which sees one file after the other.
struct Stream {
    hasher: Hasher,
    digests: Vec<Result<(EntryId, Digest), String>>,
}

impl Consumer for Stream {
    fn width(&self) -> usize {
        1
    }

    fn begin(&mut self, _slot: usize, _opened: &Opened) {
        self.hasher.reset();
    }

    fn advance(&mut self, feeds: &[Feed<'_>], consumed: &mut Vec<usize>) {
        self.hasher.update(feeds[0].data);
        consumed.push(feeds[0].slot);
    }

    fn finish(&mut self, _slot: usize, result: Result<Opened, bc_walk::Error>, entry: EntryId) {
        let digest = result.map(|_| (entry, self.hasher.finalize()));
        self.digests.push(digest.map_err(|error| error.to_string()));
    }
}

fn streams(
    listing: &Listing,
    algorithm: Algorithm,
    workers: usize,
) -> Result<Digests, Box<dyn Error>> {
    let plan = Plan::all(listing, workers);
    // With one file at a time in flight: the hasher knows one file.
    let read = bc_read::ReadOptions::default().backend(bc_read::Choice::Sync);
    let done = bc_pool::run(workers, |_| {
        let mut stream = Stream {
            hasher: Hasher::new(algorithm),
            digests: Vec::new(),
        };
        bc_read::pump(listing, &plan, &read, &Cancel::new(), &mut stream);
        stream.digests
    })?;
    let mut digests: Digests = done.into_iter().flatten().collect::<Result<_, String>>()?;
    digests.sort_unstable_by_key(|d| d.0);
    Ok(digests)
}
