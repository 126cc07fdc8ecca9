//! Everything but regular files: links, pipes, sockets, devices; and further names of files.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use bc_digest::Digest;
use bc_edit::entry;
use bc_edit::made::{self, Thing};
use bc_edit::metadata::{FileMetadata, Subject};
use bc_fs::dirfd::own_path;
use bc_fs::known::file_clock;
use bc_walk::{Error, ErrorKind, FileKind, FileStat, Identity};
use rustix::fs::{AtFlags, FileType, Stat};
use rustix::io::Errno;

use crate::decide::{Decision, EntryWanted};
use crate::meta::{self, Attributed, LostMeta};
use crate::place::Place;
use crate::plan::SkippedEntry;
use crate::results::State;
use crate::small::incomplete;
use crate::stage::{self, NoStage, refuse_foreign};
use crate::tree::{RootItem, SourceContent};
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
            let wanted = self
                .xattrs
                .metadata(&raw, source, job.plan.options.preserve);
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
            job.would_be(item, &place.target, &place.over);
            return Ok(());
        }
        self.lost = lost;
        self.make(&place, thing.thing(), &wanted)
    }

    fn make(
        &mut self,
        place: &Place,
        thing: Thing<'_>,
        wanted: &FileMetadata,
    ) -> Result<(), Error> {
        let job = self.job;
        let dir = place.dir.fd.as_fd();
        let name = job.plan.id.stage(&place.dir, &place.target, None);
        self.record_begun([&place.target[..]]);
        let made = make(dir, &name, thing);
        let held = made.map_err(|(op, errno)| match errno {
            Some(errno) => job.refused(&place.target, op, errno),
            None => swapped(job.shown(&place.target)),
        })?;
        let subject = match thing {
            Thing::Link(_) => Subject::link(held.as_fd()),
            Thing::Node(..) => Subject::place(held.as_fd()),
        };
        let inherits = place.dir.gives_acl;
        meta::give(
            &subject,
            wanted,
            &job.means.giving,
            inherits,
            &mut self.lost,
        );
        let lost = !self.lost.is_empty();
        job.lost(&place.target, &mut self.lost);
        if lost && job.plan.options.strict {
            stage::remove(dir, &name);
            return Err(incomplete(job.shown(&place.target)));
        }
        job.publish(place, &name)?;
        self.reported(place, None)
    }

    /// Reports the entry that has its name now.
    fn reported(&self, place: &Place, digest: Option<Digest>) -> Result<(), Error> {
        let job = self.job;
        let shown = job.shown(&place.target);
        (job.means.observer)(place.over.event(&shown));
        let outcome = job.outcome(place.item, State::Copied, &place.dir, place.name(), digest);
        job.done(vec![
            outcome.map_err(|errno| Error::new(shown, "stat", errno))?,
        ]);
        Ok(())
    }

    /// True if the existing entry is the one that an earlier copy has made, with the metadata that
    /// it would be given now. There is no content that could be another one.
    pub(crate) fn is_recorded(
        &mut self,
        place: &Place,
        wanted: &FileMetadata,
        now: &FileStat,
    ) -> bool {
        let recorded = self.job.recorded().of(place.item);
        recorded.is_some_and(|(row, _)| row.fits(now)) && self.has_all_at(place, wanted, now)
    }

    /// Whether what is there has the owner, the permission bits and the attributes that it would be
    /// given now.
    pub(crate) fn has_all_at(
        &mut self,
        place: &Place,
        wanted: &FileMetadata,
        now: &FileStat,
    ) -> bool {
        let preserve = self.job.plan.options.preserve;
        // A link has no permission bits of its own, and they are the same everywhere.
        if !meta::is_given_as_far(wanted, now, preserve) {
            return false;
        }
        let way = [own_path(&place.dir.fd).as_bytes(), b"/", place.name()].concat();
        let mut found = || self.xattrs.at(&way);
        !preserve.xattrs || found().is_ok_and(|found| meta::has_xattrs(wanted, &found))
    }

    /// Gives a copy of `first` the name of another of its source's names. Returns `Ok(false)` where
    /// that cannot be, and the file is to be copied.
    pub(crate) fn link(&mut self, item: RootItem, first: RootItem) -> Result<bool, Error> {
        let job = self.job;
        let (place, origin) = (self.place(item)?, self.place(first)?);
        let Some(found) = self.there(&origin)? else {
            return Ok(false);
        };
        let copy = Some(FileStat::from(&found).id);
        let place = match self.decide_link(place, first, copy)? {
            Some(Decision::Settled(outcome)) => {
                job.done(vec![outcome]);
                return Ok(true);
            }
            Some(Decision::Copy(place)) => place,
            None => return Ok(false),
        };
        if !self.linked(&origin, &place) {
            return Ok(false);
        }
        let stage = job.plan.id.stage(&place.dir, &place.target, None);
        job.publish(&place, &stage)?;
        self.reported(&place, job.outcomes.results.digest(first))?;
        Ok(true)
    }

    /// Like [`decide`](Worker::decide), for a further name of the copy of `first`. `copy`: identity
    /// of that copy, if it is there. Returns `None` where the name is to be copied by itself.
    pub(crate) fn decide_link(
        &mut self,
        place: Place,
        first: RootItem,
        copy: Option<Identity>,
    ) -> Result<Option<Decision>, Error> {
        let wanted = EntryWanted::FurtherName { first, copy };
        let entry = self.job.plan.tree.entry(place.item);
        let walked = entry.and_then(|(list, id)| list.stat(id));
        let Some(walked) = walked.filter(|walked| walked.kind() == FileKind::File) else {
            return Ok(match self.existing(&place)? {
                None => Some(Decision::Copy(place)),
                Some(there) if copy == Some(there.stat.id) => {
                    Some(self.skip(&place, &there, SkippedEntry::done(None), &wanted))
                }
                Some(_) => None,
            });
        };
        self.decide_entry(place, &wanted, &walked).map(Some)
    }

    /// True if a copy could be given the name of a stage too.
    fn linked(&self, origin: &Place, place: &Place) -> bool {
        let stage = self.job.plan.id.stage(&place.dir, &place.target, None);
        let (from, to) = (origin.dir.fd.as_fd(), place.dir.fd.as_fd());
        let link = || entry::link(from, origin.name(), to, &stage[..]);
        match link() {
            // Left by a killed run.
            Err(failed) if failed.errno == Errno::EXIST => {
                stage::remove(to, &stage);
                link().is_ok()
            }
            // Too many names, another file system, or one without them.
            linked => linked.is_ok(),
        }
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

/// Makes a link or node under the name of a stage, and holds it. An error without a reason: the
/// name was given to another file meanwhile.
pub(crate) fn make(
    dir: BorrowedFd<'_>,
    name: &str,
    thing: Thing<'_>,
) -> Result<OwnedFd, (&'static str, Option<Errno>)> {
    let refused = |errno| ("create", Some(errno));
    let since = file_clock();
    match made::make(dir, name, thing).map_err(Errno::from) {
        Err(Errno::EXIST) => match refuse_foreign(dir, name) {
            Ok(()) => {
                stage::remove(dir, name);
                made::make(dir, name, thing).map_err(|failed| refused(failed.errno))?;
            }
            Err(NoStage::System(errno)) => return Err(refused(errno)),
            Err(NoStage::Foreign(_)) => return Err(refused(Errno::EXIST)),
        },
        made => made.map_err(refused)?,
    }
    let held = made::hold(dir, name, thing, since);
    let held = held.map_err(|errno| ("open", Some(errno)))?;
    held.ok_or(("create", None))
}

/// Returns the failure of a file that lost its name before it got all its metadata.
pub(crate) fn swapped(path: Vec<u8>) -> Error {
    let text = "another program gave its temporary name to another file, which is left as it is";
    Error::with_message(path, "create", text)
}
