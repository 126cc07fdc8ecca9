//! What is to be protected, and which volumes are to be replaced: decided by headers, index and
//! manifest alone, without a look at the tree.

use std::collections::HashMap;

use crate::code::BLOCK;
use crate::contents::{ContentId, RecordedContents};
use crate::format::VolumeHeader;
use crate::index::IndexLine;

/// A piece of a content.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct ContentPiece {
    /// The content.
    pub content: ContentId,
    /// Its first byte.
    pub from: u64,
    /// Number of its bytes.
    pub len: u64,
}

/// A volume, as the manifest of today finds it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct VolumeState {
    /// Its number.
    pub id: u64,
    /// Bytes of its contents.
    pub bytes: u64,
    /// Data blocks.
    pub data: usize,
    /// Parity blocks.
    pub parity: usize,
    /// Parity blocks that are not there.
    pub lost: usize,
    /// Time when it was written.
    pub written_ns: i64,
    /// Pieces of contents that the manifest lists.
    pub live: Vec<ContentPiece>,
    /// Data blocks with content that the manifest does not list.
    pub stale: usize,
    /// Content that is gone, not edited: numbers of pieces, each with the second since when.
    pub removed: Vec<(u32, i64)>,
    /// Path of the content that is gone since last.
    pub last_removed: Option<Vec<u8>>,
}

impl VolumeState {
    /// Judges a volume by its header. `now` is in seconds since 1970.
    pub(crate) fn of(
        header: &VolumeHeader,
        present: usize,
        contents: &RecordedContents,
        line: Option<&IndexLine>,
        now: i64,
    ) -> VolumeState {
        let since: HashMap<u32, i64> = line
            .into_iter()
            .flat_map(|line| line.removed.iter().copied())
            .collect();
        let mut stale = vec![false; header.blocks.len()];
        let mut state = VolumeState {
            id: header.id,
            bytes: header.bytes(),
            data: header.blocks.len(),
            parity: header.parity,
            lost: header.parity - present,
            written_ns: header.written_ns,
            live: Vec::new(),
            stale: 0,
            removed: Vec::new(),
            last_removed: None,
        };
        let mut last = i64::MIN;
        for (number, piece) in header.pieces.iter().enumerate() {
            if let Some(content) = contents.find(&piece.digest, piece.size) {
                state.live.push(ContentPiece {
                    content,
                    from: piece.from,
                    len: piece.len,
                });
                continue;
            }
            stale[piece.blocks()].fill(true);
            // Under one of its paths there is other content: it was edited.
            if piece.paths.iter().any(|path| contents.has_path(path)) {
                continue;
            }
            let number = number as u32;
            let since = since.get(&number).copied().unwrap_or(now).min(now);
            state.removed.push((number, since));
            if since >= last {
                last = since;
                state.last_removed = piece.paths.first().cloned();
            }
        }
        state.stale = stale.iter().filter(|stale| **stale).count();
        state
    }

    /// True if so much of it is of no use any more that it is to be written again.
    pub(crate) fn is_worn(&self) -> bool {
        2 * (self.stale + self.lost) > self.parity
    }

    /// Returns the number of blocks that may still be lost.
    pub(crate) fn spare(&self) -> usize {
        self.parity.saturating_sub(self.stale + self.lost)
    }

    /// True if content of it is gone for less than so many seconds.
    fn holds_removed(&self, now: i64, keep: i64) -> bool {
        self.removed
            .iter()
            .any(|(_, since)| now.saturating_sub(*since) < keep)
    }
}

/// Rules of a plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlanRules {
    /// Bytes of a full volume.
    pub capacity: u64,
    /// Now, in seconds since 1970.
    pub now: i64,
    /// Seconds for which content that is gone is kept.
    pub keep_removed: i64,
}

/// Reason for which a worn volume is not replaced.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum HeldBack {
    /// Content of it was removed not long ago.
    Removed,
    /// Content of it is damaged or cannot be read, as the manifest says or this run has found.
    Damaged,
}

/// Work of a run.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct ProtectPlan {
    /// Pieces that go into new volumes, in this order.
    pub wanted: Vec<ContentPiece>,
    /// Volumes that go once others have all that they hold.
    pub replaced: Vec<u64>,
    /// Worn volumes that stay.
    pub held: Vec<(u64, HeldBack)>,
}

/// Bytes of contents that volumes have, by content.
#[derive(Debug, Default)]
pub(crate) struct Coverage(HashMap<ContentId, Vec<(u64, u64)>>);

impl Coverage {
    /// Returns the coverage by these volumes.
    pub(crate) fn of<'a>(volumes: impl IntoIterator<Item = &'a VolumeState>) -> Coverage {
        let mut coverage = Coverage::default();
        for piece in volumes.into_iter().flat_map(|volume| &volume.live) {
            let ranges = coverage.0.entry(piece.content).or_default();
            ranges.push((piece.from, piece.from + piece.len));
        }
        coverage
            .0
            .values_mut()
            .for_each(|ranges| ranges.sort_unstable());
        coverage
    }

    /// Returns the part of a range that is not covered, from its first such byte to its last.
    pub(crate) fn missing(&self, piece: ContentPiece) -> Option<ContentPiece> {
        let ranges = self
            .0
            .get(&piece.content)
            .map_or(&[][..], |ranges| &ranges[..]);
        let (mut from, mut end) = (piece.from, piece.from + piece.len);
        for &(start, stop) in ranges {
            if start <= from {
                from = from.max(stop);
            }
        }
        // Ranges may overlap: they are looked at until none reaches further down.
        loop {
            let lower = ranges
                .iter()
                .filter(|(start, stop)| *start < end && *stop >= end);
            match lower.map(|(start, _)| *start).min() {
                Some(start) => end = start,
                None => break,
            }
        }
        (from < end).then(|| ContentPiece {
            content: piece.content,
            from,
            len: end - from,
        })
    }
}

/// Decides what is to be done. Volumes with content that is suspect, since the manifest knows it to
/// be damaged, stay.
pub(crate) fn plan(
    contents: &RecordedContents,
    volumes: &[VolumeState],
    rules: PlanRules,
    is_suspect: impl Fn(ContentId) -> bool,
) -> ProtectPlan {
    let mut plan = ProtectPlan::default();
    let holds_lost =
        |volume: &VolumeState| volume.live.iter().any(|piece| is_suspect(piece.content));
    for volume in volumes.iter().filter(|volume| volume.is_worn()) {
        if volume.holds_removed(rules.now, rules.keep_removed) {
            plan.held.push((volume.id, HeldBack::Removed));
        } else if holds_lost(volume) {
            plan.held.push((volume.id, HeldBack::Damaged));
        } else {
            plan.replaced.push(volume.id);
        }
    }
    let small: Vec<u64> = volumes
        .iter()
        .filter(|volume| volume.bytes < rules.capacity / 4 && !volume.is_worn())
        .filter(|volume| {
            !volume.holds_removed(rules.now, rules.keep_removed) && !holds_lost(volume)
        })
        .map(|volume| volume.id)
        .collect();
    // One that is small stays so until there is another: each night's would be written twice.
    if small.len() >= 2 {
        plan.replaced.extend(small);
    }
    plan.wanted = wanted(&plan.replaced, contents, volumes, |_| false);
    plan
}

/// Returns what volumes that stay do not have, in the order of the contents, but for those that
/// could not be proven.
fn wanted(
    replaced: &[u64],
    contents: &RecordedContents,
    volumes: &[VolumeState],
    is_unproven: impl Fn(ContentId) -> bool,
) -> Vec<ContentPiece> {
    let stays = |volume: &&VolumeState| !replaced.contains(&volume.id);
    let coverage = Coverage::of(volumes.iter().filter(stays));
    let whole = |content: ContentId| ContentPiece {
        content,
        from: 0,
        len: contents.get(content).size,
    };
    let all = (0..contents.len() as u32).map(whole);
    let all = all.filter(|piece| !is_unproven(piece.content));
    all.filter_map(|piece| coverage.missing(piece)).collect()
}

impl ProtectPlan {
    /// Returns what is left of the plan, once some volumes are written and some contents could not
    /// be proven.
    pub(crate) fn again(
        &self,
        contents: &RecordedContents,
        volumes: &[VolumeState],
        is_unproven: impl Fn(ContentId) -> bool,
    ) -> ProtectPlan {
        ProtectPlan {
            wanted: wanted(&self.replaced, contents, volumes, is_unproven),
            ..self.clone()
        }
    }
}

/// Returns the volumes of a plan that may go: others have all of them.
pub(crate) fn replaceable(plan: &ProtectPlan, volumes: &[VolumeState]) -> (Vec<u64>, Vec<u64>) {
    let is_replaced = |volume: &&VolumeState| plan.replaced.contains(&volume.id);
    let coverage = Coverage::of(volumes.iter().filter(|volume| !is_replaced(volume)));
    let (mut go, mut stay) = (Vec::new(), Vec::new());
    for volume in volumes.iter().filter(is_replaced) {
        match volume
            .live
            .iter()
            .all(|piece| coverage.missing(*piece).is_none())
        {
            true => go.push(volume.id),
            false => stay.push(volume.id),
        }
    }
    (go, stay)
}

/// Returns the number of blocks of a stream of so many bytes.
pub(crate) fn blocks_of(bytes: u64) -> usize {
    bytes.div_ceil(BLOCK as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn volume(id: u64, live: &[(ContentId, u64, u64)]) -> VolumeState {
        let live: Vec<ContentPiece> = live
            .iter()
            .map(|&(content, from, len)| ContentPiece { content, from, len })
            .collect();
        let bytes = live.iter().map(|piece| piece.len).sum();
        VolumeState {
            id,
            bytes,
            data: blocks_of(bytes).max(1),
            parity: 4,
            lost: 0,
            written_ns: 0,
            live,
            stale: 0,
            removed: Vec::new(),
            last_removed: None,
        }
    }

    fn contents() -> RecordedContents {
        RecordedContents::of_files(&[
            ("a", b"aaaa"),
            ("b", b"bbbb"),
            ("c", b"cccc"),
            ("d", b"aaaa"),
        ])
    }

    fn rules() -> PlanRules {
        PlanRules {
            capacity: 8,
            now: 1000,
            keep_removed: 100,
        }
    }

    fn wanted(plan: &ProtectPlan) -> Vec<(ContentId, u64, u64)> {
        plan.wanted
            .iter()
            .map(|piece| (piece.content, piece.from, piece.len))
            .collect()
    }

    #[test]
    fn new_content_is_wanted_once_and_in_order() {
        let contents = contents();
        assert_eq!(contents.len(), 3);
        let all = plan(&contents, &[], rules(), |_| false);
        assert_eq!(wanted(&all), [(0, 0, 4), (1, 0, 4), (2, 0, 4)]);
        let some = plan(
            &contents,
            &[volume(1, &[(0, 0, 4), (1, 0, 1)]), volume(2, &[(1, 3, 1)])],
            rules(),
            |id| id == 2,
        );
        assert_eq!(wanted(&some), [(1, 1, 2), (2, 0, 4)]);
        assert_eq!(some.replaced, [0; 0]);
        let paths: Vec<&[u8]> = contents.paths(0).collect();
        assert_eq!(paths, [b"a", b"d"]);
        assert!(contents.has_path(b"d") && !contents.has_path(b"e"));
    }

    #[test]
    fn worn_volumes_are_replaced_unless_they_hold_what_may_come_back() {
        let contents = contents();
        let worn = |stale, removed| VolumeState {
            stale,
            removed,
            ..volume(1, &[(0, 0, 4), (1, 0, 4)])
        };
        let planned =
            |volume: VolumeState, lost| plan(&contents, &[volume], rules(), |id| Some(id) == lost);
        assert_eq!(planned(worn(2, vec![]), None).replaced, [0; 0]);
        let replaced = planned(worn(3, vec![]), None);
        assert_eq!(
            (&replaced.replaced[..], wanted(&replaced).len()),
            (&[1][..], 3)
        );
        assert_eq!(planned(worn(3, vec![(0, 900)]), None).replaced, [1]);
        assert_eq!(
            planned(worn(3, vec![(0, 901)]), None).held,
            [(1, HeldBack::Removed)]
        );
        let held = planned(worn(3, vec![]), Some(1));
        assert_eq!(
            (held.held, held.wanted.len()),
            (vec![(1, HeldBack::Damaged)], 1)
        );
        let lost = VolumeState {
            lost: 3,
            ..worn(0, vec![])
        };
        assert_eq!(planned(lost, None).replaced, [1]);
    }

    #[test]
    fn small_volumes_are_merged_once_there_are_two() {
        let contents = contents();
        let rules = PlanRules {
            capacity: MIB,
            ..rules()
        };
        let [one, other] = [volume(1, &[(0, 0, 4)]), volume(2, &[(1, 0, 4)])];
        let planned = |volumes: &[VolumeState]| plan(&contents, volumes, rules, |_| false);
        assert_eq!(planned(std::slice::from_ref(&one)).replaced, [0; 0]);
        let merged = planned(&[one.clone(), other.clone()]);
        assert_eq!(
            (&merged.replaced[..], wanted(&merged).len()),
            (&[1, 2][..], 3)
        );
        let new = volume(3, &[(0, 0, 4), (2, 0, 4)]);
        assert_eq!(replaceable(&merged, &[one, other, new]), (vec![1], vec![2]));
    }

    #[test]
    fn gaps_are_found_between_pieces_that_overlap() {
        let covered = [volume(
            1,
            &[(0, 0, 10), (0, 5, 10), (0, 30, 10), (0, 25, 10), (0, 20, 2)],
        )];
        let coverage = Coverage::of(&covered);
        let missing = |from, len| {
            let piece = coverage.missing(ContentPiece {
                content: 0,
                from,
                len,
            });
            piece.map(|piece| (piece.from, piece.len))
        };
        assert_eq!(missing(0, 40), Some((15, 10)));
        assert_eq!(missing(0, 15), None);
        assert_eq!(missing(15, 5), Some((15, 5)));
        assert_eq!(missing(0, 50), Some((15, 35)));
    }
}
