//! Leftovers of a killed restore: the names of its stages may lead to files that it made, which are
//! of no use, but also to the original files, between an exchange of names and the next call. A
//! file is removed only if it is known to be the former, or to have another name.

use std::os::fd::AsFd;

use bc_edit::entry;
use bc_fs::Escaped;
use bc_walk::{FileKind, FileStat};
use rustix::fs::AtFlags;
use rustix::io::{Errno, retry_on_intr};

use super::{Orphan, top};
use crate::beneath::DestDir;
use crate::job::shown_below;
use crate::known::KnownWork;
use crate::record::{JobRecord, Made};
use crate::stage::JobId;
use crate::tree::parts;

/// Removes them, and reports files that are left alone. Returns `false` if the tree is missing.
pub(crate) fn remove_left(
    job: &JobRecord,
    at: &[u8],
    known: &KnownWork,
    left: &dyn Fn(&[u8], &str),
) -> bool {
    let Some(top) = top(job, at) else {
        return false;
    };
    for path in &known.begun {
        let (below, name) = parts(path);
        let Ok(dir) = DestDir::open(top.fd.as_fd(), below) else {
            continue;
        };
        let stage = JobId(job.id).stage(&dir, path, None);
        let made = known.made.get(path).map_or(&[][..], |made| &made[..]);
        if let Orphan::Left(why) = remove(&dir, &stage, made) {
            let shown = shown_below(&shown_below(at, below), stage.as_bytes());
            left(&shown, &format!("{why} (for {})", Escaped(name)));
        }
    }
    true
}

fn remove(dir: &DestDir, stage: &str, made: &[Made]) -> Orphan {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    let stat = match retry_on_intr(|| rustix::fs::statat(&dir.fd, stage, flags)) {
        Ok(stat) => FileStat::from(&stat),
        Err(Errno::NOENT) => return Orphan::None,
        Err(errno) => return Orphan::Left(errno.to_string()),
    };
    let is_made = |made: &Made| {
        let stamp = (stat.stamp.size, stat.stamp.mtime_ns);
        made.ino == stat.id.ino && made.stamp.is_none_or(|made| made == stamp)
    };
    let is_empty = made.is_empty() && stat.stamp.size == 0;
    match stat.kind() {
        // Where it leads is in the manifest.
        FileKind::Symlink => {}
        // Another name of the repaired file, or of a file that has a second name by now.
        FileKind::File if stat.nlink > 1 => {}
        FileKind::File if is_empty || made.iter().any(is_made) => {}
        FileKind::File => return Orphan::Left("may be what was there before a restore".to_owned()),
        _ => return Orphan::Left("not a regular file".to_owned()),
    }
    let own = rustix::process::geteuid();
    if stat.uid != own.as_raw() && !own.is_root() && stat.nlink == 1 {
        return Orphan::Left("belongs to another user".to_owned());
    }
    match entry::unlink(&dir.fd, stage) {
        Ok(()) => Orphan::Removed,
        Err(failed) => Orphan::Left(failed.errno.to_string()),
    }
}
