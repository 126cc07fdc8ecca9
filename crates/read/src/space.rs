//! Disk space that goes with a file: its extents, less those that other files use too, that lie in
//! the metadata, or that stay in a lower layer whatever is done to the file.

mod shares;

use std::collections::BTreeMap;
use std::os::fd::AsFd;

use bc_fs::mount::{Answer, Disk, Layer, Traits, layer_of};
use bc_walk::FileStat;
use rustix::io::Errno;

use crate::extents::{Dirty, Extent, extents, lengths_on_disk};

pub use shares::Shares;

/// The least that an extent takes.
const BLOCK: u64 = 4096;

/// Bytes of a disk: the first, and the first that is not one of them.
pub type DiskRange = (u64, u64);

/// Disk space of one file.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Space {
    /// Bytes that no other file uses: they go with the file.
    pub own: u64,
    /// Number of those bytes that lie behind the file's end, reserved for appending.
    pub behind: u64,
    /// Extents that other files use too, in order and disjoint, where they can be compared between
    /// files.
    pub shared: Option<(Disk, Vec<DiskRange>)>,
    /// True if the content lies in the metadata, where nothing can be shared.
    pub inline: bool,
    /// True if its file system does not report what files take: then `own` is a guess from the
    /// size.
    pub unreported: bool,
}

impl Space {
    /// Determines the space of an open file.
    pub fn of(file: impl AsFd, stat: &FileStat, traits: &Traits) -> Space {
        let asked = Space::and_map(file, stat, traits, Dirty::Leave);
        let space = asked.map_or_else(|| Space::allocated(stat), |(space, _)| space);
        Space {
            unreported: traits.blocks == Answer::No,
            ..space
        }
    }

    /// All that is allocated.
    pub fn allocated(stat: &FileStat) -> Space {
        Space {
            own: stat.blocks * 512,
            ..Space::default()
        }
    }

    /// Determines the space of an open file, and the location of its content, if that identifies
    /// the content. `None` where the file system reports that of no file.
    pub fn and_map(
        file: impl AsFd,
        stat: &FileStat,
        traits: &Traits,
        dirty: Dirty,
    ) -> Option<(Space, Option<Map>)> {
        let file = file.as_fd();
        if traits.copy_up == Answer::Yes && layer_of(file) != Layer::Upper {
            return Some((Space::default(), None));
        }
        if traits.reflinks == Answer::No {
            return Some((Space::allocated(stat), None));
        }
        let extents = match extents(file, dirty) {
            Ok(extents) => extents,
            Err(error) => {
                let none = [Errno::OPNOTSUPP, Errno::NOTTY, Errno::NOSYS];
                let errno = Errno::from_io_error(&error);
                return match errno.is_some_and(|errno| none.contains(&errno)) {
                    true => None,
                    false => Some((Space::allocated(stat), None)),
                };
            }
        };
        let known = || lengths_on_disk(file, stat.id.ino).unwrap_or_default();
        let space = Space::from_extents(&extents, stat.stamp.size, traits.disk, known);
        let map = match dirty {
            Dirty::Leave => None,
            Dirty::WriteOut => Map::of(&extents, stat.stamp.size, traits.disk),
        };
        Some((space, map))
    }

    fn from_extents(
        extents: &[Extent],
        size: u64,
        disk: Option<Disk>,
        known: impl FnOnce() -> BTreeMap<u64, u64>,
    ) -> Space {
        let encoded = extents.iter().any(Extent::is_encoded);
        let known = if encoded { known() } else { BTreeMap::new() };
        let mut space = Space::default();
        let (mut own, mut shared) = (Vec::new(), Vec::new());
        let end = size.next_multiple_of(BLOCK);
        for extent in extents {
            let Some(start) = extent.physical else {
                space.inline |= extent.is_inline();
                if !extent.is_inline() {
                    // To be written yet.
                    space.own += extent.length;
                    space.behind += behind(extent, end);
                }
                continue;
            };
            let length = match extent.is_encoded() {
                false => extent.length,
                true => match known.get(&start) {
                    Some(length) => *length,
                    None => up_to_next(extents, start, extent.length),
                },
            };
            let runs = if extent.shared { &mut shared } else { &mut own };
            runs.push((start, start + length));
            if !extent.shared {
                space.behind += behind(extent, end);
            }
        }
        // A file may use an extent twice.
        let own = joined(own);
        space.own += own.iter().map(|(start, end)| end - start).sum::<u64>();
        if let (Some(disk), false) = (disk, shared.is_empty()) {
            space.shared = Some((disk, joined(shared)));
        }
        space
    }

    /// Returns the bytes that are freed when the file gets other blocks for its content.
    pub fn content(&self) -> u64 {
        self.own.saturating_sub(self.behind)
    }
}

fn behind(extent: &Extent, end: u64) -> u64 {
    let past = (extent.logical + extent.length).saturating_sub(end);
    past.min(extent.length)
}

/// Returns the bytes of an encoded extent whose size is not reported: extents are written one after
/// the other, so up to the next one of the file; else the least.
fn up_to_next(extents: &[Extent], start: u64, length: u64) -> u64 {
    let places = extents.iter().filter_map(|extent| extent.physical);
    let next = places.filter(|place| *place > start).min();
    next.map(|next| next - start)
        .filter(|gap| *gap < length)
        .unwrap_or(BLOCK)
}

/// The runs in order, those that overlap or touch made one.
fn joined(mut runs: Vec<DiskRange>) -> Vec<DiskRange> {
    runs.sort_unstable();
    let mut joined: Vec<DiskRange> = Vec::with_capacity(runs.len());
    for (start, end) in runs {
        match joined.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => joined.push((start, end)),
        }
    }
    joined
}

/// Location of all of a file's content: files of one map have one content. Only certain extents
/// count: written out, unencoded, shared with others, without a hole.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Map {
    disk: Disk,
    size: u64,
    runs: Box<[(u64, u64)]>,
}

impl Map {
    fn of(extents: &[Extent], size: u64, disk: Option<Disk>) -> Option<Map> {
        let disk = disk?;
        let mut covered = 0;
        for extent in extents {
            if !extent.is_plain() || !extent.shared || extent.logical != covered {
                return None;
            }
            covered += extent.length;
        }
        (size > 0 && covered >= size).then(|| Map {
            disk,
            size,
            runs: extents
                .iter()
                .filter_map(|extent| Some((extent.physical?, extent.length)))
                .collect(),
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Some disk.
    pub(crate) fn a_disk() -> Disk {
        Disk::of_device(7)
    }

    #[test]
    fn runs_are_joined() {
        let runs = vec![(5, 9), (0, 3), (3, 4), (8, 12), (20, 21), (20, 21)];
        assert_eq!(joined(runs), [(0, 4), (5, 12), (20, 21)]);
        assert_eq!(joined(Vec::new()), []);
    }
}
