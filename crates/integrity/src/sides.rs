//! The merge-join under every comparison: an old manifest beside a tree, or beside a newer
//! manifest, in path order. Each path comes once, and of a path that only the old side has it is
//! known why. Entries known to be the same are not looked at again.

use std::sync::Arc;

use bc_manifest::integrity::{Entry, ROOT};
use bc_walk::EntryId;
use bc_walk::job::Error;

use crate::absence::{Absence, Here};
use crate::entry_ref::EntryRef;
use crate::tree::loader::{EntryLoader, LoadedEntry};
pub(crate) mod runs;

use crate::input::passing::{LineRun, Passing};
use crate::input::stream::{ManifestStream, Position};
use crate::input::{ManifestFile, Trust};
use crate::options::{RootCheck, Work, XattrPolicy};
use std::ops::ControlFlow;

use crate::absence::{MissingMount, Unmounted};
use crate::tree::Tree;
use crate::tree::unread::{UnreadDir, UnreadDirs};

/// A path of either side, or of both.
#[derive(Clone, Copy)]
pub(crate) enum Pair<'p> {
    /// Both sides have it.
    Both {
        entry: &'p Entry,
        /// The fields of `entry` to compare.
        old: EntryRef<'p>,
        new: &'p LoadedEntry<'p>,
    },
    /// Only the old side has it, or what the new side has there is in the place of a mount.
    Gone(&'p Entry, Absence<'p>),
    /// Only the new side has it.
    Added {
        new: &'p LoadedEntry<'p>,
        /// Directory above it that the old side could not read, if there is one.
        above: Option<UnreadDir<'p>>,
        /// True if it lies where a file system was mounted that is missing.
        hides: bool,
    },
}

/// Receiver of the paths of both sides.
pub(crate) trait Receiver {
    /// Takes the next path.
    fn pair(&mut self, pair: Pair<'_>) -> Result<ControlFlow<()>, Error>;

    /// Takes entries of both sides without a difference. Returns `false` if they are to come one by
    /// one.
    fn same(&mut self, _: &LineRun) -> bool {
        false
    }
}

/// An old manifest, and the side that it is compared with.
pub(crate) struct Sides<'a> {
    old: ManifestStream,
    now: Now<'a>,
    /// Directories that could not be read when they were recorded.
    unread: UnreadDirs,
    unmounted: Unmounted,
}

/// The new side, as far as it determines why a path is missing.
enum Now<'a> {
    Tree(&'a Tree),
    /// A manifest, by the directories that it could not read.
    Manifest(UnreadDirs),
}

impl Now<'_> {
    fn absence(&self, unmounted: &mut Unmounted, entry: &Entry) -> Absence<'_> {
        match self {
            Now::Tree(tree) => match tree.why_unseen(&entry.path) {
                Some(above) => Absence::Unread(above),
                None => match unmounted.see(entry, None) {
                    MissingMount::No if tree.is_left_out(&entry.path) => Absence::LeftOut,
                    MissingMount::No => Absence::Removed,
                    lost => Absence::Unmounted(lost, Here::Nothing),
                },
            },
            Now::Manifest(unread) => unread
                .above(&entry.path)
                .map_or(Absence::Removed, Absence::Unread),
        }
    }
}

impl<'a> Sides<'a> {
    /// Compares a manifest with a tree; `unmounted` knows the mounts that are replaced.
    pub(crate) fn of_tree(old: ManifestStream, tree: &'a Tree, unmounted: Unmounted) -> Sides<'a> {
        Sides {
            old,
            now: Now::Tree(tree),
            unread: UnreadDirs::default(),
            unmounted,
        }
    }

    /// Compares a manifest with another one, in which nothing is mounted.
    pub(crate) fn of_manifest(old: ManifestStream) -> Sides<'a> {
        Sides {
            old,
            now: Now::Manifest(UnreadDirs::default()),
            unread: UnreadDirs::default(),
            unmounted: Unmounted::new(RootCheck::Forced),
        }
    }

    /// Returns the parts of a damaged manifest that were skipped, in words; complete at the end.
    pub(crate) fn problems(&self) -> &[String] {
        self.old.problems()
    }

    /// Passes on the next path of the new side, with the old side's before it.
    pub(crate) fn up_to(
        &mut self,
        new: &LoadedEntry<'_>,
        to: &mut impl Receiver,
    ) -> Result<ControlFlow<()>, Error> {
        if let Now::Manifest(unread) = &mut self.now {
            unread.see(new.path, &new.view);
        }
        let root_dev = self.old.header().root_dev;
        while let Some((position, entry)) = self.old.take_up_to(new.path)? {
            let mut old = EntryRef::from(entry);
            self.unread.see(&entry.path, &old);
            if position == Position::Before {
                let why = self.now.absence(&mut self.unmounted, entry);
                if to.pair(Pair::Gone(entry, why))?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                continue;
            }
            return to.pair(match self.unmounted.see(entry, Some(new)) {
                MissingMount::No => {
                    if entry.path == ROOT {
                        old.dev = root_dev;
                    }
                    Pair::Both { entry, old, new }
                }
                lost => Pair::Gone(entry, Absence::Unmounted(lost, Here::Other)),
            });
        }
        to.pair(Pair::Added {
            new,
            above: self.unread.above(new.path),
            hides: self.unmounted.covers(new.path),
        })
    }

    /// Passes on the old side's paths that are left.
    pub(crate) fn rest(&mut self, to: &mut impl Receiver) -> Result<(), Error> {
        self.before(None, to).map(drop)
    }

    /// Passes on the old side's paths before `path`, none of which the new side has.
    fn before(
        &mut self,
        path: Option<&[u8]>,
        to: &mut impl Receiver,
    ) -> Result<ControlFlow<()>, Error> {
        while let Some(entry) = match path {
            Some(path) => self.old.take_before(path)?,
            None => self.old.take()?,
        } {
            self.unread.see(&entry.path, &EntryRef::from(entry));
            let why = self.now.absence(&mut self.unmounted, entry);
            if to.pair(Pair::Gone(entry, why))?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Finds most of the entries that are the same by what the walk knows of them, if the
    /// manifest's SHA-256 was found right.
    pub(crate) fn find_same(
        &self,
        loader: &EntryLoader<'_>,
        manifest: &ManifestFile,
        work: &Work<'_>,
    ) -> Result<Arc<[LineRun]>, Error> {
        if loader.xattrs() != XattrPolicy::Skip {
            return Ok(Arc::default());
        }
        runs::find(
            manifest,
            self.old.header(),
            loader.tree,
            manifest.directory(),
            work.walk_workers.usual(),
            work.cancel,
        )
    }

    /// Runs through the tree, none of which is read, and all that the manifest has. The entries of
    /// `same` come together where the receiver takes them so; they are not read from the manifest.
    pub(crate) fn join(
        &mut self,
        loader: &mut EntryLoader<'_>,
        manifest: &ManifestFile,
        same: &Arc<[LineRun]>,
        work: &Work<'_>,
        to: &mut impl Receiver,
    ) -> Result<(), Error> {
        self.old.leave_out(Passing::over(same));
        let mut next = 0;
        let mut path = Vec::new();
        for run in &same[..] {
            let between = next..run.ids.start;
            if loader
                .all_of(between, work.cancel, |new| self.up_to(new, to))?
                .is_break()
            {
                return Ok(());
            }
            path.clear();
            let first = EntryId(run.ids.start);
            loader.tree.listing.write_relative(first, &mut path);
            if self.before(Some(&path), to)?.is_break() {
                return Ok(());
            }
            // They may lie below a missing mount.
            if self.unmounted.any() || !to.same(run) {
                // Its lines, in the place of those behind it.
                let lines = manifest.again(Trust::Checked)?.only(run);
                let rest = std::mem::replace(&mut self.old, lines);
                let ids = run.ids.clone();
                let flow = loader.all_of(ids, work.cancel, |new| self.up_to(new, to))?;
                self.old = rest;
                if flow.is_break() {
                    return Ok(());
                }
            }
            next = run.ids.end;
        }
        let end = loader.tree.listing.len() as u32;
        match loader.all_of(next..end, work.cancel, |new| self.up_to(new, to))? {
            ControlFlow::Continue(()) => self.rest(to),
            ControlFlow::Break(()) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bc_manifest::Failure;
    use bc_manifest::integrity::{Header, Kind, Meta, Writer};

    /// A manifest of directories at these paths; those with a `!` could not be read.
    fn manifest(paths: &[&str]) -> ManifestFile {
        let mut writer = Writer::new(Vec::new(), &Header::new("sha256", "0.1.0")).unwrap();
        for path in paths {
            let name = path.trim_end_matches('!');
            let mut entry = Entry::new(name.into(), Kind::Dir);
            entry.meta = Some(Meta::default());
            entry.error = (name != *path).then(|| Failure {
                op: "open".to_owned(),
                errno: None,
                message: "no".to_owned(),
            });
            writer.write(&entry).unwrap();
        }
        let (bytes, _) = writer.finish().unwrap();
        ManifestFile::from_reader(b"memory", &bytes[..]).unwrap()
    }

    /// Notes each pair, and stops behind so many.
    struct Noted(Vec<String>, usize);

    impl Receiver for Noted {
        fn pair(&mut self, pair: Pair<'_>) -> Result<ControlFlow<()>, Error> {
            let text = |path: &[u8]| String::from_utf8_lossy(path).into_owned();
            self.0.push(match pair {
                Pair::Both { entry, new, .. } => {
                    assert_eq!(entry.path, new.path);
                    format!("={}", text(new.path))
                }
                Pair::Gone(entry, Absence::Removed) => format!("-{}", text(&entry.path)),
                Pair::Gone(entry, Absence::Unread(above)) => {
                    format!("?{} in {}", text(&entry.path), text(above.path))
                }
                Pair::Gone(entry, why) => panic!("{} {why:?}", text(&entry.path)),
                Pair::Added { new, above, hides } => {
                    assert!(!hides);
                    let above = above.map_or(String::new(), |above| text(above.path));
                    format!("+{} {above}", text(new.path)).trim_end().to_owned()
                }
            });
            Ok(match self.0.len() < self.1 {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            })
        }
    }

    fn pairs(old: &[&str], new: &[&str], most: usize) -> String {
        let old = manifest(old).again(Trust::Checked).unwrap();
        let mut new = manifest(new).again(Trust::Checked).unwrap();
        let mut noted = Noted(Vec::new(), most);
        let mut sides = Sides::of_manifest(old);
        let mut flow = ControlFlow::Continue(());
        while flow.is_continue()
            && let Some(entry) = new.take().unwrap()
        {
            let new = LoadedEntry::unlisted(&entry.path, EntryRef::from(entry));
            flow = sides.up_to(&new, &mut noted).unwrap();
        }
        if flow.is_continue() {
            sides.rest(&mut noted).unwrap();
        }
        noted.0.join(", ")
    }

    #[test]
    fn each_path_comes_once_and_in_order() {
        let all = usize::MAX;
        assert_eq!(pairs(&[], &[], all), "");
        let (old, new) = (["a", "a-b", "a/c", "x", "y"], ["a", "a/b", "a/c", "b"]);
        assert_eq!(pairs(&old, &new, all), "=a, -a-b, +a/b, =a/c, +b, -x, -y");
        // Behind a stop nothing comes, on either side.
        assert_eq!(pairs(&old, &new, 2), "=a, -a-b");
        assert_eq!(pairs(&old, &new, 5), "=a, -a-b, +a/b, =a/c, +b");
        assert_eq!(pairs(&old, &new, 6), "=a, -a-b, +a/b, =a/c, +b, -x");
    }

    #[test]
    fn below_an_unread_directory_nothing_is_certain() {
        let all = usize::MAX;
        let (old, new) = (["a", "a/b", "b!", "c"], ["a!", "b", "b/c", "c", "c/d"]);
        assert_eq!(
            pairs(&old, &new, all),
            "=a, ?a/b in a, =b, +b/c b, =c, +c/d"
        );
        // Paths that come last, and a directory that only the old side has.
        let (old, new) = (["a", "b!", "b/c", "z", "z/y"], ["a", "z!"]);
        assert_eq!(pairs(&old, &new, all), "=a, -b, -b/c, =z, ?z/y in z");
    }
}
