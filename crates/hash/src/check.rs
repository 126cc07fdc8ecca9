//! Verifies files against expected digests, in parallel, with the verdicts in
//! the order of the expectations.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use bc_digest::{Algorithm, Digest};
use bc_pool::Cancel;
use bc_walk::{EntryId, Error, ErrorKind, FileStat, Listing, job};

use crate::FileDigests;
use crate::engine::hash_with;
use crate::options::{DigestSink, HashOptions, HashProgress, Totals};
use crate::packed::ExpectedDigests;

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
    let by_path = LinesByPath::new(expected, lines)?;
    let paths: Vec<&[u8]> = by_path.paths().collect();
    // They are in order, and each is there once.
    let as_named = bc_walk::WalkOptions::default().spellings(bc_walk::Spellings::AsNamed);
    let listing = bc_walk::list_files(&paths, &as_named, options.workers, cancel)?;
    let mut failed: Vec<(usize, Error)> = Vec::new();
    for error in listing.errors() {
        let named = paths.binary_search(&error.path());
        failed.extend(named.into_iter().map(|named| (named, error.clone())));
    }
    drop(paths);

    // One pass over the files per set of algorithms.
    let mut totals = Totals::default();
    let outcomes: Vec<AtomicU8> = lines.iter().map(|_| AtomicU8::new(UNLISTED)).collect();
    for (number, set) in by_path.sets.iter().enumerate() {
        let is_of_set = |id: &EntryId| by_path.named[listing.root(*id)].set as usize == number;
        let entries: Vec<EntryId> = listing.ids().filter(is_of_set).collect();
        if entries.is_empty() {
            continue;
        }
        for id in &entries {
            for place in by_path.places(listing.root(*id)) {
                outcomes[*place as usize].store(LISTED, Relaxed);
            }
        }
        let plan = bc_read::order::plan(&listing, entries, options.workers, cancel);
        let options = HashOptions {
            algorithms: set.clone(),
            ..options.clone()
        };
        let sink = |_| Comparison {
            by_path: &by_path,
            listing: &listing,
            set,
            outcomes: &outcomes,
            failed: Vec::new(),
        };
        let (sinks, some) = hash_with(&listing, &plan, &options, cancel, progress, sink)?;
        totals.merge(some);
        failed.extend(sinks.into_iter().flat_map(|sink| sink.failed));
    }
    let verdicts = outcomes.into_iter().zip(lines);
    let mut verdicts: Vec<Verdict> = verdicts
        .map(|(outcome, line)| match outcome.into_inner() {
            MATCHED => Verdict::Ok,
            DIFFERED => Verdict::Mismatch,
            UNLISTED if !listing.is_cancelled() => {
                // No line is passed over, whatever the listing makes of its path.
                let kind = ErrorKind::Refused("not listed");
                let error = Error::of_kind(expected.path(*line as usize), "open", kind);
                Verdict::Failed(Box::new(error))
            }
            _ => Verdict::NotDone,
        })
        .collect();
    for (named, error) in failed {
        for place in by_path.places(named) {
            verdicts[*place as usize] = Verdict::Failed(Box::new(error.clone()));
        }
    }
    Ok((verdicts, totals))
}

/// Lines to check, by their paths.
struct LinesByPath<'a> {
    expected: &'a ExpectedDigests,
    lines: &'a [u32],
    /// Places in `lines`, in the order of paths.
    order: Vec<u32>,
    /// The paths, each once, and one more for the end.
    named: Vec<NamedLines>,
    /// Sets of algorithms. Almost always there is just one.
    sets: Vec<Vec<Algorithm>>,
}

/// Lines that name one path.
struct NamedLines {
    /// The first of them in the order of paths.
    first: u32,
    /// Index of the set of algorithms that they ask for.
    set: u32,
}

impl<'a> LinesByPath<'a> {
    fn new(expected: &'a ExpectedDigests, lines: &'a [u32]) -> Result<LinesByPath<'a>, job::Error> {
        let mut by_path = LinesByPath {
            expected,
            lines,
            order: (0..lines.len() as u32).collect(),
            named: Vec::with_capacity(lines.len() + 1),
            sets: Vec::new(),
        };
        let path = |place: u32| expected.path(lines[place as usize] as usize);
        by_path
            .order
            .sort_unstable_by(|a, b| path(*a).cmp(path(*b)).then(a.cmp(b)));
        let (mut first, mut set) = (0, Vec::new());
        for same in by_path.order.chunk_by(|a, b| path(*a) == path(*b)) {
            set.clear();
            for place in same {
                let before = set.len();
                let digests = expected.digests(lines[*place as usize] as usize);
                set.extend(digests.map(|(algorithm, _)| algorithm));
                if set.len() == before {
                    let path = bc_fs::escape(path(*place));
                    let text = format!("{path}: no digest to check it by");
                    return Err(job::Error::usage(text));
                }
            }
            set.sort_unstable();
            set.dedup();
            let known = by_path.sets.iter().position(|known| *known == set);
            let number = known.unwrap_or_else(|| {
                by_path.sets.push(set.clone());
                by_path.sets.len() - 1
            });
            by_path.named.push(NamedLines {
                first,
                set: number as u32,
            });
            first += same.len() as u32;
        }
        by_path.named.push(NamedLines { first, set: 0 });
        Ok(by_path)
    }

    /// Returns the paths, each once, in order.
    fn paths(&self) -> impl Iterator<Item = &'a [u8]> {
        let named = &self.named[..self.named.len() - 1];
        let first = named.iter().map(|named| self.order[named.first as usize]);
        first.map(|place| self.expected.path(self.lines[place as usize] as usize))
    }

    /// Returns the places among the lines of those that name the path of this number.
    fn places(&self, named: usize) -> &[u32] {
        let [first, end] = [named, named + 1].map(|named| self.named[named].first as usize);
        &self.order[first..end]
    }
}

/// What is known of a line before its verdict.
const UNLISTED: u8 = 0;
const LISTED: u8 = 1;
const MATCHED: u8 = 2;
const DIFFERED: u8 = 3;

/// Compares each file that a worker has read with the lines that name it. A line has one writer.
struct Comparison<'a> {
    by_path: &'a LinesByPath<'a>,
    listing: &'a Listing,
    /// Algorithms of the digests that come.
    set: &'a [Algorithm],
    outcomes: &'a [AtomicU8],
    /// Numbers of paths that could not be read, and why.
    failed: Vec<(usize, Error)>,
}

impl DigestSink for Comparison<'_> {
    fn file(&mut self, entry: EntryId, result: Result<(&FileStat, &[Digest]), Error>) {
        let named = self.listing.root(entry);
        let digests = match result {
            Ok((_, digests)) => digests,
            Err(error) => {
                self.failed.push((named, error));
                return;
            }
        };
        for place in self.by_path.places(named) {
            let line = self.by_path.lines[*place as usize];
            let holds = |(algorithm, digest): (Algorithm, Digest)| {
                let mut all = self.set.iter().zip(digests);
                all.any(|(a, d)| *a == algorithm && *d == digest)
            };
            let outcome = match self.by_path.expected.digests(line as usize).all(holds) {
                true => MATCHED,
                false => DIFFERED,
            };
            self.outcomes[*place as usize].store(outcome, Relaxed);
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
