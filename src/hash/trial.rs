//! Finds the algorithm of digests that nothing names, by what they say of a file.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bc_digest::{Algorithm, Batch, CpuFeatures, Digest};
use bc_hash::check::Verdict;
use bc_hash::lines::same_length;
use bc_hash::{FileDigests, HashOptions, HashProgress};

use crate::budget::Kept;
use crate::run::{Outcome, Session};

/// Lines looked at for a file that is quickly read.
const LOOKED_AT: usize = 64;
/// Files tried: the first may be the one that is damaged.
const TRIED: usize = 8;
/// Up to here a file may be read once more than it need be, in bytes.
const SMALL: u64 = 1 << 20;

/// What is known of some lines before the others are verified.
pub type Known = BTreeMap<usize, Verdict>;

/// Puts in place of the usual algorithm of their length the one that the digests of the lines
/// `guessed` were made with: the first that matches a file decides. Where none does, the usual
/// one stays. The smallest files are tried first, by the usual algorithm and then by all others at
/// once, some of which are slow. Where even they are large, one for each thread is verified by the
/// usual one, and if that was right these verdicts count: nothing is read twice.
pub fn settle(
    session: &Session,
    manifest: &str,
    wanted: &mut [FileDigests],
    guessed: &[usize],
    verify: impl Fn(&[FileDigests]) -> Outcome<Vec<Verdict>>,
) -> Outcome<Known> {
    let mut by_length: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for line in guessed {
        let length = digest(&wanted[*line]).as_bytes().len();
        by_length.entry(length).or_default().push(*line);
    }
    let mut known = Known::new();
    for lines in by_length.values() {
        let usual = wanted[lines[0]].digests[0].0;
        let others = same_length(usual);
        if others.is_empty() {
            continue;
        }
        let tried = quick(wanted, lines);
        // Of these it is known that the usual one does not match.
        let mut ruled_out = 0;
        if tried.first().is_some_and(|(size, _)| *size > SMALL) {
            ruled_out = session.most_workers().min(tried.len());
            let first = tried[..ruled_out].iter();
            let first: Vec<_> = first.map(|(_, at)| wanted[*at].clone()).collect();
            let verdicts = verify(&first)?;
            if let Some(at) = verdicts.iter().position(|v| matches!(v, Verdict::Ok)) {
                say(session, manifest, usual, &first[at]);
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
                algorithm = matching(session, &wanted[line], &[usual])?;
            }
            if algorithm.is_none() {
                algorithm = matching(session, &wanted[line], &others)?;
            }
            let Some(algorithm) = algorithm else {
                continue;
            };
            say(session, manifest, algorithm, &wanted[line]);
            for line in lines {
                wanted[*line].digests[0].0 = algorithm;
            }
            break;
        }
    }
    Ok(known)
}

fn say(session: &Session, manifest: &str, algorithm: Algorithm, line: &FileDigests) {
    let path = bc_fs::escape(&line.path);
    let text = format!("{manifest}: no algorithm is named; {algorithm} matches {path}");
    session.report.note(1, &text);
}

fn digest(wanted: &FileDigests) -> Digest {
    wanted.digests[0].1
}

/// The first lines whose files are there, with their sizes, the smallest first.
fn quick(wanted: &[FileDigests], lines: &[usize]) -> Vec<(u64, usize)> {
    let size = |line: &usize| {
        let path = Path::new(std::ffi::OsStr::from_bytes(&wanted[*line].path));
        let meta = path.metadata().ok()?;
        meta.is_file().then_some((meta.len(), *line))
    };
    let mut files: Vec<(u64, usize)> = lines.iter().take(LOOKED_AT).filter_map(size).collect();
    files.sort_unstable();
    files
}

/// The first of the candidates by which the file is what the line says.
fn matching(
    session: &Session,
    line: &FileDigests,
    candidates: &[Algorithm],
) -> Outcome<Option<Algorithm>> {
    let tries: Vec<FileDigests> = candidates
        .iter()
        .map(|algorithm| FileDigests {
            path: line.path.clone(),
            digests: vec![(*algorithm, digest(line))],
        })
        .collect();
    let width = Batch::new(candidates, CpuFeatures::detect()).width();
    // The whole list fits, so the few tried of it do.
    let options = HashOptions::new(Vec::new()).read(
        session
            .fit(1, width, Kept::Pieces(bc_hash::check::check_memory(&tries)))
            .unwrap_or_default(),
    );
    let (verdicts, _) =
        bc_hash::check::check(&tries, &options, &session.cancel, &HashProgress::default())
            .map_err(|panic| session.defect(&panic))?;
    let matched = verdicts.iter().position(|v| matches!(v, Verdict::Ok));
    Ok(matched.map(|at| candidates[at]))
}
