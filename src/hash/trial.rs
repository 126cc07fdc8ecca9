//! Finds the algorithm of digests that nothing names, by comparing them with a file.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bc_digest::{Algorithm, Batch, CpuFeatures, Digest};
use bc_hash::check::Verdict;
use bc_hash::lines::same_length;
use bc_hash::{ExpectedDigests, HashOptions, HashProgress};

use crate::budget::Kept;
use crate::run::{Outcome, Session};

/// Lines looked at for a file that is quickly read.
const LOOKED_AT: usize = 64;
/// Files tried: the first may be the one that is damaged.
const TRIED: usize = 8;
/// Files up to this size may be read once more than needed, in bytes.
const SMALL: u64 = 1 << 20;

/// Verdicts on some lines before the others are verified.
pub type Known = BTreeMap<u32, Verdict>;

/// Puts in place of the usual algorithm of their length the one that the digests of the lines
/// `guessed` were made with: the first that matches a file decides. Where none does, the usual
/// one stays. The smallest files are tried first, by the usual algorithm and then by all others at
/// once, some of which are slow. Where even they are large, one for each thread is verified by the
/// usual one, and if that was right these verdicts count: nothing is read twice.
pub fn settle(
    session: &Session,
    manifest: &str,
    wanted: &mut ExpectedDigests,
    guessed: &[u32],
    verify: impl Fn(&ExpectedDigests, &[u32]) -> Outcome<Vec<Verdict>>,
) -> Outcome<Known> {
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
            ruled_out = session.most_workers().min(tried.len());
            let first: Vec<u32> = tried[..ruled_out].iter().map(|(_, at)| *at).collect();
            let verdicts = verify(wanted, &first)?;
            if let Some(at) = verdicts.iter().position(|v| matches!(v, Verdict::Ok)) {
                say(session, manifest, usual, wanted.path(first[at] as usize));
                known.extend(tried.iter().map(|(_, at)| *at).zip(verdicts));
                continue;
            }
        }
        for (nth, (_, line)) in tried.into_iter().take(TRIED).enumerate() {
            if session.cancel.is_cancelled() {
                return Ok(known);
            }
            let mut algorithm = None;
            if nth >= ruled_out {
                algorithm = matching(session, wanted, line, &[usual])?;
            }
            if algorithm.is_none() {
                algorithm = matching(session, wanted, line, &others)?;
            }
            let Some(algorithm) = algorithm else {
                continue;
            };
            say(session, manifest, algorithm, wanted.path(line as usize));
            for line in lines {
                wanted.set_algorithm(*line as usize, algorithm);
            }
            break;
        }
    }
    Ok(known)
}

fn say(session: &Session, manifest: &str, algorithm: Algorithm, path: &[u8]) {
    let path = bc_fs::escape(path);
    let text = format!("{manifest}: no algorithm is named; {algorithm} matches {path}");
    session.report.note(text);
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
        let meta = Path::new(std::ffi::OsStr::from_bytes(path))
            .metadata()
            .ok()?;
        meta.is_file().then_some((meta.len(), *line))
    };
    let mut files: Vec<(u64, u32)> = lines.iter().take(LOOKED_AT).filter_map(size).collect();
    files.sort_unstable();
    files
}

/// Returns the first of the candidates by which the file has the line's digest.
fn matching(
    session: &Session,
    wanted: &ExpectedDigests,
    line: u32,
    candidates: &[Algorithm],
) -> Outcome<Option<Algorithm>> {
    let (_, digest) = named(wanted, line);
    let mut tries = ExpectedDigests::default();
    for algorithm in candidates {
        tries.push(wanted.path(line as usize), &[(*algorithm, digest)]);
    }
    let all: Vec<u32> = (0..tries.len() as u32).collect();
    let width = Batch::new(candidates, CpuFeatures::detect()).width();
    // The whole list fits, so the few tried of it do.
    let options = HashOptions::new(Vec::new()).read(
        session
            .fit(1, width, Kept::Pieces(bc_hash::check::check_memory(&tries)))
            .unwrap_or_default(),
    );
    let (cancel, progress) = (&session.cancel, HashProgress::default());
    let (verdicts, _) = bc_hash::check::check_lines(&tries, &all, &options, cancel, &progress)
        .map_err(|panic| session.defect(&panic))?;
    let matched = verdicts.iter().position(|v| matches!(v, Verdict::Ok));
    Ok(matched.map(|at| candidates[at]))
}
