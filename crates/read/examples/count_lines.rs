//! Lines of all files below some directories, as `wc -l` counts them: `count_lines DIR...`. Shows a
//! consumer: the recipient of the bytes that are read.
#![forbid(unsafe_code)]

use std::error::Error as StdError;
use std::io::Write;

use bc_pool::{Cancel, available_cpus, run};
use bc_read::{Consumer, Feed, Opened, Plan, ReadOptions, pump};
use bc_walk::{EntryId, Error, walk};

/// The counts of one worker. Slots are files being read side by side.
#[derive(Default)]
struct Lines {
    in_slot: Vec<u64>,
    done: Vec<(EntryId, u64)>,
    failed: Vec<Error>,
}

impl Consumer for Lines {
    fn width(&self) -> usize {
        1
    }

    fn reserve(&mut self, slots: usize) {
        self.in_slot.resize(slots, 0);
    }

    fn begin(&mut self, slot: usize, _opened: &Opened) {
        self.in_slot[slot] = 0;
    }

    fn advance(&mut self, feeds: &[Feed<'_>], consumed: &mut Vec<usize>) {
        for feed in feeds {
            let lines = feed.data.iter().filter(|byte| **byte == b'\n').count();
            self.in_slot[feed.slot] += lines as u64;
            consumed.push(feed.slot);
        }
    }

    fn finish(&mut self, slot: usize, result: Result<Opened, Error>, entry: EntryId) {
        match result {
            Ok(_) => self.done.push((entry, self.in_slot[slot])),
            Err(error) => self.failed.push(error),
        }
    }
}

fn main() -> Result<(), Box<dyn StdError>> {
    let roots: Vec<_> = std::env::args_os().skip(1).collect();
    let (cancel, workers) = (Cancel::new(), available_cpus());
    let listing = walk(&roots, &bc_walk::WalkOptions::default(), workers, &cancel)?;
    let plan = Plan::all(&listing, workers);
    let counted = run(workers, |_worker| {
        let mut lines = Lines::default();
        pump(
            &listing,
            &plan,
            &ReadOptions::default(),
            &cancel,
            &mut lines,
        );
        lines
    })?;

    let mut counts: Vec<_> = counted.iter().flat_map(|lines| &lines.done).collect();
    counts.sort();
    let mut out = std::io::stdout().lock();
    for (entry, lines) in &counts {
        let path = listing.path(*entry);
        writeln!(out, "{lines:>8} {}", String::from_utf8_lossy(&path))?;
    }
    let total: u64 = counts.iter().map(|(_, lines)| lines).sum();
    writeln!(out, "{total:>8} total")?;
    for error in counted.iter().flat_map(|lines| &lines.failed) {
        writeln!(std::io::stderr(), "{error}")?;
    }
    Ok(())
}
