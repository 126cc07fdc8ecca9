//! `diff`: two manifests, offline.

use bc_manifest::integrity::{ContentFault, Entry, Kind, ROOT};
use bc_walk::job::{Error, ErrorKind, path_of};

use crate::Setting;
use crate::compare::known_damage::KnownDamage;
use crate::compare::soundness::{Soundness, reported_of_sound};
use crate::compare::summary::ComparisonSummary;
use crate::compare::{Comparison, Detail, Offline, Sink};
use crate::entry_ref::EntryRef;
use crate::error::write_failed;
use crate::fields::{CompareRules, Field};
use crate::input::stream::Prefetch;
use crate::input::{ManifestFile, Trust};
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
            trust: Trust::default(),
        }
    }
}

bc_fs::setters! {
    DiffOptions<'a>:
    rules: CompareRules,
    detail: Detail,
    trust: Trust,
}

/// Result of a comparison of manifests.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Diffed {
    /// The counts.
    pub summary: ComparisonSummary,
    /// Parts of damaged manifests that were skipped, and options that the two were not both made
    /// with, in words.
    pub problems: Vec<String>,
}

/// Compares two manifests and passes the changes to `sink` in path order.
///
/// # Errors
/// Fails if a manifest is damaged, if digests are compared and the algorithms differ, or if a write
/// fails.
pub fn diff(what: &DiffOptions<'_>, sink: &mut Sink<'_>) -> Result<Diffed, Error> {
    let mut old = what.old.stream(what.trust, Prefetch::Thread)?;
    let mut new = what.new.stream(what.trust, Prefetch::Thread)?;
    old.prove()?;
    new.prove()?;
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
    if old.header().options != new.header().options {
        problems.push("the manifests were made with different walk options".to_string());
    }
    let sound = [what.old, what.new].map(|file| Soundness::of(file, what.trust));
    let sound = [&sound[0], &sound[1]];
    let mut told = reported_of_sound(&sound, sink);
    let known = KnownDamage::of(what.old, what.trust);
    let mut comparison = Comparison::new(what.rules, what.detail, &mut told).knowing(&known);
    let mut sides = Sides::of_manifest(old);
    let mut flow = ControlFlow::Continue(());
    while flow.is_continue()
        && let Some(after) = new.take()?
    {
        let mut view = EntryRef::from(after);
        if after.path == ROOT {
            view.dev = new_dev;
        }
        let listed = LoadedEntry::unlisted(&after.path, view);
        let mut difference = Difference {
            comparison: &mut comparison,
            after: Some(after),
        };
        flow = sides.up_to(&listed, &mut difference)?;
    }
    if flow.is_continue() {
        sides.rest(&mut Difference {
            comparison: &mut comparison,
            after: None,
        })?;
    }
    problems.extend_from_slice(sides.problems());
    problems.extend_from_slice(new.problems());
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
                    .both(new.path, &old, &new.view, Offline)
                    .map(drop),
            },
            Pair::Gone(entry, why) => comparison.absent(entry, why),
            Pair::Added { new, .. } if found == Some(ContentFault::Damaged) => {
                comparison.known_added(new.path, &new.view, tried_at)
            }
            Pair::Added { new, above, .. } => comparison.added(new.path, &new.view, above, Offline),
        };
        reported.map_err(|error| write_failed(&error))?;
        Ok(comparison.flow())
    }
}
