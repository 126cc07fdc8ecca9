//! A copy from its options to what it came to.

use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use bc_fs::Escaped;
use bc_pool::{Cancel, Cursor};
use bc_walk::{Entries, FileKind, FileStats, Metadata, OwnFile};

use crate::begin::{self, Begun};
use crate::beneath::open_named;
use crate::error::Error;
use crate::event::{Copied, CopyProgress, Event, Observer};
use crate::finish::{finish, manifest_target, refuse_odd_manifest, remove_stages};
use crate::huge::{self, HUGE};
use crate::job::Job;
use crate::links::Links;
use crate::options::{CopyOptions, ManifestPlace, ReadBack};
use crate::small::SMALL;
use crate::target::{self, Source, Top};
use crate::tree::{Content, Item, Root, Tree};
use crate::worker::Worker;

/// Small files that a worker takes at once.
const BATCH: usize = 32;

/// Files below which a further worker is not worth its start.
const FILES_EACH: usize = 64;

/// Copies.
///
/// # Errors
/// What keeps all of it from being done, before anything is written: a destination that makes no
/// sense, a journal that another run holds. What fails of single files is told to `observer` and
/// counted.
pub fn copy(
    options: &CopyOptions,
    cancel: &Cancel,
    progress: &CopyProgress,
    observer: &Observer<'_>,
) -> Result<Copied, Error> {
    check(options)?;
    let (sources, missing) = look(options, observer)?;
    let mut begun = begin::begin(options, &sources, observer)?;
    refuse_odd_manifest(options, &begun.top, &sources)?;
    let journal = begun.log.own_file();
    let tree = Tree::new(walk(
        options,
        sources,
        (&begun.top, journal),
        cancel,
        observer,
    )?);
    let errors = walk_errors(&tree);
    if cancel.is_cancelled() {
        return Ok(Copied {
            walked: missing,
            failed: missing,
            ..Copied::default()
        });
    }
    let bytes = survey(&tree, progress);
    warn_of_space(&begun.top, bytes, observer);
    begin::start(&mut begun, options, observer);
    let Begun {
        top,
        id,
        spare,
        known,
        went_on,
        log,
        ..
    } = begun;
    let manifest = manifest_target(options, &top, &tree);
    let job = Job::new(
        options,
        (tree, top, manifest),
        (id, spare),
        (known, went_on),
        log,
        progress,
        observer,
        cancel,
    );
    if options.dry_run {
        crate::dry::run(&job);
    } else {
        run(&job)?;
    }
    finish(job, missing + errors)
}

/// The sources that are there, and how many are not.
fn look(options: &CopyOptions, observer: &Observer<'_>) -> Result<(Vec<Source>, u64), Error> {
    let mut sources = Vec::new();
    for path in &options.sources {
        match target::look(path) {
            Ok(source) => sources.push(source),
            Err(error) => observer(Event::Failed(&error)),
        }
    }
    if sources.is_empty() {
        return Err(Error::usage("none of the sources can be copied"));
    }
    let missing = options.sources.len() - sources.len();
    Ok((sources, missing as u64))
}

fn check(options: &CopyOptions) -> Result<(), Error> {
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

/// Walks each source.
fn walk(
    options: &CopyOptions,
    sources: Vec<Source>,
    (top, journal): (&Top, Option<OwnFile>),
    cancel: &Cancel,
    observer: &Observer<'_>,
) -> Result<Vec<Root>, Error> {
    let mut roots = Vec::with_capacity(sources.len());
    for (source, name) in sources.into_iter().zip(&top.names) {
        let kind = source.stat.kind();
        let content = match kind {
            FileKind::Dir | FileKind::File => {
                let mut walk = options.walk.clone();
                walk.entries = Entries::All;
                walk.metadata = Metadata::Full;
                walk.file_stats = FileStats::Walked;
                // Of a home directory it is a part, and grows meanwhile.
                walk.leave_out.extend(journal.clone());
                let path = [source.path.clone()];
                let listing = bc_walk::walk(&path, &walk, options.walk_workers, cancel)?;
                for error in listing.errors() {
                    observer(Event::Failed(error));
                }
                Content::Listing(Box::new(listing))
            }
            _ => match alone(&source) {
                Ok((dir, name)) => Content::Alone(dir, name),
                Err(error) => {
                    observer(Event::Failed(&error));
                    Content::Nothing
                }
            },
        };
        roots.push(Root {
            source,
            name: name.clone(),
            base: 0,
            content,
        });
    }
    Ok(roots)
}

fn alone(source: &Source) -> Result<(OwnedFd, std::ffi::CString), bc_walk::Error> {
    let path = source.path.as_bytes();
    let failed = |errno: rustix::io::Errno| bc_walk::Error::new(path, "open", errno);
    let (dir, name) = target::split(path);
    let name = name.ok_or(rustix::io::Errno::INVAL).map_err(failed)?;
    let name = std::ffi::CString::new(name).map_err(|_| failed(rustix::io::Errno::INVAL))?;
    Ok((open_named(dir).map_err(failed)?, name))
}

/// What the walks could not look at; it was told already.
fn walk_errors(tree: &Tree) -> u64 {
    let errors = tree.roots.iter().map(|root| match &root.content {
        Content::Listing(listing) => listing.errors().len() as u64,
        Content::Alone(..) => 0,
        Content::Nothing => 1,
    });
    errors.sum()
}

/// Counts what is to be copied.
fn survey(tree: &Tree, progress: &CopyProgress) -> u64 {
    let items = (0..tree.len()).map(Item);
    let files = items.filter(|item| tree.kind(*item) == FileKind::File);
    let bytes = files.map(|item| tree.size(item)).sum();
    progress.files_total.store(tree.len().into(), Relaxed);
    progress.bytes_total.store(bytes, Relaxed);
    bytes
}

fn warn_of_space(top: &Top, bytes: u64, observer: &Observer<'_>) {
    let Ok(found) = rustix::fs::fstatvfs(&top.fd) else {
        return;
    };
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    if free > 0 && free < bytes {
        let text = format!(
            "{}: {bytes} bytes are to be copied, {free} are free",
            Escaped(if top.path.is_empty() { b"." } else { &top.path })
        );
        observer(Event::Warning(&text));
    }
}

/// Entries by the way in which they are copied.
#[derive(Default)]
struct Shares {
    small: Vec<Item>,
    medium: Vec<Item>,
    huge: Vec<Item>,
    special: Vec<Item>,
}

fn share_out(job: &Job<'_>, links: &Links) -> Shares {
    let mut shares = Shares::default();
    let huge = huge::is_possible(job);
    for item in (0..job.tree.len()).map(Item) {
        if job.is_manifest(item) {
            job.leave_manifest(item);
            continue;
        }
        if links.is_further(item) {
            continue;
        }
        match (job.tree.kind(item), job.tree.size(item)) {
            (FileKind::Dir, _) => {}
            (FileKind::File, size) if size <= SMALL => shares.small.push(item),
            (FileKind::File, size) if size >= HUGE && huge => shares.huge.push(item),
            (FileKind::File, _) => shares.medium.push(item),
            _ => shares.special.push(item),
        }
    }
    shares
}

fn run(job: &Job<'_>) -> Result<(), Error> {
    let mut main = Worker::new(job);
    for root in 0..job.tree.roots.len() {
        main.make_dirs(root);
    }
    let links = Links::find(job);
    let shares = share_out(job, &links);
    let (small, medium, special) = (&shares.small, &shares.medium, &shares.special);
    let files = small.len() + special.len() + medium.len() * BATCH;
    let workers = job.options.workers.min(files.div_ceil(FILES_EACH)).max(1);
    let cursor = Cursor::with_batch(small.len(), workers, BATCH, BATCH);
    let specials = Cursor::with_batch(special.len(), workers, BATCH, BATCH);
    let next = AtomicUsize::new(0);
    bc_pool::run(workers, |_| {
        let mut worker = Worker::new(job);
        while let Some(item) = medium.get(next.fetch_add(1, Relaxed)) {
            worker.medium(*item);
        }
        while let Some(batch) = cursor.next().filter(|_| !job.is_over()) {
            worker.small(&small[batch]);
        }
        while let Some(batch) = specials.next() {
            worker.special(&special[batch]);
        }
        worker.commit();
    })?;
    shares.huge.iter().for_each(|item| main.huge(*item));
    links.make(&mut main);
    main.commit();
    if !job.is_over() {
        remove_stages(job);
        finish_dirs(job, &mut main)?;
    }
    Ok(())
}

/// Gives directories what their sources have. Those that their owner can still go through then, by
/// all workers; the others last, the deepest first.
fn finish_dirs(job: &Job<'_>, main: &mut Worker<'_>) -> Result<(), Error> {
    let is_dir = |item: &Item| job.tree.kind(*item) == FileKind::Dir;
    let dirs = (0..job.tree.len()).map(Item).filter(is_dir);
    let stays_open = |item: &Item| {
        let stat = job
            .tree
            .entry(*item)
            .and_then(|(listing, id)| listing.stat(id));
        stat.is_some_and(|stat| stat.mode & 0o700 == 0o700)
    };
    let (open, mut closed): (Vec<Item>, Vec<Item>) = dirs.partition(stays_open);
    let workers = job
        .options
        .workers
        .min(open.len().div_ceil(FILES_EACH))
        .max(1);
    let cursor = Cursor::with_batch(open.len(), workers, BATCH, BATCH);
    bc_pool::run(workers, |_| {
        let mut worker = Worker::new(job);
        while let Some(batch) = cursor.next() {
            worker.finish_dirs(&open[batch]);
        }
    })?;
    closed.reverse();
    main.finish_dirs(&closed);
    Ok(())
}
