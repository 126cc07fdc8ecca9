//! Counts of a comparison, which add up on both sides.

use crate::change::{Change, Class};

/// Verdict of a comparison.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Conclusion {
    /// There is no difference.
    Same,
    /// Some path differs or could not be read.
    Different,
    /// Some path is damaged, whatever else differs.
    Damaged,
}

impl Conclusion {
    /// Returns `same`, `different` or `damaged`.
    pub const fn name(self) -> &'static str {
        match self {
            Conclusion::Same => "same",
            Conclusion::Different => "different",
            Conclusion::Damaged => "damaged",
        }
    }
}

/// Number of paths in each class.
///
/// `old` is the sum of all classes without added, [`damaged_added`](Self::damaged_added) and
/// [`unrecorded`](Self::unrecorded); `new` the sum of all without removed and
/// [`unseen`](Self::unseen). A move counts once on each side, and so does one that is damaged.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct ComparisonSummary {
    counts: [u64; Class::ALL.len()],
    /// Entries of the manifest, or of the older one.
    pub old: u64,
    /// Entries of the tree, or of the newer manifest.
    pub new: u64,
    /// Unreadable paths that the new side could not even look for, because a
    /// directory above them is unreadable.
    pub unseen: u64,
    /// Unreadable paths at which a file system or a file was mounted when they were recorded, and
    /// none or another is now; without the check of the root they are taken as they are found
    /// ([`Setting::Force`](bc_walk::job::Setting::Force)). Those below them are not counted here.
    pub unmounted: u64,
    /// Unreadable paths of the new side that the old side could not even look for, because a
    /// directory above them was unreadable.
    pub unrecorded: u64,
    /// Added paths that could not be read: files without content, directories without a listing.
    pub added_unread: u64,
    /// Damaged paths, or perhaps damaged ones, that only the new side has: another file has the old
    /// name by now, or the content is known to be damaged.
    pub damaged_added: u64,
    /// Unreadable paths that only the old side could not read.
    pub readable_now: u64,
    /// Replaced paths that could not be read.
    pub replaced_unread: u64,
    /// Modified paths of which no record distinguishes an edit from damage.
    pub undecided: u64,
    /// Removed paths without content, such as links and directories, for which there is an added one
    /// with all that is recorded of them. Only an update counts them.
    pub(crate) renamed: u64,
    /// Files read to their end.
    pub files_read: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Where only a [sample](crate::VerifyOptions::sample) of the files was read: all of them.
    pub sampled_of: Option<FileTotals>,
    /// False if it stopped at the first difference.
    pub complete: bool,
}

/// Regular files of a tree.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct FileTotals {
    /// Their number; one with several names counts once for each.
    pub files: u64,
    /// Sum of their sizes in bytes, which count once, whatever the names.
    pub bytes: u64,
}

impl ComparisonSummary {
    pub(crate) fn add(&mut self, class: Class) {
        self.add_many(class, 1);
    }

    pub(crate) fn add_many(&mut self, class: Class, paths: u64) {
        self.counts[class as usize] += paths;
    }

    /// Returns the summary of two sides of so many entries without any difference.
    pub(crate) fn all_ok(entries: u64) -> ComparisonSummary {
        let mut summary = ComparisonSummary {
            old: entries,
            new: entries,
            complete: true,
            ..ComparisonSummary::default()
        };
        summary.counts[Class::Ok as usize] = entries;
        summary
    }

    /// Counts a path that only one side has.
    pub(crate) fn one_sided(&mut self, change: &Change) {
        self.add(change.class);
        self.added_unread += u64::from(change.class == Class::Added && change.reason.is_some());
        self.unrecorded += u64::from(is_unrecorded(change));
        self.readable_now += u64::from(change.readable_now);
    }

    /// Takes back a count that turned out to be wrong.
    fn take_back(&mut self, change: &Change) {
        self.counts[change.class as usize] -= 1;
        self.unrecorded -= u64::from(is_unrecorded(change));
        self.readable_now -= u64::from(change.readable_now);
        self.undecided -= u64::from(change.class == Class::Modified && change.reason.is_some());
    }

    /// Counts a removal and an addition that turned out to be one file, moved, or moved and
    /// damaged.
    pub(crate) fn moved(&mut self, class: Class, added: &Change) {
        self.counts[Class::Removed as usize] -= 1;
        self.take_back(added);
        self.add(class);
    }

    /// Counts a path that seemed damaged as one that only has another name by now.
    pub(crate) fn swapped(&mut self) {
        self.counts[Class::Damaged as usize] -= 1;
        self.add(Class::Moved);
    }

    /// Counts a path that turned out to be damaged, or possibly: a file whose name another had, or
    /// has, or a content that is known to be damaged.
    pub(crate) fn damaged(&mut self, change: &Change, class: Class) {
        self.take_back(change);
        self.damaged_added += u64::from(change.is_new);
        self.add(class);
    }

    /// Returns the number of paths that could not be read: unreadable ones, those that are new, and
    /// those that became of another kind; not those that were read now and could not be before.
    pub fn unread(&self) -> u64 {
        self.count(Class::Unreadable) + self.added_unread + self.replaced_unread - self.readable_now
    }

    /// Returns the number of paths of a class; a move is one, damaged or not.
    pub fn count(&self, class: Class) -> u64 {
        self.counts[class as usize]
    }

    /// True if any path is not ok.
    pub fn any(&self) -> bool {
        Class::ALL
            .iter()
            .any(|&class| class != Class::Ok && self.count(class) > 0)
    }

    /// True if the classes add up to the entries of both sides. Always true; tests and callers may
    /// assert it.
    pub fn reconciles(&self) -> bool {
        let all: u64 = self.counts.iter().sum();
        all - self.count(Class::Added) - self.damaged_added - self.unrecorded == self.old
            && all - self.count(Class::Removed) - self.unseen == self.new
    }

    /// Returns the verdict.
    pub fn conclusion(&self) -> Conclusion {
        match () {
            () if self.count(Class::Damaged) > 0 => Conclusion::Damaged,
            () if self.any() => Conclusion::Different,
            () => Conclusion::Same,
        }
    }
}

/// True for a path of the new side where the old side could not look.
fn is_unrecorded(change: &Change) -> bool {
    change.class == Class::Unreadable && change.is_new
}
