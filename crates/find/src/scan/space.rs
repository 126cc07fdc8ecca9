//! Disk space of the files of a group; locations of files on disk: files that share extents with
//! others, and files that have one content because they have the same map. It is asked where a file
//! system can share extents, of descriptors that are open anyway where possible.

use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::sync::Mutex;

use bc_fs::mount::{Answer, Mounts, Traits};
use bc_pool::{Cursor, Effort, WorkerPanic};
use bc_read::extents::Dirty;
use bc_read::space::{Map, Space};
use bc_read::{Opener, unchanged};
use bc_walk::{EntryId, FileStat, Stamp};

use super::groups::CandidateGroups;
use super::table::EntrySet;
use super::{Context, lock};

/// Age below which a file may not be on the disk yet, and to have it written would take more time
/// than to read it: the kernel does so within 30 seconds (`vm.dirty_expire_centisecs`), and looks
/// every 5.
const WRITTEN_NS: i64 = 60_000_000_000;

/// One worker's state for asking about disk space.
pub(crate) struct Asker<'a> {
    context: &'a Context<'a>,
    mounts: Mounts,
    now_ns: i64,
}

impl<'a> Asker<'a> {
    pub(crate) fn new(context: &'a Context<'a>) -> Asker<'a> {
        Asker {
            context,
            mounts: Mounts::default(),
            now_ns: now_ns(),
        }
    }

    /// Returns the traits of the file system of an open file.
    fn traits(&mut self, file: BorrowedFd<'_>, stat: &FileStat) -> Traits {
        self.mounts.of(stat.id.dev, || Some(file))
    }

    /// Determines the space of an open candidate, if its file system may share extents; returns the
    /// file that has its content.
    pub(crate) fn ask(
        &mut self,
        file: BorrowedFd<'_>,
        stat: &FileStat,
        candidate: u32,
        follow: Follow,
    ) -> Option<Follower> {
        let traits = self.traits(file, stat);
        let (context, row) = (self.context, self.context.table.row(candidate));
        let (extents, dev) = (&context.extents, stat.id.dev);
        if !extents.may_share(dev, &traits) {
            return None;
        }
        // The given state may be the listed one, and not verified.
        let stat = &FileStat::from(&rustix::fs::fstat(file).ok()?);
        let listed = context.listing.meta(context.candidates.entry(candidate))?;
        if (listed.id, listed.stamp) != (stat.id, stat.stamp) {
            return None;
        }
        let leads = follow == Follow::Yes && traits.disk.is_some() && self.is_written(&stat.stamp);
        let dirty = if leads { Dirty::WriteOut } else { Dirty::Leave };
        let asked = Space::and_map(file, stat, &traits, dirty);
        let (space, map) = asked.unwrap_or_else(|| {
            lock(&extents.silent).push(dev);
            (Space::allocated(stat), None)
        });
        context.table.set_own_blocks(row, space.own / 512);
        if space.shared.is_some() {
            lock(&extents.shared).insert(candidate, space);
        }
        let map = map?;
        if unchanged(file, stat).is_err() {
            return None;
        }
        let leader = *lock(&extents.maps).entry(map).or_insert(candidate);
        (leader != candidate).then_some(Follower { candidate, leader })
    }

    /// Returns true if a file of this stamp can be expected to be wholly on the disk.
    fn is_written(&self, stamp: &Stamp) -> bool {
        let newest = self.now_ns.saturating_sub(WRITTEN_NS);
        stamp.mtime_ns.max(stamp.ctime_ns) < newest
    }
}

fn now_ns() -> i64 {
    #[cfg(test)]
    let ahead = super::tests::CLOCK_AHEAD_NS.load(std::sync::atomic::Ordering::Relaxed);
    #[cfg(not(test))]
    let ahead = 0;
    bc_fs::known::now_ns() + ahead
}

/// Determines the space of the groups' members, where it is unknown.
pub(crate) fn settle(context: &Context<'_>, found: &CandidateGroups) -> Result<(), WorkerPanic> {
    let unknown = |one: &u32| !context.table.has_own_blocks(*one);
    let unknown: Vec<u32> = found.items().iter().copied().filter(unknown).collect();
    survey(context, &unknown, Follow::No)?;
    Ok(())
}

/// Determines the space of these candidates; returns those that have the content of another.
pub(crate) fn survey(
    context: &Context<'_>,
    candidates: &[u32],
    follow: Follow,
) -> Result<Vec<Follower>, WorkerPanic> {
    let asked = |asker: &mut Asker<'_>, opener: &mut Opener<'_>, entry| {
        // Without an answer the file is read, and fails again if it fails.
        let (file, stat) = opener.open_checked(entry).ok()?;
        let file = std::os::fd::AsFd::as_fd(&file);
        let table = &context.table;
        asker.ask(file, &stat, table.candidate(table.opened_by(entry)), follow)
    };
    each(context, candidates, asked)
}

/// Gives the followers the digests of their leaders. Doubtful ones are left without, and returned:
/// a file that could not be read, that has changed, or that has moved on the disk since.
pub(crate) fn resolve(
    context: &Context<'_>,
    followers: Vec<Follower>,
) -> Result<Vec<u32>, WorkerPanic> {
    let table = &context.table;
    let mut leaders: Vec<u32> = followers.iter().map(|follower| follower.leader).collect();
    leaders.sort_unstable();
    leaders.dedup();
    leaders.retain(|leader| table.has_whole(*leader) && !table.failed(*leader));
    let stays = |asker: &mut Asker<'_>, opener: &mut Opener<'_>, entry| {
        let (file, stat) = opener.open_checked(entry).ok()?;
        let file = std::os::fd::AsFd::as_fd(&file);
        let candidate = table.candidate(table.opened_by(entry));
        let traits = asker.traits(file, &stat);
        let (_, map) = Space::and_map(file, &stat, &traits, Dirty::WriteOut)?;
        let listed = context.listing.meta(entry)?;
        let same = (listed.id, listed.stamp) == (stat.id, stat.stamp)
            && lock(&context.extents.maps).get(&map?) == Some(&candidate)
            && unchanged(file, &stat).is_ok();
        same.then_some(candidate)
    };
    let mut verified = each(context, &leaders, stays)?;
    verified.sort_unstable();
    let mut left = Vec::new();
    for Follower { candidate, leader } in followers {
        if verified.binary_search(&leader).is_ok() {
            table.set_whole(table.row(candidate), &table.digest(leader));
        } else {
            left.push(candidate);
        }
    }
    Ok(left)
}

/// Does something with each of these candidates that are on file systems that may share, on as
/// many threads as that is worth.
fn each<T: Send>(
    context: &Context<'_>,
    candidates: &[u32],
    work: impl Fn(&mut Asker<'_>, &mut Opener<'_>, EntryId) -> Option<T> + Sync,
) -> Result<Vec<T>, WorkerPanic> {
    let entries = on_sharing_mounts(context, candidates);
    if entries.is_empty() {
        return Ok(Vec::new());
    }
    let most = context.options.workers.clamp(1, entries.len());
    let effort = Effort::of(entries.len() as u64, 0);
    let workers = context.options.start.workers(most, effort);
    let cursor = Cursor::new(entries.len(), workers);
    let results = bc_pool::run(workers, |_| {
        let mut asker = Asker::new(context);
        let mut opener = Opener::new(context.listing, context.cancel);
        let mut results = Vec::new();
        while let Some(range) = cursor.next() {
            for entry in &entries[range] {
                if context.cancel.is_cancelled() {
                    return results;
                }
                results.extend(work(&mut asker, &mut opener, *entry));
            }
        }
        results
    })?;
    Ok(results.into_iter().flatten().collect())
}

/// Returns the entries that open these candidates, in path order, less those of file systems that
/// are known to share nothing: these need not be opened.
fn on_sharing_mounts(context: &Context<'_>, candidates: &[u32]) -> Vec<EntryId> {
    let mut mounts = Mounts::default();
    let entries = candidates.iter().map(|one| context.candidates.entry(*one));
    let may_share = |entry: &EntryId| {
        let Some(id) = context.listing.identity(*entry) else {
            return false;
        };
        let dir = || context.listing.open_dir(context.listing.dir(*entry)).ok();
        let traits = mounts.of(id.dev, dir);
        context.extents.may_share(id.dev, &traits)
    };
    EntrySet::of(entries.filter(may_share), context.listing.len()).into_sorted()
}

/// Results so far, of all workers.
#[derive(Debug, Default)]
pub(crate) struct Extents {
    /// Space of the candidates that share extents with other files.
    pub(super) shared: Mutex<HashMap<u32, Space>>,
    /// The first candidate that was seen with a map.
    pub(super) maps: Mutex<HashMap<Map, u32>>,
    /// Devices that report the location of no file.
    pub(super) silent: Mutex<Vec<u64>>,
}

impl Extents {
    /// Returns true if no candidate is known to share anything.
    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.shared).is_empty()
    }

    /// Returns true if files of a device may take less than is allocated to them.
    pub(super) fn may_share(&self, dev: u64, traits: &Traits) -> bool {
        (traits.reflinks != Answer::No || traits.copy_up == Answer::Yes)
            && !lock(&self.silent).contains(&dev)
    }

    /// Calls `f` with the space of each of these candidates; `None` for those that share nothing.
    pub(crate) fn with_shared<T>(
        &self,
        candidates: &[u32],
        f: impl FnOnce(&[Option<&Space>]) -> T,
    ) -> T {
        let shared = lock(&self.shared);
        let spaces: Vec<Option<&Space>> = candidates.iter().map(|one| shared.get(one)).collect();
        f(&spaces)
    }
}

/// A file, and the one that has the same content if the file is unchanged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Follower {
    pub(crate) candidate: u32,
    pub(crate) leader: u32,
}

/// Permission to take a file for equal to another without reading it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Follow {
    Yes,
    No,
}
