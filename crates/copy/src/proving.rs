//! Stamps of a worker's entries, with the names of their file systems, if these allow stamps.

use std::sync::PoisonError;

use bc_fs::dirfd::own_path;
use bc_fs::known::MountSession;
use bc_fs::mount::traits_or_unknown;
use bc_fs::{uuid_at, volume_at};
use bc_walk::Identity;

use crate::record;
use crate::stamp::{Ends, KIND, Lasting, Proving, Stamp, of_text};
use crate::tree::RootItem;
use crate::worker::Worker;

impl Worker<'_> {
    /// Returns the stamp of a copy, if both its file systems allow one.
    pub(crate) fn stamp(
        &mut self,
        item: RootItem,
        ends: &Ends<'_>,
        lasting: Lasting,
    ) -> Option<Stamp> {
        let job = self.job;
        let session = match lasting {
            Lasting::Durable => None,
            Lasting::Mounted => Some(job.site.session.as_ref()?),
        };
        let given = job.plan.order.given;
        let from = self.proving(item, ends.source.id, ends.copy.ino)?;
        Some(of_text(KIND, session, &ends.text(from, given)))
    }

    /// True if that is the stamp of the two ends in their current state.
    pub(crate) fn is_stamp(&mut self, item: RootItem, ends: &Ends<'_>, stamp: &Stamp) -> bool {
        let job = self.job;
        let Some(from) = self.proving(item, ends.source.id, ends.copy.ino) else {
            return false;
        };
        let text = ends.text(from, job.plan.order.given);
        let session = job.site.session.as_ref();
        session.is_some_and(|session| of_text(KIND, Some(session), &text) == *stamp)
            || of_text(KIND, None, &text) == *stamp
    }

    /// Returns the name of the file system of an entry's source, if the results of `stat` prove the
    /// content there, and that of an inode with this number at the destination.
    pub(crate) fn proving(&mut self, item: RootItem, source: Identity, copy: u64) -> Option<&str> {
        let from = self.met_at(item, source.dev)?;
        let Proving { traits, name, .. } = &self.met[from].1;
        let is_proof = traits.identity_proves_content(source.ino)
            && self.job.site.top_traits.identity_proves_content(copy);
        (is_proof && !name.is_empty()).then_some(name)
    }

    /// The volume that an entry's source is on, with that device number; empty where it has no name.
    pub(crate) fn volume(&mut self, item: RootItem, dev: u64) -> &str {
        match self.met_at(item, dev) {
            Some(at) => &self.met[at].1.volume,
            None => "",
        }
    }

    fn met_at(&mut self, item: RootItem, dev: u64) -> Option<usize> {
        match self.met.iter().position(|(known, _)| *known == dev) {
            Some(at) => Some(at),
            None => self.meet(item, dev),
        }
    }

    /// Gets to know the file system that an entry's source is on, and records its volume before any
    /// file that was copied from it.
    fn meet(&mut self, item: RootItem, dev: u64) -> Option<usize> {
        let systems = &self.job.site.systems;
        let lock = || systems.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().iter().find(|(known, _)| *known == dev).cloned();
        let met = match known {
            Some(met) => met,
            None => {
                let (listing, id) = self.job.plan.tree.entry(item)?;
                let dir = listing.dir(id);
                // A file system mounted on the file itself has no directory there to be opened.
                let is_its_own = listing.dir_identity(dir).is_some_and(|id| id.dev == dev);
                let open = self.source_dir(item).ok().filter(|_| is_its_own)?;
                let uuid = uuid_at(own_path(&open), Some(dev), None);
                let name = uuid.unwrap_or_else(|| {
                    let session = MountSession::of(&open);
                    let MountSession { boot, mount } = session;
                    match session.is_known() {
                        true => format!("{:032x} {mount} {dev}", u128::from_be_bytes(boot)),
                        false => String::new(),
                    }
                });
                let traits = traits_or_unknown(&open, dev);
                let volume = volume_at(own_path(&open)).unwrap_or_default();
                let mut piece = Vec::new();
                if !volume.is_empty() && volume.len() <= record::LONGEST_PATH {
                    record::push_volume(&mut piece, dev, &volume);
                    self.job.append(&mut piece);
                }
                let proving = Proving {
                    traits,
                    name,
                    volume,
                };
                let met = (dev, proving);
                lock().push(met.clone());
                met
            }
        };
        self.met.push(met);
        Some(self.met.len() - 1)
    }
}
