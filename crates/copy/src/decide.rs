//! Decides what is done with a file before it is read: its name may be taken, by a file that an
//! earlier run of the same copy made or by something else.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering::Relaxed;

use bc_digest::{Algorithm, Digest, Hasher};
use bc_edit::metadata::FileMetadata;
use bc_fs::compare::{PIECE, SideBySide, UnreadSide};
use bc_fs::known::{Known, is_later};
use bc_fs::mount::traits_or_unknown;
use bc_fs::shortage::is_shortage;
use bc_walk::{Error, ErrorKind, FileKind, FileStat};
use rustix::fs::{AtFlags, Mode, OFlags, Stat};
use rustix::io::{Errno, retry_on_intr};

use crate::beneath::DestDir;
use crate::event::{Event, Why};
use crate::existing::Existing;
use crate::known::NamedRecord;
use crate::meta;
use crate::options::OnConflict;
use crate::place::{Place, is_settled};
use crate::record::Placed;
use crate::results::{EntryOutcome, Proof, State, meta_of};
use crate::stage::{self, Over, refuse_foreign};
use crate::stamp::{Ends, LINKS, Lasting};
use crate::tree::parts;
use crate::worker::Worker;

/// Treatment of a file, decided before it is read.
pub(crate) enum Decision {
    /// The file is copied.
    Copy(Place),
    /// Nothing is copied; this is the outcome.
    Settled(EntryOutcome),
}

impl Decision {
    /// It is copied in the place of what is there, and of nothing else.
    pub(crate) fn over(mut place: Place, there: &Existing) -> Decision {
        place.over = Over::Anything;
        place.chosen = Some(Box::new(there.clone()));
        Decision::Copy(place)
    }

    /// Adds to a settled outcome the evidence that the manifest may cite.
    fn with(self, proof: Proof) -> Decision {
        match self {
            Decision::Settled(outcome) => Decision::Settled(EntryOutcome { proof, ..outcome }),
            copy => copy,
        }
    }
}

impl Worker<'_> {
    /// Decides about a regular file.
    pub(crate) fn decide(&mut self, place: Place, source: &FileStat) -> Result<Decision, Error> {
        let job = self.job;
        // A record of it says of which volume it was.
        let volume = self.volume(place.item, source.id.dev).to_owned();
        let (root, _) = job.tree.root(place.item);
        if job.new_roots[root].load(Relaxed) {
            return Ok(Decision::Copy(place));
        }
        let Some(there) = self.existing(&place)? else {
            return Ok(Decision::Copy(place));
        };
        let now = &there.stat;
        if now.id == source.id {
            let path = job.shown(&place.target);
            let text = "is the source itself";
            return Err(Error::with_message(path, "copy", text));
        }
        let origin = Known {
            volume: &volume,
            ..Known::of(source.id, source.stamp)
        };
        let before = self.ours(&place, &there, origin)?;
        let is_foreign = before.is_some_and(|before| before.is_foreign);
        if let Some(before) = before.filter(|before| !before.is_foreign) {
            let lacks = before.lacks;
            let same = match before {
                NamedRecord { outdated: true, .. } => None,
                // What it lacks is to be given to it now, or counts as a failure.
                _ if lacks && job.options.strict => None,
                NamedRecord {
                    given: Some(given), ..
                } if job.given & !given & !LINKS != 0 => None,
                NamedRecord {
                    unsettled: true, ..
                } => self.same_content(&place, now, source)?,
                NamedRecord { digest, .. } => Some(digest),
            };
            if let Some(digest) = same {
                if !before.is_proven {
                    self.record_state(&place, &there);
                    // A run may have been killed just after an exchange.
                    let stage = job.id.stage(&place.dir, &place.target, None);
                    if refuse_foreign(place.dir.fd.as_fd(), &stage).is_ok() && !job.options.dry_run
                    {
                        stage::remove(place.dir.fd.as_fd(), &stage);
                    }
                }
                if lacks {
                    job.incomplete.fetch_add(1, Relaxed);
                }
                return Ok(self.settle_as(&place, now, State::Before, Why::Done, digest));
            }
            return Ok(Decision::over(place, &there));
        }
        if let Some(began) = job.went_on.filter(|_| !is_foreign) {
            // A power cut takes records with it, not always the names that were given after them;
            // on a full disk names can be given when records cannot be written any more; and some
            // file systems number their files again at any time.
            let doubtful = job.known.is_doubtful();
            let ours =
                (there.born_ns).is_some_and(|born| born >= began && job.known.can_have_made(born));
            let is_torn = doubtful && (ours || job.known.has_made(&place.target, now.id.ino));
            if doubtful || ours || job.known.names(&place.target) {
                // What the copy cannot be known to have made has to have all that it would be given.
                let is_known = ours || job.known.names(&place.target);
                match self.compare(&place, now, source, is_torn)? {
                    Compared::Same(digest) if is_known || self.is_given_all(&place, now)? => {
                        return Ok(self.settle_as(&place, now, State::Before, Why::Done, digest));
                    }
                    Compared::Less => return Ok(Decision::over(place, &there)),
                    Compared::Same(_) | Compared::Other => {}
                }
            }
        }
        if let Some((digest, proof)) = self.recorded(&place, now, source)? {
            let settled = self.settle_as(&place, now, State::Before, Why::Done, digest);
            return Ok(settled.with(proof));
        }
        self.by_policy(place, &there, source)
    }

    /// Returns the record of the file that has the name of a place, if that file is proven to be
    /// the recorded one: by its state, or else by its bytes.
    pub(crate) fn ours(
        &mut self,
        place: &Place,
        there: &Existing,
        source: Known<'_>,
    ) -> Result<Option<NamedRecord>, Error> {
        let job = self.job;
        let states_prove = job.states_prove(&place.dir, there);
        let records = job.known.file(&place.target, source, there, states_prove);
        for before in records {
            if before.is_proven || self.has_content(&place.dir, &place.target, there, &before)? {
                return Ok(Some(before));
            }
        }
        Ok(None)
    }

    /// True if the existing file has the bytes that a record describes; false if its digest was not
    /// recorded or it may not be opened. For want of a descriptor nothing is known of it.
    pub(crate) fn has_content(
        &self,
        dir: &DestDir,
        target: &[u8],
        there: &Existing,
        before: &NamedRecord,
    ) -> Result<bool, Error> {
        let name = parts(target).1;
        let Some((algorithm, digest)) = before.content else {
            return Ok(false);
        };
        if there.stat.kind() != FileKind::File || there.stat.stamp.size != before.size {
            return Ok(false);
        }
        let file = match self.job.open_waiting(|| open_file(dir, name), || ()) {
            Ok(file) => file,
            Err(errno) if is_shortage(&errno) => {
                return Err(self.job.refused(target, "open", errno));
            }
            Err(_) => return Ok(false),
        };
        let go_on = || !self.job.cancel.is_cancelled();
        // The buffer of the batch is not touched.
        match digest_of(&file, algorithm, &mut Vec::new(), &go_on) {
            Ok(Some(found)) => Ok(found == digest),
            Ok(None) => Err(cancelled(name)),
            Err(_) => Ok(false),
        }
    }

    /// Returns the digest of an earlier copy of a source, if the copy is proven unchanged: by its
    /// stamp, or else by its bytes. Their times alone are no proof: directories are renamed, disks
    /// are mounted where others were, and other options give other metadata.
    fn recorded(
        &mut self,
        place: &Place,
        now: &FileStat,
        source: &FileStat,
    ) -> Result<Option<(Option<Digest>, Proof)>, Error> {
        let job = self.job;
        let Some((row, digest)) = job.recorded().of(place.item) else {
            return Ok(None);
        };
        if !row.fits(now) || job.options.on_conflict != OnConflict::Fail {
            return Ok(None);
        }
        let copy = meta_of(now);
        let is_here = now.id.dev == job.top.id.dev;
        if let (Some(stamp), Some(digest), true) = (row.stamp(), digest, is_here) {
            let ends = Ends {
                source,
                copy: &copy,
                digest,
            };
            if self.is_stamp(place.item, &ends, stamp) {
                return Ok(Some((Some(digest), Proof::Kept)));
            }
        }
        let of_time = source.stamp.mtime_ns >= now.stamp.mtime_ns && !is_newer(place, source, now);
        let of_time = of_time || is_cut_off(source, now) || !job.options.preserve.times;
        if !of_time || source.stamp.size != now.stamp.size {
            return Ok(None);
        }
        let open = self.open(place.item)?;
        let mut settled = open.settled;
        let is_as_walked = job.is_as_walked(place.item, &open.stat);
        let wanted = self.wanted(place.item, &mut settled, &open, &open.stat)?;
        let Some(there) = self.open_existing(place)? else {
            return Ok(None);
        };
        let has_all = self.has_all(&wanted, there.as_fd(), now);
        drop((open, there));
        let same = match has_all {
            true => self.same_content(place, now, source)?,
            false => None,
        };
        Ok(same.map(|digest| {
            let ends = digest.map(|digest| Ends {
                source,
                copy: &copy,
                digest,
            });
            // That it can be proven is known only where a stamp can be had.
            let is_proven = settled
                && is_here
                && is_as_walked
                && ends
                    .is_some_and(|ends| self.stamp(place.item, &ends, Lasting::Mounted).is_some());
            let proof = if is_proven { Proof::New } else { Proof::None };
            (digest, proof)
        }))
    }

    /// Opens the file that has the name of a place, if it is a regular file that this user may read.
    /// Where descriptors are short, that proves nothing of it.
    fn open_existing(&mut self, place: &Place) -> Result<Option<OwnedFd>, Error> {
        match self.open_waiting(|| open_there(place)) {
            Ok(there) => Ok(Some(there)),
            Err(errno) if is_shortage(&errno) => {
                Err(self.job.refused(&place.target, "open", errno))
            }
            Err(_) => Ok(None),
        }
    }

    /// The same of what has the name of a place, whose source is not open.
    fn is_given_all(&mut self, place: &Place, now: &FileStat) -> Result<bool, Error> {
        let open = self.open(place.item)?;
        let wanted = self.wanted(place.item, &mut true, &open, &open.stat)?;
        let Some(there) = self.open_existing(place)? else {
            return Ok(false);
        };
        let has_times = !self.job.options.preserve.times
            || wanted.has_mtime(now)
            || is_cut_off(&open.stat, now)
            || (open.stat.stamp.mtime_ns > now.stamp.mtime_ns && !is_newer(place, &open.stat, now));
        Ok(has_times && self.has_all(&wanted, there.as_fd(), now))
    }

    /// Whether what is there has the metadata that it would be given now.
    fn has_all(&mut self, wanted: &FileMetadata, there: BorrowedFd<'_>, now: &FileStat) -> bool {
        let preserve = self.job.options.preserve;
        let mut found = || self.xattrs.of_file(there);
        meta::is_given_as_far(wanted, now, preserve)
            && (!preserve.xattrs || found().is_ok_and(|found| meta::has_xattrs(wanted, &found)))
    }

    fn by_policy(
        &mut self,
        mut place: Place,
        there: &Existing,
        source: &FileStat,
    ) -> Result<Decision, Error> {
        let (job, now) = (self.job, &there.stat);
        if now.kind() == FileKind::Dir {
            return Err(Error::new(job.shown(&place.target), "create", Errno::ISDIR));
        }
        let leave = |worker: &Self, why, digest| {
            Ok(worker.settle_as(&place, now, State::Skipped, why, digest))
        };
        match job.options.on_conflict {
            OnConflict::Fail => {
                return Err(Error::new(job.shown(&place.target), "create", Errno::EXIST));
            }
            OnConflict::Skip => return leave(self, Why::Exists, None),
            OnConflict::Update if !is_newer(&place, source, now) => {
                return leave(self, Why::NotNewer, None);
            }
            OnConflict::Verify => {
                if let Some(digest) = self.same_content(&place, now, source)? {
                    return leave(self, Why::Same, digest);
                }
            }
            OnConflict::Update => {}
            // Whatever is there.
            OnConflict::Replace => {
                place.over = Over::Anything;
                return Ok(Decision::Copy(place));
            }
        }
        Ok(Decision::over(place, there))
    }

    /// Returns the existing file with the name of a place and its birth time; `None` if there is
    /// none.
    pub(crate) fn existing(&self, place: &Place) -> Result<Option<Existing>, Error> {
        match Existing::at(&place.dir.fd, place.name()) {
            Ok(existing) => Ok(Some(existing)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(Error::new(self.job.shown(&place.target), "stat", errno)),
        }
    }

    /// Returns the `stat` of the file with the name of a place; `None` if there is none.
    pub(crate) fn there(&self, place: &Place) -> Result<Option<Stat>, Error> {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        match retry_on_intr(|| rustix::fs::statat(&place.dir.fd, place.name(), flags)) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(Error::new(self.job.shown(&place.target), "stat", errno)),
        }
    }

    pub(crate) fn settle_as(
        &self,
        place: &Place,
        now: &FileStat,
        state: State,
        why: Why,
        digest: Option<Digest>,
    ) -> Decision {
        let shown = self.job.shown(&place.target);
        self.job.named.keep(place, now);
        if now.kind() == FileKind::File {
            self.job.progress.bytes.fetch_add(now.stamp.size, Relaxed);
        }
        (self.job.observer)(Event::Skipped(&shown, why));
        Decision::Settled(EntryOutcome {
            item: place.item,
            state,
            meta: self.job.has_manifest().then(|| meta_of(now)),
            digest,
            proof: Proof::None,
        })
    }

    /// Returns the digest of the existing file, if one is wanted, where it has the bytes of the
    /// source; `None` where it has others.
    fn same_content(
        &mut self,
        place: &Place,
        now: &FileStat,
        source: &FileStat,
    ) -> Result<Option<Option<Digest>>, Error> {
        Ok(match self.compare(place, now, source, false)? {
            Compared::Same(digest) => Some(digest),
            Compared::Less | Compared::Other => None,
        })
    }

    /// Compares the existing file with the source. `is_torn`: true if a power cut may have left it
    /// as part of a copy.
    fn compare(
        &mut self,
        place: &Place,
        now: &FileStat,
        source: &FileStat,
        is_torn: bool,
    ) -> Result<Compared, Error> {
        let sizes = now.stamp.size.cmp(&source.stamp.size);
        if now.kind() != FileKind::File || sizes.is_gt() || (sizes.is_lt() && !is_torn) {
            return Ok(Compared::Other);
        }
        let open = self.open(place.item)?;
        let Some(there) = self.open_existing(place)? else {
            return Ok(Compared::Other);
        };
        let mut hasher = self.job.options.algorithm.map(Hasher::new);
        let mut buffers = Default::default();
        let files = [open.file.as_fd(), there.as_fd()];
        let mut sides = SideBySide::new(files, source.stamp.size, &mut buffers);
        let (piece, mut same) = (sides.piece(), true);
        while !sides.is_over() {
            if self.job.cancel.is_cancelled() {
                return Err(cancelled(&place.target));
            }
            let [ours, theirs] = match sides.read() {
                Ok(read) => read,
                Err(UnreadSide { file: 0, call }) => {
                    let path = self.job.tree.source_path(place.item);
                    return Err(Error::new(path, call.op, call.errno));
                }
                Err(_) => return Ok(Compared::Other),
            };
            same &= ours == theirs;
            let holds_less = || {
                let mut pairs = ours.iter().zip(theirs);
                is_torn
                    && theirs.len() <= ours.len()
                    && pairs.all(|(ours, theirs)| ours == theirs || *theirs == 0)
            };
            if !same && !holds_less() {
                return Ok(Compared::Other);
            }
            if let Some(hasher) = &mut hasher {
                hasher.update(ours);
            }
            if theirs.len() < piece && !same {
                return Ok(Compared::Less);
            }
        }
        Ok(Compared::Same(hasher.map(|hasher| hasher.finalize())))
    }

    /// Records the state of an existing file that has the recorded bytes, so that the next run need
    /// not read it. A file changed a moment ago may be changed once more without having another
    /// state.
    fn record_state(&mut self, place: &Place, there: &Existing) {
        if self.job.log.is_kept() && is_settled(&there.stat.stamp) {
            self.placed(&place.target, &Placed::of(there));
        }
    }
}

/// Outcome of comparing an existing file with a source.
enum Compared {
    /// It has the bytes of the source; with their digest, if one is wanted.
    Same(Option<Digest>),
    /// It has nothing that the source lacks: some of its bytes, and zeros.
    Less,
    Other,
}

fn cancelled(path: &[u8]) -> Error {
    Error::of_kind(path, "compare", ErrorKind::Cancelled)
}

/// Whether what has the name has the earliest or the latest time that a file system can keep which
/// cannot keep that of the source: of 32 bits, or of the 34 of ext4.
fn is_cut_off(source: &FileStat, now: &FileStat) -> bool {
    const FIRST: i64 = i32::MIN as i64;
    const LAST: [i64; 2] = [i32::MAX as i64, FIRST + (1 << 34) - 1];
    let (source, there) = (source.stamp.mtime_ns, now.stamp.mtime_ns);
    let seconds = there.div_euclid(1_000_000_000);
    (source > there && LAST.contains(&seconds)) || (source < there && seconds == FIRST)
}

/// Whether a source was modified after what has the name. A file system that keeps coarser times has
/// cut those of a copy off: such a copy is no older than its source.
pub(crate) fn is_newer(place: &Place, source: &FileStat, now: &FileStat) -> bool {
    let step = || traits_or_unknown(&place.dir.fd, now.id.dev).mtime_step_ns;
    is_later(source.stamp.mtime_ns, now.stamp.mtime_ns, step)
}

/// Opens the file that has the name of a place, if it is a regular file.
pub(crate) fn open_there(place: &Place) -> Result<OwnedFd, Errno> {
    open_file(&place.dir, place.name())
}

fn open_file(dir: &DestDir, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let open = || rustix::fs::openat(&dir.fd, name, flags, Mode::empty());
    let file = retry_on_intr(open)?;
    let stat = FileStat::from(&rustix::fs::fstat(&file)?);
    match stat.kind() {
        FileKind::File => Ok(file),
        _ => Err(Errno::INVAL),
    }
}

/// Fills a buffer from an offset in a file, as far as the file goes.
pub(crate) fn read_full(file: impl AsFd, buffer: &mut [u8], at: u64) -> Result<usize, Errno> {
    let mut held = 0;
    while held < buffer.len() {
        let rest = &mut buffer[held..];
        match retry_on_intr(|| rustix::io::pread(file.as_fd(), &mut *rest, at + held as u64))? {
            0 => break,
            count => held += count,
        }
    }
    Ok(held)
}

/// Returns the digest of an open file; `None` when `go_on` returns false.
pub(crate) fn digest_of(
    file: impl AsFd,
    algorithm: Algorithm,
    buffer: &mut Vec<u8>,
    go_on: &dyn Fn() -> bool,
) -> Result<Option<Digest>, Errno> {
    let mut hasher = Hasher::new(algorithm);
    buffer.resize(buffer.len().max(PIECE), 0);
    let mut at = 0;
    while go_on() {
        let count = read_full(file.as_fd(), &mut buffer[..PIECE], at)?;
        hasher.update(&buffer[..count]);
        if count < PIECE {
            return Ok(Some(hasher.finalize()));
        }
        at += count as u64;
    }
    Ok(None)
}
