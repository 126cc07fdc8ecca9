//! Header of a manifest: the place where it was written and its scope.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bc_manifest::integrity::{Entry, Header, ROOT, Scope};
use bc_manifest::time::format_rfc3339;
use bc_walk::FileStat;

use super::plan::ManifestPlan;
use super::{below, path_in};
use crate::job::Job;
use crate::tree::RootItem;
use crate::unread::Unlisted;

/// Returns the scope of the manifest, unless it describes all that is below its root.
pub(super) fn scope(
    job: &Job<'_>,
    plan: &ManifestPlan,
    unlisted: &[Unlisted],
    beside: &[Entry],
    earlier: Option<&Option<Scope>>,
) -> Option<Scope> {
    // That is about everything, or the earlier one was.
    if plan.whole || earlier == Some(&None) {
        return None;
    }
    let is_direct = |path: &Vec<u8>| path != ROOT && !path.contains(&b'/');
    let unlisted = unlisted.iter().map(|one| below(plan, one.target.clone()));
    let beside = beside.iter().map(|entry| entry.path.clone());
    let mut paths: Vec<Vec<u8>> = unlisted.chain(beside).filter(is_direct).collect();
    for root in 0..job.plan.tree.roots.len() {
        let name = &job.plan.tree.roots[root].name;
        match plan.below.is_empty() && !name.is_empty() {
            true => paths.push(name.clone()),
            // The entries directly in a directory that existed before.
            false => {
                let items = job
                    .plan
                    .tree
                    .items_of(root)
                    .map(|item| path_in(&job.plan.tree, plan, RootItem(item)));
                paths.extend(items.filter(is_direct));
            }
        }
    }
    if let Some(Some(scope)) = earlier {
        paths.extend_from_slice(scope.paths());
    }
    Some(Scope::of(paths))
}

/// Returns the first record of the manifest.
pub(super) fn header(job: &Job<'_>, plan: &ManifestPlan, scope: Option<&Scope>) -> Header {
    let options = job.plan.options;
    let algorithm = options.algorithm.map_or("", |algorithm| algorithm.name());
    let mut header = Header::new(algorithm, env!("CARGO_PKG_VERSION"));
    header.tool = "bc copy".to_owned();
    header.created_at = Some(format_rfc3339(options.now));
    header.host.clone_from(&options.host);
    header.machine.clone_from(&options.machine);
    let root = match plan.root.is_empty() {
        true => Path::new("."),
        false => Path::new(OsStr::from_bytes(&plan.root)),
    };
    let real = std::fs::canonicalize(root);
    header.root = Some(real.map_or_else(
        |_| plan.root.clone(),
        |real| real.into_os_string().into_encoded_bytes(),
    ));
    let found = rustix::fs::stat(root).ok();
    header.root_dev = found.map(|stat| FileStat::from(&stat).id.dev);
    if let Some(scope) = scope {
        header.scope = scope.to_json();
    }
    header
}
