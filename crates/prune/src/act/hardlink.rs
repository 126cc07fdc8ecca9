//! hardlink: the target's name becomes another name of the kept file.

use bc_edit::entry;

use crate::act::temp::{Temps, discard, left, replace};
use crate::check::open_file::{OpenFile, identity_at};
use crate::skip::Skip;

/// Has the kept file copied out of its lower layer, as a link to it would, and records the number
/// that it has there. The link beside `target` that this needs is removed afterwards.
pub(crate) fn copy_up(
    kept_file: &mut OpenFile,
    target: &OpenFile,
    temps: &Temps,
) -> Result<(), Skip> {
    let temp =
        temps.name(|temp| entry::link(&kept_file.dir, &kept_file.name, &target.dir, temp))?;
    let found = match identity_at(&target.dir, &temp) {
        Ok(Some(id)) => id,
        Ok(None) => return Err(Skip::Changed),
        Err(why) => return Err(discard(target, &temp, kept_file.stat.id, why)),
    };
    if !kept_file.is(found) {
        return Err(discard(target, &temp, found, Skip::LinkDiffers));
    }
    entry::unlink(&target.dir, &temp).map_err(|failed| left(target, &temp, failed.errno))?;
    kept_file.refresh().map_err(Skip::of_kept_file)
}

pub(crate) fn act(kept_file: &OpenFile, target: &OpenFile, temps: &Temps) -> Result<(), Skip> {
    let temp =
        temps.name(|temp| entry::link(&kept_file.dir, &kept_file.name, &target.dir, temp))?;
    match identity_at(&target.dir, &temp) {
        Ok(Some(id)) if id == kept_file.stat.id => {}
        // The kept file's name was given to another file just before the link, or the file system
        // numbers each name: the caller decides which.
        Ok(Some(id)) => return Err(discard(target, &temp, id, Skip::LinkDiffers)),
        Ok(None) => return Err(Skip::Changed),
        Err(why) => return Err(discard(target, &temp, kept_file.stat.id, why)),
    }
    replace(target, &temp, kept_file.stat.id, || {
        kept_file.check_named_content().map_err(Skip::of_kept_file)
    })
}
