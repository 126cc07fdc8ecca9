//! Finds the algorithm of digests that nothing names, by what they say of a file.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bc_digest::{Algorithm, Batch, CpuFeatures, Digest};
use bc_hash::check::Verdict;
use bc_hash::{FileDigests, HashOptions, HashProgress};

use crate::budget::Kept;
use crate::run::{Outcome, Session};

use super::guess::same_length;

/// Lines looked at for a file that is quickly read.
const LOOKED_AT: usize = 64;
/// Files tried: the first may be the one that is damaged.
const TRIED: usize = 8;

/// Puts in place of the usual algorithm of their length the one that the digests of the lines
/// `guessed` were made with: the first that matches a file decides. Where none does, the usual
/// one stays. Each file tried is read once, for all algorithms, the smallest first.
pub fn settle(
    session: &Session,
    manifest: &str,
    wanted: &mut [FileDigests],
    guessed: &[usize],
) -> Outcome<()> {
    let mut by_length: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for line in guessed {
        let length = digest(&wanted[*line]).as_bytes().len();
        by_length.entry(length).or_default().push(*line);
    }
    for lines in by_length.values() {
        let usual = wanted[lines[0]].digests[0].0;
        let mut candidates = vec![usual];
        candidates.extend(same_length(usual));
        if candidates.len() == 1 {
            continue;
        }
        for line in quick(wanted, lines) {
            if session.cancel.is_cancelled() {
                return Ok(());
            }
            let Some(algorithm) = matching(session, &wanted[line], &candidates)? else {
                continue;
            };
            let path = bc_fs::escape(&wanted[line].path).into_owned();
            session.report.note(
                1,
                &format!("{manifest}: no algorithm is named; {algorithm} matches {path}"),
            );
            for line in lines {
                wanted[*line].digests[0].0 = algorithm;
            }
            break;
        }
    }
    Ok(())
}

fn digest(wanted: &FileDigests) -> Digest {
    wanted.digests[0].1
}

/// Some of the first lines whose files are there, the smallest files first.
fn quick(wanted: &[FileDigests], lines: &[usize]) -> Vec<usize> {
    let size = |line: &usize| {
        let path = Path::new(std::ffi::OsStr::from_bytes(&wanted[*line].path));
        let meta = path.metadata().ok()?;
        meta.is_file().then_some((meta.len(), *line))
    };
    let mut files: Vec<(u64, usize)> = lines.iter().take(LOOKED_AT).filter_map(size).collect();
    files.sort_unstable();
    files.truncate(TRIED);
    files.into_iter().map(|(_, line)| line).collect()
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
    let options = HashOptions {
        algorithms: Vec::new(),
        cpu: CpuFeatures::detect(),
        // The whole list fits, so the few tried of it do.
        read: session
            .fit(1, width, Kept::Pieces(bc_hash::check::memory(&tries)))
            .unwrap_or_default(),
        workers: 1,
        start: bc_pool::dispatch::Start::default(),
        resume: None,
    };
    let (verdicts, _) =
        bc_hash::check::check(&tries, &options, &session.cancel, &HashProgress::default())
            .map_err(|panic| session.defect(&panic))?;
    let matched = verdicts.iter().position(|v| matches!(v, Verdict::Ok));
    Ok(matched.map(|at| candidates[at]))
}
