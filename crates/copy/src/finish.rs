//! The end of a copy: its result, the manifest, and the journal of a complete copy.

use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;

use bc_edit::metadata::Subject;
use bc_fs::Escaped;
use bc_integrity::Setting;
use bc_walk::{FileKind, FileStat};
use rustix::fs::Mode;

use crate::beneath::DestDir;
use crate::error::Error;
use crate::event::{Copied, Event};
use crate::job::{Job, shown_below};
use crate::manifest::{self, ManifestPlan};
use crate::meta;
use crate::options::{CopyOptions, Durability, MANIFEST_NAME, ManifestPlace};
use crate::recorded::TreeRecords;
use crate::results::{Rows, State};
use crate::stage::{self, NoStage, is_stage, refuse_foreign};
use crate::stamp::Lasting;
use crate::target::{Source, Top};
use crate::tree::{RootItem, SourceContent, SourceTree, Walked, parts};
use crate::unread::Unread;
use crate::worker::Worker;

/// Counts, writes the manifest, and releases the journal of a complete copy.
pub(crate) fn finish(job: Job<'_>, missing: u64) -> Result<Copied, Error> {
    let plan = plan(&job);
    let stopped = job.why_stopped();
    let over = job.is_over();
    let unread = Unread::find(&job.plan.tree);
    let mut rows = job.outcomes.results.take();
    rows.add_unread(&unread.entries);
    let mut copied = count(&job, &rows, missing + unread.unlisted.len() as u64);
    copied.stopped = stopped.map(|errno| errno.to_string());
    if job.plan.options.dry_run {
        return Ok(copied);
    }
    let mut synced = Ok(());
    if !over && let Some(plan) = plan.filter(|_| job.has_manifest()) {
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
        let opened = open_to_owner(&job, &plan);
        let written = manifest::write(&job, &plan, &rows, &unread.unlisted, lasting);
        if let Some((dir, mode)) = opened {
            let _ = Subject::place(dir.fd.as_fd()).chmod(mode);
        }
        let written = written?;
        if !written.is_old {
            // Its name has changed the time of the directory.
            Worker::new(&job).root_times(&plan.below);
        }
        copied.manifest = Some(written.shown);
    }
    if !over && job.plan.options.durability != Durability::None {
        // An error is reported once, to the first caller that asks.
        synced
            .and(job.sync_all())
            .map_err(|errno| Error::system(&job.shown(b""), "syncfs", errno))?;
    }
    // A signal may come when nothing but the manifest is left.
    let complete = copied.failed == 0 && copied.left == 0 && !over;
    copied.resumable =
        job.means.log.is_kept() && !complete && job.has_recorded(job.means.log.flush());
    if complete {
        job.means.log.remove();
    }
    Ok(copied)
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
    let stat = FileStat::from(&meta::fstat(&dir.fd).ok()?);
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
pub(crate) fn remove_stages(job: &Job<'_>) {
    let mut worker = Worker::new(job);
    let mut remove = |target: &[u8], known: Option<&str>| {
        let below = parts(target).0;
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
    for item in (0..job.plan.tree.len()).map(RootItem) {
        let state = rows.state(item);
        let is_file = job.plan.tree.kind(item) == FileKind::File;
        if is_file && matches!(state, State::Copied | State::Before) {
            copied.files += 1;
        }
        match state {
            State::Copied => copied.copied += 1,
            State::Before => {
                copied.copied += 1;
                copied.before += 1;
            }
            State::Skipped => copied.skipped += 1,
            State::Failed => copied.failed += 1,
            State::Left => copied.left += 1,
        }
        if is_file && matches!(state, State::Failed | State::Left) {
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

/// Returns the directory that paths of the manifest are relative to: as it is shown, and below the
/// top.
fn manifest_root(top: &Top, first: &Source) -> (Vec<u8>, Vec<u8>) {
    let below = match !top.into && first.stat.kind() == FileKind::Dir {
        true => top.names[0].clone(),
        false => Vec::new(),
    };
    (shown_below(&top.path, &below), below)
}

/// Returns the path of the manifest; `None` where it has no place of its own.
fn manifest_file(options: &CopyOptions, top: &Top, first: &Source) -> Option<PathBuf> {
    match &options.manifest {
        ManifestPlace::None => None,
        ManifestPlace::File(file) => Some(file.clone()),
        // A single file beside which one would be in the way of others.
        ManifestPlace::Destination if !top.into && first.stat.kind() != FileKind::Dir => None,
        ManifestPlace::Destination => {
            let root = manifest_root(top, first).0;
            let path = shown_below(&root, MANIFEST_NAME.as_bytes());
            Some(OsStr::from_bytes(&path).into())
        }
    }
}

/// Returns the path of the manifest below the top, if it has its usual place there.
pub(crate) fn manifest_target(
    options: &CopyOptions,
    top: &Top,
    tree: &SourceTree,
) -> Option<Vec<u8>> {
    let first = &tree.roots.first()?.source;
    let usual = options.manifest == ManifestPlace::Destination && options.algorithm.is_some();
    manifest_file(options, top, first).filter(|_| usual)?;
    let below = manifest_root(top, first).1;
    Some(shown_below(&below, MANIFEST_NAME.as_bytes()))
}

/// Refuses a link in the place of the manifest: none is followed in the destination, while one that
/// was named by the user is.
pub(crate) fn refuse_odd_manifest(
    options: &CopyOptions,
    top: &Top,
    sources: &[Source],
) -> Result<(), Error> {
    if options.algorithm.is_none() || options.manifest != ManifestPlace::Destination {
        return Ok(());
    }
    let Some(file) = manifest_file(options, top, &sources[0]) else {
        return Ok(());
    };
    match file.symlink_metadata() {
        Ok(meta) if !meta.is_file() => Err(Error::usage_at(
            file.as_os_str().as_bytes(),
            "is no regular file, so the manifest cannot be there",
        )
        .unless(Setting::Manifest)),
        _ => Ok(()),
    }
}

/// Refuses to replace a file that was named for the manifest and is something else, unless the
/// options allow it.
pub(crate) fn refuse_foreign_manifest(
    options: &CopyOptions,
    top: &Top,
    sources: &[Source],
) -> Result<(), Error> {
    let is_named = matches!(options.manifest, ManifestPlace::File(_));
    if !is_named || options.replace_manifest {
        return Ok(());
    }
    let plan = early_plan(options, top, &sources[0]);
    plan.map_or(Ok(()), |plan| manifest::refuse_foreign(options, &plan))
}

/// Refuses a manifest that would replace a file that is copied.
pub(crate) fn refuse_copied_manifest(
    options: &CopyOptions,
    top: &Top,
    walked: &[Walked],
) -> Result<(), Error> {
    let first = walked.first().map(|one| &one.source);
    let plan = first.and_then(|first| early_plan(options, top, first));
    plan.map_or(Ok(()), |plan| {
        manifest::refuse_copied(options, &plan, top, walked)
    })
}

/// True if an earlier run has done all of it; nothing else is reported then.
pub(crate) fn is_done(job: &Job<'_>) -> bool {
    if job.plan.known.len() > 0 {
        // The work of an interrupted run may be in no manifest.
        return false;
    }
    let first = job.plan.tree.roots.first().map(|root| &root.source);
    let plan = first.and_then(|first| early_plan(job.plan.options, &job.plan.top, first));
    let is_done = plan.is_some_and(|plan| manifest::is_done(job, &plan));
    job.site.was_done.store(is_done, Relaxed);
    is_done
}

/// Reads the records of an earlier copy to the same place, as far as they concern what is copied.
pub(crate) fn recorded(options: &CopyOptions, top: &Top, tree: &SourceTree) -> TreeRecords {
    let first = tree.roots.first().map(|root| &root.source);
    let none = TreeRecords::none;
    let Some(first) = first.filter(|_| options.algorithm.is_some()) else {
        return none();
    };
    early_plan(options, top, first)
        .map_or_else(none, |plan| manifest::read_recorded(options, &plan, tree))
}

/// Returns the plan of the manifest before it is known whether it describes the whole directory.
fn early_plan(options: &CopyOptions, top: &Top, first: &Source) -> Option<ManifestPlan> {
    let file = manifest_file(options, top, first)?;
    let (root, below) = manifest_root(top, first);
    Some(ManifestPlan {
        file,
        root,
        below,
        whole: false,
    })
}

fn plan(job: &Job<'_>) -> Option<ManifestPlan> {
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
