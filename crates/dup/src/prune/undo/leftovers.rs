//! What killed runs, of prune or of undo, left in the directories that undo
//! comes to: looked for once in each, removed where nobody is at work.

use std::collections::HashMap;
use std::ffi::CString;
use std::os::fd::OwnedFd;

use bc_pool::Cancel;
use bc_walk::{FileStat, Identity};

use super::reference;
use crate::prune::guard::{self, Held, compare};
use crate::prune::journal::Entry;
use crate::prune::options::Mode;
use crate::prune::temp::Temps;
use crate::prune::{claim, delete, leftover, sys};

/// Files under temporary names, by directory.
#[derive(Default)]
pub(super) struct Leftovers {
    found: HashMap<Identity, Vec<CString>>,
    /// How many were removed, or would be.
    pub(super) removed: u64,
}

impl Leftovers {
    /// Removes what holds nothing from the directories of a step, and notes
    /// what may hold a file.
    pub(super) fn look(&mut self, entry: &Entry, mode: Mode) {
        for (dir, _) in directories(entry) {
            let Ok(id) = sys::stat(&dir).map(|stat| FileStat::from(&stat).id) else {
                continue;
            };
            if self.found.contains_key(&id) {
                continue;
            }
            let done = leftover::clear(&dir, mode == Mode::Execute, |_, _| false);
            self.removed += done.iter().filter(|(_, done)| done.is_ok()).count() as u64;
            self.found.insert(id, leftover::files(&dir));
        }
    }

    /// Removes files under temporary names that have the content of the step's
    /// file, which is in its place.
    pub(super) fn remove_equal(
        &mut self,
        entry: &Entry,
        path: &[u8],
        temps: &mut Temps,
        cancel: &Cancel,
    ) {
        if self.found.values().all(Vec::is_empty) {
            return;
        }
        let Ok((here, name)) = guard::open_parent(&reference(path, &entry.target)) else {
            return;
        };
        let Ok(kept) = Held::find(&here, &name, path) else {
            return;
        };
        for (dir, _) in directories(entry) {
            let Ok(id) = sys::stat(&dir).map(|stat| FileStat::from(&stat).id) else {
                continue;
            };
            let Some(names) = self.found.get_mut(&id) else {
                continue;
            };
            let Some(_claim) = claim::alone(&dir).filter(|_| !names.is_empty()) else {
                continue;
            };
            names.retain(|name| match remove(&kept, &dir, name, temps, cancel) {
                true => {
                    self.removed += 1;
                    false
                }
                false => true,
            });
        }
    }
}

fn remove(kept: &Held, dir: &OwnedFd, name: &CString, temps: &mut Temps, cancel: &Cancel) -> bool {
    let Ok(found) = Held::find(dir, name, name.as_bytes()) else {
        return false;
    };
    let removed = if found.stat.id == kept.stat.id {
        delete::extra_link(kept, &found)
    } else {
        guard::check_distinct(kept, &found)
            .and_then(|()| compare(&kept.file, &found.file, kept.stat.stamp.size, cancel))
            .and_then(|_| delete::act(kept, &found, temps))
    };
    removed.is_ok()
}

/// The directories that a step has names in.
fn directories(entry: &Entry) -> impl Iterator<Item = (OwnedFd, CString)> {
    let places = [entry.target.path(), entry.destination()];
    places
        .into_iter()
        .flatten()
        .filter_map(|path| guard::open_parent(&reference(&path, &entry.target)).ok())
}
