//! The contents of the trees, each once with all its names.

use std::collections::HashMap;

use bc_digest::Algorithm;
use bc_walk::{EntryId, FileKind, Identity, Listing};

use crate::manifests::Answers;
use crate::scan::Scan;

/// Place where a content of the trees also exists beside them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Presence {
    /// Nowhere, as far as it can be determined.
    Nowhere,
    /// In a file of this reference, a directory.
    Directory {
        /// Index of the reference.
        reference: usize,
    },
    /// In this reference, a manifest, by a digest of this algorithm.
    Manifest {
        /// Index of the reference.
        reference: usize,
        /// Algorithm of the digest that the answer rests on.
        algorithm: Algorithm,
    },
    /// Without references: in another file of the trees.
    Another,
    /// It could not be read, so its other places are unknown.
    Unread,
}

/// A content and its names in the trees.
#[derive(Clone, Copy, Debug)]
pub struct Content<'a> {
    /// Bytes.
    pub size: u64,
    /// Names in path order; at least one.
    pub names: &'a [EntryId],
    /// Files, names of one inode counting once.
    pub files: u32,
    /// Index of its group in the search, if it is in one.
    pub group: Option<usize>,
    /// Place where it also exists.
    pub presence: Presence,
}

/// Contents in two arrays.
#[derive(Debug, Default)]
pub(super) struct Contents {
    names: Vec<EntryId>,
    rows: Vec<ContentRow>,
    /// Files of the trees with bytes, each inode once, and the bytes.
    pub(super) files: u64,
    pub(super) bytes: u64,
    pub(super) empty: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ContentRow {
    size: u64,
    start: u32,
    len: u32,
    files: u32,
    /// Index among the groups of the search, if it is one.
    pub(super) group: Option<u32>,
    pub(super) presence: Presence,
}

impl Contents {
    /// Collects the contents of the first `own` entries: the groups of the search, and every other
    /// file by itself.
    pub(super) fn of(listing: &Listing, own: usize, scan: &Scan) -> Contents {
        let mut found = Contents::default();
        let mut grouped = vec![false; own];
        let mut names = Vec::new();
        for (number, group) in scan.groups().enumerate() {
            names.clear();
            let mut files = 0;
            for file in group.files() {
                let before = names.len();
                let own = file.names.iter().filter(|name| (name.0 as usize) < own);
                names.extend(own.copied());
                files += u32::from(names.len() > before);
            }
            for name in &names {
                grouped[name.0 as usize] = true;
            }
            names.sort_unstable();
            found.push(group.size, &names, files, Some(number as u32));
        }
        found.add_others(listing, &grouped);
        found
    }

    /// Adds the files that are in no group. Names of one inode are one file.
    fn add_others(&mut self, listing: &Listing, grouped: &[bool]) {
        let mut linked: HashMap<Identity, Vec<EntryId>> = HashMap::new();
        for entry in listing.ids().take(grouped.len()) {
            let is_file = listing.kind(entry) == FileKind::File;
            if !is_file || grouped[entry.0 as usize] {
                continue;
            }
            // A file whose state is unknown was in no search.
            let Some(meta) = listing.meta(entry) else {
                self.push(0, &[entry], 1, None);
                continue;
            };
            match (meta.stamp.size, meta.nlink) {
                (0, _) => self.empty += 1,
                (size, 0 | 1) => self.push(size, &[entry], 1, None),
                _ => linked.entry(meta.id).or_default().push(entry),
            }
        }
        let mut linked: Vec<Vec<EntryId>> = linked.into_values().collect();
        linked.sort_unstable();
        for names in linked {
            let size = listing.size(names[0]).unwrap_or(0);
            self.push(size, &names, 1, None);
        }
    }

    pub(super) fn push(&mut self, size: u64, names: &[EntryId], files: u32, group: Option<u32>) {
        if names.is_empty() {
            return;
        }
        let start = self.names.len() as u32;
        self.names.extend_from_slice(names);
        self.rows.push(ContentRow {
            size,
            start,
            len: names.len() as u32,
            files,
            group,
            presence: Presence::Nowhere,
        });
        self.files += u64::from(files);
        self.bytes += size * u64::from(files);
    }

    /// Takes the names that `stays` refuses from a content: each is one for itself from here on.
    pub(super) fn part(&mut self, at: usize, stays: &[bool]) {
        let row = self.rows[at];
        let range = row.start as usize..(row.start + row.len) as usize;
        let names = self.names[range.clone()].to_vec();
        let (mut kept, mut apart) = (Vec::new(), Vec::new());
        for (name, stays) in names.into_iter().zip(stays) {
            match stays {
                true => kept.push(name),
                false => apart.push(name),
            }
        }
        self.names[row.start as usize..][..kept.len()].copy_from_slice(&kept);
        self.rows[at].len = kept.len() as u32;
        for name in apart {
            self.push(row.size, &[name], 1, None);
        }
    }

    pub(super) fn rows_mut(&mut self) -> impl Iterator<Item = (&mut ContentRow, &[EntryId])> {
        let names = &self.names;
        self.rows.iter_mut().map(|row| {
            let own = &names[row.start as usize..(row.start + row.len) as usize];
            (row, own)
        })
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = Content<'_>> {
        self.rows.iter().map(|row| Content {
            size: row.size,
            names: &self.names[row.start as usize..(row.start + row.len) as usize],
            files: row.files,
            group: row.group.map(|group| group as usize),
            presence: row.presence,
        })
    }

    /// Returns one name of each content that is nowhere so far, in path order.
    pub(super) fn open_questions(&self) -> Vec<EntryId> {
        let open = self
            .iter()
            .filter(|content| content.presence == Presence::Nowhere);
        let mut entries: Vec<EntryId> = open.map(|content| content.names[0]).collect();
        entries.sort_unstable();
        entries
    }

    /// All names of each of these contents.
    pub(super) fn names_of(&self, entries: &[EntryId]) -> Vec<&[EntryId]> {
        let mut names: Vec<&[EntryId]> = vec![&[]; entries.len()];
        for content in self.iter() {
            if let Ok(at) = entries.binary_search(&content.names[0]) {
                names[at] = content.names;
            }
        }
        names
    }

    /// Records the answers of manifests to [open questions](Contents::open_questions).
    pub(super) fn answer(&mut self, entries: &[EntryId], answers: &Answers, numbers: &[usize]) {
        let failed: Vec<EntryId> = answers.errors.iter().map(|(entry, _)| *entry).collect();
        for (row, names) in self.rows_mut() {
            if row.presence != Presence::Nowhere {
                continue;
            }
            let asked = entries.binary_search(&names[0]).ok();
            if let Some(answer) = asked.and_then(|at| answers.known[at]) {
                row.presence = Presence::Manifest {
                    reference: numbers[answer.manifest],
                    algorithm: answer.algorithm,
                };
            } else if failed.binary_search(&names[0]).is_ok() {
                row.presence = Presence::Unread;
            }
        }
    }

    /// Sorts the contents by their first names.
    pub(super) fn sort(&mut self) {
        let names = &self.names;
        self.rows
            .sort_unstable_by_key(|row| names[row.start as usize]);
    }
}
