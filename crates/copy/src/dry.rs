//! What a copy would do, without doing it.

use bc_walk::{Error, FileKind, FileStat};
use rustix::fs::AtFlags;
use rustix::io::Errno;

use crate::decide::Decision;
use crate::event::Event;
use crate::job::Job;
use crate::results::{Outcome, Proof, State};
use crate::stage::Over;
use crate::tree::Item;
use crate::worker::Worker;

/// Tells what would become of each entry.
pub(crate) fn run(job: &Job<'_>) {
    let mut worker = Worker::new(job);
    let mut target = Vec::new();
    for item in (0..job.tree.len()).map(Item) {
        if job.is_over() {
            return;
        }
        if job.is_manifest(item) {
            job.leave_manifest(item);
            continue;
        }
        job.tree.write_target(item, &mut target);
        match one(&mut worker, item, &target) {
            Ok(Some(over)) => {
                let shown = job.shown(&target);
                (job.observer)(match over {
                    Over::Nothing => Event::Copied(&shown),
                    Over::Anything => Event::Replaced(&shown),
                });
                job.done(vec![done(item)]);
            }
            Ok(None) => {}
            Err(error) => job.fail(item, &error),
        }
    }
}

fn done(item: Item) -> Outcome {
    Outcome {
        proof: Proof::None,
        item,
        state: State::Copied,
        meta: None,
        digest: None,
    }
}

/// Whether an entry would be copied; `None` where it is settled otherwise.
fn one(worker: &mut Worker<'_>, item: Item, target: &[u8]) -> Result<Option<Over>, Error> {
    let job = worker.job;
    let place = match worker.place(item) {
        Ok(place) => place,
        // The directory would be made first.
        Err(error) if error.errno() == Some(Errno::NOENT.raw_os_error()) => {
            return Ok(Some(Over::Nothing));
        }
        Err(error) => return Err(error),
    };
    let kind = job.tree.kind(item);
    if kind == FileKind::Dir {
        if target.is_empty() {
            job.done(vec![done(item)]);
            return Ok(None);
        }
        let there = rustix::fs::statat(&place.dir.fd, place.name(), AtFlags::SYMLINK_NOFOLLOW);
        return match there.map(|there| FileStat::from(&there).kind()) {
            Ok(FileKind::Dir) => {
                job.done(vec![done(item)]);
                Ok(None)
            }
            Ok(FileKind::Symlink) => {
                let text = "is a symbolic link there, which is not followed";
                Err(Error::with_message(job.shown(target), "mkdir", text))
            }
            Ok(_) => Err(Error::with_message(
                job.shown(target),
                "mkdir",
                "is no directory there",
            )),
            Err(_) => Ok(Some(Over::Nothing)),
        };
    }
    let stat = match job.tree.entry(item) {
        Some((listing, id)) => listing.stat(id),
        None => Some(job.tree.root(item).1.source.stat.clone()),
    };
    let Some(stat) = stat else {
        return Ok(Some(Over::Nothing));
    };
    match worker.decide(place, &stat)? {
        Decision::Copy(place) => Ok(Some(place.over)),
        Decision::Settled(outcome) => {
            job.done(vec![outcome]);
            Ok(None)
        }
    }
}
