//! A worker's side: which files have a record, and which get one.

use std::time::Instant;

use bc_digest::Digest;
use bc_fs::mount::{Traits, mount_number, traits_or_unknown};
use bc_walk::{EntryId, FileStat, Listing};

use super::{Resume, record};
use crate::options::{HashOptions, Taken};

/// One worker's records of its files, and its access to those of an earlier run.
pub(crate) struct WorkerRecords<'a> {
    resume: Option<&'a Resume>,
    listing: &'a Listing,
    /// Records that the others do not have yet, and the time when they were last passed on.
    piece: Vec<u8>,
    since: Instant,
    devices: Vec<KnownDevice>,
    buffer: Vec<u8>,
    pub(crate) taken: Taken,
}

/// A device that this worker has met.
struct KnownDevice {
    dev: u64,
    /// `None` if nothing can be asked of it.
    traits: Option<Traits>,
    mount: u64,
    /// True if it has a record of this run.
    reported: bool,
}

impl<'a> WorkerRecords<'a> {
    pub(crate) fn new(options: &'a HashOptions, listing: &'a Listing) -> WorkerRecords<'a> {
        WorkerRecords {
            resume: options.resume.as_deref(),
            listing,
            piece: Vec::new(),
            since: Instant::now(),
            devices: Vec::new(),
            buffer: Vec::new(),
            taken: Taken::default(),
        }
    }

    /// True if an earlier run has read a file that was just opened, in its present state; its
    /// digests are put into `digests`.
    #[inline]
    pub(crate) fn knows(
        &mut self,
        entry: EntryId,
        stat: &FileStat,
        digests: &mut Vec<Digest>,
    ) -> bool {
        let Some(known) = self.resume.and_then(|resume| resume.known.as_ref()) else {
            return false;
        };
        if !self.has_proof(entry, stat) {
            return false;
        }
        let at = self.device(entry, stat);
        let mount = self.devices[at].mount;
        let found = known.find(stat, mount, &mut self.buffer, digests);
        if found {
            self.taken.files += 1;
            self.taken.bytes += stat.stamp.size;
        }
        found
    }

    /// Records the digests of a file, if its identity and stamp will prove that it is unchanged.
    #[inline]
    pub(crate) fn keep(&mut self, entry: EntryId, stat: &FileStat, digests: &[Digest]) {
        if let Some(resume) = self.resume
            && !resume.log.is_off()
            && self.has_proof(entry, stat)
        {
            self.record(resume, entry, stat, digests);
        }
    }

    fn record(&mut self, resume: &Resume, entry: EntryId, stat: &FileStat, digests: &[Digest]) {
        let at = self.device(entry, stat);
        let device = &mut self.devices[at];
        if !device.reported {
            device.reported = true;
            record::push_device(&mut self.piece, device.dev, device.mount);
        }
        if self.piece.is_empty() {
            self.since = Instant::now();
        }
        record::push_file(&mut self.piece, stat, digests);
        let pace = &resume.pace;
        if self.piece.len() >= pace.piece || self.since.elapsed() >= pace.every {
            self.hand_over();
        }
    }

    /// Passes the records that the journal does not have yet on to it: before a long pause, and at
    /// the end.
    pub(crate) fn hand_over(&mut self) {
        let Some(resume) = self.resume.filter(|_| !self.piece.is_empty()) else {
            return;
        };
        if !resume.log.take(&mut self.piece) {
            // The records of devices went with it.
            self.devices
                .iter_mut()
                .for_each(|device| device.reported = false);
        }
        self.since = Instant::now();
    }

    /// True if an equal identity and stamp later on will mean, or now mean, an equal content: not
    /// where numbers move, not for files that were written to shortly before this run began or
    /// since, which a second change may leave with the same times. Empty files are not worth it.
    fn has_proof(&mut self, entry: EntryId, stat: &FileStat) -> bool {
        let Some(resume) = self.resume else {
            return false;
        };
        let changed = stat.stamp.mtime_ns.max(stat.stamp.ctime_ns);
        if stat.stamp.size == 0 || changed >= resume.rest_ns {
            return false;
        }
        let at = self.device(entry, stat);
        let traits = &self.devices[at].traits;
        traits.is_some_and(|traits| traits.identity_proves_content(stat.id.ino))
    }

    fn device(&mut self, entry: EntryId, stat: &FileStat) -> usize {
        let dev = stat.id.dev;
        let known = self.devices.iter().position(|device| device.dev == dev);
        known.unwrap_or_else(|| {
            let dir = self.listing.open_dir(self.listing.dir(entry)).ok();
            let traits = dir.as_ref().map(|dir| traits_or_unknown(dir, dev));
            let mount = dir.and_then(mount_number).unwrap_or(0);
            self.devices.push(KnownDevice {
                dev,
                traits,
                mount,
                reported: false,
            });
            self.devices.len() - 1
        })
    }
}
