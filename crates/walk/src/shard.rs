//! One tree read by many: assignment of directories to readers, so that none has to ask the others.

use std::fmt;
use std::str::FromStr;

use xxhash_rust::xxh64::xxh64;

/// The root, as a directory among those below it.
pub(crate) const ROOT: &[u8] = b".";

/// Seed of the sum in a [`DirectorySet`]; the shard of a directory is computed with the seed 0, and
/// a set of one shard would begin with few different sums otherwise.
const SET_SEED: u64 = 1;

/// One of `of` parts of a tree. A directory belongs to the part whose number is XXH64 (seed 0) of
/// its path below the root, `.` for the root itself, modulo `of`, plus 1: this stays as it is in
/// all versions. Entries of a directory belong to its part, subdirectories as entries too, but not
/// their contents.
///
/// ```
/// use bc_walk::Shard;
///
/// let parts: Vec<Shard> = (1..=3).filter_map(|index| Shard::new(index, 3)).collect();
/// let of = |path: &[u8]| parts.iter().filter(|part| part.has_directory(path)).count();
/// assert_eq!((of(b"."), of(b"a/b")), (1, 1));
/// assert_eq!("2/3".parse(), Ok(parts[1]));
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Shard {
    of: u32,
    index: u32,
}

/// Greatest number of parts of a tree: more hosts than any fleet has, and few enough to open all
/// lists at once.
const MOST: u32 = 65_536;

impl Shard {
    /// Returns part `index`, counted from 1, of `of`; `None` if there is no such part, or `of` is
    /// over 65,536.
    pub fn new(index: u32, of: u32) -> Option<Shard> {
        let exists = 1 <= index && index <= of && of <= MOST;
        exists.then_some(Shard { of, index })
    }

    /// Returns the part of `of` that contains the directory of this path below the root; `None` if
    /// there can be no such number of parts.
    pub fn containing(path: &[u8], of: u32) -> Option<Shard> {
        let nth = xxh64(path, 0).checked_rem(u64::from(of))?;
        Shard::new(nth as u32 + 1, of)
    }

    /// Returns the number of this part, from 1 on.
    pub fn index(self) -> u32 {
        self.index
    }

    /// Returns the number of parts.
    pub fn of(self) -> u32 {
        self.of
    }

    /// True if the entries of the directory with this path below the root, `.` for the root itself,
    /// are in this part.
    pub fn has_directory(self, path: &[u8]) -> bool {
        xxh64(path, 0) % u64::from(self.of) == u64::from(self.index - 1)
    }

    /// True if the entry with this path below the root, `.` for the root itself, is in this part.
    /// It belongs to the part of the directory that it is in; the root belongs to the part of its
    /// own entries.
    pub fn has_entry(self, path: &[u8]) -> bool {
        self.has_directory(directory_of(path))
    }
}

/// Returns the directory that contains a path below the root, `.` for the root itself; the root
/// counts as contained in itself.
fn directory_of(path: &[u8]) -> &[u8] {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => &path[..slash],
        None => ROOT,
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

/// A text that is no part of a tree.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UnknownShard;

impl fmt::Display for UnknownShard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not I/N with I from 1 to N and N up to {MOST}, e.g. 2/8")
    }
}

impl std::error::Error for UnknownShard {}

impl FromStr for Shard {
    type Err = UnknownShard;

    fn from_str(text: &str) -> Result<Shard, UnknownShard> {
        let number = |text: &str| {
            let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            plain.then(|| text.parse().ok()).flatten()
        };
        let numbers = text.split_once('/');
        let numbers = numbers.and_then(|(index, of)| number(index).zip(number(of)));
        let shard = numbers.and_then(|(index, of)| Shard::new(index, of));
        shard.ok_or(UnknownShard)
    }
}

/// Set of directories as two numbers, independent of their order: enough to compare two sets,
/// unless they were constructed to collide.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct DirectorySet {
    count: u64,
    sum: u64,
}

impl DirectorySet {
    /// Restores a set from its recorded numbers.
    pub fn of_parts(count: u64, sum: u64) -> DirectorySet {
        DirectorySet { count, sum }
    }

    /// Returns the number of directories.
    pub fn count(self) -> u64 {
        self.count
    }

    /// Returns the sum, modulo 2^64, of XXH64 with seed 1 of the path of each below the root, `.`
    /// for the root itself.
    pub fn sum(self) -> u64 {
        self.sum
    }

    /// Adds a directory, which must not be in the set yet, by its path below the root.
    pub fn insert(&mut self, path: &[u8]) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(xxh64(path, SET_SEED));
    }

    pub(crate) fn add(&mut self, other: DirectorySet) {
        self.count += other.count;
        self.sum = self.sum.wrapping_add(other.sum);
    }
}

/// Returns the path of a directory below the root, given with a closing slash, which the root
/// lacks.
pub(crate) fn without_slash(path: &[u8]) -> &[u8] {
    path.strip_suffix(b"/").unwrap_or(ROOT)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks parts in recorded manifests: those of one tree may be years and versions apart.
    #[test]
    fn which_part_a_directory_is_in_never_changes() {
        let part = |path: &[u8], of| {
            let mut parts = (1..=of).filter_map(|index| Shard::new(index, of));
            parts.find(|part| part.has_directory(path)).unwrap().index()
        };
        let paths: [&[u8]; 4] = [b".", b"a", b"a/b", b"\xff"];
        assert_eq!(paths.map(|path| part(path, 1)), [1, 1, 1, 1]);
        let expected = paths.map(|path| (xxh64(path, 0) % 7) as u32 + 1);
        assert_eq!(paths.map(|path| part(path, 7)), expected);
        // As xxhsum says: printf . | xxhsum -H1 and printf a | xxhsum -H1.
        assert_eq!(xxh64(b"a", 0), 0xd24e_c4f1_a98c_6e5b);
    }

    #[test]
    fn entries_are_where_their_directory_is() {
        let part = Shard::new(3, 5).unwrap();
        for (entry, directory) in [
            (&b"."[..], &b"."[..]),
            (b"a", b"."),
            (b"a/b", b"a"),
            (b"a/b/c", b"a/b"),
        ] {
            assert_eq!(part.has_entry(entry), part.has_directory(directory));
        }
    }

    #[test]
    fn texts() {
        for good in ["1/1", "7/16", "65536/65536"] {
            assert_eq!(good.parse::<Shard>().unwrap().to_string(), good);
        }
        for bad in [
            "", "/", "0/2", "3/2", "1/0", "1", "1/2/3", "+1/2", " 1/2", "1/65537", "a/b",
        ] {
            assert_eq!(bad.parse::<Shard>(), Err(UnknownShard), "{bad}");
        }
    }

    #[test]
    fn sets_do_not_depend_on_the_order() {
        let mut sets = [DirectorySet::default(); 3];
        for path in [&b"a"[..], b"b", b"c/d"] {
            sets[0].insert(path);
        }
        for path in [&b"c/d"[..], b"a"] {
            sets[1].insert(path);
        }
        assert_ne!(sets[0], sets[1]);
        sets[2].insert(b"b");
        let other = sets[2];
        sets[1].add(other);
        assert_eq!(sets[0], sets[1]);
        assert_eq!(sets[0].count(), 3);
    }
}
