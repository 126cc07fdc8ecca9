//! delete: the target's name goes, while a distinct, verified file with the
//! same content is held open and still has its name.

use bc_edit::entry;

use crate::act::temp::{Temps, remove};
use crate::check::open_file::{OpenFile, identity_at};
use crate::skip::Skip;

pub(crate) fn act(kept_file: &OpenFile, target: &OpenFile, temps: &Temps) -> Result<(), Skip> {
    if kept_file.stat.id == target.stat.id {
        return Err(Skip::AlreadyLinked);
    }
    remove(target, temps, || kept_file.outlives(target))
}

/// Removes a leftover name that is another name of the kept file.
pub(crate) fn extra_link(kept_file: &OpenFile, target: &OpenFile) -> Result<(), Skip> {
    kept_file.check_name().map_err(Skip::of_kept_file)?;
    match identity_at(&target.dir, &target.name)? {
        Some(id) if id == kept_file.stat.id => Ok(entry::unlink(&target.dir, &target.name)?),
        Some(_) => Err(Skip::Changed),
        None => Err(Skip::Gone),
    }
}
