//! State shared by all workers of one copy.

use std::collections::{HashMap, HashSet};
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use bc_digest::Digest;
use bc_fs::Escaped;
use bc_fs::known::MountSession;
use bc_fs::mount::{Answer, Traits, traits_or_unknown};
use bc_fs::path::split;
use bc_fs::shortage::{Shortage, is_shortage};
use bc_integrity::meta_of;
use bc_manifest::integrity::Meta;
use bc_pool::Cancel;
use bc_walk::{Error, ErrorKind, FileKind, FileStat, OwnFile, PathAbove, Stamp};
use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags, Timestamps};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Resource, getrlimit};

use crate::destination::{Top, place_of};
use crate::event::{CopyProgress, EntryReport, Event, Observer, Relay, Why};
use crate::lock;
use crate::manifest::earlier::TreeRecords;
use crate::meta::{Giving, stat_at};
use crate::options::{CopyOptions, ManifestPlace};
use crate::place::{DestDir, Existing, is_settled_at};
use crate::plan::CopyOrder;
use crate::report::Reports;
use crate::results::{EntryOutcome, EntryState, Results};
use crate::resume::journal::{Free, Log};
use crate::resume::known::KnownWork;
use crate::resume::record::{RootRecord, private_name};
use crate::resume::stamp::{Systems, given};
use crate::sources::{RootItem, SourceContent, SourceTree, shown_below};
use crate::stage::JobId;
use crate::stage::named::NamedEntries;

/// A copy that may begin.
pub(crate) struct Begun {
    pub(crate) top: Top,
    pub(crate) id: JobId,
    /// For stages whose names are taken.
    pub(crate) spare: JobId,
    pub(crate) known: KnownWork,
    /// Time at which the first run began, if this one resumes an earlier run; nanoseconds since
    /// 1970.
    pub(crate) went_on: Option<i64>,
    /// Time at which this run began, by the clock that stamps files.
    pub(crate) began: i64,
    pub(crate) log: Log,
    /// Place in which a journal is to be made.
    pub(crate) free: Option<Free>,
}

impl Begun {
    /// Returns the journal, or the file that holds its place: it is not copied.
    pub(crate) fn own_file(&self) -> Option<OwnFile> {
        let claimed = self.free.as_ref().and_then(|free| free.claim.file());
        match claimed {
            Some(file) => OwnFile::of(file).ok(),
            None => self.log.own_file(),
        }
    }
}

/// One copy: what was decided before its first entry, the means by which it is made, what is found
/// out about the destination on the way, and what became of the entries.
pub(crate) struct Job<'a> {
    pub(crate) plan: JobPlan<'a>,
    pub(crate) means: JobMeans<'a>,
    pub(crate) site: JobSite,
    pub(crate) outcomes: JobOutcomes,
}

/// Order of a copy: sources, places and the way of copying. Nothing of it changes.
pub(crate) struct JobPlan<'a> {
    pub(crate) options: &'a CopyOptions,
    pub(crate) order: CopyOrder,
    pub(crate) tree: SourceTree,
    pub(crate) top: Top,
    /// Path of the manifest, below the top.
    manifest_target: Option<Vec<u8>>,
    pub(crate) id: JobId,
    /// Names stages where those of the job are taken by files that are not ours.
    pub(crate) spare: JobId,
    pub(crate) known: KnownWork,
    /// Time at which the first of its runs began, in nanoseconds since 1970; `None` for a new copy.
    pub(crate) went_on: Option<i64>,
    /// Time at which this run began, before anything was looked at, in nanoseconds since 1970 by
    /// the clock that stamps files.
    began: i64,
}

/// Means of a copy, and the ways to its caller.
pub(crate) struct JobMeans<'a> {
    pub(crate) log: Log,
    /// True if it was reported that the journal cannot be written to.
    unrecorded: AtomicBool,
    pub(crate) giving: Giving,
    pub(crate) progress: &'a CopyProgress,
    pub(crate) observer: &'a Observer<'a>,
    /// Relay by which the observer is reached.
    pub(crate) relay: &'a Relay<'a>,
    pub(crate) cancel: &'a Cancel,
    /// Shortage of descriptors among the workers.
    pub(crate) shortage: Shortage,
    barrier: Mutex<()>,
    /// The file systems of the top, and of mounts below it that were written to, by their numbers.
    mounts: Mutex<Vec<(u64, OwnedFd)>>,
}

/// Facts found out about a destination, and about earlier copies there.
pub(crate) struct JobSite {
    pub(crate) session: Option<MountSession>,
    /// Traits of the file system that the top is on.
    pub(crate) top_traits: Traits,
    /// File systems that sources are on.
    pub(crate) systems: Systems,
    /// True if stages may be made that have no name.
    pub(crate) unnamed: AtomicBool,
    /// True if a directory has inherited an access control list.
    pub(crate) inherits: AtomicBool,
    pub(crate) refusals: Refusals,
    /// Roots of the destination that were made by this run, in which no name can be taken.
    pub(crate) new_roots: Vec<AtomicBool>,
    /// Directories that were there before, with the times that they had then, where those are known.
    found: Mutex<HashMap<RootItem, Option<Timestamps>>>,
    recorded: OnceLock<TreeRecords>,
    /// True if the copy was complete before this run.
    pub(crate) was_done: AtomicBool,
    /// The entry that gives way to the manifest, once it is known.
    left_out: OnceLock<RootItem>,
}

/// Outcomes of the entries.
pub(crate) struct JobOutcomes {
    pub(crate) results: Results,
    pub(crate) reports: Reports,
    /// Files that this run has given names.
    pub(crate) named: NamedEntries,
    pub(crate) written: AtomicU64,
    pub(crate) incomplete: AtomicU64,
    stopped: Mutex<Option<Errno>>,
    stops: AtomicBool,
    /// Directories that could not be made, with the reasons.
    unmade: Mutex<HashMap<Vec<u8>, Errno>>,
    /// Entries whose copies failed for want of descriptors: they are copied again in the end, when
    /// no other worker has any open. `None` from then on, and in a dry run, which ends without that.
    put_off: Mutex<Option<Vec<RootItem>>>,
    /// True if it was reported that there are no direct reads.
    pub(crate) reported_direct: AtomicBool,
    /// True if a dry run has come to an entry that would be made.
    pub(crate) would_make: AtomicBool,
    /// Times of the last change, by inode number, of files with several names just before this copy
    /// replaces the first one: the others have fewer names then than they were recorded with.
    replaced_names: Mutex<HashMap<u64, i64>>,
    /// Entries of a move whose copies lack metadata.
    lossy: Mutex<HashSet<RootItem>>,
    /// Entries of a move whose copies are the sources themselves, which have both names.
    linked: Mutex<HashSet<RootItem>>,
    /// Entries that a dry run foresees to be renamed: a run would not come to them here.
    pub(crate) renamed: HashSet<RootItem>,
}

/// Operations that pairs of file systems are known to refuse, so that they are not tried again.
#[derive(Default)]
pub(crate) struct Refusals {
    /// Pairs that refuse to share blocks.
    pub(crate) clone: DevicePairs,
    /// Pairs that refuse to copy within the kernel.
    pub(crate) range: DevicePairs,
}

/// File systems of a file and its copy, by their numbers.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) struct DevicePair {
    pub(crate) source: u64,
    pub(crate) target: u64,
}

/// Pairs of file systems.
#[derive(Default)]
pub(crate) struct DevicePairs(RwLock<Vec<DevicePair>>);

impl DevicePairs {
    pub(crate) fn has(&self, pair: DevicePair) -> bool {
        let pairs = self.0.read().unwrap_or_else(PoisonError::into_inner);
        pairs.contains(&pair)
    }

    pub(crate) fn add(&self, pair: DevicePair) {
        let mut pairs = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
}

/// The observer of a destination, and the way to it.
#[derive(Clone, Copy)]
pub(crate) struct DestinationObserver<'a> {
    pub(crate) observer: &'a Observer<'a>,
    pub(crate) relay: &'a Relay<'a>,
    /// True if it is reported to while files are copied: the first destination's.
    pub(crate) streams: bool,
}

impl JobPlan<'_> {
    /// Returns the state in which an entry was walked.
    pub(crate) fn walked(&self, item: RootItem) -> Option<FileStat> {
        let root = self.tree.root(item).1;
        match &*root.content {
            SourceContent::Alone(..) => Some(root.source.stat.clone()),
            _ => self.tree.stat(item),
        }
    }

    /// Returns the name of an entry's source, and its private one.
    pub(crate) fn source_names(&self, item: RootItem) -> Option<(&CStr, String)> {
        let root = place_of(&self.tree.root(item).1.source.path);
        let (name, path) = self.tree.named_below(item, &root)?;
        Some((name, private_name(&self.id.0, &path)))
    }
}

impl<'a> Job<'a> {
    /// Returns the state before the first entry is copied. `manifest_target`: path of the manifest,
    /// below the top.
    pub(crate) fn new(
        options: &'a CopyOptions,
        begun: Begun,
        tree: SourceTree,
        manifest_target: Option<Vec<u8>>,
        progress: &'a CopyProgress,
        reported: DestinationObserver<'a>,
        cancel: &'a Cancel,
    ) -> Job<'a> {
        let DestinationObserver {
            observer,
            relay,
            streams,
        } = reported;
        let stride = options
            .algorithm
            .map_or(0, |algorithm| algorithm.digest_len());
        let goes_on = begun.went_on.is_some();
        let site = JobSite {
            session: Some(MountSession::of(&begun.top.fd)).filter(MountSession::is_known),
            top_traits: traits_or_unknown(&begun.top.fd, begun.top.id.dev),
            systems: Systems::default(),
            unnamed: AtomicBool::new(false),
            inherits: AtomicBool::new(false),
            refusals: Refusals::default(),
            new_roots: tree.roots.iter().map(|_| AtomicBool::new(false)).collect(),
            found: Mutex::default(),
            recorded: OnceLock::new(),
            was_done: AtomicBool::new(false),
            left_out: OnceLock::new(),
        };
        let outcomes = JobOutcomes {
            results: Results::new(tree.len(), stride),
            reports: Reports::new(&tree, streams),
            named: NamedEntries::new(options.on_conflict, goes_on),
            written: AtomicU64::new(0),
            incomplete: AtomicU64::new(0),
            stopped: Mutex::default(),
            stops: AtomicBool::new(false),
            unmade: Mutex::default(),
            put_off: Mutex::new((!options.dry_run).then(Vec::new)),
            reported_direct: AtomicBool::new(false),
            would_make: AtomicBool::new(false),
            replaced_names: Mutex::default(),
            lossy: Mutex::default(),
            linked: Mutex::default(),
            renamed: HashSet::new(),
        };
        let means = JobMeans {
            log: begun.log,
            unrecorded: AtomicBool::new(false),
            giving: Giving::new(options.preserve, options.moves),
            progress,
            observer,
            relay,
            cancel,
            shortage: Shortage::new(),
            barrier: Mutex::new(()),
            mounts: Mutex::default(),
        };
        let plan = JobPlan {
            options,
            order: CopyOrder {
                on_conflict: options.on_conflict,
                strict: options.strict,
                given: given(options.preserve),
                goes_on,
                moves: options.moves,
                is_anew: begun.known.is_anew(),
                is_doubtful: begun.known.is_doubtful(),
            },
            tree,
            top: begun.top,
            manifest_target,
            id: begun.id,
            spare: begun.spare,
            known: begun.known,
            went_on: begun.went_on,
            began: begun.began,
        };
        Job {
            plan,
            means,
            site,
            outcomes,
        }
    }

    /// Returns the record of the directory that a root is, which may be one of an earlier run.
    pub(crate) fn known_root(&self, root: usize) -> Option<&RootRecord> {
        let number = self.plan.tree.roots[root].source.number as u64;
        self.plan
            .known
            .roots
            .iter()
            .find(|known| known.root == number)
    }

    /// Takes down that a directory was there already, and the times that it had.
    pub(crate) fn found(&self, item: RootItem, times: Option<Timestamps>) {
        let mut found = lock(&self.site.found);
        found.insert(item, times);
        drop(found);
        self.settle([item]);
    }

    /// True if a directory was there when this run came to it.
    pub(crate) fn is_found(&self, item: RootItem) -> bool {
        lock(&self.site.found).contains_key(&item)
    }

    /// Returns the times that a directory had when this run came to it, where they are known.
    pub(crate) fn times_found(&self, item: RootItem) -> Option<Timestamps> {
        lock(&self.site.found).get(&item).cloned().flatten()
    }

    /// True if a directory was there before the copy, and is the user's.
    pub(crate) fn was_there(&self, item: RootItem) -> bool {
        let (root, _) = self.plan.tree.root(item);
        if self.known_root(root).is_some_and(|known| known.made) {
            // An earlier run has made all of it.
            return false;
        }
        let found = lock(&self.site.found);
        found.contains_key(&item)
    }

    /// True if nothing more is to be begun.
    pub(crate) fn is_over(&self) -> bool {
        self.outcomes.stops.load(Relaxed) || self.means.cancel.is_cancelled()
    }

    /// Returns the manifest of an earlier, complete copy: an empty one before it is known.
    pub(crate) fn recorded(&self) -> &TreeRecords {
        static NONE: TreeRecords = TreeRecords::none();
        self.site.recorded.get().unwrap_or(&NONE)
    }

    /// Sets the records of that manifest.
    pub(crate) fn know_recorded(&self, recorded: TreeRecords) {
        let _ = self.site.recorded.set(recorded);
    }

    /// True if nothing was lost on the way to any of the copies.
    pub(crate) fn is_complete(&self) -> bool {
        self.outcomes.incomplete.load(Relaxed) == 0
            && self.why_stopped().is_none()
            && !self.is_over()
    }

    /// True if a change since this run began would give a source another time than this.
    pub(crate) fn was_settled(&self, stamp: &Stamp) -> bool {
        is_settled_at(stamp, self.plan.began)
    }

    /// Returns the reason for which the destination takes no more.
    pub(crate) fn why_stopped(&self) -> Option<Errno> {
        *lock(&self.outcomes.stopped)
    }

    /// Returns the path of a target as it is shown.
    pub(crate) fn shown(&self, target: &[u8]) -> Vec<u8> {
        match shown_below(&self.plan.top.path, target) {
            path if path.is_empty() => b".".to_vec(),
            path => path,
        }
    }

    /// Returns a failure at the destination; some errors mean that everything else would fail too,
    /// and stop the copy.
    pub(crate) fn refused(&self, target: &[u8], op: &'static str, errno: Errno) -> Error {
        if matches!(errno, Errno::NOSPC | Errno::DQUOT | Errno::ROFS) {
            self.outcomes.stops.store(true, Relaxed);
            let mut stopped = lock(&self.outcomes.stopped);
            stopped.get_or_insert(errno);
        }
        Error::new(self.shown(target), op, errno)
    }

    /// Like [`Job::refused`], for an error of the standard library.
    pub(crate) fn refused_io(&self, target: &[u8], op: &'static str, error: io::Error) -> Error {
        match Errno::from_io_error(&error) {
            Some(errno) => self.refused(target, op, errno),
            None => Error::new(self.shown(target), op, error),
        }
    }

    /// Returns the failure of a directory that could not be made, and remembers it.
    pub(crate) fn not_made(&self, target: &[u8], errno: Errno) -> Error {
        let mut unmade = lock(&self.outcomes.unmade);
        unmade.insert(target.to_vec(), errno);
        drop(unmade);
        self.refused(target, "mkdir", errno)
    }

    /// Returns the failure of an entry whose directory cannot be opened: if one of its ancestors
    /// could not be made, with the reason of that one.
    pub(crate) fn no_directory(&self, target: &[u8], errno: Errno) -> Error {
        let unmade = lock(&self.outcomes.unmade);
        let mut dir = split(target).0;
        while !dir.is_empty() && !unmade.is_empty() {
            if let Some(why) = unmade.get(dir) {
                return Error::new(self.shown(target), "make its directory", *why);
            }
            dir = split(dir).0;
        }
        drop(unmade);
        let shown = self.shown(target);
        match self.no_directory_above(target) {
            Some(above) if matches!(errno, Errno::LOOP | Errno::NOTDIR) => {
                Error::of_kind(shown, "open directory", ErrorKind::Above(above))
            }
            _ => Error::new(shown, "open directory", errno),
        }
    }

    /// Returns the first path above a target at which there is something else than a directory.
    fn no_directory_above(&self, target: &[u8]) -> Option<PathAbove> {
        let dir = split(target).0;
        let slashes = dir.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let ends = slashes.map(|(at, _)| at).chain([dir.len()]);
        for end in ends {
            let there = stat_at(&self.plan.top.fd, &dir[..end]).ok()?;
            let what = match there.kind() {
                FileKind::Dir => continue,
                FileKind::Symlink => "is a symbolic link there, which is not followed",
                _ => "is no directory there",
            };
            return Some(PathAbove::new(self.shown(&dir[..end]).len(), what));
        }
        None
    }

    pub(crate) fn fail(&self, item: RootItem, error: &Error) {
        self.record_failure(item, error);
        self.report_failure(item, error);
    }

    /// Takes down that an entry is to be copied again in the end, if it failed for want of
    /// descriptors; false if it has failed for good.
    pub(crate) fn puts_off(&self, item: RootItem, error: &Error) -> bool {
        if !is_shortage(error) {
            return false;
        }
        let mut put_off = lock(&self.outcomes.put_off);
        match &mut *put_off {
            Some(items) => items.push(item),
            None => return false,
        }
        true
    }

    /// Returns the entries that were put off. What fails from now on has failed for good.
    pub(crate) fn take_put_off(&self) -> Vec<RootItem> {
        let mut put_off = lock(&self.outcomes.put_off);
        put_off.take().unwrap_or_default()
    }

    /// Waits until so many bytes are paid for, where there is a limit of bytes a second.
    pub(crate) fn pay(&self, bytes: u64) {
        self.pay_while(bytes, &|| true);
    }

    /// Waits for the same as long as `go_on` holds: while a lease is held, until that is broken.
    pub(crate) fn pay_while(&self, bytes: u64, go_on: &dyn Fn() -> bool) {
        if let Some(rate) = &self.plan.options.rate {
            rate.spend_while(bytes, self.means.cancel, go_on);
        }
    }

    /// Records a failure that another destination has reported.
    pub(crate) fn fail_unreported(&self, item: RootItem, error: &Error) {
        self.record_failure(item, error);
        self.settle([item]);
    }

    fn record_failure(&self, item: RootItem, error: &Error) {
        self.outcomes.results.fail(item, error);
        self.means.progress.files.fetch_add(1, Relaxed);
    }

    /// Records the outcomes of entries.
    pub(crate) fn done(&self, outcomes: Vec<EntryOutcome>) {
        self.means
            .progress
            .files
            .fetch_add(outcomes.len() as u64, Relaxed);
        let items: Vec<RootItem> = outcomes.iter().map(|outcome| outcome.item).collect();
        self.outcomes.results.put(outcomes);
        self.settle(items);
    }

    /// Returns the outcome of an entry that has its name.
    pub(crate) fn outcome(
        &self,
        item: RootItem,
        state: EntryState,
        dir: &DestDir,
        name: &[u8],
        digest: Option<Digest>,
    ) -> Result<EntryOutcome, Errno> {
        let meta = match self.keeps_states() {
            false => None,
            true => Some(meta_of(&self.look(dir, name)?.stat)),
        };
        Ok(EntryOutcome {
            meta,
            digest,
            ..EntryOutcome::new(item, state)
        })
    }

    /// Looks at a file that was given its name.
    pub(crate) fn look(&self, dir: &DestDir, name: &[u8]) -> Result<Existing, Errno> {
        let now = Existing::at(&dir.fd, name)?;
        if now.stat.nlink < 2 || now.stat.kind() == FileKind::Dir {
            return Ok(now);
        }
        // Where a name is given by a link, the stage was another one a moment ago.
        self.ask_anew(dir, name);
        Existing::at(&dir.fd, name)
    }

    /// Makes a file system that caches attributes, as FUSE does for a second, ask for them again:
    /// under one name it does not see changes made under another.
    pub(crate) fn ask_anew(&self, dir: &DestDir, name: &[u8]) {
        let knows =
            self.site.top_traits.asks_at_open == Answer::No && dir.id.dev == self.plan.top.id.dev;
        if !knows {
            let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::STATX_FORCE_SYNC;
            let _ = rustix::fs::statx(&dir.fd, name, flags, StatxFlags::NLINK);
        }
    }

    /// True if a source is in the state in which it was walked.
    pub(crate) fn is_as_walked(&self, item: RootItem, source: &FileStat) -> bool {
        let entry = self.plan.tree.entry(item);
        let walked = entry.and_then(|(listing, id)| listing.stat(id));
        walked.is_some_and(|walked| {
            let state = |stat: &FileStat| (stat.id, stat.stamp, stat.mode, stat.uid, stat.gid);
            state(&walked) == state(source)
        })
    }

    /// True if the state of an existing file proves its content: not where inode numbers move or
    /// change times are made up, nor on a file system mounted below the top, of which no record
    /// describes the mount.
    pub(crate) fn states_prove(&self, dir: &DestDir, there: &Existing) -> bool {
        let id = there.stat.id;
        let is_here = dir.id.dev == self.plan.top.id.dev && id.dev == self.plan.top.id.dev;
        is_here && self.site.top_traits.identity_proves_content(id.ino)
    }

    /// Takes down that a copy lacks metadata: its source may have to stay.
    pub(crate) fn lacks(&self, item: RootItem) {
        if self.plan.options.moves {
            lock(&self.outcomes.lossy).insert(item);
        }
    }

    /// Takes down that an existing file loses a name to the copy.
    pub(crate) fn replaces(&self, there: &FileStat) {
        if there.nlink > 1 {
            let mut names = lock(&self.outcomes.replaced_names);
            names.entry(there.id.ino).or_insert(there.stamp.ctime_ns);
        }
    }

    /// Returns the files that may have lost a name to the copy, by inode number, with the times of
    /// their last change before that.
    pub(crate) fn replaced_names(&self) -> HashMap<u64, i64> {
        lock(&self.outcomes.replaced_names).clone()
    }

    /// Takes down that a source has its name at the destination, too.
    pub(crate) fn is_linked(&self, item: RootItem) {
        lock(&self.outcomes.linked).insert(item);
    }

    /// True if a source has its name at the destination, too.
    pub(crate) fn has_link(&self, item: RootItem) -> bool {
        lock(&self.outcomes.linked).contains(&item)
    }

    /// Returns the sources that have their names at the destination, too.
    pub(crate) fn take_linked(&self) -> HashSet<RootItem> {
        std::mem::take(&mut *lock(&self.outcomes.linked))
    }

    /// Leaves entries out of a dry run whose targets, or directories above them, are foreseen to be
    /// renamed.
    pub(crate) fn leave_renamed(&mut self, foreseen: &HashSet<Vec<u8>>) {
        if foreseen.is_empty() {
            return;
        }
        let mut target = Vec::new();
        for item in self.plan.tree.items() {
            self.plan.tree.write_target(item, &mut target);
            let mut at = &target[..];
            while !at.is_empty() && !foreseen.contains(at) {
                at = split(at).0;
            }
            if !at.is_empty() {
                self.outcomes.renamed.insert(item);
            }
        }
    }

    /// True if a copy of a move lacks metadata.
    pub(crate) fn is_lossy(&self, item: RootItem) -> bool {
        lock(&self.outcomes.lossy).contains(&item)
    }

    /// True if an entry, usually the manifest of an earlier copy, would have the path of this
    /// copy's manifest.
    pub(crate) fn is_manifest(&self, item: RootItem) -> bool {
        let manifest = self.plan.manifest_target.as_deref();
        manifest.is_some_and(|manifest| self.plan.tree.has_target(item, manifest))
    }

    /// True if this is the entry that was left out for the manifest.
    pub(crate) fn is_left_out(&self, item: RootItem) -> bool {
        self.site.left_out.get() == Some(&item)
    }

    /// Leaves such an entry out and reports it as skipped.
    pub(crate) fn leave_manifest(&self, item: RootItem) {
        let _ = self.site.left_out.set(item);
        let mut target = Vec::new();
        self.plan.tree.write_target(item, &mut target);
        if self.plan.tree.root(item).1.source.stat.kind() != FileKind::Dir {
            let text = "it was named, and the manifest of this copy takes its place: have that \
                        written to another file, or none";
            let error = Error::with_message(self.shown(&target), "copy", text);
            return self.fail(item, &error);
        }
        let text = format!(
            "{}: is not copied: {}",
            Escaped(&self.plan.tree.source_path(item)),
            Why::Manifest.text()
        );
        (self.means.observer)(Event::Note(&text));
        self.report(item, EntryReport::Skipped(Why::Manifest));
        self.done(vec![EntryOutcome::new(item, EntryState::Skipped)]);
    }

    /// Returns the metadata of a file for the manifest, or for the end of a move.
    pub(crate) fn recorded_meta(&self, stat: &FileStat) -> Option<Meta> {
        self.keeps_states().then(|| meta_of(stat))
    }

    /// True if the states of copies are needed in the end: for the manifest, or because their sources
    /// are removed.
    pub(crate) fn keeps_states(&self) -> bool {
        self.has_manifest() || self.plan.options.moves
    }

    /// True if a manifest is written.
    pub(crate) fn has_manifest(&self) -> bool {
        self.plan.options.manifest != ManifestPlace::None && self.plan.options.algorithm.is_some()
    }

    /// Locks the barrier, for the thread that is between two of them.
    pub(crate) fn barrier(&self) -> MutexGuard<'_, ()> {
        lock(&self.means.barrier)
    }

    /// Appends records to the journal. Without one the copy continues.
    pub(crate) fn append(&self, piece: &mut Vec<u8>) {
        let appended = self.means.log.append(piece);
        self.has_recorded(appended);
    }

    /// Returns true if the records were written; warns once if not.
    pub(crate) fn has_recorded(&self, recorded: io::Result<()>) -> bool {
        if let Err(error) = &recorded
            && !self.means.unrecorded.swap(true, Relaxed)
        {
            let text = format!(
                "the journal cannot be written to any more: {error}; should this run be \
                 interrupted, what it does from here on is done again"
            );
            (self.means.observer)(Event::Warning(&text));
        }
        recorded.is_ok()
    }

    /// Adds the file system of a directory, given with its number, to those that are forced to their
    /// disks.
    pub(crate) fn also_sync(&self, dev: u64, dir: impl AsFd) {
        let mut mounts = lock(&self.means.mounts);
        let is_new = mounts.iter().all(|(known, _)| *known != dev);
        if is_new && let Ok(open) = self.readable(dir) {
            mounts.push((dev, open));
        }
    }

    /// Opens a directory that is open as a place again, to be synced or listed.
    pub(crate) fn readable(&self, dir: impl AsFd) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = || rustix::fs::openat(dir.as_fd(), c".", flags, Mode::empty());
        self.open_waiting(|| retry_on_intr(open), || ())
    }

    /// Calls `open`, which opens one file or directory. Where descriptors are short, `let_go` closes
    /// those that the caller can do without, and the release of others is awaited.
    pub(crate) fn open_waiting<T>(
        &self,
        mut open: impl FnMut() -> Result<T, Errno>,
        mut let_go: impl FnMut(),
    ) -> Result<T, Errno> {
        let mut wait = self.means.shortage.wait(1);
        loop {
            let opened = open();
            if !wait.again(&opened, || self.means.cancel.is_cancelled(), &mut let_go) {
                return opened;
            }
        }
    }

    /// Forces the data of the destination's file systems to their disks.
    pub(crate) fn sync_all(&self) -> Result<(), Errno> {
        let top = self.plan.top.id.dev;
        let mut mounts = lock(&self.means.mounts);
        if mounts.iter().all(|(dev, _)| *dev != top) {
            mounts.push((top, self.readable(&self.plan.top.fd)?));
        }
        mounts
            .iter()
            .try_for_each(|(_, dir)| retry_on_intr(|| rustix::fs::syncfs(dir)))
    }
}

/// Descriptors of a run that are no worker's: journals, sources and destinations.
const OTHERS: u64 = 24;

/// Returns the limit on the process's descriptors, less those that the run itself needs; `u64::MAX`
/// if there is none.
pub(crate) fn descriptors() -> u64 {
    let limit = getrlimit(Resource::Nofile).current;
    limit.unwrap_or(u64::MAX).saturating_sub(OTHERS)
}
