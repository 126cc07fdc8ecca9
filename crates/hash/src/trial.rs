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
        let mut known = self.settle(wanted, guessed)?;
        let all = 0..wanted.len() as u32;
        let others: Vec<u32> = all.filter(|line| !known.contains_key(line)).collect();
        let mut verdicts = (self.verify)(wanted, &others)?.into_iter();
        if known.is_empty() {
            return Ok(verdicts.collect());
        }
        let lines = 0..wanted.len() as u32;
        Ok(lines
            .filter_map(|line| known.remove(&line).or_else(|| verdicts.next()))
            .collect())
    }

    /// Puts in place of the usual algorithm of their length the one that the digests of the lines
    /// `guessed` were made with: the first that matches a file decides. Where none does, the usual
    /// one stays. The smallest files are tried first, by the usual algorithm and then by all others
    /// at once, some of which are slow. Where even they are large, one for each thread is verified
    /// by the usual one, and if that was right these verdicts count: nothing is read twice.
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
            if tried.first().is_some_and(|(size, _)| *size > SMALL) {
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
                (self.found)(algorithm, wanted.path(line as usize));
                for line in lines {
                    wanted.set_algorithm(*line as usize, algorithm);
                }
                break;
            }
        }
        Ok(known)
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
