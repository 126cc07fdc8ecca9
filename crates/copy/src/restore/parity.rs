//! Repair of what no copy holds: contents computed from parity, which are then copies like any other,
//! compared with the manifest on the way to their stages. Nothing is written in between.

use std::collections::{HashMap, HashSet};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use bc_digest::Digest;
use bc_fs::meta::{FileKind, FileStat};
use bc_fs::path::split;
use bc_integrity::ManifestFile;
use bc_manifest::integrity::{Entry, Kind};
use bc_parity::{ContentPlaces, LostContent, ParityRestore, RebuildMeans, Rebuilt, RemovedContent};
use bc_walk::job::{Error, ErrorKind, path_of};
use rustix::io::Errno;

use super::make::{NotRepaired, RepairWorker};
use super::needs::{NameGroup, Need, RenamedPaths, SeenFile};
use super::options::{Loss, ParityPlace, RestoreEvent, RestoreOptions};
use super::reports::PathEvent;
use super::sources::Candidate;
use super::{Reach, Restore};
use crate::sources::shown_below;
use crate::stage::put::{NotPut, named_beside, put_new};
use crate::stage::{self, StageUse};

/// Parity of the tree: opened at once if the user named it, else once something is left that no copy
/// holds.
pub(super) enum ParitySource<'a> {
    None,
    /// A directory that may be there.
    Beside(&'a Path),
    Open(ParityRestore<'a>),
}

impl<'a> ParitySource<'a> {
    /// Opens the parity directory that is asked for by name.
    ///
    /// # Errors
    /// If there is none, or it cannot be relied on.
    pub(super) fn open(options: &'a RestoreOptions<'_>) -> Result<ParitySource<'a>, Error> {
        let is_needed = options.removed.is_some();
        let dir = match &options.parity {
            None if is_needed => {
                let text = "removed files are known by parity alone, and there is none";
                return Err(Error::usage(text));
            }
            None => return Ok(ParitySource::None),
            Some(ParityPlace::Beside(dir)) if !is_needed => return Ok(ParitySource::Beside(dir)),
            Some(ParityPlace::Named(dir) | ParityPlace::Beside(dir)) => dir,
        };
        let missing = || {
            let missing = std::io::Error::from(Errno::NOENT);
            Error::io(dir, "open directory", &missing)
        };
        let opened = ParityRestore::open(dir, options.manifest)?;
        let opened = opened.ok_or_else(missing)?;
        if opened.is_empty() {
            let text = "has no parity: not mounted?";
            return Err(Error::at(ErrorKind::Refused, dir, text));
        }
        Ok(ParitySource::Open(opened))
    }

    /// Returns the removed files that are asked for as paths to be repaired, of those that have nothing
    /// in their places; and the paths that are asked for by themselves and cannot be: something else is
    /// there, or nothing is, nor was as far as parity knows.
    ///
    /// # Errors
    /// If the parity directory cannot be relied on without a manifest, or memory is short.
    pub(super) fn removed(
        &mut self,
        options: &RestoreOptions<'_>,
        needs: &[Need],
        there: impl Fn(&[u8]) -> Option<FileStat>,
    ) -> Result<Vec<Need>, Error> {
        let is_there = |path: &[u8]| there(path).is_some();
        let (Some(asked), ParitySource::Open(parity)) = (&options.removed, self) else {
            return Ok(Vec::new());
        };
        let is_asked =
            |path: &[u8]| asked.is_empty() || asked.iter().any(|asked| is_at_or_below(path, asked));
        let known: HashSet<&[u8]> = needs.iter().map(|need| &need.path[..]).collect();
        let mut removed = parity.removed(options.memory)?;
        let is_known = |asked: &Path| {
            let mut removed = removed.iter().map(|content| &content.path[..]);
            is_there(asked.as_os_str().as_encoded_bytes())
                || removed.any(|path| is_at_or_below(path, asked))
                || known.iter().any(|path| is_at_or_below(path, asked))
        };
        let unknown = asked.iter().filter(|asked| !is_known(asked)).map(|asked| {
            let path = asked.as_os_str().as_encoded_bytes().to_vec();
            Need {
                held_back: Some(NO_PARITY),
                ..removed_need(Entry::new(path, Kind::File))
            }
        });
        let mut left: Vec<Need> = unknown.collect();
        // A file of its size may be it, brought back before.
        let is_other = |content: &RemovedContent| {
            let is_it =
                |stat: FileStat| stat.kind() == FileKind::File && stat.stamp.size == content.size;
            there(&content.path).is_some_and(|stat| !is_it(stat))
        };
        for content in &removed {
            let is_named = asked
                .iter()
                .any(|asked| asked.as_os_str().as_encoded_bytes() == content.path);
            if is_named && !known.contains(&content.path[..]) && is_other(content) {
                left.push(Need {
                    held_back: Some(TAKEN),
                    ..removed_need(Entry::new(content.path.clone(), Kind::File))
                });
            }
        }
        removed.retain(|content| {
            is_asked(&content.path)
                && !known.contains(&content.path[..])
                && !is_there(&content.path)
        });
        let removed = removed.into_iter().map(|content| {
            let mut entry = Entry::new(content.path, Kind::File);
            entry.digest = Some(content.digest);
            entry.size_alone = Some(content.size);
            removed_need(entry)
        });
        Ok(removed.chain(left).collect())
    }
}

const TAKEN: &str = "something else has its path now, which is left alone";
const NO_PARITY: &str = "parity has no removed file that had this path";

fn is_at_or_below(path: &[u8], dir: &Path) -> bool {
    let below = path.strip_prefix(dir.as_os_str().as_encoded_bytes());
    below.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// Returns a removed file as a path to be repaired.
fn removed_need(entry: Entry) -> Need {
    Need {
        path: entry.path.clone(),
        recorded_at: entry.path.clone(),
        loss: Loss::Removed,
        seen: SeenFile::default(),
        held_back: None,
        entry,
    }
}

/// Contents to be computed, with the groups of names that lost them.
struct LostContents<'g> {
    contents: Vec<LostContent>,
    groups: Vec<Vec<&'g NameGroup>>,
}

impl Restore<'_> {
    /// Repairs the groups that nothing has repaired yet from parity.
    pub(super) fn repair_by_parity(
        &self,
        groups: &[NameGroup],
        workers: usize,
        parity: ParitySource<'_>,
        manifest: &ManifestFile,
        renamed: &RenamedPaths,
    ) -> Result<(), Error> {
        let lost = self.lost_contents(groups);
        if lost.contents.is_empty() {
            return Ok(());
        }
        let mut parity = match parity {
            ParitySource::None => return Ok(()),
            ParitySource::Open(parity) => parity,
            ParitySource::Beside(dir) => match ParityRestore::open(dir, manifest) {
                Ok(None) => return Ok(()),
                Ok(Some(parity)) => parity,
                // It may be another program's, or damaged: copies did what they could.
                Err(error) => {
                    self.warn_of_parity(&error);
                    return Ok(());
                }
            },
        };
        self.outcomes.has_parity.store(true, Relaxed);
        let bytes = lost.contents.iter().map(|lost| lost.size).sum();
        self.begins("parity", lost.contents.len() as u64, bytes);
        let needs = &self.plan.needs;
        let paths: HashSet<&[u8]> = needs.iter().map(|need| &need.path[..]).collect();
        let places = ContentPlaces {
            top: self.plan.top.fd.as_fd(),
            top_path: &path_of(&self.plan.top.path),
            renamed: &|path| renamed.now(path),
            is_lost: &|path| paths.contains(path),
        };
        let means = RebuildMeans {
            workers,
            memory: self.plan.memory,
            dry_run: self.plan.dry_run,
            cancel: self.means.cancel,
            rate: self.means.rate.clone(),
        };
        let each = &mut |number: usize, rebuilt: Rebuilt<'_>| {
            let mut is_it = true;
            for group in &lost.groups[number] {
                is_it &= self.put_rebuilt(group, &rebuilt);
            }
            Ok(is_it)
        };
        let done = parity.rebuild(&lost.contents, places, &means, each);
        for error in &parity.unreadable {
            self.warn_of_parity(error);
        }
        match done {
            Err(error) if error.kind() == ErrorKind::Cancelled => Ok(()),
            done => done,
        }
    }

    fn warn_of_parity(&self, error: &Error) {
        let path = error.path().unwrap_or(Path::new(""));
        (self.means.observer)(RestoreEvent::Warning {
            path: path.as_os_str().as_encoded_bytes(),
            operation: error.operation().unwrap_or("read"),
            why: error.message(),
        });
    }

    fn lost_contents<'g>(&self, groups: &'g [NameGroup]) -> LostContents<'g> {
        let mut lost = LostContents {
            contents: Vec::new(),
            groups: Vec::new(),
        };
        let mut numbers: HashMap<(Digest, u64), usize> = HashMap::new();
        for group in groups {
            let Some(content) = self.lost_content(group) else {
                continue;
            };
            let number = *numbers
                .entry((content.digest, content.size))
                .or_insert(lost.contents.len());
            if number == lost.contents.len() {
                lost.contents.push(content);
                lost.groups.push(Vec::new());
            }
            lost.groups[number].push(group);
        }
        lost
    }

    /// Returns the content of a group that is still to be repaired, if parity may have it.
    fn lost_content(&self, group: &NameGroup) -> Option<LostContent> {
        let open = |number: &&usize| !self.is_settled(**number) && !self.is_left(**number);
        let number = *group.needs.iter().find(open)?;
        let need = &self.plan.needs[number];
        let digest = need
            .digest()
            .filter(|digest| Reach::of(*digest) == Reach::Anywhere)?;
        let size = need.entry.size().filter(|size| *size > 0)?;
        let path = need.path.clone();
        Some(LostContent { digest, size, path })
    }

    /// Repairs the names of a group; returns false if the content is another than the recorded one.
    fn put_rebuilt(&self, group: &NameGroup, rebuilt: &Rebuilt<'_>) -> bool {
        let mut worker = RepairWorker::new(self);
        let open = || {
            let needs = group.needs.iter().copied();
            needs.filter(|number| !self.is_settled(*number) && !self.is_left(*number))
        };
        match rebuilt {
            Rebuilt::Whole(content) => {
                return worker.repair_from(group, &Candidate::computed(content));
            }
            Rebuilt::Foreseen(volume) => {
                worker.foresee_from(group, volume.as_os_str().as_encoded_bytes());
            }
            Rebuilt::Short {
                blocks,
                uncovered,
                partial,
            } => {
                let candidate = Candidate::computed(partial);
                for number in open() {
                    if self.plan.partial && !partial.is_nothing() {
                        worker.put_partial(number, &candidate);
                    }
                    self.missing(number, shortage(*blocks, *uncovered));
                }
            }
            Rebuilt::Failed(error) => {
                for number in open() {
                    let why =
                        format!("no copy holds it, and parity did not bring it back: {error}");
                    self.missing(number, why);
                }
            }
            // The end says so.
            _ => {}
        }
        true
    }
}

/// Returns the reason for which parity does not suffice, in words.
fn shortage(blocks: u64, uncovered: u64) -> String {
    let unit = if blocks == 1 { "block" } else { "blocks" };
    let short = format!("its parity is short of {blocks} {unit}");
    let bytes = format!("{uncovered} bytes of it have no parity that can be read");
    match (blocks, uncovered) {
        (0, _) => format!("no copy holds it, and {bytes}"),
        (_, 0) => format!("no copy holds it, and {short}"),
        _ => format!("no copy holds it, {short}, and {bytes}"),
    }
}

impl RepairWorker<'_, '_> {
    /// Puts a part of a file beside it.
    fn put_partial(&mut self, number: usize, candidate: &Candidate<'_>) {
        let restore = self.restore;
        let need = &restore.plan.needs[number];
        let (above, last) = split(&need.path);
        let digest = need
            .digest()
            .map(|digest| digest.to_string())
            .unwrap_or_default();
        let name = named_beside(
            last,
            &format!(".partial-{}", &digest[..digest.len().min(8)]),
        );
        let part = shown_below(above, &name);
        if restore.plan.dry_run {
            restore.add(number, PathEvent::Partial(part));
            return;
        }
        match self.partial(need, candidate, &name) {
            Ok(()) => restore.add(number, PathEvent::Partial(part)),
            Err(NotRepaired::Failed(error)) => restore.incomplete(number, error),
            // It ends here.
            Err(_) => {}
        }
    }

    fn partial(
        &mut self,
        need: &Need,
        candidate: &Candidate<'_>,
        name: &[u8],
    ) -> Result<(), NotRepaired> {
        let restore = self.restore;
        let (dir, stage_name) = restore.stage_of(&need.path)?;
        let shown = restore.shown(&shown_below(split(&need.path).0, name));
        let failed = |op, errno| bc_walk::Error::new(&shown[..], op, errno);
        let stage = stage::open(&dir, stage_name, StageUse::Fresh)
            .map_err(|_| failed("create", Errno::EXIST))?;
        restore.means.stages.made(&need.path, &stage.file);
        // Its digest does not matter: it is not that of the whole.
        if let Err(stop) = self.bytes(need, &stage, candidate) {
            stage.remove(&dir);
            return Err(stop);
        }
        let stage = stage.close(&dir).map_err(|errno| failed("close", errno))?;
        let put = put_new(dir.fd.as_fd(), &stage, name);
        if put.is_err() {
            stage::remove(dir.fd.as_fd(), &stage);
        }
        put.map_err(|why| match why {
            NotPut::System(op, errno) => failed(op, errno).into(),
            // That of an earlier run, most likely.
            _ => failed("rename", Errno::EXIST).into(),
        })
    }
}
