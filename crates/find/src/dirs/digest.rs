//! The digest of a directory, made of the kinds, names and contents of its entries.
//!
//! It is the digest of one record for each entry of the directory, in bytewise order of their names:
//! a letter (`f` a file, `l` a symbolic link, `d` a directory), the entry's digest in lower-case hex,
//! its name and a NUL. The digest of a file is that of its bytes, of a link that of its target's
//! text, of a directory this one; of one that holds nothing, that of nothing. Without names it is
//! the digest of one record for each file, link and empty directory at any depth, in bytewise order
//! of the records, which have no name.

use std::collections::{HashMap, HashSet};

use bc_digest::{Algorithm, Digest, Hasher};
use bc_hash::{DigestSink, HashOptions, HashProgress, hash_with};
use bc_pool::Cancel;
use bc_walk::{DirId, EntryId, Error, ErrorKind, FileStat, Listing};

use super::equal::{Classes, Contents};
use super::tree::{DirItem, DirTree};
use crate::scan::Scan;

/// The algorithm of directories' digests beside that of a search: always one of 256 bits.
pub fn algorithm(search: Algorithm) -> Algorithm {
    match search {
        Algorithm::Sha256 => Algorithm::Sha256,
        _ => Algorithm::Blake3,
    }
}

/// Digests of contents, by number.
pub(crate) struct Digests {
    algorithm: Algorithm,
    files: HashMap<u32, Digest>,
}

impl Digests {
    /// Starts with the search's digests, if its algorithm is the one that directories use.
    pub(crate) fn new(search: Algorithm, scan: &Scan) -> Digests {
        let algorithm = algorithm(search);
        let groups = (0..).zip(scan.groups());
        Digests {
            algorithm,
            files: match search == algorithm {
                true => groups
                    .map(|(number, group)| (number, group.digest))
                    .collect(),
                false => HashMap::new(),
            },
        }
    }

    /// Reads the files below these directories whose digests are unknown, one of each content.
    /// Returns those that could not be read as they were listed.
    ///
    /// # Errors
    /// A worker that panicked.
    pub(crate) fn read(
        &mut self,
        tree: &DirTree<'_>,
        dirs: &[DirId],
        options: &HashOptions,
        cancel: &Cancel,
        progress: &HashProgress,
    ) -> Result<Vec<(EntryId, Error)>, bc_walk::job::Error> {
        let mut wanted: HashMap<EntryId, u32> = HashMap::new();
        let mut numbers = HashSet::new();
        for dir in dirs.iter().flat_map(|dir| tree.below(*dir)) {
            for &entry in tree.entries(dir) {
                if let DirItem::File(content) = tree.item(entry)
                    && !self.files.contains_key(&content)
                    && numbers.insert(content)
                {
                    wanted.insert(entry, content);
                }
            }
        }
        let mut entries: Vec<EntryId> = wanted.keys().copied().collect();
        entries.sort_unstable();
        let options = options.clone().algorithms(vec![self.algorithm]);
        let plan = bc_read::order::plan(tree.listing, entries, options.workers, cancel);
        let sink = |_| TreeSink {
            listing: tree.listing,
            digests: Vec::new(),
            failures: Vec::new(),
        };
        let (sinks, _) = hash_with(tree.listing, &plan, &options, cancel, progress, sink)?;
        let mut failures = Vec::new();
        for sink in sinks {
            failures.extend(sink.failures);
            let digests = sink.digests.into_iter();
            self.files
                .extend(digests.map(|(entry, digest)| (wanted[&entry], digest)));
        }
        failures.sort_unstable_by_key(|(entry, _)| *entry);
        Ok(failures)
    }

    /// The digest of a directory with its names.
    pub(crate) fn with_names(
        &self,
        tree: &DirTree<'_>,
        contents: &Contents,
        classes: &Classes,
        known: &mut HashMap<u32, Digest>,
        class: u32,
    ) -> Option<Digest> {
        let mut below: Vec<u32> = Vec::new();
        for dir in tree.below(classes.first[class as usize]) {
            below.extend(classes.of(dir).filter(|class| !known.contains_key(class)));
        }
        // Directories inside a directory have lower numbers.
        below.sort_unstable();
        below.dedup();
        for class in below {
            let mut hasher = DirHasher::new(self.algorithm);
            for &entry in tree.entries(classes.first[class as usize]) {
                let (kind, digest) = match tree.item(entry) {
                    DirItem::Dir(dir) => (b'd', *known.get(&classes.of(dir)?)?),
                    item => self.of_item(contents, item)?,
                };
                hasher.add(kind, digest, tree.listing.name(entry).to_bytes());
            }
            known.insert(class, hasher.end());
        }
        known.get(&class).copied()
    }

    /// The digest of a directory without names.
    pub(crate) fn without_names(
        &self,
        tree: &DirTree<'_>,
        contents: &Contents,
        dir: DirId,
    ) -> Option<Digest> {
        let mut all = Vec::new();
        for dir in tree.below(dir) {
            for &entry in tree.entries(dir) {
                match tree.item(entry) {
                    DirItem::Dir(dir) if !tree.entries(dir).is_empty() => {}
                    DirItem::Dir(_) => all.push(self.of_item(contents, DirItem::Closed)?),
                    item => all.push(self.of_item(contents, item)?),
                }
            }
        }
        all.sort_unstable_by(|(kind, digest), (other_kind, other)| {
            (kind, digest.as_bytes()).cmp(&(other_kind, other.as_bytes()))
        });
        let mut hasher = DirHasher::new(self.algorithm);
        for (kind, digest) in all {
            hasher.add(kind, digest, b"");
        }
        Some(hasher.end())
    }

    fn of_item(&self, contents: &Contents, item: DirItem) -> Option<(u8, Digest)> {
        let of_bytes = |bytes| bc_digest::hash(self.algorithm, bytes);
        match item {
            DirItem::File(content) => Some((b'f', *self.files.get(&content)?)),
            DirItem::Link(target) => Some((b'l', of_bytes(&contents.targets[target as usize]))),
            DirItem::Closed => Some((b'd', of_bytes(b""))),
            DirItem::Dir(_) | DirItem::Alone | DirItem::Unknown => None,
        }
    }
}

/// The digest of a directory in the making, record by record.
pub(super) struct DirHasher(Hasher);

impl DirHasher {
    pub(super) fn new(algorithm: Algorithm) -> DirHasher {
        DirHasher(Hasher::new(algorithm))
    }

    /// Adds the record of an entry.
    pub(super) fn add(&mut self, kind: u8, digest: Digest, name: &[u8]) {
        self.0.update(&[kind]);
        self.0.update(digest.to_string().as_bytes());
        self.0.update(name);
        self.0.update(&[0]);
    }

    pub(super) fn end(self) -> Digest {
        self.0.finalize()
    }
}

struct TreeSink<'a> {
    listing: &'a Listing,
    digests: Vec<(EntryId, Digest)>,
    failures: Vec<(EntryId, Error)>,
}

impl DigestSink for TreeSink<'_> {
    fn file(&mut self, entry: EntryId, result: Result<(&FileStat, &[Digest]), Error>) {
        let listed = self.listing.meta(entry).map(|meta| meta.stamp);
        let changed = || Error::of_kind(self.listing.path(entry), "read", ErrorKind::Changed);
        match result {
            Ok((stat, [digest])) if listed == Some(stat.stamp) => {
                self.digests.push((entry, *digest));
            }
            Ok(_) => self.failures.push((entry, changed())),
            Err(error) => self.failures.push((entry, error)),
        }
    }
}
