//! Stages without a name: a small file is complete, with all its metadata, before any name leads to
//! it, and gets its own by one link.
//!
//! Such a stage takes 0.76 of the time of one with a name and a renaming on tmpfs, 0.68 on ext4,
//! 0.4 on XFS (40,000 files of 4 KB in one directory, one thread, Linux 6.12), and a killed run
//! leaves nothing behind. It is for files that are made with owner and mode of their sources: a
//! file that was given away may not be linked (`fs.protected_hardlinks`).

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering::Relaxed;

use bc_edit::metadata::{Subject, times_of};
use bc_edit::{content, entry};
use bc_fs::dirfd::own_path;
use bc_walk::{Error, FileStat};
use rustix::io::Errno;

use crate::beneath::DestDir;
use crate::existing::Existing;
use crate::job::Job;
use crate::meta::fstat;
use crate::options::{Durability, OnConflict, ReadBack};
use crate::place::Place;
use crate::publish::id_of;
use crate::stage::{self, NoStage, StageUse};
use crate::workers::descriptors;

/// File systems on which unnamed stages are quicker. On Btrfs they are not always.
const QUICKER_ON: [&str; 3] = ["tmpfs", "ext4", "XFS"];

/// Descriptors needed for each worker: the files of a batch wait open.
const EACH: u64 = 1024;

/// True if a copy may make such stages. Files that must be on the disk before they have their
/// names, that are read back by name, or that replace others have a name from the start.
pub(crate) fn is_possible(job: &Job<'_>) -> bool {
    let options = job.plan.options;
    let workers = options.workers.max(1) as u64;
    options.durability == Durability::None
        && options.read_back == ReadBack::None
        && matches!(options.on_conflict, OnConflict::Fail | OnConflict::Skip)
        && job.plan.went_on.is_none()
        && QUICKER_ON.contains(&job.site.top_traits.name)
        && descriptors() / workers >= EACH
        // The second way to a link.
        && rustix::fs::stat(own_path(&job.plan.top.fd)).is_ok()
}

/// Creates a file in a directory that no name leads to; `None` where that is not possible.
pub(crate) fn create(job: &Job<'_>, dir: &DestDir, mode: u32) -> Option<File> {
    if !job.site.unnamed.load(Relaxed) || dir.id.dev != job.plan.top.id.dev {
        return None;
    }
    let file = content::create_unnamed(&dir.fd, mode);
    if file.is_err() {
        job.site.unnamed.store(false, Relaxed);
    }
    file.ok().map(File::from)
}

/// Gives such a file its name, closes it, and returns its state then.
pub(crate) fn publish(job: &Job<'_>, place: &Place, file: File) -> Result<Existing, Error> {
    let refused = |op, errno| job.refused(&place.target, op, errno);
    match entry::link_unnamed(&file, &place.dir.fd, place.name()).map_err(Errno::from) {
        Ok(()) => {}
        Err(
            errno @ (Errno::EXIST
            | Errno::NOSPC
            | Errno::DQUOT
            | Errno::ROFS
            | Errno::IO
            | Errno::NAMETOOLONG),
        ) => return Err(refused("link", errno)),
        // Some policies know files by their names alone.
        Err(_) => {
            job.site.unnamed.store(false, Relaxed);
            return by_name(job, place, &file);
        }
    }
    let now = Existing::of(&file).map_err(|errno| refused("stat", errno))?;
    // File systems where such stages are made have nothing to say here; one that had would keep
    // a name that leads to no whole copy.
    if let Err(errno) = bc_fs::close(file) {
        if id_of(place, place.name()) == Ok(now.stat.id) {
            let _ = entry::unlink(&place.dir.fd, place.name());
        }
        return Err(refused("close", errno));
    }
    Ok(now)
}

/// Publishes the file by a stage that has a name, with the file's content and metadata.
fn by_name(job: &Job<'_>, place: &Place, file: &File) -> Result<Existing, Error> {
    let refused = |op, errno| job.refused(&place.target, op, errno);
    let raw = fstat(file).map_err(|errno| refused("stat", errno))?;
    let stat = FileStat::from(&raw);
    let name = job.plan.id.stage(&place.dir, &place.target, None);
    let made = stage::open(&place.dir, name, StageUse::FreshWith(stat.mode & 0o7777));
    let made = made.map_err(|error| match error {
        NoStage::System(errno) => refused("create", errno),
        NoStage::Foreign(_) => refused("create", Errno::EXIST),
    })?;
    let fill = || {
        let mut bytes = vec![0; stat.stamp.size as usize];
        file.read_exact_at(&mut bytes, 0)?;
        made.file.write_all_at(&bytes, 0)
    };
    let filled = fill().map_err(|error| job.refused_io(&place.target, "write", error));
    let given = filled.and_then(|()| {
        let given = Subject::open(made.file.as_fd()).set_times(&times_of(&raw));
        given.map_err(|errno| refused("utimens", errno))
    });
    if let Err(error) = given {
        made.remove(&place.dir);
        return Err(error);
    }
    let name = made.close(&place.dir);
    let name = name.map_err(|errno| refused("close", errno))?;
    job.publish(place, &name)?;
    let now = Existing::at(&place.dir.fd, place.name());
    now.map_err(|errno| refused("stat", errno))
}
