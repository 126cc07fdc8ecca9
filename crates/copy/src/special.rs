//! Everything but regular files: links, pipes, sockets, devices.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};

use bc_digest::Digest;
use bc_edit::made::Thing;
use bc_edit::metadata::FileMetadata;
use bc_fs::dirfd::own_path;
use bc_walk::{Error, ErrorKind, FileKind, FileStat};
use rustix::fs::{AtFlags, FileType, Stat};
use rustix::io::Errno;

use crate::decide::{Decision, EntryWanted};
use crate::meta::{self, Attributed, LostMeta};
use crate::place::EntryPlace;
use crate::results::{EntryOutcome, EntryState};
use crate::sources::{RootItem, SourceContent};

use crate::stage::complete::incomplete;
use crate::stage::{self, NotMade, SpecialEntry, swapped};
use crate::worker::Worker;

/// Link or node that is to be made.
enum Owned {
    Link(Vec<u8>),
    Node(FileType, u64),
}

impl Owned {
    fn thing(&self) -> Thing<'_> {
        match self {
            Owned::Link(text) => Thing::Link(text),
            Owned::Node(kind, device) => Thing::Node(*kind, *device),
        }
    }
}

impl Worker<'_> {
    /// Makes links and nodes.
    pub(crate) fn special(&mut self, items: &[RootItem]) {
        for &item in items {
            if self.job.is_over() {
                return;
            }
            if self.job.is_left_out(item) {
                continue;
            }
            if let Err(error) = self.try_special(item) {
                self.failed(item, &error);
            }
        }
    }

    /// Makes one of them, or, in a dry run, reports that it would.
    pub(crate) fn try_special(&mut self, item: RootItem) -> Result<(), Error> {
        let job = self.job;
        let place = self.place(item)?;
        let path = || job.plan.tree.source_path(item);
        let (stat, thing, wanted) = {
            let opened;
            let (dir, name): (BorrowedFd<'_>, &CStr) = match &*job.plan.tree.root(item).1.content {
                SourceContent::Alone(dir, name) => (dir.as_fd(), name),
                _ => {
                    let (listing, id) = job
                        .plan
                        .tree
                        .entry(item)
                        .ok_or_else(|| Error::new(path(), "stat", Errno::INVAL))?;
                    opened = self.source_dir(item)?;
                    (opened.as_fd(), listing.name(id))
                }
            };
            let failed = |op| move |errno| Error::new(job.plan.tree.source_path(item), op, errno);
            let raw = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
            let raw = raw.map_err(failed("stat"))?;
            let stat = FileStat::from(&raw);
            if matches!(stat.kind(), FileKind::File | FileKind::Dir) {
                // Its content would be missing.
                return Err(Error::of_kind(path(), "stat", ErrorKind::Changed));
            }
            let thing = thing(dir, name, &raw).map_err(failed("readlink"))?;
            let path = [own_path(dir).as_bytes(), b"/", name.to_bytes()].concat();
            let source = Attributed::At(&path);
            let wanted = self.metadata(place.item, &raw, source);
            let wanted = match wanted {
                // It was there just now: there is no way to it without /proc.
                Err(Errno::NOENT) => {
                    let errno = Errno::NOENT;
                    self.lost.push(LostMeta {
                        op: "getxattr",
                        errno,
                    });
                    FileMetadata::new(&raw, Vec::new()).without_acl(Some(&[]))
                }
                wanted => wanted.map_err(failed("getxattr"))?,
            };
            (stat, thing, wanted)
        };
        let lost = std::mem::take(&mut self.lost);
        let subject = EntryWanted::Special(thing.thing(), &wanted);
        let place = match self.decide_entry(place, &subject, &stat)? {
            Decision::Copy(place) => place,
            Decision::Settled(outcome) => {
                job.done(vec![outcome]);
                return Ok(());
            }
        };
        if job.plan.options.dry_run {
            return self.foresee_special(place);
        }
        self.lost = lost;
        self.make(&place, thing.thing(), &wanted)
    }

    fn make(
        &mut self,
        place: &EntryPlace,
        thing: Thing<'_>,
        wanted: &FileMetadata,
    ) -> Result<(), Error> {
        let job = self.job;
        let name = job.plan.id.stage(&place.dir, &place.target, None);
        self.record_begun([&place.target[..]]);
        let giving = &job.means.giving;
        let special = SpecialEntry {
            thing,
            wanted,
            giving,
        };
        let made = special.make(&place.dir, &name, &mut self.lost);
        made.map_err(|not| match not {
            NotMade::System(op, errno) => job.refused(&place.target, op, errno),
            NotMade::Swapped => swapped(job.shown(&place.target)),
        })?;
        let lost = !self.lost.is_empty();
        job.lost(place.item, &mut self.lost);
        if lost && job.plan.options.strict {
            stage::remove(place.dir.fd.as_fd(), &name);
            return Err(incomplete(job.shown(&place.target)));
        }
        job.publish(place, &name)?;
        self.reported(place, None)
    }

    /// Reports the entry that has its name now, and returns its outcome.
    pub(crate) fn outcome_of(
        &self,
        place: &EntryPlace,
        digest: Option<Digest>,
    ) -> Result<EntryOutcome, Error> {
        let job = self.job;
        job.report(place.item, place.over.report());
        let outcome = job.outcome(
            place.item,
            EntryState::Copied,
            &place.dir,
            place.name(),
            digest,
        );
        outcome.map_err(|errno| Error::new(job.shown(&place.target), "stat", errno))
    }

    /// Reports the entry that has its name now, and records it.
    pub(crate) fn reported(&self, place: &EntryPlace, digest: Option<Digest>) -> Result<(), Error> {
        let outcome = self.outcome_of(place, digest)?;
        self.job.done(vec![outcome]);
        Ok(())
    }

    /// True if the existing entry is the one that an earlier copy has made, with the metadata that
    /// it would be given now. There is no content that could be another one.
    pub(crate) fn is_recorded(
        &mut self,
        place: &EntryPlace,
        wanted: &FileMetadata,
        now: &FileStat,
    ) -> bool {
        let recorded = self.job.recorded().of(place.item);
        recorded.is_some_and(|(row, _)| row.fits(now)) && self.has_all_at(place, wanted, now)
    }

    /// True if an existing entry has the owner, the permission bits and the attributes that it would be
    /// given now.
    pub(crate) fn has_all_at(
        &mut self,
        place: &EntryPlace,
        wanted: &FileMetadata,
        now: &FileStat,
    ) -> bool {
        let preserve = self.job.plan.options.preserve;
        // A link has no permission bits of its own, and they are the same everywhere.
        if !self.job.means.giving.is_given(wanted, now) {
            return false;
        }
        let way = [own_path(&place.dir.fd).as_bytes(), b"/", place.name()].concat();
        let mut found = || self.xattrs.at(&way);
        !preserve.xattrs || found().is_ok_and(|found| meta::has_xattrs(wanted, &found))
    }
}

// The field's width differs between architectures.
#[allow(clippy::unnecessary_cast)]
fn thing(dir: BorrowedFd<'_>, name: &CStr, stat: &Stat) -> Result<Owned, Errno> {
    Ok(match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(dir, name, Vec::new())?;
            Owned::Link(target.into_bytes())
        }
        kind => Owned::Node(kind, stat.st_rdev as u64),
    })
}
