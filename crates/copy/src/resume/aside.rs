//! Sources of moves that a killed run has left under private names: each gets its own name back, and
//! what is to become of it is decided again.

use std::os::fd::{AsFd, BorrowedFd};

use bc_edit::entry;
use bc_edit::names::{Temporary, temporary};
use bc_edit::swap::{NotDone, keep_beside, settle_taken};
use bc_fs::{Escaped, dirfd};
use bc_walk::job::Error;
use rustix::io::Errno;

use crate::destination;
use crate::event::{Event, Observer};
use crate::meta::stat_at;
use crate::options::CopyOptions;
use crate::resume::journal::{self, EarlierRuns, Site};
use crate::resume::record::AsideRecord;
use crate::resume::{MOST_JOURNALS, look};
use crate::sources::shown_below;

/// Unfinished runs of a move.
#[derive(Default)]
pub(crate) struct UnfinishedMove {
    /// True if there is one.
    pub(crate) exists: bool,
    /// One of which sources may be gone, because it was about to remove or rename them.
    pub(crate) moved: Option<EarlierRuns>,
}

/// Gives back the names that unfinished runs of this move have taken away, and returns what is known
/// of those runs.
pub(crate) fn settle(
    options: &CopyOptions,
    observer: &Observer<'_>,
) -> Result<UnfinishedMove, Error> {
    let mut found = UnfinishedMove::default();
    let Some(state) = &options.state else {
        return Ok(found);
    };
    // The name of a journal takes a look at mounts and disks, which a rename needs not wait for.
    let is_journal =
        |entry: std::fs::DirEntry| entry.path().extension().is_some_and(|end| end == "journal");
    let all = std::fs::read_dir(state.join("copy"));
    if !all.is_ok_and(|all| all.flatten().any(is_journal)) {
        return Ok(found);
    }
    let own = destination::JobNames::of(options).own;
    for nth in 0..MOST_JOURNALS {
        let name = match nth {
            0 => own.clone(),
            nth => format!("{own}-{nth}"),
        };
        if !journal::path(state, &name).exists() {
            continue;
        }
        if let Some(Site::Earlier(earlier)) = look(state, &name, false, observer)? {
            if !options.dry_run {
                put_back(&earlier.known.asides, observer);
            }
            found.exists = true;
            let has_moved = earlier.known.removes || !earlier.known.renamed.is_empty();
            if has_moved && found.moved.is_none() {
                found.moved = Some(*earlier);
            }
        }
    }
    Ok(found)
}

/// Gives sources that were set aside their names back. Where such a name was taken since, the source
/// gets one beside it.
pub(crate) fn put_back(asides: &[AsideRecord], observer: &Observer<'_>) {
    for AsideRecord { dir, name, private } in asides {
        let is_ours = temporary(private.as_bytes()) == Some(Temporary::Aside);
        let Ok(open) = dirfd::open_root(dir) else {
            continue;
        };
        if !is_ours || name.contains(&b'/') {
            continue;
        }
        give_back(open.as_fd(), dir, name, private.as_bytes(), observer);
    }
}

/// Gives a source in the directory `path` its name back, or, where that was taken since, one beside
/// it.
pub(crate) fn give_back(
    dir: BorrowedFd<'_>,
    path: &[u8],
    name: &[u8],
    private: &[u8],
    observer: &Observer<'_>,
) {
    let why = match settle_taken(dir, name, private, || Err::<(), _>(())) {
        Err(NotDone::Displaced { failed, .. }) => failed,
        _ => return,
    };
    if why.is_some_and(|failed| failed.errno == Errno::NOENT) {
        // It was removed, or had not lost its name yet.
        return;
    }
    let there = |name: &[u8]| stat_at(dir, name).ok().filter(|there| there.nlink > 1);
    if let (Some(own), Some(other)) = (there(name), there(private))
        && own.id == other.id
    {
        // Where a new name is a link, and the old one goes then, it was left in between.
        let _ = entry::unlink(dir, private);
        return;
    }
    let kept = keep_beside(dir, private, name);
    displaced(path, name, kept.as_deref().unwrap_or(private), observer);
}

/// Reports a source that could not get its name back.
fn displaced(dir: &[u8], name: &[u8], kept: &[u8], observer: &Observer<'_>) {
    let text = format!(
        "{}: another program took the name while it was to be removed: the source is {} now",
        Escaped(&shown_below(dir, name)),
        Escaped(kept)
    );
    observer(Event::Warning(&text));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where a rename is a link and a removal, a kill or a failure leaves both names.
    #[test]
    fn a_source_with_both_names_keeps_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let private = dir.path().join("private");
        std::fs::write(dir.path().join("name"), "content").unwrap();
        std::fs::hard_link(dir.path().join("name"), &private).unwrap();
        let path = dir.path().as_os_str().as_encoded_bytes();
        let open = dirfd::open_root(path).unwrap();
        let observer = |_: Event<'_>| panic!("nothing is displaced");
        give_back(open.as_fd(), path, b"name", b"private", &observer);
        let names = std::fs::read_dir(dir.path()).unwrap();
        let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["name"]);
    }
}
