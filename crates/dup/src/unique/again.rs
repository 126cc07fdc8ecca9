//! A last look at all that an answer rests on: what was written to, or came to be there, while the
//! search was at work was not searched.

use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;

use bc_walk::{DirId, EntryId, Error, ErrorKind, FileKind, Listing};

use super::Unique;
use super::contents::Standing;
use crate::prune::sys;

impl Unique {
    /// Compares what was found with the trees as they are now, `again` being a new walk of the same
    /// roots with the same options. What changed or came to be there is told in
    /// [`errors`](Unique::errors), and of a content whose file or witness changed nobody knows where
    /// else it is.
    pub fn look_again(&mut self, again: &Listing) {
        let mut seen = Seen::default();
        seen.compare(&self.listing, self.own_entries, again);
        let known: HashSet<&[u8]> = self.listing.errors().iter().map(Error::path).collect();
        let new = again.errors().iter();
        let new = new.filter(|error| !known.contains(error.path()));
        seen.errors.extend(new.cloned());
        let gone = seen.changed_witnesses(&self.listing, &self.relied);
        for (row, names) in self.contents.rows_mut() {
            if names.iter().any(|name| seen.changed.contains(name)) || gone.contains(&names[0]) {
                row.standing = Standing::Unread;
            }
        }
        self.unseen = again.skipped().clone();
        self.errors.extend(seen.errors);
    }
}

/// What the last look found.
#[derive(Default)]
struct Seen {
    errors: Vec<Error>,
    /// Files of the trees.
    changed: HashSet<EntryId>,
}

impl Seen {
    /// Both are in one order, that of a walk; mostly nothing changed, and the two go side by side.
    fn compare(&mut self, was: &Listing, own: usize, again: &Listing) {
        let (mut left, mut now) = (was.ids().take(own), again.ids());
        let (mut one, mut other) = (left.next(), now.next());
        while let (Some(entry), Some(found)) = (one, other) {
            if was.path(entry) != again.path(found) {
                break;
            }
            self.note((was, entry), (again, found));
            (one, other) = (left.next(), now.next());
        }
        let rest = one.into_iter().chain(left);
        let before: HashMap<_, _> = rest.map(|entry| (was.path(entry), entry)).collect();
        for found in other.into_iter().chain(now) {
            let path = again.path(found);
            match before.get(&path) {
                Some(entry) => self.note((was, *entry), (again, found)),
                // What is in a new directory is told.
                None if again.kind(found) == FileKind::Dir => {}
                None => {
                    let text = "came to be there meanwhile";
                    self.errors.push(Error::with_message(path, "search", text));
                }
            }
        }
    }

    fn note(&mut self, (was, entry): (&Listing, EntryId), (again, found): (&Listing, EntryId)) {
        let state = |listing: &Listing, entry| {
            let kind = listing.kind(entry);
            let meta = listing.meta(entry).filter(|_| kind == FileKind::File);
            (kind, meta.map(|meta| meta.stamp))
        };
        if state(was, entry) != state(again, found) {
            self.errors.push(changed(was.path(entry)));
            self.changed.insert(entry);
        }
    }

    /// The first names of what rests on witnesses that are not as they were read.
    fn changed_witnesses(
        &mut self,
        listing: &Listing,
        relied: &[(EntryId, EntryId)],
    ) -> HashSet<EntryId> {
        let mut gone = HashSet::new();
        let mut opened: Option<(DirId, OwnedFd)> = None;
        for (name, witness) in relied {
            let dir = listing.dir(*witness);
            if opened.as_ref().is_none_or(|(known, _)| *known != dir) {
                opened = listing.open_dir(dir).ok().map(|opened| (dir, opened));
            }
            let at = opened.as_ref().map(|(_, opened)| opened);
            let now = at.and_then(|at| sys::stat_at(at, listing.name(*witness)).ok());
            let now = now.map(|stat| stat.stamp);
            if now.is_none() || now != listing.meta(*witness).map(|meta| meta.stamp) {
                self.errors.push(changed(listing.path(*witness)));
                gone.insert(*name);
            }
        }
        gone
    }
}

fn changed(path: Vec<u8>) -> Error {
    Error::of_kind(path, "read", ErrorKind::Changed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subtrees::Subtrees;
    use crate::unique::{Sides, UniqueOptions, unique};
    use bc_hash::HashProgress;
    use bc_pool::Cancel;
    use bc_testkit::TestTree;
    use bc_walk::{Entries, Metadata, WalkOptions, walk};
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    fn listing(t: &TestTree, name: &str) -> Listing {
        let options = WalkOptions::default()
            .metadata(Metadata::Basic)
            .entries(Entries::All);
        let root = t.join(name).into_os_string();
        walk(&[root], &options, 1, &Cancel::new()).unwrap()
    }

    /// Asks, changes something, and looks again: what is told, and whether all is elsewhere.
    fn after(change: impl FnOnce(&TestTree)) -> (Vec<String>, bool) {
        let t = TestTree::new();
        t.write("card/a", "a photo").write("card/sub/b", "another");
        t.write("ref/a", "a photo").write("ref/b", "another");
        let path = |name: &str| OsString::into_vec(t.join(name).into_os_string());
        let sides = Sides {
            paths: listing(&t, "card"),
            path_roots: 1,
            own: Subtrees::open([path("card")]).unwrap(),
            references: listing(&t, "ref"),
            reference_roots: &[0],
            manifests: &mut [],
            manifest_numbers: &[],
        };
        let (progress, hashed) = (Default::default(), HashProgress::default());
        let options = UniqueOptions::new();
        let found = unique(sides, &options, &Cancel::new(), &progress, &hashed);
        let mut found = found.unwrap();
        assert!(found.errors.is_empty() && found.nowhere().next().is_none());
        change(&t);
        found.look_again(&listing(&t, "card"));
        let own = t.path().as_os_str().len() + 1;
        let told = found.errors.iter();
        let told = told.map(|error| error.to_string()[own..].to_owned());
        let known = |standing| matches!(standing, Standing::Directory { .. });
        let all = found.contents().all(|content| known(content.standing));
        (told.collect(), all)
    }

    #[test]
    fn what_changes_meanwhile_is_noticed() {
        assert_eq!(after(|_| ()), (vec![], true));
        for name in ["card/sub/b", "ref/a"] {
            let (told, all) = after(|t| {
                t.write(name, "another!");
            });
            let is_it = told[0].starts_with(&format!("{name}: "));
            assert!(is_it && told.len() == 1 && !all, "{told:?}");
        }
        let (told, all) = after(|t| {
            t.remove("ref/b");
        });
        assert!(told[0].starts_with("ref/b: ") && !all, "{told:?}");
        let (told, _) = after(|t| {
            t.write("card/a0", "new").write("card/z/z", "new");
        });
        let came = "search: came to be there meanwhile";
        let all = ["card/a0", "card/z/z"].map(|name| format!("{name}: {came}"));
        assert_eq!(told, all);
        let (told, _) = after(|t| std::fs::rename(t.join("card/a"), t.join("card/c")).unwrap());
        assert_eq!(told, [format!("card/c: {came}")]);
    }
}
