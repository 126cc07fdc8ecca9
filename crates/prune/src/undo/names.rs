//! Files made again with the content and the metadata that a step recorded, and other names of files
//! that come back: those that an earlier undo gave back, and those that no step took, as the run was
//! over before. One inode stays one.

use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::os::fd::OwnedFd;

use bc_edit::entry;
use bc_edit::metadata::FileMetadata;
use bc_edit::names::prune as prune_names;
use bc_edit::names::prune::Mark;
use bc_fs::dirfd;
use bc_fs::meta;
use bc_fs::path::{sibling, split};
use bc_walk::{FileKind, Identity};

use super::{NamedEntry, Undo, reference};
use crate::act::moving::copy::{Blocks, CopiedFile, ProvenCopy, copy, digest};
use crate::act::temp;
use crate::check::compare::compare_while;
use crate::check::dir;
use crate::check::meta::difference;
use crate::check::meta::entitled;
use crate::check::open_file::OpenFile;
use crate::journal::{Index, JournalStep};
use crate::leftovers;
use crate::options::RunMode;
use crate::skip::Skip;

/// Places of names that no step took.
#[derive(Default)]
pub(super) struct StrayNames {
    /// Start of each run of the journal.
    pub(super) started_ns: Vec<i64>,
    /// True if the journal has a file with several names at all.
    pub(super) linked: bool,
    /// The directories that were emptied, with the number of the run.
    emptied: Vec<(u64, Vec<u8>)>,
    /// Directories whose files are in `found`.
    listed: HashSet<Vec<u8>>,
    /// Files by their number; for which runs.
    found: HashMap<u64, Vec<Vec<u8>>>,
    runs: HashSet<u64>,
}

/// Knowledge that a file has the content of the step's.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ContentProof {
    Proven,
    Unproven,
}

/// Another name of a step's file.
pub(super) enum Another {
    /// It leads to the file, or would by then: with its path.
    There(NamedEntry, Vec<u8>),
    /// It is the first one of a file that a dry run would have made: its path.
    Foreseen(Vec<u8>),
}

/// Copy as which a file is made again.
pub(super) struct PlannedCopy {
    /// The kept file, if the content comes from that.
    kept: Option<OpenFile>,
    pub(super) metadata: FileMetadata,
    /// Parts of the recorded metadata that it is not entitled to.
    pub(super) left_out: Vec<String>,
}

/// Reason why nothing is lost with a name that a file loses.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum SpareName {
    /// The file is a link, or its content is known to be that of the file that comes back.
    Proven,
    /// The file has another name.
    OneOfSeveral,
}

impl SpareName {
    /// Proves right before the name goes that the reason still holds, for a file with unchanged
    /// content; `instead` is its [replacement](Undo::replacement).
    pub(super) fn check(self, held: &OpenFile, instead: Option<&OpenFile>) -> Result<(), Skip> {
        match self {
            SpareName::Proven => instead.map_or(Ok(()), OpenFile::check_content),
            SpareName::OneOfSeveral if meta::stat_now(&held.file, c"")?.nlink > 1 => Ok(()),
            SpareName::OneOfSeveral => Err(Skip::Changed),
        }
    }
}

impl StrayNames {
    pub(super) fn of(index: &Index) -> StrayNames {
        StrayNames {
            started_ns: index.started_ns.clone(),
            linked: index.linked,
            emptied: match index.linked {
                true => index.emptied.clone(),
                false => Vec::new(),
            },
            ..StrayNames::default()
        }
    }

    /// Names of regular files with this number, in this directory and those that the run emptied.
    fn with_number(&mut self, run: u64, dir: &[u8], ino: u64) -> Vec<Vec<u8>> {
        self.list(dir);
        if self.runs.insert(run) {
            let emptied = std::mem::take(&mut self.emptied);
            for (_, dir) in emptied.iter().filter(|(of, _)| *of == run) {
                self.list(dir);
            }
            self.emptied = emptied;
        }
        self.found.get(&ino).cloned().unwrap_or_default()
    }

    /// Records a name that a file with this number got since its directory was listed.
    fn add(&mut self, ino: u64, path: &[u8]) {
        if self.linked {
            let names = self.found.entry(ino).or_default();
            names.push(path.to_vec());
        }
    }

    fn list(&mut self, path: &[u8]) {
        if !self.listed.insert(path.to_vec()) {
            return;
        }
        // A recorded path is the kernel's own.
        let below = path.strip_prefix(b"/").unwrap_or(path);
        let Ok(dir) = dirfd::open_root(b"/").and_then(|root| dirfd::open_below(root, below)) else {
            return;
        };
        for entry in leftovers::entries(&dir).into_iter().flatten() {
            let name = entry.file_name();
            if prune_names::is_ours(name.to_bytes()) {
                continue;
            }
            if let Ok(stat) = meta::stat_at(&dir, name)
                && stat.kind() == FileKind::File
            {
                let whole = [path, b"/".as_slice(), name.to_bytes()].concat();
                self.found.entry(stat.id.ino).or_default().push(whole);
            }
        }
    }
}

impl Undo<'_> {
    /// Returns another name of the step's file: what comes back is then one more name of that file,
    /// and else a file of its own.
    pub(super) fn another(&mut self, entry: &JournalStep) -> Option<Another> {
        if let Some((id, path)) = self.other_name(entry)
            && let Ok(found) = self.find(&path, &entry.target)
            && found.stat.as_ref().is_some_and(|stat| stat.id == id)
        {
            return Some(Another::There(found, path));
        }
        let first = self.overlay.first(&self.original(entry));
        first.cloned().map(Another::Foreseen)
    }

    /// Records that the step's file itself has its name again.
    pub(super) fn came_back(&mut self, entry: &JournalStep, path: &[u8]) {
        if let Ok(Some(stat)) = self.find(path, &entry.target).map(|found| found.stat) {
            self.names.add(stat.id.ino, path);
        }
        self.remember(entry, path, ContentProof::Proven);
    }

    /// A name of the step's file: one that was given back, or that never went.
    pub(super) fn other_name(&mut self, entry: &JournalStep) -> Option<(Identity, Vec<u8>)> {
        let restored = self.restored.get(&self.original(entry));
        if restored.is_some() || entry.target.nlink() < 2 {
            return restored.cloned();
        }
        let path = entry.target.path()?;
        let ino = entry.target.id().ino;
        let mut names = self.names.with_number(self.run, split(&path).0, ino);
        names.extend(entry.other());
        let is_it = |path: &Vec<u8>| {
            let held = self.held(entry, path)?;
            let (before, now) = (entry.target.mark(), Mark::of(&held.file, held.stat.id));
            // A number alone may be another file's by now, if it was given up.
            let same =
                now.proves_mounted(&before) || before.born_ns.is_none() && now.id == before.id;
            (same && self.is_recorded(entry, &held).is_ok()).then_some(held.stat.id)
        };
        let found = names
            .iter()
            .find_map(|path| Some((is_it(path)?, path.clone())))?;
        self.restored.insert(self.original(entry), found.clone());
        Some(found)
    }

    /// Records a file that is in its place, for its other names: it is the step's file, or the one
    /// that undo makes of it.
    pub(super) fn remember(&mut self, entry: &JournalStep, path: &[u8], content: ContentProof) {
        let original = self.original(entry);
        if !self.names.linked
            || entry.tree_action().is_some()
            || self.restored.contains_key(&original)
        {
            return;
        }
        let Some(held) = self.held(entry, path) else {
            return;
        };
        let (Some(before), Ok(now)) = (entry.target.metadata(), held.metadata()) else {
            return;
        };
        let mark = Mark::of(&held.file, held.stat.id);
        let alike = before.mtime_ns == now.mtime_ns && difference(&before, &now).is_none();
        if (alike || mark.proves_mounted(&entry.target.mark()))
            && (content == ContentProof::Proven || self.is_recorded(entry, &held).is_ok())
        {
            let found = (held.stat.id, path.to_vec());
            self.restored.insert(original, found);
        }
    }

    /// The regular file of this name, or that would have it by then if it is there.
    pub(super) fn held(&self, entry: &JournalStep, path: &[u8]) -> Option<OpenFile> {
        if self.overlay.is_made(path) {
            return None;
        }
        let now = self.overlay.now(path)?;
        let (dir, name) = dir::open_parent(&reference(&now, &entry.target)).ok()?;
        OpenFile::find(&dir, &name, path).ok()
    }
}

impl Undo<'_> {
    /// Makes the file that the entry records, under a temporary name in `dir`: a
    /// [copy](Undo::planned_copy) or, where [another name](Undo::another) of the same file is there,
    /// one more name of that.
    pub(super) fn make(
        &mut self,
        entry: &JournalStep,
        dir: &OwnedFd,
        there: Option<&OpenFile>,
    ) -> Result<(CString, Identity, Vec<String>), Skip> {
        if let Some(Another::There(other, _)) = self.another(entry)
            && let Some(id) = other.stat.as_ref().map(|stat| stat.id)
            && let Some(from) = &other.dir
            && let Ok(temp) = self
                .temps
                .name(|temp| entry::link(from, &other.name, dir, temp))
        {
            let made = meta::stat_at(dir, &temp)?;
            if made.id == id {
                return Ok((temp, id, Vec::new()));
            }
            // The other name was given to another file just before the link: that has its own name.
            if made.nlink > 1 && temp::withdraw(dir, &temp, made.id)? {
                return Err(Skip::Changed);
            }
            let path = entry.target.path().unwrap_or_default();
            return Err(Skip::Displaced(sibling(&path, temp.as_bytes())));
        }
        let planned = self.planned_copy(entry, there)?;
        let source = planned.kept.as_ref().or(there).ok_or(Skip::Gone)?;
        let made = self.copy_of(entry, source, &planned.metadata, dir)?;
        // From here on it is not merely a copy in the making.
        let renamed = self
            .temps
            .name(|temp| entry::rename_new(dir, &made.name, dir, temp));
        if renamed.is_err() {
            let _ = temp::withdraw(dir, &made.name, made.id);
        }
        let lost = [made.refused, planned.left_out].concat();
        Ok((renamed?, made.id, lost))
    }

    /// Returns the copy as which the entry's file is made again: of the file that is `there`, or else
    /// of the kept one, with the recorded metadata.
    pub(super) fn planned_copy(
        &self,
        entry: &JournalStep,
        there: Option<&OpenFile>,
    ) -> Result<PlannedCopy, Skip> {
        let metadata = entry.target.metadata().ok_or(Skip::Changed)?;
        let there = there.filter(|held| held.stat.kind() == FileKind::File);
        let kept = match there.is_some() || self.foresees_kept(entry) {
            true => None,
            false => Some(self.kept_file(entry)?),
        };
        let (metadata, left_out) = match kept.as_ref().or(there) {
            Some(source) => {
                self.prove_source(entry, source)?;
                entitled(metadata, &source.stat, None)
            }
            // A dry run would have made it by then.
            None => (metadata, Vec::new()),
        };
        Ok(PlannedCopy {
            kept,
            metadata,
            left_out,
        })
    }

    fn copy_of(
        &self,
        entry: &JournalStep,
        source: &OpenFile,
        metadata: &FileMetadata,
        dir: &OwnedFd,
    ) -> Result<ProvenCopy, Skip> {
        let made = copy(
            CopiedFile {
                file: &source.file,
                size: entry.target.stamp().size,
                blocks: Blocks::Own,
                original: None,
            },
            metadata,
            Some(&entry.target.flags()),
            dir,
            &self.temps,
            self.pace,
        )?;
        if Some(made.digest) != entry.digest() {
            let _ = temp::withdraw(dir, &made.name, made.id);
            return Err(of_kept(entry, Skip::KeptFileChanged));
        }
        Ok(made)
    }

    /// Proves that a file has the content that a copy of it is to have.
    pub(super) fn prove_source(&self, entry: &JournalStep, held: &OpenFile) -> Result<(), Skip> {
        let size = entry.target.stamp().size;
        match digest(&held.file, size, self.pace.watching(held)) {
            Ok(found) if Some(found) == entry.digest() => Ok(()),
            Ok(_) => Err(of_kept(entry, Skip::KeptFileChanged)),
            Err(why) => Err(of_kept(entry, why)),
        }
    }

    /// Proves that a file may lose the name that the step left it with: it has another one by then,
    /// or the content of the step's file, and no process has it open for writing. One that lost its
    /// other names may be the only one with what was written to it since.
    pub(super) fn prove_spare(
        &self,
        entry: &JournalStep,
        held: &mut OpenFile,
    ) -> Result<SpareName, Skip> {
        if held.stat.kind() == FileKind::Symlink {
            return Ok(SpareName::Proven);
        }
        if self.names_by_then(held.stat.id, held.stat.nlink) > 1 {
            // Of two runs that take one of the last two names each, either would find the other's.
            held.lock(self.mode)?;
            return Ok(SpareName::OneOfSeveral);
        }
        held.watch()?;
        self.prove_source(entry, held)?;
        Ok(SpareName::Proven)
    }

    /// Proves that the file with a temporary name, which is to have the name of this one, has all of
    /// its content, on the disk, where that goes with the name; it is watched until then.
    pub(super) fn replacement(
        &self,
        there: &OpenFile,
        temp: &CString,
        spare: SpareName,
    ) -> Result<Option<OpenFile>, Skip> {
        if spare != SpareName::Proven || there.stat.kind() != FileKind::File {
            return Ok(None);
        }
        let mut instead = OpenFile::find(&there.dir, temp, &there.path)?;
        instead.watch()?;
        let size = there.stat.stamp.size;
        let pace = self.pace.watching(there);
        let unwritten = || instead.check_lease();
        compare_while(&there.file, &instead.file, size, pace, unwritten)?;
        if self.mode == RunMode::Execute {
            instead.settle()?;
        }
        Ok(Some(instead))
    }

    /// The file that was kept by the step.
    pub(super) fn kept_file(&self, entry: &JournalStep) -> Result<OpenFile, Skip> {
        let path = entry.kept_file.path().ok_or(Skip::Gone)?;
        let found = self.find(&path, &entry.kept_file);
        let is_file = |held: OpenFile| match held.stat.kind() {
            FileKind::File => Ok(held),
            _ => Err(Skip::NotRegular),
        };
        found
            .and_then(|found| found.hold(&path))
            .and_then(is_file)
            .map_err(|why| of_kept(entry, why))
    }

    /// Returns the file that a move had found as its copy, if that is there and has the content.
    pub(super) fn found_copy(&self, entry: &JournalStep) -> Option<OpenFile> {
        let to = entry.destination()?;
        let held = self.find(&to, &entry.target).ok()?.hold(&to).ok()?;
        self.is_recorded(entry, &held).is_ok().then_some(held)
    }

    /// Returns the identity of the regular file that the path of the kept one leads to by now.
    pub(super) fn kept_now(&self, entry: &JournalStep) -> Option<Identity> {
        let found = self.find(&entry.kept_file.path()?, &entry.kept_file).ok()?;
        let stat = found.stat.filter(|stat| stat.kind() == FileKind::File)?;
        Some(stat.id)
    }
}

/// Converts a failure into one of the kept file, with its path.
pub(super) fn of_kept(entry: &JournalStep, why: Skip) -> Skip {
    match (entry.kept_file.path(), why) {
        (Some(path), Skip::Gone) => Skip::Missing(path),
        (Some(path), why @ Skip::NotRegular) => why.of(&path),
        (Some(path), why) => Skip::of_kept_file(why).of(&path),
        (None, why) => Skip::of_kept_file(why),
    }
}
