//! Leftovers of killed runs, of prune or of undo, in the directories that undo visits: looked for
//! once in each, removed where no run is at work.

use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;

use bc_edit::content;
use bc_edit::entry;
use bc_edit::names::prune as prune_names;
use bc_edit::names::prune::Mark;
use bc_fs::dirfd;
use bc_fs::meta;
use bc_fs::path::{sibling, split};
use bc_walk::{FileStat, Identity};

use super::{has_content, reference};
use crate::act::symlink::relative;
use crate::act::temp::{self, Temps};
use crate::check::compare::check_distinct;
use crate::check::compare::compare_while;
use crate::check::dir;
use crate::check::open_file::{self, OpenFile};
use crate::check::pace::ReadPace;
use crate::journal::JournalStep;
use crate::leftovers::{self, LeftFiles, RemovableStage, claim};
use crate::options::RunMode;
use crate::skip::Skip;

/// Files under temporary names, by directory.
#[derive(Default)]
pub(super) struct Leftovers {
    found: HashMap<Identity, Vec<CString>>,
    /// Copies that were being made.
    stages: HashMap<Identity, Vec<CString>>,
    /// Symbolic links, directories and special files.
    others: HashMap<Identity, Vec<CString>>,
    /// The paths of those directories.
    paths: HashMap<Identity, Vec<u8>>,
    /// Those of the copies that are whole, and may be the last to have their content.
    last: HashSet<Vec<u8>>,
    /// Leftovers that were reported already.
    spoken_for: HashSet<Vec<u8>>,
    /// Those that were removed, or would be.
    gone: HashSet<Vec<u8>>,
}

/// Files that got their names back: the path, and the name that each still has in a dry run.
pub(super) struct Back {
    pub(super) original: Option<(Vec<u8>, CString)>,
    pub(super) copy: Option<(Vec<u8>, CString)>,
}

/// File that a killed run may have set aside.
#[derive(Clone, Copy)]
struct SetAside {
    id: Identity,
    /// The file on the other side of a move, where its name says so.
    other: Option<Mark>,
}

impl SetAside {
    /// Opens the file with a temporary name if it is this one, with the content of the step's.
    ///
    /// The number of its device may be another one since it was mounted again; after a copy of the
    /// whole tree its own is, and the name identifies the copy's original.
    fn find_as(
        &self,
        entry: &JournalStep,
        dir: &OwnedFd,
        left: &CString,
        pace: ReadPace<'_>,
    ) -> Option<OpenFile> {
        let held = OpenFile::find(dir, left, left.as_bytes()).ok()?;
        let is_named =
            self.other.is_some() && prune_names::aside_for(left.as_bytes()) == self.other;
        let is_it = (is_named || held.stat.id.ino == self.id.ino)
            && has_content(entry, &held, pace).is_ok_and(|has| has);
        is_it.then_some(held)
    }
}

impl Leftovers {
    /// Removes probes and links that the step made from its directories, and records the names that
    /// may hold a file. Returns those that went, or would.
    pub(super) fn look(&mut self, entry: &JournalStep, mode: RunMode) -> Vec<Vec<u8>> {
        let mut gone = Vec::new();
        for (dir, _) in directories(entry) {
            let Ok(id) = meta::stat(&dir).map(|stat| stat.id) else {
                continue;
            };
            if let Some(path) = dirfd::real_path(&dir) {
                self.paths.insert(id, path);
            }
            let path = self.paths.get(&id).cloned().unwrap_or_default();
            let whole = |name: &CString| [&path, b"/".as_slice(), name.as_bytes()].concat();
            if !self.found.contains_key(&id) {
                let done = leftovers::clear_probes(&dir, mode == RunMode::Execute);
                let went = done.iter().filter(|(_, done)| done.is_ok());
                let went = went.map(|(name, _)| whole(name));
                gone.extend(went.filter(|name| self.gone.insert(name.clone())));
                let left = LeftFiles::of(&dir);
                self.found.insert(id, left.set_aside);
                self.stages.insert(id, left.stages);
                self.others.insert(id, left.others);
            }
        }
        gone.extend(self.clear_links_of(entry, mode));
        gone
    }

    /// Removes links to the kept file from the step's directories, which a killed run had made for
    /// the step or had taken back from its name: they lead to that file, or have the text of such a
    /// link. Any other link is not known to be ours. Returns those that went, or would.
    fn clear_links_of(&mut self, entry: &JournalStep, mode: RunMode) -> Vec<Vec<u8>> {
        let (kept, kept_path) = (entry.kept_file.id(), entry.kept_file.path());
        let goes = |dir: &OwnedFd, name: &CString, path: &[u8]| {
            let text = link_text(dir, name);
            let made = || Some(relative(split(path).0, kept_path.as_ref()?));
            text.is_some()
                && (text == made() || meta::stat_through(dir, name).is_ok_and(|to| to.id == kept))
                && remove_name(dir, name, mode)
        };
        remove_where(&mut self.others, &self.paths, &mut self.gone, entry, goes)
    }

    /// Removes links with this text that a killed run had set aside in the directories of the step,
    /// or records that they would go.
    pub(super) fn clear_links(&mut self, entry: &JournalStep, text: &[u8], mode: RunMode) {
        for path in paths(entry) {
            let Ok((dir, _)) = dir::open_parent(&reference(&path, &entry.target)) else {
                continue;
            };
            let mut links = leftovers::links(&dir);
            links.retain(|name| link_text(&dir, name).as_deref() == Some(text));
            let Some(_claim) = claim::alone(&dir).filter(|_| !links.is_empty()) else {
                continue;
            };
            links.retain(|name| remove_name(&dir, name, mode));
            let gone = links.iter().map(|name| sibling(&path, name.as_bytes()));
            self.gone.extend(gone);
        }
    }

    /// Returns the number of names that were removed, or would be.
    pub(super) fn removed(&self) -> u64 {
        self.gone.len() as u64
    }

    /// Returns true if nothing is left that may hold a file.
    pub(super) fn is_empty(&self) -> bool {
        self.found.values().all(Vec::is_empty)
    }

    /// Returns true if no copy is left that was being made.
    pub(super) fn has_no_stage(&self) -> bool {
        self.stages.values().all(Vec::is_empty)
    }

    /// Removes copies in the making from the step's directories that hold what one of `sources`
    /// begins with; in a dry run only says which would go. Where the step `failed`, one that is
    /// all of the step's file may be the last that has its content.
    pub(super) fn remove_stages(
        &mut self,
        entry: &JournalStep,
        sources: &[&OpenFile],
        failed: bool,
        undo: &StageMeans<'_>,
    ) -> Vec<Vec<u8>> {
        let last = &mut self.last;
        let goes = |dir: &OwnedFd, name: &CString, path: &[u8]| {
            let proven = RemovableStage::prove(dir, name, path, sources, undo.pace);
            match (proven, undo.mode) {
                (Ok(Some(stage)), RunMode::Execute) => stage.remove(&[], undo.temps).is_ok(),
                (Ok(Some(_)), RunMode::DryRun) => dirfd::may_change(dir).is_ok(),
                (Ok(None), _) if failed && is_all_of(entry, dir, name, undo.pace) => {
                    last.insert(path.to_vec());
                    false
                }
                (Ok(None) | Err(_), _) => false,
            }
        };
        remove_where(&mut self.stages, &self.paths, &mut self.gone, entry, goes)
    }

    /// Returns the leftovers that stay, in directories that no run is using, each with the reason,
    /// but for those that were reported: first the originals of killed moves, to which no step of the
    /// journal gave their names.
    pub(super) fn staying(&self) -> Vec<(Vec<u8>, Skip)> {
        let (mut originals, mut others) = (Vec::new(), Vec::new());
        let is_open = |path: &Vec<u8>| !self.spoken_for.contains(path) && !self.gone.contains(path);
        for path in self.unused(&self.found).into_iter().filter(is_open) {
            match prune_names::is_original(split(&path).1) {
                true => originals.push((path, Skip::Original)),
                false => others.push((path, Skip::UnknownLeftover)),
            }
        }
        let foreign = self.unused(&self.others).into_iter().filter(is_open);
        others.extend(foreign.map(|path| (path, Skip::UnknownLeftover)));
        for path in self.unused(&self.stages) {
            let why = match self.last.contains(&path) {
                true => Skip::LastCopy,
                false => Skip::UnknownStage,
            };
            others.push((path, why));
        }
        for found in [&mut originals, &mut others] {
            found.sort_by(|(one, _), (other, _)| one.cmp(other));
        }
        [originals, others].concat()
    }

    /// Gives the step's file and the copy that was made of it their names back, where a killed run
    /// had set them aside and nothing has the name. A dry run only reports that it would.
    pub(super) fn put_back(
        &mut self,
        entry: &JournalStep,
        copy: Option<Mark>,
        mode: RunMode,
        pace: ReadPace<'_>,
    ) -> Result<Back, Skip> {
        let mut put_back = |path: Option<Vec<u8>>, id: Option<Identity>, other: Option<Mark>| {
            let (Some(path), Some(id)) = (path, id) else {
                return Ok(None);
            };
            match dir::open_parent(&reference(&path, &entry.target)) {
                Ok((dir, name)) => {
                    let wanted = SetAside { id, other };
                    let found = self.put_back_in(entry, &dir, &name, wanted, mode, pace)?;
                    Ok::<_, Skip>(found.map(|left| (path, left)))
                }
                Err(_) => Ok(None),
            }
        };
        let original = put_back(entry.target.path(), Some(entry.target.id()), copy)?;
        let copy = put_back(entry.destination(), copy.map(|copy| copy.id), None)?;
        Ok(Back { original, copy })
    }

    fn put_back_in(
        &mut self,
        entry: &JournalStep,
        dir: &OwnedFd,
        name: &CString,
        wanted: SetAside,
        mode: RunMode,
        pace: ReadPace<'_>,
    ) -> Result<Option<CString>, Skip> {
        let here = meta::stat(dir)?.id;
        let Some(names) = self.found.get_mut(&here).filter(|names| !names.is_empty()) else {
            return Ok(None);
        };
        if open_file::identity_at(dir, name)?.is_some() {
            return Ok(None);
        }
        let is_it = |left: &CString| wanted.find_as(entry, dir, left, pace).is_some();
        let Some(at) = names.iter().position(is_it) else {
            return Ok(None);
        };
        if mode == RunMode::Execute {
            let _claim = claim::alone(dir).ok_or(Skip::InUse)?;
            entry::rename_new(dir, &names[at], dir, name)?;
            content::sync_dir(dir)?;
        }
        Ok(Some(names.remove(at)))
    }

    /// Finds the step's file itself in the directory of its name, where a killed run had set it
    /// aside and put a link in its place: returns its temporary name and its state.
    pub(super) fn original(
        &self,
        entry: &JournalStep,
        dir: &OwnedFd,
        pace: ReadPace<'_>,
    ) -> Option<(CString, FileStat)> {
        let names = self.found.get(&meta::stat(dir).ok()?.id)?;
        let wanted = SetAside {
            id: entry.target.id(),
            other: None,
        };
        names.iter().find_map(|left| {
            let held = wanted.find_as(entry, dir, left, pace)?;
            Some((left.clone(), held.stat))
        })
    }

    /// Returns the path of that file.
    pub(super) fn original_path(&self, entry: &JournalStep, pace: ReadPace<'_>) -> Option<Vec<u8>> {
        if self.is_empty() {
            return None;
        }
        let path = entry.target.path()?;
        let (dir, _) = dir::open_parent(&reference(&path, &entry.target)).ok()?;
        let (left, _) = self.original(entry, &dir, pace)?;
        Some(sibling(&path, left.as_bytes()))
    }

    /// Forgets a temporary name that no longer exists.
    pub(super) fn forget(&mut self, dir: &OwnedFd, name: &CString) {
        let names = meta::stat(dir).map(|stat| self.found.get_mut(&stat.id));
        if let Ok(Some(names)) = names {
            names.retain(|left| left != name);
        }
    }

    /// Returns the path of a file that a killed run had set aside for the step, the original or the
    /// copy made of it, and that could not be given its name back.
    pub(super) fn rest(&self, entry: &JournalStep, copy: Option<Identity>) -> Option<Vec<u8>> {
        if self.is_empty() {
            return None;
        }
        let rest = |path: Option<Vec<u8>>, id: Identity| {
            let path = path?;
            let (dir, _) = dir::open_parent(&reference(&path, &entry.target)).ok()?;
            let names = self.found.get(&meta::stat(&dir).ok()?.id)?;
            let left = names.iter().find(|left| {
                prune_names::aside_for(left.as_bytes()).is_some()
                    && meta::stat_at(&dir, left).is_ok_and(|stat| stat.id.ino == id.ino)
            })?;
            Some(sibling(&path, left.as_bytes()))
        };
        rest(entry.target.path(), entry.target.id()).or_else(|| rest(entry.destination(), copy?))
    }

    /// Returns the paths of those of these names that are there, in directories that no run is
    /// using.
    fn unused(&self, names: &HashMap<Identity, Vec<CString>>) -> Vec<Vec<u8>> {
        let mut left = Vec::new();
        for (id, names) in names.iter().filter(|(_, names)| !names.is_empty()) {
            let Some(path) = self.paths.get(id) else {
                continue;
            };
            let Ok(dir) = dirfd::open_root(path) else {
                continue;
            };
            let is_there = |name: &&CString| meta::stat_at(&dir, name).is_ok();
            let slash = path.strip_suffix(b"/").unwrap_or(path);
            let names = names.iter().filter(is_there);
            let names = names.map(|name| [slash, b"/", name.as_bytes()].concat());
            let names: Vec<Vec<u8>> = names.collect();
            if !names.is_empty() && claim::alone(&dir).is_some() {
                left.extend(names);
            }
        }
        left
    }

    /// Says that this one was named.
    pub(super) fn speak_for(&mut self, path: Vec<u8>) {
        self.spoken_for.insert(path);
    }

    /// Removes files under temporary names that have the content of the step's file, which is in
    /// its place: that is `kept`, or `None` in a dry run that would make it. Files that a move set
    /// aside stay: their metadata may be nowhere else. Returns the names that went, or would.
    pub(super) fn remove_equal(
        &mut self,
        entry: &JournalStep,
        mut kept: Option<&mut OpenFile>,
        mode: RunMode,
        temps: &Temps,
        pace: ReadPace<'_>,
    ) -> Vec<Vec<u8>> {
        let goes = |dir: &OwnedFd, name: &CString, _: &[u8]| {
            let Some(found) = equal(entry, kept.as_deref_mut(), dir, name, pace) else {
                return false;
            };
            match (mode, kept.as_deref_mut()) {
                (RunMode::Execute, Some(kept)) => remove(kept, &found, temps).is_ok(),
                (RunMode::Execute, None) => false,
                (RunMode::DryRun, _) => dirfd::may_change(dir).is_ok(),
            }
        };
        remove_where(&mut self.found, &self.paths, &mut self.gone, entry, goes)
    }
}

/// Removes names from the step's directories, where no run is at work: those that `goes` removes,
/// which it gets with its directory and path. Returns the paths of those that went, or would.
fn remove_where(
    names: &mut HashMap<Identity, Vec<CString>>,
    paths: &HashMap<Identity, Vec<u8>>,
    gone: &mut HashSet<Vec<u8>>,
    entry: &JournalStep,
    mut goes: impl FnMut(&OwnedFd, &CString, &[u8]) -> bool,
) -> Vec<Vec<u8>> {
    let mut went = Vec::new();
    for (dir, _) in directories(entry) {
        let Ok(id) = meta::stat(&dir).map(|stat| stat.id) else {
            continue;
        };
        let Some(names) = names.get_mut(&id).filter(|names| !names.is_empty()) else {
            continue;
        };
        let Some((above, _claim)) = paths.get(&id).zip(claim::alone(&dir)) else {
            continue;
        };
        let path = |name: &CString| [above, b"/".as_slice(), name.as_bytes()].concat();
        let removed = names.extract_if(.., |name| goes(&dir, name, &path(name)));
        went.extend(removed.map(|name| path(&name)));
    }
    gone.extend(went.iter().cloned());
    went
}

/// Returns the text of a symbolic link.
pub(super) fn link_text(dir: &OwnedFd, name: &CStr) -> Option<Vec<u8>> {
    dirfd::open_link(dir, name).and_then(dirfd::link_text).ok()
}

/// Removes a name; in a dry run only proves that it could be. True if it went, or would.
fn remove_name(dir: &OwnedFd, name: &CStr, mode: RunMode) -> bool {
    match mode {
        RunMode::Execute => entry::unlink(dir, name).is_ok(),
        RunMode::DryRun => dirfd::may_change(dir).is_ok(),
    }
}

/// Means by which copies in the making are removed.
pub(super) struct StageMeans<'u> {
    pub(super) mode: RunMode,
    pub(super) temps: &'u Temps,
    pub(super) pace: ReadPace<'u>,
}

/// Returns true if a name leads to a file with all of the content of the step's.
fn is_all_of(entry: &JournalStep, dir: &OwnedFd, name: &CString, pace: ReadPace<'_>) -> bool {
    let held = OpenFile::find(dir, name, b"");
    held.is_ok_and(|held| has_content(entry, &held, pace).is_ok_and(|has| has))
}

/// Returns the file that was left under a temporary name if it is the kept one, or equals it: the
/// one that is there, or that a dry run would make. Neither of two files is open for writing then.
fn equal(
    entry: &JournalStep,
    kept: Option<&mut OpenFile>,
    dir: &OwnedFd,
    name: &CString,
    pace: ReadPace<'_>,
) -> Option<OpenFile> {
    if prune_names::aside_for(name.as_bytes()).is_some() {
        return None;
    }
    let mut found = OpenFile::find(dir, name, name.as_bytes()).ok()?;
    let same = match kept {
        Some(kept) if found.stat.id == kept.stat.id => Ok(true),
        Some(kept) => check_distinct(kept, &found)
            .and_then(|()| kept.watch())
            .and_then(|_| found.watch())
            .and_then(|_| {
                let size = kept.stat.stamp.size;
                let unwritten = || found.check_lease();
                let pace = pace.watching(kept);
                compare_while(&kept.file, &found.file, size, pace, unwritten)
            })
            .map(|_| true),
        None => found.watch().and_then(|_| has_content(entry, &found, pace)),
    };
    same.is_ok_and(|same| same).then_some(found)
}

fn remove(kept: &mut OpenFile, found: &OpenFile, temps: &Temps) -> Result<(), Skip> {
    if found.stat.id == kept.stat.id {
        return temp::delete_extra_link(kept, found);
    }
    kept.settle()?;
    temp::delete(kept, found, temps)
}

/// Returns the directories that a step has names in.
fn directories(entry: &JournalStep) -> impl Iterator<Item = (OwnedFd, CString)> {
    paths(entry).filter_map(|path| dir::open_parent(&reference(&path, &entry.target)).ok())
}

/// Returns the names that a step changed.
fn paths(entry: &JournalStep) -> impl Iterator<Item = Vec<u8>> {
    let places = [entry.target.path(), entry.destination()];
    places.into_iter().flatten()
}
