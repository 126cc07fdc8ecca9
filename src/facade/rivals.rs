//! Finds the algorithm of digests that nothing names, by comparing them with a file.

use std::collections::BTreeMap;

use bc_hash::FileDigests;
use bc_hash::check::Verdict;
use bc_hash::lines::same_length;

use super::error::{Error, path_of};

/// Lines looked at for a file that is quickly read.
const LOOKED_AT: usize = 64;
/// Files tried: the first may be the one that is damaged.
const TRIED: usize = 8;

/// Puts in place of the usual algorithm of their length the one that the digests of the lines
/// `guessed` were made with: the first that matches a file decides. Where none does, the usual one
/// stays. The smallest files are tried first, by all algorithms at once.
pub(crate) fn settle(
    wanted: &mut [FileDigests],
    guessed: &[usize],
    verify: impl Fn(&[FileDigests]) -> Result<Vec<Verdict>, Error>,
) -> Result<(), Error> {
    let mut by_length: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for line in guessed {
        let length = wanted[*line].digests[0].1.as_bytes().len();
        by_length.entry(length).or_default().push(*line);
    }
    for lines in by_length.values() {
        let usual = wanted[lines[0]].digests[0].0;
        let others = same_length(usual);
        if others.is_empty() {
            continue;
        }
        for line in quick(wanted, lines) {
            let digest = wanted[line].digests[0].1;
            let candidates = || [usual].into_iter().chain(others.iter().copied());
            let tries: Vec<FileDigests> = candidates()
                .map(|algorithm| FileDigests {
                    path: wanted[line].path.clone(),
                    digests: vec![(algorithm, digest)],
                })
                .collect();
            let verdicts = verify(&tries)?;
            let mut matching = candidates().zip(verdicts);
            let matching = matching.find(|(_, verdict)| matches!(verdict, Verdict::Ok));
            if let Some((algorithm, _)) = matching {
                for line in lines {
                    wanted[*line].digests[0].0 = algorithm;
                }
                break;
            }
        }
    }
    Ok(())
}

/// Returns the first lines whose files exist, the smallest file first.
fn quick(wanted: &[FileDigests], lines: &[usize]) -> Vec<usize> {
    let size = |line: &usize| {
        let meta = path_of(&wanted[*line].path).metadata().ok()?;
        meta.is_file().then_some((meta.len(), *line))
    };
    let mut files: Vec<_> = lines.iter().take(LOOKED_AT).filter_map(size).collect();
    files.sort_unstable();
    let lines = files.into_iter().take(TRIED);
    lines.map(|(_, line)| line).collect()
}
