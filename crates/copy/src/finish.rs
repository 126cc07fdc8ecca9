//! The end of a copy: its result, the manifest, and the journal of a complete copy.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering::Relaxed;

use bc_edit::metadata::Subject;
use bc_fs::Escaped;
use bc_fs::path::split;
use bc_walk::FileKind;
use bc_walk::job::Error;
use rustix::fs::Mode;

use crate::error::system_error;
use crate::event::{Copied, Event};
use crate::job::Job;
use crate::manifest::{self, ManifestPlan};
use crate::meta;
use crate::options::{Durability, ManifestPlace};
use crate::place::DestDir;
use crate::results::{EntryState, Rows, Unread};
use crate::resume::stamp::Lasting;
use crate::sources::{SourceContent, shown_below};
use crate::stage::{self, NoStage, is_stage, refuse_foreign};
use crate::worker::Worker;

/// Counts, writes the manifest, and releases the journal of a complete copy.
pub(crate) fn finish(job: Job<'_>, missing: u64) -> Result<Copied, Error> {
    let plan = manifest::plan(&job);
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
            .map_err(|errno| system_error(&job.shown(b""), "syncfs", errno))?;
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
pub(crate) fn remove_stages(job: &Job<'_>) {
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
