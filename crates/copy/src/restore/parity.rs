//! Repair of what no copy holds: contents computed from parity, each in a file without a name, which
//! is then a copy like any other: compared with the manifest on the way to its stage.

use std::collections::{HashMap, HashSet};
use std::os::fd::AsFd;
use std::path::Path;

use bc_fs::path::split;
use bc_parity::{ContentPlaces, LostContent, ParityRestore, RebuildMeans, Rebuilt, RebuiltContent};
use bc_walk::job::{Error, ErrorKind};
use rustix::io::Errno;

use super::make::RepairWorker;
use super::needs::{NameGroup, RenamedPaths};
use super::options::{RestoreEvent, RestoreOptions};
use super::reports::PathEvent;
use super::sources::Candidate;
use super::{Reach, Restore};
use crate::meta::stat;
use crate::sources::shown_below;
use crate::stage::put::{NotPut, named_beside, put_new};
use crate::stage::{self, StageUse};

/// A parity directory, and what verify has found of renames.
pub(super) struct ParitySource {
    restore: ParityRestore,
    renamed: RenamedPaths,
    memory: Option<u64>,
}

impl ParitySource {
    /// Opens the parity directory that is asked for.
    ///
    /// # Errors
    /// If there is none, or it cannot be relied on.
    pub(super) fn open(options: &RestoreOptions<'_>) -> Result<Option<ParitySource>, Error> {
        let Some(dir) = &options.parity else {
            return Ok(None);
        };
        match ParityRestore::open(dir, options.manifest)? {
            None => {
                let missing = std::io::Error::from(Errno::NOENT);
                Err(Error::io(dir, "open directory", &missing))
            }
            Some(restore) => Ok(Some(ParitySource {
                restore,
                renamed: RenamedPaths::default(),
                memory: options.memory,
            })),
        }
    }

    pub(super) fn renamed(self, renamed: RenamedPaths) -> ParitySource {
        ParitySource { renamed, ..self }
    }
}

impl Restore<'_> {
    /// Repairs the groups that nothing has repaired yet from parity.
    pub(super) fn repair_by_parity(
        &self,
        groups: &[NameGroup],
        workers: usize,
        mut parity: ParitySource,
    ) -> Result<(), Error> {
        let mut lost: Vec<LostContent> = Vec::new();
        let mut groups_of: Vec<Vec<&NameGroup>> = Vec::new();
        let mut numbers: HashMap<LostContent, usize> = HashMap::new();
        for group in groups {
            let Some(content) = self.lost_content(group) else {
                continue;
            };
            let number = *numbers.entry(content).or_insert_with(|| {
                lost.push(content);
                groups_of.push(Vec::new());
                lost.len() - 1
            });
            groups_of[number].push(group);
        }
        if lost.is_empty() {
            return Ok(());
        }
        let bytes = lost.iter().map(|lost| lost.size).sum();
        self.begins("parity", lost.len() as u64, bytes);
        let needs = &self.plan.needs;
        let paths: HashSet<&[u8]> = needs.iter().map(|need| &need.path[..]).collect();
        let renamed = parity.renamed;
        let places = ContentPlaces {
            top: self.plan.top.fd.as_fd(),
            renamed: &|path| renamed.now(path),
            is_lost: &|path| paths.contains(path),
        };
        let means = RebuildMeans {
            workers,
            memory: parity.memory,
            cancel: self.means.cancel,
            rate: self.means.rate.clone(),
        };
        let each = &mut |number: usize, rebuilt| {
            for group in &groups_of[number] {
                self.put_rebuilt(group, &rebuilt)?;
            }
            Ok(())
        };
        let done = parity.restore.rebuild(&lost, places, &means, each);
        for error in &parity.restore.unreadable {
            let path = error.path().unwrap_or(Path::new(""));
            (self.means.observer)(RestoreEvent::Warning {
                path: path.as_os_str().as_encoded_bytes(),
                operation: "read",
                why: error.reason(),
            });
        }
        match done {
            Err(error) if error.kind() == ErrorKind::Cancelled => Ok(()),
            done => done,
        }
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
        Some(LostContent { digest, size })
    }

    fn put_rebuilt(&self, group: &NameGroup, rebuilt: &Rebuilt) -> Result<(), Error> {
        let mut worker = RepairWorker::new(self);
        match rebuilt {
            Rebuilt::Whole(content) => {
                let candidate = candidate(content)?;
                worker.repair_from(group, &candidate);
            }
            Rebuilt::Short { blocks, partial } => {
                let candidate = candidate(partial)?;
                for &number in group
                    .needs
                    .iter()
                    .filter(|number| !self.is_settled(**number))
                {
                    if self.plan.partial {
                        worker.put_partial(number, &candidate);
                    }
                    let unit = if *blocks == 1 { "block" } else { "blocks" };
                    let why =
                        format!("no copy holds it, and its parity is short of {blocks} {unit}");
                    self.missing(number, why);
                }
            }
            // The end says so.
            _ => {}
        }
        Ok(())
    }
}

/// Returns a computed content as a copy.
fn candidate(content: &RebuiltContent) -> Result<Candidate, Error> {
    let failed =
        |op: &'static str| move |error: std::io::Error| Error::io(&content.from, op, &error);
    let file = content.file.try_clone().map_err(failed("dup"))?;
    let stat = stat(&file).map_err(|errno| failed("stat")(errno.into()))?;
    let shown = content.from.as_os_str().as_encoded_bytes().to_vec();
    Ok(Candidate { file, stat, shown })
}

impl RepairWorker<'_, '_> {
    /// Puts a part of a file beside it.
    fn put_partial(&mut self, number: usize, candidate: &Candidate) {
        let restore = self.restore;
        let need = &restore.plan.needs[number];
        let (above, last) = split(&need.path);
        let digest = need
            .digest()
            .map(|digest| digest.to_string())
            .unwrap_or_default();
        let ending = format!(".partial-{}", &digest[..digest.len().min(8)]);
        if restore.plan.dry_run {
            let part = shown_below(above, &named_beside(last, &ending));
            restore.add(number, PathEvent::Partial(part));
            return;
        }
        let put = (|| {
            let (dir, name) = restore.stage_of(&need.path)?;
            let failed = |op, errno| bc_walk::Error::new(restore.shown(&need.path), op, errno);
            let stage = stage::open(&dir, name, StageUse::Fresh)
                .map_err(|_| failed("create", Errno::EXIST))?;
            restore.means.stages.made(&need.path, &stage.file);
            // What its digest is does not matter: it is not that of the whole.
            if self.bytes(need, &stage, candidate).is_err() {
                stage.remove(&dir);
                return Ok(None);
            }
            let stage = stage.close(&dir).map_err(|errno| failed("close", errno))?;
            let name = named_beside(last, &ending);
            let given = put_new(dir.fd.as_fd(), &stage, &name);
            if given.is_err() {
                stage::remove(dir.fd.as_fd(), &stage);
            }
            match given {
                // That of an earlier run, most likely.
                Err(NotPut::Changed) => Ok(None),
                Err(NotPut::System(op, errno)) => Err(failed(op, errno)),
                Err(_) => Ok(None),
                Ok(()) => Ok(Some(shown_below(above, &name))),
            }
        })();
        match put {
            Ok(Some(part)) => restore.add(number, PathEvent::Partial(part)),
            Ok(None) => {}
            Err(error) => restore.unreadable(Some(number), &error),
        }
    }
}
