//! Entries without content: directories, made again, and symbolic links, whose targets are
//! recorded.

use std::os::fd::AsFd;

use bc_edit::made::Thing;
use bc_edit::metadata::Subject;
use bc_fs::dirfd;
use bc_manifest::integrity::Kind;
use bc_walk::Error;
use rustix::io::Errno;

use super::Restore;
use super::dirs::NotOpened;
use super::needs::Need;
use super::options::Repaired;
use crate::meta::{self, stat_at};
use crate::sources::parts;
use crate::stage::put::{NotPut, put_new};
use crate::stage::{make, remove, swapped};

/// Restores everything but regular files. Entries that can be restored neither way are reported.
pub(super) fn restore(restore: &Restore<'_>) {
    for (number, need) in restore.plan.needs.iter().enumerate() {
        if restore.is_over() {
            return;
        }
        if restore.is_left(number) {
            continue;
        }
        let made = match need.entry.kind {
            Kind::File => continue,
            Kind::Dir => make_dir(restore, need),
            Kind::Symlink => match &need.entry.target {
                Some(target) if is_believed(restore, need, target) => {
                    make_link(restore, need, target)
                }
                Some(_) => {
                    restore.missing(
                        number,
                        "its target is known by a manifest of others alone, whose metadata is not trusted",
                    );
                    continue;
                }
                None => {
                    restore.missing(number, "no target is recorded");
                    continue;
                }
            },
            Kind::Fifo | Kind::Socket | Kind::Block | Kind::Char => {
                restore.missing(number, "only files, directories and links are brought back");
                continue;
            }
        };
        match made {
            Ok(()) => restore.repaired(
                number,
                &Repaired {
                    path: &need.path,
                    loss: need.loss,
                    from: None,
                    linked: None,
                    kept: None,
                },
            ),
            Err(error) => restore.failed(number, &error),
        }
    }
}

/// True if a link's target is taken from the manifest: also if a copy has the same link.
fn is_believed(restore: &Restore<'_>, need: &Need, target: &[u8]) -> bool {
    let has_it = |from: &super::Backup| from.link(&need.path).as_deref() == Some(target);
    restore.plan.trusts || restore.plan.from.iter().any(has_it)
}

fn make_dir(restore: &Restore<'_>, need: &Need) -> Result<(), Error> {
    let made = match restore.plan.dry_run {
        true => restore
            .means
            .dirs
            .may_put(restore, &need.path)
            .map_err(NotOpened::from),
        false => restore.means.dirs.open(restore, &need.path).map(drop),
    };
    made.map_err(|not| not.error(restore.shown(&need.path), "mkdir"))
}

fn make_link(restore: &Restore<'_>, need: &Need, target: &[u8]) -> Result<(), Error> {
    let failed = |op: &'static str, errno: Errno| Error::new(restore.shown(&need.path), op, errno);
    let again = || {
        let text = "is there again: left as it is";
        Error::with_message(restore.shown(&need.path), "restore", text)
    };
    let (above, name) = parts(&need.path);
    let there = dirfd::open_below(restore.plan.top.fd.as_fd(), above)
        .map_err(Errno::from)
        .and_then(|dir| stat_at(dir, name));
    match there {
        Err(Errno::NOENT) => {}
        Ok(_) => return Err(again()),
        Err(errno) => return Err(failed("open", errno)),
    }
    if restore.plan.dry_run {
        let may = restore.means.dirs.may_put(restore, &need.path);
        return may.map_err(|errno| failed("symlink", errno));
    }
    let dir = restore.means.dirs.open(restore, above);
    let dir = dir.map_err(|not| not.error(restore.shown(&need.path), "open directory"))?;
    let stage = restore.means.id.stage(&dir, &need.path, None);
    restore.means.stages.begun(&need.path);
    let made = make(dir.fd.as_fd(), &stage, Thing::Link(target));
    let held = made.map_err(|(_, errno)| match errno {
        Some(errno) => failed("symlink", errno),
        None => swapped(restore.shown(&need.path)),
    })?;
    let (wanted, giving) = restore.recorded(Some(&need.entry), None, 0o777);
    let mut lost = Vec::new();
    let subject = Subject::link(held.as_fd());
    meta::give(&subject, &wanted, &giving, dir.gives_acl, &mut lost);
    restore.lost(&need.path, &mut lost);
    put_new(dir.fd.as_fd(), &stage, name).map_err(|why| {
        remove(dir.fd.as_fd(), &stage);
        match why {
            NotPut::System(op, errno) => failed(op, errno),
            _ => again(),
        }
    })
}
