//! EntryFacts for the [decision](crate::plan) about an entry, before it is read: its name may be taken, by
//! a file that an earlier run of the same copy made or by something else.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering::Relaxed;

use bc_digest::{Algorithm, Digest, Hasher};
use bc_edit::made::Thing;
use bc_edit::metadata::FileMetadata;
use bc_fs::compare::{PIECE, SideBySide, UnreadSide};
use bc_fs::dirfd::read_at;
use bc_fs::known::{Known, is_later};
use bc_fs::mount::traits_or_unknown;
use bc_fs::path::split;
use bc_fs::shortage::is_shortage;
use bc_integrity::meta_of;
use bc_walk::{Error, ErrorKind, FileKind, FileStat, Identity};
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use crate::event::{EntryReport, Why};
use crate::meta::{self, stat, stat_at};
use crate::place::{DestDir, EntryPlace, Existing, Over, is_settled};
use crate::plan::{
    Compared, EntryClass, EntryFacts, Fact, NameTaken, NextStep, Occupant, SkippedEntry, next,
};
use crate::results::{EntryOutcome, EntryState, Proof};
use crate::resume::known::NamedRecord;
use crate::resume::record::{KeptSource, Placed};
use crate::resume::stamp::{Ends, Lasting};
use crate::sources::{RootItem, SourceContent};
use crate::stage::{self, refuse_foreign};
use crate::worker::Worker;

/// Treatment of a file, decided before it is read.
pub(crate) enum Decision {
    /// The file is copied.
    Copy(EntryPlace),
    /// Nothing is copied; this is the outcome.
    Settled(EntryOutcome),
}

/// An entry to decide about.
pub(crate) enum EntryWanted<'a> {
    File,
    /// Link or node, with the metadata that it would be given.
    Special(Thing<'a>, &'a FileMetadata),
    /// Further name of the copy of `first`. `copy`: identity of that copy, if it is there.
    FurtherName {
        first: RootItem,
        copy: Option<Identity>,
    },
}

impl Worker<'_> {
    /// Decides about a regular file.
    pub(crate) fn decide(
        &mut self,
        place: EntryPlace,
        source: &FileStat,
    ) -> Result<Decision, Error> {
        // A record of it says of which volume it was.
        self.volume(place.item, source.id.dev);
        let (root, _) = self.job.plan.tree.root(place.item);
        let decided = match self.job.site.new_roots[root].load(Relaxed) {
            true => Decision::Copy(place),
            false => self.decide_entry(place, &EntryWanted::File, source)?,
        };
        match decided {
            Decision::Copy(place) if self.job.plan.options.moves => self.give_link(place, source),
            decided => Ok(decided),
        }
    }

    /// Decides about an entry: looks up what [`next`] asks for, until it says what is done.
    pub(crate) fn decide_entry(
        &mut self,
        mut place: EntryPlace,
        wanted: &EntryWanted<'_>,
        source: &FileStat,
    ) -> Result<Decision, Error> {
        let job = self.job;
        let mut facts = EntryFacts::new(match wanted {
            EntryWanted::File => EntryClass::File,
            EntryWanted::Special(..) => EntryClass::Special,
            EntryWanted::FurtherName { .. } => EntryClass::FurtherName,
        });
        let mut existing: Option<Existing> = None;
        loop {
            let fact = match (next(&job.plan.order, &facts), &existing) {
                (NextStep::Need(fact), _) => fact,
                (NextStep::Make, _) => return Ok(Decision::Copy(place)),
                (NextStep::MakeOverAny, there) => {
                    if let Some(there) = there {
                        job.replaces(&there.stat);
                    }
                    place.over = Over::Anything;
                    return Ok(Decision::Copy(place));
                }
                (NextStep::MakeOver, Some(there)) => {
                    job.replaces(&there.stat);
                    place.over = Over::This(Box::new(Existing::clone(there)));
                    return Ok(Decision::Copy(place));
                }
                (NextStep::Skip(skipped), Some(there)) => {
                    if there.stat.id == source.id {
                        job.is_linked(place.item);
                    }
                    return Ok(self.skip(&place, there, skipped, wanted));
                }
                (NextStep::Refuse(refusal), _) => return Err(self.refused(&place, refusal)),
                // Nothing that is not there is replaced or left.
                (NextStep::MakeOver | NextStep::Skip(_), None) => Fact::There,
            };
            let there = match (fact, &existing) {
                (Fact::There, _) | (_, None) => {
                    existing = self.existing(&place)?;
                    let there = existing.as_ref();
                    facts.there = Some(there.map(|now| self.look_at(&place, wanted, source, now)));
                    continue;
                }
                (_, Some(there)) => there,
            };
            match fact {
                Fact::There => {}
                Fact::Record => facts.record = Some(self.ours(&place, there, source)?),
                Fact::Content { is_torn } => {
                    facts.content = Some(match wanted {
                        EntryWanted::Special(thing, _) => {
                            is_same_thing(&place, there, source, *thing)
                        }
                        _ => self.compare(&place, &there.stat, source, is_torn)?,
                    });
                }
                Fact::Given => {
                    facts.is_given = Some(match wanted {
                        EntryWanted::Special(_, meta) => self.has_all_at(&place, meta, &there.stat),
                        _ => self.is_given_all(&place, &there.stat)?,
                    });
                }
                Fact::Recorded => {
                    facts.recorded = Some(match wanted {
                        EntryWanted::Special(_, meta) => {
                            let is_recorded = self.is_recorded(&place, meta, &there.stat);
                            is_recorded.then_some((None, Proof::None))
                        }
                        _ => self.recorded(&place, &there.stat, source)?,
                    });
                }
                Fact::Newer => facts.is_newer = Some(is_newer(&place, source, &there.stat)),
            }
        }
    }

    /// Returns what can be said of an existing file without opening it.
    fn look_at(
        &self,
        place: &EntryPlace,
        wanted: &EntryWanted<'_>,
        source: &FileStat,
        there: &Existing,
    ) -> Occupant {
        let (job, now) = (self.job, &there.stat);
        let (root, _) = job.plan.tree.root(place.item);
        let is_since = |began| {
            let born = there.born_ns;
            born.is_some_and(|born| born >= began && job.plan.known.can_have_made(born))
        };
        Occupant {
            is_dir: now.kind() == FileKind::Dir,
            is_source: now.id == source.id,
            is_first: matches!(wanted, EntryWanted::FurtherName { copy, .. } if *copy == Some(now.id)),
            is_in_new_root: job.site.new_roots[root].load(Relaxed),
            is_of_now: !job.plan.options.preserve.times
                || now.stamp.mtime_ns == source.stamp.mtime_ns,
            is_ours: job.plan.went_on.is_some_and(is_since),
            is_named: job.plan.known.names(&place.target),
            is_begun: job.plan.known.begun.contains(&place.target),
            is_made: job.plan.known.has_made(&place.target, now.id.ino),
        }
    }

    /// Returns the outcome of an entry whose name is left to what has it.
    pub(crate) fn skip(
        &mut self,
        place: &EntryPlace,
        there: &Existing,
        skipped: SkippedEntry,
        wanted: &EntryWanted<'_>,
    ) -> Decision {
        let job = self.job;
        let mut digest = skipped.digest;
        if let EntryWanted::FurtherName { first, copy } = wanted
            && *copy == Some(there.stat.id)
        {
            digest = job.outcomes.results.digest(*first);
        }
        if skipped.is_by_bytes {
            self.record_state(place, there);
            // A run may have been killed just after an exchange.
            let stage = job.plan.id.stage(&place.dir, &place.target, None);
            if refuse_foreign(place.dir.fd.as_fd(), &stage).is_ok() && !job.plan.options.dry_run {
                stage::remove(place.dir.fd.as_fd(), &stage);
            }
        }
        if skipped.lacks {
            job.lacks(place.item);
            job.outcomes.incomplete.fetch_add(1, Relaxed);
        }
        let now = &there.stat;
        job.outcomes.named.keep(place, now);
        if now.kind() == FileKind::File {
            job.means.progress.bytes.fetch_add(now.stamp.size, Relaxed);
        }
        job.report(place.item, EntryReport::Skipped(skipped.why));
        Decision::Settled(EntryOutcome {
            item: place.item,
            state: match skipped.why {
                Why::Done => EntryState::Before,
                _ => EntryState::Skipped,
            },
            meta: job.recorded_meta(now),
            digest,
            proof: skipped.proof,
        })
    }

    fn refused(&self, place: &EntryPlace, refusal: NameTaken) -> Error {
        let shown = self.job.shown(&place.target);
        match refusal {
            NameTaken::IsSource => Error::with_message(shown, "copy", "is the source itself"),
            NameTaken::IsDir => Error::new(shown, "create", Errno::ISDIR),
            NameTaken::Exists => Error::new(shown, "create", Errno::EXIST),
        }
    }

    /// Returns the record of the file that has the name of a place, if that file is proven to be
    /// the recorded one: by its state, or else by its bytes.
    fn ours(
        &mut self,
        place: &EntryPlace,
        there: &Existing,
        source: &FileStat,
    ) -> Result<Option<NamedRecord>, Error> {
        let job = self.job;
        let volume = self.volume(place.item, source.id.dev).to_owned();
        let source = Known {
            volume: &volume,
            ..Known::of(source.id, source.stamp)
        };
        let states_prove = job.states_prove(&place.dir, there);
        let records = job
            .plan
            .known
            .file(&place.target, source, there, states_prove);
        for before in records {
            if before.is_proven || self.has_content(&place.dir, &place.target, there, &before)? {
                let asks = job.plan.order.moves && (before.is_of_other || before.unsettled);
                return Ok(Some(NamedRecord {
                    is_kept: asks && self.is_kept(place.item, &before),
                    ..before
                }));
            }
        }
        Ok(None)
    }

    /// True if the source is the very file that was copied, which has kept its name: it was edited
    /// since. Any other file that has the name now, as logs that rotate leave one, would take that of a
    /// copy which may be all that is left of its source.
    fn is_kept(&mut self, item: RootItem, before: &NamedRecord) -> bool {
        let job = self.job;
        let Some((name, private)) = job.plan.source_names(item) else {
            return false;
        };
        let known = &job.plan.known;
        let kept = known.kept_source(&private);
        if known.removes && kept.is_none_or(|kept| kept.ino != before.source_ino) {
            return false;
        }
        let now = match &*job.plan.tree.root(item).1.content {
            SourceContent::Alone(dir, _) => Existing::at(dir, name.to_bytes()).ok(),
            _ => {
                let dir = self.source_dir(item).ok();
                dir.and_then(|dir| Existing::at(&dir, name.to_bytes()).ok())
            }
        };
        let Some(now) = now.and_then(|now| KeptSource::of(&now)) else {
            return false;
        };
        match known.removes {
            true => Some(now) == kept,
            // Nothing was removed yet: another file with its number was made after the last change of
            // the first one.
            false => now.ino == before.source_ino && now.born_ns <= before.born_until_ns,
        }
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
        let name = split(target).1;
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
        let go_on = || !self.job.means.cancel.is_cancelled();
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
        place: &EntryPlace,
        now: &FileStat,
        source: &FileStat,
    ) -> Result<Option<(Option<Digest>, Proof)>, Error> {
        let job = self.job;
        let Some((row, digest)) = job.recorded().of(place.item) else {
            return Ok(None);
        };
        if !row.fits(now) {
            return Ok(None);
        }
        let copy = meta_of(now);
        let is_here = now.id.dev == job.plan.top.id.dev;
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
        let of_time = of_time || is_cut_off(source, now) || !job.plan.options.preserve.times;
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
            true => self.compare(place, now, source, false)?,
            false => Compared::Other,
        };
        let Compared::Same(digest) = same else {
            return Ok(None);
        };
        let ends = digest.map(|digest| Ends {
            source,
            copy: &copy,
            digest,
        });
        // That it can be proven is known only where a stamp can be had.
        let is_proven = settled
            && is_here
            && is_as_walked
            && ends.is_some_and(|ends| self.stamp(place.item, &ends, Lasting::Mounted).is_some());
        let proof = if is_proven { Proof::New } else { Proof::None };
        Ok(Some((digest, proof)))
    }

    /// Opens the file that has the name of a place, if it is a regular file that this user may read.
    /// Where descriptors are short, that proves nothing of it.
    fn open_existing(&mut self, place: &EntryPlace) -> Result<Option<OwnedFd>, Error> {
        match self.open_waiting(|| open_there(place)) {
            Ok(there) => Ok(Some(there)),
            Err(errno) if is_shortage(&errno) => {
                Err(self.job.refused(&place.target, "open", errno))
            }
            Err(_) => Ok(None),
        }
    }

    /// True if the file with the name of a place has all metadata of its source, which is not open.
    pub(crate) fn is_given_all(
        &mut self,
        place: &EntryPlace,
        now: &FileStat,
    ) -> Result<bool, Error> {
        let open = self.open(place.item)?;
        let wanted = self.wanted(place.item, &mut true, &open, &open.stat)?;
        let Some(there) = self.open_existing(place)? else {
            return Ok(false);
        };
        let has_times = !self.job.plan.options.preserve.times
            || wanted.has_mtime(now)
            || is_cut_off(&open.stat, now)
            || (open.stat.stamp.mtime_ns > now.stamp.mtime_ns && !is_newer(place, &open.stat, now));
        Ok(has_times && self.has_all(&wanted, there.as_fd(), now))
    }

    /// True if an existing file has the metadata that it would be given now.
    fn has_all(&mut self, wanted: &FileMetadata, there: BorrowedFd<'_>, now: &FileStat) -> bool {
        let preserve = self.job.plan.options.preserve;
        let mut found = || self.xattrs.of_file(there);
        self.job.means.giving.is_given(wanted, now)
            && (!preserve.xattrs || found().is_ok_and(|found| meta::has_xattrs(wanted, &found)))
    }

    /// Returns the existing file with the name of a place and its birth time; `None` if there is
    /// none.
    pub(crate) fn existing(&self, place: &EntryPlace) -> Result<Option<Existing>, Error> {
        match Existing::at(&place.dir.fd, place.name()) {
            Ok(existing) => Ok(Some(existing)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(Error::new(self.job.shown(&place.target), "stat", errno)),
        }
    }

    /// Returns the `stat` of the file with the name of a place; `None` if there is none.
    pub(crate) fn there(&self, place: &EntryPlace) -> Result<Option<FileStat>, Error> {
        match stat_at(&place.dir.fd, place.name()) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(Error::new(self.job.shown(&place.target), "stat", errno)),
        }
    }

    /// Compares the existing file with the source. `is_torn`: true if a power cut may have left it
    /// as part of a copy.
    pub(crate) fn compare(
        &mut self,
        place: &EntryPlace,
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
        let mut hasher = self.job.plan.options.algorithm.map(Hasher::new);
        let mut buffers = Default::default();
        let files = [open.file.as_fd(), there.as_fd()];
        let mut sides = SideBySide::new(files, source.stamp.size, &mut buffers);
        let (piece, mut same) = (sides.piece(), true);
        while !sides.is_over() {
            if self.job.means.cancel.is_cancelled() {
                return Err(cancelled(&place.target));
            }
            let [ours, theirs] = match sides.read() {
                Ok(read) => read,
                Err(UnreadSide { file: 0, call }) => {
                    let path = self.job.plan.tree.source_path(place.item);
                    return Err(Error::new(path, call.op, call.errno));
                }
                Err(_) => return Ok(Compared::Other),
            };
            self.job.pay((ours.len() + theirs.len()) as u64);
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
    fn record_state(&mut self, place: &EntryPlace, there: &Existing) {
        if self.job.means.log.is_kept() && is_settled(&there.stat.stamp) {
            self.placed(&place.target, &Placed::of(there));
        }
    }
}

/// Compares an existing entry with a link or node that would be made.
fn is_same_thing(
    place: &EntryPlace,
    there: &Existing,
    source: &FileStat,
    thing: Thing<'_>,
) -> Compared {
    let same = there.stat.kind() == source.kind()
        && match thing {
            Thing::Link(target) => {
                let read = rustix::fs::readlinkat(&place.dir.fd, place.name(), Vec::new());
                read.is_ok_and(|read| read.as_bytes() == target)
            }
            Thing::Node(..) => there.stat.rdev == source.rdev,
        };
    match same {
        true => Compared::Same(None),
        false => Compared::Other,
    }
}

fn cancelled(path: &[u8]) -> Error {
    Error::of_kind(path, "compare", ErrorKind::Cancelled)
}

/// True if an existing file has the earliest or the latest time that a file system can keep which
/// cannot keep that of the source: of 32 bits, or of the 34 of ext4.
fn is_cut_off(source: &FileStat, now: &FileStat) -> bool {
    const FIRST: i64 = i32::MIN as i64;
    const LAST: [i64; 2] = [i32::MAX as i64, FIRST + (1 << 34) - 1];
    let (source, there) = (source.stamp.mtime_ns, now.stamp.mtime_ns);
    let seconds = there.div_euclid(1_000_000_000);
    (source > there && LAST.contains(&seconds)) || (source < there && seconds == FIRST)
}

/// True if a source was modified after the existing file. A file system that keeps coarser times has
/// cut those of a copy off: such a copy is no older than its source.
pub(crate) fn is_newer(place: &EntryPlace, source: &FileStat, now: &FileStat) -> bool {
    let step = || traits_or_unknown(&place.dir.fd, now.id.dev).mtime_step_ns;
    is_later(source.stamp.mtime_ns, now.stamp.mtime_ns, step)
}

/// Opens the file that has the name of a place, if it is a regular file.
pub(crate) fn open_there(place: &EntryPlace) -> Result<OwnedFd, Errno> {
    open_file(&place.dir, place.name())
}

fn open_file(dir: &DestDir, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let open = || rustix::fs::openat(&dir.fd, name, flags, Mode::empty());
    let file = retry_on_intr(open)?;
    match stat(&file)?.kind() {
        FileKind::File => Ok(file),
        _ => Err(Errno::INVAL),
    }
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
        let count = read_at(file.as_fd(), &mut buffer[..PIECE], at)?;
        hasher.update(&buffer[..count]);
        if count < PIECE {
            return Ok(Some(hasher.finalize()));
        }
        at += count as u64;
    }
    Ok(None)
}
