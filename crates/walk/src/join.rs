//! Two listings as one, for work that distinguishes files of one walk from those of another and
//! reads both.

use crate::listing::{Dir, DirId, EntryId, NO_PARENT, NO_WALK_ROOT, PathPrefix};
use crate::{Listing, Skipped};

impl Listing {
    /// Appends the entries of `other`, which keep their order and follow all that are here: the
    /// whole is in path order within each of the two alone. Files that both have found are listed
    /// twice. Directories have ids of their own, and the roots of `other` are counted on from
    /// `roots`, as many as this listing was made of. Errors, gaps and skipped paths stay in order
    /// by walk, and the counters are added up.
    ///
    /// Both have to come from walks with the same [`Metadata`](crate::Metadata) and the same
    /// [`Symlinks`](crate::Symlinks).
    ///
    /// # Panics
    /// If one has metadata and the other has none, or beyond 2^32 entries.
    pub fn append(&mut self, other: Listing, roots: usize) {
        let (entries, dirs) = (self.entries.len(), self.dirs.len() as u32);
        let other_entries = other.entries.len();
        assert!(
            self.entries.is_empty()
                || other.entries.is_empty()
                || self.columns.is_empty() == other.columns.is_empty(),
            "listings with and without metadata"
        );
        assert!(
            entries + other.entries.len() <= u32::MAX as usize,
            "more than 4294967295 entries"
        );
        let shift = Shift {
            dirs,
            prefixes: self.prefixes.len() as u32,
            arenas: self.arenas.len() as u16,
            walk_roots: self.began.len() as u32,
            roots: roots as u32,
        };
        self.entries
            .extend(other.entries.into_iter().map(|mut entry| {
                entry.dir += dirs;
                entry
            }));
        self.columns.append(other.columns, self.classes.len());
        self.classes.extend(other.classes);
        self.dirs
            .extend(other.dirs.into_iter().map(|dir| shift.dir(dir)));
        self.began.extend(other.began);
        self.arenas.extend(other.arenas);
        let prefixes = other.prefixes.into_iter();
        self.prefixes
            .extend(prefixes.map(|prefix| shift.prefix(prefix)));
        let listed = other.listed.into_iter();
        self.listed.extend(
            listed.map(|(EntryId(entry), root)| {
                (EntryId(entry + entries as u32), root + shift.roots)
            }),
        );
        self.named_bytes = None;
        self.errors.extend(other.errors);
        self.absent.extend(other.absent);
        let skipped: &Skipped = &other.skipped;
        self.skipped.add(skipped);
        self.skipped_paths.extend(other.skipped_paths);
        let gaps = other.gaps.into_iter();
        self.gaps
            .extend(gaps.map(|(DirId(dir), gap)| (DirId(dir + dirs), gap)));
        self.directories += other.directories;
        self.cancelled |= other.cancelled;
        self.file_metadata = match (entries, other_entries) {
            (0, _) => other.file_metadata,
            (_, 0) => self.file_metadata,
            _ => self.file_metadata.min(other.file_metadata),
        };
    }
}

/// Offsets that are added to the numbers in the appended listing.
struct Shift {
    dirs: u32,
    prefixes: u32,
    arenas: u16,
    walk_roots: u32,
    roots: u32,
}

impl Shift {
    fn dir(&self, mut dir: Dir) -> Dir {
        if dir.parent != NO_PARENT {
            dir.parent += self.dirs;
        }
        if dir.walk_root != NO_WALK_ROOT {
            dir.walk_root += self.walk_roots;
        }
        dir.prefix += self.prefixes;
        dir.arena += self.arenas;
        dir.name_arena += self.arenas;
        dir
    }

    fn prefix(&self, mut prefix: PathPrefix) -> PathPrefix {
        prefix.root += self.roots;
        prefix
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use bc_pool::Cancel;

    use crate::{Entries, Listing, Metadata, SkippedDetail, WalkOptions, walk};

    fn list(tree: &Path, roots: &[&str], entries: Entries) -> Listing {
        let roots: Vec<_> = roots
            .iter()
            .map(|root| tree.join(root).into_os_string())
            .collect();
        let options = WalkOptions {
            metadata: Metadata::Basic,
            entries,
            ..WalkOptions::default()
        };
        walk(&roots, &options, 2, &Cancel::new()).unwrap()
    }

    #[test]
    fn each_entry_is_what_it_was_alone() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path();
        for made in ["a/sub", "b/deep/er"] {
            fs::create_dir_all(tree.join(made)).unwrap();
        }
        for name in ["a/x", "a/sub/y", "b/z", "f", "g"] {
            fs::write(tree.join(name), name).unwrap();
        }
        std::os::unix::fs::symlink("z", tree.join("b/l")).unwrap();
        fs::hard_link(tree.join("a/x"), tree.join("b/deep/x")).unwrap();
        for (one, other) in [
            (&["a", "f"][..], &["b", "g"][..]),
            (&["a"], &["a", "b"]),
            (&[], &["b"]),
            (&["b", "f", "g"], &[]),
            (&["f"], &["g", "f"]),
        ] {
            let parts = || {
                let files = list(tree, other, Entries::Files);
                [list(tree, one, Entries::All), files]
            };
            let [mut joined, rest] = parts();
            joined.append(rest, one.len());
            let [first, second] = parts();
            let len = first.len() as u32;
            assert_eq!(joined.len(), first.len() + second.len());
            for id in joined.ids() {
                let (alone, own, roots) = match id.0.checked_sub(len) {
                    None => (&first, id, 0),
                    Some(at) => (&second, crate::EntryId(at), one.len()),
                };
                assert_eq!(joined.path(id), alone.path(own));
                assert_eq!(joined.meta(id), alone.meta(own));
                assert_eq!(joined.kind(id), alone.kind(own));
                assert_eq!(joined.root(id), alone.root(own) + roots);
                assert_eq!(joined.follow(id), alone.follow(own));
                let identity = |listing: &Listing, id| listing.dir_identity(listing.dir(id));
                assert_eq!(identity(&joined, id), identity(alone, own));
                assert!(joined.open_dir(joined.dir(id)).is_ok());
            }
            assert_eq!(
                joined.directories(),
                first.directories() + second.directories()
            );
        }
    }

    /// Checks that a listing's gaps and skipped paths remain when it becomes a part of another.
    #[test]
    fn what_is_missing_is_told_of_both() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path();
        for made in ["a/in", "b/in"] {
            fs::create_dir_all(tree.join(made)).unwrap();
            fs::write(tree.join(made).join("kept"), "x").unwrap();
            fs::write(tree.join(made).join("large"), "a lot of text").unwrap();
        }
        let list = |name: &str| {
            let options = WalkOptions {
                metadata: Metadata::Basic,
                max_size: Some(3),
                skipped: SkippedDetail::Paths,
                ..WalkOptions::default()
            };
            walk(&[tree.join(name)], &options, 2, &Cancel::new()).unwrap()
        };
        let gaps = |listing: &Listing| -> Vec<_> {
            let gaps = listing.gaps().iter();
            gaps.map(|(dir, gap)| (listing.dir_path(*dir), *gap))
                .collect()
        };
        let passed_over = |listing: &Listing| -> Vec<_> {
            let paths = listing.skipped_paths().iter();
            paths.map(|passed| passed.path.clone()).collect()
        };
        let mut joined = list("a");
        joined.append(list("b"), 1);
        assert_eq!(gaps(&joined), [gaps(&list("a")), gaps(&list("b"))].concat());
        assert_eq!(gaps(&joined).len(), 2);
        let both = [passed_over(&list("a")), passed_over(&list("b"))].concat();
        assert_eq!(passed_over(&joined), both);
        assert_eq!(both.len(), 2);
    }
}
