//! Files, stages and runs of earlier runs of the same copy, as their journal has them.
//!
//! A record counts while `stat` returns for the file what it returned once the file had its name,
//! the birth time and the time of the last change included, in the mount that it was written in or
//! where it was forced to the disk since. Everywhere else the bytes have to prove it.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use bc_digest::{Algorithm, Digest};
use bc_fs::known::{Judgement, Known, MountSession};
use bc_fs::volume::volume_at;
use bc_walk::{FileStat, Identity, Stamp};
use rustix::io::Errno;

use crate::place::Existing;
use crate::resume::record::{
    AsideRecord, CopiedRecord, KeptSource, Made, Placed, RootRecord, SessionRecord, SiteRecord,
};

/// Blocks of a stage by their numbers, with the hash values of their parts.
pub(crate) type Blocks = HashMap<u64, Vec<[u8; 32]>>;

/// Work that earlier runs of the same copy have done.
#[derive(Debug, Default)]
pub(crate) struct KnownWork {
    /// Files by their path below the top.
    files: HashMap<Vec<u8>, KnownFile>,
    /// Blocks of stages, by the stage's name, as the last run has recorded them and those before it
    /// that took the same digest.
    pub(crate) blocks: HashMap<String, Blocks>,
    /// Stages of large files, and their directories.
    pub(crate) stages: Vec<(String, Vec<u8>)>,
    /// Files that were begun and are not recorded as complete: their stages may be there.
    pub(crate) begun: HashSet<Vec<u8>>,
    /// True if the journal belongs to the repair of a tree instead of a copy.
    pub(crate) is_restore: bool,
    /// Files that the stages of a repair may lead to, by the paths that they are for.
    pub(crate) made: HashMap<Vec<u8>, Vec<Made>>,
    /// Directories that its roots were.
    pub(crate) roots: Vec<RootRecord>,
    /// Sources of a move that may have private names.
    pub(crate) asides: Vec<AsideRecord>,
    /// Volumes that the sources of a move were on.
    pub(crate) sites: Vec<SiteRecord>,
    /// Those that have kept their own names, by their private ones.
    kept: HashMap<Vec<u8>, KeptSource>,
    /// True if sources were being removed.
    pub(crate) removes: bool,
    /// Sources that were renamed to the destination, or were about to be, by their numbers.
    pub(crate) renamed: HashMap<u64, Identity>,
    /// The runs.
    runs: Vec<KnownRun>,
    /// The current boot, and the current mount of the destination.
    session: MountSession,
    /// True if the work is to be done again.
    anew: bool,
    /// Name of the digest that this run takes.
    algorithm: String,
    /// Time at which the journal was last written to, in nanoseconds since 1970.
    written_ns: i64,
    /// Records of files so far.
    count: usize,
}

/// A run.
#[derive(Debug)]
struct KnownRun {
    /// True if it was in this boot.
    same_boot: bool,
    /// Its boot, and the mount that it wrote to.
    session: MountSession,
    /// Name of the digest that it took.
    algorithm: String,
    /// Number of its first records that are known to be on the disk.
    durable: usize,
    /// The volumes of its sources by their device numbers, as far as they were recorded.
    volumes: Vec<(u64, String)>,
    /// Metadata that it gave its copies, if that was recorded.
    given: Option<u64>,
}

/// A copy of a file by one of the runs.
#[derive(Debug)]
struct KnownFile {
    source: Identity,
    stamp: Stamp,
    ino: u64,
    settled: bool,
    /// True if it could not be given all that its source has.
    lacks: bool,
    digest: Option<Digest>,
    /// Number of the run that took the digest.
    run: usize,
    /// The state in which it had its name, if that was recorded.
    placed: Option<KnownPlaced>,
    /// The copy that had the name before, and still has it if the run was killed at that moment.
    earlier: Option<Box<KnownFile>>,
    /// True once this run has looked at the file with its name.
    seen: AtomicBool,
}

/// A recorded state.
#[derive(Debug)]
struct KnownPlaced {
    state: Placed,
    run: usize,
    nth: usize,
}

impl Placed {
    /// True if the existing file is in the recorded state, and any edit since would have given it
    /// another one, even in the moment in which the file got its name.
    fn is(&self, now: &Existing) -> bool {
        // The mount tells of which device the number is.
        let dev = now.stat.id.dev;
        let then = Known {
            id: Identity { dev, ino: self.ino },
            born_ns: self.born_ns,
            stamp: Stamp {
                size: self.size,
                mtime_ns: self.mtime_ns,
                ctime_ns: self.ctime_ns,
            },
            volume: "",
        };
        let now = Known {
            born_ns: now.born_ns,
            ..Known::of(now.stat.id, now.stat.stamp)
        };
        then.judge(&now) == Judgement::Same && then.shows_edits_of_its_moment()
    }
}

/// The volume that a directory is on.
#[derive(Clone, Debug)]
pub(crate) struct VolumeNow {
    pub(crate) dev: u64,
    /// Its name; empty where it has none.
    pub(crate) name: String,
}

impl VolumeNow {
    /// Looks up the volume of a directory, or of the closest one above it that is there.
    pub(crate) fn of_place(path: &[u8]) -> Result<VolumeNow, Errno> {
        let mut path = Path::new(OsStr::from_bytes(path));
        loop {
            let shown = match path.as_os_str().is_empty() {
                true => Path::new("."),
                false => path,
            };
            match rustix::fs::stat(shown) {
                Ok(stat) => {
                    return Ok(VolumeNow {
                        dev: FileStat::from(&stat).id.dev,
                        name: volume_at(shown).unwrap_or_default(),
                    });
                }
                Err(Errno::NOENT) => path = path.parent().ok_or(Errno::NOENT)?,
                Err(errno) => return Err(errno),
            }
        }
    }

    /// True if it is one that had this device number and this name.
    fn is(&self, (dev, name): (u64, &str)) -> bool {
        match (&self.name[..], name) {
            ("", _) | (_, "") => self.dev == dev,
            (now, then) => now == then,
        }
    }
}

/// Record of a file that has its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamedRecord {
    /// Digest of its content, if this run takes digests of the same kind.
    pub(crate) digest: Option<Digest>,
    /// The digest of its content, and its kind.
    pub(crate) content: Option<(Algorithm, Digest)>,
    /// Size in bytes.
    pub(crate) size: u64,
    /// True if its state alone shows that it is the file that was made: else its content has to.
    pub(crate) is_proven: bool,
    /// True if the source is another one now, or in another state: it is to be copied again.
    pub(crate) outdated: bool,
    /// True if it is the copy of another file than the source now is, or of another state of it.
    pub(crate) is_of_other: bool,
    /// True if the source was written to so shortly before that equal times prove nothing: the two
    /// are to be compared.
    pub(crate) unsettled: bool,
    /// True if a move may have changed the source's time of change, by setting it aside: that its
    /// content and its metadata are those of the copy is to be shown by themselves.
    pub(crate) is_set_aside: bool,
    /// True if it was made of a file of another volume: it is no copy of the source.
    pub(crate) is_foreign: bool,
    /// Number of the source's inode.
    pub(crate) source_ino: u64,
    /// Time up to which a file with that number can have been made that is the source, in nanoseconds
    /// since 1970.
    pub(crate) born_until_ns: i64,
    /// True if the source is the very file of the record still, which no run of this move removed.
    pub(crate) is_kept: bool,
    /// True if it could not be given all that its source has.
    pub(crate) lacks: bool,
    /// Metadata that it was to be given then, where that is known.
    pub(crate) given: Option<u64>,
}

impl KnownWork {
    /// Returns an empty state, for a journal that was last written to at that time.
    pub(crate) fn written_at(written_ns: i64) -> KnownWork {
        KnownWork {
            written_ns,
            ..KnownWork::default()
        }
    }

    /// Returns the records of the file at `path`, the last one first, where `now` is there.
    /// `states_prove`: see [`Job::states_prove`](crate::job::Job::states_prove).
    pub(crate) fn file(
        &self,
        path: &[u8],
        source: Known<'_>,
        now: &Existing,
        states_prove: bool,
    ) -> impl Iterator<Item = NamedRecord> {
        let first = self.files.get(path);
        if let Some(known) = first {
            known.seen.store(true, Relaxed);
        }
        let all = std::iter::successors(first, |known| known.earlier.as_deref());
        all.enumerate().map(move |(nth, known)| {
            let then = Known {
                volume: self.volume_of(known),
                ..Known::of(known.source, known.stamp)
            };
            let is_other = then.judge(&source) == Judgement::Other;
            let mut touched = then;
            touched.stamp.ctime_ns = source.stamp.ctime_ns;
            let is_set_aside =
                is_other && self.removes && touched.judge(&source) != Judgement::Other;
            let is_of_other = nth > 0 || is_other && !is_set_aside;
            NamedRecord {
                // Devices have other numbers after a restart; where a volume is not known, as in
                // records of earlier versions, it is taken for the same.
                outdated: self.anew || is_of_other,
                is_of_other,
                unsettled: !known.settled || is_set_aside,
                is_set_aside,
                is_foreign: then.is_on_another_volume(&source),
                ..self.before(known, now, states_prove)
            }
        })
    }

    fn before(&self, known: &KnownFile, now: &Existing, states_prove: bool) -> NamedRecord {
        let name = self.run(known.run).map_or("", |run| &run.algorithm);
        let is_proven = |placed: &KnownPlaced| !self.is_lost(placed) && placed.state.is(now);
        NamedRecord {
            digest: known.digest.filter(|_| name == self.algorithm),
            content: Algorithm::from_name(name).zip(known.digest),
            size: known.stamp.size,
            is_proven: states_prove && known.placed.as_ref().is_some_and(is_proven),
            outdated: false,
            is_of_other: false,
            unsettled: false,
            is_set_aside: false,
            is_foreign: false,
            source_ino: known.source.ino,
            // One made at the very time of its last change may be another, unless it was read later.
            born_until_ns: known.stamp.ctime_ns - i64::from(!known.settled),
            is_kept: false,
            lacks: known.lacks,
            given: self.run(known.run).and_then(|run| run.given),
        }
    }

    /// Returns the volume of the file that a copy was made of; empty if it is not known.
    fn volume_of(&self, known: &KnownFile) -> &str {
        let volumes = self.run(known.run).map_or(&[][..], |run| &run.volumes);
        let then = volumes.iter().find(|(dev, _)| *dev == known.source.dev);
        then.map_or("", |(_, volume)| volume)
    }

    /// Files that an earlier run has copied and this one has not met: their sources are gone, or are
    /// not asked for.
    pub(crate) fn others(&self) -> impl Iterator<Item = &[u8]> {
        let files = self.files.iter().filter(|_| !self.anew);
        let others = files.filter(|(_, file)| !file.seen.load(Relaxed));
        others.map(|(path, _)| path.as_slice())
    }

    /// Returns the last record of such a file, where `now` is there.
    pub(crate) fn other(
        &self,
        path: &[u8],
        now: &Existing,
        states_prove: bool,
    ) -> Option<NamedRecord> {
        let known = self.files.get(path)?;
        Some(self.before(known, now, states_prove))
    }

    /// Returns the files that an earlier run has begun without a record of their end: entries
    /// without content have none.
    pub(crate) fn begun_before(&self) -> impl Iterator<Item = &[u8]> {
        let begun = self.begun.iter().filter(|_| !self.anew);
        begun.map(Vec::as_slice)
    }

    /// True if data written before a record can have been lost since.
    fn is_lost(&self, placed: &KnownPlaced) -> bool {
        let run = self.run(placed.run);
        let is_durable = run.is_some_and(|run| placed.nth < run.durable);
        !is_durable && !self.is_of_now(placed.run)
    }

    /// True if there is a record of the file at `path`, whatever is there now.
    pub(crate) fn names(&self, path: &[u8]) -> bool {
        self.files.contains_key(path)
    }

    /// True if a record of the file at `path` is of the inode with this number.
    pub(crate) fn has_made(&self, path: &[u8], ino: u64) -> bool {
        let first = self.files.get(path);
        let mut all = std::iter::successors(first, |known| known.earlier.as_deref());
        all.any(|known| known.ino == ino)
    }

    /// True if one of the sources is recorded to be on this volume, or a directory below one.
    pub(crate) fn has_volume(&self, now: &VolumeNow) -> bool {
        let of_runs = self.runs.iter().flat_map(|run| &run.volumes);
        let of_runs = of_runs.map(|(dev, volume)| (*dev, &volume[..]));
        let of_sites = self.sites.iter().map(|site| (site.dev, &site.volume[..]));
        of_sites.chain(of_runs).any(|then| now.is(then))
    }

    /// True if a run has recorded which volume a source is on; `Some(true)` if it is this one.
    pub(crate) fn is_its_volume(&self, source: u64, now: &VolumeNow) -> Option<bool> {
        let of_source = self.sites.iter().filter(|site| site.source == source);
        let found = of_source.map(|site| now.is((site.dev, &site.volume)));
        found.reduce(|one, other| one || other)
    }

    /// True if an earlier run has made, or begun, what a source was to become, with that name below
    /// the top.
    pub(crate) fn has_target(&self, source: u64, name: &[u8]) -> bool {
        let is_root = self.roots.iter().any(|known| known.root == source);
        is_root || self.names(name) || self.begun.contains(name)
    }

    /// Sets the current mount of the destination.
    pub(crate) fn mounted(&mut self, mount: u64) {
        self.session.mount = mount;
    }

    /// True if one of the runs can have made a file that was born at this time: each records a file
    /// before it makes it. The end of a journal may be lost in a power cut, no more than a system
    /// keeps in memory for so long.
    pub(crate) fn can_have_made(&self, born_ns: i64) -> bool {
        const LOST_NS: i64 = 60_000_000_000;
        let lost = match self.runs.last() {
            Some(last) if last.same_boot => 0,
            _ => LOST_NS,
        };
        born_ns <= self.written_ns.saturating_add(lost)
    }

    /// True if the system was started, or the file system mounted, since any of the runs: files
    /// that are not known to be on the disk are to be checked.
    pub(crate) fn is_doubtful(&self) -> bool {
        (1..=self.runs.len()).any(|run| !self.is_of_now(run))
    }

    fn is_of_now(&self, run: usize) -> bool {
        let found = self.run(run);
        found.is_some_and(|run| run.session.is(&self.session))
    }

    /// Returns a run by its number: the first is 1.
    fn run(&self, run: usize) -> Option<&KnownRun> {
        run.checked_sub(1).and_then(|run| self.runs.get(run))
    }

    /// Begins another run: records of stages with a digest of another kind prove nothing any more,
    /// because that run has used the stages for its own.
    pub(crate) fn begin_run(&mut self, session: Option<SessionRecord>, boot: &[u8; 16]) {
        let session = session.unwrap_or_default();
        if self.runs.last().map(|run| &run.algorithm) != Some(&session.algorithm) {
            self.blocks.clear();
        }
        self.session.boot = *boot;
        let same_boot = session.boot == *boot && session.boot != [0; 16];
        self.runs.push(KnownRun {
            same_boot,
            session: MountSession {
                boot: session.boot,
                mount: session.mount,
            },
            algorithm: session.algorithm,
            durable: 0,
            volumes: Vec::new(),
            given: None,
        });
    }

    /// A source is to be set aside, and removed.
    pub(crate) fn aside(&mut self, aside: AsideRecord) {
        self.kept.remove(aside.private.as_bytes());
        self.asides.push(aside);
    }

    /// A source that was to be removed has kept its name.
    pub(crate) fn kept(&mut self, source: Option<(Vec<u8>, KeptSource)>) {
        self.kept.extend(source);
    }

    /// Returns which file the source with this private name was, if it has kept its own ever since it
    /// was to be removed.
    pub(crate) fn kept_source(&self, private: &str) -> Option<KeptSource> {
        self.kept.get(private.as_bytes()).copied()
    }

    /// The name of a volume that the run's sources are on.
    pub(crate) fn volume(&mut self, dev: u64, name: String) {
        if let Some(run) = self.runs.last_mut() {
            run.volumes.push((dev, name));
        }
    }

    /// Takes the metadata that the run gives its copies.
    pub(crate) fn gives(&mut self, given: Option<u64>) {
        if let Some(run) = self.runs.last_mut() {
            run.given = given;
        }
    }

    /// A file that is to get its name could not be given all that its source has.
    pub(crate) fn lacks(&mut self, path: &[u8]) {
        if let Some(file) = self.files.get_mut(path) {
            file.lacks = true;
        }
    }

    /// Takes down that all records so far were forced to the disk, but for those of earlier runs: they may
    /// have been lost before this one began.
    pub(crate) fn made_durable(&mut self) {
        let count = self.count;
        if let Some(run) = self.runs.last_mut() {
            run.durable = count;
        }
    }

    /// Records a file that is to get its name.
    pub(crate) fn insert(&mut self, done: CopiedRecord) {
        let mut file = KnownFile {
            source: done.source,
            stamp: done.stamp,
            ino: done.ino,
            settled: done.settled,
            lacks: false,
            digest: done.digest,
            run: self.runs.len(),
            placed: None,
            earlier: None,
            seen: AtomicBool::new(false),
        };
        self.begun.remove(&done.path);
        match self.files.entry(done.path) {
            Entry::Vacant(entry) => drop(entry.insert(file)),
            Entry::Occupied(mut entry) => {
                std::mem::swap(entry.get_mut(), &mut file);
                entry.get_mut().earlier = Some(Box::new(file));
            }
        }
    }

    /// Records that a file has its name.
    pub(crate) fn placed(&mut self, path: &[u8], state: Placed) {
        let (run, nth) = (self.runs.len(), self.count);
        self.count += 1;
        if let Some(file) = self.files.get_mut(path) {
            file.placed = Some(KnownPlaced { state, run, nth });
            file.earlier = None;
        }
    }

    /// Returns paths below the top whose stages may still be there, though this run has met none of
    /// them: their sources are gone.
    pub(crate) fn unseen(&self) -> impl Iterator<Item = &[u8]> {
        let files = self.files.iter();
        let unseen = files.filter(|(_, file)| !file.seen.load(Relaxed));
        let begun = self.begun.iter().map(Vec::as_slice);
        begun.chain(unseen.map(|(path, _)| path.as_slice()))
    }

    /// Marks the work as to be done again: it stays known, so that its files are not taken for
    /// another process's.
    pub(crate) fn begin_anew(&mut self) {
        self.anew = true;
        self.blocks.clear();
    }

    /// True if the work is to be done again.
    pub(crate) fn is_anew(&self) -> bool {
        self.anew
    }

    /// Drops digests of another algorithm, which say nothing of this run's files or stages.
    pub(crate) fn keep_digests_of(&mut self, algorithm: &str) {
        algorithm.clone_into(&mut self.algorithm);
        if self.runs.last().map(|run| &run.algorithm[..]) != Some(algorithm) {
            self.blocks.clear();
        }
    }

    /// Returns the number of files that are recorded.
    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }
}
