//! Space that the files of a group share among themselves, and the part of it that is freed when
//! some of them are removed.

use std::collections::HashMap;

use bc_fs::mount::Disk;

use super::{DiskRange, Space};

/// Extents that at least two of some files use: they go with the last of these. Extents that only
/// one of the files shares, it shares with files elsewhere, which keep them.
#[derive(Debug, Default)]
pub struct Shares {
    /// Class of each file: files of a class use the same extents.
    class: Vec<Option<usize>>,
    gone: Vec<bool>,
    classes: Vec<ShareClass>,
    pieces: Vec<SharePiece>,
}

#[derive(Debug, Default)]
struct ShareClass {
    /// Files that are still there.
    left: u32,
    pieces: Vec<usize>,
}

/// Bytes that are used by the same files.
#[derive(Debug, Default)]
struct SharePiece {
    length: u64,
    /// Classes that still have a file.
    left: u32,
}

impl Shares {
    /// Builds the shares of these files from their extents.
    pub fn of<'s>(spaces: impl Iterator<Item = Option<&'s Space>>) -> Shares {
        let mut known: HashMap<&(Disk, Vec<DiskRange>), usize> = HashMap::new();
        let mut shares = Shares::default();
        for space in spaces {
            let class = space.and_then(|space| space.shared.as_ref()).map(|shared| {
                let class = *known.entry(shared).or_insert(shares.classes.len());
                if class == shares.classes.len() {
                    shares.classes.push(ShareClass::default());
                }
                shares.classes[class].left += 1;
                class
            });
            shares.class.push(class);
            shares.gone.push(false);
        }
        // Where each class begins or ceases to use a byte.
        let mut turns: Vec<(Disk, u64, bool, usize)> = Vec::new();
        for ((disk, runs), class) in &known {
            for (start, end) in runs {
                turns.push((*disk, *start, true, *class));
                turns.push((*disk, *end, false, *class));
            }
        }
        turns.sort_unstable();
        let mut users: Vec<usize> = Vec::new();
        for (nth, (disk, at, begins, class)) in turns.iter().enumerate() {
            match begins {
                true => users.push(*class),
                false => users.retain(|user| user != class),
            }
            let Some((next_disk, next, ..)) = turns.get(nth + 1) else {
                break;
            };
            if next_disk == disk && next > at && !users.is_empty() {
                shares.piece(next - at, &users);
            }
        }
        shares
    }

    fn piece(&mut self, length: u64, users: &[usize]) {
        let files: u32 = users.iter().map(|user| self.classes[*user].left).sum();
        if files < 2 {
            return;
        }
        for user in users {
            self.classes[*user].pieces.push(self.pieces.len());
        }
        self.pieces.push(SharePiece {
            length,
            left: users.len() as u32,
        });
    }

    /// Returns the bytes that would be freed with the file now.
    pub fn goes_with(&self, file: usize) -> u64 {
        let class = self.class[file].filter(|_| !self.gone[file]);
        let last = class
            .map(|class| &self.classes[class])
            .filter(|class| class.left == 1);
        let pieces = last.into_iter().flat_map(|class| &class.pieces);
        let going = pieces.map(|piece| &self.pieces[*piece]);
        going
            .filter(|piece| piece.left == 1)
            .map(|piece| piece.length)
            .sum()
    }

    /// Removes the file; returns the bytes that go with it, as it was their last user.
    pub fn take(&mut self, file: usize) -> u64 {
        let Some(class) = self.class[file] else {
            return 0;
        };
        if std::mem::replace(&mut self.gone[file], true) {
            return 0;
        }
        let class = &mut self.classes[class];
        class.left -= 1;
        if class.left > 0 {
            return 0;
        }
        let mut gone = 0;
        for piece in &class.pieces {
            let piece = &mut self.pieces[*piece];
            piece.left -= 1;
            if piece.left == 0 {
                gone += piece.length;
            }
        }
        gone
    }

    /// Returns the bytes, freed with the files that were taken, that would remain if this file did.
    pub fn held_by(&self, file: usize) -> u64 {
        let class = self.class[file].map(|class| &self.classes[class]);
        let pieces = class.into_iter().flat_map(|class| &class.pieces);
        let gone = pieces.map(|piece| &self.pieces[*piece]);
        gone.filter(|piece| piece.left == 0)
            .map(|piece| piece.length)
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spaces(runs: &[&[DiskRange]]) -> Vec<Space> {
        let disk = crate::space::tests::a_disk();
        runs.iter()
            .map(|runs| Space {
                shared: (!runs.is_empty()).then(|| (disk, runs.to_vec())),
                ..Space::default()
            })
            .collect()
    }

    #[test]
    fn what_two_share_goes_with_the_last() {
        let spaces = spaces(&[&[(0, 10)], &[(0, 10)], &[(20, 30)], &[]]);
        let mut shares = Shares::of(spaces.iter().map(Some));
        assert_eq!([shares.take(3), shares.take(2)], [0, 0], "shared elsewhere");
        assert_eq!([shares.take(0), shares.take(0)], [0, 0]);
        assert_eq!([shares.held_by(0), shares.goes_with(0)], [0, 0]);
        assert_eq!([shares.goes_with(1), shares.take(1)], [10, 10]);
        assert_eq!(shares.goes_with(1), 0);
        assert_eq!([shares.held_by(0), shares.held_by(2)], [10, 0]);
    }

    #[test]
    fn parts_are_counted_apart() {
        // 0..10 is shared by two, 10..20 by three, 20..30 by the last with a file elsewhere.
        let spaces = spaces(&[&[(0, 20)], &[(0, 20)], &[(10, 30)], &[(100, 101)]]);
        let mut shares = Shares::of(spaces.iter().map(Some));
        assert_eq!([shares.goes_with(0), shares.goes_with(2)], [0, 0]);
        assert_eq!(shares.take(0), 0);
        assert_eq!(shares.take(1), 10);
        assert_eq!(shares.take(2), 10);
        assert_eq!(shares.take(3), 0);
        let held: Vec<u64> = (0..4).map(|file| shares.held_by(file)).collect();
        assert_eq!(held, [20, 20, 10, 0]);
    }
}
