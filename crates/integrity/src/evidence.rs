//! Whether a tree, or a file system below it, is the recorded one: what is as recorded in it says
//! so. Links and empty files are alike on many disks, and say so only where nothing else is recorded.

use bc_manifest::integrity::Kind;

use crate::entry_ref::EntryRef;

/// How much it says that an entry is as recorded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Weight {
    /// A link, or a file of no bytes.
    Light,
    /// A file that holds something.
    Full,
}

impl Weight {
    /// That of a recorded entry; `None` for what says nothing.
    pub(crate) fn of(old: &EntryRef<'_>) -> Option<Weight> {
        match (old.kind, old.size) {
            (Kind::Symlink, _) | (Kind::File, Some(0)) => Some(Weight::Light),
            (Kind::File, _) => Some(Weight::Full),
            _ => None,
        }
    }
}

/// Recorded entries of one weight.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    all: u64,
    /// Those that are as recorded.
    matching: u64,
}

/// What recorded files and links say.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Evidence {
    light: Count,
    full: Count,
}

impl Evidence {
    /// Adds a recorded entry.
    pub(crate) fn add(&mut self, weight: Weight, matches: bool) {
        let count = self.count(weight);
        count.all += 1;
        count.matching += u64::from(matches);
    }

    /// Adds so many files that are as recorded, whatever they hold: numbers and times say it, too.
    pub(crate) fn add_files(&mut self, files: u64) {
        self.full.all += files;
        self.full.matching += files;
    }

    /// Takes back that an entry, which was added, is as recorded.
    pub(crate) fn withdraw(&mut self, weight: Weight) {
        self.count(weight).matching -= 1;
    }

    fn count(&mut self, weight: Weight) -> &mut Count {
        match weight {
            Weight::Light => &mut self.light,
            Weight::Full => &mut self.full,
        }
    }

    fn decisive(&self) -> Count {
        match self.full.all {
            0 => self.light,
            _ => self.full,
        }
    }

    /// True if it is the recorded one, whatever else is added.
    pub(crate) fn is_conclusive(&self) -> bool {
        self.full.matching > 0
    }

    /// True if anything that counts is as recorded.
    pub(crate) fn matches(&self) -> bool {
        self.decisive().matching > 0
    }

    /// True if nothing that counts is as recorded, though something is recorded.
    pub(crate) fn contradicts(&self) -> bool {
        let Count { all, matching } = self.decisive();
        all > 0 && matching == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_empty_files_count_where_there_is_nothing_else() {
        let mut evidence = Evidence::default();
        assert!(!evidence.matches() && !evidence.contradicts());
        evidence.add(Weight::Light, true);
        assert!(evidence.matches() && !evidence.is_conclusive());
        evidence.add(Weight::Full, false);
        assert!(!evidence.matches() && evidence.contradicts());
        evidence.add(Weight::Full, true);
        assert!(evidence.matches() && evidence.is_conclusive());
        evidence.withdraw(Weight::Full);
        assert!(!evidence.matches() && evidence.contradicts());
        evidence.add_files(1);
        assert!(evidence.matches() && !evidence.contradicts());
    }
}
