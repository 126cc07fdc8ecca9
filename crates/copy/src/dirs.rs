//! Directories: made before anything is put into them, given their final metadata once nothing more
//! is.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering::Relaxed;

use bc_edit::entry;
use bc_edit::metadata::{FileMetadata, Subject, set_times_at, times_of};
use bc_fs::dirfd::own_path;
use bc_fs::path::split;
use bc_walk::{Error, FileKind, FileStat, Identity};
use rustix::fs::{AtFlags, Mode, OFlags, Timestamps};
use rustix::io::{Errno, retry_on_intr};

use crate::event::EntryReport;
use crate::job::Job;
use crate::meta::{self, Attributed, stat_at};
use crate::place::DestDir;
use crate::plan::makes_dir;
use crate::results::{EntryOutcome, EntryState};
use crate::resume::record::{self, RootRecord};
use crate::sources::RootItem;
use crate::stage::complete::incomplete;
use crate::worker::{BATCH, Worker, run_in_batches};

/// Directories of one depth below which no others are asked for.
const FEW_DIRS: usize = 4;

/// A directory that is there by now.
enum MadeDir {
    New,
    /// It was there, with these times, where they are known.
    Found(Option<Timestamps>),
}

/// Gives directories the metadata of their sources. Directories that their owner can still enter
/// afterwards are finished first, by all workers; the others last, the deepest first.
pub(crate) fn finish_dirs(main: &mut Worker<'_>) -> Result<(), bc_walk::job::Error> {
    let job = main.job;
    let is_dir = |item: &RootItem| job.plan.tree.kind(*item) == FileKind::Dir;
    let dirs = job.plan.tree.items().filter(is_dir);
    let stays_open = |item: &RootItem| {
        let stat = job.plan.tree.stat(*item);
        stat.is_some_and(|stat| stat.mode & 0o700 == 0o700)
    };
    let (open, mut closed): (Vec<RootItem>, Vec<RootItem>) = dirs.partition(stays_open);
    // Others need the descriptors now.
    main.let_go();
    run_in_batches(job, open.len(), BATCH, |worker, batch| {
        worker.finish_dirs(&open[batch]);
    })?;
    closed.reverse();
    main.finish_dirs(&closed);
    Ok(())
}

/// Returns the times of a directory of the destination, by its path below the top.
pub(crate) fn times_now(job: &Job<'_>, below: &[u8]) -> Option<Timestamps> {
    let dir = DestDir::open(job.plan.top.fd.as_fd(), below).ok()?;
    Some(times_of(&meta::fstat(&dir.fd).ok()?))
}

impl Worker<'_> {
    /// Makes the directories of a root, or finds them.
    pub(crate) fn make_dirs(&mut self, root: usize) -> Result<(), bc_walk::job::Error> {
        let job = self.job;
        let is_dir = |item: &RootItem| job.plan.tree.kind(*item) == FileKind::Dir;
        let mut dirs = job.plan.tree.items_of(root).map(RootItem).filter(is_dir);
        let Some(first) = dirs.next() else {
            return Ok(());
        };
        let mut target = Vec::new();
        job.plan.tree.write_target(first, &mut target);
        self.announce(root, &target);
        match self.make_dir(first, &target) {
            Ok(made) => {
                self.root_made(root, &target, matches!(made, MadeDir::New));
                if let MadeDir::Found(times) = made {
                    job.found(first, times);
                }
            }
            Err(error) => job.fail(first, &error),
        }
        // Directories of one depth are made at the same time: their parents exist by then.
        let mut others: Vec<(usize, RootItem)> = dirs
            .map(|item| {
                job.plan.tree.write_target(item, &mut target);
                (target.iter().filter(|byte| **byte == b'/').count(), item)
            })
            .collect();
        others.sort_unstable();
        for level in others.chunk_by(|one, other| one.0 == other.0) {
            // This one has the directories above them open. Where calls wait, others join for the
            // second.
            if level.len() < FEW_DIRS {
                self.make_level(level);
                continue;
            }
            run_in_batches(job, level.len(), BATCH / 4, |worker, batch| {
                worker.make_level(&level[batch]);
            })?;
        }
        Ok(())
    }

    /// Directories of one depth.
    fn make_level(&mut self, level: &[(usize, RootItem)]) {
        let job = self.job;
        let mut target = Vec::new();
        for (_, item) in level {
            if job.is_over() {
                return;
            }
            job.plan.tree.write_target(*item, &mut target);
            match self.make_dir(*item, &target) {
                Ok(MadeDir::New) => {}
                Ok(MadeDir::Found(times)) => job.found(*item, times),
                Err(error) => job.fail(*item, &error),
            }
        }
    }

    /// Makes a directory, unless it exists.
    fn make_dir(&mut self, item: RootItem, target: &[u8]) -> Result<MadeDir, Error> {
        let job = self.job;
        if target.is_empty() {
            return Ok(MadeDir::Found(None));
        }
        let (dir, name) = split(target);
        // It is this one that cannot be made because of the one that it is in.
        let dir = self.try_dir(dir);
        let dir = dir.map_err(|errno| job.no_directory(target, errno))?;
        if dir.gives_acl {
            job.site.inherits.store(true, Relaxed);
        }
        let stat = job.plan.tree.stat(item);
        let mode = dir.mode_of_new_dir(stat.map_or(0, |stat| stat.mode));
        match entry::make_dir(&dir.fd, name, mode).map_err(Errno::from) {
            Ok(()) => {
                job.report(item, EntryReport::Made);
                return Ok(MadeDir::New);
            }
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(job.not_made(target, errno)),
        }
        let raw = rustix::fs::statat(&dir.fd, name, AtFlags::SYMLINK_NOFOLLOW);
        let raw = raw.map_err(|errno| Error::new(job.shown(target), "stat", errno))?;
        let there = FileStat::from(&raw);
        let (root, _) = job.plan.tree.root(item);
        makes_dir(Some(there.kind()), job.site.new_roots[root].load(Relaxed))
            .map_err(|what| Error::with_message(job.shown(target), "mkdir", what))?;
        // An interrupted run had filled it and given it its final mode.
        let own = there.uid == rustix::process::geteuid().as_raw();
        if job.plan.went_on.is_some() && own && there.mode & 0o700 != 0o700 {
            let mode = Mode::from_raw_mode((there.mode & 0o7777 | 0o700) as _);
            let _ = self
                .open_dir(target)
                .map(|dir| Subject::open(dir.as_fd()).chmod(mode));
        }
        Ok(MadeDir::Found(Some(times_of(&raw))))
    }

    /// Records a root again that was recorded and is gone, as after a power cut, before it is made
    /// again: otherwise there would be a moment at which it exists and is taken for another
    /// process's.
    fn announce(&self, root: usize, target: &[u8]) {
        let job = self.job;
        if let Some(known) = job.known_root(root)
            && !target.is_empty()
        {
            let there = stat_at(&job.plan.top.fd, target);
            if there.is_err() {
                let mut piece = Vec::new();
                let id = Identity { ino: 0, ..known.id };
                record::push_root(&mut piece, &RootRecord { id, ..*known });
                job.append(&mut piece);
            }
        }
    }

    /// Records that the first directory of a root exists: a resumed run recognises it by that.
    fn root_made(&self, root: usize, target: &[u8], made: bool) {
        let job = self.job;
        job.site.new_roots[root].store(made && job.plan.went_on.is_none(), Relaxed);
        let opened = DestDir::open(job.plan.top.fd.as_fd(), target);
        if let Ok(dir) = opened {
            let mut piece = Vec::new();
            // A run that goes on finds what the first one made.
            let before = job.known_root(root);
            let root = job.plan.tree.roots[root].source.number as u64;
            let made = made || before.is_some_and(|known| known.made);
            let id = dir.id;
            record::push_root(&mut piece, &RootRecord { root, id, made });
            job.append(&mut piece);
        }
    }

    /// Opens a directory of the destination so that it can be changed.
    fn open_dir(&mut self, target: &[u8]) -> Result<std::os::fd::OwnedFd, Errno> {
        let job = self.job;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if target.is_empty() {
            return rustix::fs::openat(&job.plan.top.fd, c".", flags, Mode::empty());
        }
        let (dir, name) = split(target);
        let place = self.try_dir(dir)?;
        let open = || retry_on_intr(|| rustix::fs::openat(&place.fd, name, flags, Mode::empty()));
        match self.open_waiting(open) {
            // Not to be read by this user any more, but his.
            Err(Errno::ACCESS) => {
                let mode = Mode::from_raw_mode(0o700);
                meta::chmod_dir_at(place.fd.as_fd(), name, mode)?;
                rustix::fs::openat(&place.fd, name, flags, Mode::empty())
            }
            opened => opened,
        }
    }

    /// Gives directories the metadata of their sources.
    pub(crate) fn finish_dirs(&mut self, items: &[RootItem]) {
        let job = self.job;
        let mut target = Vec::new();
        for &item in items {
            // Directories that could not be made have failed.
            if job.outcomes.results.state(item) != EntryState::Left {
                continue;
            }
            job.plan.tree.write_target(item, &mut target);
            let finished = self.with_descriptors(|worker| worker.finish_dir(item, &target));
            match finished {
                Ok(outcome) => job.done(vec![outcome]),
                Err(error) => job.fail(item, &error),
            }
        }
    }

    /// Sets the times of a root that is this directory once more: they were `before`.
    pub(crate) fn set_root_times(
        &mut self,
        below: &[u8],
        before: &Timestamps,
    ) -> Result<(), Error> {
        let job = self.job;
        for root in 0..job.plan.tree.roots.len() {
            let items = job.plan.tree.items_of(root);
            let is_dir = job.plan.tree.roots[root].source.stat.kind() == FileKind::Dir;
            if !is_dir || items.is_empty() || !job.plan.options.preserve.times {
                continue;
            }
            let (item, mut target) = (RootItem(items.start), Vec::new());
            job.plan.tree.write_target(item, &mut target);
            if target != below {
                continue;
            }
            match self.set_times(&target, before) {
                // That was reported when it was tried first.
                Ok(()) | Err(Errno::PERM | Errno::ACCESS) => {}
                Err(errno) => {
                    job.lacks(item);
                    return Err(Error::new(job.shown(&target), "utimens", errno));
                }
            }
        }
        Ok(())
    }

    /// True if the root that is this directory has the extended attributes of its source; true as
    /// well if `below` is no root.
    pub(crate) fn root_has_xattrs(&mut self, below: &[u8]) -> bool {
        let job = self.job;
        if !job.plan.options.preserve.xattrs {
            return true;
        }
        let mut target = Vec::new();
        (0..job.plan.tree.roots.len()).all(|root| {
            let items = job.plan.tree.items_of(root);
            let is_dir = job.plan.tree.roots[root].source.stat.kind() == FileKind::Dir;
            job.plan.tree.write_target(RootItem(items.start), &mut target);
            if !is_dir || items.is_empty() || target != below {
                return true;
            }
            let dir = self.open_dir(&target);
            let found = dir.map(|dir| self.xattrs.of_file(dir.as_fd()));
            let wanted = self.dir_wanted(RootItem(items.start));
            matches!((found, wanted), (Ok(Ok(found)), Ok(wanted)) if meta::has_xattrs(&wanted, &found))
        })
    }

    /// Sets the times of a directory, even one that may not be opened.
    fn set_times(&mut self, target: &[u8], times: &Timestamps) -> Result<(), Errno> {
        if target.is_empty() {
            let top = &self.job.plan.top.fd;
            return set_times_at(top, c".", times);
        }
        let (dir, name) = split(target);
        let dir = self.try_dir(dir)?;
        set_times_at(&dir.fd, name, times)
    }

    fn finish_dir(&mut self, item: RootItem, target: &[u8]) -> Result<EntryOutcome, Error> {
        let job = self.job;
        let wanted = self.dir_wanted(item)?;
        // The removal of entries has changed the times of a source; one that lost none may not even
        // have been finished.
        let has_lost = |began: i64| i128::from(began) <= wanted.mtime_ns;
        if job.plan.known.removes && job.is_found(item) && job.plan.went_on.is_none_or(has_lost) {
            if let Some(times) = job.times_found(item) {
                // What this run has put into it has changed them.
                let _ = self.set_times(target, &times);
            }
            let now = self.look_at_dir(target);
            let now = now.map_err(|errno| job.refused(target, "stat", errno))?;
            let preserve = job.plan.options.preserve;
            let dir = self.open_dir(target).ok();
            let found = dir.and_then(|dir| self.xattrs.of_file(dir.as_fd()).ok());
            let has_xattrs = || found.is_some_and(|found| meta::has_xattrs(&wanted, &found));
            // It has the time that its source had before its entries were removed.
            if job.means.giving.is_given(&wanted, &now) && (!preserve.xattrs || has_xattrs()) {
                return Ok(EntryOutcome {
                    meta: job.recorded_meta(&now),
                    ..EntryOutcome::new(item, EntryState::Before)
                });
            }
        }
        // Before it is opened, for which it may have to be made accessible.
        let bits = match job.was_there(item) {
            false => None,
            true => {
                let there = self.look_at_dir(target);
                Some(
                    there
                        .map_err(|errno| job.refused(target, "stat", errno))?
                        .mode,
                )
            }
        };
        let dir = self.open_dir(target);
        let dir = dir.map_err(|errno| job.refused(target, "open", errno))?;
        if let Some(outcome) = self.unchanged_dir(item, &wanted, dir.as_fd()) {
            return Ok(outcome);
        }
        // Lists inherited from its parent, which may be finished itself by now.
        let inherits = job.site.inherits.load(Relaxed) || job.plan.went_on.is_some();
        let subject = Subject::open(dir.as_fd());
        // The list of one that was there goes as that of a directory above would: the mode is that
        // of the source.
        meta::give_dir(
            &subject,
            &wanted,
            &job.means.giving,
            bits,
            inherits,
            &mut self.lost,
        );
        let lost = !self.lost.is_empty();
        job.lost(item, &mut self.lost);
        if lost && job.plan.options.strict {
            return Err(incomplete(job.shown(target)));
        }
        let stat = meta::stat(&dir).map_err(|errno| job.refused(target, "stat", errno))?;
        Ok(EntryOutcome {
            meta: job.recorded_meta(&stat),
            ..EntryOutcome::new(item, EntryState::Copied)
        })
    }

    /// Returns the outcome of a directory that an earlier copy has made, and that has all its
    /// metadata.
    fn unchanged_dir(
        &mut self,
        item: RootItem,
        wanted: &FileMetadata,
        dir: BorrowedFd<'_>,
    ) -> Option<EntryOutcome> {
        let job = self.job;
        let recorded = job.recorded().of(item)?.0;
        let now = meta::stat(dir).ok()?;
        let is_same =
            recorded.fits_dir(&now) && wanted.has_owner_and_mode(&now) && wanted.has_mtime(&now);
        let mut found = || self.xattrs.of_file(dir);
        let is_same = is_same && found().is_ok_and(|found| meta::has_xattrs(wanted, &found));
        is_same.then(|| EntryOutcome {
            meta: job.recorded_meta(&now),
            ..EntryOutcome::new(item, EntryState::Before)
        })
    }

    fn dir_wanted(&mut self, item: RootItem) -> Result<FileMetadata, Error> {
        let job = self.job;
        let path = || job.plan.tree.source_path(item);
        let place = self.source_dir(item)?;
        let Some((listing, id)) = job.plan.tree.entry(item) else {
            return Err(Error::new(path(), "stat", Errno::INVAL));
        };
        let name = listing.name(id);
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let raw = rustix::fs::statat(&*place, name, flags)
            .map_err(|errno| Error::new(path(), "stat", errno))?;
        if FileStat::from(&raw).kind() != FileKind::Dir {
            return Err(Error::of_kind(path(), "stat", bc_walk::ErrorKind::Changed));
        }
        let way = [own_path(&*place).as_bytes(), b"/", name.to_bytes()].concat();
        // It is there: what is not is /proc. Not everybody may open it who may see its attributes.
        let open = || {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            retry_on_intr(|| rustix::fs::openat(&*place, name, flags, Mode::empty()))
        };
        let failed = |errno| Error::new(path(), "getxattr", errno);
        match self.metadata(item, &raw, Attributed::At(&way)) {
            Err(Errno::NOENT) => {
                let open = open().map_err(failed)?;
                let source = Attributed::Open(open.as_fd());
                let wanted = self.metadata(item, &raw, source);
                wanted.map_err(failed)
            }
            wanted => wanted.map_err(failed),
        }
    }

    /// Looks at a directory of the destination.
    fn look_at_dir(&mut self, target: &[u8]) -> Result<FileStat, Errno> {
        if target.is_empty() {
            return meta::stat(&self.job.plan.top.fd);
        }
        let (dir, name) = split(target);
        let dir = self.try_dir(dir)?;
        stat_at(&dir.fd, name)
    }
}
