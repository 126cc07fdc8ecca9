//! move: the target goes below a directory, under its own path, by renaming
//! or, to another file system, as a proven and durable copy.

use std::ffi::CString;
use std::os::fd::OwnedFd;

use bc_edit::content;
use bc_edit::entry;
use bc_edit::metadata::FileMetadata;
use bc_edit::names::prune::Mark;
use bc_fs::Escaped;
use bc_fs::call::FailedCall;
use bc_fs::dirfd::{self, Access};
use bc_fs::meta;
use bc_fs::mount::{Shows, basic_traits};
use bc_fs::path::sibling;
use bc_walk::Identity;
use rustix::io::Errno;

use crate::act::moving::aside::{give_up, take_back};
use crate::act::moving::copy::{Blocks, CopiedFile, copy};
use crate::act::moving::existing_target::{self, Acceptable, Arrived};
use crate::act::temp::{Temps, withdraw};
use crate::check::compare::{compare, compare_while};
use crate::check::meta::read_metadata;
use crate::check::open_file::{OpenFile, identity_at, wait_for_clock};
use crate::check::pace::ReadPace;
use crate::journal::record::CopyOrigin;
use crate::leftovers::claim::Blocked;
use crate::options::OnMetadataDiff;
use crate::skip::Skip;

/// One file on its way to a name of an open directory.
pub(crate) struct Move<'a> {
    pub(crate) target: &'a OpenFile,
    pub(crate) to_dir: &'a OwnedFd,
    pub(crate) name: &'a CString,
    /// The path of the new name, for people.
    pub(crate) to: &'a [u8],
    /// Rename where possible, or copy always.
    pub(crate) how: MoveMethod,
    /// FileMetadata for a copy; `lost` lists the parts that were left out before.
    pub(crate) metadata: FileMetadata,
    pub(crate) lost: Vec<String>,
    /// Treatment of a copy without the metadata that its file system does not take.
    pub(crate) on_metadata_diff: OnMetadataDiff,
    /// A copy becomes another name of this one instead, where it can.
    pub(crate) with: Option<&'a Arrived>,
    /// Called with the metadata that a copy was given; returns the part of the file that would be
    /// lost with it: then the file stays as well.
    pub(crate) stays: Option<&'a WouldLose<'a>>,
    /// Conditions for an existing file under the new name to count as the copy; `None`: no file
    /// does.
    pub(crate) acceptable: Option<Acceptable<'a>>,
}

/// Returns the part of a file that a copy with this metadata lacks.
pub(crate) type WouldLose<'a> = dyn Fn(&FileMetadata) -> Option<String> + 'a;

/// The ways to move.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum MoveMethod {
    /// Renames; copies where the destination is on another file system.
    Rename,
    /// Copies.
    Copy,
}

/// Result of a move.
pub(crate) struct Placed {
    pub(crate) id: Identity,
    /// True if it is a copy or a name of one.
    pub(crate) copied: bool,
    /// FileMetadata that it could not be given.
    pub(crate) lost: Vec<String>,
    /// Reason why the file itself did not go although its copy exists: it is not where it was, or
    /// one of the two was changed.
    pub(crate) stays: Option<Skip>,
}

/// State that moves share.
pub(crate) struct MoveMeans<'a> {
    pub(crate) temps: &'a Temps,
    pub(crate) blocked: &'a mut Blocked,
    pub(crate) pace: ReadPace<'a>,
    /// Called with the copy's mark and metadata before it is named or counts as made.
    pub(crate) record: &'a mut dyn FnMut(Mark, CopyOrigin, &FileMetadata) -> Result<(), Skip>,
}

impl<'m> Move<'m> {
    /// Moves it while `proof` holds.
    pub(crate) fn go(
        self,
        means: MoveMeans<'m>,
        proof: impl Fn() -> Result<(), Skip>,
    ) -> Result<Placed, Skip> {
        if self.how == MoveMethod::Copy {
            return self.across(means, proof);
        }
        let (target, to_dir, name) = (self.target, self.to_dir, self.name);
        match entry::rename_new(&target.dir, &target.name, to_dir, name) {
            Ok(()) => {
                let id = settle_renamed(target, to_dir, name, self.to, proof)?;
                Ok(Placed {
                    id,
                    copied: false,
                    lost: Vec::new(),
                    stays: None,
                })
            }
            Err(FailedCall {
                errno: Errno::XDEV, ..
            }) => self.across(means, proof),
            // Said before it is found out that the name cannot be moved there at all.
            Err(FailedCall {
                errno: Errno::EXIST,
                ..
            }) if self.acceptable.is_some() => self.across(means, proof),
            Err(FailedCall {
                errno: Errno::EXIST,
                ..
            }) => Err(Skip::DestinationExists(None)),
            Err(failed) => Err(failed.into()),
        }
    }

    fn across(
        mut self,
        mut means: MoveMeans<'m>,
        proof: impl Fn() -> Result<(), Skip>,
    ) -> Result<Placed, Skip> {
        let (target, to_dir, name) = (self.target, self.to_dir, self.name);
        means.pace = means.pace.watching(target);
        // Both directories: the copy is made in one, the original set aside in
        // the other.
        let _here = means.blocked.claim(&target.dir, means.pace.cancel)?;
        let _there = means.blocked.claim(to_dir, means.pace.cancel)?;
        let own = target.metadata()?;
        let mut arrival = match identity_at(to_dir, name)? {
            Some(_) => self.take_up(&mut means)?,
            None => match self.link(&mut means)? {
                Some(arrival) => arrival,
                None => self.copy(&mut means)?,
            },
        };
        let (id, mark) = (arrival.held.stat.id, arrival.held.mark());
        let stays = self.stays.and_then(|stays| stays(&arrival.metadata));
        if let Some(what) = stays {
            content::sync_dir(to_dir)?;
            let path = Escaped(&target.path);
            self.lost.push(format!("the {what} of {path}, which stays"));
            return Ok(self.placed(id, None));
        }
        // The copy and its name must be on the disk before the original goes.
        let synced = arrival
            .settle()
            .and_then(|()| content::sync_dir(to_dir).map_err(Skip::from));
        let removed = synced.and_then(|()| {
            let replaced = || proof().and_then(|()| arrival.replaces(target));
            give_up(target, &own, mark, means.temps, replaced, || {
                arrival.stands()
            })
        });
        let stays = match removed {
            Ok(()) => Ok(None),
            // A copy that was only found must not be taken away.
            Err(why) if why.took_effect() || arrival.origin == CopyOrigin::Found => Err(why),
            Err(why) => match self.take_back(&mut arrival, &mut means) {
                Ok(()) => Err(why),
                // Another process took the copy away: there is none to report.
                Err(_) if !arrival.is_at(self.to) => Err(why),
                Err(_) => Ok(Some(why)),
            },
        };
        let left = match arrival.drop_stage() {
            Err(Skip::System { errno, .. }) => arrival.left(errno),
            _ => Ok(()),
        };
        let stays = stays?;
        left?;
        Ok(self.placed(id, stays))
    }

    fn placed(self, id: Identity, stays: Option<Skip>) -> Placed {
        Placed {
            id,
            copied: true,
            lost: self.lost,
            stays,
        }
    }

    /// Removes a copy whose original did not go. It is enough that its content is the kept file's
    /// as well, should the original have changed.
    fn take_back(&self, arrival: &mut Arrival, means: &mut MoveMeans<'_>) -> Result<(), Skip> {
        let (target, made) = (self.target, arrival.metadata.clone());
        let copy = arrival.as_left()?;
        let is_spare = || {
            let kept_file = self.acceptable.as_ref().map(|found| found.kept_file);
            if kept_file.is_some_and(|kept_file| kept_file.check().is_ok()) {
                return Ok(());
            }
            let size = copy.stat.stamp.size;
            // It stays if the original was changed, and nobody waits for a rate.
            let pace = ReadPace::new(means.pace.cancel, None);
            compare(&target.file, &copy.file, size, pace).map(drop)
        };
        take_back(copy, &made, target, is_spare, means.temps)
    }

    /// Gives a proven copy the new name.
    fn copy(&mut self, means: &mut MoveMeans<'_>) -> Result<Arrival, Skip> {
        let (target, to_dir) = (self.target, self.to_dir);
        let size = target.stat.stamp.size;
        let copied = copy(
            CopiedFile {
                file: &target.file,
                size,
                blocks: Blocks::Shared,
                original: Some(target.mark()),
            },
            &self.metadata,
            Some(target.flags()?),
            to_dir,
            means.temps,
            means.pace,
        )?;
        let named = match copied.refused.first() {
            Some(refused) if self.on_metadata_diff == OnMetadataDiff::Refuse => {
                Err(Skip::MetadataLost(refused.clone()))
            }
            _ => self
                .check_source()
                .and_then(|()| {
                    let mark = Mark::of(&copied.file, copied.id);
                    (means.record)(mark, CopyOrigin::Made, &copied.made)
                })
                .and_then(|()| OpenFile::of(copied.file, to_dir, self.name, self.to))
                .and_then(|held| Ok((held, self.give_name(&copied.name)?))),
        };
        match named {
            Ok((held, stays)) => {
                self.lost.extend(copied.refused);
                let stage = stays.then_some(copied.name);
                Ok(Arrival::made(held, copied.made, stage))
            }
            Err(why) => {
                let _ = withdraw(to_dir, &copied.name, copied.id);
                Err(why)
            }
        }
    }

    /// Proves that the copied file is the one to be moved. For undo the content is enough: a change
    /// of the file's name meanwhile is noticed when that is to go, and should the name have been
    /// removed, only the copy is left.
    fn check_source(&self) -> Result<(), Skip> {
        match self.acceptable {
            Some(_) => self.target.check(),
            None => self.target.check_content(),
        }
    }

    /// Gives the new name to the file with this temporary one, and returns true if it has both
    /// then: as long as the original is in its place, the temporary one proves to the next run
    /// which file this is a copy of.
    fn give_name(&self, stage: &CString) -> Result<bool, Skip> {
        // Where two numbers may be one file, a second name may show another one.
        let tells = || basic_traits(self.to_dir).is_ok_and(|traits| traits.shows != Shows::Others);
        if self.acceptable.is_some() && tells() {
            match entry::link(self.to_dir, stage, self.to_dir, self.name) {
                Ok(()) => return Ok(true),
                Err(failed) if failed.errno == Errno::EXIST => return Err(taken(failed)),
                // A file system without hard links: such a copy is known by the journal alone.
                Err(_) => {}
            }
        }
        entry::rename_new(self.to_dir, stage, self.to_dir, self.name).map_err(taken)?;
        Ok(false)
    }

    /// Makes the new name another one of the copy that a name of the same file became before.
    /// `None`, and reported as lost, where that is impossible.
    fn link(&mut self, means: &mut MoveMeans<'_>) -> Result<Option<Arrival>, Skip> {
        let Some(with) = self.with else {
            return Ok(None);
        };
        let mut split = |why: &Skip| {
            self.lost.push(apart(why));
            Ok(None)
        };
        // The copy is asked for its content once more: it may have been changed. From there on it
        // is watched until the original has gone.
        let opened = dirfd::open_file(&with.dir, &with.name, Access::Read).map_err(Skip::from);
        let held = opened.and_then(|file| OpenFile::of(file, self.to_dir, self.name, self.to));
        let same = held.and_then(|mut held| {
            if held.stat.id != with.id {
                return Err(Skip::Changed);
            }
            // The answer of gocryptfs to `linkat` has the size of the encrypted file, which the
            // kernel believes until it asks again.
            held.stat = meta::stat_now(&held.file, c"")?;
            wait_for_clock(held.stat.stamp.mtime_ns);
            held.watch()?;
            let size = self.target.stat.stamp.size;
            let unwritten = || held.check_lease();
            compare_while(&self.target.file, &held.file, size, means.pace, unwritten)?;
            let made = read_metadata(&held.file, &held.stat, 0)?;
            Ok((held, made))
        });
        let (mut held, made) = match same {
            Ok(found) => found,
            Err(Skip::Cancelled) => return Err(Skip::Cancelled),
            Err(why) => return split(&why),
        };
        self.target.check()?;
        (means.record)(held.mark(), CopyOrigin::Made, &made)?;
        let original = self.target.mark();
        let staged = means.temps.part_of(original, |stage| {
            entry::link(&with.dir, &with.name, self.to_dir, stage)
        });
        let stage = match staged {
            Ok(stage) => stage,
            Err(failed) => return split(&Skip::from(failed)),
        };
        let named = match identity_at(self.to_dir, &stage) {
            Ok(Some(id)) if id == with.id => held
                .refresh()
                .and_then(|()| held.check_lease())
                .and_then(|()| Ok((held, self.give_name(&stage)?))),
            // The other name was given to another file just before the link.
            Ok(_) => Err(Skip::Changed),
            Err(why) => Err(why),
        };
        match named {
            Ok((held, stays)) => {
                let stage = stays.then_some(stage);
                Ok(Some(Arrival::made(held, made, stage)))
            }
            Err(why) => {
                let _ = withdraw(self.to_dir, &stage, with.id);
                Err(why)
            }
        }
    }

    /// Accepts the existing file under the new name as the copy, if it is.
    fn take_up(&mut self, means: &mut MoveMeans<'_>) -> Result<Arrival, Skip> {
        let Some(acceptable) = &self.acceptable else {
            return Err(Skip::DestinationExists(None));
        };
        let name = self.name.as_c_str();
        let mut found = acceptable.find(
            self.to_dir,
            name,
            self.to,
            self.target,
            &self.metadata,
            means.pace,
        )?;
        self.lost.extend(found.lost.take());
        found.settle()?;
        self.target.check()?;
        let metadata = found.held.metadata()?;
        (means.record)(found.held.mark(), found.origin, &metadata)?;
        Ok(Arrival::stood(found.held, metadata, found.origin))
    }
}

/// Looks at what was renamed from the target's name to this one, at the path `to`; gives it its name
/// back unless it is the target, unchanged, and `proof` holds.
pub(crate) fn settle_renamed(
    target: &OpenFile,
    to_dir: &OwnedFd,
    name: &CString,
    to: &[u8],
    proof: impl Fn() -> Result<(), Skip>,
) -> Result<Identity, Skip> {
    let moved = match identity_at(to_dir, name) {
        Ok(Some(id)) if target.is(id) => target.check_content().and_then(|()| proof()).map(|()| id),
        Ok(_) => Err(Skip::Changed),
        Err(skip) => Err(skip),
    };
    moved.map_err(
        |why| match entry::rename_new(to_dir, name, &target.dir, &target.name) {
            Ok(()) => why,
            Err(_) => Skip::Displaced(to.to_vec()),
        },
    )
}

/// Returns the message about a name that could not be linked to another one of its file.
pub(crate) fn apart(why: &Skip) -> String {
    format!("hard link to its other name: {why}")
}

fn taken(failed: FailedCall) -> Skip {
    if failed.errno == Errno::EXIST {
        Skip::DestinationExists(None)
    } else {
        failed.into()
    }
}

/// The copy under its new name.
pub(crate) struct Arrival {
    pub(crate) held: OpenFile,
    pub(crate) metadata: FileMetadata,
    pub(crate) origin: CopyOrigin,
    /// True if it existed before the move.
    stood: bool,
    /// True if `held` has the state after the copy was given its name.
    settled: bool,
    /// The temporary name that it has as well, until the original has gone: a
    /// second proof of whose copy it is.
    stage: Option<CString>,
}

impl Arrival {
    /// Returns a copy of our own making, which may have the name `stage` too.
    pub(crate) fn made(held: OpenFile, metadata: FileMetadata, stage: Option<CString>) -> Arrival {
        Arrival {
            held,
            metadata,
            origin: CopyOrigin::Made,
            stood: false,
            settled: false,
            stage,
        }
    }

    /// Returns a copy that existed before.
    pub(crate) fn stood(held: OpenFile, metadata: FileMetadata, origin: CopyOrigin) -> Arrival {
        Arrival {
            held,
            metadata,
            origin,
            stood: true,
            settled: true,
            stage: None,
        }
    }

    /// Takes the state that giving it its name left it in.
    pub(crate) fn settle(&mut self) -> Result<(), Skip> {
        if !self.settled {
            self.held.refresh()?;
            self.held.wait_for_tick();
            self.settled = true;
        }
        Ok(())
    }

    /// Proves, now that `target` was set aside, that it is another file than the copy, and that the
    /// copy is unchanged.
    pub(crate) fn replaces(&self, target: &OpenFile) -> Result<(), Skip> {
        if self.stood {
            existing_target::outlives(&self.held, target)?;
        }
        self.stands()
    }

    /// Proves that the copy has its name, and that no process changed it.
    pub(crate) fn stands(&self) -> Result<(), Skip> {
        self.held
            .check_untouched()
            .and_then(|()| self.held.check_lease())
            .map_err(|why| match why {
                Skip::Gone | Skip::Changed => Skip::CopyChanged,
                why => why,
            })
    }

    /// Returns true if the path shown to the user leads to it.
    pub(crate) fn is_at(&self, path: &[u8]) -> bool {
        rustix::fs::lstat(path).is_ok_and(|stat| stat.st_ino == self.held.stat.id.ino)
    }

    /// The copy in the state that it was left in, to be taken back.
    pub(crate) fn as_left(&mut self) -> Result<&OpenFile, Skip> {
        self.settle()?;
        Ok(&self.held)
    }

    /// Says that the temporary name could not be removed, if it is there still.
    pub(crate) fn left(&self, errno: i32) -> Result<(), Skip> {
        let Some(stage) = &self.stage else {
            return Ok(());
        };
        let path = sibling(&self.held.path, stage.as_bytes());
        Err(Skip::Left { path, errno })
    }

    /// Takes the temporary name away.
    pub(crate) fn drop_stage(&mut self) -> Result<(), Skip> {
        let dir = &self.held.dir;
        let Some(stage) = &self.stage else {
            return Ok(());
        };
        if identity_at(dir, stage)? == Some(self.held.stat.id) {
            entry::unlink(dir, stage)?;
        }
        self.stage = None;
        Ok(())
    }
}
