//! PATHs of a run that changes files: the owner of a symbolic link on the way chooses which files
//! are changed, so another user's is refused.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bc_find::groups::FileGroup;
use bc_fs::place::Way;
use bc_prune::Action;
use bc_walk::{DirId, FileKind, FileStat, Listing};

use crate::session::{Outcome, Session};

/// PATHs and what they led to when the run began.
pub struct Named(Vec<(Vec<u8>, Option<FileStat>)>);

impl Named {
    /// Looks at each; warns of one that is a link itself. The search reports paths that do not
    /// exist.
    ///
    /// # Errors
    /// If another user's link is on the way.
    pub fn open(session: &Session, paths: &[OsString], action: &Action) -> Outcome<Named> {
        let mut named = Vec::new();
        let destination = match action {
            Action::Move(dir) => Some(dir.as_slice()),
            _ => None,
        };
        refuse_nowhere(
            session,
            paths.iter().map(|path| path.as_bytes()).chain(destination),
        )?;
        for path in paths {
            let way = look(session, path.as_bytes(), Way::of(path).ok())?;
            if way.as_ref().is_some_and(|way| way.is_link)
                && let Ok(real) = std::fs::canonicalize(path)
            {
                let (path, real) = (shown(path), shown(real.as_os_str()));
                session.report.warning(format_args!(
                    "{path} is a symbolic link: changes are made in {real}"
                ));
            }
            let stat = way.and_then(|way| rustix::fs::fstat(way.end).ok());
            named.push((path.as_bytes().to_vec(), stat.as_ref().map(FileStat::from)));
        }
        if let Action::Move(dir) = action {
            look(session, dir, Way::of_existing(OsStr::from_bytes(dir)).ok())?;
        }
        Ok(Named(named))
    }

    /// Proves that the search came to the places that were looked at.
    ///
    /// # Errors
    /// If one is another by now.
    pub fn check(&self, session: &Session, listing: &Listing) -> Outcome<()> {
        let moved = |path: &[u8]| {
            let path = bc_fs::escape(path);
            Err(session.fatal(format!("{path}: leads elsewhere than when the run began")))
        };
        let is_dir = |stat: &FileStat| stat.kind() == FileKind::Dir;
        let known = self.0.iter();
        let known = known.filter_map(|(path, stat)| Some((trimmed(path), stat.as_ref()?)));
        let dirs: HashMap<&[u8], &FileStat> = known.filter(|(_, stat)| is_dir(stat)).collect();
        let tops = (0..listing.dirs() as u32).map(DirId);
        for dir in tops.filter(|dir| listing.parent(*dir).is_none()) {
            let path = listing.dir_path(dir);
            if let Some(stat) = dirs.get(trimmed(&path))
                && listing.dir_identity(dir).is_some_and(|id| id != stat.id)
            {
                return moved(&path);
            }
        }
        if dirs.len() == self.0.len() {
            return Ok(());
        }
        for entry in listing.ids() {
            if let Some((path, Some(stat))) = self.0.get(listing.root(entry))
                && !is_dir(stat)
                && listing.identity(entry).is_some_and(|id| id != stat.id)
            {
                return moved(path);
            }
        }
        Ok(())
    }
}

/// Returns a path without the slashes that it ends in.
fn trimmed(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|byte| *byte != b'/');
    &path[..end.map_or(0, |end| end + 1)]
}

/// Refuses paths of a report that lead through another user's link: its roots, and the directories
/// of files that were listed without one.
pub fn refuse_foreign(session: &Session, roots: &[Vec<u8>], groups: &[FileGroup]) -> Outcome<()> {
    let files = groups.iter().flat_map(|group| &group.files);
    let listed = files.filter(|file| file.root_len == 0);
    let dirs = listed.filter_map(|file| Path::new(OsStr::from_bytes(&file.path)).parent());
    let dirs: HashSet<&[u8]> = dirs.map(|dir| dir.as_os_str().as_bytes()).collect();
    let named = groups.iter().flat_map(|group| &group.files);
    refuse_nowhere(session, named.map(|file| file.path.as_slice()))?;
    let mut all: Vec<&[u8]> = roots.iter().map(Vec::as_slice).chain(dirs).collect();
    all.retain(|path| !path.is_empty());
    all.sort_unstable();
    for path in all {
        look(session, path, Way::of(OsStr::from_bytes(path)).ok())?;
    }
    Ok(())
}

/// Refuses paths from the working directory if that has none itself: a journal could not say what
/// was changed, and without one nothing is.
fn refuse_nowhere<'p>(session: &Session, mut paths: impl Iterator<Item = &'p [u8]>) -> Outcome<()> {
    let Some(path) = paths.find(|path| !path.starts_with(b"/")) else {
        return Ok(());
    };
    let path = bc_fs::escape(path);
    match std::env::current_dir() {
        Ok(_) => Ok(()),
        Err(error) => Err(session.fatal(format!(
            "{path}: getcwd: the working directory has no path: {error}; change to one that is there, \
             or name what is meant by its whole path"
        ))),
    }
}

fn look(session: &Session, path: &[u8], way: Option<Way>) -> Outcome<Option<Way>> {
    if let Some(link) = way.as_ref().and_then(Way::foreign) {
        let (path, at) = (bc_fs::escape(path), shown(link.path.as_os_str()));
        return Err(session.fatal(format!(
            "{path}: the symbolic link {at} on the way belongs to user {}, who would choose what is \
             changed; name the place that it leads to",
            link.owner
        )));
    }
    Ok(way)
}

fn shown(path: &OsStr) -> String {
    bc_fs::escape(path.as_bytes()).into_owned()
}
