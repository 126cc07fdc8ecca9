//! Files of one name that turn up twice: they were moved from one part of the tree to another after
//! the first was read. Sorted runs of their numbers are kept in a file without a name, so that any
//! number of files takes the same memory.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;

use bc_manifest::integrity::{Entry, Kind};
use bc_pool::Cancel;

use super::devices::MergedDevices;
use super::parts::Parts;
use bc_integrity::Error;

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
#[derive(Default)]
pub(super) struct Inodes {
    run: Vec<u64>,
    /// File of sorted runs; without one everything stays in memory.
    spilled: Option<File>,
    /// Lengths of the runs in the file, in numbers.
    runs: Vec<usize>,
    /// True if no file could be made.
    in_memory: bool,
    failed: Option<io::Error>,
}

impl Inodes {
    pub(super) fn see(&mut self, key: u64) {
        self.run.push(key);
        if self.run.len() >= RUN && !self.in_memory {
            self.spill();
        }
    }

    fn spill(&mut self) {
        if self.spilled.is_none() {
            self.spilled = bc_edit::content::create_temporary().map(File::from);
        }
        let Some(file) = &mut self.spilled else {
            self.in_memory = true;
            return;
        };
        self.run.sort_unstable();
        let bytes: Vec<u8> = self.run.iter().flat_map(|key| key.to_ne_bytes()).collect();
        match file.write_all(&bytes) {
            Ok(()) => {
                self.runs.push(self.run.len());
                self.run.clear();
            }
            Err(error) => {
                self.in_memory = true;
                self.failed = Some(error);
            }
        }
    }

    /// Returns the numbers that came more than once, in order; the first of them if there are very
    /// many.
    pub(super) fn repeated(mut self) -> io::Result<Vec<u64>> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.run.sort_unstable();
        let mut found = Vec::new();
        let mut add = |key| {
            if found.last() != Some(&key) && found.len() < MOST {
                found.push(key);
            }
        };
        let Some(file) = self.spilled else {
            let pairs = self.run.windows(2).filter(|pair| pair[0] == pair[1]);
            pairs.for_each(|pair| add(pair[0]));
            return Ok(found);
        };
        let mut runs = Vec::with_capacity(self.runs.len());
        let mut at = 0;
        for len in self.runs {
            let end = at + len as u64 * 8;
            let piece = RunPiece {
                file: &file,
                at,
                end,
            };
            runs.push(BufReader::with_capacity(PIECE, piece));
            at = end;
        }
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

/// A run in the file.
struct RunPiece<'a> {
    file: &'a File,
    at: u64,
    end: u64,
}

impl Read for RunPiece<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let len = buffer.len().min(left);
        let count = self.file.read_at(&mut buffer[..len], self.at)?;
        self.at += count as u64;
        Ok(count)
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
        for (spill_every, in_memory) in [(usize::MAX, false), (100, false), (100, true)] {
            let mut inodes = Inodes {
                in_memory,
                ..Inodes::default()
            };
            for (nth, key) in keys.iter().chain(&twice).chain(&twice[..1]).enumerate() {
                inodes.see(*key);
                if !in_memory && (nth + 1).is_multiple_of(spill_every) {
                    inodes.spill();
                }
            }
            let mut expected = twice.to_vec();
            expected.sort_unstable();
            assert_eq!(inodes.repeated().unwrap(), expected, "{spill_every}");
        }
    }
}
