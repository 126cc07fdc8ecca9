//! A copy from its options to its result, at one destination or at several.

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use bc_edit::metadata::Subject;
use bc_fs::Escaped;
use bc_fs::path::split;
use bc_pool::{Cancel, WorkerBatches};
use bc_walk::job::{Error, ErrorKind};
use bc_walk::{FileKind, Listing, OwnFile};
use rustix::fs::Mode;
use rustix::io::Errno;

use crate::data::single::medium;
use crate::data::small::{SMALL, small};
use crate::data::{HUGE, huge};
use crate::destination::{self, Source, Top, warn_of_space};
use crate::dirs::{self, finish_dirs};
use crate::dry;
use crate::error::system_error;
use crate::event::{Copied, CopyProgress, Event, Observer, Relay};
use crate::job::{Begun, DestinationObserver, Job};
use crate::links::HardLinks;
use crate::manifest::{
    self, ManifestPlan, is_done, is_of_whole, manifest_target, recorded, refuse_copied_manifest,
    refuse_foreign_manifest, refuse_odd_manifest,
};
use crate::meta::{self, stat_at};
use crate::options::{CopyOptions, Durability, ManifestPlace, ReadBack};
use crate::place::DestDir;
use crate::results::{EntryState, Rows, Unread};
use crate::resume;
use crate::resume::stamp::Lasting;
use crate::sources::{
    RootItem, SourceContent, SourceTree, Walked, look, refuse_within, shown_below, unopened, walk,
};
use crate::stage::publish::may_be_unnamed;
use crate::stage::{self, NoStage, is_stage, refuse_foreign};
use crate::worker::{BATCH, FILES_EACH, Worker, run_workers, shared_out};

/// Copies to the destination of the options.
///
/// # Errors
/// Fails before anything is written if the copy as a whole cannot be done: a destination that makes
/// no sense, a journal that another run holds. Failures of single files are reported to `observer`
/// and counted.
pub fn copy(
    options: &CopyOptions,
    cancel: &Cancel,
    progress: &CopyProgress,
    observer: &Observer<'_>,
) -> Result<Copied, Error> {
    let all = fan_out(options, &[""; 0], cancel, progress, observer)?;
    let none = || Err(Error::usage("no destination is given"));
    all.into_iter().next().unwrap_or_else(none)
}

/// Copies to the destination of the options and to each of `others`, which are interpreted in the
/// same way, and reads each source once. Each has a journal and a manifest of its own, as if it
/// were copied to alone: one that fails stops none of the others. The results come in that order.
///
/// # Errors
/// Fails before anything is written if the destinations make no sense: two that are the same, one
/// within another, or any that [`copy`] refuses.
pub fn fan_out(
    options: &CopyOptions,
    others: &[impl AsRef<Path>],
    cancel: &Cancel,
    progress: &CopyProgress,
    observer: &Observer<'_>,
) -> Result<Vec<Result<Copied, Error>>, Error> {
    let others: Vec<OsString> = others.iter().map(|path| path.as_ref().into()).collect();
    fan_out_to(options, &others, cancel, progress, observer)
}

fn fan_out_to(
    options: &CopyOptions,
    others: &[OsString],
    cancel: &Cancel,
    progress: &CopyProgress,
    observer: &Observer<'_>,
) -> Result<Vec<Result<Copied, Error>>, Error> {
    check(options)?;
    let relay = Relay::new(observer);
    let observer: &Observer<'_> = &|event| relay.report(event);
    let each = destination::each(options, others)?;
    let (sources, missing) = look(options, observer)?;
    let observers = destination::observers(&each, observer);
    let begun = begin_each(&each, &sources, &observers)?;
    if begun.iter().all(Result::is_err) {
        return Ok(begun.into_iter().map(|begun| begun.map(nothing)).collect());
    }
    let living = begun.iter().flatten();
    let journals: Vec<OwnFile> = living.filter_map(Begun::own_file).collect();
    let walked = walk(options, sources, &journals, cancel, observer)?;
    let missing = missing + unopened(&walked);
    if cancel.is_cancelled() {
        let mut none = Copied::default();
        (none.walked, none.failed) = (missing, missing);
        let none = |begun: Result<Begun, Error>| begun.map(|_| none.clone());
        return Ok(begun.into_iter().map(none).collect());
    }
    refuse_too_many(options, each.len(), &walked)?;
    let mut stuck = Vec::with_capacity(each.len());
    for begun in begun.iter().flatten() {
        refuse_within(options, &begun.top, &walked)?;
        stuck.push(refuse_copied_manifest(options, &begun.top, &walked)?);
    }
    let tops: Vec<u64> = begun.iter().flatten().map(|one| one.top.id.dev).collect();
    let (mut jobs, mut refused) = (Vec::with_capacity(each.len()), Vec::new());
    for ((options, observer), begun) in each.iter().zip(&observers).zip(begun) {
        refused.push(match begun {
            Ok(mut begun) => {
                resume::start(&mut begun, options, &**observer);
                let reported = DestinationObserver {
                    observer: &**observer,
                    relay: &relay,
                    streams: jobs.is_empty(),
                };
                jobs.push(start(
                    options, begun, &walked, &tops, progress, reported, cancel,
                ));
                None
            }
            Err(error) => Some(error),
        });
    }
    if let [job] = &jobs[..]
        && !options.dry_run
        && is_done(job)
    {
        return Ok(vec![finish(jobs.remove(0), None, missing)]);
    }
    if !options.dry_run
        && let Some(error) = stuck.iter_mut().find_map(Option::take)
    {
        // Nothing was done that a journal is needed for.
        let new = jobs.iter().filter(|job| job.plan.went_on.is_none());
        new.for_each(|job| job.means.log.remove());
        return Err(error);
    }
    for job in jobs.iter().filter(|job| !job.plan.options.restart) {
        job.know_recorded(recorded(job.plan.options, &job.plan.top, &job.plan.tree));
    }
    match options.dry_run {
        true => jobs.iter().for_each(|job| {
            let dev = job.plan.top.id.dev;
            let there = jobs.iter().filter(|other| other.plan.top.id.dev == dev);
            dry::run(job, there.count() as u64);
        }),
        false => run(&jobs)?,
    }
    let jobs = jobs.into_iter().zip(stuck);
    let mut done = jobs.map(|(job, stuck)| finish(job, stuck, missing));
    let of = |refused: Option<Error>| refused.map_or_else(|| done.next(), |error| Some(Err(error)));
    Ok(refused.into_iter().filter_map(of).collect())
}

/// Bytes of memory for each entry and destination beside the listing.
const STATE: u64 = 64;

/// Refuses sources whose state does not fit in the memory that it may take.
pub(crate) fn refuse_too_many(
    options: &CopyOptions,
    destinations: usize,
    walked: &[Walked],
) -> Result<(), Error> {
    let Some(most) = options.most_memory else {
        return Ok(());
    };
    let listings = walked.iter().filter_map(|one| match &*one.content {
        SourceContent::Listing(listing) => Some(&**listing),
        _ => None,
    });
    let state = STATE * destinations as u64;
    let of = |listing: &Listing| listing.memory() + listing.len() as u64 * state;
    match listings.map(of).sum::<u64>() {
        needed if needed > most => Err(Error::new(
            ErrorKind::Refused,
            format!(
                "memory budget: {most} bytes are left for what is kept of the files, and {needed} \
                 are needed: copy fewer of them at a time"
            ),
        )),
        _ => Ok(()),
    }
}

/// Result of a run that stopped before the walk.
fn nothing(_: Begun) -> Copied {
    Copied::default()
}

/// Number of a source's names that are looked for.
const MOST_NAMES: usize = 1000;

/// Reports that a directory gets a place within the copy of another one, as where a complete copy to a
/// new name is repeated: its destination is a directory by then.
fn report_nesting(top: &Top, sources: &[Source], observer: &Observer<'_>) {
    let ([name], [source]) = (&top.names[..], sources) else {
        return;
    };
    let is_new = || stat_at(&top.fd, &name[..]).is_err_and(|errno| errno == Errno::NOENT);
    let is_dir = top.into && !name.is_empty() && source.stat.kind() == FileKind::Dir;
    // Any other directory may have been copied into, too.
    let has_same_names = || {
        let names = std::fs::read_dir(&source.path)
            .into_iter()
            .flatten()
            .flatten();
        let mut names = names.take(MOST_NAMES).map(|entry| entry.file_name());
        names.any(|name| stat_at(&top.fd, name.as_encoded_bytes()).is_ok())
    };
    if is_dir && is_new() && is_of_whole(top) && has_same_names() {
        observer(Event::Nested(&shown_below(&top.path, name)));
    }
}

/// Finds journals and destinations. One that cannot be opened stops none of the others; one that
/// makes no sense does.
fn begin_each(
    each: &[CopyOptions],
    sources: &[Source],
    observers: &[Box<Observer<'_>>],
) -> Result<Vec<Result<Begun, Error>>, Error> {
    let mut all = Vec::with_capacity(each.len());
    for (options, observer) in each.iter().zip(observers) {
        let begun = resume::begin(options, sources, observer).and_then(|begun| {
            refuse_odd_manifest(options, &begun.top, &sources[0])?;
            refuse_foreign_manifest(options, &begun.top, sources)?;
            report_nesting(&begun.top, sources, observer);
            Ok(begun)
        });
        match begun {
            Err(error) if matches!(error.kind(), ErrorKind::Usage | ErrorKind::Refused) => {
                return Err(error);
            }
            begun => all.push(begun),
        }
    }
    let found = each.iter().zip(&all);
    let found = found.filter_map(|(options, begun)| Some((options, &begun.as_ref().ok()?.top)));
    destination::refuse_nested(&found.collect::<Vec<_>>())?;
    Ok(all)
}

/// Begins the copy to one destination. `tops`: the file systems of all of them.
pub(crate) fn start<'a>(
    options: &'a CopyOptions,
    begun: Begun,
    walked: &[Walked],
    tops: &[u64],
    progress: &'a CopyProgress,
    reported: DestinationObserver<'a>,
    cancel: &'a Cancel,
) -> Job<'a> {
    let tree = SourceTree::new(walked, &begun.top.names);
    let bytes = survey(&tree, progress);
    let observer = reported.observer;
    if !options.dry_run {
        let there = tops.iter().filter(|dev| **dev == begun.top.id.dev).count();
        warn_of_space(&begun.top, bytes.saturating_mul(there as u64), observer);
    }
    let manifest = manifest_target(options, &begun.top, &tree);
    let job = Job::new(options, begun, tree, manifest, progress, reported, cancel);
    job.site
        .unnamed
        .store(may_be_unnamed(&job, tops.len()), Relaxed);
    job
}

pub(crate) fn check(options: &CopyOptions) -> Result<(), Error> {
    if options.sources.is_empty() {
        return Err(Error::usage("no source is given"));
    }
    if options.algorithm.is_none() && options.read_back != ReadBack::None {
        return Err(Error::usage(
            "what has no digest cannot be compared when it is read back",
        ));
    }
    if options.algorithm.is_none() && matches!(options.manifest, ManifestPlace::File(_)) {
        return Err(Error::usage("a manifest needs a digest"));
    }
    Ok(())
}

/// Counts the entries and bytes that are to be copied.
fn survey(tree: &SourceTree, progress: &CopyProgress) -> u64 {
    let items = tree.items();
    let files = items.filter(|item| tree.kind(*item) == FileKind::File);
    let bytes = files.map(|item| tree.size(item)).sum();
    progress.files_total.fetch_add(tree.len().into(), Relaxed);
    progress.bytes_total.fetch_add(bytes, Relaxed);
    bytes
}

/// Entries by the way in which they are copied.
#[derive(Default)]
struct Shares {
    small: Vec<RootItem>,
    medium: Vec<RootItem>,
    huge: Vec<RootItem>,
    special: Vec<RootItem>,
}

/// Sorts the entries that any of the destinations takes by the way in which they are copied. The
/// entries are the same at all of them.
fn share_out(jobs: &[Job<'_>], links: &HardLinks) -> Shares {
    let mut shares = Shares::default();
    let Some(first) = jobs.first() else {
        return shares;
    };
    let huge = huge::is_possible(first.plan.options);
    for item in first.plan.tree.items() {
        let mut takers = jobs.len();
        for job in jobs.iter().filter(|job| job.is_manifest(item)) {
            job.leave_manifest(item);
            takers -= 1;
        }
        if takers == 0 || links.is_further(item) {
            continue;
        }
        match (first.plan.tree.kind(item), first.plan.tree.size(item)) {
            (FileKind::Dir, _) => {}
            (FileKind::File, size) if size <= SMALL => shares.small.push(item),
            (FileKind::File, size) if size >= HUGE && huge => shares.huge.push(item),
            (FileKind::File, _) => shares.medium.push(item),
            _ => shares.special.push(item),
        }
    }
    shares
}

pub(crate) fn run(jobs: &[Job<'_>]) -> Result<(), Error> {
    let ran = run_all(jobs);
    if ran.is_err() {
        // What was done and what failed until then is reported all the same.
        jobs.iter().for_each(Job::report_rest);
    }
    ran
}

fn run_all(jobs: &[Job<'_>]) -> Result<(), Error> {
    let Some(first) = jobs.first() else {
        return Ok(());
    };
    for job in jobs {
        // Before workers need the descriptors.
        if job.plan.options.durability != Durability::None {
            job.also_sync(job.plan.top.id.dev, &job.plan.top.fd);
        }
    }
    let mut mains: Vec<Worker<'_>> = jobs.iter().map(Worker::new).collect();
    for main in &mut mains {
        (0..main.job.plan.tree.roots.len()).try_for_each(|root| main.make_dirs(root))?;
    }
    let links = HardLinks::find(first);
    let shares = share_out(jobs, &links);
    mains.iter_mut().for_each(Worker::let_go);
    share(jobs, &shares)?;
    for item in &shares.huge {
        huge::huge(&mut mains, *item);
    }
    copy_put_off(&mut mains);
    for main in &mut mains {
        links.make(main);
        main.end();
        if !main.job.is_over() {
            remove_stages(main.job);
            finish_dirs(main)?;
        }
    }
    Ok(())
}

/// Copies again what failed for want of descriptors. No other thread copies any more, so these
/// workers have all descriptors that there are.
fn copy_put_off(mains: &mut [Worker<'_>]) {
    for at in 0..mains.len() {
        for item in mains[at].job.take_put_off() {
            mains.iter_mut().for_each(Worker::let_go);
            let main = &mut mains[at];
            match main.job.plan.tree.kind(item) {
                FileKind::File => medium(std::slice::from_mut(main), item),
                _ => main.special(&[item]),
            }
        }
    }
}

/// Makes all workers copy the entries that each of them copies alone.
fn share(jobs: &[Job<'_>], shares: &Shares) -> Result<(), Error> {
    let special = &shares.special;
    let files = shares.small.len() + special.len() + shares.medium.len() * BATCH;
    let workers = jobs[0].plan.options.workers;
    let workers = workers.min(files.div_ceil(FILES_EACH)).max(1);
    let cursor = shared_out(shares.small.len(), workers, BATCH);
    let specials = shared_out(special.len(), workers, BATCH);
    let next = AtomicUsize::new(0);
    let larger = shares.medium.len();
    let left = || {
        let larger = larger.saturating_sub(next.load(Relaxed));
        larger + cursor.remaining() + specials.remaining()
    };
    run_workers(jobs, workers, &left, |handle| {
        let one_of = |job| Worker::one_of(job, jobs.len());
        let mut each: Vec<Worker<'_>> = jobs.iter().map(one_of).collect();
        let mut batches = WorkerBatches::new(handle);
        // No report waits for these.
        while let Some(batch) = batches.next(&specials) {
            for worker in &mut each {
                worker.special(&special[batch.clone()]);
            }
        }
        while let Some(at) = batches.next_large(&next, larger) {
            medium(&mut each, shares.medium[at]);
        }
        let is_over = || jobs.iter().all(Job::is_over);
        while let Some(batch) = batches.next(&cursor).filter(|_| !is_over()) {
            small(&mut each, &shares.small[batch]);
        }
        each.iter_mut().for_each(Worker::end);
    })
}

/// Counts, writes the manifest, and releases the journal of a complete copy. `stuck`: refusal of the
/// manifest, which a dry run foresees if anything would be made.
fn finish(job: Job<'_>, stuck: Option<Error>, missing: u64) -> Result<Copied, Error> {
    let (mut copied, _) = conclude(&job, missing)?;
    if let Some(error) = stuck.filter(|_| job.outcomes.would_make.load(Relaxed)) {
        return Err(error);
    }
    if !job.plan.options.dry_run {
        let is_complete = copied.failed == 0 && copied.left == 0 && !copied.is_cut;
        release(job, &mut copied, is_complete);
    }
    Ok(copied)
}

/// Releases the journal: it is removed once the job is complete.
pub(crate) fn release(job: Job<'_>, copied: &mut Copied, is_complete: bool) {
    copied.resumable =
        job.means.log.is_kept() && !is_complete && job.has_recorded(job.means.log.flush());
    if is_complete {
        job.means.log.remove();
    }
}

/// Counts, and writes the manifest, unless the copy is [cut](Copied::is_cut). Returns the outcomes of
/// the entries, too.
pub(crate) fn conclude(job: &Job<'_>, missing: u64) -> Result<(Copied, Rows), Error> {
    job.report_rest();
    let plan = manifest::plan(job);
    let stopped = job.why_stopped();
    // A signal may come when nothing but the manifest is left, and at any moment after this one:
    // whoever asks later would not know what was done here.
    let is_cut = job.is_over();
    let unread = Unread::find(&job.plan.tree);
    let mut rows = job.outcomes.results.take();
    rows.add_unread(&unread.entries);
    let mut copied = count(job, &rows, missing + unread.unlisted.len() as u64);
    copied.stopped = stopped.map(|errno| errno.to_string());
    copied.is_cut = is_cut;
    if is_cut || job.plan.options.dry_run {
        return Ok((copied, rows));
    }
    let mut synced = Ok(());
    if let Some(plan) = plan.filter(|_| job.has_manifest()) {
        // Files that a manifest declares to be on the disk have to be there first.
        let lasting = match job.plan.options.durability {
            Durability::None => Lasting::Mounted,
            _ => {
                synced = job.sync_all();
                match synced {
                    Ok(()) => Lasting::Durable,
                    Err(_) => Lasting::Mounted,
                }
            }
        };
        let before = dirs::times_now(job, &plan.below);
        let opened = open_to_owner(job, &plan);
        let written = manifest::write(job, &plan, &rows, &unread.unlisted, lasting);
        if let Some((dir, mode)) = opened {
            let _ = Subject::place(dir.fd.as_fd()).chmod(mode);
        }
        let written = written?;
        // Its name has changed the time of the directory.
        let before = before.filter(|_| !written.is_old);
        let set = before.map(|before| Worker::new(job).set_root_times(&plan.below, &before));
        if let Some(Err(error)) = set {
            (job.means.observer)(Event::Incomplete(&error));
            copied.incomplete += 1;
        }
        copied.manifest = Some(written.shown);
    }
    if job.plan.options.durability != Durability::None {
        // An error is reported once, to the first caller that asks.
        synced
            .and(job.sync_all())
            .map_err(|errno| system_error(&job.shown(b""), "syncfs", errno))?;
    }
    Ok((copied, rows))
}

/// Opens a directory to its owner, who may not write to it, so that it gets its manifest all the
/// same. Returns the mode to restore.
fn open_to_owner(job: &Job<'_>, plan: &ManifestPlan) -> Option<(DestDir, Mode)> {
    const OPEN: u32 = 0o300;
    let is_there =
        job.plan.options.manifest == ManifestPlace::Destination && !plan.below.is_empty();
    if !is_there || meta::is_root() {
        return None;
    }
    let dir = DestDir::open(job.plan.top.fd.as_fd(), &plan.below).ok()?;
    let stat = meta::stat(&dir.fd).ok()?;
    let own = rustix::process::geteuid().as_raw();
    if stat.uid != own || stat.mode & OPEN == OPEN {
        return None;
    }
    let mode = |bits: u32| Mode::from_raw_mode((bits & 0o7777) as _);
    let open = mode(stat.mode | OPEN);
    Subject::place(dir.fd.as_fd()).chmod(open).ok()?;
    Some((dir, mode(stat.mode)))
}

/// Removes stages of earlier runs whose sources have changed since, or are gone: no run resumes
/// from them. They go before directories get their times.
fn remove_stages(job: &Job<'_>) {
    let mut worker = Worker::new(job);
    let mut remove = |target: &[u8], known: Option<&str>| {
        let below = split(target).0;
        let Ok(dir) = worker.try_dir(below) else {
            return;
        };
        let stage = known.map_or_else(|| job.plan.id.stage(&dir, target, None), str::to_owned);
        match refuse_foreign(dir.fd.as_fd(), &stage) {
            Ok(()) => stage::remove(dir.fd.as_fd(), &stage),
            Err(NoStage::System(_)) => {}
            Err(NoStage::Foreign(why)) => {
                let path = shown_below(&job.shown(below), stage.as_bytes());
                let text = format!("{}: {why}: left alone", Escaped(&path));
                (job.means.observer)(Event::Warning(&text));
            }
        }
    };
    for (stage, target) in &job.plan.known.stages {
        if is_stage(stage.as_bytes()) {
            remove(target, Some(stage));
        }
    }
    job.plan
        .known
        .unseen()
        .for_each(|target| remove(target, None));
}

fn count(job: &Job<'_>, rows: &Rows, missing: u64) -> Copied {
    let mut copied = Copied {
        walked: u64::from(job.plan.tree.len()) + missing,
        failed: missing,
        bytes: job.outcomes.written.load(Relaxed),
        incomplete: job.outcomes.incomplete.load(Relaxed),
        ..Copied::default()
    };
    for item in job.plan.tree.items() {
        let state = rows.state(item);
        let is_file = job.plan.tree.kind(item) == FileKind::File;
        if is_file && matches!(state, EntryState::Copied | EntryState::Before) {
            copied.files += 1;
        }
        match state {
            EntryState::Copied => copied.copied += 1,
            EntryState::Before => {
                copied.copied += 1;
                copied.before += 1;
            }
            EntryState::Skipped => copied.skipped += 1,
            EntryState::Failed => copied.failed += 1,
            EntryState::Left => copied.left += 1,
        }
        if is_file && matches!(state, EntryState::Failed | EntryState::Left) {
            copied.bytes_left += job.plan.tree.size(item);
        }
    }
    for root in &job.plan.tree.roots {
        if let SourceContent::Listing(listing) = &*root.content {
            copied.filtered.add(listing.skipped());
            copied.directories += listing.directories();
        }
    }
    copied
}
