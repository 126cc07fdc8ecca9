//! Directories held open for those that come next. A job comes back to one for every file in it, and
//! opening the way to it each time is a good part of the calls of a small file.

/// The directories that were used last, so many at most, by a key: a path, or a number in a list.
/// One from which others were opened is closed after them.
///
/// Where descriptors are short its owner [clears](OpenDirs::clear) it.
#[derive(Debug)]
pub struct OpenDirs<K, D> {
    most: usize,
    /// Used last comes last. A directory comes after those that it was opened from.
    kept: Vec<Kept<K, D>>,
}

#[derive(Debug)]
struct Kept<K, D> {
    key: K,
    /// Directory that it was opened from, if that was one of these.
    above: Option<K>,
    dir: D,
}

impl<K: PartialEq, D> OpenDirs<K, D> {
    /// Holds none yet, and never more than `most`, which is at least one.
    pub const fn new(most: usize) -> OpenDirs<K, D> {
        OpenDirs {
            most,
            kept: Vec::new(),
        }
    }

    /// Finds the directory whose key `is` the wanted one, and makes it and those above it the last
    /// to be closed.
    pub fn find(&mut self, is: impl Fn(&K) -> bool) -> Option<&D> {
        let mut at = self.kept.iter().rposition(|kept| is(&kept.key))?;
        let mut end = self.kept.len();
        loop {
            self.kept[at..end].rotate_left(1);
            end -= 1;
            if at == end && end + 1 == self.kept.len() {
                // All is in order already, and has been since it was put there.
                break;
            }
            let Some(above) = &self.kept[end].above else {
                break;
            };
            match self.kept[..end].iter().rposition(|kept| kept.key == *above) {
                Some(next) => at = next,
                None => break,
            }
        }
        self.kept.last().map(|kept| &kept.dir)
    }

    /// Holds a directory that was just opened, from the one with the key `above` if that is one of
    /// these. The one that was not used for the longest time is closed where there is no room.
    pub fn keep(&mut self, key: K, above: Option<K>, dir: D) {
        if self.kept.len() >= self.most.max(1) {
            self.kept.remove(0);
        }
        self.kept.push(Kept { key, above, dir });
    }

    /// Closes those that are not `good` any more.
    pub fn retain(&mut self, mut good: impl FnMut(&D) -> bool) {
        self.kept.retain(|kept| good(&kept.dir));
    }

    /// Closes all, as far as nobody else uses them; returns true if there were any.
    pub fn clear(&mut self) -> bool {
        let any = !self.kept.is_empty();
        self.kept.clear();
        any
    }

    /// Returns the keys of those that are held, those used last at the end.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> {
        self.kept.iter().map(|kept| &kept.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(dirs: &OpenDirs<u32, char>) -> Vec<u32> {
        dirs.keys().copied().collect()
    }

    #[test]
    fn those_used_last_stay() {
        let mut dirs = OpenDirs::new(3);
        for (key, dir) in [(1, 'a'), (2, 'b'), (3, 'c')] {
            dirs.keep(key, None, dir);
        }
        assert_eq!(dirs.find(|key| *key == 1), Some(&'a'));
        assert_eq!(dirs.find(|key| *key == 7), None);
        dirs.keep(4, None, 'd');
        assert_eq!(keys(&dirs), [3, 1, 4]);
        dirs.retain(|dir| *dir != 'a');
        assert_eq!(keys(&dirs), [3, 4]);
        assert!(dirs.clear() && !dirs.clear());
        // There is always room for the one in use.
        let mut none = OpenDirs::new(0);
        none.keep(1, None, 'a');
        none.keep(2, None, 'b');
        assert_eq!(none.find(|key| *key == 2), Some(&'b'));
        assert_eq!(keys(&none), [2]);
    }

    #[test]
    fn those_above_are_closed_later() {
        let mut dirs = OpenDirs::new(4);
        dirs.keep(1, None, 'a');
        dirs.keep(2, Some(1), 'b');
        dirs.keep(3, Some(2), 'c');
        dirs.keep(9, None, 'x');
        assert_eq!(dirs.find(|key| *key == 3), Some(&'c'));
        assert_eq!(keys(&dirs), [9, 1, 2, 3]);
        dirs.keep(4, Some(2), 'd');
        assert_eq!(dirs.find(|key| *key == 2), Some(&'b'));
        assert_eq!(keys(&dirs), [3, 4, 1, 2]);
    }
}
