//! Complete stages that wait for their names: recorded first, then named, unless a name leads to
//! another entry of this run, and forced to the disk before and after that where a power cut must
//! not undo it.
//!
//! A small file may have a stage without a name: it is complete, with all its metadata, before any
//! name leads to it, and gets its own by one link. Such a stage takes 0.76 of the time of one with
//! a name and a renaming on tmpfs, 0.68 on ext4, 0.4 on XFS (40,000 files of 4 KB in one directory,
//! one thread, Linux 6.12), and a killed run leaves nothing behind. It is for files that are made
//! with owner and mode of their sources: a file that was given away may not be linked
//! (`fs.protected_hardlinks`).

use std::cell::Cell;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering::Relaxed;

use bc_digest::Digest;
use bc_edit::metadata::{Subject, times_of};
use bc_edit::{content, entry, swap};
use bc_fs::Escaped;
use bc_fs::dirfd::own_path;
use bc_integrity::meta_of;
use bc_walk::{Error, FileStat, Identity};
use rustix::io::Errno;

use crate::event::{EntryReport, Event};
use crate::job::{Job, descriptors};
use crate::meta::fstat;
use crate::options::{Durability, OnConflict, ReadBack};
use crate::place::{DestDir, EntryPlace, Existing, Over};
use crate::results::{EntryOutcome, EntryState, Proof};
use crate::resume::record::{self, Placed};
use crate::sources::RootItem;
use crate::stage::named::Maps;
use crate::stage::put::{Keep, Look, NotPut, Replacement};
use crate::stage::{self, CompleteStage, NoStage, StageUse};

/// Files that wait for their names with [`Durability::Batch`], and bytes of them: a killed run's
/// waiting files are written again.
const BATCH_FILES: usize = 4096;
const BATCH_BYTES: u64 = 64 << 20;

/// A stage that is complete and waits for its name.
struct WaitingStage {
    place: EntryPlace,
    stage: CompleteStage,
    source: FileStat,
    digest: Option<Digest>,
}

/// Complete files of one worker.
#[derive(Default)]
pub(crate) struct Queue {
    waiting: Vec<WaitingStage>,
    bytes: u64,
    piece: Vec<u8>,
}

impl Queue {
    /// Queues a complete stage.
    pub(crate) fn add(
        &mut self,
        job: &Job<'_>,
        place: EntryPlace,
        stage: CompleteStage,
        source: FileStat,
        digest: Option<Digest>,
    ) {
        self.bytes += source.stamp.size;
        self.waiting.push(WaitingStage {
            place,
            stage,
            source,
            digest,
        });
        if self.waiting.len() >= BATCH_FILES || self.bytes >= BATCH_BYTES {
            self.commit(job);
        }
    }

    /// Gives the waiting files their names unless there is room for so many bytes more beside them.
    pub(crate) fn make_room(&mut self, job: &Job<'_>, bytes: u64) {
        if self.bytes.saturating_add(bytes) > BATCH_BYTES {
            self.commit(job);
        }
    }

    /// Gives all waiting files their names, once they are recorded.
    pub(crate) fn commit(&mut self, job: &Job<'_>) {
        if self.waiting.is_empty() {
            return;
        }
        let waiting = std::mem::take(&mut self.waiting);
        self.bytes = 0;
        let batch = job.plan.options.durability == Durability::Batch;
        // No other thread's records may come between the barriers.
        let _alone = batch.then(|| job.barrier());
        if batch && let Err(errno) = job.sync_all() {
            for waiting in waiting {
                let error = job.refused(&waiting.place.target, "syncfs", errno);
                waiting.stage.remove(&waiting.place.dir);
                job.fail(waiting.place.item, &error);
            }
            return;
        }
        let is_recorded = self.record(job, &waiting);
        let mut outcomes = Vec::with_capacity(waiting.len());
        for mut waiting in waiting {
            let piece = is_recorded.then_some(&mut self.piece);
            match name_stage(job, &mut waiting, piece) {
                Ok(outcome) => outcomes.push(outcome),
                Err(error) => job.fail(waiting.place.item, &error),
            }
        }
        if let Err(errno) = self.second_barrier(job, batch) {
            // They have their names, and may lose them again.
            let mut target = Vec::new();
            for outcome in outcomes {
                job.plan.tree.write_target(outcome.item, &mut target);
                job.fail(outcome.item, &job.refused(&target, "syncfs", errno));
            }
            return;
        }
        job.done(outcomes);
    }

    /// Adds the state of a file that has its name to the next record.
    pub(crate) fn placed(&mut self, target: &[u8], state: &Placed) {
        if target.len() <= record::LONGEST_PATH {
            record::push_placed(&mut self.piece, target, state);
        }
    }

    /// Writes the records that are not yet written.
    pub(crate) fn flush(&mut self, job: &Job<'_>) {
        if self.piece.is_empty() {
            return;
        }
        // Records between the barriers of others would be taken for data that these have forced to
        // the disk.
        let _alone = (job.plan.options.durability == Durability::Batch).then(|| job.barrier());
        self.push_durable(job);
        job.append(&mut self.piece);
    }

    /// Marks records as durable where each file was forced to the disk before, and its name too.
    fn push_durable(&mut self, job: &Job<'_>) {
        if job.plan.options.durability == Durability::File && !self.piece.is_empty() {
            bc_edit::journal::push(&mut self.piece, record::DURABLE, |_| {});
        }
    }

    /// Records files before they get their names; returns false if there is no journal.
    fn record(&mut self, job: &Job<'_>, waiting: &[WaitingStage]) -> bool {
        if !job.means.log.is_kept() {
            return false;
        }
        for waiting in waiting {
            let target = &waiting.place.target;
            if target.len() > record::LONGEST_PATH {
                continue;
            }
            let (source, settled) = (&waiting.source, waiting.place.settled);
            let done =
                record::done_of(target, source, settled, &waiting.stage.stat, waiting.digest);
            record::push_done(&mut self.piece, &done);
            if !waiting.place.is_whole {
                record::push_lacking(&mut self.piece, target);
            }
        }
        self.push_durable(job);
        job.append(&mut self.piece);
        true
    }

    /// Forces names that were given to the disk, if that is to be done of each batch.
    fn second_barrier(&mut self, job: &Job<'_>, batch: bool) -> Result<(), Errno> {
        if batch {
            job.sync_all()?;
            bc_edit::journal::push(&mut self.piece, record::DURABLE, |_| {});
            job.append(&mut self.piece);
            let _ = job.means.log.sync();
        }
        Ok(())
    }
}

/// Gives a stage its name. `piece`: buffer for the record of the state that it has then.
fn name_stage(
    job: &Job<'_>,
    waiting: &mut WaitingStage,
    piece: Option<&mut Vec<u8>>,
) -> Result<EntryOutcome, Error> {
    let unnamed = waiting.stage.unnamed.take();
    let waiting = &*waiting;
    let EntryPlace {
        item,
        target,
        dir,
        over,
        ..
    } = &waiting.place;
    let fd = dir.fd.as_fd();
    let name = waiting.place.name();
    if let Some(file) = unnamed {
        let now = publish_unnamed(job, &waiting.place, file)?;
        job.report(*item, EntryReport::Copied);
        push_state(piece, waiting, &now);
        return Ok(EntryOutcome {
            item: *item,
            state: EntryState::Copied,
            meta: Some(meta_of(&now.stat)),
            digest: waiting.digest,
            proof: proof(job, waiting),
        });
    }
    job.publish(&waiting.place, &waiting.stage.name)?;
    if job.plan.options.durability == Durability::File {
        let synced = job.readable(fd).and_then(rustix::fs::fsync);
        synced.map_err(|errno| job.refused(target, "fsync directory", errno))?;
    }
    job.report(*item, over.report());
    // Further names are given to what is in this state alone.
    let has_further = waiting.source.nlink > 1 && job.plan.options.preserve.links;
    let now = match job.keeps_states() || has_further {
        true => Some(
            job.look(dir, name)
                .map_err(|errno| Error::new(job.shown(target), "stat", errno))?,
        ),
        // A file without a recorded state is read by a resumed run.
        false => piece.as_ref().and_then(|_| job.look(dir, name).ok()),
    };
    if let Some(now) = &now {
        push_state(piece, waiting, now);
    }
    Ok(EntryOutcome {
        item: *item,
        state: EntryState::Copied,
        meta: now.map(|now| meta_of(named_state(job, waiting, &now))),
        digest: waiting.digest,
        proof: proof(job, waiting),
    })
}

/// Returns the state of a file that has its name. Where another program has changed it since, that
/// of its stage: its digest is of that one.
fn named_state<'a>(job: &Job<'_>, waiting: &'a WaitingStage, now: &'a Existing) -> &'a FileStat {
    let stage = &waiting.stage.stat;
    let is_changed = job.states_prove(&waiting.place.dir, now) && !is_same_file(&now.stat, stage);
    if is_changed { stage } else { &now.stat }
}

/// True if two states are of one file that was not written to in between.
fn is_same_file(one: &FileStat, other: &FileStat) -> bool {
    let state = |stat: &FileStat| (stat.id.ino, stat.stamp.size, stat.stamp.mtime_ns);
    state(one) == state(other)
}

/// Records the state of what has its name, unless that was changed since.
fn push_state(piece: Option<&mut Vec<u8>>, waiting: &WaitingStage, now: &Existing) {
    let target = &waiting.place.target;
    if let Some(piece) = piece
        && is_same_file(&now.stat, &waiting.stage.stat)
        && target.len() <= record::LONGEST_PATH
    {
        record::push_placed(piece, target, &Placed::of(now));
    }
}

fn proof(job: &Job<'_>, waiting: &WaitingStage) -> Proof {
    let place = &waiting.place;
    let is_proven = place.settled
        && place.is_whole
        && place.dir.id.dev == job.plan.top.id.dev
        && job.is_as_walked(place.item, &waiting.source);
    if is_proven { Proof::New } else { Proof::None }
}

impl Job<'_> {
    /// Gives a stage, or a link to a file with another name, its name; removes it otherwise.
    pub(crate) fn publish(&self, place: &EntryPlace, stage: &str) -> Result<(), Error> {
        let is_stage = Cell::new(true);
        let given = self.give_name(place, stage, &is_stage);
        given.inspect_err(|_| {
            if is_stage.get() {
                stage::remove(place.dir.fd.as_fd(), stage);
            }
        })
    }

    /// Gives a stage its name. `is_stage` becomes false where the stage is gone, or the name of the
    /// stage may lead to another file.
    fn give_name(
        &self,
        place: &EntryPlace,
        stage: &str,
        is_stage: &Cell<bool>,
    ) -> Result<(), Error> {
        let (dir, name) = (place.dir.fd.as_fd(), place.name());
        let refused = |op, errno| self.refused(&place.target, op, errno);
        let give_new = || {
            let given = entry::rename_new(dir, stage, dir, name);
            given.map_err(|failed| refused("rename", failed.errno))
        };
        let give = || {
            let chosen = match &place.over {
                Over::Nothing => return give_new(),
                Over::Anything => {
                    let given = entry::rename(dir, stage, name);
                    return given.map_err(|failed| refused("rename", failed.errno));
                }
                Over::This(chosen) => chosen,
            };
            let is_known = self.states_prove(&place.dir, chosen);
            let replacement = Replacement {
                dir,
                stage,
                name,
                is_chosen: &|now, look| is_same(chosen, now, look, is_known),
                keep: Keep::Nothing,
            };
            let put = replacement.put();
            is_stage.set(put == Err(NotPut::Gone));
            match put {
                Ok(_) => Ok(()),
                // Nothing is replaced, unless another one comes.
                Err(NotPut::Gone) => give_new(),
                Err(NotPut::Changed | NotPut::System(_, Errno::NOENT)) => Err(self.changed(place)),
                Err(NotPut::Displaced | NotPut::Stuck(_)) => {
                    let kept = swap::keep_beside(dir, stage.as_bytes(), name);
                    Err(self.displaced(place, kept.as_deref().unwrap_or(stage.as_bytes())))
                }
                Err(NotPut::System(_, errno)) => Err(refused("rename", errno)),
                Err(NotPut::CannotKeep) => Err(refused("link", Errno::NOTSUP)),
            }
        };
        if !self.outcomes.named.is_kept {
            return give();
        }
        let id = id_of(place, stage.as_bytes()).map_err(|errno| refused("stat", errno))?;
        let mut maps = self.outcomes.named.lock();
        if place.over == Over::Nothing {
            // Before it has its name, so that no thread finds it there without knowing it.
            self.outcomes.named.add(&mut maps, place, Some(id));
            drop(maps);
            return give().map_err(|error| {
                self.outcomes.named.forget(place, id);
                self.or_taken(place, stage, error)
            });
        }
        // No other thread gives a name between this look and the renaming.
        match self.other_there(&maps, place, stage) {
            Ok(None) => {}
            Ok(Some(first)) => {
                drop(maps);
                return Err(self.taken_by(place, first));
            }
            Err(errno) => return Err(refused("stat", errno)),
        }
        give()?;
        self.outcomes.named.add(&mut maps, place, Some(id));
        Ok(())
    }

    /// The failure of a file that was to be taken over, and is another one now, or in another state.
    fn changed(&self, place: &EntryPlace) -> Error {
        let text = "is not what was to be replaced any more: it was changed meanwhile";
        Error::with_message(self.shown(&place.target), "rename", text)
    }

    /// The failure of a file that was put in the place of another one in the moment when that was
    /// changed, and then changed again: the version between has the name `kept`.
    fn displaced(&self, place: &EntryPlace, kept: &[u8]) -> Error {
        const WHY: &str = "another program wrote here at that moment";
        let shown = self.shown(&place.target);
        let text = format!(
            "{}: {WHY}: one of its files is {} now",
            Escaped(&shown),
            Escaped(kept)
        );
        (self.means.observer)(Event::Warning(&text));
        Error::with_message(shown, "rename", WHY)
    }

    /// The failure of a name that was taken since it was found free: perhaps by another entry.
    fn or_taken(&self, place: &EntryPlace, stage: &str, error: Error) -> Error {
        let is_taken = error.errno() == Some(Errno::EXIST.raw_os_error());
        let maps = self.outcomes.named.lock();
        let first = is_taken.then(|| self.other_there(&maps, place, stage));
        drop(maps);
        match first {
            Some(Ok(Some(first))) => self.taken_by(place, first),
            _ => error,
        }
    }

    /// Returns the other entry that has the name of a place, if there is one.
    fn other_there(
        &self,
        maps: &Maps,
        place: &EntryPlace,
        stage: &str,
    ) -> Result<Option<RootItem>, Errno> {
        let there = match id_of(place, place.name()) {
            Err(Errno::NOENT) => return Ok(None),
            there => there?,
        };
        let is_other = |item: &RootItem| *item != place.item;
        let same = maps.files.get(&there).copied().filter(is_other);
        let alike = || {
            let other = self.outcomes.named.alike(maps, place).find(is_other)?;
            // The stage shows whether case counts here.
            let is_one = id_of(place, stage.to_uppercase().as_bytes()).is_ok();
            is_one.then_some(other)
        };
        Ok(same.or_else(alike))
    }

    /// Returns the failure of a name that leads to another entry.
    fn taken_by(&self, place: &EntryPlace, first: RootItem) -> Error {
        let mut target = Vec::new();
        self.plan.tree.write_target(first, &mut target);
        let (first, second) = (self.shown(&target), self.shown(&place.target));
        let text = format!(
            "{}: is the same as {} at the destination: what was copied there stays",
            Escaped(&second),
            Escaped(&first)
        );
        (self.means.observer)(Event::Warning(&text));
        let text = "another source has the same name at the destination";
        Error::with_message(second, "rename", text)
    }
}

/// True if a file is in the state in which it was found. `is_known`: its number says which it is.
fn is_same(then: &Existing, now: &Existing, look: Look, is_known: bool) -> bool {
    let (mut then_state, now_state) = (Placed::of(then), Placed::of(now));
    if look == Look::After || then.stat.nlink != now.stat.nlink {
        // So has that another name of it was taken over.
        then_state.ctime_ns = now_state.ctime_ns;
    }
    if look == Look::After {
        // A file of a lower layer has become one of the upper one.
        then_state.born_ns = now_state.born_ns;
        if !is_known {
            then_state.ino = now_state.ino;
        }
    }
    then_state == now_state
}

/// Returns the identity of the file that a name in the directory of a place leads to.
pub(crate) fn id_of(place: &EntryPlace, name: &[u8]) -> Result<Identity, Errno> {
    swap::identity(place.dir.fd.as_fd(), name)?.ok_or(Errno::NOENT)
}

/// File systems on which unnamed stages are quicker. On Btrfs they are not always.
const QUICKER_ON: [&str; 3] = ["tmpfs", "ext4", "XFS"];

/// Descriptors for each worker: the 128 files of a batch wait open, and one more and the steps to it;
/// as many are for directories.
pub(crate) const UNNAMED_EACH: u64 = 2 * (128 + 32);

/// True if a copy may make such stages. Files that must be on the disk before they have their
/// names, that are read back by name, or that replace others have a name from the start. The usual
/// workers have room for it at each destination; others join as far as there is room for theirs.
pub(crate) fn may_be_unnamed(job: &Job<'_>, destinations: usize) -> bool {
    let options = job.plan.options;
    let workers = (options.workers.max(1) * destinations.max(1)) as u64;
    options.durability == Durability::None
        && options.read_back == ReadBack::None
        && matches!(options.on_conflict, OnConflict::Fail | OnConflict::Skip)
        && job.plan.went_on.is_none()
        && QUICKER_ON.contains(&job.site.top_traits.name)
        && descriptors() / workers >= UNNAMED_EACH
        // The second way to a link.
        && rustix::fs::stat(own_path(&job.plan.top.fd)).is_ok()
}

/// Creates a file in a directory that no name leads to; `None` where that is not possible.
pub(crate) fn create_unnamed(job: &Job<'_>, dir: &DestDir, mode: u32) -> Option<File> {
    if !job.site.unnamed.load(Relaxed) || dir.id.dev != job.plan.top.id.dev {
        return None;
    }
    let file = content::create_unnamed(&dir.fd, mode);
    if file.is_err() {
        job.site.unnamed.store(false, Relaxed);
    }
    file.ok().map(File::from)
}

/// Gives such a file its name, closes it, and returns its state then.
fn publish_unnamed(job: &Job<'_>, place: &EntryPlace, file: File) -> Result<Existing, Error> {
    let refused = |op, errno| job.refused(&place.target, op, errno);
    match entry::link_unnamed(&file, &place.dir.fd, place.name()).map_err(Errno::from) {
        Ok(()) => {}
        Err(
            errno @ (Errno::EXIST
            | Errno::NOSPC
            | Errno::DQUOT
            | Errno::ROFS
            | Errno::IO
            | Errno::NAMETOOLONG),
        ) => return Err(refused("link", errno)),
        // Some policies know files by their names alone.
        Err(_) => {
            job.site.unnamed.store(false, Relaxed);
            return by_name(job, place, &file);
        }
    }
    let now = Existing::of(&file).map_err(|errno| refused("stat", errno))?;
    // File systems where such stages are made have nothing to say here; one that had would keep
    // a name that leads to no whole copy.
    if let Err(errno) = bc_fs::call::close(file) {
        if id_of(place, place.name()) == Ok(now.stat.id) {
            let _ = entry::unlink(&place.dir.fd, place.name());
        }
        return Err(refused("close", errno));
    }
    Ok(now)
}

/// Publishes the file by a stage that has a name, with the file's content and metadata.
fn by_name(job: &Job<'_>, place: &EntryPlace, file: &File) -> Result<Existing, Error> {
    let refused = |op, errno| job.refused(&place.target, op, errno);
    let raw = fstat(file).map_err(|errno| refused("stat", errno))?;
    let stat = FileStat::from(&raw);
    let name = job.plan.id.stage(&place.dir, &place.target, None);
    let made = stage::open(&place.dir, name, StageUse::FreshWith(stat.mode & 0o7777));
    let made = made.map_err(|error| match error {
        NoStage::System(errno) => refused("create", errno),
        NoStage::Foreign(_) => refused("create", Errno::EXIST),
    })?;
    let fill = || {
        let mut bytes = vec![0; stat.stamp.size as usize];
        file.read_exact_at(&mut bytes, 0)?;
        made.file.write_all_at(&bytes, 0)
    };
    let filled = fill().map_err(|error| job.refused_io(&place.target, "write", error));
    let given = filled.and_then(|()| {
        let given = Subject::open(made.file.as_fd()).set_times(&times_of(&raw));
        given.map_err(|errno| refused("utimens", errno))
    });
    if let Err(error) = given {
        made.remove(&place.dir);
        return Err(error);
    }
    let name = made.close(&place.dir);
    let name = name.map_err(|errno| refused("close", errno))?;
    job.publish(place, &name)?;
    let now = Existing::at(&place.dir.fd, place.name());
    now.map_err(|errno| refused("stat", errno))
}
