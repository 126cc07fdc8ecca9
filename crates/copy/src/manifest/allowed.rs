//! Checks before a named manifest replaces a file: it replaces no copied file, and no file other
//! than a manifest of the same destination.

use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use bc_edit::output::takes_at_once;
use bc_fs::Escaped;
use bc_fs::caller::check_name;
use bc_fs::place::Place;
use bc_walk::job::{Error, ErrorKind, Setting};
use bc_walk::{FileKind, FileStat, Identity};

use super::earlier::{self, ExistingManifest, Whole};
use super::plan::{ManifestPlan, early_plan, manifest_file};
use crate::destination::{Source, Top};
use crate::error::{error_at, system_error, usage_at};
use crate::job::Job;
use crate::meta::stat;
use crate::options::{CopyOptions, ManifestPlace};
use crate::place::DestDir;
use crate::results::Rows;
use crate::sources::{RootItem, SourceContent, SourceTree, Walked};

/// Refuses, before anything is copied, to replace a file at the manifest's named path that this
/// copy would not carry on, unless the options allow it.
fn refuse_foreign(options: &CopyOptions, plan: &ManifestPlan) -> Result<(), Error> {
    let shown = plan.file.as_os_str().as_bytes();
    let refused = |why: String| {
        let error = error_at(ErrorKind::Refused, shown, why);
        Err(error.unless(Some(Setting::Overwrite)))
    };
    let is_empty = |meta: std::fs::Metadata| meta.is_file() && meta.len() == 0;
    if plan.file.metadata().is_ok_and(is_empty) {
        return Ok(());
    }
    let recorded = match earlier::look(options, plan, Whole::Proven) {
        ExistingManifest::Nothing => return Ok(()),
        ExistingManifest::Manifest(earlier) => earlier.recorded_root().map(<[u8]>::to_vec),
        // With other digests, or one that others may write: nothing of it is carried on, and it is
        // a manifest all the same.
        ExistingManifest::Other(why) => match earlier::root_of_other(plan) {
            Some(root) => Some(root),
            None => {
                return refused(format!(
                    "is there already, and cannot be carried on as the manifest of this copy: {why}"
                ));
            }
        },
    };
    match recorded {
        Some(recorded) if recorded == plan.real_root() => Ok(()),
        Some(recorded) => refused(format!(
            "is the manifest of another destination, {}",
            Escaped(&recorded)
        )),
        None => refused("is a manifest that does not say of which destination".to_owned()),
    }
}

/// Refuses, before anything is copied, a manifest that would replace a copied file, or lie where
/// the next copy takes it for a part of the source.
fn refuse_copied(
    options: &CopyOptions,
    plan: &ManifestPlan,
    top: &Top,
    walked: &[Walked],
) -> Result<(), Error> {
    if !is_named(options) || takes_at_once(&plan.file) {
        return Ok(());
    }
    if let Ok(place) = Place::find(&plan.file) {
        let existing = place.existing().ok().flatten();
        let file = existing.map(|stat| FileStat::from(&stat).id);
        let directory = stat(place.directory()).ok().map(|stat| stat.id);
        for one in walked {
            refuse_source(plan, one, file, directory)?;
        }
    }
    let Some(target) = target_of(top, &plan.file) else {
        return Ok(());
    };
    let tree = SourceTree::new(walked, &top.names);
    let mut path = Vec::new();
    let mut is_copied = |item: RootItem| {
        tree.write_target(item, &mut path);
        path == target
    };
    match tree.items().any(&mut is_copied) {
        true => Err(refused(plan, "is where a file is copied to")),
        false => Ok(()),
    }
}

/// Refuses a file of a source, and a name in one of its directories.
fn refuse_source(
    plan: &ManifestPlan,
    one: &Walked,
    file: Option<Identity>,
    directory: Option<Identity>,
) -> Result<(), Error> {
    let source = &one.source;
    let SourceContent::Listing(listing) = &*one.content else {
        return match file == Some(source.stat.id) {
            true => Err(refused(plan, "is what is copied")),
            false => Ok(()),
        };
    };
    for id in listing.ids() {
        let Some(meta) = listing.meta(id) else {
            continue;
        };
        let is_dir = listing.kind(id) == FileKind::Dir;
        if !is_dir && Some(meta.id) == file {
            return Err(refused(plan, "is one of the files that are copied"));
        }
        if is_dir && Some(meta.id) == directory {
            let source = Escaped(source.path.as_bytes());
            let why = format!("lies in what is copied, {source}, of which it would be a part");
            return Err(refused(plan, why));
        }
    }
    Ok(())
}

/// Refuses, when the manifest is written, to replace a copied file: by now the copy is there, by
/// whichever path it is reached.
pub(super) fn refuse_now(job: &Job<'_>, plan: &ManifestPlan, rows: &Rows) -> Result<(), Error> {
    if job.plan.options.manifest == ManifestPlace::Destination {
        return refuse_moved(job, plan);
    }
    if !is_named(job.plan.options) || takes_at_once(&plan.file) {
        return Ok(());
    }
    let existing = Place::find(&plan.file).and_then(|place| place.existing());
    let Some(stat) = existing.ok().flatten() else {
        return Ok(());
    };
    let there = FileStat::from(&stat);
    let is_there = |item: RootItem| {
        let ino = rows.meta(item).map(|meta| meta.ino);
        ino == Some(there.id.ino) && job.plan.tree.kind(item) != FileKind::Dir
    };
    if there.id.dev == job.plan.top.id.dev && job.plan.tree.items().any(is_there) {
        return Err(refused(plan, "is one of the files that were copied"));
    }
    match job.plan.options.replace_manifest {
        true => Ok(()),
        false => refuse_foreign(job.plan.options, plan),
    }
}

/// Refuses to write to what has the destination's path by now, and is another directory.
fn refuse_moved(job: &Job<'_>, plan: &ManifestPlan) -> Result<(), Error> {
    let shown = plan.file.as_os_str().as_bytes();
    let failed = |errno: rustix::io::Errno| system_error(shown, "open directory", errno);
    let copy = DestDir::open(job.plan.top.fd.as_fd(), &plan.below).map_err(failed)?;
    let place = Place::find(&plan.file);
    let place = place.map_err(|error| system_error(shown, "open directory", error))?;
    if stat(place.directory()).map_err(failed)?.id == copy.id {
        return Ok(());
    }
    let text = "the destination was moved meanwhile, and another directory is there";
    Err(Error::from(bc_walk::Error::with_message(
        shown, "create", text,
    )))
}

fn is_named(options: &CopyOptions) -> bool {
    matches!(options.manifest, ManifestPlace::File(_))
}

fn refused(plan: &ManifestPlan, why: impl Into<String>) -> Error {
    let shown = plan.file.as_os_str().as_bytes();
    error_at(ErrorKind::Refused, shown, why).unless(Some(Setting::Manifest))
}

/// Returns the path of a file below the top, links resolved as far as it exists.
fn target_of(top: &Top, file: &Path) -> Option<Vec<u8>> {
    let shown = match top.path.is_empty() {
        true => OsStr::new("."),
        false => OsStr::from_bytes(&top.path),
    };
    let real = std::fs::canonicalize(shown).ok()?;
    let below = existing(file)?.strip_prefix(&real).ok()?.to_owned();
    Some(below.into_os_string().into_encoded_bytes())
}

/// Resolves the links of a path; components that do not exist yet are kept as they are named.
fn existing(file: &Path) -> Option<PathBuf> {
    let mut rest = Vec::new();
    let mut at = file;
    loop {
        let shown = match at.as_os_str().is_empty() {
            true => Path::new("."),
            false => at,
        };
        if let Ok(real) = std::fs::canonicalize(shown) {
            return Some(rest.iter().rev().fold(real, |path, name| path.join(name)));
        }
        rest.push(at.file_name()?);
        at = at.parent()?;
    }
}

/// Refuses a link in the place of the manifest: none is followed in the destination, while one that
/// was named by the user is.
pub(crate) fn refuse_odd_manifest(
    options: &CopyOptions,
    top: &Top,
    first: &Source,
) -> Result<(), Error> {
    if options.algorithm.is_none() || options.manifest != ManifestPlace::Destination {
        return Ok(());
    }
    let Some(file) = manifest_file(options, top, first) else {
        return Ok(());
    };
    match file.symlink_metadata() {
        Ok(meta) if !meta.is_file() => Err(usage_at(
            file.as_os_str().as_bytes(),
            "is no regular file, so the manifest cannot be there",
        )
        .unless(Some(Setting::Manifest))),
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
    plan.map_or(Ok(()), |plan| refuse_foreign(options, &plan))
}

/// Refuses, before anything is copied, a manifest whose place is taken by a file that cannot lose its
/// name, that of another user in a sticky directory or one that is immutable, and cannot be carried on
/// either. Returns the reason for which one that can be carried on cannot be replaced.
fn refuse_stuck(options: &CopyOptions, plan: &ManifestPlan) -> Result<Option<Error>, Error> {
    let is_there = options.manifest == ManifestPlace::Destination && options.algorithm.is_some();
    let Some(place) = Place::find(&plan.file).ok().filter(|_| is_there) else {
        return Ok(None);
    };
    let Err(fixed) = check_name(place.directory(), place.name().as_bytes()) else {
        return Ok(None);
    };
    let failed = fixed.failed();
    match earlier::look(options, plan, Whole::Later) {
        ExistingManifest::Other(why) => {
            let text = format!("cannot be carried on, nor get another name: {why}; {failed}");
            Err(refused(plan, text))
        }
        _ => {
            let text = format!("cannot be replaced by the manifest of this copy: {failed}");
            Ok(Some(refused(plan, text)))
        }
    }
}

/// Refuses a manifest that would replace a file that is copied, or that cannot get its place. Returns
/// the refusal of one whose place is taken by that of an earlier copy: of a copy that is complete
/// nothing is written.
pub(crate) fn refuse_copied_manifest(
    options: &CopyOptions,
    top: &Top,
    walked: &[Walked],
) -> Result<Option<Error>, Error> {
    let first = walked.first().map(|one| &one.source);
    let Some(plan) = first.and_then(|first| early_plan(options, top, first)) else {
        return Ok(None);
    };
    let stuck = refuse_stuck(options, &plan)?;
    refuse_copied(options, &plan, top, walked)?;
    Ok(stuck)
}
