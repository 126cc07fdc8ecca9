//! The last step of a copy: a complete stage gets its name, unless that name leads to another entry
//! of this run.

use std::cell::Cell;
use std::os::fd::AsFd;

use bc_edit::{entry, swap};
use bc_fs::Escaped;
use bc_walk::{Error, Identity};
use rustix::io::Errno;

use crate::event::Event;
use crate::existing::Existing;
use crate::job::Job;
use crate::named::Maps;
use crate::place::Place;
use crate::record::Placed;
use crate::stage::{self, Look, Over, Replaced};
use crate::tree::RootItem;

impl Job<'_> {
    /// Gives a stage, or a link to a file with another name, its name; removes it otherwise.
    pub(crate) fn publish(&self, place: &Place, stage: &str) -> Result<(), Error> {
        let is_stage = Cell::new(true);
        let given = self.give_name(place, stage, &is_stage);
        given.inspect_err(|_| {
            if is_stage.get() {
                stage::remove(place.dir.fd.as_fd(), stage);
            }
        })
    }

    /// Gives a stage its name. `is_stage` becomes false where another program's file has the name of
    /// the stage instead.
    fn give_name(&self, place: &Place, stage: &str, is_stage: &Cell<bool>) -> Result<(), Error> {
        let (dir, name) = (place.dir.fd.as_fd(), place.name());
        let refused = |op, errno| self.refused(&place.target, op, errno);
        let give = || {
            let chosen = match &place.over {
                Over::Nothing => {
                    let given = entry::rename_new(dir, stage, dir, name);
                    return given.map_err(|failed| refused("rename", failed.errno));
                }
                Over::Anything => {
                    let given = entry::rename(dir, stage, name);
                    return given.map_err(|failed| refused("rename", failed.errno));
                }
                Over::This(chosen) => chosen,
            };
            let is_known = self.states_prove(&place.dir, chosen);
            let is_chosen = |now: &Existing, look| is_same(chosen, now, look, is_known);
            match stage::replace(dir, stage, name, is_chosen) {
                Ok(Replaced::Done) => Ok(()),
                Ok(Replaced::Changed) => Err(self.changed(place)),
                Ok(Replaced::Displaced(kept)) => {
                    is_stage.set(kept.is_some());
                    Err(self.displaced(place, kept.as_deref().unwrap_or(stage.as_bytes())))
                }
                Err(errno) => Err(refused("rename", errno)),
            }
        };
        if !self.outcomes.named.is_kept {
            return give();
        }
        let id = id_of(place, stage.as_bytes()).map_err(|errno| refused("stat", errno))?;
        let mut maps = self.outcomes.named.lock();
        if place.over == Over::Nothing {
            // Before it has its name, so that no thread finds it there without knowing it.
            self.outcomes.named.add(&mut maps, place, Some(id));
            drop(maps);
            return give().map_err(|error| {
                self.outcomes.named.forget(place, id);
                self.or_taken(place, stage, error)
            });
        }
        // No other thread gives a name between this look and the renaming.
        match self.other_there(&maps, place, stage) {
            Ok(None) => {}
            Ok(Some(first)) => {
                drop(maps);
                return Err(self.taken_by(place, first));
            }
            Err(errno) => return Err(refused("stat", errno)),
        }
        give()?;
        self.outcomes.named.add(&mut maps, place, Some(id));
        Ok(())
    }

    /// The failure of a file that was to be taken over, and is another one now, or in another state.
    fn changed(&self, place: &Place) -> Error {
        let text = "is not what was to be replaced any more: it was changed meanwhile";
        Error::with_message(self.shown(&place.target), "rename", text)
    }

    /// The failure of a file that was put in the place of another one in the moment when that was
    /// changed, and then changed again: the version between has the name `kept`.
    fn displaced(&self, place: &Place, kept: &[u8]) -> Error {
        const WHY: &str = "another program wrote here at that moment";
        let shown = self.shown(&place.target);
        let text = format!(
            "{}: {WHY}: one of its files is {} now",
            Escaped(&shown),
            Escaped(kept)
        );
        (self.means.observer)(Event::Warning(&text));
        Error::with_message(shown, "rename", WHY)
    }

    /// The failure of a name that was taken since it was found free: perhaps by another entry.
    fn or_taken(&self, place: &Place, stage: &str, error: Error) -> Error {
        let is_taken = error.errno() == Some(Errno::EXIST.raw_os_error());
        let maps = self.outcomes.named.lock();
        let first = is_taken.then(|| self.other_there(&maps, place, stage));
        drop(maps);
        match first {
            Some(Ok(Some(first))) => self.taken_by(place, first),
            _ => error,
        }
    }

    /// Returns the other entry that has the name of a place, if there is one.
    fn other_there(
        &self,
        maps: &Maps,
        place: &Place,
        stage: &str,
    ) -> Result<Option<RootItem>, Errno> {
        let there = match id_of(place, place.name()) {
            Err(Errno::NOENT) => return Ok(None),
            there => there?,
        };
        let is_other = |item: &RootItem| *item != place.item;
        let same = maps.files.get(&there).copied().filter(is_other);
        let alike = || {
            let other = self.outcomes.named.alike(maps, place).find(is_other)?;
            // The stage shows whether case counts here.
            let is_one = id_of(place, stage.to_uppercase().as_bytes()).is_ok();
            is_one.then_some(other)
        };
        Ok(same.or_else(alike))
    }

    /// Returns the failure of a name that leads to another entry.
    fn taken_by(&self, place: &Place, first: RootItem) -> Error {
        let mut target = Vec::new();
        self.plan.tree.write_target(first, &mut target);
        let (first, second) = (self.shown(&target), self.shown(&place.target));
        let text = format!(
            "{}: is the same as {} at the destination: what was copied there stays",
            Escaped(&second),
            Escaped(&first)
        );
        (self.means.observer)(Event::Warning(&text));
        let text = "another source has the same name at the destination";
        Error::with_message(second, "rename", text)
    }
}

/// Whether a file is in the state in which it was found. `is_known`: its number says which it is.
fn is_same(then: &Existing, now: &Existing, look: Look, is_known: bool) -> bool {
    let (mut then_state, now_state) = (Placed::of(then), Placed::of(now));
    if look == Look::After || then.stat.nlink != now.stat.nlink {
        // So has that another name of it was taken over.
        then_state.ctime_ns = now_state.ctime_ns;
    }
    if look == Look::After {
        // A file of a lower layer has become one of the upper one.
        then_state.born_ns = now_state.born_ns;
        if !is_known {
            then_state.ino = now_state.ino;
        }
    }
    then_state == now_state
}

/// Returns the identity of the file that a name in the directory of a place leads to.
pub(crate) fn id_of(place: &Place, name: &[u8]) -> Result<Identity, Errno> {
    swap::identity(place.dir.fd.as_fd(), name)?.ok_or(Errno::NOENT)
}
