//! Reports about entries, in the bytewise order of their paths whatever the order of the work: an
//! entry is reported once all before it are settled. Until then its report is one byte, and a
//! failure the error alone. Failures of what was reported before, as of a directory whose metadata
//! is given when it is filled, come last, in the same order.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32};

use bc_walk::Error;
use rustix::io::Errno;

use crate::event::EntryReport;
use crate::lock;
use crate::meta::LostMeta;
use crate::sources::{RootItem, SourceTree};

mod turns;

/// Largest number of entries reported that could not be given the same metadata for the same
/// reason: a destination that cannot keep owners, say, cannot keep those of a million files.
const MOST_TOLD: usize = 20;

/// Reports that wait for their turn.
pub(crate) struct Reports {
    /// Marks of the entries' reports, 0 of those that are not settled.
    marks: Vec<AtomicU8>,
    /// Entries in the order of their paths; never an empty range.
    ranges: Vec<Range<u32>>,
    /// First entry and number of each range, in the order of entries.
    starts: Vec<(u32, u32)>,
    /// Held by the thread that reports.
    turn: Mutex<Turn>,
    /// The entry whose turn it was when a thread ended to report.
    awaited: AtomicU32,
    problems: Mutex<Problems>,
    has_problems: AtomicBool,
    /// True if entries are reported while others are copied; else all wait for the end, as those of
    /// further destinations do, so that lines of two do not mix.
    streams: bool,
}

/// The entry that is reported next; no entry at the end.
struct Turn {
    item: u32,
    /// Number of its range.
    range: usize,
}

/// Failures of entries, in full or in part, that are not reported yet.
#[derive(Default)]
struct Problems {
    failed: BTreeMap<RootItem, Vec<Error>>,
    /// Entries that could not be given metadata, by operation and reason.
    lacking: BTreeMap<(&'static str, i32), LackingEntries>,
}

/// Entries that lack one kind of metadata: the first ones in the order of reports, as many as may
/// still be reported.
#[derive(Default)]
struct LackingEntries {
    reported: usize,
    waiting: BTreeSet<Rank>,
}

/// Position of an entry in the order of reports, which does not depend on the order of the work.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
struct Rank {
    /// True if it lacks what it was to be given after it was reported: that comes last.
    is_late: bool,
    /// Number of its range.
    range: u32,
    item: RootItem,
}

impl Problems {
    /// Takes those of an entry.
    fn take(&mut self, rank: Rank) -> (Vec<LostMeta>, Vec<Error>) {
        let mut lost = Vec::new();
        for ((op, errno), lacking) in &mut self.lacking {
            if lacking.waiting.remove(&rank) {
                lacking.reported += 1;
                let errno = Errno::from_raw_os_error(*errno);
                lost.push(LostMeta { op, errno });
            }
        }
        (lost, self.failed.remove(&rank.item).unwrap_or_default())
    }

    /// Entries that have any.
    fn entries(&self) -> BTreeSet<RootItem> {
        let lacking = self.lacking.values().flat_map(|one| &one.waiting);
        let lacking = lacking.map(|rank| rank.item);
        lacking.chain(self.failed.keys().copied()).collect()
    }
}

impl Reports {
    pub(crate) fn new(tree: &SourceTree, streams: bool) -> Reports {
        let ranges = in_path_order(tree);
        let first = ranges.first().map_or(u32::MAX, |first| first.start);
        let starts = ranges.iter().map(|range| range.start).zip(0..);
        let mut starts: Vec<(u32, u32)> = starts.collect();
        starts.sort_unstable();
        Reports {
            marks: (0..tree.len()).map(|_| AtomicU8::new(0)).collect(),
            ranges,
            starts,
            turn: Mutex::new(Turn {
                item: first,
                range: 0,
            }),
            awaited: AtomicU32::new(first),
            problems: Mutex::default(),
            has_problems: AtomicBool::new(false),
            streams,
        }
    }

    /// Settles an entry that is not settled yet. Each is settled by one thread.
    fn settle(&self, item: RootItem, report: EntryReport) {
        let mark = &self.marks[item.0 as usize];
        if mark.load(Relaxed) == 0 {
            // Its problems are seen by who sees that.
            mark.store(report.mark(), Release);
        }
    }

    fn change_problems(&self, change: impl FnOnce(&mut Problems)) {
        change(&mut lock(&self.problems));
        self.has_problems.store(true, Relaxed);
    }

    /// Returns the entry whose turn it is, and its report; `None` where it is not settled. At the end
    /// that is no matter.
    fn next(&self, turn: &mut Turn, is_end: bool) -> Option<(RootItem, EntryReport)> {
        let item = turn.item;
        let mark = self.marks.get(item as usize)?.load(Acquire);
        if mark == 0 && !is_end {
            return None;
        }
        turn.item += 1;
        if self
            .ranges
            .get(turn.range)
            .is_none_or(|now| turn.item >= now.end)
        {
            turn.range += 1;
            let next = self.ranges.get(turn.range);
            turn.item = next.map_or(u32::MAX, |next| next.start);
        }
        let report = EntryReport::ALL.get(usize::from(mark).wrapping_sub(1));
        Some((
            RootItem(item),
            report.copied().unwrap_or(EntryReport::Quiet),
        ))
    }

    fn rank(&self, item: RootItem, is_late: bool) -> Rank {
        let after = self.starts.partition_point(|(start, _)| *start <= item.0);
        let range = after.checked_sub(1).map_or(0, |at| self.starts[at].1);
        Rank {
            is_late,
            range,
            item,
        }
    }

    fn take_problems(&self, item: RootItem, is_late: bool) -> (Vec<LostMeta>, Vec<Error>) {
        match self.has_problems.load(Relaxed) {
            true => lock(&self.problems).take(self.rank(item, is_late)),
            false => Default::default(),
        }
    }
}

/// Returns the entries in the order of their paths: those of one root are. Between a root and what
/// is below it come others whose names go on with a byte before the `/`, as `a-b` does for `a`.
fn in_path_order(tree: &SourceTree) -> Vec<Range<u32>> {
    let mut ranges = Vec::new();
    let mut target = Vec::new();
    for (root, number) in tree.roots.iter().zip(0..) {
        let Range { start, end } = tree.items_of(number);
        if start == end {
            continue;
        }
        let below = [&root.name[..], b"/"].concat();
        tree.write_target(RootItem(start), &mut target);
        if target == root.name {
            ranges.push((target.clone(), start..start + 1));
            ranges.push((below, start + 1..end));
        } else {
            ranges.push((below, start..end));
        }
    }
    ranges.sort_by(|one, other| one.0.cmp(&other.0));
    let ranges = ranges.into_iter().map(|(_, range)| range);
    ranges.filter(|range| !range.is_empty()).collect()
}
