//! The manifest of a copy, which `bc integrity verify` accepts at once: the copied entries, with
//! the digests taken on the way, and the records of an earlier manifest there for the rest.
//!
//! One thread puts entries together, another one writes them, where there are two.

mod allowed;
mod beside;
pub(crate) mod earlier;
mod plan;
mod whole;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{BufWriter, ErrorKind as IoErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::Builder;

use bc_digest::Digest;
use bc_edit::atomic::{AsRead, AtomicFile, Uncommitted};
use bc_edit::entry;
use bc_edit::output::OutputFile;
use bc_fs::path::split;
use bc_fs::place::Place;
use bc_integrity::{kind_of, meta_of};
use bc_manifest::integrity::{Entry, Header, Kind, Meta, ROOT, Scope, Writer};
use bc_manifest::time::format_rfc3339;
use bc_walk::job::Error;
use bc_walk::{FileKind, FileStat};
use earlier::{Earlier, ExistingManifest, Whole};
use plan::{HeadSource, ManifestHead, below, heads, manifest_file, manifest_root, path_in, push};
use rustix::io::Errno;
use serde_json::{Map, Value};

use crate::decide::{digest_of, open_there};
use crate::error::system_error;
use crate::event::Event;
use crate::job::Job;
use crate::lock;
use crate::meta::stat_at;
use crate::options::ManifestPlace;
use crate::results::{EntryState, Proof, Rows, Unlisted};
use crate::resume::stamp::{Ends, Lasting, Stamp};
use crate::sources::{RootItem, shown_below};
use crate::worker::Worker;
pub(crate) use allowed::{refuse_copied_manifest, refuse_foreign_manifest, refuse_odd_manifest};
pub(crate) use earlier::{is_of_whole, recorded};
pub(crate) use plan::{ManifestPlan, manifest_target};
pub(crate) use whole::is_done;

/// A manifest that is in its place.
pub(crate) struct WrittenManifest {
    /// Its path as it is shown.
    pub(crate) shown: Vec<u8>,
    /// True if it is the earlier one, which says the same.
    pub(crate) is_old: bool,
}

impl WrittenManifest {
    fn old(shown: Vec<u8>) -> WrittenManifest {
        let is_old = true;
        WrittenManifest { shown, is_old }
    }
}

/// Writes the manifest, unless the existing one says the same. `rows` has the outcomes of the
/// entries, `unlisted` the paths without one, which could not be looked at.
pub(crate) fn write(
    job: &Job<'_>,
    plan: &ManifestPlan,
    rows: &Rows,
    unlisted: &[Unlisted],
    lasting: Lasting,
) -> Result<WrittenManifest, Error> {
    let shown = plan.file.as_os_str().as_bytes().to_vec();
    if job.site.was_done.load(Relaxed) {
        return Ok(WrittenManifest::old(shown));
    }
    let beside = beside::find(job, plan, rows);
    let about = About {
        job,
        plan,
        rows,
        unlisted,
        beside: &beside,
    };
    let recorded = job.recorded();
    let is_all = beside.is_empty()
        && recorded.scope().is_some_and(|scope| {
            unlisted.is_empty()
                && recorded.is_all(&about.header(Some(scope)).0, &job.plan.tree, rows)
        });
    let written = match is_all && !rows.has_new_proofs() {
        true => return Ok(WrittenManifest::old(shown)),
        false => replace(&about, &shown, lasting),
    };
    match written {
        // That more could be proven is no reason to fail.
        Err(_) if is_all => Ok(WrittenManifest::old(shown)),
        written => written.map(|()| WrittenManifest {
            shown,
            is_old: false,
        }),
    }
}

/// Subject of a manifest.
struct About<'a, 'j> {
    job: &'a Job<'j>,
    plan: &'a ManifestPlan,
    /// Outcomes of the entries.
    rows: &'a Rows,
    /// Paths without an entry, which could not be looked at.
    unlisted: &'a [Unlisted],
    /// Entries that an earlier run has copied beside those of this one.
    beside: &'a [Entry],
}

impl About<'_, '_> {
    /// Returns its header, following an earlier one with this scope, and whether it describes a
    /// part.
    fn header(&self, earlier: Option<&Option<Scope>>) -> (Header, bool) {
        let scope = scope(self.job, self.plan, self.unlisted, self.beside, earlier);
        let header = header(self.job, self.plan, scope.as_ref());
        (header, scope.is_some())
    }
}

/// File that a new manifest replaces.
enum ReplacedFile {
    /// Nothing.
    Nothing,
    /// The manifest whose records the new one carries on.
    Earlier(AsRead),
    /// Any file: the user has named it, or it cannot be told from others.
    Anything,
}

/// Writes the manifest. If another copy to the same destination has written its own meanwhile, that
/// one is carried on too: neither loses what it has proven.
fn replace(about: &About<'_, '_>, shown: &[u8], lasting: Lasting) -> Result<(), Error> {
    /// Every time another copy comes to its end.
    const MOST_TIMES: u32 = 1000;
    for _ in 0..MOST_TIMES {
        allowed::refuse_now(about.job, about.plan, about.rows)?;
        let (earlier, over) = find_earlier(about, shown)?;
        if replace_once(about, shown, lasting, earlier, over)? {
            return Ok(());
        }
    }
    Err(system_error(shown, "rename", Errno::EXIST))
}

/// Returns the existing manifest, if its records are carried on, and the file to be replaced.
fn find_earlier(
    about: &About<'_, '_>,
    shown: &[u8],
) -> Result<(Option<Earlier>, ReplacedFile), Error> {
    /// No process replaces it so often in so short a time: names do not lead to the numbers of open
    /// files here, as on some FUSE file systems.
    const MOST_LOOKS: u32 = 8;
    let &About { job, plan, .. } = about;
    let mut looks = 0;
    loop {
        let earlier = match earlier::look(job.plan.options, plan, Whole::Proven) {
            ExistingManifest::Nothing => return Ok((None, ReplacedFile::Nothing)),
            ExistingManifest::Manifest(earlier) => *earlier,
            ExistingManifest::Other(why) => {
                let over = match set_aside(job, plan, &why)? {
                    true => ReplacedFile::Nothing,
                    false => ReplacedFile::Anything,
                };
                return Ok((None, over));
            }
        };
        let file = earlier.file.try_clone();
        let file = file.map_err(|error| system_error(shown, "open", error))?;
        looks += 1;
        if Place::find(&plan.file).is_ok_and(|place| place.means(file.file())) {
            return Ok((Some(earlier), ReplacedFile::Earlier(file)));
        }
        if looks == MOST_LOOKS {
            return Ok((Some(earlier), ReplacedFile::Anything));
        }
    }
}

/// Returns false if another manifest was written meanwhile.
fn replace_once(
    about: &About<'_, '_>,
    shown: &[u8],
    lasting: Lasting,
    earlier: Option<Earlier>,
    over: ReplacedFile,
) -> Result<bool, Error> {
    let &About { job, plan, .. } = about;
    let failed = |op: &'static str, error: std::io::Error| system_error(shown, op, error);
    let uncommitted = |not: Uncommitted| failed(not.operation, not.error);
    let new = OutputFile::create(&plan.file, || job.is_over()).map_err(uncommitted)?;
    new.pending()
        .into_iter()
        .for_each(AtomicFile::only_owner_writes);
    let (header, is_part) = about.header(earlier.as_ref().map(|earlier| &earlier.scope));
    let out = BufWriter::with_capacity(1 << 20, new.file());
    let written = write_entries(out, &header, job.plan.options.workers, |out| {
        fill(about, is_part, earlier, lasting, out)
    });
    written.map_err(|error| match error.io_error() {
        Some(io) => {
            let errno = io.raw_os_error().unwrap_or(Errno::IO.raw_os_error());
            system_error(shown, "write", Errno::from_raw_os_error(errno))
        }
        None => Error::usage(format!("{}: write: {error}", bc_fs::Escaped(shown))),
    })?;
    let committed = new.end(|new| match &over {
        ReplacedFile::Nothing => new.commit_new(),
        ReplacedFile::Earlier(old) => new.commit_over(old),
        ReplacedFile::Anything => new.commit(),
    });
    match committed {
        Err(not) if not.error.kind() == IoErrorKind::AlreadyExists => Ok(false),
        committed => committed.map(|()| true).map_err(uncommitted),
    }
}

/// Renames a manifest that cannot be carried on, so that it is not lost, unless the user has named
/// the file, which is then replaced as every output is. Returns true if the name is free now.
fn set_aside(job: &Job<'_>, plan: &ManifestPlan, why: &str) -> Result<bool, Error> {
    /// Number of manifests that may have been set aside there.
    const MOST: u32 = 1000;
    if job.plan.options.manifest != ManifestPlace::Destination {
        return Ok(false);
    }
    let shown = plan.file.as_os_str().as_bytes();
    let place = Place::find(&plan.file);
    let place = place.map_err(|error| system_error(shown, "rename", error))?;
    for attempt in 1..=MOST {
        let mut name = place.name().to_owned();
        name.push(format!("-{attempt}"));
        let directory = place.directory();
        match entry::rename_new(directory, place.name(), directory, &*name) {
            Ok(()) => {
                let text = format!(
                    "{}: {why}: what it says is not carried on, and its name is {} now",
                    bc_fs::Escaped(shown),
                    bc_fs::Escaped(name.as_bytes())
                );
                (job.means.observer)(Event::Warning(&text));
                return Ok(true);
            }
            Err(failed) if failed.errno == Errno::EXIST => {}
            Err(failed) => return Err(system_error(shown, "rename", failed.errno)),
        }
    }
    Err(system_error(shown, "rename", Errno::EXIST))
}

/// Merges the copied entries with those of an earlier manifest; returns what is added to the
/// trailer.
fn fill(
    about: &About<'_, '_>,
    is_part: bool,
    mut earlier: Option<Earlier>,
    lasting: Lasting,
    out: &mut EntrySink<'_>,
) -> Result<Map<String, Value>, bc_manifest::Error> {
    let &About {
        job,
        plan,
        rows,
        unlisted,
        beside,
    } = about;
    let mut worker = Worker::new(job);
    let replaced = job.replaced_names();
    let mut heads = heads(&job.plan.tree, plan, unlisted, beside);
    // True while all that is written belongs to this copy.
    let mut is_all = true;
    let mut last = Vec::new();
    while let Some(ManifestHead { path, next }) = heads.pop().filter(|_| !out.is_over()) {
        if path == last {
            continue;
        }
        last.clone_from(&path);
        let mut known = None;
        if let Some(earlier) = &mut earlier {
            while let Some(mut entry) = earlier.take_before(&path)? {
                // Not of this copy: what has become of it is for `verify` to find.
                is_all = false;
                if earlier.stays(&entry) {
                    count_names(&mut worker, plan, &replaced, None, &mut entry);
                    out.put(entry);
                }
            }
            known = earlier.take_at(&path)?;
        }
        let is_root = path == ROOT;
        let entry = match next {
            HeadSource::Item(item, end) => {
                push(&job.plan.tree, plan, &mut heads, RootItem(item.0 + 1), end);
                let mut entry = entry(&mut worker, rows, item, path, known, lasting);
                if let Some(entry) = &mut entry {
                    count_names(&mut worker, plan, &replaced, rows.meta(item), entry);
                }
                entry
            }
            HeadSource::Unlisted(nth) => Some(unlisted_entry(path, &unlisted[nth])),
            HeadSource::Beside(nth) => {
                is_all = false;
                let fits =
                    |known: &Entry| earlier.as_ref().is_some_and(|one| one.still_fits(known));
                known.filter(fits).or_else(|| Some(beside[nth].clone()))
            }
        };
        is_all &= entry.is_some();
        if let Some(entry) = entry.filter(|_| !(is_root && is_part)) {
            out.put(entry);
        }
    }
    if let Some(earlier) = &mut earlier {
        while let Some(mut entry) = earlier.take()? {
            is_all = false;
            if earlier.stays(&entry) {
                count_names(&mut worker, plan, &replaced, None, &mut entry);
                out.put(entry);
            }
        }
    }
    Ok(match is_all {
        true => whole::trailer(&mut worker, plan, rows, unlisted, lasting),
        false => Map::new(),
    })
}

/// Counts the names of a file again of which this copy has replaced one, if nothing else was done to
/// it: that changed the time of its last change, too. The entry has to be of the state just before
/// that, or of the one that this run has `seen` it in: another time of change shows an edit, which the
/// record keeps.
fn count_names(
    worker: &mut Worker<'_>,
    plan: &ManifestPlan,
    replaced: &HashMap<u64, i64>,
    seen: Option<Meta>,
    entry: &mut Entry,
) {
    let is_recorded = |meta: &Meta| match replaced.get(&meta.ino) {
        Some(ctime_ns) => meta.ctime_ns == *ctime_ns || seen == Some(*meta),
        None => false,
    };
    let Some(meta) = entry.meta.filter(is_recorded) else {
        return;
    };
    let target = shown_below(&plan.below, &entry.path);
    let (dir, name) = split(&target);
    let there = worker.try_dir(dir).and_then(|dir| stat_at(&dir.fd, name));
    let Ok(now) = there.map(|now| meta_of(&now)) else {
        return;
    };
    let (ctime_ns, nlink) = (meta.ctime_ns, meta.nlink);
    let is_it = Meta {
        ctime_ns,
        nlink,
        ..now
    } == meta
        && now.nlink < nlink;
    if entry.kind == Kind::File && is_it {
        entry.meta = Some(now);
        // It is of the other state.
        entry.copy_stamp = None;
    }
}

/// Returns the manifest's entry for a path that could not be looked at.
fn unlisted_entry(path: Vec<u8>, unlisted: &Unlisted) -> Entry {
    let mut entry = Entry::new(path, kind_of(unlisted.kind));
    entry.error = Some(unlisted.failure.clone());
    entry
}

/// Returns the manifest's entry for an item, of which an earlier manifest has the entry `known`.
fn entry(
    worker: &mut Worker<'_>,
    rows: &Rows,
    item: RootItem,
    path: Vec<u8>,
    known: Option<Entry>,
    lasting: Lasting,
) -> Option<Entry> {
    let job = worker.job;
    if rows.state(item) == EntryState::Left || job.is_manifest(item) {
        return None;
    }
    let meta = rows.meta(item);
    let kind = match meta {
        Some(meta) => kind_of(FileKind::from_mode(meta.mode)),
        None => kind_of(job.plan.tree.kind(item)),
    };
    let mut entry = Entry::new(path, kind);
    entry.meta = meta;
    if let (true, Some(own)) = (job.plan.options.moves, &mut entry.meta)
        && let Some(walked) = job.plan.tree.stat(item)
        && (walked.id.dev, walked.id.ino) == (job.plan.top.id.dev, own.ino)
        && walked.kind() == FileKind::File
    {
        // It is the source itself, whose own name goes.
        own.nlink = walked.nlink;
    }
    if let Some(failure) = rows.failure(item) {
        // The existing file was left alone: it still has to match its earlier record.
        if let Some(known) = known.filter(|known| known.error.is_none())
            && matches!(
                worker.place(item).and_then(|at| worker.there(&at)),
                Ok(Some(_))
            )
        {
            return Some(known);
        }
        // The file that is there, if any, is not the intended one.
        entry.error = Some(failure.clone());
        return Some(entry);
    }
    match kind {
        Kind::File => {
            let unchanged = known.as_ref().filter(|known| known.meta == meta);
            let recorded = unchanged.and_then(|known| known.digest);
            let digest = rows.digest(item).or(recorded);
            entry.digest = digest.or_else(|| digest_there(worker, item));
            let digest = entry.digest?;
            entry.copy_stamp = match (rows.proof(item), &entry.meta) {
                (Proof::Kept, _) => job
                    .recorded()
                    .of(item)
                    .and_then(|(row, _)| row.stamp().copied()),
                (Proof::New, Some(copy)) => stamp(worker, item, copy, digest, lasting),
                _ => None,
            };
            if rows.state(item) == EntryState::Skipped
                && let Some(known) = known.filter(|known| is_damaged(known, &entry))
            {
                let text = "has not the content of which the manifest says that it was copied, \
                            though size and time are the same: that record stays";
                let shown = job.shown(&worker.place(item).ok()?.target);
                (job.means.observer)(Event::Failed(&bc_walk::Error::with_message(
                    shown, "compare", text,
                )));
                return Some(known);
            }
        }
        Kind::Symlink => {
            let place = worker.place(item).ok()?;
            let read = rustix::fs::readlinkat(&place.dir.fd, place.name(), Vec::new());
            entry.target = Some(read.ok()?.into_bytes());
        }
        Kind::Block | Kind::Char => {
            let place = worker.place(item).ok()?;
            let stat = worker.there(&place).ok()??;
            entry.rdev = Some(stat.rdev);
        }
        _ => {}
    }
    Some(entry)
}

/// Returns the stamp of a file whose copy is proven to be what its source was when it was walked.
fn stamp(
    worker: &mut Worker<'_>,
    item: RootItem,
    copy: &Meta,
    digest: Digest,
    lasting: Lasting,
) -> Option<Stamp> {
    let (listing, id) = worker.job.plan.tree.entry(item)?;
    let source = &listing.stat(id)?;
    let ends = Ends {
        source,
        copy,
        digest,
    };
    worker.stamp(item, &ends, lasting)
}

/// True if a file has other content than was recorded of it, with the same size and time: no
/// program leaves it so.
fn is_damaged(known: &Entry, now: &Entry) -> bool {
    let seen = |entry: &Entry| entry.meta.map(|meta| (meta.size, meta.mtime_ns));
    known.digest.is_some() && known.digest != now.digest && seen(known) == seen(now)
}

/// Returns the digest of a file that was left at the destination and of which nothing is known.
fn digest_there(worker: &mut Worker<'_>, item: RootItem) -> Option<Digest> {
    let job = worker.job;
    let place = worker.place(item).ok()?;
    let file = open_there(&place).ok()?;
    let go_on = || !job.means.cancel.is_cancelled();
    digest_of(&file, job.plan.options.algorithm?, &mut Vec::new(), &go_on).ok()?
}

/// Returns the plan of the manifest of a copy that has come to its end.
pub(crate) fn plan(job: &Job<'_>) -> Option<ManifestPlan> {
    let (top, first) = (&job.plan.top, &job.plan.tree.roots[0].source);
    let file = manifest_file(job.plan.options, top, first)?;
    let (root, below) = manifest_root(top, first);
    if !below.is_empty() && job.plan.tree.items_of(0).is_empty() {
        // Nothing was made of a source that could not be opened.
        return None;
    }
    let made = |root: usize| {
        let known = job.known_root(root);
        job.site.new_roots[root].load(Relaxed) || known.is_some_and(|known| known.made)
    };
    let whole = !below.is_empty() && made(0);
    Some(ManifestPlan {
        file,
        root,
        below,
        whole,
    })
}

/// Returns the scope of the manifest, unless it describes all that is below its root.
fn scope(
    job: &Job<'_>,
    plan: &ManifestPlan,
    unlisted: &[Unlisted],
    beside: &[Entry],
    earlier: Option<&Option<Scope>>,
) -> Option<Scope> {
    // That is about everything, or the earlier one was.
    if plan.whole || earlier == Some(&None) {
        return None;
    }
    let is_direct = |path: &Vec<u8>| path != ROOT && !path.contains(&b'/');
    let unlisted = unlisted.iter().map(|one| below(plan, one.target.clone()));
    let beside = beside.iter().map(|entry| entry.path.clone());
    let mut paths: Vec<Vec<u8>> = unlisted.chain(beside).filter(is_direct).collect();
    for root in 0..job.plan.tree.roots.len() {
        let name = &job.plan.tree.roots[root].name;
        match plan.below.is_empty() && !name.is_empty() {
            true => paths.push(name.clone()),
            // The entries directly in a directory that existed before.
            false => {
                let items = job
                    .plan
                    .tree
                    .items_of(root)
                    .map(|item| path_in(&job.plan.tree, plan, RootItem(item)));
                paths.extend(items.filter(is_direct));
            }
        }
    }
    if let Some(Some(scope)) = earlier {
        paths.extend_from_slice(scope.paths());
    }
    Some(Scope::of(paths))
}

/// Returns the first record of the manifest.
fn header(job: &Job<'_>, plan: &ManifestPlan, scope: Option<&Scope>) -> Header {
    let options = job.plan.options;
    let algorithm = options.algorithm.map_or("", |algorithm| algorithm.name());
    let mut header = Header::new(algorithm, env!("CARGO_PKG_VERSION"));
    header.tool = "bc copy".to_owned();
    header.created_at = Some(format_rfc3339(options.now));
    header.host.clone_from(&options.host);
    header.machine.clone_from(&options.machine);
    let root = match plan.root.is_empty() {
        true => Path::new("."),
        false => Path::new(OsStr::from_bytes(&plan.root)),
    };
    let real = std::fs::canonicalize(root);
    header.root = Some(real.map_or_else(
        |_| plan.root.clone(),
        |real| real.into_os_string().into_encoded_bytes(),
    ));
    let found = rustix::fs::stat(root).ok();
    header.root_dev = found.map(|stat| FileStat::from(&stat).id.dev);
    if let Some(scope) = scope {
        header.scope = scope.to_json();
    }
    header
}

/// Entries that are passed on at once.
const BATCH: usize = 256;

/// Batches that may wait to be written.
const WAITING: usize = 4;

/// Sink for entries, in order.
struct EntrySink<'a> {
    batch: Vec<Entry>,
    /// Takes a batch; `false` where it is of no use to pass on more.
    pass_on: &'a mut dyn FnMut(Vec<Entry>) -> bool,
    is_over: bool,
}

impl EntrySink<'_> {
    fn put(&mut self, entry: Entry) {
        self.batch.push(entry);
        if self.batch.len() == BATCH {
            self.flush();
        }
    }

    /// True if more entries are of no use: the error is known where they are written.
    fn is_over(&self) -> bool {
        self.is_over
    }

    fn flush(&mut self) {
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        self.is_over |= !(self.pass_on)(batch);
    }
}

/// Runs `fill`, whose entries `pass_on` takes; returns what is added to the trailer.
fn filled(
    fill: impl FnOnce(&mut EntrySink<'_>) -> Result<Map<String, Value>, bc_manifest::Error>,
    pass_on: &mut dyn FnMut(Vec<Entry>) -> bool,
) -> Result<Map<String, Value>, bc_manifest::Error> {
    let mut entries = EntrySink {
        batch: Vec::with_capacity(BATCH),
        pass_on,
        is_over: false,
    };
    let extra = fill(&mut entries)?;
    entries.flush();
    Ok(extra)
}

/// Writes a manifest of the entries that `fill` puts; the keys that it returns are added to the
/// trailer. `workers`: with one, or where the system refuses a thread, the caller's thread does
/// all.
fn write_entries<W: Write + Send>(
    out: W,
    header: &Header,
    workers: usize,
    fill: impl FnOnce(&mut EntrySink<'_>) -> Result<Map<String, Value>, bc_manifest::Error>,
) -> Result<(), bc_manifest::Error> {
    if workers < 2 {
        return write_alone(out, header, fill);
    }
    let (sender, receiver) = sync_channel::<Vec<Entry>>(WAITING);
    // A thread that is refused leaves them here.
    let taken = Mutex::new(Some((out, receiver)));
    let take = || lock(&taken).take();
    std::thread::scope(|scope| {
        let write = || take().map(|(out, receiver)| write_all(out, header, receiver));
        let Ok(writing) = Builder::new().spawn_scoped(scope, write) else {
            return match take() {
                Some((out, _)) => write_alone(out, header, fill),
                None => unreachable!("only a thread takes it"),
            };
        };
        let extra = filled(fill, &mut |batch| sender.send(batch).is_ok());
        drop(sender);
        let writer = writing.join().unwrap_or_else(|panic| resume_unwind(panic));
        let extra = extra?;
        match writer {
            Some(writer) => writer?.finish_with(&extra).map(drop),
            None => unreachable!("the thread took it"),
        }
    })
}

fn write_all<W: Write>(
    out: W,
    header: &Header,
    batches: Receiver<Vec<Entry>>,
) -> Result<Writer<W>, bc_manifest::Error> {
    let mut writer = Writer::new(out, header)?;
    for batch in batches {
        batch.iter().try_for_each(|entry| writer.write(entry))?;
    }
    Ok(writer)
}

fn write_alone<W: Write>(
    out: W,
    header: &Header,
    fill: impl FnOnce(&mut EntrySink<'_>) -> Result<Map<String, Value>, bc_manifest::Error>,
) -> Result<(), bc_manifest::Error> {
    let mut writer = Writer::new(out, header)?;
    let mut written = Ok(());
    let extra = filled(fill, &mut |batch| {
        written = batch.iter().try_for_each(|entry| writer.write(entry));
        written.is_ok()
    });
    written?;
    writer.finish_with(&extra?).map(drop)
}
