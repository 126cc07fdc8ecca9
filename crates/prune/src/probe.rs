//! The question that only the file system can answer: does a change in one directory happen in a
//! reference? An empty file with a name that never was is made in the directory, looked for in the
//! reference and removed again. A lookup cannot be answered from memory: no process asked for that
//! name before.
//!
//! Asked only where looking at the two sides leaves it open, once for a
//! directory, and right before a step that changes it anyway.

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};

use bc_edit::content;
use bc_edit::entry;
use bc_edit::metadata::{Subject, times_of};
use bc_fs::call::FailedCall;
use bc_fs::dirfd;
use bc_fs::meta;
use bc_fs::path::{sibling, split};
use bc_walk::FileStat;
use rustix::io::Errno;

use super::open_file::OpenFile;
use super::options::RunMode;
use super::protect::Open;
use super::skip::Skip;
use super::state::Run;
use super::step::{Action, PruneEvent, StepKind};

impl Run<'_> {
    /// Proves right before a file is changed that neither it nor its directory is a reference's.
    pub(super) fn keep_off(&mut self, held: &OpenFile) -> Result<(), Skip> {
        match self.places.check(held)? {
            Open::No => Ok(()),
            Open::Yes | Open::Union(_) if self.options.mode == RunMode::DryRun => {
                self.unasked(&held.path);
                Ok(())
            }
            Open::Union(at) => self.ask(&at, held, false),
            Open::Yes => {
                let mut files = self.options.references.open_files();
                let named = files.any(|(path, _)| split(path).1 == held.name.as_bytes());
                self.ask(&held.dir, held, named)?;
                // If the file is another's, that says nothing of a file made beside it.
                match self.places.check_union(&held.dir)? {
                    Open::Union(at) => self.ask(&at, held, false),
                    Open::Yes | Open::No => Ok(()),
                }
            }
        }
    }

    /// Finds out if a file made in `at`, the directory of a file or one above it, is visible in a
    /// reference; for the sake of the file's name, if it is `named` by one.
    fn ask(&mut self, at: &OwnedFd, held: &OpenFile, named: bool) -> Result<(), Skip> {
        let id = meta::stat(at)?.id;
        let key = (id, named);
        if let Some(seen) = self.questions.asked.get(&key) {
            return if *seen { Err(Skip::Protected) } else { Ok(()) };
        }
        let name = named.then_some(held.name.as_c_str());
        let places = self.places.elsewhere(at, name)?;
        let above = meta::stat(&held.dir)?.id != id;
        let beside = match dirfd::real_path(at).filter(|_| above) {
            Some(path) => [path.as_slice(), b"/"].concat(),
            None => held.path.clone(),
        };
        let answer = self.probe(at, &beside, &places);
        match answer {
            Ok(()) => drop(self.questions.asked.insert(key, false)),
            Err(Skip::Protected) => drop(self.questions.asked.insert(key, true)),
            Err(_) => {}
        }
        answer
    }

    /// Proves, before anything is made there, that the destination is not a reference's.
    pub(super) fn keep_destination_off(&mut self, kind: &StepKind) -> Result<(), Skip> {
        let StepKind::Move(to) = kind else {
            return Ok(());
        };
        if self.questions.destination {
            return Ok(());
        }
        if let Some(dir) = self.places.open_question()? {
            if self.options.mode == RunMode::DryRun {
                self.unasked(to);
            } else {
                let places = self.places.elsewhere(&dir, None)?;
                self.probe(&dir, to, &places)?;
            }
        }
        self.questions.destination = true;
        Ok(())
    }

    /// Finds out which of the directories of files are the destination's, where looking left
    /// that open; whether one is.
    pub(super) fn find_destination(&mut self) -> bool {
        let Action::Move(given) = &self.options.action else {
            return false;
        };
        let beside = [given.as_slice(), b"/"].concat();
        let mut found = false;
        for (id, at, near) in self.places.take_open() {
            if self.options.mode == RunMode::DryRun {
                self.unasked(given);
                continue;
            }
            let at = [at];
            // Where there is no answer, nothing is moved from.
            if near
                .iter()
                .any(|dir| self.probe(dir, &beside, &at).is_err())
            {
                self.places.is_destination(id);
                found = true;
            }
        }
        found
    }

    fn unasked(&mut self, path: &[u8]) {
        self.event(PruneEvent::ReferenceUndecided(path.to_vec()));
    }

    /// Makes a file in `dir` and proves that it is in none of `places`.
    fn probe(&mut self, dir: &OwnedFd, beside: &[u8], places: &[OwnedFd]) -> Result<(), Skip> {
        let before = meta::raw_stat(dir)?;
        let id = FileStat::from(&before).id;
        // A probe that an earlier run could not remove, this one cannot remove either.
        self.sweep(dir, &id, beside);
        if let Some(errno) = self.questions.stuck.get(&id.dev) {
            return Err(Skip::ReferenceUndecided(*errno));
        }
        let _claim = self.shared.blocked.claim(dir, self.cancel)?;
        let name = self
            .shared
            .temps
            .probe(|name| content::create(dir, name, 0o600).map(drop))?;
        let seen = places.iter().any(|place| is_there(place, &name));
        let stayed = meta::stat_at(dir, &name);
        let removed = entry::unlink(dir, &name);
        if seen {
            // Nothing will be done there, so it need not look as if.
            let _ = Subject::place(dir.as_fd()).set_times(&times_of(&before));
        }
        match (removed, stayed) {
            (Ok(()), Ok(_)) if !seen => Ok(()),
            (Ok(()), Ok(_)) => Err(Skip::Protected),
            // Another process removed it, perhaps before it was looked for.
            (_, Err(failed)) => Err(failed.into()),
            (Err(failed), _) => {
                self.shared.blocked.block(dir);
                let path = sibling(beside, name.as_bytes());
                let errno = failed.errno.raw_os_error();
                self.stuck(dir, &path, errno);
                self.summary.skip(&Skip::Left { path, errno });
                Err(Skip::ReferenceUndecided(errno))
            }
        }
    }

    /// Records that an empty file stays. Reported once for its device, as the next would stay too.
    pub(super) fn stuck(&mut self, dir: &OwnedFd, path: &[u8], errno: i32) {
        let Ok(stat) = meta::stat(dir) else {
            return;
        };
        let dev = stat.id.dev;
        if self.questions.stuck.insert(dev, errno).is_none() {
            self.event(PruneEvent::ProbeLeftBehind(path.to_vec(), errno));
        }
    }
}

/// Also if that cannot be seen.
fn is_there(dir: &OwnedFd, name: &CStr) -> bool {
    !matches!(
        meta::stat_at(dir, name),
        Err(FailedCall {
            errno: Errno::NOENT,
            ..
        })
    )
}
