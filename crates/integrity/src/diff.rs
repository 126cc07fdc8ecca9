//! `diff`: two manifests, offline.

use bc_manifest::integrity::{Found, Kind, ROOT, path_order};

use crate::Setting;
use crate::compare::{Comparison, Detail, Offline, Sink};
use crate::entry_ref::EntryRef;
use crate::error::{Error, ErrorKind};
use crate::fields::{CompareRules, Field};
use crate::flow::Flow;
use crate::input::{ManifestFile, Trust};
use crate::known_damage::KnownDamage;
use crate::manifest_stream::Prefetch;
use crate::soundness::{Soundness, reported_of_sound};
use crate::summary::ComparisonSummary;
use crate::unread::UnreadDirs;
use crate::verify::report_failed;

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
    let (old_dev, new_dev) = (old.header().root_dev, new.header().root_dev);
    let (was, is) = (&old.header().algorithm, &new.header().algorithm);
    if was != is && what.rules.compares(Field::Digest, Kind::File) {
        let message = format!(
            "digests are {is}, those of the other manifest {was}, so they cannot be compared"
        );
        let error = Error::at(ErrorKind::Usage, what.new.name(), message);
        return Err(error.unless(Setting::IgnoreDigest));
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
    let (mut unread_old, mut unread_new) = (UnreadDirs::default(), UnreadDirs::default());
    while comparison.flow() == Flow::Continue {
        // Which side is next; on a tie both are.
        let order = match (old.peek()?, new.peek()?) {
            (None, None) => break,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(old), Some(new)) => path_order(&old.path, &new.path),
        };
        let before = if order.is_le() { old.take()? } else { None };
        let after = if order.is_ge() { new.take()? } else { None };
        before.iter().for_each(|before| unread_old.see(before));
        after.iter().for_each(|after| unread_new.see(after));
        let reported = match (before, after) {
            (Some(before), Some(after)) => {
                let (mut one, mut other) = (EntryRef::from(before), EntryRef::from(after));
                if before.path == ROOT {
                    (one.dev, other.dev) = (old_dev, new_dev);
                }
                match after.found.filter(|found| before.found != Some(*found)) {
                    // Noted since: it outweighs every other change.
                    Some(found) => {
                        comparison.known(&before.path, &one, &other, found, after.tried_at)
                    }
                    None => comparison
                        .both(&before.path, &one, &other, Offline)
                        .map(drop),
                }
            }
            (Some(before), None) => {
                let old = EntryRef::from(before);
                match unread_new.above(&before.path) {
                    Some(above) => comparison.unseen(&before.path, &old, above),
                    None => comparison.removed(&before.path, &old),
                }
            }
            (None, Some(after)) if after.found == Some(Found::Damaged) => {
                comparison.known_added(&after.path, &EntryRef::from(after), after.tried_at)
            }
            (None, Some(after)) => {
                let above = unread_old.above(&after.path);
                comparison.added(&after.path, &EntryRef::from(after), above, Offline)
            }
            (None, None) => Ok(()),
        };
        reported.map_err(|error| report_failed(&error))?;
    }
    problems.extend_from_slice(old.problems());
    problems.extend_from_slice(new.problems());
    let summary = comparison
        .finish(Offline)
        .map_err(|error| report_failed(&error))?;
    Ok(Diffed { summary, problems })
}
