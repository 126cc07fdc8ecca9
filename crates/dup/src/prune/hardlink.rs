//! hardlink: the target's name becomes another name of the kept file.

use super::open_file::{OpenFile, identity_at};
use super::skip::Skip;
use super::sys;
use super::temp::{Temps, discard, left, replace};

/// Has the kept file copied out of its lower layer, as a link to it would, and records the number
/// that it has there. The link beside `target` that this needs is removed afterwards.
pub(crate) fn copy_up(keeper: &mut OpenFile, target: &OpenFile, temps: &Temps) -> Result<(), Skip> {
    let temp = temps.name(|temp| sys::link(&keeper.dir, &keeper.name, &target.dir, temp))?;
    let found = match identity_at(&target.dir, &temp) {
        Ok(Some(id)) => id,
        Ok(None) => return Err(Skip::Changed),
        Err(why) => return Err(discard(target, &temp, keeper.stat.id, why)),
    };
    if !keeper.is(found) {
        return Err(discard(target, &temp, found, Skip::LinkDiffers));
    }
    sys::unlink(&target.dir, &temp).map_err(|failed| left(target, &temp, failed.errno))?;
    keeper.refresh().map_err(Skip::of_keeper)
}

pub(crate) fn act(keeper: &OpenFile, target: &OpenFile, temps: &Temps) -> Result<(), Skip> {
    let temp = temps.name(|temp| sys::link(&keeper.dir, &keeper.name, &target.dir, temp))?;
    match identity_at(&target.dir, &temp) {
        Ok(Some(id)) if id == keeper.stat.id => {}
        // The kept file's name was given to another file just before the link, or the file system
        // numbers each name: the caller decides which.
        Ok(Some(id)) => return Err(discard(target, &temp, id, Skip::LinkDiffers)),
        Ok(None) => return Err(Skip::Changed),
        Err(why) => return Err(discard(target, &temp, keeper.stat.id, why)),
    }
    replace(target, &temp, keeper.stat.id, || {
        keeper.check_named_content().map_err(Skip::of_keeper)
    })
}
