//! Files that keep their digests unread.

use bc_fs::known::is_kept_as;
use bc_fs::mount::{CtimeTrust, Inodes, Mounts, Traits};
use bc_manifest::time::is_beyond;
use bc_walk::EntryId;

use crate::entry_ref::{EntryRef, is_same_ctime, is_same_mtime};
use crate::steps::may_hide_an_edit;
use crate::tree::Tree;

/// Evidence from `stat` that a file's content is unchanged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Unchanged {
    /// Size, mtime, ctime and inode number are as recorded.
    Yes,
    /// Path, size and mtime are as recorded, and nothing else can be compared: the tree was copied,
    /// or the file system numbers its files again.
    ByName,
    /// As `ByName`, but the ctime can be compared too, and is another one: in a copy it has to be;
    /// on the recorded file system the file was changed.
    IfCopied,
    /// Something differs that should not.
    No,
}

/// Judges the files of one tree.
pub(super) struct Judge<'a> {
    tree: &'a Tree,
    mounts: Mounts,
    /// True if the root is on another device than recorded.
    elsewhere: bool,
    /// Devices on which an entry has the recorded ctime, which no program can set: these are no
    /// copies, but file systems whose device numbers change with each mount.
    originals: Vec<u64>,
}

impl<'a> Judge<'a> {
    pub(super) fn new(tree: &'a Tree, elsewhere: bool) -> Judge<'a> {
        Judge {
            tree,
            mounts: Mounts::default(),
            elsewhere,
            originals: Vec::new(),
        }
    }

    /// Notes an entry that still has its ctime.
    pub(super) fn note_same_ctime(&mut self, old: &EntryRef<'_>, new: &EntryRef<'_>, id: EntryId) {
        if !self.elsewhere || !is_same_ctime(old, new) || self.is_original(id) {
            return;
        }
        let Some(dev) = self.tree.listing.identity(id).map(|id| id.dev) else {
            return;
        };
        let says = self.traits(id).map(|traits| traits.ctime);
        if says.is_some_and(|ctime| tells_original(ctime, new)) {
            self.originals.push(dev);
        }
    }

    /// True if an entry is on a file system that is known to be the recorded one all the same.
    pub(super) fn is_original(&self, id: EntryId) -> bool {
        let id = self.tree.listing.identity(id);
        id.is_some_and(|id| self.originals.contains(&id.dev))
    }

    /// Judges a file that was read last by a run which began at `read`.
    pub(super) fn file(
        &mut self,
        old: &EntryRef<'_>,
        new: &EntryRef<'_>,
        id: EntryId,
        read: i64,
    ) -> Unchanged {
        let recorded = old.digest.is_some() && old.size.is_some();
        if !recorded || old.kind != new.kind || old.size != new.size {
            return Unchanged::No;
        }
        if is_same_mtime(old, new) && is_same_ctime(old, new) && old.ino == new.ino {
            return match may_hide_an_edit(new, read, || self.traits(id)) {
                true => Unchanged::No,
                false => Unchanged::Yes,
            };
        }
        let Some(traits) = self.traits(id) else {
            return Unchanged::No;
        };
        match by_name(old, new, &traits, self.elsewhere) {
            Unchanged::IfCopied if self.is_original(id) => Unchanged::No,
            judged => judged,
        }
    }

    /// True if inode numbers there identify files for good.
    pub(super) fn has_stable_numbers(&mut self, id: EntryId) -> bool {
        let traits = self.traits(id);
        traits.is_some_and(|traits| traits.inodes == Inodes::Stable)
    }

    /// True if they can also be compared with the recorded ones.
    pub(super) fn has_recorded_numbers(&mut self, id: EntryId) -> bool {
        !self.elsewhere && self.has_stable_numbers(id)
    }

    fn traits(&mut self, id: EntryId) -> Option<Traits> {
        let listing = &self.tree.listing;
        let dev = listing.identity(id)?.dev;
        let dir = || listing.open_dir(listing.dir(id)).ok();
        Some(self.mounts.of(dev, dir))
    }
}

/// Judges files of the same kind and size that are not as recorded in all fields.
fn by_name(old: &EntryRef<'_>, new: &EntryRef<'_>, traits: &Traits, elsewhere: bool) -> Unchanged {
    let (Some(before), Some(now)) = (old.mtime_ns, new.mtime_ns) else {
        return Unchanged::No;
    };
    if is_beyond(now) && !is_same_mtime(old, new) {
        return Unchanged::No;
    }
    let is_stable = traits.inodes == Inodes::Stable;
    // Device numbers of some file systems change with each mount: a file that
    // still has its inode number there is the one that was recorded.
    let is_same_file = is_stable && (!elsewhere || old.ino == new.ino);
    let other_ctime = traits.ctime != CtimeTrust::MadeUp && old.ctime_ns != new.ctime_ns;
    if is_same_file || !is_kept_as(before, now, traits.mtime_step_ns) {
        Unchanged::No
    } else if !other_ctime {
        Unchanged::ByName
    } else if elsewhere {
        Unchanged::IfCopied
    } else {
        Unchanged::No
    }
}

/// True if an equal ctime shows that the file was not copied: not where it repeats the mtime, which
/// a copy keeps.
fn tells_original(ctime: CtimeTrust, view: &EntryRef<'_>) -> bool {
    match ctime {
        CtimeTrust::Real => true,
        CtimeTrust::Unknown => view.ctime_ns != view.mtime_ns,
        CtimeTrust::MadeUp => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bc_manifest::integrity::Kind;

    fn view(mtime_ns: i64, ctime_ns: i64, ino: u64) -> EntryRef<'static> {
        EntryRef {
            size: Some(3),
            mtime_ns: Some(mtime_ns),
            ctime_ns: Some(ctime_ns),
            ino: Some(ino),
            digest: Some(b"digest"),
            ..EntryRef::new(Kind::File)
        }
    }

    fn traits(inodes: Inodes, ctime: CtimeTrust) -> Traits {
        let mut traits = bc_fs::mount::traits_or_unknown(std::io::stdin(), 0);
        (traits.inodes, traits.ctime, traits.mtime_step_ns) = (inodes, ctime, 1);
        traits
    }

    #[test]
    fn identity_counts_where_it_can_be_compared() {
        let old = view(5, 6, 7);
        let judged = |new: &EntryRef<'_>, traits: Traits, elsewhere| {
            by_name(&old, new, &traits, elsewhere) == Unchanged::ByName
        };
        let disk = traits(Inodes::Stable, CtimeTrust::Real);
        let stick = traits(Inodes::Moving, CtimeTrust::MadeUp);
        let union = traits(Inodes::Moving, CtimeTrust::Real);
        let unknown = traits(Inodes::Unknown, CtimeTrust::Unknown);
        // The same disk: another inode or ctime is another state.
        assert!(!judged(&view(5, 6, 8), disk, false));
        assert!(!judged(&view(5, 9, 7), disk, false));
        // A copy on another disk has new values of both.
        let if_copied =
            |new: &EntryRef<'_>, traits| by_name(&old, new, &traits, true) == Unchanged::IfCopied;
        assert!(if_copied(&view(5, 9, 8), disk) && if_copied(&view(5, 9, 8), union));
        assert!(judged(&view(5, 6, 8), union, true));
        assert!(judged(&view(5, 9, 8), stick, true));
        assert!(!if_copied(&view(4, 9, 8), disk) && !judged(&view(4, 9, 8), disk, true));
        // The same disk under another device number.
        assert!(!judged(&view(5, 9, 7), disk, true));
        // Numbered again; a real ctime still decides.
        assert!(judged(&view(5, 6, 8), union, false));
        assert!(!judged(&view(5, 9, 8), union, false));
        assert!(judged(&view(5, 9, 8), stick, false));
        assert!(judged(&view(5, 6, 8), unknown, false));
        assert!(!judged(&view(5, 9, 8), unknown, false));
    }

    #[test]
    fn a_ctime_that_repeats_the_mtime_tells_no_original() {
        for (ctime, own, repeated) in [
            (CtimeTrust::Real, true, true),
            (CtimeTrust::Unknown, true, false),
            (CtimeTrust::MadeUp, false, false),
        ] {
            assert_eq!(tells_original(ctime, &view(5, 6, 7)), own);
            assert_eq!(tells_original(ctime, &view(5, 5, 7)), repeated);
        }
    }
}
