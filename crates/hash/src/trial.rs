//! Lists verified whose algorithm nothing names: it is found by comparing digests with a file.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bc_digest::{Algorithm, Digest};
use bc_pool::Cancel;

use crate::check::Verdict;
use crate::lines::same_length;
use crate::packed::ExpectedDigests;

/// Lines looked at for a file that is quickly read.
const LOOKED_AT: usize = 64;
/// Files tried: the first may be the one that is damaged.
const TRIED: usize = 8;
/// Files up to this size may be read once more than needed, in bytes.
const SMALL: u64 = 1 << 20;
/// Files up to this size may be read once more for a digest that takes next to no time: they are still
/// cached then. 1 GiB, cached: XXH128 takes 65 ms, MD5 1.3 s.
const QUICK: u64 = 1 << 30;

/// Verifies these lines of a list.
type Verify<'a, E> = &'a dyn Fn(&ExpectedDigests, &[u32]) -> Result<Vec<Verdict>, E>;

/// Verification of a list, some of whose lines name no algorithm.
pub struct Trial<'a, E> {
    /// Files that are verified at a time.
    pub threads: usize,
    /// Ends it early.
    pub cancel: &'a Cancel,
    /// Verifies lines of the list.
    pub verify: Verify<'a, E>,
    /// Verifies a list of attempts at one of its lines.
    pub attempt: Verify<'a, E>,
    /// Called with an algorithm that was found, and the path of the file that it matches.
    pub found: &'a dyn Fn(Algorithm, &[u8]),
}

/// Verdicts on some lines before the others are verified.
type Known = BTreeMap<u32, Verdict>;

impl<E> Trial<'_, E> {
    /// Verifies all lines; those `guessed` have the usual algorithm of their digests' length, until
    /// another one is found.
    ///
    /// # Errors
    /// As of `verify` and `attempt`.
    pub fn run(&self, wanted: &mut ExpectedDigests, guessed: &[u32]) -> Result<Vec<Verdict>, E> {
        let mut verdicts = Vec::with_capacity(wanted.len());
        self.run_each(wanted, guessed, u32::MAX, |_, verdict| {
            verdicts.push(verdict)
        })?;
        Ok(verdicts)
    }

    /// Verifies as `run` does, `piece` lines at a time, and calls `each` with the path and the verdict
    /// of one line after the other. A file is read once for each piece that names it.
    pub(crate) fn run_each(
        &self,
        wanted: &mut ExpectedDigests,
        guessed: &[u32],
        piece: u32,
        mut each: impl FnMut(&[u8], Verdict),
    ) -> Result<(), E> {
        let mut known = self.settle(wanted, guessed)?;
        let (mut from, all) = (0_u32, wanted.len() as u32);
        loop {
            let lines = from..all.min(from.saturating_add(piece));
            let others = lines.clone().filter(|line| !known.contains_key(line));
            let others: Vec<u32> = others.collect();
            let mut verdicts = (self.verify)(wanted, &others)?.into_iter();
            for line in lines.clone() {
                if let Some(verdict) = known.remove(&line).or_else(|| verdicts.next()) {
                    each(wanted.path(line as usize), verdict);
                }
            }
            from = lines.end;
            if from == all || self.cancel.is_cancelled() {
                return Ok(());
            }
        }
    }

    /// Puts in place of the usual algorithm of their length the one that the digests of the lines
    /// `guessed` were made with: the first that matches a file decides. Where none does, the usual
    /// one stays. The smallest files are tried first, by the usual algorithm and then by all others
    /// at once, some of which are slow. Where even they are large, a much faster one of that length
    /// comes first, and then one file for each thread is verified by the usual one, and if that was
    /// right these verdicts count: nothing is read twice by a digest that takes long.
    fn settle(&self, wanted: &mut ExpectedDigests, guessed: &[u32]) -> Result<Known, E> {
        let mut by_length: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        for line in guessed {
            let length = named(wanted, *line).1.as_bytes().len();
            by_length.entry(length).or_default().push(*line);
        }
        let mut known = Known::new();
        for lines in by_length.values() {
            let usual = named(wanted, lines[0]).0;
            let others = same_length(usual);
            if others.is_empty() {
                continue;
            }
            let tried = quick(wanted, lines);
            // Of these it is known that the usual one does not match.
            let mut ruled_out = 0;
            if let Some((size, line)) = tried.first().copied().filter(|(size, _)| *size > SMALL) {
                let faster = much_faster(usual).filter(|_| size <= QUICK);
                let matching = faster.map(|faster| self.matching(wanted, line, &[faster]));
                if let Some(algorithm) = matching.transpose()?.flatten() {
                    self.found(wanted, lines, line, algorithm);
                    continue;
                }
                ruled_out = self.threads.min(tried.len());
                let first: Vec<u32> = tried[..ruled_out].iter().map(|(_, at)| *at).collect();
                let verdicts = (self.verify)(wanted, &first)?;
                if let Some(at) = verdicts.iter().position(|v| matches!(v, Verdict::Ok)) {
                    (self.found)(usual, wanted.path(first[at] as usize));
                    known.extend(tried.iter().map(|(_, at)| *at).zip(verdicts));
                    continue;
                }
            }
            for (nth, (_, line)) in tried.into_iter().take(TRIED).enumerate() {
                if self.cancel.is_cancelled() {
                    return Ok(known);
                }
                let mut algorithm = None;
                if nth >= ruled_out {
                    algorithm = self.matching(wanted, line, &[usual])?;
                }
                if algorithm.is_none() {
                    algorithm = self.matching(wanted, line, &others)?;
                }
                let Some(algorithm) = algorithm else {
                    continue;
                };
                self.found(wanted, lines, line, algorithm);
                break;
            }
        }
        Ok(known)
    }

    /// Assigns the lines the algorithm that the file of one of them, `line`, matches.
    fn found(&self, wanted: &mut ExpectedDigests, lines: &[u32], line: u32, algorithm: Algorithm) {
        (self.found)(algorithm, wanted.path(line as usize));
        for line in lines {
            wanted.set_algorithm(*line as usize, algorithm);
        }
    }

    /// Returns the first of the candidates by which the file has the line's digest.
    fn matching(
        &self,
        wanted: &ExpectedDigests,
        line: u32,
        candidates: &[Algorithm],
    ) -> Result<Option<Algorithm>, E> {
        let (_, digest) = named(wanted, line);
        let mut tries = ExpectedDigests::default();
        for algorithm in candidates {
            tries.push(wanted.path(line as usize), &[(*algorithm, digest)]);
        }
        let all: Vec<u32> = (0..tries.len() as u32).collect();
        let verdicts = (self.attempt)(&tries, &all)?;
        let matched = verdicts.iter().position(|v| matches!(v, Verdict::Ok));
        Ok(matched.map(|at| candidates[at]))
    }
}

/// Returns an algorithm with digests as long as the usual one's that is faster many times.
fn much_faster(usual: Algorithm) -> Option<Algorithm> {
    (usual == Algorithm::Md5).then_some(Algorithm::Xxh128)
}

/// Returns the digest of a line that has one, and its algorithm so far.
fn named(wanted: &ExpectedDigests, line: u32) -> (Algorithm, Digest) {
    let mut digests = wanted.digests(line as usize);
    digests.next().expect("a guessed line has a digest")
}

/// Returns the first lines whose files exist, with their sizes, the smallest first.
fn quick(wanted: &ExpectedDigests, lines: &[u32]) -> Vec<(u64, u32)> {
    let size = |line: &u32| {
        let path = wanted.path(*line as usize);
        let meta = Path::new(OsStr::from_bytes(path)).metadata().ok()?;
        meta.is_file().then_some((meta.len(), *line))
    };
    let mut files: Vec<(u64, u32)> = lines.iter().take(LOOKED_AT).filter_map(size).collect();
    files.sort_unstable();
    files
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// Verifies two large files whose digests are of `right`, which nothing names; returns the
    /// algorithms that were tried, each once in a row.
    fn tried_for(right: Algorithm, size: u64) -> Vec<Algorithm> {
        let dir = tempfile::tempdir().unwrap();
        let mut wanted = ExpectedDigests::default();
        for name in ["a", "b"] {
            let path = dir.path().join(name);
            let file = std::fs::File::create(&path).unwrap();
            file.set_len(size).unwrap();
            let digest = bc_digest::hash(Algorithm::Md5, name.as_bytes());
            wanted.push(path.as_os_str().as_bytes(), &[(Algorithm::Md5, digest)]);
        }
        let tried = RefCell::new(Vec::new());
        let verify = |list: &ExpectedDigests, lines: &[u32]| {
            let algorithms = lines.iter().map(|line| named(list, *line).0);
            tried.borrow_mut().extend(algorithms.clone());
            let verdicts = algorithms.map(|algorithm| match algorithm == right {
                true => Verdict::Ok,
                false => Verdict::Mismatch,
            });
            Ok::<_, ()>(verdicts.collect())
        };
        let trial = Trial {
            threads: 2,
            cancel: &Cancel::new(),
            verify: &verify,
            attempt: &verify,
            found: &|algorithm, _| assert_eq!(algorithm, right),
        };
        let verdicts = trial.run(&mut wanted, &[0, 1]).unwrap();
        assert!(verdicts.iter().all(|v| matches!(v, Verdict::Ok)));
        let mut tried = tried.into_inner();
        tried.dedup();
        tried
    }

    #[test]
    fn large_files_of_a_list_of_the_fast_digest_are_not_read_by_the_slow_one() {
        use Algorithm::{Md5, Xxh128};
        assert_eq!(tried_for(Xxh128, SMALL + 1), [Xxh128]);
        assert_eq!(tried_for(Md5, SMALL + 1), [Xxh128, Md5]);
        assert_eq!(tried_for(Md5, QUICK + 1), [Md5], "that would be read twice");
        assert_eq!(tried_for(Md5, SMALL), [Md5]);
    }
}
