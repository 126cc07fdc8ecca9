//! Files that an interrupted run has copied and that are no business of this run, which resumes it:
//! they are gone from the source, or other paths are asked for. They were proven when they were
//! copied, and are recorded with what is copied now, as no later run will do so.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use bc_digest::Digest;
use bc_fs::known::TICK_NS;
use bc_fs::path::split;
use bc_integrity::{kind_of, meta_of};
use bc_manifest::integrity::Entry;
use bc_walk::{FileKind, FileStat, Identity};

use super::{ManifestPlan, below};
use crate::job::Job;
use crate::meta::stat;
use crate::place::{DestDir, Existing};
use crate::results::Rows;
use crate::worker::Worker;

/// Returns the files that are still as that run made them, links and other entries without content,
/// and the directories that they are in.
pub(super) fn find(job: &Job<'_>, plan: &ManifestPlan, rows: &Rows) -> Vec<Entry> {
    let mut beside = Beside {
        plan,
        worker: Worker::new(job),
        found: Vec::new(),
        dirs: BTreeSet::new(),
    };
    let (mut proven, mut names) = (HashMap::new(), Vec::new());
    for target in job.plan.known.others() {
        if let Some((dir, there)) = beside.there(target)
            && let Some(digest) = beside.digest(target, &dir, &there)
        {
            proven.insert(there.stat.id, digest);
            beside.entry(target, &there.stat).digest = Some(digest);
        }
    }
    for target in job.plan.known.begun_before() {
        let Some((dir, there)) = beside.there(target) else {
            continue;
        };
        let now = there.stat;
        if now.kind() == FileKind::File && now.nlink > 1 {
            names.push((target, now));
            continue;
        }
        // A file that was there before, or was put there since, is the user's.
        let is_ours = |born: i64| {
            let is_since = job.plan.went_on.is_some_and(|began| born >= began);
            // The last one was made after it was recorded.
            is_since && job.plan.known.can_have_made(born.saturating_sub(TICK_NS))
        };
        if !there.born_ns.is_some_and(is_ours) {
            continue;
        }
        match now.kind() {
            // A regular file would have a record of its copy.
            FileKind::File | FileKind::Dir => {}
            FileKind::Symlink => {
                let read = rustix::fs::readlinkat(&dir.fd, split(target).1, Vec::new());
                if let Ok(leads) = read {
                    beside.entry(target, &now).target = Some(leads.into_bytes());
                }
            }
            FileKind::Block | FileKind::Char => {
                beside.entry(target, &now).rdev = Some(now.rdev);
            }
            FileKind::Fifo | FileKind::Socket => {
                beside.entry(target, &now);
            }
        }
    }
    beside.further_names(proven, &names, rows);
    beside.end()
}

struct Beside<'a> {
    plan: &'a ManifestPlan,
    worker: Worker<'a>,
    found: Vec<Entry>,
    /// Directories that the entries are in.
    dirs: BTreeSet<Vec<u8>>,
}

impl Beside<'_> {
    /// Returns the existing file with that name, if the manifest is about it, and its directory.
    fn there(&mut self, target: &[u8]) -> Option<(Rc<DestDir>, Existing)> {
        if !is_below(self.plan, target) {
            return None;
        }
        let (dir, name) = split(target);
        let dir = self.worker.try_dir(dir).ok()?;
        let there = Existing::at(&dir.fd, name).ok()?;
        Some((dir, there))
    }

    /// Returns the digest of a file that is still as it was made: by its state, or else by its
    /// bytes.
    fn digest(&self, target: &[u8], dir: &DestDir, there: &Existing) -> Option<Digest> {
        let job = self.worker.job;
        let before = job
            .plan
            .known
            .other(target, there, job.states_prove(dir, there))?;
        let has_content = || self.worker.has_content(dir, target, there, &before);
        let is_ours = before.is_proven || has_content().is_ok_and(|has| has);
        before.digest.filter(|_| is_ours)
    }

    fn entry(&mut self, target: &[u8], now: &FileStat) -> &mut Entry {
        let mut dir = split(target).0;
        while !dir.is_empty() && dir != self.plan.below && self.dirs.insert(dir.to_vec()) {
            dir = split(dir).0;
        }
        self.found.push(entry(self.plan, target, now));
        let last = self.found.len() - 1;
        &mut self.found[last]
    }

    /// Adds further names of files that are proven under another name, here or among what is copied
    /// now.
    fn further_names(
        &mut self,
        mut proven: HashMap<Identity, Digest>,
        names: &[(&[u8], FileStat)],
        rows: &Rows,
    ) {
        let job = self.worker.job;
        let wanted: HashSet<u64> = names.iter().map(|(_, now)| now.id.ino).collect();
        for item in job.plan.tree.items().filter(|_| !names.is_empty()) {
            let is_wanted = rows
                .meta(item)
                .is_some_and(|meta| wanted.contains(&meta.ino));
            if let Some(digest) = rows.digest(item).filter(|_| is_wanted)
                && let Ok(place) = self.worker.place(item)
                && let Ok(Some(there)) = self.worker.there(&place)
            {
                proven.insert(there.id, digest);
            }
        }
        for (target, now) in names {
            if let Some(digest) = proven.get(&now.id) {
                self.entry(target, now).digest = Some(*digest);
            }
        }
    }

    fn end(mut self) -> Vec<Entry> {
        for target in self.dirs {
            let there = self.worker.try_dir(&target).and_then(|dir| stat(&dir.fd));
            if let Ok(now) = there {
                self.found.push(entry(self.plan, &target, &now));
            }
        }
        self.found
    }
}

fn entry(plan: &ManifestPlan, target: &[u8], now: &FileStat) -> Entry {
    let mut entry = Entry::new(below(plan, target.to_vec()), kind_of(now.kind()));
    entry.meta = Some(meta_of(now));
    entry
}

/// True if a path is within the manifest's root.
fn is_below(plan: &ManifestPlan, target: &[u8]) -> bool {
    let rest = target.strip_prefix(&plan.below[..]);
    rest.is_some_and(|rest| plan.below.is_empty() || rest.starts_with(b"/"))
}
