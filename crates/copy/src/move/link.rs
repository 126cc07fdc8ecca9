//! Sources that stay on their file system and cannot be renamed, because a name is taken that they
//! are to have all the same, or because others are left out: they get that name by a link, and lose
//! their own in the end, as copied ones do. In between the file has both names.

use std::os::fd::AsFd;

use bc_fs::caller::Caller;
use bc_walk::{Error, FileStat};
use rustix::io::Errno;

use super::rename::is_one_mount;
use crate::decide::Decision;
use crate::place::{DestDir, EntryPlace};
use crate::sources::RootItem;
use crate::stage::{self, put};
use crate::worker::Worker;

impl Worker<'_> {
    /// Gives a source the name that its copy would have. Where there are no links from there to
    /// here, or none for this user, it is copied.
    pub(crate) fn give_link(
        &mut self,
        place: EntryPlace,
        source: &FileStat,
    ) -> Result<Decision, Error> {
        let job = self.job;
        let entry = job.plan.tree.entry(place.item);
        let Some((listing, id)) = entry.filter(|_| source.id.dev == place.dir.id.dev) else {
            return Ok(Decision::Copy(place));
        };
        if !job.plan.options.dry_run && !job.means.log.is_kept() {
            return Ok(Decision::Copy(place));
        }
        if job.plan.options.dry_run {
            let caller = self.caller.take().unwrap_or_else(Caller::own);
            if self.may_link(&caller, place.item, &place.dir)? {
                job.is_linked(place.item);
            }
            self.caller = Some(caller);
            return Ok(Decision::Copy(place));
        }
        let dir = self.source_dir(place.item)?;
        let stage = job.plan.id.stage(&place.dir, &place.target, None);
        self.record_begun([&place.target[..]]);
        let name = listing.name(id).to_bytes();
        let link = || put::link(&*dir, name, source.id, &place.dir, &stage);
        let linked = match link() {
            // Left by a killed run.
            Err(Errno::EXIST) => {
                stage::remove(place.dir.fd.as_fd(), &stage);
                link()
            }
            linked => linked,
        };
        if !matches!(linked, Ok(true)) {
            return Ok(Decision::Copy(place));
        }
        job.publish(&place, &stage)?;
        job.is_linked(place.item);
        self.outcome_of(&place, None).map(Decision::Settled)
    }

    /// True if a source can most likely get a link in this directory, or in one that is made there.
    pub(crate) fn may_link(
        &mut self,
        caller: &Caller,
        item: RootItem,
        dir: &DestDir,
    ) -> Result<bool, Error> {
        let from = self.source_dir(item)?;
        let entry = self.job.plan.tree.entry(item);
        let source = entry.and_then(|(listing, id)| Some((listing.name(id), listing.stat(id)?)));
        Ok(is_one_mount(&from, &dir.fd)
            && source.is_some_and(|(name, stat)| caller.may_link(&*from, name, &stat)))
    }
}
