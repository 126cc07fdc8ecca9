//! `update`: a manifest brought up to date in place, reading only what changed.
//!
//! Two passes over the old manifest. The first compares the results of `stat` and decides which
//! files to read; it also proves the manifest before anything is done. If nothing at all changed,
//! that was all, and the file stays as it is. The second writes the new manifest beside the old one
//! while the files are being read.

pub(crate) mod accept;
pub(crate) mod first_pass;
pub(crate) mod limit;
mod locked;
mod output;
mod renames;
pub(crate) mod reread;
pub(crate) mod sample;
mod second_pass;

use std::ffi::OsStr;
use std::path::Path;
use std::time::Instant;

use bc_fs::PathError;
use bc_hash::{EarlierResults, Totals, hash_in_order_after};
use bc_manifest::integrity::Trailer;
use bc_manifest::time::format_rfc3339;
use bc_walk::job::{Error, ErrorKind, Setting};
use bc_walk::{EntryId, FileStats, Listing, OwnFile, Skipped};

use crate::absence::Unmounted;
use crate::compare::known_damage::KnownDamage;
use crate::compare::summary::ComparisonSummary;
use crate::compare::{Comparison, Detail, Renames, Sink};
use crate::error::write_failed;
use crate::fields::{CompareMode, CompareRules, Fields};
use crate::input::Trust;
use crate::input::stream::Prefetch;
use crate::options::{RootCheck, Work};
use crate::place::{self, Origin, is_elsewhere};
use crate::place::{refuse_part, refuse_root, refused, tree_options};
use crate::reliability::Hints;
use crate::sides::Sides;
use crate::tree::Tree;
use crate::tree::hashing::hash_options;
use crate::tree::loader::EntryLoader;
use crate::tree::recording::Devices;
use crate::update::limit::{ChangeLimit, MassChange};
use crate::update::reread::{Files, Reread, choose};
use first_pass::plan;
use locked::LockedManifest;
use output::Output;
use second_pass::{Late, SecondPass};

/// Treatment of entries whose content changed behind an unchanged mtime.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Damaged {
    /// They keep their old entry, so that every later run finds them again.
    #[default]
    Keep,
    /// Their present content is recorded as right.
    Accept,
}

/// Options of an update.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct UpdateOptions<'a> {
    /// The root directory.
    pub root: &'a OsStr,
    /// Its manifest, which is replaced.
    pub manifest: &'a Path,
    /// Unchanged files to read all the same.
    pub reread: Reread,
    /// Treatment of damage.
    pub damaged: Damaged,
    /// Most recorded entries that may have changed; with more, the manifest stays as it is. `None`:
    /// any number.
    pub max_changed: Option<ChangeLimit>,
    /// Changes that are reported.
    pub detail: Detail,
    /// Report of directories that were renamed.
    pub renames: Renames,
    /// Treatment of a damaged manifest.
    pub trust: Trust,
    /// Treatment of a suspicious root, or of mount points below it.
    pub root_check: RootCheck,
    /// The time now, in nanoseconds since 1970: recorded as `verified_at` and `tried_at`.
    pub now: i64,
    /// Origin for the header: the host that writes it.
    pub origin: &'a Origin,
    /// Files that are not reported, beside the manifest: those that the caller writes to.
    pub leave_out: &'a [OwnFile],
}

static NO_ORIGIN: Origin = Origin::UNKNOWN;

impl<'a> UpdateOptions<'a> {
    /// Brings the manifest of the tree at `root` up to date, reading files that look changed and
    /// keeping damaged ones as they were. The time is the beginning of 1970, and there is no origin:
    /// [`run`](UpdateOptions::run) has the present and this machine then.
    pub fn new<R, M>(root: &'a R, manifest: &'a M) -> UpdateOptions<'a>
    where
        R: AsRef<Path> + ?Sized,
        M: AsRef<Path> + ?Sized,
    {
        UpdateOptions {
            root: root.as_ref().as_os_str(),
            manifest: manifest.as_ref(),
            reread: Reread::None,
            damaged: Damaged::Keep,
            max_changed: None,
            detail: Detail::default(),
            renames: Renames::default(),
            trust: Trust::default(),
            root_check: RootCheck::default(),
            now: 0,
            origin: &NO_ORIGIN,
            leave_out: &[],
        }
    }
}

bc_fs::setters! {
    UpdateOptions<'a>:
    reread: Reread,
    now: i64,
    origin: &'a Origin,
    damaged: Damaged,
    max_changed: Option<ChangeLimit>,
    detail: Detail,
    renames: Renames,
    trust: Trust,
    root_check: RootCheck,
    leave_out: &'a [OwnFile],
}

/// Result of an update.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Updated {
    /// Changes since the manifest was written.
    pub summary: ComparisonSummary,
    /// The new manifest's counts; `None` if there was nothing to write, or it was refused.
    pub written: Option<Trailer>,
    /// Refusal of more changes than [`max_changed`](UpdateOptions::max_changed) allows: the manifest
    /// is as it was.
    pub refused: Option<MassChange>,
    /// Parts of a damaged manifest that were skipped.
    pub problems: Vec<PathError>,
    /// Entries that filters left out of the tree.
    pub skipped: Skipped,
    /// Directories read.
    pub directories: u64,
    /// Totals of the files that were read.
    pub totals: Totals,
    /// Files that kept their digests unread by path, size and mtime alone, because inode numbers
    /// cannot be compared: after a copy to another disk, or where a file system numbers its files
    /// again.
    pub by_name: u64,
}

/// Every field but the digest: whether there is anything to write at all.
const EVERYTHING: CompareRules = CompareRules {
    mode: CompareMode::Meta,
    ignore: Fields::NONE,
};

/// Brings a manifest up to date and passes the changes to `sink` in path order.
///
/// Files whose size, mtime, ctime and inode are as recorded keep their digest
/// unread; where inode numbers cannot be compared, those whose path, size and
/// mtime are. What cannot be read keeps its old entry.
///
/// # Errors
/// Fails like [`verify`](crate::verify()), or if another update of the same manifest is running.
/// The old manifest is then as it was.
pub fn update(
    what: &UpdateOptions<'_>,
    work: &Work<'_>,
    sink: &mut Sink<'_>,
) -> Result<Updated, Error> {
    update_reported(what, work, sink, &mut || Ok(()))
}

/// Like [`update`], for a `sink` that buffers: `flush` is called when it has been given all changes
/// and before the manifest is replaced, which an error prevents. No later update reports them
/// again.
///
/// # Errors
/// As [`update`], and those of `flush`.
pub fn update_reported(
    what: &UpdateOptions<'_>,
    work: &Work<'_>,
    sink: &mut Sink<'_>,
    flush: &mut dyn FnMut() -> std::io::Result<()>,
) -> Result<Updated, Error> {
    what.reread.check()?;
    let locked = LockedManifest::open(what.manifest, work)?;
    let manifest = &locked.file;
    let mut old = manifest.stream(what.trust, Prefetch::beside(work))?;
    let header = old.header().clone();
    let algorithm = manifest.algorithm_of(&header)?;
    refuse_part(manifest, &header)?;
    let options = tree_options(&header, what.trust)?;
    let leave_out = [std::slice::from_ref(&locked.own), what.leave_out].concat();
    let tree = Tree::walk(what.root, &options, FileStats::Walked, &leave_out, work);
    // A bad manifest is the more important error.
    old.prove()?;
    let tree = tree?;
    refuse_root(&tree, manifest, what.root, what.root_check)?;

    let elsewhere = is_elsewhere(&tree, &header);
    let mut plan = plan(
        old,
        manifest,
        &tree,
        elsewhere,
        options.xattrs,
        what.into(),
        work,
    )?;
    plan.renames.settle(|| manifest.again(what.trust))?;
    if let Some(why) = place::why_suspicious(&tree, &header, elsewhere)
        && what.root_check == RootCheck::Careful
        && plan.evidence.contradicts()
    {
        return Err(refused(what.root, why));
    }
    if what.root_check == RootCheck::Careful && plan.loses_all() {
        let recorded = place::recorded_root(&header);
        let message = format!("nothing of {recorded} is found there: another directory?");
        let error = Error::at(ErrorKind::Refused, Path::new(what.root), message);
        return Err(error.unless(Some(Setting::Force)));
    }
    let candidates = std::mem::take(&mut plan.candidates);
    let chosen = choose(candidates, &tree.listing, what.reread, what.now);
    plan.differs |= !chosen.is_empty();
    chosen.iter().for_each(|id| plan.read(*id));
    let hash = hash_options(&tree, |id| plan.wanted[id.0 as usize], algorithm, work)?;
    let mut scrubbed = Scrubbed::default();
    if let Reread::For(time) = what.reread {
        chosen
            .iter()
            .for_each(|id| plan.wanted[id.0 as usize] = false);
        scrubbed = scrub(&tree.listing, &chosen, time, &hash, work)?;
        scrubbed.read.ids().for_each(|id| plan.read(id));
    }
    let mut updated = Updated {
        summary: ComparisonSummary::all_ok(plan.seen),
        written: None,
        refused: None,
        problems: manifest.skipped(&plan.problems),
        skipped: tree.listing.skipped().clone(),
        directories: tree.listing.directories(),
        totals: scrubbed.totals,
        by_name: 0,
    };
    if !plan.differs && !plan.report && what.detail != Detail::All {
        return Ok(updated);
    }

    let mut header = header;
    place::record(&mut header, &tree, what.root, what.origin);
    header.version = env!("CARGO_PKG_VERSION").to_string();
    let now = format_rfc3339(what.now);
    header.extra.insert("updated_at".to_string(), now.into());
    let output = match plan.differs {
        true => Output::create(what.manifest, &locked, &header)?,
        false => Output::nothing(),
    };
    let known = KnownDamage::of(manifest, what.trust);
    let mut pass = SecondPass {
        what,
        plan: &plan,
        comparison: Comparison::new(CompareRules::default(), what.detail, sink)
            .renames(what.renames)
            .knowing(&known)
            .recording(),
        known: &known,
        output,
        devices: Devices::new(tree.root_dev()),
        hints: Hints::new(&tree, elsewhere, &header, work.cancel),
        late: Late::default(),
        noted: 0,
    };
    let again = || manifest.again(what.trust);
    let unmounted = Unmounted::with(what.root_check, &plan.replaced);
    let mut sides = Sides::of_tree(again()?, &tree, unmounted);
    let mut loader = EntryLoader::new(&tree, options.xattrs, manifest.directory(), work);
    let totals = hash_in_order_after(
        scrubbed.read,
        &tree.listing,
        |id| plan.wanted[id.0 as usize],
        &hash,
        work.cancel,
        work.progress,
        |range, window| loader.each(range, Some(window), |new| sides.up_to(new, &mut pass)),
    )?;
    sides.rest(&mut pass)?;
    let SecondPass {
        mut comparison,
        output,
        mut hints,
        mut late,
        noted,
        ..
    } = pass;
    let output = output.end()?;
    let reported = |error: std::io::Error| write_failed(&error);
    let verdicts = comparison.settle(&mut hints).map_err(reported)?;
    late.settle(verdicts, what, &known, again)?;
    let finished = comparison.finish_recorded(hints);
    let (mut summary, copies) = finished.map_err(reported)?;
    updated.refused = MassChange::find(&summary, noted, what.max_changed);
    let output = match updated.refused {
        Some(_) => None,
        None => Some(late.amend(output, &copies, what, &known)?),
    };
    // Changes that are not reported would not be found again.
    flush().map_err(reported)?;
    updated.written = output.map_or(Ok(None), |output| output.commit())?;
    updated.totals.merge(totals);
    updated.by_name = plan.by_name;
    let read = &updated.totals.read;
    (summary.files_read, summary.bytes_read) = (read.files, read.bytes);
    updated.summary = summary;
    Ok(updated)
}

/// Results of files that were read again before a time limit was over.
#[derive(Default)]
struct Scrubbed {
    read: EarlierResults,
    totals: Totals,
}

/// Reads the files in `order` until the time is over, in slices small enough to stop about then.
fn scrub(
    listing: &Listing,
    order: &[EntryId],
    time: std::time::Duration,
    hash: &bc_hash::HashOptions,
    work: &Work<'_>,
) -> Result<Scrubbed, Error> {
    const FILES: usize = 1024;
    const BYTES: u64 = 256 << 20;
    let begun = Instant::now();
    let size = |id: EntryId| listing.meta(id).map_or(0, |meta| meta.stamp.size);
    let mut scrubbed = Scrubbed::default();
    let mut left = order;
    while !left.is_empty() && begun.elapsed() < time {
        let mut bytes = 0;
        let fits = left.iter().take(FILES).take_while(|&&id| {
            let first = bytes == 0;
            bytes += size(id);
            first || bytes <= BYTES
        });
        let mut count = fits.count().max(1);
        // Names of one file stay together.
        let file = |at: usize| left.get(at).and_then(|id| listing.linked(*id));
        while file(count).is_some_and(|next| file(count - 1) == Some(next)) {
            count += 1;
        }
        let (slice, rest) = left.split_at(count);
        left = rest;
        let plan = bc_read::Plan::new(slice.to_vec(), hash.workers);
        let read = &mut scrubbed.read;
        let totals = read.read(listing, &plan, hash, work.cancel, work.progress)?;
        scrubbed.totals.merge(totals);
        if work.cancel.is_cancelled() {
            return Err(Error::cancelled());
        }
    }
    Ok(scrubbed)
}
