//! The guard below the root for callers that write where files are missing: a file system that was
//! recorded there and is not mounted, or another one in its place, refuses the whole, as a root
//! that looks unmounted does.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use bc_manifest::integrity::{Entry, Header};
use bc_walk::job::{Error, ErrorKind, path_of};

use crate::Setting;
use crate::change::Class;
use crate::entry_loader::LoadedEntry;
use crate::entry_ref::{EntryRef, is_same_mtime};
use crate::evidence::Weight;
use crate::options::{MissingMounts, RootCheck};
use crate::sides::Absence;
use crate::tree::Tree;
use crate::unmounted::{Knows, Replaced, why_lost};

/// State of the mounts below a root, as found so far.
pub(crate) struct MountGuard<'a> {
    root: &'a OsStr,
    refuses: bool,
    replaced: Replaced,
    knows: Knows,
}

impl<'a> MountGuard<'a> {
    pub(crate) fn new(
        root: &'a OsStr,
        missing: MissingMounts,
        check: RootCheck,
        header: &Header,
    ) -> MountGuard<'a> {
        MountGuard {
            root,
            refuses: missing == MissingMounts::Refuse && check == RootCheck::Careful,
            replaced: Replaced::default(),
            knows: match header.mount_root {
                Some(_) => Knows::All,
                None => Knows::Nothing,
            },
        }
    }

    /// True if entries have to come one by one.
    pub(crate) fn needs_each(&self) -> bool {
        self.refuses && !self.replaced.is_empty()
    }

    /// Takes a path of both sides, before it is judged.
    pub(crate) fn see(&mut self, tree: &Tree, old: &Entry, new: &LoadedEntry<'_>) {
        if self.refuses {
            let mount = new.id.and_then(|id| tree.any_mount(id));
            self.replaced.see(old, new, mount, self.knows);
        }
    }

    /// Takes the class of a path of both sides.
    pub(crate) fn judged(&mut self, old: &Entry, new: &EntryRef<'_>, class: Class) {
        let view = EntryRef::from(old);
        if let Some(weight) = Weight::of(&view).filter(|_| self.needs_each()) {
            let copied = view.size.is_some() && view.size == new.size && is_same_mtime(&view, new);
            let matches = matches!(class, Class::Ok | Class::Meta) || copied;
            self.replaced.leaf(&old.path, weight, matches);
        }
    }

    /// Takes a path that the tree does not have. Refuses one on a file system that is not mounted,
    /// unless missing mounts are only reported.
    pub(crate) fn gone(&mut self, old: &Entry, why: Absence<'_>) -> Result<(), Error> {
        match why {
            Absence::Removed if self.needs_each() => {
                if let Some(weight) = Weight::of(&EntryRef::from(old)) {
                    self.replaced.leaf(&old.path, weight, false);
                }
            }
            Absence::Unmounted(lost, _) if self.refuses => {
                if let Some(why) = why_lost(old, lost) {
                    return Err(self.refused(&old.path, why));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Refuses another file system in place of a recorded one if nothing in it matches.
    pub(crate) fn conclude(&self) -> Result<(), Error> {
        match self.replaced.first().filter(|_| self.refuses) {
            Some(path) => {
                let why = "another file system is mounted here than was recorded, and nothing in \
                           it matches";
                Err(self.refused(path, why.to_owned()))
            }
            None => Ok(()),
        }
    }

    fn refused(&self, path: &[u8], why: String) -> Error {
        let mut shown = self.root.as_bytes().to_vec();
        if !shown.ends_with(b"/") {
            shown.push(b'/');
        }
        shown.extend_from_slice(path);
        Error::at(ErrorKind::Refused, &path_of(&shown), why).unless(Some(Setting::Force))
    }
}
