//! Sources of moves that a killed run has left under private names: each gets its own name back, and
//! what is to become of it is decided again.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use bc_edit::entry;
use bc_edit::journal::{FoundJournal, Journal, Key};
use bc_edit::names::{Temporary, temporary};
use bc_edit::swap::{NotDone, keep_beside, settle_taken};
use bc_fs::call::FailedCall;
use bc_fs::path::below;
use bc_fs::place::Place;
use bc_fs::{Escaped, dirfd};
use bc_walk::job::Error;
use rustix::io::Errno;

use crate::destination::{self, place_of};
use crate::event::{Event, Observer};
use crate::meta::stat_at;
use crate::options::CopyOptions;
use crate::resume::journal::{self, EarlierRuns, JournalContent, Site, load};
use crate::resume::known::{KnownWork, VolumeNow};
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
    /// Reasons for which sources may still have private names.
    pub(crate) unsettled: Vec<bc_walk::Error>,
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
            let unsettled = put_back(&earlier.known, !options.dry_run, observer);
            found.unsettled.extend(unsettled);
            found.exists = true;
            let has_moved = earlier.known.removes || !earlier.known.renamed.is_empty();
            if has_moved && found.moved.is_none() {
                found.moved = Some(*earlier);
            }
        }
    }
    found
        .unsettled
        .extend(settle_others(options, state, &own, observer));
    Ok(found)
}

/// Gives back what unfinished runs of other moves, to another destination say, have taken away at or
/// below the sources: it would go along under its private name, of which then no journal knows
/// where it is. `own`: beginning of the names of this move's journals.
fn settle_others(
    options: &CopyOptions,
    state: &Path,
    own: &str,
    observer: &Observer<'_>,
) -> Vec<bc_walk::Error> {
    let (Ok(key), Ok(all)) = (Key::kept_in(state), std::fs::read_dir(state.join("copy"))) else {
        return Vec::new();
    };
    let sources = options.sources.iter().map(|source| place_of(source));
    let sources: Vec<Vec<u8>> = sources.collect();
    let is_source = |aside: &AsideRecord| {
        let at = shown_below(&aside.dir, &aside.name);
        sources
            .iter()
            .any(|source| at == *source || below(&at, source).is_some())
    };
    let mut unsettled = Vec::new();
    for path in all.flatten().map(|entry| entry.path()) {
        let name = path.file_stem().unwrap_or_default().as_encoded_bytes();
        if path.extension().is_none_or(|end| end != "journal") || name.starts_with(own.as_bytes()) {
            continue;
        }
        let found = Place::find(&path).and_then(|place| Journal::open(&place, &key));
        // A run that is at work gives its own ones back.
        let Ok(FoundJournal::Journal(journal)) = found else {
            continue;
        };
        let Ok(Some(JournalContent { mut known, .. })) = load(&journal, &[0; 16]) else {
            continue;
        };
        known.asides.retain(is_source);
        unsettled.extend(put_back(&known, !options.dry_run, observer));
    }
    unsettled
}

/// Gives sources that were set aside their names back. Where such a name was taken since, the source
/// gets one beside it. Returns the reasons for which some may still have their private names, one
/// for each directory: their journal has to stay. `changes`: false to look only.
pub(crate) fn put_back(
    known: &KnownWork,
    changes: bool,
    observer: &Observer<'_>,
) -> Vec<bc_walk::Error> {
    let mut unsettled = Vec::new();
    let mut volumes = Volumes {
        known,
        seen: HashMap::new(),
    };
    let mut last: Option<&[u8]> = None;
    for aside in &known.asides {
        if let Err(error) = put_back_one(aside, &mut volumes, changes, observer)
            && last.replace(&aside.dir) != Some(&aside.dir)
        {
            unsettled.push(error);
        }
    }
    unsettled
}

/// Volumes that were looked at already.
struct Volumes<'k> {
    known: &'k KnownWork,
    /// Directories, and whether they are on a volume of the sources.
    seen: HashMap<&'k [u8], bool>,
}

impl<'k> Volumes<'k> {
    /// Fails if a directory, or what is above it, is on another volume than the sources were.
    fn check(&mut self, dir: &'k [u8]) -> Result<(), bc_walk::Error> {
        let is_known = match self.seen.get(dir) {
            Some(is_known) => *is_known,
            None => {
                let now = VolumeNow::of_place(dir);
                let now = now.map_err(|errno| bc_walk::Error::new(dir, "stat", errno))?;
                let is_known = self.known.has_volume(&now);
                self.seen.insert(dir, is_known);
                is_known
            }
        };
        match is_known {
            true => Ok(()),
            false => {
                let text = "another volume is there than the one on which sources were set aside";
                Err(bc_walk::Error::with_message(dir, LOOKS, text))
            }
        }
    }
}

/// The operation of looking for sources that were set aside.
const LOOKS: &str = "look for sources that were set aside";

fn put_back_one<'k>(
    aside: &'k AsideRecord,
    volumes: &mut Volumes<'k>,
    changes: bool,
    observer: &Observer<'_>,
) -> Result<(), bc_walk::Error> {
    let AsideRecord { dir, name, private } = aside;
    let private = private.as_bytes();
    if temporary(private) != Some(Temporary::Aside) || name.contains(&b'/') {
        return Ok(());
    }
    let failed = |errno| bc_walk::Error::new(&dir[..], LOOKS, errno);
    let open = match dirfd::open_root(dir) {
        Ok(open) => open,
        // It was removed once it was empty.
        Err(error) if error.errno == Errno::NOENT => return volumes.check(dir),
        Err(error) => return Err(failed(error.errno)),
    };
    match stat_at(&open, private) {
        Ok(_) if changes => give_back(open.as_fd(), dir, name, private, observer),
        Ok(_) => Ok(()),
        // It was removed, or had not lost its name yet.
        Err(Errno::NOENT) => volumes.check(dir),
        Err(errno) => Err(failed(errno)),
    }
}

/// Gives a source in the directory `path` its name back, or, where that was taken since, one beside
/// it.
///
/// # Errors
/// If it keeps its private name.
pub(crate) fn give_back(
    dir: BorrowedFd<'_>,
    path: &[u8],
    name: &[u8],
    private: &[u8],
    observer: &Observer<'_>,
) -> Result<(), bc_walk::Error> {
    let why = match settle_taken(dir, name, private, || Err::<(), _>(())) {
        Err(NotDone::Displaced { failed, .. }) => failed,
        _ => return Ok(()),
    };
    let refused = |failed: FailedCall| {
        let shown = shown_below(path, name);
        Err(bc_walk::Error::new(shown, failed.op, failed))
    };
    match why {
        // It was removed, or had not lost its name yet.
        Some(failed) if failed.errno == Errno::NOENT => return Ok(()),
        Some(failed) => return refused(failed),
        None => {}
    }
    let there = |name: &[u8]| stat_at(dir, name).ok().filter(|there| there.nlink > 1);
    if let (Some(own), Some(other)) = (there(name), there(private))
        && own.id == other.id
    {
        // Where a new name is a link, and the old one goes then, it was left in between.
        return entry::unlink(dir, private).or_else(refused);
    }
    match keep_beside(dir, private, name) {
        Some(kept) => {
            displaced(path, name, &kept, observer);
            Ok(())
        }
        None => refused(FailedCall {
            op: "rename",
            errno: Errno::EXIST,
        }),
    }
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
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    use super::*;
    use crate::resume::record::SiteRecord;

    /// A journal by which a file below `dir` was set aside, from a source on the volume of `site`.
    fn known(dir: &Path, site: &Path) -> KnownWork {
        let volume = VolumeNow::of_place(site.as_os_str().as_bytes()).unwrap();
        let mut known = KnownWork::written_at(0);
        known.sites.push(SiteRecord {
            source: 0,
            dev: volume.dev,
            volume: volume.name,
        });
        known.asides.push(AsideRecord {
            dir: dir.as_os_str().as_bytes().to_vec(),
            name: b"file".to_vec(),
            private: bc_edit::names::aside([7; 8]),
        });
        known
    }

    fn settled(known: &KnownWork) -> Vec<String> {
        let unsettled = put_back(known, true, &|_| ());
        unsettled.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_cannot_be_looked_for_is_not_settled() {
        let ground = tempfile::tempdir().unwrap();
        let (there, gone) = (ground.path(), ground.path().join("gone"));
        for dir in [there, &gone] {
            assert_eq!(settled(&known(dir, there)), Vec::<String>::new());
            // As if its disk were away: what is there now is another one.
            let unsettled = settled(&known(dir, Path::new("/proc")));
            assert!(unsettled[0].contains("another volume"), "{unsettled:?}");
        }
        fs::write(there.join("no directory"), "").unwrap();
        let unsettled = settled(&known(&there.join("no directory"), there));
        assert!(unsettled[0].contains("Not a directory"), "{unsettled:?}");
    }

    #[test]
    fn a_source_gets_its_name_once() {
        for has_both in [false, true] {
            let ground = tempfile::tempdir().unwrap();
            let known = known(ground.path(), ground.path());
            let private = ground.path().join(&known.asides[0].private);
            let name = ground.path().join("file");
            fs::write(&private, "content").unwrap();
            if has_both {
                fs::hard_link(&private, &name).unwrap();
            }
            assert_eq!(settled(&known), Vec::<String>::new());
            assert_eq!(fs::read(&name).unwrap(), b"content");
            assert_eq!(fs::read_dir(ground.path()).unwrap().count(), 1);
        }
    }
}
