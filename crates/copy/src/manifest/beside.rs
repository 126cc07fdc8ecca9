//! What an interrupted run has copied that this one, which goes on from it, has nothing to do with:
//! the source has it no more, or other paths are asked for. It was proven when it was copied, and is
//! recorded with what is copied now, as nobody will come back for it.

use std::collections::BTreeSet;

use bc_manifest::integrity::{Entry, Kind};
use bc_walk::{FileKind, FileStat};
use rustix::fs::AtFlags;

use super::{Plan, below};
use crate::job::Job;
use crate::meta::fstat;
use crate::results::meta_of;
use crate::tree::parts;
use crate::worker::Worker;

/// The files that are still what was made then, and the directories that they are in.
pub(super) fn find(job: &Job<'_>, plan: &Plan) -> Vec<Entry> {
    let mut worker = Worker::new(job);
    let (mut found, mut dirs) = (Vec::new(), BTreeSet::new());
    for (target, digest) in job.known.others() {
        if !is_below(plan, target) {
            continue;
        }
        let (dir, name) = parts(target);
        let Ok(at) = worker.try_dir(dir) else {
            continue;
        };
        let there = rustix::fs::statat(&at.fd, name, AtFlags::SYMLINK_NOFOLLOW);
        let Ok(now) = there.map(|there| FileStat::from(&there)) else {
            continue;
        };
        let Some(digest) = digest(&now).filter(|_| now.kind() == FileKind::File) else {
            continue;
        };
        let mut entry = Entry::new(below(plan, target.to_vec()), Kind::File);
        (entry.meta, entry.digest) = (Some(meta_of(&now)), Some(digest));
        found.push(entry);
        let mut dir = dir;
        while !dir.is_empty() && dir != plan.below && dirs.insert(dir.to_vec()) {
            dir = parts(dir).0;
        }
    }
    for target in dirs {
        let there = worker.try_dir(&target).and_then(|dir| fstat(&dir.fd));
        if let Ok(now) = there.map(|there| FileStat::from(&there)) {
            let mut entry = Entry::new(below(plan, target), Kind::Dir);
            entry.meta = Some(meta_of(&now));
            found.push(entry);
        }
    }
    found
}

/// Whether the manifest is about what is there.
fn is_below(plan: &Plan, target: &[u8]) -> bool {
    let rest = target.strip_prefix(&plan.below[..]);
    rest.is_some_and(|rest| plan.below.is_empty() || rest.starts_with(b"/"))
}
