//! `restore`: repairs files that verify finds damaged or missing from copies that hold them.
//!
//! Flow: bc-integrity's `verify` runs first, guards and all; `needs` are the paths that it found,
//! with their records, and which of them are names of one file; `dirs` makes directories that are
//! missing, and links. Workers repair groups (`repair`) from `sources`: files at the same path
//! of a copy first, then, once all of those are tried, any file with the content under any name, and
//! what no copy holds is computed from `parity`.
//! `make` copies to a stage while the digest is compared, and `put` gives it the name, and the file
//! that had it a second one. `reports` has the outcomes in the order of the paths. Directories get
//! their times last.
//!
//! Invariants:
//! - Nothing is written before the manifest was found sound to its end.
//! - A name never leads to less than it did: only a file with the recorded digest takes it, by one
//!   call; and the replaced file has another name, unless that is not wanted.
//! - A file that is not as verify found it is left alone.

mod dirs;
mod make;
mod needs;
mod options;
mod parity;
mod repair;
mod reports;
mod sources;
mod stages;
mod start;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::HashSet;
use std::ffi::OsString;
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Mutex, MutexGuard};

use bc_digest::{Algorithm, Digest};
use bc_edit::metadata::{FileMetadata, GivenTimes, sorted};
use bc_fs::dirfd;
use bc_fs::path::split;
use bc_hash::HashProgress;
use bc_integrity::{Reading, Verified, Work};
use bc_manifest::integrity::{Entry, Kind};
use bc_manifest::time::is_beyond;
use bc_pool::Cancel;
use bc_read::Rate;
use bc_walk::job::Error;
use bc_walk::{ErrorKind, FileStat, Identity};
use rustix::io::Errno;

use crate::lock;
use crate::meta::{Giving, LostMeta, Xattrs, stat_at};
use crate::options::Preserve;
use crate::place::DestDir;
use crate::resume::random;
use crate::sources::shown_below;
use crate::stage::JobId;
use dirs::{Dirs, Volume};
use make::RepairWorker;
use needs::{Collector, NameGroup, Need, Records, describe, groups};
use parity::ParitySource;
use reports::{PathEvent, PathReports};
use sources::{Backup, Candidate, SearchMeans, SourceIndex};
use stages::Stages;
use start::{RestoreRoot, look, refuse_another_tree};

pub use options::{
    Loss, ParityPlace, Repaired, RestoreEvent, RestoreObserver, RestoreOptions, Restored,
};

/// Files of a worker: each is read, written and forced to the disk, so that few are enough.
const GROUPS_EACH: usize = 4;

/// Metadata of the file that has the name of a path now.
struct PresentMeta<'a> {
    stat: &'a FileStat,
    xattrs: Xattrs,
}

/// Sources that a content may be taken from, by the strength of its digest.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Reach {
    /// Other contents have the same digest all too often.
    Nowhere,
    /// A file at the same path, and of the same length.
    SamePath,
    Anywhere,
}

impl Reach {
    fn of(digest: Digest) -> Reach {
        match digest.as_bytes().len() {
            ..8 => Reach::Nowhere,
            8..16 => Reach::SamePath,
            _ => Reach::Anywhere,
        }
    }
}

/// Source of a repaired path.
#[derive(Clone, Copy)]
enum RepairSource<'a> {
    /// The manifest has all of it.
    Record,
    /// A copy, by its path as it is shown.
    Copy(&'a [u8]),
    /// Another name of the same file, below the root.
    Name(&'a [u8]),
}

impl<'a> RepairSource<'a> {
    fn of(candidate: Option<&'a Candidate>) -> RepairSource<'a> {
        let shown = candidate.map(|candidate| &candidate.shown[..]);
        shown.map_or(RepairSource::Record, RepairSource::Copy)
    }
}

/// One repair: what was decided before it began, the means by which it is made, and what became of
/// the paths. All workers share it.
struct Restore<'a> {
    plan: RestorePlan,
    means: RestoreMeans<'a>,
    outcomes: RestoreOutcomes,
}

/// Order of a repair: paths, sources and the way of repairing. Nothing of it changes.
struct RestorePlan {
    top: RestoreRoot,
    algorithm: Algorithm,
    needs: Vec<Need>,
    records: Records,
    from: Vec<Backup>,
    /// Bytes of memory that parity may use, if there is a limit.
    memory: Option<u64>,
    /// True if parts of files are put beside.
    partial: bool,
    /// True if owners, modes, attributes and links are those of the manifest.
    trusts: bool,
    discards: bool,
    dry_run: bool,
}

/// Means of a repair, and the ways to its caller.
struct RestoreMeans<'a> {
    dirs: Dirs,
    id: JobId,
    stages: Stages<'a>,
    giving: Giving,
    cancel: &'a Cancel,
    progress: &'a HashProgress,
    observer: &'a RestoreObserver<'a>,
    /// Limit of bytes a second, if there is one.
    rate: Option<Rate>,
}

/// Outcomes of the paths.
#[derive(Default)]
struct RestoreOutcomes {
    reports: PathReports,
    repaired: AtomicU64,
    missing: AtomicU64,
    withheld: AtomicU64,
    failed: AtomicU64,
    incomplete: AtomicU64,
    written: AtomicU64,
    /// Files whose ctimes this run moves, for it gives them names or takes names from them.
    touched: Mutex<HashSet<Identity>>,
    /// File systems of the tree that take no more, and why.
    full: Mutex<Vec<(Volume, Errno)>>,
    /// Bytes of the files that failed.
    bytes_failed: AtomicU64,
    /// True once parity was asked for what no copy holds.
    has_parity: AtomicBool,
}

/// Repairs a tree.
///
/// # Errors
/// Fails before anything is written if the repair as a whole cannot be done: a root that looks
/// unmounted, or has nothing of what is recorded, unless [`root_check`](RestoreOptions::root_check)
/// says otherwise; a manifest that is not sound, a copy that is missing. Outcomes of single paths
/// are reported to `observer` and counted.
pub fn restore(
    options: &RestoreOptions<'_>,
    work: &Work<'_>,
    observer: &RestoreObserver<'_>,
) -> Result<Restored, Error> {
    let from = options.from.iter().map(|path| Backup::open(path));
    let from = from.collect::<Result<Vec<Backup>, _>>()?;
    for from in from.iter().filter(|from| from.is_empty()) {
        observer(RestoreEvent::Warning {
            path: from.path.as_bytes(),
            operation: "open",
            why: "is empty: not mounted?",
        });
    }
    let algorithm = options.manifest.algorithm()?;
    let mut parity = ParitySource::open(options)?;
    let top = RestoreRoot::open(options.root.as_bytes());
    let id = JobId(random()?);
    let stages = top.as_ref().ok();
    let stages = stages.map(|top| Stages::begin(options, top, id, observer));
    let stages = stages.transpose()?;
    let own = stages.as_ref().and_then(Stages::own_file);
    let mut collected = Collector::new(&options.only, options.root_check);
    let (verified, reading) = look(options, work, own, &mut collected)?;
    // Where there is no root, verify says so.
    let (top, stages) = (top?, stages.unwrap_or_else(|| Stages::none(observer)));
    top.refuse_another()?;
    refuse_another_tree(options, &collected)?;
    collected.add_gone();
    let renamed = collected.renamed();
    let (mut others, metadata) = (collected.others, collected.metadata);
    for path in &collected.left {
        observer(RestoreEvent::Warning {
            path: &shown_below(&top.path, path),
            operation: "unlink",
            why: "is named as what an interrupted run leaves, and none of this user is known that did",
        });
    }
    for (path, failed) in &collected.unread {
        let path = OsString::from_vec(shown_below(&top.path, path));
        observer(RestoreEvent::Unread(&failed.clone().with_path(path)));
    }
    let there = |path: &[u8]| {
        let (dir, name) = split(path);
        let dir = dirfd::open_below(top.fd.as_fd(), dir).ok()?;
        stat_at(dir, name).ok()
    };
    let is_there = |path: &[u8]| there(path).is_some();
    let (mut needs, mut records) = describe(options.manifest, collected, is_there)?;
    let removed = parity.removed(options, &needs, there)?;
    needs.extend(removed);
    needs.sort_by(|a, b| a.path.cmp(&b.path));
    others += records.elsewhere;
    let of_others = options.manifest.is_of_others();
    if of_others && !options.trust_metadata && !needs.is_empty() {
        observer(RestoreEvent::Warning {
            path: options.manifest.name(),
            operation: "read",
            why: "others own it, may write to it, or sent it: content is restored, but no owner, mode, attributes \
                  or links: its metadata is not trusted",
        });
    }
    let restore = Restore {
        means: RestoreMeans {
            dirs: Dirs::new(std::mem::take(&mut records.dirs)),
            id,
            stages,
            giving: Giving::new(Preserve::ALL, false),
            cancel: work.cancel,
            progress: work.progress,
            observer,
            rate: reading.read.rate.clone(),
        },
        outcomes: RestoreOutcomes {
            reports: PathReports::new(needs.len()),
            ..RestoreOutcomes::default()
        },
        plan: RestorePlan {
            top,
            algorithm,
            needs,
            records,
            from,
            memory: options.memory,
            partial: options.partial,
            trusts: !of_others || options.trust_metadata,
            discards: options.discard_damaged,
            dry_run: options.dry_run,
        },
    };
    let done = restore.all(work, reading, |groups, workers| {
        restore.repair_by_parity(groups, workers, parity, options.manifest, &renamed)
    });
    // In any case: directories are not left closed.
    restore.end();
    done?;
    Ok(restore.restored(others, metadata, verified))
}

impl Restore<'_> {
    fn all(
        &self,
        work: &Work<'_>,
        reading: Reading,
        by_parity: impl FnOnce(&[NameGroup], usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.begins_restore();
        for (number, need) in self.plan.needs.iter().enumerate() {
            if let Some(why) = need.held_back {
                self.withhold(number, why);
            }
        }
        dirs::restore_plain(self);
        let groups = groups(&self.plan.needs, self.plan.trusts, |need| {
            self.identity(need)
        });
        let workers = reading.workers;
        self.repair(&groups, workers, None)?;
        let wanted = self.looked_for(&groups);
        if !wanted.digests.is_empty() && !self.plan.from.is_empty() && !self.is_over() {
            let means = SearchMeans {
                algorithm: self.plan.algorithm,
                cpu: work.cpu,
                reading,
                walk_workers: work.walk_workers,
                cancel: work.cancel,
                progress: work.progress,
            };
            let begins = |files, bytes| self.begins("search", files, bytes);
            let (index, errors) = SourceIndex::of(&self.plan.from, &wanted, means, begins)?;
            let unread = errors.iter();
            unread.for_each(|error| self.unreadable(None, error));
            self.begins_restore();
            self.repair(&groups, workers, Some(&index))?;
        }
        match self.is_over() {
            false => by_parity(&groups, workers),
            true => Ok(()),
        }
    }

    /// Reports the start of repairs, with the paths that are not settled yet.
    fn begins_restore(&self) {
        let needs = self.plan.needs.iter().enumerate();
        let open = needs.filter(|(number, _)| !self.is_settled(*number));
        let open: Vec<&Need> = open.map(|(_, need)| need).collect();
        let files = open.iter().filter(|need| need.entry.kind == Kind::File);
        let bytes = files.filter_map(|need| need.entry.size()).sum();
        self.begins("restore", open.len() as u64, bytes);
    }

    fn begins(&self, what: &'static str, files: u64, bytes: u64) {
        (self.means.observer)(RestoreEvent::Begins { what, files, bytes });
    }

    fn repair(
        &self,
        groups: &[NameGroup],
        workers: usize,
        index: Option<&SourceIndex>,
    ) -> Result<(), Error> {
        let next = AtomicUsize::new(0);
        let workers = workers.min(groups.len().div_ceil(GROUPS_EACH)).max(1);
        bc_pool::run(workers, |_| {
            let mut worker = RepairWorker::new(self);
            while let Some(group) = groups.get(next.fetch_add(1, Relaxed)) {
                if self.is_over() {
                    return;
                }
                worker.repair(group, index);
            }
        })?;
        Ok(())
    }

    /// Returns contents that are still to be restored, and may come from any path.
    fn looked_for(&self, groups: &[NameGroup]) -> sources::WantedContents {
        let mut wanted = sources::WantedContents::default();
        let numbers = groups.iter().flat_map(|group| &group.needs);
        for &number in
            numbers.filter(|number| !self.is_settled(**number) && !self.is_left(**number))
        {
            let need = &self.plan.needs[number];
            let digest = need.digest();
            if let Some(digest) = digest.filter(|digest| Reach::of(*digest) == Reach::Anywhere) {
                wanted.add(digest, need.entry.size());
            }
        }
        wanted
    }

    fn touched(&self) -> MutexGuard<'_, HashSet<Identity>> {
        lock(&self.outcomes.touched)
    }

    /// Returns the identity of the file that has the path of a need now.
    fn identity(&self, need: &Need) -> Option<Identity> {
        if need.loss == Loss::Removed {
            return None;
        }
        let (dir, name) = split(&need.path);
        let dir = dirfd::open_below(self.plan.top.fd.as_fd(), dir).ok()?;
        Some(stat_at(dir, name).ok()?.id)
    }

    /// Returns the directory that a path is to be in, made if it is missing, and the name of the
    /// path's stage there, once it is recorded that there may be one.
    fn stage_of(&self, path: &[u8]) -> Result<(DestDir, String), bc_walk::Error> {
        let dir = self.means.dirs.open(self, split(path).0);
        let dir = dir.map_err(|not| not.error(self.shown(path), "open directory"))?;
        dirs::check_put(self, &dir, path)?;
        let stage = self.means.id.stage(&dir, path, None);
        self.means.stages.begun(path);
        Ok((dir, stage))
    }

    /// Returns paths that were recorded as names of the same file, and need no repair.
    fn siblings(&self, need: &Need) -> &[Vec<u8>] {
        let inode = need.recorded_inode();
        let found = inode.and_then(|inode| self.plan.records.siblings.get(&inode));
        found.map_or(&[], |found| &found[..])
    }

    /// Returns the metadata that a path gets, and its selection: from the record as far as that is
    /// relied on, else from the existing file, else as new files have it.
    fn recorded(
        &self,
        entry: Option<&Entry>,
        present: Option<PresentMeta<'_>>,
        new_mode: u32,
    ) -> (FileMetadata, Giving) {
        let mut giving = self.means.giving;
        let meta = entry.and_then(|entry| entry.meta);
        let mtime = meta.map(|meta| meta.mtime_ns);
        let trusted = meta.filter(|_| self.plan.trusts);
        let xattrs = entry.and_then(|entry| entry.xattrs.as_ref());
        let xattrs = xattrs.filter(|_| trusted.is_some());
        let xattrs = xattrs.map(|all| {
            let pairs = all.iter();
            let pairs: Xattrs = pairs
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
            pairs
        });
        let (stat, own) = present.map(|now| (now.stat, now.xattrs)).unzip();
        let xattrs = xattrs.or(own);
        giving.preserve.xattrs = xattrs.is_some();
        let xattrs = xattrs.unwrap_or_default();
        let (mode, uid, gid) = match (trusted, stat) {
            (Some(meta), _) => (meta.mode, meta.uid, meta.gid),
            (None, Some(stat)) => (stat.mode, stat.uid, stat.gid),
            (None, None) => {
                giving.preserve.mode = false;
                giving.preserve.owner = false;
                (new_mode, 0, 0)
            }
        };
        let mtime = mtime.or(stat.map(|stat| stat.stamp.mtime_ns));
        // The last access stays as it is, as does a modification whose time cannot be held or is
        // not known.
        let mtime = mtime.filter(|time| !is_beyond(*time));
        giving.times = match mtime {
            Some(_) => GivenTimes::Modification,
            None => GivenTimes::Kept,
        };
        let mtime_ns = mtime.unwrap_or_default().into();
        let wanted = FileMetadata {
            mode: mode & 0o7777,
            uid,
            gid,
            atime_ns: mtime_ns,
            mtime_ns,
            xattrs: sorted(xattrs),
        };
        (wanted, giving)
    }
}

/// Returns the error of a path whose time is recorded as one that no manifest can hold.
fn distant_time(shown: &[u8], entry: Option<&Entry>) -> Option<bc_walk::Error> {
    let meta = entry.and_then(|entry| entry.meta)?;
    let text = "its time was before 1677-09-22 or after 2262-04-11, which no manifest records";
    is_beyond(meta.mtime_ns).then(|| bc_walk::Error::with_message(shown, "utimens", text))
}

impl Restore<'_> {
    /// True if nothing more is to be begun.
    pub(super) fn is_over(&self) -> bool {
        self.means.cancel.is_cancelled()
    }

    /// True for a path whose file system takes no more, so that nothing is begun there.
    pub(super) fn is_left(&self, need: usize) -> bool {
        let full = self.full();
        !full.is_empty() && {
            let volume = self.means.dirs.volume(self, &self.plan.needs[need].path);
            full.iter().any(|(known, _)| Some(*known) == volume)
        }
    }

    fn full(&self) -> MutexGuard<'_, Vec<(Volume, Errno)>> {
        lock(&self.outcomes.full)
    }

    /// Returns a path below the root, as it is shown.
    pub(super) fn shown(&self, path: &[u8]) -> Vec<u8> {
        shown_below(&self.plan.top.path, path)
    }

    pub(super) fn is_settled(&self, need: usize) -> bool {
        self.outcomes.reports.is_settled(need)
    }

    fn add(&self, need: usize, event: PathEvent) {
        let reports = &self.outcomes.reports;
        reports.add(need, event, &self.plan.needs, self.means.observer);
    }

    fn settle(&self, need: usize, count: &AtomicU64, outcome: PathEvent) {
        self.means.progress.files.fetch_add(1, Relaxed);
        count.fetch_add(1, Relaxed);
        let reports = &self.outcomes.reports;
        reports.settle(need, outcome, &self.plan.needs, self.means.observer);
    }

    /// Reports a path that is repaired; `kept` is the second name of the replaced file.
    pub(super) fn repaired(&self, number: usize, source: RepairSource<'_>, kept: Option<&[u8]>) {
        let outcome = PathEvent::repaired(source, kept);
        let Need { path, entry, .. } = &self.plan.needs[number];
        let distant = distant_time(&self.shown(path), Some(entry));
        if let Some(error) = distant.filter(|_| entry.kind != Kind::Dir) {
            self.incomplete(number, error);
        }
        self.settle(number, &self.outcomes.repaired, outcome);
    }

    pub(super) fn failed(&self, number: usize, error: &bc_walk::Error) {
        let errno = error.errno().map(Errno::from_raw_os_error);
        let is_full = matches!(errno, Some(Errno::NOSPC | Errno::DQUOT | Errno::ROFS));
        if let Some(errno) = errno.filter(|_| is_full && !self.plan.dry_run)
            && let Some(volume) = self.means.dirs.volume(self, &self.plan.needs[number].path)
        {
            // All else would fail there, too.
            self.full().push((volume, errno));
        }
        let bytes = self.plan.needs[number].entry.size().unwrap_or(0);
        self.outcomes.bytes_failed.fetch_add(bytes, Relaxed);
        let outcome = PathEvent::Failed(error.clone());
        self.settle(number, &self.outcomes.failed, outcome);
    }

    pub(super) fn missing(&self, number: usize, why: impl Into<Cow<'static, str>>) {
        let outcome = PathEvent::Missing(why.into());
        self.settle(number, &self.outcomes.missing, outcome);
    }

    /// Reports a path that is left whatever the copies hold.
    pub(super) fn withhold(&self, number: usize, why: &'static str) {
        self.outcomes.withheld.fetch_add(1, Relaxed);
        self.missing(number, why);
    }

    /// Reports a copy, or a part of it, that cannot be read: another one may do. If a path is being
    /// repaired, that is one of its events.
    pub(super) fn unreadable(&self, at: Option<usize>, error: &bc_walk::Error) {
        match at {
            _ if error.kind() == ErrorKind::Cancelled => {}
            Some(number) => self.add(number, PathEvent::Unreadable(error.clone())),
            None => (self.means.observer)(RestoreEvent::Unreadable(error)),
        }
    }

    /// Reports that a directory was not given what it is to have.
    pub(super) fn not_given(&self, error: &bc_walk::Error) {
        self.outcomes.incomplete.fetch_add(1, Relaxed);
        (self.means.observer)(RestoreEvent::Incomplete(error));
    }

    /// Reports metadata that a path could not be given before it is repaired.
    pub(super) fn lost(&self, number: usize, lost: &mut Vec<LostMeta>) {
        for lost in lost.drain(..) {
            let path = self.shown(&self.plan.needs[number].path);
            self.incomplete(number, bc_walk::Error::new(path, lost.op, lost.errno));
        }
    }

    fn incomplete(&self, number: usize, error: bc_walk::Error) {
        self.outcomes.incomplete.fetch_add(1, Relaxed);
        self.add(number, PathEvent::Incomplete(error));
    }

    /// Gives directories their final metadata, and reports what is missing.
    pub(super) fn end(&self) {
        self.means.dirs.finish(self);
        self.means.stages.end();
        if !self.is_over() {
            self.end_unsettled();
        }
        let reports = &self.outcomes.reports;
        reports.end(&self.plan.needs, self.means.observer);
    }

    fn end_unsettled(&self) {
        let unsettled = (0..self.plan.needs.len()).filter(|number| !self.is_settled(*number));
        for number in unsettled.filter(|number| !self.is_left(*number)) {
            let digest = self.plan.needs[number].digest();
            match digest.map(Reach::of) {
                Some(Reach::Anywhere) if self.outcomes.has_parity.load(Relaxed) => {
                    self.missing(number, "no copy holds it, and no parity");
                }
                Some(Reach::Anywhere) => self.missing(number, "no copy holds it"),
                Some(Reach::SamePath) => self.missing(
                    number,
                    "no copy holds it at the same path, and its digest is too short to know it by elsewhere",
                ),
                Some(Reach::Nowhere) => {
                    self.withhold(number, "its digest is too short to know its content by");
                }
                None => self.withhold(number, "no digest is recorded"),
            }
        }
    }

    pub(super) fn restored(&self, others: u64, metadata: u64, verified: Verified) -> Restored {
        let count = |count: &AtomicU64| count.load(Relaxed);
        let wanted = self.plan.needs.len() as u64;
        let left = (0..self.plan.needs.len()).filter(|number| !self.is_settled(*number));
        let left: u64 = left
            .filter_map(|number| self.plan.needs[number].entry.size())
            .sum();
        let settled = count(&self.outcomes.repaired)
            + count(&self.outcomes.missing)
            + count(&self.outcomes.failed);
        Restored {
            wanted,
            repaired: count(&self.outcomes.repaired),
            missing: count(&self.outcomes.missing),
            withheld: count(&self.outcomes.withheld),
            failed: count(&self.outcomes.failed),
            left: wanted - settled,
            others,
            metadata,
            bytes: count(&self.outcomes.written),
            bytes_left: left + count(&self.outcomes.bytes_failed),
            stopped: self.full().first().map(|(_, errno)| errno.to_string()),
            incomplete: count(&self.outcomes.incomplete),
            verified: verified.totals,
        }
    }
}
