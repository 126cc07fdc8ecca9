//! Traces of files: inode number, size, times and name. They identify a file where neither its
//! device's number nor its file system does. A disk that was plugged in again, the image on a
//! second loop device, a view through FUSE and a manifest of days ago all show a file of the card
//! so.

use std::hash::{DefaultHasher, Hash, Hasher};

use bc_fs::known::{COARSEST_STEP_SECONDS as COARSE, at_one_time, second};
use bc_walk::{EntryId, FileKind, Listing, Stamp};

/// Relation of two file systems, as far as it can be determined.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kin {
    /// They are one, whose inode numbers distinguish files.
    One,
    /// It cannot be determined.
    Unproven,
    /// One of them may show files of the other, under any name and number: size and time of the
    /// content alone tell.
    Shown,
    /// They are two: only what shows other file systems' files could have one of the other.
    Two,
}

/// Identifying properties of a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Trace {
    pub(crate) dev: u64,
    pub(crate) ino: u64,
    pub(crate) stamp: Stamp,
    /// A digest of its last name.
    pub(crate) name: u64,
}

impl Trace {
    /// A name as a trace has it.
    pub(crate) fn name(name: &[u8]) -> u64 {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        hasher.finish()
    }

    /// Returns the trace of a regular file from a walk with metadata; `None` for other entries.
    pub(crate) fn of(listing: &Listing, entry: EntryId) -> Option<Trace> {
        let meta = listing.meta(entry)?;
        (listing.kind(entry) == FileKind::File).then(|| Trace {
            dev: meta.id.dev,
            ino: meta.id.ino,
            stamp: meta.stamp,
            name: Trace::name(listing.name(entry).to_bytes()),
        })
    }

    /// Returns true if another trace, of equal content, may be this file's. A copy keeps the time
    /// of the content; the time of the inode is its own, and so is its number.
    pub(crate) fn may_be(&self, other: &Trace, kin: Kin) -> bool {
        let (one, two) = (self.stamp, other.stamp);
        if one.size != two.size || !at_one_time(one.mtime_ns, two.mtime_ns) {
            return false;
        }
        let (number, name) = (self.ino == other.ino, self.name == other.name);
        // No copy has the time of change, unless file systems make that of the other.
        let exact = one.mtime_ns == two.mtime_ns && one.ctime_ns == two.ctime_ns;
        let real = exact && one.ctime_ns != one.mtime_ns;
        match kin {
            Kin::One => number,
            Kin::Shown => true,
            Kin::Two => real || exact && number,
            Kin::Unproven => {
                let made_up = two.ctime_ns == two.mtime_ns;
                real || number || name && (exact || made_up)
            }
        }
    }
}

/// Traces of many files.
#[derive(Debug, Default)]
pub(crate) struct Traces {
    /// Traces by size, then by second.
    all: Vec<Trace>,
}

impl Traces {
    /// Adds all files of a walk.
    pub(crate) fn learn(&mut self, listing: &Listing) {
        self.all
            .extend(listing.ids().filter_map(|entry| Trace::of(listing, entry)));
        self.all.sort_unstable_by_key(key);
        self.all.dedup();
    }

    /// Returns the traces of this size with this time of modification.
    pub(crate) fn alike(&self, stamp: Stamp) -> impl Iterator<Item = &Trace> {
        let at = second(stamp.mtime_ns);
        (0..2 * COARSE + 1).flat_map(move |nth| {
            let wanted = (stamp.size, at.wrapping_add(nth).wrapping_sub(COARSE));
            let from = self.all.partition_point(|trace| key(trace) < wanted);
            let found = self.all[from..].iter();
            found
                .take_while(move |trace| key(trace) == wanted)
                .filter(move |trace| at_one_time(trace.stamp.mtime_ns, stamp.mtime_ns))
        })
    }
}

fn key(trace: &Trace) -> (u64, u32) {
    (trace.stamp.size, second(trace.stamp.mtime_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    fn trace(ino: u64, mtime_ns: i64, ctime_ns: i64, name: &str) -> Trace {
        let stamp = Stamp {
            size: 5,
            mtime_ns,
            ctime_ns,
        };
        let name = Trace::name(name.as_bytes());
        Trace {
            dev: 7,
            ino,
            stamp,
            name,
        }
    }

    #[test]
    fn copies_have_other_times_of_change() {
        let own = trace(12, 5 * S + 3, 6 * S + 4, "a");
        for (other, expected) in [
            // The file itself, under another name and number.
            (trace(12, 5 * S + 3, 6 * S + 4, "a"), [true, true, true]),
            (trace(99, 5 * S + 3, 6 * S + 4, "b"), [false, true, true]),
            // A copy that kept its name and time.
            (trace(99, 5 * S + 3, 9 * S + 4, "a"), [false, false, false]),
            // The same number, the name or mode changed meanwhile.
            (trace(12, 5 * S + 3, 9 * S + 4, "b"), [true, true, false]),
            // Times of whole seconds, as some views show them.
            (trace(99, 5 * S, 5 * S, "a"), [false, true, false]),
            (trace(99, 5 * S, 5 * S, "b"), [false, false, false]),
            (trace(12, 8 * S, 8 * S, "a"), [false, false, false]),
        ] {
            let found = [Kin::One, Kin::Unproven, Kin::Two].map(|kin| own.may_be(&other, kin));
            assert_eq!(found, expected, "{other:?}");
            let is_alike = other.stamp.mtime_ns < 8 * S;
            assert_eq!(own.may_be(&other, Kin::Shown), is_alike, "{other:?}");
        }
        // Where change times are made up a copy looks like the file, and only the disk
        // distinguishes them.
        let own = trace(12, 6 * S, 6 * S, "a");
        let copy = trace(99, 6 * S, 6 * S, "a");
        assert!(own.may_be(&copy, Kin::Unproven) && !own.may_be(&copy, Kin::Two));
    }

    #[test]
    fn files_are_found_by_size_and_time() {
        let mut traces = Traces {
            all: (0..50)
                .map(|nth| trace(nth, nth as i64 * S, 0, "a"))
                .collect(),
        };
        traces.all.sort_unstable_by_key(key);
        let found = |ns: i64| traces.alike(trace(0, ns, 0, "").stamp).count();
        assert_eq!((found(9 * S), found(9 * S + 3), found(99 * S)), (5, 4, 0));
    }
}
