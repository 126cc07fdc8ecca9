//! Reliability of times and inode numbers as evidence, by the file system of each file: whether a
//! file keeps its digest unread, is the one that was recorded, or may have been edited unseen.
//!
//! On file systems with coarse steps of time, what is written to a file within the step in which
//! its record was made leaves its times as they were recorded.

use bc_fs::known::{
    COARSEST_STEP_NS, InodeTimes, Judgement, is_kept_as, is_racy, possible_step, settled_before,
};
use bc_fs::mount::{self, CtimeTrust, Inodes, Mounts, Traits};
use bc_manifest::integrity::Header;
use bc_manifest::time::{is_beyond, parse_rfc3339};
use bc_pool::Cancel;
use bc_walk::{DirFdCache, EntryId, FileStat};
use rustix::fs::{AtFlags, StatxFlags, StatxTimestamp, statx};

use crate::change::Ctime;
use crate::compare::moves::Numbers;
use crate::compare::{Later, Site};
use crate::entry_ref::{EntryRef, differ, is_same_ctime, is_same_mtime};
use crate::judge::is_untouched;
use crate::tree::Tree;
use crate::tree::loader::LoadedEntry;

/// Finer steps are over before a file is read.
const LEAST: i64 = 10_000_000;

/// As long as a run may take that reads a file after the time which it records for all.
const RUN: i64 = 86_400_000_000_000;

/// True if a time so soon before the run that read the file, or within it, may be of a clock with
/// steps of up to `step` that are not too fine.
fn is_near(stamp: i64, read: i64, step: u64) -> bool {
    let is_of_run = stamp <= read.saturating_add(RUN);
    is_of_run && possible_step(stamp, step) >= LEAST && is_racy(stamp, read, step)
}

/// True if a file with these recorded times may have been written to since a run that began at
/// `read` has read it, without a change of either. `traits` are asked for only where the times allow
/// that.
pub(crate) fn may_hide_an_edit(
    file: &EntryRef<'_>,
    read: i64,
    traits: impl FnOnce() -> Option<Traits>,
) -> bool {
    let times = [file.mtime_ns, file.ctime_ns];
    if !times
        .iter()
        .flatten()
        .any(|time| is_near(*time, read, COARSEST_STEP_NS))
    {
        return false;
    }
    let Some(traits) = traits() else {
        return false;
    };
    // A write moves both; the mtime may have been set since.
    let stamp = match traits.ctime {
        CtimeTrust::MadeUp => file.mtime_ns,
        CtimeTrust::Real | CtimeTrust::Unknown => file.ctime_ns,
    };
    stamp.is_some_and(|stamp| is_near(stamp, read, traits.mtime_step_ns))
}

/// True if that may be so of a file with these times, whatever its file system, by any run since a
/// manifest was `made`.
pub(crate) fn may_have_steps(times: [i64; 2], made: i64) -> bool {
    let is_since = |time: &i64| *time >= settled_before(made);
    times
        .iter()
        .any(|time| is_since(time) && possible_step(*time, COARSEST_STEP_NS) >= LEAST)
}

/// Evidence for damaged files, and for those that may have another name by now.
pub(crate) struct Hints<'a> {
    tree: &'a Tree,
    dirs: DirFdCache<'a>,
    cancel: &'a Cancel,
    mounts: Mounts,
    elsewhere: bool,
    /// Time at which the manifest was made, by its header.
    made: Option<i64>,
}

impl<'a> Hints<'a> {
    /// Takes the time from the header; `elsewhere`: true if the root is on another device than
    /// recorded.
    pub(crate) fn new(
        tree: &'a Tree,
        elsewhere: bool,
        header: &Header,
        cancel: &'a Cancel,
    ) -> Hints<'a> {
        Hints {
            tree,
            dirs: DirFdCache::new(&tree.listing),
            cancel,
            mounts: Mounts::default(),
            elsewhere,
            made: header.created_at.as_deref().and_then(parse_rfc3339),
        }
    }

    /// True if the root is on another device than recorded.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.elsewhere
    }

    /// Checks that an entry is the file that was recorded with this change time, if inode number,
    /// size and mtime are the recorded ones.
    pub(crate) fn proof(&mut self, id: Option<EntryId>, ctime: Option<i64>) -> Judgement {
        let mut now = id.and_then(|id| self.times(id)).unwrap_or_default();
        // One that repeats the mtime is another file's as easily as that.
        now.ctime_ns = now.ctime_ns.filter(|_| self.is_real(id));
        now.judge(ctime, self.made)
    }

    /// Returns the times at which an entry was born and last changed, if its file system keeps
    /// them.
    fn times(&mut self, id: EntryId) -> Option<InodeTimes> {
        let listing = &self.tree.listing;
        let dir = self.dirs.open_waiting(listing.dir(id), self.cancel).ok()?;
        let links = match listing.follow(id) {
            true => AtFlags::empty(),
            false => AtFlags::SYMLINK_NOFOLLOW,
        };
        let asked = StatxFlags::BTIME | StatxFlags::CTIME;
        let found = statx(dir, listing.name(id), links, asked).ok()?;
        let time = |which: StatxFlags, time: StatxTimestamp| {
            let seconds = time.tv_sec.checked_mul(1_000_000_000)?;
            let known = found.stx_mask & which.bits() != 0;
            seconds.checked_add(time.tv_nsec.into()).filter(|_| known)
        };
        Some(InodeTimes {
            // 0 is what images and file systems write that do not keep it.
            born_ns: time(StatxFlags::BTIME, found.stx_btime).filter(|born| *born > 0),
            ctime_ns: time(StatxFlags::CTIME, found.stx_ctime),
        })
    }

    /// Marks `old`, which is compared with `now`, as unsteady where only its times deny an edit of
    /// the entry `new` since a run that began at `read` has read it, and do not prove that.
    pub(crate) fn mark_unsteady(
        &mut self,
        old: &mut EntryRef<'_>,
        now: &EntryRef<'_>,
        new: &LoadedEntry<'_>,
        read: Option<i64>,
    ) {
        if differ(old.digest, now.digest) && is_untouched(old, now) {
            old.unsteady = self.is_unsteady(old, new, read);
        }
    }

    /// True if the recorded times of an entry do not say whether it was edited since it was read by
    /// a run that began at `read`, or when the manifest was made. The present ctime may be that of
    /// a later write, which shows by it, whatever mtime was set then.
    fn is_unsteady(
        &mut self,
        old: &EntryRef<'_>,
        new: &LoadedEntry<'_>,
        read: Option<i64>,
    ) -> bool {
        let (Some(id), Some(device), Some(read)) = (new.id, new.view.device, read.or(self.made))
        else {
            return false;
        };
        let listing = &self.tree.listing;
        let dir = || listing.open_dir(listing.dir(id)).ok();
        may_hide_an_edit(old, read, || Some(self.mounts.of(device, dir)))
    }

    /// Returns the evidence of `ctime` for this file.
    pub(crate) fn judge(&mut self, id: Option<EntryId>, ctime: Ctime) -> Ctime {
        match ctime {
            // A copy's ctimes are all new.
            Ctime::Other if self.elsewhere => Ctime::Mute,
            Ctime::Same | Ctime::Other if !self.is_real(id) => Ctime::Mute,
            ctime => ctime,
        }
    }

    /// Returns the place of an entry that is on this device.
    pub(crate) fn at(&mut self, id: Option<EntryId>, device: Option<u64>) -> At<'_, 'a> {
        At {
            hints: self,
            id,
            device,
        }
    }

    fn is_real(&mut self, id: Option<EntryId>) -> bool {
        let Some((dir, stat)) = id.and_then(|id| {
            let dir = self.tree.listing.dir(id);
            let dir = self.dirs.open_waiting(dir, self.cancel).ok()?;
            let stat = rustix::fs::fstat(&dir).ok()?;
            Some((dir, stat))
        }) else {
            return false;
        };
        let dev = FileStat::from(&stat).id.dev;
        self.mounts.of(dev, || Some(dir)).ctime == mount::CtimeTrust::Real
    }
}

/// Place of a file.
pub(crate) struct At<'h, 'a> {
    hints: &'h mut Hints<'a>,
    id: Option<EntryId>,
    device: Option<u64>,
}

impl Site for At<'_, '_> {
    fn ctime(&mut self, ctime: Ctime) -> Ctime {
        self.hints.judge(self.id, ctime)
    }

    fn numbers(&mut self) -> Numbers {
        let (Some(id), Some(device)) = (self.id, self.device) else {
            return Numbers::Moving;
        };
        let listing = &self.hints.tree.listing;
        let dir = || listing.open_dir(listing.dir(id)).ok();
        match self.hints.mounts.of(device, dir).inodes {
            Inodes::Stable => Numbers::Stable,
            Inodes::Moving | Inodes::Unknown => Numbers::Moving,
        }
    }
}

/// Evidence about paths of the tree, which are all known by then.
impl Later for Hints<'_> {
    fn ctime(&mut self, path: &[u8], ctime: Ctime) -> Ctime {
        self.judge(self.tree.find(path), ctime)
    }

    fn proof(&mut self, path: &[u8], ctime: Option<i64>) -> Judgement {
        Hints::proof(self, self.tree.find(path), ctime)
    }
}

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
    use bc_fs::known::TICK_NS;
    use bc_manifest::integrity::Kind;

    use super::*;

    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn a_write_within_the_step_of_the_record_is_not_seen() {
        let mut traits = bc_fs::mount::traits_or_unknown(std::io::stdin(), 0);
        for (step, trust, times, read, expected) in [
            (SECOND, CtimeTrust::Real, [7, 7], 7 * SECOND + 5, true),
            // Its second is over, and the clock of files may not have noticed yet.
            (SECOND, CtimeTrust::Real, [7, 7], 8 * SECOND + 5, true),
            (
                SECOND,
                CtimeTrust::Real,
                [7, 7],
                8 * SECOND + TICK_NS + 1,
                false,
            ),
            (2 * SECOND, CtimeTrust::Real, [6, 6], 7 * SECOND + 5, true),
            // What is not known may have steps of one second.
            (
                2 * SECOND,
                CtimeTrust::Unknown,
                [7, 7],
                7 * SECOND + 5,
                true,
            ),
            // The run began before, and read it then.
            (SECOND, CtimeTrust::Real, [7, 7], 5 * SECOND, true),
            // The clock is wrong.
            (
                SECOND,
                CtimeTrust::Real,
                [7_000_000, 7_000_000],
                5 * SECOND,
                false,
            ),
            (1, CtimeTrust::Real, [7, 7], 7 * SECOND + 5, false),
            // Its content is old, and something else was done to it.
            (SECOND, CtimeTrust::MadeUp, [3, 7], 7 * SECOND + 5, false),
            (SECOND, CtimeTrust::Real, [3, 7], 7 * SECOND + 5, true),
        ] {
            (traits.mtime_step_ns, traits.ctime) = (step as u64, trust);
            let [mtime, ctime] = times.map(|time| time * SECOND);
            let file = EntryRef {
                mtime_ns: Some(mtime),
                ctime_ns: Some(ctime),
                ..EntryRef::new(Kind::File)
            };
            let found = may_hide_an_edit(&file, read, || Some(traits));
            assert_eq!(found, expected, "{step} {trust:?} {times:?} {read}");
            // Times with a fraction are of a clock with fine steps.
            let fine = EntryRef {
                mtime_ns: Some(mtime + 3),
                ctime_ns: Some(ctime + 3),
                ..file
            };
            assert!(!may_hide_an_edit(&fine, read, || None));
        }
    }

    #[test]
    fn a_write_that_moved_the_ctime_is_not_hidden() {
        const SECOND: i64 = 1_000_000_000;
        let traits = || {
            let mut traits = traits(Inodes::Stable, CtimeTrust::Real);
            traits.mtime_step_ns = SECOND as u64;
            Some(traits)
        };
        let written = 1_700_000_000 * SECOND;
        let read = written + 60 * SECOND;
        let recorded = view(written, written, 7);
        assert!(!may_hide_an_edit(&recorded, read, traits));
        // Written 4 s after the record, and the mtime put back: that ctime is not the record's.
        let rewritten = view(written, read + 4 * SECOND, 7);
        assert!(may_hide_an_edit(&rewritten, read, traits));
        // Written in the second of the record, and given another mode since.
        let unsteady = view(read, read, 7);
        assert!(may_hide_an_edit(&unsteady, read, traits));
    }

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
