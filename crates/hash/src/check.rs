//! Verifies files against expected digests, in parallel, with the verdicts in
//! the order of the expectations.

use std::collections::HashMap;

use bc_digest::{Algorithm, Digest};
use bc_pool::Cancel;
use bc_read::Plan;
use bc_walk::{EntryId, Error, ErrorKind, job};

use crate::FileDigests;
use crate::engine::hash_plan;
use crate::options::{HashOptions, HashProgress, Totals};
use crate::packed::ExpectedDigests;
use crate::results::{EntryOutcome, Hashes};

/// Result of checking one line.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// Read to its end and every digest matches.
    Ok,
    /// Read to its end and a digest differs.
    Mismatch,
    /// Could not be opened or read.
    Failed(Box<Error>),
    /// The run was cancelled first.
    NotDone,
}

/// Returns the bytes of memory that checking takes for the state of the files, beside those of the
/// lines themselves.
pub fn check_memory(expected: &ExpectedDigests) -> u64 {
    let lines = 0..expected.len();
    lines.map(|line| line_memory(expected.path(line))).sum()
}

/// Returns the bytes of that state for one line with this path.
pub fn line_memory(path: &[u8]) -> u64 {
    (STATE + size_of::<Verdict>() + 3 * path.len()) as u64
}

/// Numbers of a line, an entry of a listing, results. The path is in the listing, and for a while
/// in the list of files to be listed. With all that grows by doubling, a line with a path of 42 bytes
/// took 600 where no file was there.
const STATE: usize = 400;

/// Checks `wanted`, as [`check_lines`] does.
///
/// # Errors
/// Errors of [`check_lines`].
pub fn check(
    wanted: &[FileDigests],
    options: &HashOptions,
    cancel: &Cancel,
    progress: &HashProgress,
) -> Result<(Vec<Verdict>, Totals), job::Error> {
    let mut expected = ExpectedDigests::default();
    for line in wanted {
        expected.push(&line.path, &line.digests);
    }
    let all: Vec<u32> = (0..wanted.len() as u32).collect();
    check_lines(&expected, &all, options, cancel, progress)
}

/// Lines that name one path.
struct NamedLines {
    /// The first of them in the order of paths.
    first: u32,
    /// Index of the set of algorithms that they ask for.
    set: u32,
    entry: Option<EntryId>,
}

/// Checks some `lines`. Each path is read once, however many lines name it, and each line has a
/// verdict, in the order of `lines`, independent of other lines that name the same file in another
/// way; `options.algorithms` is not looked at. Final symbolic links are followed, as the paths are
/// named one by one.
///
/// # Errors
/// A line without any digest, which could prove nothing of its file; a worker that panicked.
///
/// # Panics
/// If there is no such line.
pub fn check_lines(
    expected: &ExpectedDigests,
    lines: &[u32],
    options: &HashOptions,
    cancel: &Cancel,
    progress: &HashProgress,
) -> Result<(Vec<Verdict>, Totals), job::Error> {
    let path = |line: u32| expected.path(line as usize);
    let digests = |line: u32| expected.digests(line as usize);
    if let Some(line) = lines.iter().find(|line| digests(**line).next().is_none()) {
        let text = format!("{}: no digest to check it by", bc_fs::escape(path(*line)));
        return Err(job::Error::usage(text));
    }
    // Places in `lines`, in the order of paths.
    let mut order: Vec<u32> = (0..lines.len() as u32).collect();
    let path_at = |at: u32| path(lines[at as usize]);
    order.sort_unstable_by(|a, b| path_at(*a).cmp(path_at(*b)).then(a.cmp(b)));
    // Almost always there is just one.
    let mut sets: Vec<Vec<Algorithm>> = Vec::new();
    let (mut named, mut paths) = (Vec::new(), Vec::new());
    let mut first = 0;
    for same in order.chunk_by(|a, b| path_at(*a) == path_at(*b)) {
        let all = same.iter().flat_map(|at| digests(lines[*at as usize]));
        let mut set: Vec<Algorithm> = all.map(|(algorithm, _)| algorithm).collect();
        set.sort_unstable();
        set.dedup();
        let known = sets.iter().position(|known| *known == set);
        let set = known.unwrap_or_else(|| {
            sets.push(set);
            sets.len() - 1
        });
        paths.push(path_at(same[0]).to_vec());
        named.push(NamedLines {
            first,
            set: set as u32,
            entry: None,
        });
        first += same.len() as u32;
    }
    let each = bc_walk::WalkOptions::default().spellings(bc_walk::Spellings::Each);
    let listing = bc_walk::list_files(&paths, &each, options.workers, cancel)?;
    for id in listing.ids() {
        let listed = listing.path(id);
        let path_of = |named: &NamedLines| path_at(order[named.first as usize]);
        if let Ok(at) = named.binary_search_by(|named| path_of(named).cmp(&listed)) {
            named[at].entry = Some(id);
        }
    }
    let failed: HashMap<&[u8], &Error> = listing.errors().iter().map(|e| (e.path(), e)).collect();

    // One pass over the files per set of algorithms.
    let mut totals = Totals::default();
    let mut results = Vec::with_capacity(sets.len());
    for (number, set) in sets.iter().enumerate() {
        let of_set = named.iter().filter(|named| named.set as usize == number);
        let entries: Vec<EntryId> = of_set.filter_map(|named| named.entry).collect();
        if entries.is_empty() {
            results.push(None);
            continue;
        }
        let plan = Plan::new(entries, options.workers);
        let options = HashOptions {
            algorithms: set.clone(),
            ..options.clone()
        };
        let hashes = hash_plan(&listing, &plan, &options, cancel, progress)?;
        totals.merge(hashes.totals().clone());
        results.push(Some(hashes));
    }
    let mut verdicts = vec![Verdict::NotDone; lines.len()];
    let ends = named.iter().skip(1).map(|named| named.first);
    let ends = ends.chain(std::iter::once(order.len() as u32));
    for (named, end) in named.iter().zip(ends) {
        for at in &order[named.first as usize..end as usize] {
            let line = lines[*at as usize];
            let hashes = results[named.set as usize].as_ref();
            verdicts[*at as usize] = match (named.entry, hashes) {
                (Some(entry), Some(hashes)) => {
                    let set = &sets[named.set as usize];
                    verdict(hashes, entry, set, digests(line))
                }
                _ => match failed.get(path(line)) {
                    Some(error) => Verdict::Failed(Box::new((*error).clone())),
                    None if listing.is_cancelled() => Verdict::NotDone,
                    // No line is passed over, whatever the listing makes of its path.
                    None => {
                        let kind = ErrorKind::Refused("not listed");
                        let error = Error::of_kind(path(line), "open", kind);
                        Verdict::Failed(Box::new(error))
                    }
                },
            };
        }
    }
    Ok((verdicts, totals))
}

/// Returns the verdict on a line whose file was listed, and read for the digests of `set`.
fn verdict(
    hashes: &Hashes,
    entry: EntryId,
    set: &[Algorithm],
    mut wanted: impl Iterator<Item = (Algorithm, Digest)>,
) -> Verdict {
    match hashes.outcome(entry) {
        EntryOutcome::NotDone => Verdict::NotDone,
        EntryOutcome::Failed(error) => Verdict::Failed(Box::new(error.clone())),
        EntryOutcome::Hashed { .. } => {
            let got: Vec<Digest> = hashes.digests(entry).into_iter().flatten().collect();
            let holds = |(algorithm, digest): (Algorithm, Digest)| {
                let mut all = set.iter().zip(&got);
                all.any(|(a, d)| *a == algorithm && *d == digest)
            };
            match wanted.all(holds) {
                true => Verdict::Ok,
                false => Verdict::Mismatch,
            }
        }
    }
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
