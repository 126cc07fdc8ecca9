//! Verifies files against expected digests, in parallel, with the verdicts in
//! the order of the expectations.

use std::collections::{BTreeMap, HashMap};

use bc_digest::{Algorithm, Digest};
use bc_pool::Cancel;
use bc_read::Plan;
use bc_walk::{EntryId, Error, Listing};

use crate::FileDigests;
use crate::engine::hash_plan;
use crate::options::{HashOptions, HashProgress, Totals};
use crate::results::EntryOutcome;

/// What became of one line.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// Read to its end and every digest matches.
    Ok,
    /// Read to its end and a digest differs.
    Mismatch,
    /// Could not be opened or read.
    Failed(Error),
    /// The run was cancelled first.
    NotDone,
}

/// Bytes of memory that checking takes for the state of the files.
pub fn check_memory(wanted: &[FileDigests]) -> u64 {
    // Entries of a listing, of maps by path, results: 750 bytes a line were measured for 20,000.
    const STATE: usize = 512;
    // The path is in the listing and in a map as well.
    let one = |w: &FileDigests| {
        let digests = w.digests.capacity() * size_of::<(Algorithm, Digest)>();
        3 * w.path.capacity() + digests + size_of::<FileDigests>() + size_of::<Verdict>() + STATE
    };
    wanted.iter().map(one).sum::<usize>() as u64
}

/// Checks `wanted`. Each path is read once, however many lines name it, and each
/// line has a verdict, whatever other line names the same file in another way;
/// `options.algorithms` is not looked at. Final symbolic links are followed,
/// as the paths are named one by one.
///
/// # Errors
/// A line without any digest, which could prove nothing of its file; a worker that panicked.
pub fn check(
    wanted: &[FileDigests],
    options: &HashOptions,
    cancel: &Cancel,
    progress: &HashProgress,
) -> Result<(Vec<Verdict>, Totals), crate::Error> {
    if let Some(line) = wanted.iter().find(|line| line.digests.is_empty()) {
        let text = format!("{}: no digest to check it by", bc_fs::escape(&line.path));
        return Err(crate::Error::new(crate::ErrorKind::NoAlgorithm, text));
    }
    let mut algorithms: BTreeMap<&[u8], Vec<Algorithm>> = BTreeMap::new();
    for line in wanted {
        let set = algorithms.entry(&line.path).or_default();
        for (algorithm, _) in &line.digests {
            if !set.contains(algorithm) {
                set.push(*algorithm);
            }
        }
        set.sort_unstable();
    }
    let paths = algorithms.keys().map(|path| path.to_vec()).collect();
    let each = bc_walk::WalkOptions::default().spellings(bc_walk::Spellings::Each);
    let listing = bc_walk::list_files(paths, &each, options.workers, cancel)?;
    let entries = entries_by_path(&listing);
    let failed: HashMap<&[u8], &Error> = listing.errors().iter().map(|e| (e.path(), e)).collect();

    // One pass over the files per set of algorithms: almost always just one.
    let mut groups: BTreeMap<&[Algorithm], Vec<EntryId>> = BTreeMap::new();
    for (path, set) in &algorithms {
        if let Some(entry) = entries.get(*path) {
            groups.entry(set).or_default().push(*entry);
        }
    }
    let mut totals = Totals::default();
    let mut results = HashMap::new();
    for (set, order) in groups {
        let plan = Plan::new(order, options.workers);
        let options = HashOptions {
            algorithms: set.to_vec(),
            ..options.clone()
        };
        let hashes = hash_plan(&listing, &plan, &options, cancel, progress)?;
        totals.merge(hashes.totals().clone());
        results.insert(set, hashes);
    }
    let verdict = |line: &FileDigests| {
        let set = algorithms[line.path.as_slice()].as_slice();
        let Some(entry) = entries.get(&line.path) else {
            return match failed.get(line.path.as_slice()) {
                Some(error) => Verdict::Failed((*error).clone()),
                None => Verdict::NotDone,
            };
        };
        let hashes = &results[set];
        match hashes.outcome(*entry) {
            EntryOutcome::NotDone => Verdict::NotDone,
            EntryOutcome::Failed(error) => Verdict::Failed(error.clone()),
            EntryOutcome::Hashed { .. } => {
                let got: Vec<Digest> = hashes.digests(*entry).into_iter().flatten().collect();
                let holds = |(algorithm, digest): &(Algorithm, Digest)| {
                    set.iter()
                        .zip(&got)
                        .any(|(a, d)| a == algorithm && d == digest)
                };
                if line.digests.iter().all(holds) {
                    Verdict::Ok
                } else {
                    Verdict::Mismatch
                }
            }
        }
    };
    Ok((wanted.iter().map(verdict).collect(), totals))
}

fn entries_by_path(listing: &Listing) -> HashMap<Vec<u8>, EntryId> {
    listing.ids().map(|id| (listing.path(id), id)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bc_digest::hash;

    #[test]
    fn verdicts_keep_the_order_and_mixed_algorithms_work() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| {
            use std::os::unix::ffi::OsStrExt;
            dir.path().join(name).as_os_str().as_bytes().to_vec()
        };
        std::fs::write(dir.path().join("b"), b"two").unwrap();
        std::fs::write(dir.path().join("a"), b"one").unwrap();
        let line = |name: &str, algorithm, content: &[u8]| FileDigests {
            path: path(name),
            digests: vec![(algorithm, hash(algorithm, content))],
        };
        let wanted = [
            line("b", Algorithm::Sha256, b"two"),
            line("missing", Algorithm::Md5, b""),
            line("a", Algorithm::Md5, b"ONE"),
            line("b", Algorithm::Md5, b"two"),
            line("a", Algorithm::Sha256, b"one"),
            line("b", Algorithm::Sha256, b"TWO"),
        ];
        for workers in [1, 3] {
            let options = HashOptions {
                workers,
                ..HashOptions::new(vec![])
            };
            let (verdicts, totals) =
                check(&wanted, &options, &Cancel::new(), &HashProgress::default()).unwrap();
            let shown: Vec<&str> = verdicts
                .iter()
                .map(|v| match v {
                    Verdict::Ok => "ok",
                    Verdict::Mismatch => "mismatch",
                    Verdict::Failed(_) => "failed",
                    Verdict::NotDone => "not done",
                })
                .collect();
            assert_eq!(shown, ["ok", "failed", "mismatch", "ok", "ok", "mismatch"]);
            assert_eq!(totals.read.files, 2, "each file is read once");
        }
    }
}
