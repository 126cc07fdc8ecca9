//! `verify`: compares a tree with its manifest.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use bc_fs::PathError;
use bc_hash::{Totals, hash_in_order};
use bc_manifest::integrity::{Header, Kind, Scope};
use bc_walk::job::Error;
use bc_walk::{EntryId, FileStats, OwnFile, Skipped};

use crate::absence::{Absence, MountGuard, Unmounted};
use crate::compare::known_damage::KnownDamage;
use crate::compare::soundness::{Soundness, reported_of_sound};
use crate::compare::summary::{ComparisonSummary, FileTotals};
use crate::compare::{Comparison, Detail, Renames, Sink};
use crate::error::write_failed;
use crate::fields::{CompareRules, Field};
use crate::input::passing::LineRun;
use crate::input::stream::{ManifestStream, Prefetch};
use crate::input::{ManifestFile, Trust};
use crate::last_read::{LastRead, ReadTimes, made, recorded};
use crate::options::{MissingMounts, RootCheck, Work};
use crate::place::{is_elsewhere, refuse_part, refuse_root, refused, tree_options, why_suspicious};
use crate::reliability::Hints;
use crate::sides::{Pair, Receiver, Sides};
use crate::tree::Tree;
use crate::tree::hashing::{hash_options, is_read};
use crate::tree::loader::{EntryLoader, LoadedEntry};
use crate::update::first_pass::{FirstPassOptions, ReadNoted, plan};
use crate::update::reread::Files;
use crate::update::sample::Sample;
use std::ops::ControlFlow;

/// Options of a verification.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct VerifyOptions<'a> {
    /// The root directory.
    pub root: &'a OsStr,
    /// Its manifest.
    pub manifest: &'a ManifestFile,
    /// Differences that count.
    pub rules: CompareRules,
    /// Changes that are reported.
    pub detail: Detail,
    /// Report of directories that were renamed.
    pub renames: Renames,
    /// Treatment of a damaged manifest.
    pub trust: Trust,
    /// Treatment of a suspicious root, or of mount points below it.
    pub root_check: RootCheck,
    /// Treatment of a recorded mount below the root that is missing.
    pub missing_mounts: MissingMounts,
    /// Random part of the unchanged files whose content is read; `None`: all. Files that look changed
    /// by their metadata are read in any case, and so are those that the manifest notes as damaged or
    /// unreadable. The others are compared by metadata only.
    pub sample: Option<Sample>,
    /// Times to count at which contents were read last, by this run or before.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub read_times: Option<ReadTimes>,
    /// Files that are not reported, beside the manifest: those that the caller writes to.
    pub leave_out: &'a [OwnFile],
}

impl<'a> VerifyOptions<'a> {
    /// Compares the tree at `root` with its manifest, by the default rules.
    pub fn new<P: AsRef<Path> + ?Sized>(
        root: &'a P,
        manifest: &'a ManifestFile,
    ) -> VerifyOptions<'a> {
        VerifyOptions {
            root: root.as_ref().as_os_str(),
            manifest,
            rules: CompareRules::default(),
            detail: Detail::default(),
            renames: Renames::default(),
            trust: Trust::default(),
            root_check: RootCheck::default(),
            missing_mounts: MissingMounts::default(),
            sample: None,
            read_times: None,
            leave_out: &[],
        }
    }
}

bc_fs::setters! {
    VerifyOptions<'a>:
    missing_mounts: MissingMounts,
    rules: CompareRules,
    detail: Detail,
    renames: Renames,
    trust: Trust,
    root_check: RootCheck,
    sample: Option<Sample>,
    /// Internal to bit-crafts.
    #[doc(hidden)]
    read_times: Option<ReadTimes>,
    leave_out: &'a [OwnFile],
}

/// Result of a verification.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Verified {
    /// The counts.
    pub summary: ComparisonSummary,
    /// Parts of a damaged manifest that were skipped.
    pub problems: Vec<PathError>,
    /// Entries that filters left out of the tree.
    pub skipped: Skipped,
    /// Directories read.
    pub directories: u64,
    /// Totals of the files that were read.
    pub totals: Totals,
    /// Times at which the contents were read last, if [they were asked for](VerifyOptions::read_times).
    pub last_read: LastRead,
}

/// Compares a tree with its manifest and passes the changes to `sink` in path order. Algorithm and
/// walk options are the manifest's.
///
/// # Errors
/// Fails if the manifest is damaged, if the root looks unmounted, if a sample is no part or no content
/// is compared, if a write fails or the run is cancelled.
pub fn verify(
    what: &VerifyOptions<'_>,
    work: &Work<'_>,
    sink: &mut Sink<'_>,
) -> Result<Verified, Error> {
    let reads = what.rules.compares(Field::Digest, Kind::File);
    if let Some(sample) = what.sample {
        sample.check()?;
        if !reads {
            let text = "a sample of the content cannot be read where none is compared";
            return Err(Error::usage(text));
        }
    }
    let mut old = what.manifest.stream(what.trust, Prefetch::beside(work))?;
    let header = old.header().clone();
    let algorithm = what.manifest.algorithm_of(&header)?;
    let scope = scope_of(what.manifest, &header)?;
    let options = tree_options(&header, what.trust)?;
    let own = what.manifest.own_file();
    let leave_out: Vec<OwnFile> = own.iter().chain(what.leave_out).cloned().collect();
    let file_stats = match reads && what.sample.is_none() {
        true => FileStats::Left,
        false => FileStats::Walked,
    };
    let tree = Tree::walk(what.root, &options, file_stats, &leave_out, work);
    // A bad manifest is the more important error.
    old.prove()?;
    let tree = tree?;
    refuse_root(&tree, what.manifest, what.root, what.root_check)?;
    let scope = scope.map(|scope| Scoped::new(scope, &tree));
    // Entries outside of the scope are neither read nor joined by what the walk knows of them.
    let asked = |id: EntryId| scope.as_ref().is_none_or(|scope| scope.asks(id));
    let is_elsewhere = is_elsewhere(&tree, &header);
    let sampled = match what.sample {
        Some(sample) => {
            let sampled = SampledFiles::choose(sample, what, old, &tree, is_elsewhere, work)?;
            old = what.manifest.again(what.trust)?;
            Some(sampled)
        }
        None => None,
    };

    let soundness = Soundness::of(what.manifest, what.trust);
    let manifests = [&soundness];
    let mut told = reported_of_sound(&manifests, sink);
    let known = KnownDamage::of(what.manifest, what.trust);
    let mut comparison = Comparison::new(what.rules, what.detail, &mut told)
        .renames(what.renames)
        .knowing(&known);
    let suspicious = why_suspicious(&tree, &header, is_elsewhere)
        .filter(|_| what.root_check == RootCheck::Careful);
    if suspicious.is_some() {
        comparison.hold();
    }
    let mut sides = Sides::of_tree(old, &tree, Unmounted::new(what.root_check));
    let mut verification = TreeComparison {
        tree: &tree,
        comparison,
        guard: MountGuard::new(what.root, what.missing_mounts, what.root_check, &header),
        hints: Hints::new(&tree, is_elsewhere, &header, work.cancel),
        scope: scope.as_ref(),
        sampled: sampled.as_ref(),
        reading: what.read_times.map(|times| LastReadCount {
            times,
            made: made(&header),
            last: LastRead::default(),
        }),
    };
    let mut loader = EntryLoader::new(&tree, options.xattrs, what.manifest.directory(), work);
    let mut totals = Totals::default();
    if reads {
        let is_chosen = |id| sampled.as_ref().is_none_or(|sampled| sampled.reads(id));
        let wanted = |id| is_read(&tree, id) && asked(id) && is_chosen(id);
        let hash = hash_options(&tree, wanted, algorithm, work)?;
        let mut flow = ControlFlow::Continue(());
        totals = hash_in_order(
            &tree.listing,
            wanted,
            &hash,
            work.cancel,
            work.progress,
            |range, window| {
                flow = loader.each(range, Some(window), |new| {
                    sides.up_to(new, &mut verification)
                })?;
                Ok(flow)
            },
        )?;
        if flow.is_continue() {
            sides.rest(&mut verification)?;
        }
    } else {
        // Nothing is read, and what is kept has to fit all the same.
        hash_options(&tree, |_| false, algorithm, work)?;
        let counts = scope.is_none()
            && what.trust == Trust::Checked
            && what.detail != Detail::All
            && what.read_times.is_none();
        let same = match counts {
            true => sides.find_same(&loader, what.manifest, work)?,
            false => Arc::default(),
        };
        soundness.know(&same);
        sides.join(&mut loader, what.manifest, &same, work, &mut verification)?;
    }
    let TreeComparison {
        mut comparison,
        hints,
        guard,
        reading,
        ..
    } = verification;
    guard.conclude()?;
    if let Some(why) = suspicious
        && comparison.nothing_matches()
    {
        return Err(refused(what.root, why));
    }
    let problems = what.manifest.skipped(sides.problems());
    let summary = comparison.finish(hints);
    let mut summary = summary.map_err(|error| write_failed(&error))?;
    (summary.files_read, summary.bytes_read) = (totals.read.files, totals.read.bytes);
    summary.sampled_of = sampled.map(|_| FileTotals::of(&tree, asked));
    let skipped = tree.listing.skipped().clone();
    Ok(Verified {
        summary,
        problems,
        skipped,
        directories: tree.listing.directories(),
        totals,
        last_read: reading.map(|reading| reading.last).unwrap_or_default(),
    })
}

/// Returns the scope of a manifest, unless it describes the whole tree.
fn scope_of(manifest: &ManifestFile, header: &Header) -> Result<Option<Scope>, Error> {
    if header.scope.is_null() {
        refuse_part(manifest, header)?;
        return Ok(None);
    }
    match Scope::from_json(&header.scope) {
        Some(scope) if header.shard.is_null() => Ok(Some(scope)),
        // The scope is in words of its own, or of a later version.
        _ => refuse_part(manifest, header).map(|()| None),
    }
}

/// The part of a tree that a manifest describes.
struct Scoped {
    scope: Scope,
    /// Numbers of the entries in it: few ranges, since all entries below a path are adjacent except
    /// for similar names.
    ranges: Vec<std::ops::Range<u32>>,
}

impl Scoped {
    fn new(scope: Scope, tree: &Tree) -> Scoped {
        let mut ranges: Vec<std::ops::Range<u32>> = Vec::new();
        let mut path = Vec::new();
        for id in tree.listing.ids() {
            path.clear();
            tree.listing.write_relative(id, &mut path);
            if !scope.holds(&path) {
                continue;
            }
            match ranges.last_mut() {
                Some(last) if last.end == id.0 => last.end += 1,
                _ => ranges.push(id.0..id.0 + 1),
            }
        }
        Scoped { scope, ranges }
    }

    /// True if the manifest describes an entry.
    fn asks(&self, id: EntryId) -> bool {
        let at = self.ranges.partition_point(|range| range.end <= id.0);
        self.ranges
            .get(at)
            .is_some_and(|range| range.contains(&id.0))
    }
}

/// State of the comparison of both sides.
struct TreeComparison<'a, 's> {
    tree: &'a Tree,
    comparison: Comparison<'s>,
    guard: MountGuard<'a>,
    hints: Hints<'a>,
    scope: Option<&'a Scoped>,
    sampled: Option<&'a SampledFiles>,
    reading: Option<LastReadCount>,
}

/// Count of the times at which contents were read last.
struct LastReadCount {
    times: ReadTimes,
    /// Time at which the manifest was made.
    made: Option<i64>,
    last: LastRead,
}

impl LastReadCount {
    /// Counts a path of either side, or of both.
    fn see(&mut self, pair: &Pair<'_>) {
        let (entry, new) = match pair {
            Pair::Both { entry, new, .. } => (Some(*entry), Some(*new)),
            Pair::Added { new, .. } => (None, Some(*new)),
            Pair::Gone(_, Absence::Removed | Absence::LeftOut) => return,
            Pair::Gone(entry, _) => (Some(*entry), None),
        };
        let is_file = |kind| kind == Kind::File;
        let read = new.filter(|new| is_file(new.view.kind) && new.view.digest.is_some());
        if let Some(new) = read {
            self.last
                .add(Some(self.times.now), new.view.size, self.times);
        } else if let Some(entry) = entry.filter(|entry| is_file(entry.kind)) {
            self.last
                .add(recorded(entry, self.made), entry.size(), self.times);
        }
    }
}

/// The files that are read, where not all are.
struct SampledFiles(Vec<bool>);

impl SampledFiles {
    /// Chooses files that look changed, or that `old` notes as damaged or unreadable, and some of the
    /// others.
    fn choose(
        sample: Sample,
        what: &VerifyOptions<'_>,
        old: ManifestStream,
        tree: &Tree,
        is_elsewhere: bool,
        work: &Work<'_>,
    ) -> Result<SampledFiles, Error> {
        let xattrs = tree_options(old.header(), what.trust)?.xattrs;
        let options = FirstPassOptions {
            noted: ReadNoted::All,
            candidates: true,
            trust: what.trust,
            root_check: what.root_check,
            now: i64::MAX,
        };
        let manifest = what.manifest;
        let mut plan = plan(old, manifest, tree, is_elsewhere, xattrs, options, work)?;
        let candidates = std::mem::take(&mut plan.candidates);
        let candidates = candidates.iter().map(|candidate| candidate.entry).collect();
        for id in sample.choose(candidates, &tree.listing) {
            plan.read(id);
        }
        Ok(SampledFiles(plan.wanted))
    }

    fn reads(&self, id: EntryId) -> bool {
        self.0[id.0 as usize]
    }
}

impl FileTotals {
    /// Counts the files among these entries, as those that are read are counted.
    fn of(tree: &Tree, asked: impl Fn(EntryId) -> bool) -> FileTotals {
        let (mut totals, mut linked) = (FileTotals::default(), HashSet::new());
        let listing = &tree.listing;
        for id in listing.ids().filter(|id| is_read(tree, *id) && asked(*id)) {
            totals.files += 1;
            if Files::linked(listing, id).is_none_or(|file| linked.insert(file)) {
                totals.bytes += Files::size(listing, id);
            }
        }
        totals
    }
}

impl Receiver for TreeComparison<'_, '_> {
    fn same(&mut self, run: &LineRun) -> bool {
        !self.guard.needs_each() && self.comparison.same(run.entries(), run.files)
    }

    fn pair(&mut self, pair: Pair<'_>) -> Result<ControlFlow<()>, Error> {
        if let Some(reading) = &mut self.reading {
            reading.see(&pair);
        }
        let reported = match pair {
            Pair::Both {
                entry,
                mut old,
                new,
            } => {
                let mut compared = new.compared();
                if self.is_left_unread(new) {
                    compared.digest = old.digest;
                }
                self.hints
                    .mark_unsteady(&mut old, &compared, new, entry.verified_at);
                self.guard.see(self.tree, entry, new);
                let site = self.hints.at(new.id, new.view.device);
                let verdict = self.comparison.both(new.path, &old, &compared, site);
                verdict.map(|verdict| self.guard.judged(entry, &compared, verdict.class))
            }
            Pair::Gone(entry, why) => {
                self.guard.gone(entry, why)?;
                self.comparison.absent(entry, why)
            }
            Pair::Added { new, .. } if self.scope.is_some_and(|of| !of.scope.holds(new.path)) => {
                Ok(())
            }
            Pair::Added { new, above, .. } => {
                let site = self.hints.at(new.id, new.view.device);
                self.comparison.added(new.path, &new.view, above, site)
            }
        };
        reported.map_err(|error| write_failed(&error))?;
        Ok(self.comparison.flow())
    }
}

impl TreeComparison<'_, '_> {
    /// True for a file that is not in the sample: its content is taken to be the recorded one.
    fn is_left_unread(&self, new: &LoadedEntry<'_>) -> bool {
        let reads = self.sampled.zip(new.id).map(|(of, id)| of.reads(id));
        new.view.kind == Kind::File && new.view.error.is_none() && reads == Some(false)
    }
}
