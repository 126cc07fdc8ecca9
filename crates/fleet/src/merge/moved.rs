//! Files of one name that turn up twice: they were moved from one part of the tree to another after
//! the first was read. Sorted runs of their numbers go to a file, so that any number of files takes
//! the same memory.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader};

use bc_edit::spill::Spill;
use bc_manifest::integrity::{Entry, Kind};
use bc_pool::Cancel;
use bc_walk::job::Error;

use super::devices::MergedDevices;
use super::parts::Parts;

/// Numbers in memory: 16 MiB.
const RUN: usize = 2 << 20;

/// Bytes of each run that are read at once.
const PIECE: usize = 16 << 10;

/// Repeated numbers whose paths are searched for.
const MOST: usize = 10_000;

/// Returns a key of device and inode for a file with one name.
pub(super) fn key(entry: &Entry) -> Option<u64> {
    let meta = entry.meta.filter(|meta| meta.nlink == 1)?;
    // Mounted over a name of its own, a file is in its directory as well.
    if entry.mount.is_some() {
        return None;
    }
    let device = u64::from(entry.dev.unwrap_or(0)) << 48;
    (entry.kind == Kind::File).then_some(meta.ino ^ device)
}

/// Inode numbers, among which repeated ones are searched for.
pub(super) struct Inodes {
    run: Vec<u64>,
    /// Sorted runs.
    spill: Spill,
    /// Offsets at which the runs begin.
    runs: Vec<u64>,
}

impl Default for Inodes {
    fn default() -> Inodes {
        Inodes {
            run: Vec::new(),
            spill: Spill::keeping(0),
            runs: Vec::new(),
        }
    }
}

impl Inodes {
    pub(super) fn see(&mut self, key: u64) {
        self.run.push(key);
        if self.run.len() >= RUN {
            self.spill();
        }
    }

    fn spill(&mut self) {
        self.run.sort_unstable();
        let bytes: Vec<u8> = self.run.iter().flat_map(|key| key.to_ne_bytes()).collect();
        self.runs.push(self.spill.push(&bytes));
        self.run.clear();
    }

    /// Returns the numbers that came more than once, in order; the first of them if there are very
    /// many.
    pub(super) fn repeated(mut self) -> io::Result<Vec<u64>> {
        self.run.sort_unstable();
        let mut found = Vec::new();
        let mut add = |key| {
            if found.last() != Some(&key) && found.len() < MOST {
                found.push(key);
            }
        };
        let ends = self.runs.iter().skip(1).copied().chain([self.spill.len()]);
        let mut runs: Vec<_> = self
            .runs
            .iter()
            .zip(ends)
            .map(|(start, end)| BufReader::with_capacity(PIECE, self.spill.reader(*start, end)))
            .collect();
        let mut rest = self.run.into_iter();
        let mut heads = std::collections::BinaryHeap::new();
        let push = |heads: &mut std::collections::BinaryHeap<_>, key: Option<u64>, nth: usize| {
            heads.extend(key.map(|key| std::cmp::Reverse((key, nth))));
        };
        push(&mut heads, rest.next(), runs.len());
        for (nth, run) in runs.iter_mut().enumerate() {
            push(&mut heads, next(run)?, nth);
        }
        let mut last = None;
        while let Some(std::cmp::Reverse((key, nth))) = heads.pop() {
            if last == Some(key) {
                add(key);
            }
            last = Some(key);
            let key = match runs.get_mut(nth) {
                Some(run) => next(run)?,
                None => rest.next(),
            };
            push(&mut heads, key, nth);
        }
        Ok(found)
    }
}

fn next(run: &mut impl BufRead) -> io::Result<Option<u64>> {
    if run.fill_buf()?.is_empty() {
        return Ok(None);
    }
    let mut bytes = [0; 8];
    run.read_exact(&mut bytes)?;
    Ok(Some(u64::from_ne_bytes(bytes)))
}

/// Returns the paths of the files that came more than once.
pub(super) fn find(
    parts: &Parts<'_>,
    cancel: &Cancel,
    devices: &mut MergedDevices<'_>,
    repeated: &[u64],
) -> Result<Vec<Vec<Vec<u8>>>, Error> {
    if repeated.is_empty() {
        return Ok(Vec::new());
    }
    let mut paths: BTreeMap<(Option<u32>, u64), Vec<Vec<u8>>> = BTreeMap::new();
    parts.each(cancel, |part, entry| {
        entry.dev = devices.index(part, entry)?;
        let Some(key) = key(entry) else {
            return Ok(());
        };
        if let (Ok(_), Some(meta)) = (repeated.binary_search(&key), entry.meta) {
            let file = paths.entry((entry.dev, meta.ino)).or_default();
            file.push(entry.path.clone());
        }
        Ok(())
    })?;
    let mut found: Vec<_> = paths
        .into_values()
        .filter(|paths| paths.len() > 1)
        .collect();
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_twice_is_found_wherever_it_is_kept() {
        let keys: Vec<u64> = (0..5000)
            .map(|n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .collect();
        let twice = [keys[3], keys[2500], keys[4999]];
        for (spill_every, kept) in [(usize::MAX, 0), (100, 0), (100, usize::MAX)] {
            let mut inodes = Inodes {
                spill: Spill::keeping(kept),
                ..Inodes::default()
            };
            for (nth, key) in keys.iter().chain(&twice).chain(&twice[..1]).enumerate() {
                inodes.see(*key);
                if (nth + 1).is_multiple_of(spill_every) {
                    inodes.spill();
                }
            }
            let mut expected = twice.to_vec();
            expected.sort_unstable();
            assert_eq!(inodes.repeated().unwrap(), expected, "{spill_every}");
        }
    }
}
