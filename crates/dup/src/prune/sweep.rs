//! What killed runs left under temporary names: files that a search found among others, and names
//! in the directories that a run comes to.

use std::ffi::CStr;
use std::os::fd::OwnedFd;

use bc_walk::Identity;
use rustix::io::Errno;

use super::guard::{self, Held};
use super::options::Mode;
use super::plan::FileRef;
use super::run::{Run, State};
use super::step::{Outcome, Skip, Step, StepKind};
use super::{claim, delete, leftover};

impl Run<'_> {
    /// A regular file that a killed run left under a temporary name: removed
    /// like a duplicate that is deleted.
    pub(super) fn left_over(&mut self, keeper: &mut Held, file: &FileRef, state: &mut State<'_>) {
        let step = self.step(StepKind::Leftover, file, keeper);
        let outcome = match self.remove_left_over(keeper, file, state) {
            Ok(outcome) => outcome,
            Err(skip) => Outcome::Skipped(skip),
        };
        keeper.release();
        self.tell(&step, &outcome);
    }

    fn remove_left_over(
        &mut self,
        keeper: &mut Held,
        file: &FileRef,
        state: &mut State<'_>,
    ) -> Result<Outcome, Skip> {
        let stamp = state.stamps.get(&file.id).copied().unwrap_or(file.stamp);
        let stamp = if file.id == keeper.stat.id {
            keeper.stat.stamp
        } else {
            stamp
        };
        let mut held = guard::open(file, stamp)?;
        self.keep_off(&held)?;
        keeper.check().map_err(Skip::of_keeper)?;
        let same = held.stat.id == keeper.stat.id;
        let mut freed = 0;
        if !same {
            self.distinct(keeper, &held)?;
            self.watch(keeper).map_err(Skip::of_keeper)?;
            self.watch(&mut held)?;
            self.compare(keeper, &held)?;
            if held.stat.nlink == 1 {
                freed = self.space(&held).own;
            }
        }
        if leftover::is_seen(file.name()) {
            return Err(Skip::InUse);
        }
        let _claim = claim::alone(&held.dir).ok_or(Skip::InUse)?;
        if self.options.mode == Mode::DryRun {
            return Ok(Outcome::Would { freed });
        }
        keeper.settle()?;
        if same {
            delete::extra_link(keeper, &held)?;
        } else {
            keeper.wait_for_tick();
            delete::act(keeper, &held, &mut self.temps)?;
        }
        // One name less moved the ctime.
        let _ = keeper.refresh();
        Ok(Outcome::done(freed))
    }

    /// Removes dead runs' links and unfinished copies from a directory.
    pub(super) fn sweep(&mut self, dir: &OwnedFd, id: &Identity, beside: &[u8]) {
        if !self.swept.insert(*id) || self.places.protect(dir) {
            return;
        }
        let remove = self.options.mode == Mode::Execute;
        let protected = |name: &CStr, id| {
            self.options.references.has_file(id) || self.places.is_elsewhere(dir, name)
        };
        for (name, removed) in leftover::clear(dir, remove, protected) {
            let mut path = beside[..beside.len() - super::plan::split(beside).1.len()].to_vec();
            path.extend_from_slice(name.as_bytes());
            if let Err(failed) = &removed
                && failed.errno != Errno::NOENT
                && leftover::is_probe(&name)
            {
                let errno = failed.errno.raw_os_error();
                self.stuck(dir, &path, errno);
                self.summary.skip(&Skip::Left { path, errno });
                continue;
            }
            let step = Step {
                kind: StepKind::Leftover,
                target: path,
                keeper: Vec::new(),
                reference: false,
                size: 0,
            };
            let outcome = match removed {
                Ok(()) if remove => Outcome::done(0),
                Ok(()) => Outcome::Would { freed: 0 },
                Err(failed) => Outcome::Skipped(failed.into()),
            };
            self.tell(&step, &outcome);
        }
    }
}
