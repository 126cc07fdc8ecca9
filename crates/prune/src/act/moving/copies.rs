//! Copies that a run may meet at its destination: those that it made, and those that earlier runs
//! were killed over.

use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;

use bc_edit::names::prune::Mark;
use bc_fs::dirfd;
use bc_fs::path::{join, split};
use bc_pool::Cancel;
use bc_walk::Identity;

use crate::act::moving::existing_target::Acceptable;
use crate::act::moving::relocate::Arrived;
use crate::check::meta::difference;
use crate::check::open_file::OpenFile;
use crate::journal;
use crate::leftovers;
use crate::options::PruneOptions;
use crate::step::Action;

/// The copies that earlier runs were killed over.
pub(crate) struct Unfinished {
    /// Copies by the path in a journal: the mark of each, and that of its original.
    copies: HashMap<Vec<u8>, (Mark, Mark)>,
    /// Files with several names: the path where one arrived, and the copy's mark there.
    linked: HashMap<Mark, (Vec<u8>, Mark)>,
    /// The directory that files are moved to, as given and as journals have it.
    given: Vec<u8>,
    real: Option<Vec<u8>>,
}

impl Unfinished {
    /// The copy of `target` that is at `to`.
    fn at(&self, to: &[u8], target: &OpenFile) -> Option<Mark> {
        let below = to.strip_prefix(self.given.as_slice())?;
        let path = join(self.real.as_ref()?, below);
        let (copy, original) = self.copies.get(&path)?;
        original.proves(&target.mark()).then_some(*copy)
    }
}

/// Copies that exist already, as far as a run knows them.
#[derive(Default)]
pub(crate) struct Copies {
    /// Copies that earlier runs were killed over, once the journals were read.
    unfinished: Option<Unfinished>,
    /// Copies that were found to have their temporary names too, after the file that each was made
    /// of.
    pub(crate) traces: HashSet<(Mark, Identity)>,
    /// Files that this run has placed, each with the file that it was before: a copy is another
    /// one.
    pub(crate) placed: HashMap<Identity, Identity>,
    /// Paths that files and directories were moved to, or would be.
    pub(crate) taken: HashSet<Vec<u8>>,
}

impl Copies {
    /// Returns the conditions under which a file named `to` counts as a copy of `target`.
    pub(crate) fn acceptable<'a>(
        &'a self,
        options: &'a PruneOptions,
        kept_file: &'a OpenFile,
        target: &OpenFile,
        to: &[u8],
    ) -> Acceptable<'a> {
        let unfinished = self.unfinished.as_ref();
        Acceptable {
            known: unfinished.and_then(|known| known.at(to, target)),
            traces: &self.traces,
            kept_file,
            references: &options.references,
            placed: &self.placed,
            force: options.force,
            on_metadata_diff: options.on_metadata_diff,
        }
    }

    /// Reads from the journals of earlier runs the copies that these were killed over, once.
    pub(crate) fn read_journals(&mut self, options: &PruneOptions, cancel: &Cancel) {
        let Action::Move(given) = &options.action else {
            return;
        };
        self.unfinished.get_or_insert_with(|| {
            let (copies, linked) = journal::earlier_copies(&options.earlier, cancel);
            Unfinished {
                copies,
                linked,
                given: given.clone(),
                real: dirfd::open_root(given)
                    .ok()
                    .and_then(|dir| dirfd::real_path(&dir)),
            }
        });
    }

    /// The copy that an earlier run made of `target` under another one of its names
    /// before it was killed, if that has all that the file has.
    pub(crate) fn earlier_copy(&self, target: &OpenFile, to_dir: &OwnedFd) -> Option<Arrived> {
        let mark = target.mark();
        mark.born_ns?;
        let traced = self.traces.iter().find(|(of, _)| *of == mark);
        let traced = traced.and_then(|(_, copy)| {
            let name = leftovers::with_number(to_dir, copy.ino)?;
            OpenFile::find(to_dir, &name, b"").ok()
        });
        let recorded = || {
            let (path, copy) = self.unfinished.as_ref()?.linked.get(&mark)?;
            let (parent, name) = split(path);
            let root = dirfd::open_root(b"/").ok()?;
            let dir = dirfd::open_below(root, parent.strip_prefix(b"/")?).ok()?;
            let held = OpenFile::find(&dir, &dirfd::name(name).ok()?, path).ok()?;
            copy.proves(&held.mark()).then_some(held)
        };
        let held = traced.or_else(recorded)?;
        let (own, there) = (target.metadata().ok()?, held.metadata().ok()?);
        let same = difference(&own, &there).is_none() && own.mtime_ns == there.mtime_ns;
        let (dir, name, id) = (held.dir, held.name, held.stat.id);
        same.then_some(Arrived { dir, name, id })
    }
}
