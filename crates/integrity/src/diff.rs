//! `diff`: two manifests, offline.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bc_fs::PathError;
use bc_manifest::integrity::{ContentFault, Entry, Header, Kind, ROOT};
use bc_walk::job::{Error, ErrorKind, Progress, Setting, path_of};

use crate::change::Ctime;
use crate::compare::known_damage::KnownDamage;
use crate::compare::moves::Numbers;
use crate::compare::soundness::{Soundness, reported_of_sound};
use crate::compare::summary::ComparisonSummary;
use crate::compare::{Comparison, Detail, Offline, Renames, Sink, Site};
use crate::entry_ref::EntryRef;
use crate::error::write_failed;
use crate::fields::{CompareRules, Field};
use crate::input::stream::Prefetch;
use crate::input::{ManifestFile, Trust};
use crate::options::TreeOptions;
use crate::sides::{Pair, Receiver, Sides};
use crate::tree::loader::LoadedEntry;
use std::ops::ControlFlow;

/// Options of a comparison of manifests.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct DiffOptions<'a> {
    /// The older manifest.
    pub old: &'a ManifestFile,
    /// The newer one.
    pub new: &'a ManifestFile,
    /// Differences that count.
    pub rules: CompareRules,
    /// Changes that are reported.
    pub detail: Detail,
    /// Report of directories that were renamed.
    pub renames: Renames,
    /// Treatment of damaged manifests.
    pub trust: Trust,
}

impl<'a> DiffOptions<'a> {
    /// Compares these two with the default rules.
    pub fn new(old: &'a ManifestFile, new: &'a ManifestFile) -> DiffOptions<'a> {
        DiffOptions {
            old,
            new,
            rules: CompareRules::default(),
            detail: Detail::default(),
            renames: Renames::default(),
            trust: Trust::default(),
        }
    }
}

bc_fs::setters! {
    DiffOptions<'a>:
    rules: CompareRules,
    detail: Detail,
    renames: Renames,
    trust: Trust,
}

/// Result of a comparison of manifests.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Diffed {
    /// The counts.
    pub summary: ComparisonSummary,
    /// Parts of damaged manifests that were skipped, and options that the two were not both made
    /// with.
    pub problems: Vec<PathError>,
}

/// Compares two manifests and passes the changes to `sink` in path order.
///
/// # Errors
/// Fails if a manifest is damaged, if digests are compared and the algorithms differ, or if a write
/// fails.
pub fn diff(what: &DiffOptions<'_>, sink: &mut Sink<'_>) -> Result<Diffed, Error> {
    diff_counted(what, &ComparedEntries::default(), sink)
}

/// Entries of the newer manifest that were compared, and all of them, once they are known.
#[derive(Debug, Default)]
pub(crate) struct ComparedEntries {
    done: AtomicU64,
    all: AtomicU64,
}

impl ComparedEntries {
    pub(crate) fn now(&self) -> Progress {
        let [done, all] = [&self.done, &self.all].map(|count| count.load(Relaxed));
        Progress::new([done, all], [0, 0])
    }
}

/// Compares as [`diff`] does, and counts.
pub(crate) fn diff_counted(
    what: &DiffOptions<'_>,
    counts: &ComparedEntries,
    sink: &mut Sink<'_>,
) -> Result<Diffed, Error> {
    let mut old = what.old.stream(what.trust, Prefetch::Thread)?;
    let mut new = what.new.stream(what.trust, Prefetch::Thread)?;
    old.prove()?;
    counts.all.store(new.prove()?.unwrap_or(0), Relaxed);
    let new_dev = new.header().root_dev;
    let (was, is) = (&old.header().algorithm, &new.header().algorithm);
    if was != is && what.rules.compares(Field::Digest, Kind::File) {
        let message = format!(
            "digests are {is}, those of the other manifest {was}, so they cannot be compared"
        );
        let error = Error::at(ErrorKind::Usage, &path_of(what.new.name()), message);
        return Err(error.unless(Some(Setting::IgnoreDigest)));
    }
    let mut problems = Vec::new();
    if !same_selection(old.header(), new.header()) {
        let name = OsStr::from_bytes(what.new.name());
        let text = "the manifests were made with different walk options";
        problems.push(PathError::with_reason(name, "compare", None, text));
    }
    let sound = [what.old, what.new].map(|file| Soundness::of(file, what.trust));
    let sound = [&sound[0], &sound[1]];
    let mut told = reported_of_sound(&sound, sink);
    let known = KnownDamage::of(what.old, what.trust);
    let mut comparison = Comparison::new(what.rules, what.detail, &mut told)
        .renames(what.renames)
        .knowing(&known);
    let of_trees = what.old.is_unnamed() || what.new.is_unnamed();
    let site = ManifestSite {
        is_copy: of_trees && !same_place(old.header(), new.header()),
    };
    let mut sides = Sides::of_manifest(old);
    let (mut flow, mut done) = (ControlFlow::Continue(()), 0);
    while flow.is_continue()
        && let Some(after) = new.take()?
    {
        done += 1;
        counts.done.store(done, Relaxed);
        let mut view = EntryRef::from(after);
        if after.path == ROOT {
            view.dev = new_dev;
        }
        let listed = LoadedEntry::unlisted(&after.path, view);
        let mut difference = Difference {
            comparison: &mut comparison,
            after: Some(after),
            site,
        };
        flow = sides.up_to(&listed, &mut difference)?;
    }
    if flow.is_continue() {
        sides.rest(&mut Difference {
            comparison: &mut comparison,
            after: None,
            site,
        })?;
    }
    problems.extend(what.old.skipped(sides.problems()));
    problems.extend(what.new.skipped(new.problems()));
    let summary = comparison
        .finish(Offline)
        .map_err(|error| write_failed(&error))?;
    Ok(Diffed { summary, problems })
}

/// A path of both manifests, or of the older one alone.
struct Difference<'d, 's> {
    comparison: &'d mut Comparison<'s>,
    /// The newer one's entry, unless all have come.
    after: Option<&'d Entry>,
    site: ManifestSite,
}

/// Evidence about the files of a manifest, which contains no traits of their file systems.
#[derive(Clone, Copy)]
struct ManifestSite {
    /// True if they are known to be other files than those of the older side, so that inode numbers
    /// and change times prove nothing.
    is_copy: bool,
}

impl Site for ManifestSite {
    fn ctime(&mut self, ctime: Ctime) -> Ctime {
        match self.is_copy {
            true => Ctime::Mute,
            false => Offline.ctime(ctime),
        }
    }

    fn numbers(&mut self) -> Numbers {
        match self.is_copy {
            true => Numbers::Moving,
            false => Offline.numbers(),
        }
    }
}

/// True if two manifests are of one root on one file system.
fn same_place(old: &Header, new: &Header) -> bool {
    let is_same_disk = match (&old.fs_uuid, &new.fs_uuid) {
        (Some(old), Some(new)) => old == new,
        _ => old.root_dev == new.root_dev,
    };
    old.root.is_some() && old.root == new.root && old.machine == new.machine && is_same_disk
}

/// True if two manifests were made with the same selection of entries.
fn same_selection(old: &Header, new: &Header) -> bool {
    let known = |header: &Header| TreeOptions::from_json(&header.options).ok();
    old.options == new.options
        || matches!((known(old), known(new)), (Some(old), Some(new)) if old == new)
}

impl Receiver for Difference<'_, '_> {
    fn pair(&mut self, pair: Pair<'_>) -> Result<ControlFlow<()>, Error> {
        let found = self.after.and_then(|after| after.found);
        let tried_at = self.after.and_then(|after| after.tried_at);
        let comparison = &mut *self.comparison;
        let reported = match pair {
            Pair::Both { entry, old, new } => match found.filter(|_| entry.found != found) {
                // Noted since: it outweighs every other change.
                Some(found) => comparison.known(new.path, &old, &new.view, found, tried_at),
                None => comparison
                    .both(new.path, &old, &new.view, self.site)
                    .map(drop),
            },
            Pair::Gone(entry, why) => comparison.absent(entry, why),
            Pair::Added { new, .. } if found == Some(ContentFault::Damaged) => {
                comparison.known_added(new.path, &new.view, tried_at)
            }
            Pair::Added { new, above, .. } => {
                comparison.added(new.path, &new.view, above, self.site)
            }
        };
        reported.map_err(|error| write_failed(&error))?;
        Ok(comparison.flow())
    }
}
