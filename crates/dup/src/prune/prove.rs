//! Every proof about one target, in the order from cheap to dear; nothing is
//! changed here but leftovers of dead runs removed on the way.

use bc_digest::Digest;
use bc_walk::FileStat;
use rustix::io::Errno;

use super::guard::{self, Held};
use super::plan::FileRef;
use super::run::{Force, Owners, Run, State};
use super::step::{Action, Skip, StepKind};
use super::{reflink, symlink, sys};

/// A target that passed every proof.
pub(super) struct Ready {
    pub(super) held: Held,
    pub(super) digest: Digest,
    pub(super) links_left: u64,
    pub(super) freed: u64,
}

impl Run<'_> {
    /// Everything that has to hold before `file` may be changed.
    pub(super) fn prove(
        &mut self,
        keeper: &mut Held,
        file: &FileRef,
        state: &mut State,
        kind: &mut StepKind,
    ) -> Result<Ready, Refusal> {
        let stamp = state.stamps.get(&file.id).copied().unwrap_or(file.stamp);
        let (dir, name) = guard::open_parent(file)?;
        let entry = (
            FileStat::from(&sys::stat(&dir).map_err(Skip::from)?).id,
            name,
        );
        if state.entries.contains(&entry) {
            return Err(Skip::SameName.into());
        }
        self.sweep(&dir, &entry.0, &file.path);
        if guard::identity_at(&dir, &entry.1)? == Some(keeper.stat.id) {
            return Err(Skip::AlreadyLinked.into());
        }
        let held = guard::open(file, stamp)?;
        if held.stat.id == keeper.stat.id {
            return Err(Skip::AlreadyLinked.into());
        }
        keeper.check().map_err(Skip::of_keeper)?;
        let room = self.refuse(keeper, &held, kind)?;
        self.able(&held, kind)?;
        let size = keeper.stat.stamp.size;
        let digest = guard::compare(&keeper.file, &held.file, size, self.cancel)?;
        keeper.check().map_err(Skip::of_keeper)?;
        held.check()?;
        if room == Room::Full {
            return Err(Refusal::Full(Box::new(held)));
        }
        let left = state.links.get(&held.stat.id).copied();
        let links_left = left.unwrap_or(held.stat.nlink).saturating_sub(1);
        let freed = match kind {
            StepKind::Move(_) => 0,
            StepKind::Reflink => guard::own_bytes(&held.file, &held.stat),
            _ if links_left == 0 => guard::own_bytes(&held.file, &held.stat),
            _ => 0,
        };
        state.entries.insert(entry);
        Ok(Ready {
            held,
            digest,
            links_left,
            freed,
        })
    }

    /// What can be refused without reading.
    fn refuse(&mut self, keeper: &Held, held: &Held, kind: &mut StepKind) -> Result<Room, Skip> {
        let options = self.options;
        let across = keeper.stat.id.dev != held.stat.id.dev;
        let same_metadata = || -> Result<(), Skip> {
            if options.metadata == Owners::Ignore {
                return Ok(());
            }
            match keeper.metadata()?.difference(&held.metadata()?) {
                Some(what) => Err(Skip::MetadataDiffers(what)),
                None => Ok(()),
            }
        };
        match kind {
            StepKind::Hardlink if across => Err(Skip::System {
                op: "link",
                errno: Errno::XDEV.raw_os_error(),
            }),
            StepKind::Hardlink => {
                same_metadata()?;
                let most = self.max_links(keeper);
                let most = options.max_links.unwrap_or(most).min(most);
                Ok(if keeper.links < most {
                    Room::Free
                } else {
                    Room::Full
                })
            }
            StepKind::Reflink if reflink::shared(keeper, held) => Err(Skip::AlreadyShared),
            StepKind::Symlink(text) => {
                same_metadata()?;
                self.distinct(keeper, held)?;
                *text = symlink::text(keeper, held)?;
                Ok(Room::Free)
            }
            StepKind::Delete => {
                self.distinct(keeper, held)?;
                Ok(Room::Free)
            }
            StepKind::Move(to) => {
                self.outside_destination(held)?;
                match rustix::fs::lstat(to.as_slice()) {
                    Ok(_) => Err(Skip::DestinationExists),
                    Err(_) => Ok(Room::Free),
                }
            }
            StepKind::Reflink | StepKind::Leftover => Ok(Room::Free),
        }
    }

    pub(super) fn distinct(&self, keeper: &Held, held: &Held) -> Result<(), Skip> {
        match self.options.force {
            Force::Yes => Ok(()),
            Force::No => guard::check_distinct(keeper, held),
        }
    }

    /// Files that were moved before are not moved again.
    fn outside_destination(&mut self, held: &Held) -> Result<(), Skip> {
        let Action::Move(dir) = &self.options.action else {
            return Ok(());
        };
        if self.destination.is_none() {
            // While it does not exist, nothing lies in it.
            let Ok(opened) = sys::open_root(dir) else {
                return Ok(());
            };
            self.destination = sys::real_path(&opened);
        }
        match (&self.destination, sys::real_path(&held.dir)) {
            (Some(destination), Some(at)) => match at.strip_prefix(destination.as_slice()) {
                Some([] | [b'/', ..]) => Err(Skip::InDestination),
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }
}

/// Whether the keeper can take another name.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Room {
    Free,
    Full,
}

pub(super) enum Refusal {
    Skip(Skip),
    /// The keeper has all the names it can have; this file takes over.
    Full(Box<Held>),
}

impl From<Skip> for Refusal {
    fn from(skip: Skip) -> Refusal {
        Refusal::Skip(skip)
    }
}
