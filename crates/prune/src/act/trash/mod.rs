//! trash: the target goes to the trash of its own file system, from which desktops and undo give it
//! back, as the Trash specification 1.0 of freedesktop.org has it.
//!
//! A file in `info`, which is made first and never over another, reserves the name in `files` and
//! says where the target was and when it went. Then the target is renamed to that name, looked at
//! once more, and gets its own back if it is not what was proven. It is never copied, and never goes
//! to another file system. `directorysizes`, a cache of those who show a trash, is left to them.

pub(crate) mod place;

use std::rc::Rc;

use bc_fs::shortage::is_shortage;

use self::place::{ReservedName, Trash};
use crate::check::open_file::OpenFile;
use crate::means::PruneRun;
use crate::skip::Skip;
use crate::step::Action;

impl PruneRun<'_> {
    /// Returns the trash for this file or directory; it is looked for once in each mount.
    pub(crate) fn trash_for(&mut self, held: &OpenFile) -> Result<Rc<Trash>, Skip> {
        let Action::Trash(home) = &self.options.action else {
            return Err(Skip::Changed);
        };
        let found = held.dir.facts()?;
        let key = (found.stat.id.dev, found.mount);
        if let Some(known) = self.trashes.0.get(&key) {
            return known.clone();
        }
        let places = self.means.shared.real_places();
        let trash = Trash::find(&held.dir, home.as_deref()).map(|trash| trash.at_own_place(places));
        let trash = match trash {
            Ok(trash) if self.places.protect(trash.above()) => Err(Skip::Protected),
            Ok(trash) => match trash.foresee() {
                Ok(()) => Ok(Rc::new(trash)),
                Err(why) => Err(why.of(&trash.path)),
            },
            Err(why) => Err(why),
        };
        // A shortage of descriptors ends.
        if !trash.as_ref().is_err_and(is_shortage) {
            self.trashes.0.insert(key, trash.clone());
        }
        trash
    }

    /// Reserves a name for this file or directory in its trash.
    pub(crate) fn reserve_in_trash(&mut self, held: &OpenFile) -> Result<ReservedName, Skip> {
        self.trash_for(held)?.reserve(held, self.options.utc_offset)
    }
}
