//! Giving up one of two files with equal content: the original of a move once its copy exists, or a
//! copy once its original does. The file is set aside under a temporary name that identifies the
//! other file, looked at there to the last of its metadata, and removed only while the other one is
//! proven to exist. In all other cases it gets its name back.
//!
//! Two processes may do this to the two files of one pair. Each sets its own
//! aside before it looks at the other's name, so at most one of them finds it.

use bc_edit::entry;
use bc_edit::metadata::FileMetadata;
use bc_edit::names::prune::Mark;
use bc_fs::meta;
use bc_walk::Stamp;

use crate::act::temp::{Temps, settle_taken};
use crate::check::meta::read_metadata;
use crate::check::open_file::{self, OpenFile, identity_at};
use crate::skip::Skip;

/// Removes the name of `target`, whose metadata were `own` when it was last
/// looked at, while `proof` holds that the file `other` replaces it; `last` is
/// asked the same right before it goes, and does nothing to `target`.
///
/// # Errors
/// With the reason why it has its name still or again; [`Skip::Displaced`] if
/// the name was taken meanwhile.
pub(crate) fn give_up(
    target: &OpenFile,
    own: &FileMetadata,
    other: Mark,
    temps: &Temps,
    proof: impl Fn() -> Result<(), Skip>,
    last: impl Fn() -> Result<(), Skip>,
) -> Result<(), Skip> {
    target.check_name()?;
    target.check()?;
    let dir = &target.dir;
    let temp = temps.aside(other, |temp| {
        entry::rename_new(dir, &target.name, dir, temp)
    })?;
    settle_taken(target, &temp, || {
        target.check_content_at(&temp)?;
        proof()?;
        check_untouched(target, own)?;
        last()?;
        Ok(entry::unlink(dir, &*temp)?)
    })
}

/// Proves, for a file that was just renamed, that it is unchanged. Renaming it moved its change
/// time, so earlier changes show in the metadata, and later ones in the change time.
fn check_untouched(target: &OpenFile, own: &FileMetadata) -> Result<(), Skip> {
    let ctime_ns = meta::stat(&target.file)?.stamp.ctime_ns;
    open_file::wait_past(ctime_ns);
    let stat = meta::stat(&target.file)?;
    let now = read_metadata(&target.file, &stat, own.atime_ns)?;
    if now != *own || stat.stamp.size != target.stat.stamp.size {
        return Err(Skip::Changed);
    }
    target.check_lease()?;
    if meta::stat(&target.file)?.stamp == stat.stamp {
        Ok(())
    } else {
        Err(Skip::Changed)
    }
}

/// Takes back a copy that was made, was given its name and has the metadata `made`: removes it
/// while its original exists under its own name, unchanged since `is_spare` proved that nothing is
/// lost with the copy.
///
/// # Errors
/// With the reason why the copy stays.
pub(crate) fn take_back(
    copy: &OpenFile,
    made: &FileMetadata,
    original: &OpenFile,
    is_spare: impl FnOnce() -> Result<(), Skip>,
    temps: &Temps,
) -> Result<(), Skip> {
    let before = stamp_of(original)?;
    is_spare()?;
    let stands = || match stamp_of(original)? == before {
        true => Ok(()),
        false => Err(Skip::Changed),
    };
    give_up(copy, made, original.mark(), temps, stands, stands)
}

/// The state of a file that has its name.
fn stamp_of(held: &OpenFile) -> Result<Stamp, Skip> {
    match identity_at(&held.dir, &held.name)? {
        Some(id) if id == held.stat.id => {}
        Some(_) => return Err(Skip::Changed),
        None => return Err(Skip::Gone),
    }
    Ok(meta::stat(&held.file)?.stamp)
}
